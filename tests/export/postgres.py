"""A PostgreSQL server for tests: the installed program, in a directory of its own, on a socket.

What lives here: starting, ending and killing it, databases. What does not: any check. PostgreSQL
refuses to run as root, so it runs as ``postgres`` or ``nobody`` there.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest

WAIT_SECONDS = 60.0
_PLACES = "/usr/lib/postgresql"
_names = count(1)


def find_program(name: str) -> str | None:
    """A program of the server: on the path, or where Debian's package has it."""
    found = shutil.which(name)
    if found is None:
        places = sorted(Path(_PLACES).glob(f"*/bin/{name}"))
        found = str(places[-1]) if places else None
    return found


def _user() -> str | None:
    """Whom the server runs as; ``None`` for the user of the tests."""
    if os.geteuid() != 0:
        return None
    names = {each.pw_name for each in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in names), None)


class Server:
    """A server that keeps its data in ``directory``."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.user = _user()
        self.process: subprocess.Popen[bytes] | None = None
        if self.user is not None:
            shutil.chown(directory, self.user)

    def make(self) -> None:
        """An empty database cluster."""
        options = ("-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale", "-N")
        self.run("initdb", "-D", self.directory / "data", *options)

    def run(self, name: str, *arguments: object) -> None:
        """A program of the server, as its user."""
        program = find_program(name)
        assert program is not None, name
        done = subprocess.run(
            [program, *map(str, arguments)],
            user=self.user,
            extra_groups=[] if self.user else None,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self, *settings: str) -> None:
        """Serve on a socket in the directory; returns when it answers."""
        limit = time.monotonic() + WAIT_SECONDS
        self._launch(settings)
        while not self._answers():
            assert time.monotonic() < limit, "PostgreSQL does not start"
            assert self.process is not None
            if self.process.poll() is not None:
                # Processes of one that was killed are still there, and hold its memory.
                self._launch(settings)
            time.sleep(0.05)

    def _launch(self, settings: tuple[str, ...]) -> None:
        program = find_program("postgres")
        assert program is not None
        options = [each for setting in ("listen_addresses=", *settings) for each in ("-c", setting)]
        self.process = subprocess.Popen(
            [
                *(program, "-D", str(self.directory / "data"), "-k", str(self.directory)),
                *options,
            ],
            user=self.user,
            extra_groups=[] if self.user else None,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _answers(self) -> bool:
        try:
            with psycopg.connect(self.dsn("postgres"), connect_timeout=5):
                return True
        except psycopg.OperationalError:
            return False

    def kill(self) -> None:
        """End it without a chance to write anything."""
        assert self.process is not None
        # Its other processes have sessions of their own; they end when they notice.
        self.process.kill()
        self.process.wait(WAIT_SECONDS)

    def close(self) -> None:
        """End it."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(WAIT_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()

    def dsn(self, name: str) -> str:
        """How a database is reached."""
        return f"host={self.directory} user=postgres dbname={name}"

    def database(self, template: str = "template1") -> str:
        """A new database, a copy of another that nobody uses; how it is reached."""
        name = f"test_{next(_names)}"
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        return self.dsn(name)


@contextlib.contextmanager
def server(*settings: str) -> Iterator[Server]:
    """A server that runs, ended and removed afterwards; skips where none is installed."""
    if find_program("initdb") is None or find_program("postgres") is None:
        pytest.skip("no PostgreSQL server is installed")
    # The name of a socket must be short, shorter than pytest's directories are.
    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as name:
        made = Server(Path(name))
        try:
            made.make()
            made.start(*(settings or ("fsync=off", "max_wal_size=256MB")))
            yield made
        finally:
            made.close()
