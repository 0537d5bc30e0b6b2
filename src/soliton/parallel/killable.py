"""Processes that answer one question after the other, and are killed when that takes too long.

A thread cannot be ended from outside, and what runs in C or in a regular expression asks nobody
whether it may go on. A process can: whatever a stranger's text makes it do, it ends at its
deadline, it has so much memory and no more, and the next question gets a new one.

A few are started when they are asked for, and wait for the next question. Each ends when its parent
does, also if that is killed: its input ends then, and it sets itself an alarm.

What lives here: their lives, and the way of a question there and back, for threads that wait. What
does not: what is asked (whoever makes a ``Killable`` names the program), and who may ask.
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
"""One more than may be stuck with something heavy, as with threads."""
MAX_ANSWER_BYTES: Final = 64 * 1024**2
START_SECONDS: Final = 30.0
"""What a new process gets for its start, besides the time for its question."""
_NICENESS: Final = 10
"""Who answers others comes first, also where there are fewer cores than processes."""
_LOOK_SECONDS: Final = 0.05
"""Who waits for a process looks so often whether somebody still waits for the answer."""
_PIECE_BYTES: Final = 256 * 1024

Watch = Callable[[], None]
"""Raises when nobody waits for an answer any more."""


class ProcessLost(EnvironmentProblem):
    """The process ended before it answered, or could not be started."""


class MemoryExceeded(EnvironmentProblem):
    """The answer would take more memory than a process has."""


class Killable:
    """Up to ``count`` processes that run a module; use it from any threads."""

    def __init__(self, module: str, *, count: int = MAX_PROCESSES) -> None:
        self._command = (sys.executable, "-P", "-m", module)
        self._count = count
        # Places that are taken, and the processes that are there.
        self._running = 0
        self._all: set[_Process] = set()
        self._idle: list[_Process] = []
        self._changed = threading.Condition()

    def process_ids(self) -> list[int]:
        """Those that wait for a question."""
        with self._changed:
            return [process.id for process in self._idle]

    def close(self) -> None:
        """End all of them, whatever they do. Who asks again gets new ones."""
        with self._changed:
            processes, self._idle = [*self._all], []
        for process in processes:
            process.kill()

    def ask(
        self, question: bytes, seconds: float, watch: Watch, charge: Callable[[float], None]
    ) -> bytes:
        """The answer. ``charge`` is told once how many seconds of work it took, if any.

        Raises what ``watch`` raises, ``ProcessLost`` or ``MemoryExceeded``; the process that did
        not answer is killed then.
        """
        process = self._take(watch)
        started, spent = time.monotonic(), None
        may_stay = False
        try:
            kind, ends, said, spent = process.ask(question, seconds, watch)
            may_stay = not ends
        finally:
            charge(time.monotonic() - started if spent is None else spent)
            self._give_back(process, may_stay=may_stay)
        if kind is Kind.NO_MEMORY:
            raise MemoryExceeded("this takes more memory than there is for it")
        if kind is Kind.FAULT:
            raise InvariantBroken(said.decode(errors="replace"))
        return said

    def _take(self, watch: Watch) -> _Process:
        """A process that waits, or a new one where there is room for it."""
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
                self._changed.wait(_LOOK_SECONDS)
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
    """One process and the socket to it."""

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
                # Ctrl-C reaches all of a terminal, maybe before this one can ignore it.
                self._process = subprocess.Popen(  # noqa: S603
                    command, stdin=end, stdout=end, start_new_session=True
                )
                # At once: what it does first, importing, takes longer than most answers.
                with contextlib.suppress(OSError):
                    own = os.getpriority(os.PRIO_PROCESS, 0)
                    os.setpriority(os.PRIO_PROCESS, self._process.pid, own + _NICENESS)
        except OSError as error:
            self._socket.close()
            raise ProcessLost(f"{command[0]}: {error}") from error
        self._socket.settimeout(_LOOK_SECONDS)

    @property
    def id(self) -> int:
        return self._process.pid

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, question: bytes, seconds: float, watch: Watch) -> tuple[Kind, bool, bytes, float]:
        """The kind of an answer, whether the process ends behind it, the answer itself, and the
        seconds that it took.
        """
        last = time.monotonic() + seconds + START_SECONDS * self._is_new
        self._is_new = False

        def look() -> None:
            watch()
            if time.monotonic() > last:
                raise ProcessLost("the process does not answer")

        milliseconds = int(seconds * 1_000)
        self._send(QUESTION.pack(len(question), milliseconds) + question, look)
        length, kind, ends, micros = ANSWER.unpack(self._receive(ANSWER.size, look))
        if length > MAX_ANSWER_BYTES:
            raise ProcessLost(f"an answer of {length} bytes")
        return Kind(kind), ends, self._receive(length, look), micros / 1e6

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(START_SECONDS)

    def _send(self, data: bytes, look: Watch) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self._socket.send(rest[:_PIECE_BYTES]) :]
            except TimeoutError:
                look()
            except OSError as error:
                raise ProcessLost(os.strerror(error.errno or 0)) from error

    def _receive(self, size: int, look: Watch) -> bytes:
        found = bytearray()
        while len(found) < size:
            try:
                piece = self._socket.recv(min(size - len(found), _PIECE_BYTES))
            except TimeoutError:
                look()
                continue
            except OSError as error:
                raise ProcessLost(os.strerror(error.errno or 0)) from error
            if not piece:
                raise ProcessLost("the process has ended")
            found += piece
        return bytes(found)
