"""A devnet in a process of its own, for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from soliton import Account, Node
from tests.e2e.programs import Program, devnet

CHAIN_ID = ord("R")


@pytest.fixture(scope="module")
def program() -> Iterator[Program]:
    with devnet() as started:
        yield started


@pytest.fixture(scope="module")
def node(program: Program) -> Iterator[Node]:
    with Node(program.node_url) as connected:
        yield connected


@pytest.fixture(scope="module")
def accounts() -> list[Account]:
    """The ten that a devnet begins with."""
    return [
        Account.from_seed(f"soliton devnet account {number}", CHAIN_ID) for number in range(1, 11)
    ]


@pytest.fixture
def alice(accounts: list[Account]) -> Account:
    return accounts[0]


@pytest.fixture
def bob(accounts: list[Account]) -> Account:
    return accounts[1]
