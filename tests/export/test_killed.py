"""Nothing is lost and nothing doubled, whoever is killed: the export, the database, the node.

Real processes, ended with ``SIGKILL`` in the middle of their work again and again; in the end every
row of the database is compared with the chain.
"""

from __future__ import annotations

import contextlib
import random
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.amounts import if_long, times
from tests.cli.here import run_here
from tests.e2e.programs import (
    API_KEY,
    Program,
    call,
    eventually,
    height,
    signed_transfer,
)
from tests.export.postgres import Server, server
from tests.ports import free_port

ROUNDS = times(6, 50)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def durable() -> Iterator[Server]:
    """A server that keeps what it has confirmed."""
    with server("max_connections=20") as running:
        yield running


class World:
    """A devnet and its export, each of which may be killed at any moment."""

    def __init__(self, directory: Path, postgres: Server, *, over_http: bool) -> None:
        self.directory = directory
        self.postgres = postgres
        self.dsn = postgres.database()
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.over_http = over_http
        self.node = self.start_node()
        self.export = self.start_export()

    def start_node(self) -> Program:
        options = ("--signer-port", 0, "--matcher-port", 0, "--heartbeat", 0.3)
        arguments = ("devnet", "--port", self.port, "--data-dir", self.directory, *options)
        program = Program(arguments, {})
        program.wait_for("Ready.")
        return program

    def start_export(self) -> Program:
        where = ("--from-node", self.url) if self.over_http else ("--data-dir", self.directory)
        return Program(("export", "postgres", "--dsn", self.dsn, *where), {})

    def kill_node(self) -> None:
        self.node.kill()
        self.node.close()
        self.node = self.start_node()

    def kill_export(self) -> None:
        self.export.kill()
        self.export.close()
        self.export = self.start_export()

    def kill_database(self) -> None:
        self.postgres.kill()
        self.postgres.start("max_connections=20")

    def roll_back(self) -> None:
        top = height(self.url)
        if top > 3:
            body = {"rollbackTo": top - 2, "returnTransactionsToUtx": False}
            call(f"{self.url}/debug/rollback", body, key=API_KEY)

    def close(self) -> None:
        self.export.close()
        self.node.close()


@contextlib.contextmanager
def sending(world: World, chance: random.Random) -> Iterator[None]:
    """Transactions, as fast as the node takes them, until the end."""
    stopped = threading.Event()

    def send() -> None:
        accounts: list[str] = []
        while not stopped.is_set():
            with contextlib.suppress(OSError, AssertionError, ValueError, KeyError):
                if not accounts:
                    accounts = call(f"{world.url}/addresses").json()
                body: Any = signed_transfer(
                    world.url, accounts[0], accounts[-1], chance.randint(1, 10**6)
                )
                call(f"{world.url}/transactions/broadcast", body)
            stopped.wait(0.02)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def last_height(dsn: str) -> int:
    """Where the database is; 0 while it does not say."""
    try:
        with psycopg.connect(dsn, connect_timeout=5) as connection:
            found = connection.execute("SELECT max(height) FROM blocks_microblocks").fetchone()
    except psycopg.Error:
        return 0
    return 0 if found is None or found[0] is None else int(found[0])


@pytest.mark.parametrize("over_http", [False, if_long(True)])
def test_nothing_is_lost_and_nothing_doubled(
    durable: Server, tmp_path: Path, over_http: bool
) -> None:
    chance = random.Random(ROUNDS + over_http)
    world = World(tmp_path, durable, over_http=over_http)
    kills: list[Callable[[], None]] = [
        *(world.kill_export, world.kill_database, world.kill_node, world.kill_export),
        world.roll_back,
    ]
    try:
        with sending(world, chance):
            for _ in range(ROUNDS):
                before = last_height(world.dsn)
                eventually(
                    lambda seen=before: last_height(world.dsn) > seen,  # type: ignore[misc]
                    "a further block in the database",
                )
                chance.choice(kills)()
        # Two blocks above both ends: a chain that has just gone back was heard of.
        ends = max(last_height(world.dsn), height(world.url))
        eventually(lambda: last_height(world.dsn) > ends + 1, "the database where the chain is")
        # One that has only just begun would be ended before it listens to signals.
        world.export.wait_for("caught up with the chain")
        world.export.send(signal.SIGTERM)
        assert world.export.wait() == 0, world.export.output
    finally:
        world.close()
    done = run_here("verify", "postgres", "--dsn", world.dsn, "--data-dir", world.directory)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the database holds what the chain does" in done.stdout
    with psycopg.connect(world.dsn) as connection:
        count = connection.execute("SELECT count(*), count(DISTINCT id) FROM txs_4").fetchone()
    assert count is not None and count[0] == count[1] > 0
