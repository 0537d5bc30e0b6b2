"""Configuration files of the reference nodes: no key of theirs prevents the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from soliton.node.settings import load_settings

SYNCHRONIZATION = """
invalid-blocks-storage { max-size = 30000, timeout = 5m }
utx-synchronizer { network-tx-cache-size = 1000000, max-threads = 8, allow-tx-rebroadcasting = yes }
utx-synchronizer { network-tx-cache-size = 1000000, max-buffer-size = 500, max-buffer-time = 100ms }
"""
"""From the ``application.conf`` of the Waves and the ZBS node."""


@pytest.mark.parametrize("text", SYNCHRONIZATION.strip().splitlines())
def test_keys_that_mean_nothing_here_are_known(tmp_path: Path, text: str) -> None:
    path = tmp_path / "node.conf"
    path.write_text(f"waves.synchronization {{ {text} }}")
    assert load_settings(path).warnings == ()
