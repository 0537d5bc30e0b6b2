"""Microblocks: which peers have which, where to request the next one, and whom to announce it to.

A node that lacks an announced microblock requests it from one of the peers that announced it. After
each timeout it asks twice as many others, also for other microblocks in the same place, so that
peers that announce and withhold cost little time; when all have been asked it gives up. Only
announcements of the last block's generator are followed. Microblocks are requested at a bounded
pace, since each costs time in proportion to the block. An appended microblock is announced to all
peers that did not announce it.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/network/MicroBlockSynchronizer.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from soliton.sync.model import (
    Action,
    Blame,
    Broadcast,
    ChainMoved,
    History,
    Left,
    PeerId,
    Received,
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
"""Announcements remembered at a time; a network makes one every few seconds."""
MAX_ANNOUNCED_OF_PEER: Final = 500
"""How many of these one peer may have made; more are treated as a flood."""
MAX_RIVALS_OF_PEER: Final = 4
"""Announcements of one peer on one form of the last block that are followed: an honest generator
makes one.
"""
MAX_REQUESTS: Final = 16
"""Requests sent at a time."""


class MicroblockSettings(msgspec.Struct, frozen=True):
    """Times in ms, of ``synchronization.micro-block-synchronizer``: the timeout of a request
    (``wait-response-timeout``), the lifetime of an announcement (``inv-cache-timeout``), and how
    long a processed microblock is remembered (``processed-micro-blocks-cache-timeout``).
    ``snapshots`` loads snapshots instead of executing (``enable-light-mode``). After a ``burst`` of
    microblocks one is requested each ``pace``: the reference makes one in five seconds.
    """

    wait: int = 2_000
    announced: int = 45_000
    processed: int = 180_000
    snapshots: bool = False
    burst: int = 100
    pace: int = 50


DEFAULTS: Final = MicroblockSettings()


class MicroblockReceived(msgspec.Struct, frozen=True):
    """A microblock sent by a peer, with the id that it gives the last block."""

    peer: PeerId
    total_id: bytes
    message: LegacyMicroblock | ProtobufMicroblock


class MicroblockSnapshotReceived(msgspec.Struct, frozen=True):
    """The snapshots of a microblock, sent by a peer."""

    peer: PeerId
    total_id: bytes
    message: MicroblockSnapshot


class MicroblockApplied(msgspec.Struct, frozen=True):
    """A microblock has been appended, or refused (``failed``)."""

    total_id: bytes
    failed: bool = False


class ApplyMicroblock(msgspec.Struct, frozen=True):
    """Append a microblock to the last block; with its snapshot if that was requested."""

    microblock: MicroblockReceived
    snapshot: MicroblockSnapshotReceived | None = None


_Actions = list[Action | ApplyMicroblock]


class _Announcement(msgspec.Struct):
    inv: MicroblockInv
    first: PeerId
    announcers: dict[PeerId, None]
    until: int


class _Search(msgspec.Struct):
    """The search for the microblock on a form of the last block. ``tried`` are the peers asked for
    each id; at ``retry_at`` the next ``width`` requests are sent. With a ``microblock`` its
    snapshot is searched for.
    """

    reference: bytes
    retry_at: int
    width: int = 1
    tried: dict[bytes, set[PeerId]] = {}
    asked: set[PeerId] = set()
    microblock: MicroblockReceived | None = None


class Microblocks:
    """Tracks the growth of the last block."""

    def __init__(
        self,
        history: History,
        chain_id: int,
        choose: Callable[[Sequence[PeerId]], PeerId],
        settings: MicroblockSettings = DEFAULTS,
    ) -> None:
        """``choose`` picks one of several peers at random."""
        self._history = history
        self._chain_id = chain_id
        self._choose = choose
        self._settings = settings
        self._announced: dict[bytes, _Announcement] = {}
        self._of_peer: dict[PeerId, int] = {}
        self._next: dict[bytes, dict[bytes, None]] = {}
        self._search: _Search | None = None
        self._done: dict[bytes, int] = {}
        self._applying: set[bytes] = set()
        self._silent: set[PeerId] = set()
        # When the next microblocks may be requested, if all of the burst had been used up.
        self._paced_until = -settings.burst * settings.pace
        self._resume_at: int | None = None

    @property
    def wake_at(self) -> int | None:
        """When a request is retried, or an announcement expires."""
        times = [each.until for each in self._announced.values()]
        if self._search is not None:
            times.append(self._search.retry_at)
        if self._resume_at is not None:
            times.append(self._resume_at)
        return min(times, default=None)

    def handle(
        self,
        event: Received
        | Left
        | ChainMoved
        | Tick
        | MicroblockReceived
        | MicroblockSnapshotReceived
        | MicroblockApplied,
        now: int,
    ) -> _Actions:
        """Process an event and return the resulting actions."""
        match event:
            case Received(peer=peer, message=MicroblockInv() as inv):
                return self._receive_announcement(peer, inv, now)
            case Left(peer=peer):
                self._peer_left(peer)
                return []
            case ChainMoved():
                return self._request_next(now)
            case MicroblockReceived():
                return self._receive_microblock(event, now)
            case MicroblockSnapshotReceived():
                return self._receive_snapshot(event)
            case MicroblockApplied(total_id=total_id, failed=failed):
                return self._applied(total_id, now, failed=failed)
            case Tick():
                return self._tick(now)
            case _:
                return []

    # --- announcements ----------------------------------------------------------------------------

    def _receive_announcement(self, peer: PeerId, inv: MicroblockInv, now: int) -> _Actions:
        self._forget_old(now)
        if inv.total_id in self._done or not self._may_follow(inv):
            return []
        known = self._announced.get(inv.total_id)
        if known is None or known.inv != inv:
            # A repeated announcement has been verified before.
            if not inv.is_signed(self._chain_id):
                return [Blame(peer, "a microblock is announced with a wrong signature")]
            if known is not None:
                return []
            count = self._of_peer.get(peer, 0)
            if count >= MAX_ANNOUNCED_OF_PEER:
                return [Blame(peer, "too many microblocks are announced", Verdict.SUSPEND)]
            rivals = self._next.get(inv.reference, ())
            of_peer = sum(self._announced[each].first == peer for each in rivals)
            if len(self._announced) >= MAX_ANNOUNCED or of_peer >= MAX_RIVALS_OF_PEER:
                return []
            self._of_peer[peer] = count + 1
            known = _Announcement(inv, peer, {}, now + self._settings.announced)
            self._announced[inv.total_id] = known
            self._next.setdefault(inv.reference, {})[inv.total_id] = None
        known.announcers[peer] = None
        return self._request_next(now)

    def _may_follow(self, inv: MicroblockInv) -> bool:
        """Whether the key of an announcement can be the generator's. That of a form that we do not
        have yet is not known.
        """
        history = self._history
        return inv.reference != history.last_id() or inv.generator == history.generator()

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
        after = self._next[each.inv.reference]
        del after[total_id]
        if not after:
            del self._next[each.inv.reference]
        if each.first in self._of_peer:
            self._of_peer[each.first] -= 1
            if not self._of_peer[each.first]:
                del self._of_peer[each.first]

    # --- requests ---------------------------------------------------------------------------------

    def _request_next(self, now: int) -> _Actions:
        """Search for the microblock that extends the last block, if a peer has announced it."""
        reference = self._history.last_id()
        if self._search is not None and self._search.reference != reference:
            self._search = None
        if self._search is not None:
            return []
        for total_id in list(self._next.get(reference, ())):
            if not self._may_follow(self._announced[total_id].inv):
                self._forget(total_id)
        ids = self._next.get(reference)
        if not ids or not self._applying.isdisjoint(ids):
            return []
        settings = self._settings
        earliest = now - settings.burst * settings.pace
        if self._paced_until > now:
            self._resume_at = self._paced_until
            return []
        self._paced_until = max(self._paced_until, earliest) + settings.pace
        self._resume_at = None
        self._search = _Search(reference, now)
        return self._ask(self._search, now)

    def _ask(self, search: _Search, now: int) -> _Actions:
        """Send the next requests of a search, to peers that have not been asked for the same."""
        actions: _Actions = []
        kind = GetMicroblock if search.microblock is None else GetMicroblockSnapshot
        search.asked.clear()
        while len(actions) < search.width:
            untried = {
                each: peers for each in self._sought(search) if (peers := self._untried(each))
            }
            if not untried:
                break
            # The one that most peers have made, since any number may be signed with one key.
            total_id = max(
                untried,
                key=lambda each: (-len(search.tried.get(each, ())), self._count_announcers(each)),
            )
            peers = untried[total_id]
            peer = self._choose([each for each in peers if each not in self._silent] or peers)
            search.tried.setdefault(total_id, set()).add(peer)
            search.asked.add(peer)
            actions.append(Send(peer, kind(total_id)))
        search.width = min(2 * search.width, MAX_REQUESTS)
        search.retry_at = now + self._settings.wait
        if actions:
            return actions
        # No peer responds: forget the microblocks until they are announced again.
        self._search = None
        for total_id in list(self._sought(search)):
            self._forget(total_id)
        return self._request_next(now)

    def _sought(self, search: _Search) -> Iterable[bytes]:
        """Return the ids of the microblocks that are searched for."""
        ids = self._next.get(search.reference, {})
        if search.microblock is None:
            return ids
        return [each for each in ids if each == search.microblock.total_id]

    def _untried(self, total_id: bytes) -> list[PeerId]:
        search = self._search
        assert search is not None, "it is searched for"
        tried = search.tried.get(total_id, ())
        return [each for each in self._announced[total_id].announcers if each not in tried]

    def _count_announcers(self, total_id: bytes) -> int:
        return len(self._announced[total_id].announcers)

    def _receive_microblock(self, received: MicroblockReceived, now: int) -> _Actions:
        search = self._search
        if (
            search is None
            or search.microblock is not None
            or received.total_id not in search.tried
            or received.total_id not in self._announced
        ):
            return []
        self._silent.discard(received.peer)
        if not self._settings.snapshots:
            return self._apply(ApplyMicroblock(received))
        search.microblock, search.width = received, 1
        search.tried.clear()
        return self._ask(search, now)

    def _receive_snapshot(self, received: MicroblockSnapshotReceived) -> _Actions:
        search = self._search
        if (
            search is None
            or search.microblock is None
            or search.microblock.total_id != received.total_id
        ):
            return []
        self._silent.discard(received.peer)
        return self._apply(ApplyMicroblock(search.microblock, received))

    def _apply(self, action: ApplyMicroblock) -> _Actions:
        self._search = None
        self._applying.add(action.microblock.total_id)
        return [action]

    def _applied(self, total_id: bytes, now: int, *, failed: bool) -> _Actions:
        self._applying.discard(total_id)
        self._done[total_id] = now + self._settings.processed
        known = self._announced.get(total_id)
        if known is not None:
            self._forget(total_id)
        if failed:
            return self._request_next(now)
        return [] if known is None else [Broadcast(known.inv, frozenset(known.announcers))]

    # --- timeouts and lost peers ------------------------------------------------------------------

    def _tick(self, now: int) -> _Actions:
        self._forget_old(now)
        search = self._search
        if search is not None and search.retry_at <= now:
            self._silent |= search.asked
            return self._ask(search, now)
        if self._resume_at is not None and self._resume_at <= now:
            self._resume_at = None
            return self._request_next(now)
        return []

    def _peer_left(self, peer: PeerId) -> None:
        self._of_peer.pop(peer, None)
        self._silent.discard(peer)
        if self._search is not None:
            self._search.asked.discard(peer)
        for total_id, each in list(self._announced.items()):
            each.announcers.pop(peer, None)
            if not each.announcers:
                self._forget(total_id)
