"""Forks of a process that has imported the program: a start without half a second of imports.

The server is a script of its own. It gets requests (arguments, environment, directory, files) over
a socket and forks for each; the fork runs the program's entry point like a new process: it has its
own id, files, signals and exit code. What a fork does not show is the start of the interpreter, so
``make test-all`` starts every program anew, and so do tests that are about the start.

What lives here: the server, and ``Fork``, which stands in for ``subprocess.Popen``.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

PROGRAM: Final = Path(sys.executable).parent / "soliton"
IMPORTED: Final = (
    "soliton.cli.entry",
    "soliton.cli.main",
    "soliton.cli.chain_commands",
    "soliton.cli.matcher_run",
    "soliton.cli.rest_api",
    "soliton.cli.run",
    "soliton.cli.signer_commands",
    "soliton.cli.signer_doors",
    "soliton.cli.verify",
    "soliton.api.app",
    "soliton.devnet.main",
    "soliton.devnet.matcher",
    "soliton.devnet.matcher_journal",
    "soliton.devnet.matcher_node",
    "soliton.matcher.run",
    "soliton.signer.app",
    "uvloop",
)
"""What the usual commands import when they run."""
READ_AT_START: Final = ("PYTHON", "LD_", "LC_", "LANG", "TZ", "MALLOC_", "FAKETIME")
"""Variables that only a new process reads."""
_MESSAGE_BYTES: Final = 200_000
_FILES: Final = 4
_INT: Final = 4


def is_read_at_start(environment: Mapping[str, str]) -> bool:
    """Whether a program with these variables has to be started anew."""
    return any(name.startswith(READ_AT_START) for name in environment)


class Fork:
    """A running program, with those parts of ``subprocess.Popen`` that tests use."""

    def __init__(
        self,
        args: Sequence[str],
        *,
        env: Mapping[str, str],
        apart: bool = False,
        start_new_session: bool = False,
    ) -> None:
        """Standard input is empty. ``apart`` keeps errors apart from the output."""
        self.args = [*args]
        self.returncode: int | None = None
        state, theirs = os.pipe()
        output, written = os.pipe()
        errors, complained = os.pipe() if apart else (-1, os.dup(written))
        nothing = os.open(os.devnull, os.O_RDONLY)
        request = json.dumps([self.args, dict(env), str(Path.cwd()), start_new_session])
        files = (nothing, written, complained, theirs)
        try:
            socket.send_fds(_server(), [request.encode()], files)
        finally:
            for each in files:
                os.close(each)
        self._state = state
        self.stdout: IO[str] = os.fdopen(output, encoding="utf-8")
        self.stderr = os.fdopen(errors, encoding="utf-8") if apart else None
        self.pid = self._number()

    def _number(self) -> int:
        data = os.read(self._state, _INT)
        assert len(data) == _INT, "the fork server has ended"
        return int.from_bytes(data, "big", signed=True)

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._state], [], [], timeout)[0]:
            self.returncode = self._number()
            os.close(self._state)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run_forked(
    args: Sequence[str], env: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """As ``subprocess.run`` with output and errors apart."""
    process = Fork(args, env=env, apart=True)
    assert process.stderr is not None
    parts: dict[IO[str], list[bytes]] = {process.stdout: [], process.stderr: []}
    limit = time.monotonic() + timeout
    with process.stdout, process.stderr, selectors.DefaultSelector() as selector:
        for file in parts:
            selector.register(file, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(limit - time.monotonic())
            if not ready:
                process.kill()
                raise subprocess.TimeoutExpired(process.args, timeout)
            for key, _ in ready:
                data = os.read(key.fd, 65_536)
                if data:
                    parts[key.fileobj].append(data)  # type: ignore[index]
                else:
                    selector.unregister(key.fileobj)
    output, errors = (
        b"".join(each).decode().replace("\r\n", "\n").replace("\r", "\n") for each in parts.values()
    )
    code = process.wait(max(0, limit - time.monotonic()))
    return subprocess.CompletedProcess(process.args, code, output, errors)


@functools.cache
def _server() -> socket.socket:
    """The connection to the server, which is started by the first who needs it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            pass_fds=[theirs.fileno()],
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


# --- the server -----------------------------------------------------------------------------------


def _main() -> None:
    """The server; in each fork, the program."""
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        # As of the program's script, which processes of ``multiprocessing`` run as well.
        sys.path[0] = str(PROGRAM.parent)
        globals()["__file__"] = str(PROGRAM)
        for name in IMPORTED:
            importlib.import_module(name)
        gc.collect()
        gc.freeze()
        sys.argv = _serve(requests)
    from soliton.cli.entry import main

    main()


def _serve(requests: socket.socket) -> list[str]:
    """Serve until the end of requests; in a fork, return the program's arguments."""
    awake, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    running: dict[int, int] = {}
    while True:
        ready = select.select([requests.fileno(), awake], [], [])[0]
        if awake in ready:
            os.read(awake, 1_000)
            _reap(running)
        if requests.fileno() not in ready:
            continue
        message, files, _, _ = socket.recv_fds(requests, _MESSAGE_BYTES, _FILES)
        if not message:
            sys.exit()
        *streams, state = files
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            for number, each in enumerate(streams):
                os.dup2(each, number)
            for each in (*files, *running.values(), awake, wake):
                os.close(each)
            return _taken_over(*json.loads(message))
        for each in streams:
            os.close(each)
        running[pid] = state
        _tell(state, pid)


def _reap(running: dict[int, int]) -> None:
    """Tell the exit codes of those that have ended."""
    for pid, state in [*running.items()]:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended == pid:
            _tell(state, os.waitstatus_to_exitcode(status))
            os.close(state)
            del running[pid]


def _tell(state: int, number: int) -> None:
    # Who has asked may be gone.
    with contextlib.suppress(BrokenPipeError):
        os.write(state, number.to_bytes(_INT, "big", signed=True))


def _taken_over(
    arguments: list[str], environment: dict[str, str], directory: str, is_apart: bool
) -> list[str]:
    """Arguments, after the fork has got what a new process inherits."""
    if is_apart:
        os.setsid()
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    return arguments


if __name__ == "__main__":
    _main()
