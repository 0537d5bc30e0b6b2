"""Turns on the event loop: what strangers send is worked off in slices of its time.

A packet may contain thousands of requests, frames or messages. If each connection worked off all
that has arrived, the others would wait for all of it together. So a connection works until its
slice is over, and waits for its next turn in a queue. Meanwhile nothing more of it is read. Whoever
uses more than a share of the loop's time rests until that is made up for, however many connections
the time was used on.

What lives here: the queue, the accounts of used time, and the bytes that wait. What does not: the
meaning of the bytes (the connections).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Hashable
from typing import Final

SLICE_SECONDS: Final = 0.002
"""The time slice of all waiting connections together in a turn, and of a newly received packet of
requests.
"""
ARRIVAL_SECONDS: Final = 0.005
"""Of each pass of the event loop in which input is processed as it arrives."""
PIECE_BYTES: Final = 512
"""Input that is processed in one go: some dozens of the shortest frames."""
SMALL_PIECE_BYTES: Final = 256
"""Queued bytes of pipelined requests, except of bodies, that are parsed at once: a few requests."""
SHARE: Final = 0.25
"""The share of the loop's time that one stranger may use."""
DEBT_SECONDS: Final = 0.05
"""How far a stranger may exceed its share before it has to rest."""
MAX_DEBTORS: Final = 16_384
"""Strangers whose debts are kept; the one that was charged least recently is forgotten."""
_MOST_AT_ONCE: Final = 16
"""Requests of one connection that are answered in one time slice, at most."""

_log = logging.getLogger(__name__)


class Slice:
    """The time slice of one connection."""

    __slots__ = ("_ends_at", "answered")

    def __init__(self) -> None:
        self.begin(0.0)

    def begin(self, ends_at: float) -> None:
        """Begin a new time slice."""
        self.answered = 0
        self._ends_at = ends_at

    def has_time(self) -> bool:
        """Whether one more request may be answered; the first one always may."""
        if not self.answered:
            return True
        return self.answered < _MOST_AT_ONCE and time.perf_counter() < self._ends_at


class Rounds:
    """The queue of waiting connections; ``ends_at`` is the end of the present time slice, in
    seconds of ``time.perf_counter``.
    """

    __slots__ = ("_arrivals_end_at", "_is_set", "_short", "_waiting", "ends_at")

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._short: deque[Callable[[], None]] = deque()
        self._is_set = False
        self._arrivals_end_at = 0.0
        self.ends_at = 0.0

    def join(self, go_on: Callable[[], None], *, is_short: bool = False) -> None:
        """Queue a callback for one of the next turns. Short ones alternate with the others, so that
        they need not wait for all of them.
        """
        (self._short if is_short else self._waiting).append(go_on)
        self._set()

    async def turn(self) -> None:
        """Wait for a turn, and use all of it."""
        came: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def begin() -> None:
            if not came.done():
                came.set_result(None)
                self.end()

        self.join(begin)
        await came

    def end(self) -> None:
        """End this time slice: serve no other connection in this turn."""
        self.ends_at = 0.0

    def arrivals_end_at(self) -> float:
        """When the time is over in which this pass of the event loop processes input as it arrives,
        in the seconds of ``time.perf_counter``.
        """
        if not self._arrivals_end_at:
            self._arrivals_end_at = time.perf_counter() + ARRIVAL_SECONDS
            asyncio.get_running_loop().call_soon(self._end_arrivals)
        return self._arrivals_end_at

    def _end_arrivals(self) -> None:
        self._arrivals_end_at = 0.0

    def _set(self) -> None:
        if (self._waiting or self._short) and not self._is_set:
            self._is_set = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        self.ends_at = time.perf_counter() + SLICE_SECONDS
        try:
            while self._waiting or self._short:
                if self._short:
                    self._short.popleft()()
                if self._waiting:
                    self._waiting.popleft()()
                if time.perf_counter() >= self.ends_at:
                    break
        finally:
            self._is_set = False
            self._set()


class Debts:
    """The time of the event loop that strangers have used beyond their shares.

    A debt belongs to a key such as an address, and outlives its connections; time pays it.
    """

    __slots__ = ("_clock", "_paid_at", "_share")

    def __init__(self, share: float = SHARE, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` returns monotonic seconds."""
        self._share = share
        self._clock = clock
        self._paid_at: dict[Hashable, float] = {}

    def charge(self, key: Hashable, seconds: float) -> float:
        """Charge time, and return the seconds for which the stranger has to rest."""
        now = self._clock()
        paid_at = max(now, self._paid_at.pop(key, now)) + seconds / self._share
        self._paid_at[key] = paid_at
        if len(self._paid_at) > MAX_DEBTORS:
            del self._paid_at[next(iter(self._paid_at))]
        return self._rest(paid_at - now)

    def rest(self, key: Hashable) -> float:
        """Return the seconds for which the stranger has to rest; 0 if it may go on."""
        paid_at = self._paid_at.get(key)
        return 0.0 if paid_at is None else self._rest(paid_at - self._clock())

    def _rest(self, seconds: float) -> float:
        return seconds if seconds * self._share > DEBT_SECONDS else 0.0


class Intake:
    """The received bytes of one connection, which are worked off in turns.

    Reading from the transport pauses while bytes wait: for a turn, for the end of a rest, or until
    the owner that ``is_held`` takes more.
    """

    __slots__ = (
        "_at_end",
        "_debts",
        "_is_closed",
        "_is_due",
        "_key",
        "_reads",
        "_rest",
        "_rested",
        "_rounds",
        "_transport",
        "_waiting",
        "_work",
        "is_held",
        "piece_bytes",
    )

    def __init__(
        self,
        rounds: Rounds,
        debts: Debts,
        work: Callable[[bytes], None],
        rested: Callable[[], None] | None = None,
        *,
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        """``work`` is called with each piece; ``rested`` after a rest."""
        self._rounds = rounds
        self._debts = debts
        self._work = work
        self._rested = rested or _do_nothing
        self._waiting = bytearray()
        self._transport: asyncio.Transport
        self._key: Hashable = None
        self._reads = True
        self._is_due = False
        self._is_closed = False
        self._rest: asyncio.TimerHandle | None = None
        self._at_end: Callable[[], None] | None = None
        self.is_held = False
        """Whether the owner takes no more for the present."""
        self.piece_bytes = piece_bytes
        """The most bytes that are worked on in one go."""

    def begin(self, transport: asyncio.Transport, key: Hashable) -> None:
        """Begin to take bytes from a transport, at the expense of a key. A stranger in debt rests
        first.
        """
        self._transport = transport
        self._key = key
        self._take_rest(self._debts.rest(key))

    @property
    def waiting(self) -> int:
        """The number of bytes that wait."""
        return len(self._waiting)

    @property
    def is_resting(self) -> bool:
        """Whether the stranger has used more than its share, and nothing of it is worked on."""
        return self._rest is not None

    def receive(self, data: bytes) -> None:
        """Work on bytes, at once if there is time and no earlier ones wait."""
        if self._is_closed:
            return
        self._waiting += data
        if not self._reads:
            # A transport that was paused while it was made begins to read nevertheless.
            self._transport.pause_reading()
        if self._is_due or self.is_held or self._rest is not None:
            self._settle()
            return
        ends_at = self._rounds.arrivals_end_at()
        if time.perf_counter() < ends_at:
            self._work_off(ends_at)
        else:
            self._join()

    def hold(self) -> None:
        """Stop working until ``release``; the present piece is worked off completely."""
        self.is_held = True
        self._settle()

    def release(self) -> None:
        """Go on with the bytes that wait, in a later turn, or resume reading."""
        if self.is_held:
            self.is_held = False
            self._settle()

    def charge(self, seconds: float) -> None:
        """Charge the stranger for time that was used elsewhere on its behalf."""
        if not self._is_closed:
            self._take_rest(self._debts.charge(self._key, seconds))

    def end(self, at_end: Callable[[], None]) -> None:
        """Call ``at_end`` when all bytes are worked off: no more will come."""
        self._at_end = at_end
        self._settle()

    def close(self) -> None:
        """Drop the bytes that wait, and ignore further ones."""
        self._is_closed = True
        self._waiting.clear()
        # Break reference cycles with the owner, to save the garbage collector work.
        self._work, self._rested, self._at_end = _ignore, _do_nothing, None
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None

    def _join(self) -> None:
        self._is_due = True
        is_short = len(self._waiting) <= self.piece_bytes
        self._rounds.join(self._take_turn, is_short=is_short)
        self._set_reading()

    def _take_turn(self) -> None:
        self._is_due = False
        if self._rest is None and not (self.is_held or self._is_closed):
            self._work_off(self._rounds.ends_at)

    def _work_off(self, ends_at: float) -> None:
        began = time.perf_counter()
        now = began
        try:
            while self._waiting and not (self.is_held or self._is_closed):
                piece = bytes(self._waiting[: self.piece_bytes])
                del self._waiting[: self.piece_bytes]
                self._work(piece)
                now = time.perf_counter()
                if now >= ends_at:
                    break
        except Exception:  # noqa: BLE001 - logged, and ends the connection
            _log.exception("received bytes cannot be processed")
            self._transport.abort()
            self.close()
            return
        rest = self._debts.charge(self._key, now - began)
        if not self._is_closed:
            self._take_rest(rest)
            self._settle()

    def _take_rest(self, seconds: float) -> None:
        if seconds > 0 and self._rest is None:
            loop = asyncio.get_running_loop()
            self._rest = loop.call_later(seconds, self._end_rest)
            self._set_reading()

    def _end_rest(self) -> None:
        self._rest = None
        # Other connections may have used more of the same stranger's share.
        self._take_rest(self._debts.rest(self._key))
        if self._rest is None:
            self._settle()
            self._rested()

    def _settle(self) -> None:
        """Continue in a later turn if there is something to do, else read."""
        if not self._waiting and self._at_end is not None:
            at_end, self._at_end = self._at_end, None
            at_end()
        elif self._waiting and not (
            self._is_due or self.is_held or self._is_closed or self._rest is not None
        ):
            self._join()
        else:
            self._set_reading()

    def _set_reading(self) -> None:
        reads = not (self._waiting or self.is_held or self._rest is not None)
        if reads is self._reads or self._is_closed or self._transport.is_closing():
            return
        self._reads = reads
        if reads:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()


def _ignore(_data: bytes) -> None:
    """Of a connection that is closed."""


def _do_nothing() -> None:
    """Of a connection that is closed, or does nothing after a rest."""
