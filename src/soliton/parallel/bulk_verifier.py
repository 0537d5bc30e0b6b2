"""Signatures of many blocks, checked by a process beside while this one applies the blocks.

Threads would hand the interpreter to and fro with each signature. What is to be checked goes to the
process in groups, two of them at a time; when nothing is left to be applied, this process takes
groups from the other end, until both meet. What the process has not answered, because it was
killed or hangs, is checked here. It is started when so many were asked for that this pays.

What lives here: the process's life, the groups. What does not: whether a signature is valid
(``soliton.crypto.curve25519``), checks of single transactions (``signatures``).
"""

from __future__ import annotations

import subprocess
import threading
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future
from typing import IO, Final

from soliton.crypto.curve25519 import SignedMessage, verify
from soliton.parallel._checker import COMMAND, READY, request
from soliton.parallel.threads import cores, verify_many

GROUP: Final = 256
LAST_GROUPS: Final = 32
"""So large are the groups of the rest, which both processes share."""
MIN_SIGNATURES: Final = 4_096
"""So many are asked for before a process is started: that costs as much as a thousand."""
IN_FLIGHT: Final = 2
"""Groups: so the process has the next one when it has answered."""
ANSWER_SECONDS: Final = 30.0
"""A group takes a hundredth of a second; a process that says nothing for so long hangs."""

Checking = Generator[Future[None] | None, None, list[bool]]
"""Verdicts that come in steps; one that gives a future goes on when that is done."""


class _Group:
    """Some of what is to be checked; no verdicts from a process that was lost."""

    def __init__(self, messages: list[SignedMessage]) -> None:
        self.messages = messages
        self.verdicts: list[bool] | None = None
        self.is_sent = False
        self.answered: Future[None] = Future()

    def check(self) -> list[bool]:
        """The verdicts, made here unless they are there."""
        if self.verdicts is None:
            self.verdicts = [verify(*each) for each in self.messages]
        return self.verdicts


class BulkVerifier:
    """Use from one thread, and ``close`` at the end."""

    def __init__(self, *, starts: bool = True) -> None:
        """Without a process, if it shall not start one."""
        self._asked = 0
        self._queue: deque[_Group] = deque()
        self._changed = threading.Condition()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_lost = not starts or cores() < 2
        self._closed = False
        self.is_ready = False
        """Whether the process answers; its start takes longer than many checks."""

    def batch(self) -> Batch:
        """Signatures whose verdicts are wanted together."""
        return Batch(self)

    def close(self) -> None:
        """End the process; what is asked for later is checked here."""
        with self._changed:
            self._closed = self._is_lost = True
            self._changed.notify()
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def begin(self) -> None:
        """Start the process now: more than ``LEAST`` will be asked for."""
        if self._process is None and not self._is_lost:
            self._start()

    def takes(self, more: int) -> bool:
        """Whether there is a process, where so many more are asked for."""
        self._asked += more
        if self._asked >= MIN_SIGNATURES:
            self.begin()
        return not self._is_lost and self._process is not None

    def put(self, group: _Group) -> None:
        """Have the process check this, behind all others."""
        with self._changed:
            if self._is_lost:
                group.answered.set_result(None)
                return
            group.is_sent = True
            self._queue.append(group)
            self._changed.notify()

    def pop_last(self) -> _Group | None:
        """What the process would get last."""
        try:
            return self._queue.pop()
        except IndexError:
            return None

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
        work = threading.Thread(target=self._run, args=(given, taken), daemon=True)
        work.start()

    # --- the thread -------------------------------------------------------------------------------

    def _run(self, given: IO[bytes], taken: IO[bytes]) -> None:
        sent: deque[_Group] = deque()
        try:
            with given, taken:
                if taken.read(1) != bytes((READY,)):
                    raise EOFError
                self.is_ready = True
                while (group := self._next(wait=not sent)) is not None or sent:
                    if group is not None:
                        sent.append(group)
                        given.write(request(group.messages))
                        given.flush()
                    if group is None or len(sent) == IN_FLIGHT:
                        self._read(taken, sent)
        except (OSError, EOFError):
            pass
        finally:
            with self._changed:
                self._is_lost, self.is_ready = True, False
                sent += self._queue
                self._queue.clear()
            for group in sent:
                group.answered.set_result(None)

    def _next(self, *, wait: bool) -> _Group | None:
        """The group that waits longest; ``None`` when there is none now, or never will be."""
        with self._changed:
            while wait and not self._queue and not self._closed:
                self._changed.wait()
            try:
                return None if self._closed else self._queue.popleft()
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
        group.answered.set_result(None)


class Batch:
    """Some signatures; whoever has lost interest just lets go of it."""

    def __init__(self, verifier: BulkVerifier) -> None:
        self._verifier = verifier
        self._gathered: list[SignedMessage] = []
        self._groups: list[_Group] = []

    def gather(self, messages: Sequence[SignedMessage]) -> None:
        """Have these checked with all others that are gathered, when there is a ``hurry``."""
        self._gathered += messages

    def add(self, messages: Sequence[SignedMessage]) -> None:
        """Have these checked, behind all others."""
        self._gathered += messages
        if self._verifier.takes(len(messages)):
            while len(self._gathered) >= GROUP:
                self._put(GROUP)

    def _put(self, count: int, *, aside: bool = False) -> None:
        group = _Group(self._gathered[:count])
        del self._gathered[:count]
        self._groups.append(group)
        if not aside:
            self._verifier.put(group)

    def hurry(self) -> None:
        """Have all checked in small groups, the first ones first; ask ``is_valid`` for each then,
        in place of ``checking``.
        """
        while self._gathered:
            self._put(LAST_GROUPS, aside=not self._verifier.is_ready)

    def is_valid(self, place: int) -> Generator[Future[None] | None, None, bool]:
        """Whether the one at a place is valid."""
        group = self._groups[place // LAST_GROUPS]
        if group.verdicts is None and group.is_sent:
            yield from self._wait_for(group)
        return group.check()[place % LAST_GROUPS]

    def checking(self) -> Checking:
        """Whether each is valid, in their order; to be asked once."""
        if self._verifier.takes(0):
            while self._gathered:
                self._put(LAST_GROUPS)
        while (group := self._verifier.pop_last()) is not None:
            group.check()
            yield None
        verdicts: list[bool] = []
        for group in self._groups:
            if group.verdicts is None:
                yield from self._wait_for(group)
            verdicts += group.check()
        for start in range(0, len(self._gathered), GROUP):
            verdicts += verify_many(self._gathered[start : start + GROUP])
            yield None
        return verdicts

    def _wait_for(self, group: _Group) -> Generator[Future[None], None, None]:
        watch = threading.Timer(ANSWER_SECONDS, self._verifier.close)
        watch.daemon = True
        watch.start()
        try:
            yield group.answered
        finally:
            watch.cancel()

    def verdicts(self) -> list[bool]:
        """The same for those who have nothing else to do meanwhile."""
        checking = self.checking()
        while True:
            try:
                wanted = next(checking)
            except StopIteration as end:
                verdicts: list[bool] = end.value
                return verdicts
            if wanted is not None:
                wanted.result()
