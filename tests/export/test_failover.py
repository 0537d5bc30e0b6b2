"""A database with a streaming replica: the first server is lost in the middle of an export, the
replica is promoted, and what the chain holds is in it: nothing lost, nothing doubled.
"""

from __future__ import annotations

import random
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.amounts import times
from tests.cli.here import run_here
from tests.e2e.programs import Program, devnet, eventually, height
from tests.export.postgres import Server, server
from tests.export.test_killed import last_height

ROUNDS = times(1, 10)
"""Failovers, each to a replica of the server before."""

pytestmark = pytest.mark.slow


@contextmanager
def replica_of(first: Server) -> Iterator[Server]:
    """A server that follows another one's stream."""
    with tempfile.TemporaryDirectory(prefix="pr", ignore_cleanup_errors=True) as name:
        made = Server(Path(name))
        try:
            source = f"host={first.directory} user=postgres"
            made.run(
                "pg_basebackup", "-d", source, "-D", made.directory / "data", "-R", "-c", "fast"
            )
            made.start("max_wal_size=256MB")
            yield made
        finally:
            made.close()


def is_streaming(first: Server) -> bool:
    with psycopg.connect(first.dsn("postgres")) as connection:
        found = connection.execute("SELECT state FROM pg_stat_replication").fetchall()
    return ("streaming",) in found


def test_nothing_is_lost_when_the_replica_takes_over(tmp_path: Path) -> None:
    chance = random.Random(ROUNDS)
    with (
        devnet("--data-dir", tmp_path / "chain", heartbeat=0.3) as node,
        server("max_wal_size=256MB") as first,
    ):
        url, name = node.node_url, first.database().rpartition("=")[2]
        where = ("--data-dir", tmp_path / "chain")
        fail_over(first, name, url, where, ROUNDS, chance)


def fail_over(
    first: Server,
    name: str,
    url: str,
    where: tuple[str, Path],
    rounds: int,
    chance: random.Random,
) -> None:
    """Export to a server, lose it, go on with its replica, and compare that in the end."""
    with replica_of(first) as second:
        # Both are in the address: the one that writes is looked for.
        hosts = f"host={first.directory},{second.directory} port=5432,5432"
        dsn = f"{hosts} user=postgres dbname={name} target_session_attrs=read-write"
        eventually(lambda: is_streaming(first), "a replica that follows")
        export = Program(("export", "postgres", "--dsn", dsn, *where), {})
        try:
            export.wait_for("caught up with the chain")
            before = height(url) + chance.randint(1, 3)
            eventually(lambda: last_height(first.dsn(name)) >= before, "further blocks")
            # What was confirmed here and has not got there is lost with the server.
            first.kill()
            export.wait_for("waiting: ")
            second.run("pg_ctl", "promote", "-D", second.directory / "data", "-w")
            export.wait_for("resumed")
            after = height(url) + 1
            eventually(lambda: last_height(second.dsn(name)) >= after, "blocks in the other")
            export.send(signal.SIGTERM)
            assert export.wait() == 0, export.output
        finally:
            export.close()
        done = run_here("verify", "postgres", "--dsn", second.dsn(name), *where)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "the database holds what the chain does" in done.stdout
        with psycopg.connect(second.dsn(name)) as connection:
            rows = connection.execute("SELECT count(*), count(DISTINCT id) FROM txs").fetchone()
        assert rows is not None and rows[0] == rows[1] > 0
        if rounds > 1:
            fail_over(second, name, url, where, rounds - 1, chance)
