"""The process that checks signatures, alone."""

from __future__ import annotations

import os
import subprocess

import pytest

from soliton.parallel._checker import COMMAND, READY


@pytest.mark.parametrize("given", [b"", b"\0", b"\0\0\0\5", b"\0\0\0\5ab"])
def test_it_ends_quietly_in_the_middle_of_a_question(given: bytes) -> None:
    """As when its parent is killed while it asks."""
    ended = subprocess.run(COMMAND, input=given, capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, bytes((READY,)), b"")


def test_it_ends_quietly_when_nobody_listens() -> None:
    """As when its parent is killed while it starts."""
    ours, its = os.pipe()
    os.close(ours)
    try:
        ended = subprocess.run(
            COMMAND, stdin=subprocess.DEVNULL, stdout=its, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(its)
    assert (ended.returncode, ended.stderr) == (0, b"")
