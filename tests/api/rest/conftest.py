"""Chains for the tests of the routes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.chain import PrivateChain


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PrivateChain]:
    """The devnet at its genesis block."""
    made = PrivateChain(tmp_path)
    yield made
    made.node.close()


@pytest.fixture
def oldest(tmp_path: Path) -> Iterator[PrivateChain]:
    """A network of the oldest generation of the interface, at its genesis block."""
    made = PrivateChain(tmp_path, "zbs-testnet")
    yield made
    made.node.close()
