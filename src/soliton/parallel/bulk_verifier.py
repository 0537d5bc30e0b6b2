"""Verifies the signatures of many blocks in a worker process while this one applies the blocks.

Threads would contend for the interpreter lock with each signature. Signatures are sent to the
worker in groups, two at a time. When this process has nothing else to do, it takes groups from the
other end of the queue, until both meet. Groups that the worker has not answered, because it was
killed or hangs, are verified here. The worker is started once there are enough signatures.

What lives here: the worker's lifecycle, the groups. What does not: the validity of a signature
(``soliton.crypto.signatures``), signatures of single transactions (``signatures``).
"""

from __future__ import annotations

import subprocess
import threading
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future
from typing import IO, Final

from soliton.crypto.curve25519 import SignedMessage
from soliton.crypto.signatures import count_within, verify, weight
from soliton.parallel._checker import COMMAND, READY, request
from soliton.parallel.threads import cores, verify_many

GROUP: Final = 256
"""The weight of a group (``crypto.signatures.weight``)."""
LAST_GROUPS: Final = 32
"""The weight of the last groups, which both processes share."""
MIN_SIGNATURES: Final = 4_096
"""The weight submitted before a process is started, which costs as much as a thousand."""
IN_FLIGHT: Final = 2
"""Groups sent at once, so that the process has the next one when it has answered."""
ANSWER_SECONDS: Final = 30.0
"""The timeout of a group, which takes a hundredth of a second."""

Checking = Generator[Future[None] | None, None, list[bool]]
"""Verification in steps; when a step yields a future, the next step waits for it."""


class _Group:
    """A group of signatures; ``answered`` without verdicts if the process was lost."""

    def __init__(self, messages: list[SignedMessage]) -> None:
        self.messages = messages
        self.verdicts: list[bool] | None = None
        self.is_sent = False
        self.answered: Future[None] = Future()

    def check(self) -> list[bool]:
        """Return the verdicts, verifying here unless the process has answered."""
        if self.verdicts is None:
            self.verdicts = [verify(*each) for each in self.messages]
        return self.verdicts


class BulkVerifier:
    """Use from one thread, and ``close`` at the end."""

    def __init__(self, *, starts: bool = True) -> None:
        """``starts`` is false to never start a process."""
        self._asked = 0
        self._queue: deque[_Group] = deque()
        self._changed = threading.Condition()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_lost = not starts or cores() < 2
        self._closed = False
        self.is_ready = False
        """Whether the process has started, which takes longer than many verifications."""

    def batch(self) -> Batch:
        """Return a new batch of signatures."""
        return Batch(self)

    def close(self) -> None:
        """End the process; later signatures are verified here."""
        with self._changed:
            self._closed = self._is_lost = True
            self._changed.notify()
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def begin(self) -> None:
        """Start the process now, if at least ``MIN_SIGNATURES`` will be submitted."""
        if self._process is None and not self._is_lost:
            self._start()

    def takes(self, more: int) -> bool:
        """Count this weight more; return whether there is a process for it."""
        self._asked += more
        if self._asked >= MIN_SIGNATURES:
            self.begin()
        return not self._is_lost and self._process is not None

    def put(self, group: _Group) -> None:
        """Queue a group for the process."""
        with self._changed:
            if self._is_lost:
                group.answered.set_result(None)
                return
            group.is_sent = True
            self._queue.append(group)
            self._changed.notify()

    def pop_last(self) -> _Group | None:
        """Remove and return the last group of the queue."""
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
        """Return the first group of the queue; ``None`` if it is empty or closed."""
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
    """A batch of signatures, which may be dropped at any time."""

    def __init__(self, verifier: BulkVerifier) -> None:
        self._verifier = verifier
        self._gathered: list[SignedMessage] = []
        self._groups: list[_Group] = []
        self._weight = 0
        """That of ``_gathered``."""

    def gather(self, messages: Sequence[SignedMessage]) -> None:
        """Add signatures, to be sent by ``hurry``."""
        self._gathered += messages
        self._weight += weight(messages)

    def add(self, messages: Sequence[SignedMessage]) -> None:
        """Add signatures, and send full groups."""
        self._gathered += messages
        more = weight(messages)
        self._weight += more
        if self._verifier.takes(more):
            while self._weight >= GROUP:
                self._put(count_within(self._gathered, GROUP))

    def _put(self, count: int, *, aside: bool = False) -> None:
        group = _Group(self._gathered[:count])
        del self._gathered[:count]
        self._weight -= weight(group.messages)
        self._groups.append(group)
        if not aside:
            self._verifier.put(group)

    def hurry(self) -> None:
        """Send all in small groups, in order; then call ``is_valid`` for each in place of
        ``checking``.
        """
        while self._gathered:
            self._put(LAST_GROUPS, aside=not self._verifier.is_ready)

    def is_valid(self, place: int) -> Generator[Future[None] | None, None, bool]:
        """Return whether the signature with this index is valid, in steps."""
        group = self._groups[place // LAST_GROUPS]
        if group.verdicts is None and group.is_sent:
            yield from self._wait_for(group)
        return group.check()[place % LAST_GROUPS]

    def checking(self) -> Checking:
        """Return whether each is valid, in order and in steps; to be called once."""
        if self._verifier.takes(0):
            while self._gathered:
                self._put(count_within(self._gathered, LAST_GROUPS))
        while (group := self._verifier.pop_last()) is not None:
            group.check()
            yield None
        verdicts: list[bool] = []
        for group in self._groups:
            if group.verdicts is None:
                yield from self._wait_for(group)
            verdicts += group.check()
        start = 0
        while start < len(self._gathered):
            count = count_within(self._gathered[start : start + GROUP], GROUP)
            verdicts += verify_many(self._gathered[start : start + count])
            start += count
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
        """Do the same, blocking."""
        checking = self.checking()
        while True:
            try:
                wanted = next(checking)
            except StopIteration as end:
                verdicts: list[bool] = end.value
                return verdicts
            if wanted is not None:
                wanted.result()
