"""A pool of worker processes that are killed when a request takes too long.

A thread cannot be killed, and C code or a regular expression cannot be interrupted. A process can:
whatever a request makes it do, it is killed at its deadline, its memory is limited, and the next
request gets a new process.

A few processes are started on demand and reused. Each ends with its parent, even if that is killed:
it sees the end of its input, and it has set an alarm.

What lives here: their lifecycle, and sending requests from blocking threads. What does not: the
requests (the creator of a ``Killable`` names the worker's module), and permissions.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

from soliton.errors import EnvironmentProblem, InvariantBroken
from soliton.parallel._served import ANSWER, QUESTION, Kind

MAX_PROCESSES: Final = 2
"""One more than may be busy with a heavy request, as with threads."""
MAX_ANSWER_BYTES: Final = 64 * 1024**2
START_SECONDS: Final = 30.0
"""The time allowed for the start of a process, in addition to its first request's."""
_NICENESS: Final = 5
"""Lower priority than the event loop, also with fewer cores than processes: a third of its share. A
lower one would starve beside other programs.
"""
_POLL_SECONDS: Final = 0.05
"""How often a waiting thread calls ``watch``."""
_PIECE_BYTES: Final = 256 * 1024

Watch = Callable[[], None]
"""Raises when the client no longer waits for an answer."""


class ProcessLost(EnvironmentProblem):
    """The process ended before it answered, or could not be started."""


class MemoryExceeded(EnvironmentProblem):
    """The request has exceeded the memory limit."""


class Killable:
    """A pool of up to ``count`` processes that run a module; thread-safe."""

    def __init__(self, module: str, *, count: int = MAX_PROCESSES) -> None:
        self._command = (sys.executable, "-P", "-m", module)
        self._count = count
        # Occupied slots, including processes being started.
        self._running = 0
        self._all: set[_Process] = set()
        self._idle: list[_Process] = []
        self._changed = threading.Condition()

    def process_ids(self) -> list[int]:
        """Return the ids of idle processes."""
        with self._changed:
            return [process.id for process in self._idle]

    def close(self) -> None:
        """Kill all processes. Later requests start new ones."""
        with self._changed:
            processes, self._idle = [*self._all], []
        for process in processes:
            process.kill()

    def ask(
        self, question: bytes, seconds: float, watch: Watch, charge: Callable[[float], None]
    ) -> bytes:
        """Return the answer. ``charge`` is called once with the seconds of work that it took.

        Raises what ``watch`` raises, ``ProcessLost`` or ``MemoryExceeded``, after killing the
        process.
        """
        process = self._take(watch)
        started, spent = time.monotonic(), None
        may_stay = False
        try:
            kind, ends, answer, spent = process.ask(question, seconds, watch)
            may_stay = not ends
        finally:
            charge(time.monotonic() - started if spent is None else spent)
            self._give_back(process, may_stay=may_stay)
        if kind is Kind.NO_MEMORY:
            raise MemoryExceeded("this takes more memory than there is for it")
        if kind is Kind.FAULT:
            raise InvariantBroken(answer.decode(errors="replace"))
        return answer

    def _take(self, watch: Watch) -> _Process:
        """Return an idle process, or start one, or wait for one."""
        with self._changed:
            while True:
                while self._idle:
                    process = self._idle.pop()
                    if process.is_alive():
                        return process
                    self._all.discard(process)
                    self._running -= 1
                    process.kill()
                if self._running < self._count:
                    self._running += 1
                    break
                self._changed.wait(_POLL_SECONDS)
                watch()
        try:
            process = _Process(self._command)
        except BaseException:
            self._leave(None)
            raise
        with self._changed:
            self._all.add(process)
        return process

    def _give_back(self, process: _Process, *, may_stay: bool) -> None:
        if may_stay and process.is_alive():
            with self._changed:
                self._idle.append(process)
                self._changed.notify()
        else:
            process.kill()
            self._leave(process)

    def _leave(self, process: _Process | None) -> None:
        with self._changed:
            if process is not None:
                self._all.discard(process)
            self._running -= 1
            self._changed.notify()


class _Process:
    """A process and the socket to it."""

    def __init__(self, command: tuple[str, ...]) -> None:
        try:
            self._socket, theirs = socket.socketpair()
        except OSError as error:
            raise ProcessLost(f"{command[0]}: {error}") from error
        self._process: subprocess.Popen[bytes]
        self._is_new = True
        try:
            with theirs:
                end = theirs.fileno()
                # Ctrl-C goes to all processes of a terminal, maybe before this one ignores it.
                self._process = subprocess.Popen(  # noqa: S603
                    command, stdin=end, stdout=end, start_new_session=True
                )
                # At once, since its imports take longer than most answers.
                with contextlib.suppress(OSError):
                    own = os.getpriority(os.PRIO_PROCESS, 0)
                    os.setpriority(os.PRIO_PROCESS, self._process.pid, own + _NICENESS)
        except OSError as error:
            self._socket.close()
            raise ProcessLost(f"{command[0]}: {error}") from error
        self._socket.settimeout(_POLL_SECONDS)

    @property
    def id(self) -> int:
        return self._process.pid

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, question: bytes, seconds: float, watch: Watch) -> tuple[Kind, bool, bytes, float]:
        """Return the kind of the answer, whether the process exits after it, the answer, and the
        seconds that it took.
        """
        last = time.monotonic() + seconds + START_SECONDS * self._is_new
        self._is_new = False

        def poll() -> None:
            watch()
            if time.monotonic() > last:
                raise ProcessLost("the process does not answer")

        milliseconds = int(seconds * 1_000)
        self._send(QUESTION.pack(len(question), milliseconds) + question, poll)
        length, kind, ends, micros = ANSWER.unpack(self._receive(ANSWER.size, poll))
        if length > MAX_ANSWER_BYTES:
            raise ProcessLost(f"an answer of {length} bytes")
        return Kind(kind), ends, self._receive(length, poll), micros / 1e6

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(START_SECONDS)

    def _send(self, data: bytes, poll: Watch) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self._socket.send(rest[:_PIECE_BYTES]) :]
            except TimeoutError:
                poll()
            except OSError as error:
                raise ProcessLost(os.strerror(error.errno or 0)) from error

    def _receive(self, size: int, poll: Watch) -> bytes:
        found = bytearray()
        while len(found) < size:
            try:
                piece = self._socket.recv(min(size - len(found), _PIECE_BYTES))
            except TimeoutError:
                poll()
                continue
            except OSError as error:
                raise ProcessLost(os.strerror(error.errno or 0)) from error
            if not piece:
                raise ProcessLost("the process has ended")
            found += piece
        return bytes(found)
