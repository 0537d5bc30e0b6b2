"""The signer's state: window counters, used idempotency ids, pending requests, signed blocks.

It is derived from the journal: a written line is applied here, and after a restart the lines are
replayed. Only the counters run ahead of the disk: an amount counts once its signature is allowed,
and is taken back if the line cannot be written.

What lives here: that state, and how a line changes it. What does not: writing lines (``journal``),
and decisions (``pipeline``).
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.signer.boot_clock import BootClock
from soliton.signer.records import Entry, Event
from soliton.signer.signed_blocks import SignedBlocks
from soliton.signer.windows import Charge, Windows

KEPT_MS: Final = 24 * 60 * 60 * 1_000
"""How long an idempotency id is kept."""
MAX_IDS: Final = 1_000_000
MAX_WAITING: Final = 1_000
MAX_WAITING_BYTES: Final = 64 * 1024 * 1024
MAX_AHEAD_MS: Final = 90 * 60 * 1_000
"""How far ahead of its clock a node accepts a transaction: ``maxTransactionTimeForwardOffset`` in
wavesplatform/Waves, ``node/src/main/scala/com/wavesplatform/settings/BlockchainSettings.scala``.
"""


def _plausible(stamp: int, now: int) -> int:
    """Return the last timestamp, or 0 if it is too far ahead, after a wrong clock."""
    return stamp if stamp <= now + MAX_AHEAD_MS else 0


class Used(msgspec.Struct, frozen=True, gc=False):
    """The result of a request with an id: the hash of the request, and what was signed."""

    digest: str
    proofs: tuple[str, ...]
    stamps: tuple[int, ...]
    time: int
    segment: int


class PendingRequest(msgspec.Struct, gc=False):
    """A request that needs approval: its ASK line, the callers who have approved, the one who has
    refused, its SIGN line, and the outcome of a broadcast in this run.
    """

    ask: Entry
    approved: list[str]
    rejected: str = ""
    signed: Entry | None = None
    sent: dict[str, object] | None = None

    def state(self, now: int) -> str:
        """Return ``signed``, ``refused``, ``expired`` or ``waiting``."""
        if self.signed is not None:
            return "signed"
        if self.rejected:
            return "refused"
        return "expired" if now >= self.ask.expires else "waiting"


class SignerState:
    """The state of a signer."""

    def __init__(self, clock: BootClock) -> None:
        self.clock = clock
        self.windows = Windows()
        self.used: dict[tuple[str, str], Used] = {}
        self.waiting: dict[str, PendingRequest] = {}
        self.signed_blocks = SignedBlocks()
        self.policy = ""
        """The hash of the rules last in force."""
        self.last_stamp = 0
        self._in_flight: dict[int, tuple[Entry, int]] = {}
        """Lines being written, in order, with their segments."""
        self._last_number = 0
        self._start: Entry | None = None
        self._last = 0

    # --- start ------------------------------------------------------------------------------------

    def replay(self, entry: Entry, segment: int) -> None:
        """Replay a line of an earlier run."""
        self._last = max(self._last, entry.time)
        if entry.event is Event.START or (entry.event is Event.CHECKPOINT and entry.boot):
            self._start = entry
        if entry.event is Event.CHECKPOINT:
            self.windows.restore(entry.windows)
            self.waiting = {}
            for each in entry.waiting:
                self._wait(each)
            self.signed_blocks.restore(entry.signed_blocks, entry.old_parents)
        self.windows.charge((Charge(*each) for each in entry.charges), entry.time)
        if entry.last_stamp:
            # Lines may be in another order than their timestamps.
            before = _plausible(self.last_stamp, entry.last_stamp)
            self.last_stamp = max(before, entry.last_stamp)
        self.apply(entry, segment)

    def resume(self) -> None:
        """Continue the clock from the last line."""
        start = self._start
        if start is not None:
            self.clock.resume(self._last, start.time, start.boot, start.since_boot)
        else:
            self.clock.resume(self._last, 0, "", 0)
        self.forget()

    def next_stamp(self, now: int) -> int:
        """Return a timestamp in milliseconds, unique also across restarts: two equal transactions
        with one timestamp would be the same transaction.
        """
        self.last_stamp = max(now, _plausible(self.last_stamp, now) + 1)
        return self.last_stamp

    # --- lines ------------------------------------------------------------------------------------

    def expect(self, entry: Entry, segment: int) -> int:
        """Register a line that is being written, and return the number for ``settle``. A checkpoint
        made meanwhile contains it: if the line is not written, the checkpoint is not either.
        """
        self._last_number += 1
        self._in_flight[self._last_number] = entry, segment
        return self._last_number

    def settle(self, number: int, *, is_written: bool) -> None:
        """Finish a line: it is written, or will not be."""
        entry, segment = self._in_flight.pop(number)
        if is_written:
            self.apply(entry, segment)

    def apply(self, entry: Entry, segment: int) -> None:
        """Apply a written line. Its amounts were charged before."""
        event = entry.event
        self.signed_blocks.apply(entry)
        if event is Event.POLICY:
            self.policy = entry.policy
        elif entry.pending:
            self._wait(entry)
        if event is Event.SIGN and entry.request:
            self.used[entry.caller, entry.request] = Used(
                entry.digest, entry.proofs, entry.stamps, entry.time, segment
            )

    def _wait(self, entry: Entry) -> None:
        """Apply a line about a pending request."""
        if entry.event is Event.ASK:
            self.waiting[entry.pending] = PendingRequest(entry, [])
            return
        record = self.waiting.get(entry.pending)
        if record is None:
            # It expired long ago.
            return
        if entry.event is Event.APPROVE:
            if entry.caller not in record.approved:
                record.approved.append(entry.caller)
        elif entry.event is Event.REJECT:
            record.rejected = entry.caller
        else:
            record.signed = entry

    def forget(self) -> None:
        """Drop ids and pending requests that are too old."""
        before = self.clock.now() - KEPT_MS
        while self.used:
            oldest = next(iter(self.used))
            if self.used[oldest].time > before:
                break
            del self.used[oldest]
        old = [
            each for each, record in self.waiting.items() if max(record.ask.expires, 0) <= before
        ]
        for each in old:
            del self.waiting[each]

    @property
    def has_room_for_ids(self) -> bool:
        """Whether another id can be kept."""
        if len(self.used) < MAX_IDS:
            return True
        self.forget()
        return len(self.used) < MAX_IDS

    def has_room_for(self, request_json: str) -> bool:
        """Whether another pending request can be kept."""
        self.forget()
        now = self.clock.now()
        waiting = [record for record in self.waiting.values() if record.state(now) == "waiting"]
        size = sum(len(record.ask.request_json) for record in self.waiting.values()) + len(
            request_json
        )
        return len(waiting) < MAX_WAITING and size <= MAX_WAITING_BYTES

    def checkpoint(self, at: int) -> Entry:
        """Return the line that begins a file: the whole state except used ids, which are in the
        files from ``oldest`` on.
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
        in_flight = [each for each, _ in self._in_flight.values()]
        waiting.extend(each for each in in_flight if each.pending)
        with_ids = (segment for each, segment in self._in_flight.values() if each.request)
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
            signed_blocks=(
                *self.signed_blocks.kept(),
                *(each for each in in_flight if each.mark is not None),
            ),
            old_parents=self.signed_blocks.old_parents(),
            last_stamp=self.last_stamp,
        )
