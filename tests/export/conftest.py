"""What the tests of the export share: a database server for the time of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.export.postgres import Server, server


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    with server() as running:
        yield running


@pytest.fixture
def dsn(postgres: Server) -> str:
    """A database of one's own."""
    return postgres.database()
