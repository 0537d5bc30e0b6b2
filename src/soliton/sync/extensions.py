"""The extension loader, which downloads the blocks of a better chain.

It requests block ids first, then all blocks at once. While one extension is applied, it loads the
next. It uses one peer at a time, the one with the best score. Each item has a timeout. The whole
has a time in proportion to its bytes; after that the peer is slow.

A peer may rightly lose a block that it has listed, for a better one. So when nothing comes for a
while, the peer is asked for its ids again: what it still lists is awaited, what has come is used,
and the rest is requested anew. A slow peer is put aside as soon as another one has a better chain
than ours; what it owes remains due.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/network/RxExtensionLoader.scala``. What differs: slow peers
and lost blocks; a peer that does not respond is blamed only while it still
claims a better chain than ours, because some nodes stay silent instead of sending an empty list;
and an extension of the last block may be applied in parts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from soliton.sync.model import (
    Action,
    Blame,
    History,
    Joined,
    Left,
    NothingNew,
    PeerId,
    Received,
    Send,
    Slow,
    Tick,
)
from soliton.sync.scores import BestPeer
from soliton.wire.errors import Verdict
from soliton.wire.messages import (
    SIGNATURE_BYTES,
    BlockIds,
    BlockSnapshot,
    GetBlock,
    GetBlockIds,
    GetBlockSnapshot,
    GetSignatures,
    LegacyBlock,
    ProtobufBlock,
    Signatures,
)
from soliton.wire.versions import BLOCK_IDS_FROM, SNAPSHOTS_FROM, Version

PATIENCE: Final = 5_000
"""After this time (ms) a peer is slow, if it is not faster than ``FAST``."""
FAST: Final = 256
"""Bytes per ms (some 2 Mbit/s) that a peer delivers which is not slow."""
ASKED_AGAIN: Final = 2_000
"""After this time (ms) without an item a peer is asked again for its ids, then after twice that."""
ON_ANOTHER_FORK: Final = "it knows none of our last blocks: it is on another fork"
"""The reason to blacklist a peer whose chain cannot replace ours, as in the reference. One that
lacks a block which votes have made final is suspended: it may be an honest node from the smaller
side of a partition, which can come to our side only while it is connected to us.
"""
MAX_REQUESTS_KEPT: Final = 4
"""Earlier requests for ids whose answers are recognized."""
MAX_BUFFERED_BYTES: Final = 128 * 1024 * 1024
"""The limit for blocks and snapshots of one extension; a hundred full blocks take less."""


class LoaderSettings(msgspec.Struct, frozen=True):
    """``timeout`` (ms) for each item (``synchronization.synchronization-timeout``);
    ``max_rollback`` is how many blocks may be replaced by a better chain; ``snapshots`` loads
    snapshots instead of executing (``enable-light-mode``).
    """

    timeout: int = 60_000
    max_rollback: int = 100
    snapshots: bool = False


DEFAULTS: Final = LoaderSettings()


class BlockReceived(msgspec.Struct, frozen=True):
    """A block sent by a peer, with the id and reference from its header."""

    peer: PeerId
    block_id: bytes
    reference: bytes
    message: LegacyBlock | ProtobufBlock


class SnapshotReceived(msgspec.Struct, frozen=True):
    """The snapshots of a block, sent by a peer."""

    peer: PeerId
    block_id: bytes
    message: BlockSnapshot


class Applied(msgspec.Struct, frozen=True):
    """An extension has been applied completely, or not at all (``failed``)."""

    failed: bool = False


class ApplyExtension(msgspec.Struct, frozen=True):
    """Append these blocks, after rolling back to the block that the first of them references.

    They are in chain order; ``snapshots``, if requested, are in the same order. ``base`` is the
    block below them by the peer's list, and was ours when that came.
    """

    peer: PeerId
    blocks: tuple[BlockReceived, ...]
    snapshots: tuple[SnapshotReceived, ...] = ()
    base: bytes = b""

    @property
    def ids(self) -> tuple[bytes, ...]:
        """The ids of the blocks, oldest first."""
        return tuple(each.block_id for each in self.blocks)


_Actions = list[Action | ApplyExtension]


class _AwaitingIds(msgspec.Struct):
    peer: PeerId
    until: int
    slow_at: int
    score: int


class _AwaitingBlocks(msgspec.Struct):
    peer: PeerId
    began: int
    until: int
    base: bytes
    """The block below ``order``."""
    order: tuple[bytes, ...]
    forward: bool
    """Whether they extend the last block, so that a prefix of them is an extension as well."""
    blocks: dict[bytes, BlockReceived]
    snapshots: dict[bytes, SnapshotReceived]
    with_snapshots: bool
    score: int
    """The peer's score when the blocks were requested."""
    ask_at: int
    """When the peer is asked for its ids again."""
    ask_after: int
    requested: set[bytes]
    """The blocks that were requested once more."""
    asked: bool = False
    buffered: int = 0
    received: int = 0

    def has(self, block_id: bytes) -> bool:
        """Whether all of a block has come."""
        wanted = not self.with_snapshots or block_id in self.snapshots
        return block_id in self.blocks and wanted


class _Owed(msgspec.Struct):
    """What a slow peer that was put aside still owes: ids, or the blocks that are ``missing``."""

    until: int
    score: int
    missing: set[bytes] | None


class ExtensionLoader:
    """Loads one extension after another."""

    def __init__(
        self,
        history: History,
        is_invalid: Callable[[bytes], bool],
        settings: LoaderSettings = DEFAULTS,
    ) -> None:
        """``is_invalid`` returns whether the block with this id was recently refused."""
        self._history = history
        self._is_invalid = is_invalid
        self._settings = settings
        self._versions: dict[PeerId, Version] = {}
        self._best = BestPeer(None, 0)
        self._state: _AwaitingIds | _AwaitingBlocks | None = None
        self._sent: frozenset[bytes] = frozenset()
        """The ids of the last request."""
        self._sent_before: deque[frozenset[bytes]] = deque(maxlen=MAX_REQUESTS_KEPT)
        """Those of earlier requests, whose answers may be under way."""
        self._slow: set[PeerId] = set()
        self._owed: dict[PeerId, _Owed] = {}
        self._applying: ApplyExtension | None = None
        self._buffer: ApplyExtension | None = None

    @property
    def wake_at(self) -> int | None:
        """When a request times out, its peer gets slow, or is asked again."""
        times = [each.until for each in self._owed.values()]
        state = self._state
        if state is not None:
            times.append(state.until)
            if self._may_be_slow(state):
                times.append(self._slow_at(state))
            if isinstance(state, _AwaitingBlocks) and not state.asked:
                times.append(state.ask_at)
        return min(times, default=None)

    @property
    def _patience(self) -> int:
        return min(PATIENCE, self._settings.timeout // 2)

    def _slow_at(self, state: _AwaitingIds | _AwaitingBlocks) -> int:
        if isinstance(state, _AwaitingIds):
            return state.slow_at
        return state.began + self._patience + state.received // FAST

    def _may_be_slow(self, state: _AwaitingIds | _AwaitingBlocks) -> bool:
        # Nothing may follow the extension that is being applied.
        is_prefetch = isinstance(state, _AwaitingIds) and self._applying is not None
        return state.peer not in self._slow and not is_prefetch

    @property
    def busy_with(self) -> PeerId | None:
        """The peer of the current request."""
        return None if self._state is None else self._state.peer

    @property
    def is_applying(self) -> bool:
        """Whether an extension is being applied."""
        return self._applying is not None

    def expects(self, peer: PeerId, block_id: bytes) -> bool:
        """Whether a block was requested; any other is an unsolicited new block."""
        state = self._state
        if not isinstance(state, _AwaitingBlocks) or state.peer != peer:
            return False
        return block_id in state.order and block_id not in state.blocks

    def handle(
        self,
        event: Joined
        | Left
        | Received
        | BestPeer
        | BlockReceived
        | SnapshotReceived
        | Applied
        | Tick,
        now: int,
    ) -> _Actions:
        """Process an event and return the resulting actions."""
        match event:
            case Joined(peer=peer, version=version):
                self._versions[peer] = version
            case Left(peer=peer):
                self._versions.pop(peer, None)
                return self._peer_left(peer, now)
            case BestPeer():
                self._best = event
                state = self._state
                if event.peer is None:
                    self._state = None
                elif state is not None and event.peer != state.peer and state.peer in self._slow:
                    return self._put_aside(state, now)
                return self._next(now)
            case Received(peer=peer, message=BlockIds(ids=ids) | Signatures(ids=ids)):
                return self._receive_ids(peer, ids, now)
            case BlockReceived() | SnapshotReceived():
                return self._receive_item(event, now)
            case Applied(failed=failed):
                return self._applied(failed=failed, now=now)
            case Tick():
                return self._tick(now)
            case _:
                pass
        return []

    # --- requests ---------------------------------------------------------------------------------

    def _next(self, now: int) -> _Actions:
        """Request the next ids from the best peer, unless enough is under way."""
        peer = self._best.peer
        if self._state is not None or self._buffer is not None or peer is None:
            return []
        message = self._request(peer)
        if message is None:
            return []
        until = now + self._settings.timeout
        self._state = _AwaitingIds(peer, until, now + self._patience, self._best.score)
        return [Send(peer, message)]

    def _request(self, peer: PeerId) -> GetBlockIds | GetSignatures | None:
        version = self._versions.get(peer)
        if version is None:
            return None
        count = self._settings.max_rollback + 1
        # What is being applied counts as ours, so that the next one is loaded meanwhile.
        ids = (*self._coming()[::-1], *self._history.last_ids(count))[:count]
        self._sent_before.append(self._sent)
        self._sent = frozenset(ids)
        if version >= BLOCK_IDS_FROM:
            return GetBlockIds(tuple(ids))
        signatures = tuple(each for each in ids if len(each) == SIGNATURE_BYTES)
        return GetSignatures(signatures) if signatures else None

    # --- ids --------------------------------------------------------------------------------------

    def _receive_ids(self, peer: PeerId, ids: Sequence[bytes], now: int) -> _Actions:
        owed = self._owed.get(peer)
        if owed is not None and owed.missing is None:
            del self._owed[peer]
        state = self._state
        if state is None or state.peer != peer or self._is_outdated(ids):
            return []
        before: _AwaitingBlocks | None = None
        if isinstance(state, _AwaitingBlocks):
            if not state.asked:
                return []
            before = state
        self._state = None
        reason = self._flaw(ids)
        if reason:
            is_parted = not ids and self._history.ends_at_a_vote()
            return [Blame(peer, reason, Verdict.SUSPEND if is_parted else Verdict.BLACKLIST)]
        first = next((place for place, each in enumerate(ids) if not self._has(each)), len(ids))
        if first == len(ids):
            claims = self._best.peer == peer and self._best.score > self._history.score()
            return [NothingNew(peer)] if claims and self._applying is None else []
        if first == 0 and ids[0] in self._sent:
            # We had it when we asked, and have given it up since then.
            return self._next(now)
        if first == 0:
            return [
                Blame(peer, "its list begins with a block that we do not have", Verdict.SUSPEND)
            ]
        order = tuple(ids[first:])
        if any(map(self._has, order)):
            # We have every ancestor of our own blocks.
            reason = "it lists a block of ours behind one that we do not have"
            return [Blame(peer, reason, Verdict.SUSPEND)]
        # Blocks of a peer that has no snapshots are executed.
        version = self._versions.get(peer)
        with_snapshots = (
            self._settings.snapshots and version is not None and version >= SNAPSHOTS_FROM
        )
        self._state = awaited = _AwaitingBlocks(
            peer,
            began=now,
            until=now + self._settings.timeout,
            base=ids[first - 1],
            order=order,
            forward=ids[first - 1] == self._tip(),
            blocks={},
            snapshots={},
            with_snapshots=with_snapshots,
            score=self._best.score,
            ask_at=now + ASKED_AGAIN,
            ask_after=ASKED_AGAIN,
            requested=set(),
        )
        again = set() if before is None else self._resume(awaited, before, now)
        actions: _Actions = []
        for each in order:
            if before is not None and each in before.order and each not in again:
                continue
            if each not in awaited.blocks:
                actions.append(Send(peer, GetBlock(each)))
            if with_snapshots and each not in awaited.snapshots:
                actions.append(Send(peer, GetBlockSnapshot(each)))
        return [*actions, *self._use_prefix(awaited, now)]

    def _flaw(self, ids: Sequence[bytes]) -> str:
        """Return what is wrong with a list, whatever our chain is."""
        if not ids:
            return ON_ANOTHER_FORK
        bad = next((each for each in ids if self._is_invalid(each)), None)
        if bad is not None:
            return f"its chain has the invalid block {bad.hex()}"
        return "it lists a block twice" if len(set(ids)) < len(ids) else ""

    def _is_outdated(self, ids: Sequence[bytes]) -> bool:
        """Whether a list answers an earlier request, with blocks that are no longer ours."""
        if not ids or ids[0] in self._sent or self._has(ids[0]):
            return False
        return any(ids[0] in each for each in self._sent_before)

    def _resume(self, state: _AwaitingBlocks, before: _AwaitingBlocks, now: int) -> set[bytes]:
        """Continue with what has come of an earlier list. Return what is requested once more: the
        peer has answered all earlier requests by now.
        """
        kept = set(state.order)
        state.began, state.until, state.received = before.began, before.until, before.received
        state.blocks = {each: item for each, item in before.blocks.items() if each in kept}
        state.snapshots = {each: item for each, item in before.snapshots.items() if each in kept}
        state.buffered = sum(len(each.message.data) for each in state.blocks.values())
        state.buffered += sum(len(each.message.data) for each in state.snapshots.values())
        state.ask_after = 2 * before.ask_after
        state.ask_at = now + state.ask_after
        lost = {each for each in state.order if each in before.order and not state.has(each)}
        again = lost - before.requested
        state.requested = before.requested | again
        return again

    def _use_prefix(self, state: _AwaitingBlocks, now: int) -> _Actions:
        """Apply the blocks that have come, if they extend the last block, and await the others."""
        count = self._complete_prefix(state)
        if not count or not state.forward or self._buffer is not None:
            return []
        if count == len(state.order):
            return self._finish(state, count, now)
        extension = self._cut(state, count)
        if isinstance(extension, Blame):
            self._state = None
            return [extension]
        if self._applying is not None:
            self._buffer = extension
            return []
        self._applying = extension
        return [extension]

    def _has(self, block_id: bytes) -> bool:
        return block_id in self._coming() or self._history.knows(block_id)

    def _tip(self) -> bytes:
        coming = self._coming()
        return coming[-1] if coming else self._history.last_id()

    def _coming(self) -> tuple[bytes, ...]:
        """Return the ids of the blocks that are being applied, or wait for that."""
        extensions = (self._applying, self._buffer)
        return tuple(each for it in extensions if it is not None for each in it.ids)

    # --- blocks -----------------------------------------------------------------------------------

    def _receive_item(self, item: BlockReceived | SnapshotReceived, now: int) -> _Actions:
        owed = self._owed.get(item.peer)
        if owed is not None and owed.missing is not None and item.block_id in owed.missing:
            owed.until = now + self._settings.timeout
            if isinstance(item, BlockReceived):
                owed.missing.discard(item.block_id)
            if not owed.missing:
                del self._owed[item.peer]
        state = self._state
        if not isinstance(state, _AwaitingBlocks) or state.peer != item.peer:
            return []
        if item.block_id not in state.order:
            return []
        if isinstance(item, BlockReceived):
            if item.block_id in state.blocks:
                return []
            state.blocks[item.block_id] = item
        else:
            if item.block_id in state.snapshots or not state.with_snapshots:
                return []
            state.snapshots[item.block_id] = item
        state.buffered += len(item.message.data)
        state.received += len(item.message.data)
        state.until = now + self._settings.timeout
        state.ask_at = now + state.ask_after
        expected = len(state.order)
        if len(state.blocks) == expected and (
            not state.with_snapshots or len(state.snapshots) == expected
        ):
            return self._finish(state, expected, now)
        if state.buffered > MAX_BUFFERED_BYTES:
            complete = self._complete_prefix(state)
            if state.forward and complete:
                return self._finish(state, complete, now)
            self._state = None
            reason = f"its fork takes more than {MAX_BUFFERED_BYTES} bytes"
            return [Blame(item.peer, reason, Verdict.SUSPEND)]
        return []

    def _complete_prefix(self, state: _AwaitingBlocks) -> int:
        """Return how many of the first blocks have arrived, with their snapshots if requested."""
        missing = (place for place, each in enumerate(state.order) if not state.has(each))
        return next(missing, len(state.order))

    def _finish(self, state: _AwaitingBlocks, count: int, now: int) -> _Actions:
        self._state = None
        extension = self._cut(state, count)
        if isinstance(extension, Blame):
            return [extension]
        if self._applying is not None:
            self._buffer = extension
            return []
        return self._apply(extension, now)

    def _cut(self, state: _AwaitingBlocks, count: int) -> ApplyExtension | Blame:
        """Take the first blocks out of what has come."""
        order, state.order = state.order[:count], state.order[count:]
        extension = ApplyExtension(
            state.peer,
            tuple(state.blocks.pop(each) for each in order),
            tuple(state.snapshots.pop(each) for each in order) if state.with_snapshots else (),
            state.base,
        )
        state.base = order[-1]
        for parent, child in zip(extension.blocks, extension.blocks[1:], strict=False):
            if child.reference != parent.block_id:
                return Blame(state.peer, "its blocks do not follow each other")
        return extension

    def _apply(self, extension: ApplyExtension, now: int) -> _Actions:
        self._applying = extension
        return [extension, *self._next(now)]

    def _applied(self, *, failed: bool, now: int) -> _Actions:
        self._applying = None
        buffer, self._buffer = self._buffer, None
        if failed:
            # The pending request extends the chain that has just been refused.
            self._state = None
        elif buffer is not None:
            return self._apply(buffer, now)
        elif isinstance(self._state, _AwaitingIds):
            self._state.slow_at = now + self._patience
        return self._next(now)

    # --- timeouts and lost peers ------------------------------------------------------------------

    def _peer_left(self, peer: PeerId, now: int) -> _Actions:
        self._slow.discard(peer)
        self._owed.pop(peer, None)
        if self._best.peer == peer:
            self._best = BestPeer(None, 0)
        state = self._state
        if state is None or state.peer != peer:
            return []
        used = self._use_prefix(state, now) if isinstance(state, _AwaitingBlocks) else []
        self._state = None
        return [*used, *self._next(now)]

    def _put_aside(self, state: _AwaitingIds | _AwaitingBlocks, now: int) -> _Actions:
        """Use another peer than a slow one."""
        missing = None
        used: _Actions = []
        if isinstance(state, _AwaitingBlocks):
            used = self._use_prefix(state, now)
            missing = {each for each in state.order if each not in state.blocks}
        self._owed[state.peer] = _Owed(state.until, state.score, missing)
        self._state = None
        return [*used, *self._next(now)]

    def _tick(self, now: int) -> _Actions:
        actions: _Actions = []
        for peer, owed in list(self._owed.items()):
            if owed.until <= now:
                del self._owed[peer]
                actions.append(self._silence(peer, owed.score, ids=owed.missing is None))
        state = self._state
        if state is None:
            return actions
        if state.until <= now:
            return actions + self._time_out(state, now)
        if isinstance(state, _AwaitingBlocks) and state.ask_at <= now and not state.asked:
            message = self._request(state.peer)
            if message is not None:
                state.asked = True
                actions.append(Send(state.peer, message))
        if self._may_be_slow(state) and self._slow_at(state) <= now:
            self._slow.add(state.peer)
            actions.append(Slow(state.peer))
        return actions

    def _time_out(self, state: _AwaitingIds | _AwaitingBlocks, now: int) -> _Actions:
        used = self._use_prefix(state, now) if isinstance(state, _AwaitingBlocks) else []
        self._state = None
        ids = isinstance(state, _AwaitingIds)
        if ids and self._applying is not None:
            return []
        if self._best.peer != state.peer:
            return [NothingNew(state.peer), *used]
        return [self._silence(state.peer, state.score, ids=ids), *used]

    def _silence(self, peer: PeerId, score: int, *, ids: bool) -> Blame:
        if ids:
            return Blame(peer, "it did not respond to a request for block ids")
        # A peer that has switched to another fork meanwhile no longer has the blocks.
        switched = peer != self._best.peer or score != self._best.score
        verdict = Verdict.SUSPEND if switched else Verdict.BLACKLIST
        return Blame(peer, "it did not respond in time to a request for blocks", verdict)
