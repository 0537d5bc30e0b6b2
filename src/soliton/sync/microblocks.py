"""Microblocks: who has which, whom to ask for the next one, and to whom to say that we have it.

A peer announces a microblock, and whoever lacks it asks one of those who announced it; after a
while without an answer another one, and then nobody. What was appended is announced to all who did
not announce it.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/network/MicroBlockSynchronizer.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from soliton.sync.model import (
    Action,
    Blame,
    Broadcast,
    ChainMoved,
    Heard,
    History,
    Left,
    PeerId,
    Send,
    Tick,
)
from soliton.wire.errors import Verdict
from soliton.wire.messages import (
    GetMicroblock,
    GetMicroblockSnapshot,
    LegacyMicroblock,
    MicroblockInv,
    MicroblockSnapshot,
    ProtobufMicroblock,
)

MAX_ANNOUNCED: Final = 2_000
"""Announcements remembered at a time: a network makes one in some seconds."""
MAX_ANNOUNCED_OF_PEER: Final = 500
"""Of these, how many may come from one peer before it is a flood."""
ATTEMPTS: Final = 2


class MicroblockSettings(msgspec.Struct, frozen=True):
    """Times in ms, of ``synchronization.micro-block-synchronizer``: how long an answer may take
    (``wait-response-timeout``), how long an announcement counts (``inv-cache-timeout``), and how
    long what was done is remembered (``processed-micro-blocks-cache-timeout``). ``snapshots`` are
    wanted in place of execution (``enable-light-mode``).
    """

    wait: int = 2_000
    announced: int = 45_000
    processed: int = 180_000
    snapshots: bool = False


USUAL: Final = MicroblockSettings()


class MicroblockCame(msgspec.Struct, frozen=True):
    """A microblock that a peer has sent, of which somebody has read the id that it makes."""

    peer: PeerId
    total_id: bytes
    message: LegacyMicroblock | ProtobufMicroblock


class MicroblockSnapshotCame(msgspec.Struct, frozen=True):
    """The snapshots of a microblock that a peer has sent, of which somebody has read the id."""

    peer: PeerId
    total_id: bytes
    message: MicroblockSnapshot


class MicroblockApplied(msgspec.Struct, frozen=True):
    """What became of a microblock."""

    total_id: bytes
    failed: bool = False


class ApplyMicroblock(msgspec.Struct, frozen=True):
    """Put a microblock on the last block; with its snapshot where that was wanted."""

    microblock: MicroblockCame
    snapshot: MicroblockSnapshotCame | None = None


class _Announced(msgspec.Struct):
    inv: MicroblockInv
    first: PeerId
    owners: dict[PeerId, None]
    until: int


class _Asked(msgspec.Struct):
    """A question under way: ``retry_at`` asks somebody else, as long as ``attempts`` are left."""

    total_id: bytes
    attempts: int
    retry_at: int
    tried: set[PeerId]
    microblock: MicroblockCame | None = None


class Microblocks:
    """Follows the growing of the last block."""

    def __init__(
        self,
        history: History,
        chain_id: int,
        choose: Callable[[Sequence[PeerId]], PeerId],
        settings: MicroblockSettings = USUAL,
    ) -> None:
        """``choose`` picks one of several peers by chance."""
        self._history = history
        self._chain_id = chain_id
        self._choose = choose
        self._settings = settings
        self._announced: dict[bytes, _Announced] = {}
        self._of_peer: dict[PeerId, int] = {}
        self._next: dict[bytes, bytes] = {}
        self._asked: _Asked | None = None
        self._done: dict[bytes, int] = {}
        self._applying: set[bytes] = set()

    @property
    def wake_at(self) -> int | None:
        """When somebody else is to be asked, or something may be forgotten."""
        times = [each.until for each in self._announced.values()]
        if self._asked is not None:
            times.append(self._asked.retry_at)
        return min(times, default=None)

    def handle(
        self,
        event: Heard
        | Left
        | ChainMoved
        | Tick
        | MicroblockCame
        | MicroblockSnapshotCame
        | MicroblockApplied,
        now: int,
    ) -> list[Action | ApplyMicroblock]:
        """What follows from an event."""
        match event:
            case Heard(peer=peer, message=MicroblockInv() as inv):
                return self._hear(peer, inv, now)
            case Left(peer=peer):
                self._lose(peer)
                return []
            case ChainMoved():
                return self._ask_next(now)
            case MicroblockCame():
                return self._take(event, now)
            case MicroblockSnapshotCame():
                return self._take_snapshot(event)
            case MicroblockApplied(total_id=total_id, failed=failed):
                return self._applied(total_id, now, failed=failed)
            case Tick():
                return self._pass(now)
            case _:
                return []

    # --- announcements ----------------------------------------------------------------------------

    def _hear(self, peer: PeerId, inv: MicroblockInv, now: int) -> list[Action | ApplyMicroblock]:
        self._forget_old(now)
        if inv.total_id in self._done:
            return []
        known = self._announced.get(inv.total_id)
        if known is None or known.inv != inv:
            # The same again needs no second look.
            if not inv.is_signed(self._chain_id):
                return [Blame(peer, "a microblock is announced with a wrong signature")]
            if known is not None:
                return []
            count = self._of_peer.get(peer, 0)
            if count >= MAX_ANNOUNCED_OF_PEER:
                return [Blame(peer, "too many microblocks are announced", Verdict.SUSPEND)]
            if len(self._announced) >= MAX_ANNOUNCED:
                return []
            self._of_peer[peer] = count + 1
            known = _Announced(inv, peer, {}, now + self._settings.announced)
            self._announced[inv.total_id] = known
            self._next.setdefault(inv.reference, inv.total_id)
        known.owners[peer] = None
        return self._ask_next(now)

    def _forget_old(self, now: int) -> None:
        for total_id, each in list(self._announced.items()):
            if each.until > now:
                break
            self._forget(total_id)
        for total_id, until in list(self._done.items()):
            if until > now:
                break
            del self._done[total_id]

    def _forget(self, total_id: bytes) -> None:
        each = self._announced.pop(total_id)
        if self._next.get(each.inv.reference) == total_id:
            del self._next[each.inv.reference]
        if each.first in self._of_peer:
            self._of_peer[each.first] -= 1
            if not self._of_peer[each.first]:
                del self._of_peer[each.first]

    # --- asking -----------------------------------------------------------------------------------

    def _ask_next(self, now: int) -> list[Action | ApplyMicroblock]:
        """Ask for what comes on the last block, if somebody has announced it."""
        total_id = self._next.get(self._history.last_id())
        if total_id is None or total_id in self._applying:
            return []
        if self._asked is not None and self._asked.total_id == total_id:
            return []
        self._asked = _Asked(total_id, ATTEMPTS, now, set())
        return self._ask(now)

    def _ask(self, now: int) -> list[Action | ApplyMicroblock]:
        asked = self._asked
        assert asked is not None, "something is asked for"
        known = self._announced.get(asked.total_id)
        owners = [] if known is None else [each for each in known.owners if each not in asked.tried]
        if not asked.attempts or not owners:
            self._give_up(asked)
            return []
        peer = self._choose(owners)
        asked.tried.add(peer)
        asked.attempts -= 1
        asked.retry_at = now + self._settings.wait
        wants_block = asked.microblock is None
        request = GetMicroblock if wants_block else GetMicroblockSnapshot
        return [Send(peer, request(asked.total_id))]

    def _give_up(self, asked: _Asked) -> None:
        """Nobody answers: only another announcement brings it back."""
        self._asked = None
        if asked.total_id in self._announced:
            self._forget(asked.total_id)

    def _take(self, came: MicroblockCame, now: int) -> list[Action | ApplyMicroblock]:
        asked = self._asked
        if asked is None or asked.total_id != came.total_id or asked.microblock is not None:
            return []
        if not self._settings.snapshots:
            return self._apply(ApplyMicroblock(came))
        asked.microblock = came
        asked.attempts, asked.tried = ATTEMPTS, set()
        return self._ask(now)

    def _take_snapshot(self, came: MicroblockSnapshotCame) -> list[Action | ApplyMicroblock]:
        asked = self._asked
        if asked is None or asked.total_id != came.total_id or asked.microblock is None:
            return []
        return self._apply(ApplyMicroblock(asked.microblock, came))

    def _apply(self, wanted: ApplyMicroblock) -> list[Action | ApplyMicroblock]:
        self._asked = None
        self._applying.add(wanted.microblock.total_id)
        return [wanted]

    def _applied(
        self, total_id: bytes, now: int, *, failed: bool
    ) -> list[Action | ApplyMicroblock]:
        self._applying.discard(total_id)
        self._done[total_id] = now + self._settings.processed
        known = self._announced.get(total_id)
        if known is None:
            return []
        owners = frozenset(known.owners)
        inv = known.inv
        self._forget(total_id)
        return [] if failed else [Broadcast(inv, owners)]

    # --- what ends by itself ----------------------------------------------------------------------

    def _pass(self, now: int) -> list[Action | ApplyMicroblock]:
        self._forget_old(now)
        if self._asked is not None and self._asked.retry_at <= now:
            return self._ask(now)
        return []

    def _lose(self, peer: PeerId) -> None:
        self._of_peer.pop(peer, None)
        for total_id, each in list(self._announced.items()):
            each.owners.pop(peer, None)
            if not each.owners and not self._is_asked(total_id):
                self._forget(total_id)

    def _is_asked(self, total_id: bytes) -> bool:
        return self._asked is not None and self._asked.total_id == total_id
