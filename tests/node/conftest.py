"""A chain for the tests of the node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton.node.chain_writer import ChainWriter
from tests.node.chains import open_chain


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[ChainWriter]:
    """The devnet at its genesis block."""
    opened = open_chain(tmp_path)
    yield opened
    opened.store.close()
