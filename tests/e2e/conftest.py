"""What tests share that need a program which runs: a devnet for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.programs import Program, devnet


@pytest.fixture(scope="module")
def chain() -> Iterator[Program]:
    with devnet() as program:
        yield program
