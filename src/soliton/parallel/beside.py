"""Signatures of many blocks, checked by a process beside while this one applies the blocks.

Threads would hand the interpreter to and fro with each signature. What is to be checked goes to the
process in groups, two of them at a time; when nothing is left to be applied, this process takes
groups from the other end, until both meet. What the process has not answered, because it was
killed or hangs, is checked here. It is started when there are so many at once that this pays.

What lives here: the process's life, the groups. What does not: whether a signature is valid
(``soliton.crypto.curve25519``), checks of single transactions (``signatures``).
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections import deque
from collections.abc import Sequence
from typing import IO, Final

from soliton.crypto.curve25519 import SignedMessage, verify
from soliton.parallel._checker import COMMAND, READY, request
from soliton.parallel.threads import cores, verify_many

GROUP: Final = 256
LEAST: Final = 4_096
"""So many wait before a process is started: that costs as much as a thousand."""
ON_THEIR_WAY: Final = 2
"""Groups: so the process has the next one when it has answered."""
ANSWER_SECONDS: Final = 30.0
"""A group takes a hundredth of a second; a process that says nothing for so long hangs."""


class _Group:
    """Some of what is to be checked; no verdicts from a process that was lost."""

    def __init__(self, messages: list[SignedMessage]) -> None:
        self.messages = messages
        self.verdicts: list[bool] | None = None
        self.answered = threading.Event()

    def check(self) -> list[bool]:
        """The verdicts, made here unless they are there."""
        if self.verdicts is None:
            self.verdicts = [verify(*each) for each in self.messages]
        return self.verdicts


class Beside:
    """Use from one thread, and ``close`` at the end."""

    def __init__(self) -> None:
        self._gathered: list[SignedMessage] = []
        self._groups: list[_Group] = []
        self._waiting: deque[_Group] = deque()
        self._changed = threading.Condition()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_lost = cores() < 2
        self._closed = False

    def add(self, messages: Sequence[SignedMessage]) -> None:
        """Have these checked, behind all others."""
        self._gathered += messages
        if self._process is None and (self._is_lost or len(self._gathered) < LEAST):
            return
        if self._process is None:
            self._start()
        while len(self._gathered) >= GROUP and not self._is_lost:
            group = _Group(self._gathered[:GROUP])
            del self._gathered[:GROUP]
            self._groups.append(group)
            with self._changed:
                self._waiting.append(group)
                self._changed.notify()

    def verdicts(self) -> list[bool]:
        """Whether each signature is valid that was added since this was asked last, in order."""
        rest, groups = self._gathered, self._groups
        self._gathered, self._groups = [], []
        with contextlib.suppress(IndexError):
            while True:
                self._waiting.pop().check()
        last = verify_many(rest)
        for group in groups:
            if group.verdicts is None and not self._wait(group):
                self.close()
        return [verdict for group in groups for verdict in group.check()] + last

    def _wait(self, group: _Group) -> bool:
        return self._is_lost or group.answered.wait(ANSWER_SECONDS)

    def close(self) -> None:
        """End the process."""
        with self._changed:
            self._closed = self._is_lost = True
            self._changed.notify()
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _start(self) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603
                COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError:
            self._is_lost = True
            return
        given, taken = self._process.stdin, self._process.stdout
        assert given is not None
        assert taken is not None
        work = threading.Thread(target=self._hand_over, args=(given, taken), daemon=True)
        work.start()

    # --- the thread -------------------------------------------------------------------------------

    def _hand_over(self, given: IO[bytes], taken: IO[bytes]) -> None:
        sent: deque[_Group] = deque()
        try:
            with given, taken:
                if taken.read(1) != bytes((READY,)):
                    raise EOFError
                while (group := self._next(wait=not sent)) is not None or sent:
                    if group is not None:
                        sent.append(group)
                        given.write(request(group.messages))
                        given.flush()
                    if group is None or len(sent) == ON_THEIR_WAY:
                        self._read(taken, sent)
        except (OSError, EOFError):
            pass
        finally:
            self._is_lost = True
            for group in sent:
                group.answered.set()

    def _next(self, *, wait: bool) -> _Group | None:
        """The group that waits longest; ``None`` when there is none now, or never will be."""
        with self._changed:
            while wait and not self._waiting and not self._closed:
                self._changed.wait()
            try:
                return None if self._closed else self._waiting.popleft()
            except IndexError:
                return None

    @staticmethod
    def _read(taken: IO[bytes], sent: deque[_Group]) -> None:
        count = len(sent[0].messages)
        answer = taken.read(count)
        if len(answer) != count:
            raise EOFError
        group = sent.popleft()
        group.verdicts = list(map(bool, answer))
        group.answered.set()
