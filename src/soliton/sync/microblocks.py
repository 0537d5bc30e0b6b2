"""Microblocks: which peers have which, where to request the next one, and whom to announce it to.

A node that lacks an announced microblock requests it from one of the peers that announced it, and
after a timeout from another one; then it gives up. An appended microblock is announced to all peers
that did not announce it.

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
ATTEMPTS: Final = 2


class MicroblockSettings(msgspec.Struct, frozen=True):
    """Times in ms, of ``synchronization.micro-block-synchronizer``: the timeout of a request
    (``wait-response-timeout``), the lifetime of an announcement (``inv-cache-timeout``), and how
    long a processed microblock is remembered (``processed-micro-blocks-cache-timeout``).
    ``snapshots`` loads snapshots instead of executing (``enable-light-mode``).
    """

    wait: int = 2_000
    announced: int = 45_000
    processed: int = 180_000
    snapshots: bool = False


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


class _PendingRequest(msgspec.Struct):
    """A request in flight. At ``retry_at`` another peer is tried, while ``attempts`` are left."""

    total_id: bytes
    attempts: int
    retry_at: int
    tried: set[PeerId]
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
        self._request: _PendingRequest | None = None
        self._done: dict[bytes, int] = {}
        self._applying: set[bytes] = set()

    @property
    def wake_at(self) -> int | None:
        """When a request is retried, or an announcement expires."""
        times = [each.until for each in self._announced.values()]
        if self._request is not None:
            times.append(self._request.retry_at)
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
        if inv.total_id in self._done:
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
            if len(self._announced) >= MAX_ANNOUNCED:
                return []
            self._of_peer[peer] = count + 1
            known = _Announcement(inv, peer, {}, now + self._settings.announced)
            self._announced[inv.total_id] = known
            self._next.setdefault(inv.reference, {})[inv.total_id] = None
        known.announcers[peer] = None
        return self._request_next(now)

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
        """Request the microblock that extends the last block, if a peer has announced it."""
        ids = self._next.get(self._history.last_id())
        if not ids or not self._applying.isdisjoint(ids):
            return []
        if self._request is not None and self._request.total_id in ids:
            return []
        # Anybody may sign an announcement, so the one that most peers have made.
        total_id = max(ids, key=lambda each: len(self._announced[each].announcers))
        self._request = _PendingRequest(total_id, ATTEMPTS, now, set())
        return self._send_request(now)

    def _send_request(self, now: int) -> _Actions:
        request = self._request
        assert request is not None, "a request is in flight"
        known = self._announced.get(request.total_id)
        announcers = () if known is None else known.announcers
        untried = [each for each in announcers if each not in request.tried]
        if not request.attempts or not untried:
            # No peer responds: forget the microblock until it is announced again.
            self._request = None
            if known is not None:
                self._forget(request.total_id)
            return self._request_next(now)
        peer = self._choose(untried)
        request.tried.add(peer)
        request.attempts -= 1
        request.retry_at = now + self._settings.wait
        kind = GetMicroblock if request.microblock is None else GetMicroblockSnapshot
        return [Send(peer, kind(request.total_id))]

    def _receive_microblock(self, received: MicroblockReceived, now: int) -> _Actions:
        request = self._request
        if (
            request is None
            or request.total_id != received.total_id
            or request.microblock is not None
        ):
            return []
        if not self._settings.snapshots:
            return self._apply(ApplyMicroblock(received))
        request.microblock = received
        request.attempts, request.tried = ATTEMPTS, set()
        return self._send_request(now)

    def _receive_snapshot(self, received: MicroblockSnapshotReceived) -> _Actions:
        request = self._request
        if request is None or request.total_id != received.total_id or request.microblock is None:
            return []
        return self._apply(ApplyMicroblock(request.microblock, received))

    def _apply(self, action: ApplyMicroblock) -> _Actions:
        self._request = None
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
        if self._request is not None and self._request.retry_at <= now:
            return self._send_request(now)
        return []

    def _peer_left(self, peer: PeerId) -> None:
        self._of_peer.pop(peer, None)
        for total_id, each in list(self._announced.items()):
            each.announcers.pop(peer, None)
            if not each.announcers and not self._is_requested(total_id):
                self._forget(total_id)

    def _is_requested(self, total_id: bytes) -> bool:
        return self._request is not None and self._request.total_id == total_id
