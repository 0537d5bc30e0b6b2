"""What a signer remembers: counters of windows, ids that were used, requests that wait, blocks.

All of it follows from the lines of the journal: a line that is written is applied here, and after
a crash the lines are applied again. Only the counters run ahead of the disk: an amount counts from
the moment at which its signature is allowed, and is taken back if the line cannot be written.

What lives here: that state, and how a line changes it. What does not: the lines' way to the disk
(``journal``), who may do what (``desk``).
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.signer.boot_clock import BootClock
from soliton.signer.marks import Marks
from soliton.signer.records import Entry, Event
from soliton.signer.windows import Charge, Windows

KEPT_MS: Final = 24 * 60 * 60 * 1_000
"""For how long an id gives the same answer again."""
MAX_IDS: Final = 1_000_000
MAX_WAITING: Final = 1_000
MAX_WAITING_BYTES: Final = 64 * 1024 * 1024
MAX_AHEAD_MS: Final = 90 * 60 * 1_000
"""How far ahead of its clock a node takes a transaction: ``maxTransactionTimeForwardOffset`` in
wavesplatform/Waves, ``node/src/main/scala/com/wavesplatform/settings/BlockchainSettings.scala``.
"""


def _gone_on_from(stamp: int, now: int) -> int:
    """The last stamp, or 0 if a wrong clock has left it: nodes would refuse what follows."""
    return stamp if stamp <= now + MAX_AHEAD_MS else 0


class Used(msgspec.Struct, frozen=True, gc=False):
    """What was answered under an id: for which request, and what was signed."""

    digest: str
    proofs: tuple[str, ...]
    stamps: tuple[int, ...]
    time: int
    segment: int


class Waiting(msgspec.Struct, gc=False):
    """A request that needs approval, and what became of it: the line that asked, who has approved,
    who has refused, the line that signed, and what became of sending it in this run.
    """

    ask: Entry
    approved: list[str]
    rejected: str = ""
    signed: Entry | None = None
    sent: dict[str, object] | None = None

    def state(self, now: int) -> str:
        """One word for it."""
        if self.signed is not None:
            return "signed"
        if self.rejected:
            return "refused"
        return "expired" if now >= self.ask.expires else "waiting"


class Book:
    """The state."""

    def __init__(self, clock: BootClock) -> None:
        self.clock = clock
        self.windows = Windows()
        self.used: dict[tuple[str, str], Used] = {}
        self.waiting: dict[str, Waiting] = {}
        self.marks = Marks()
        self.policy = ""
        """The hash of the rules that were in force last."""
        self.last_stamp = 0
        self._on_way: dict[int, tuple[Entry, int]] = {}
        """Lines that go to the disk, in their order, with their files."""
        self._expected = 0
        self._start: Entry | None = None
        self._last = 0

    # --- the start --------------------------------------------------------------------------------

    def replay(self, entry: Entry, segment: int) -> None:
        """Take a line of an earlier run."""
        self._last = max(self._last, entry.time)
        if entry.event is Event.START or (entry.event is Event.CHECKPOINT and entry.boot):
            self._start = entry
        if entry.event is Event.CHECKPOINT:
            self.windows.restore(entry.windows)
            self.waiting = {}
            for each in entry.waiting:
                self._wait(each)
            self.marks.restore(entry.marks)
        self.windows.charge((Charge(*each) for each in entry.charges), entry.time)
        if entry.last_stamp:
            # Lines may come in another order than their stamps.
            before = _gone_on_from(self.last_stamp, entry.last_stamp)
            self.last_stamp = max(before, entry.last_stamp)
        self.apply(entry, segment)

    def resume(self) -> None:
        """Let the time go on where the last line left it."""
        start = self._start
        if start is not None:
            self.clock.resume(self._last, start.time, start.boot, start.since_boot)
        else:
            self.clock.resume(self._last, 0, "", 0)
        self.forget()

    def next_stamp(self, now: int) -> int:
        """A time for what is signed, in milliseconds, never the same twice, in no other run either:
        two equal transactions of one time would be one.
        """
        self.last_stamp = max(now, _gone_on_from(self.last_stamp, now) + 1)
        return self.last_stamp

    # --- lines ------------------------------------------------------------------------------------

    def expect(self, entry: Entry, segment: int) -> int:
        """A line goes to the disk; what ``settle`` is to be called with. A file that is begun
        meanwhile remembers it: if the line is not written, that file is not begun.
        """
        self._expected += 1
        self._on_way[self._expected] = entry, segment
        return self._expected

    def settle(self, number: int, *, is_written: bool) -> None:
        """The line is there, or will not be."""
        entry, segment = self._on_way.pop(number)
        if is_written:
            self.apply(entry, segment)

    def apply(self, entry: Entry, segment: int) -> None:
        """Take a line that is written. What it counts was counted before."""
        event = entry.event
        self.marks.apply(entry)
        if event is Event.POLICY:
            self.policy = entry.policy
        elif entry.pending:
            self._wait(entry)
        if event is Event.SIGN and entry.request:
            self.used[entry.caller, entry.request] = Used(
                entry.digest, entry.proofs, entry.stamps, entry.time, segment
            )

    def _wait(self, entry: Entry) -> None:
        """Take a line about something that waits."""
        if entry.event is Event.ASK:
            self.waiting[entry.pending] = Waiting(entry, [])
            return
        it = self.waiting.get(entry.pending)
        if it is None:
            # Forgotten, since its time was over long ago.
            return
        if entry.event is Event.APPROVE:
            if entry.caller not in it.approved:
                it.approved.append(entry.caller)
        elif entry.event is Event.REJECT:
            it.rejected = entry.caller
        else:
            it.signed = entry

    def forget(self) -> None:
        """Let go what is too old."""
        before = self.clock.now() - KEPT_MS
        while self.used:
            oldest = next(iter(self.used))
            if self.used[oldest].time > before:
                break
            del self.used[oldest]
        old = [each for each, it in self.waiting.items() if max(it.ask.expires, 0) <= before]
        for each in old:
            del self.waiting[each]

    @property
    def has_room_for_ids(self) -> bool:
        """Whether another id can be remembered."""
        if len(self.used) < MAX_IDS:
            return True
        self.forget()
        return len(self.used) < MAX_IDS

    def has_room_for(self, asked: str) -> bool:
        """Whether another request can wait for approval."""
        self.forget()
        now = self.clock.now()
        waiting = [it for it in self.waiting.values() if it.state(now) == "waiting"]
        size = sum(len(it.ask.asked) for it in self.waiting.values()) + len(asked)
        return len(waiting) < MAX_WAITING and size <= MAX_WAITING_BYTES

    def checkpoint(self, at: int) -> Entry:
        """The line that begins a file: all that has to be remembered but for used ids, which stand
        in files from ``oldest`` on.
        """
        self.forget()
        waiting: list[Entry] = []
        for each in self.waiting.values():
            waiting.append(each.ask)
            for event, callers in ((Event.APPROVE, each.approved), (Event.REJECT, [each.rejected])):
                waiting.extend(
                    Entry(0, "", 0, 0, event, caller=caller, pending=each.ask.pending)
                    for caller in callers
                    if caller
                )
            if each.signed is not None:
                waiting.append(each.signed)
        on_way = [each for each, _ in self._on_way.values()]
        waiting.extend(each for each in on_way if each.pending)
        with_ids = (segment for each, segment in self._on_way.values() if each.request)
        oldest = next(iter(self.used.values())).segment if self.used else next(with_ids, 0)
        now = self.clock.now()
        return Entry(
            *(0, "", at, now, Event.CHECKPOINT),
            boot=self.clock.boot,
            since_boot=self.clock.since_boot(),
            policy=self.policy,
            windows=tuple(self.windows.kept(now)),
            waiting=tuple(waiting),
            oldest=oldest,
            marks=(*self.marks.kept(), *(each for each in on_way if each.mark is not None)),
            last_stamp=self.last_stamp,
        )
