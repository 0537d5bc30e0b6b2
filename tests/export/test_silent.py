"""A database that hangs, as one does whose disk does: nobody answers, no connection ends."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from soliton.data_service.errors import DatabaseAway
from soliton.data_service.pool import Pool
from soliton.export.running import QUIET_SECONDS
from tests.amounts import only_long
from tests.e2e.programs import Program, devnet
from tests.export.postgres import Server, server
from tests.stopping import children_of, stop


@contextmanager
def hanging(postgres: Server) -> Iterator[None]:
    """All its processes are held."""
    assert postgres.process is not None
    first = postgres.process.pid
    held = [first, *children_of(first)]
    for each in held:
        stop(each)
    try:
        yield
    finally:
        for each in held:
            os.kill(each, signal.SIGCONT)


@only_long
def test_an_export_says_so_and_can_be_ended() -> None:
    with server() as postgres, devnet("--block-time", 0.2) as node:
        dsn = postgres.database()
        export = Program(("export", "postgres", "--dsn", dsn, "--from-node", node.node_url), {})
        try:
            export.wait_for("caught up with the chain")
            with hanging(postgres):
                export.wait_for(f"waiting: there is no answer for {QUIET_SECONDS:.0f} seconds")
                export.send(signal.SIGTERM)
                assert export.wait() == 1
            assert "does not respond: ended without it" in export.output
        finally:
            export.close()
        again = Program(
            ("export", "postgres", "--dsn", dsn, "--from-node", node.node_url, "--once"), {}
        )
        assert again.wait() == 0, again.output
        again.close()


@pytest.mark.slow
async def test_a_question_to_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("soliton.data_service.pool.LATE_SECONDS", 0.5)
    with server() as postgres:
        pool = Pool(postgres.dsn("postgres"), 2, 0.5)
        assert await pool.fetch("SELECT 1 AS one") == [{"one": 1}]
        with hanging(postgres):
            monkeypatch.setattr("soliton.data_service.pool.CONNECT_SECONDS", 2)
            async with asyncio.timeout(20):
                with pytest.raises(DatabaseAway):
                    await pool.fetch("SELECT 1 AS one")
        assert await pool.fetch("SELECT 1 AS one") == [{"one": 1}]
        await pool.close()
