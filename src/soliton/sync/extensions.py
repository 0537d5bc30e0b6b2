"""The extension loader, which downloads the blocks of a better chain.

It requests block ids first, then all blocks at once. While one extension is applied, it loads the
next. It uses one peer at a time, the one with the best score. Each item has a timeout.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/network/RxExtensionLoader.scala``. Two things differ. A peer
that does not respond is blamed only while it still claims a better chain than ours, because some
nodes stay silent instead of sending an empty list. An extension of the last block may be applied in
parts if it gets too large to buffer.
"""

from __future__ import annotations

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

    They are in chain order; ``snapshots``, if requested, are in the same order.
    """

    peer: PeerId
    blocks: tuple[BlockReceived, ...]
    snapshots: tuple[SnapshotReceived, ...] = ()

    @property
    def ids(self) -> tuple[bytes, ...]:
        """The ids of the blocks, oldest first."""
        return tuple(each.block_id for each in self.blocks)


_Actions = list[Action | ApplyExtension]


class _AwaitingIds(msgspec.Struct):
    peer: PeerId
    until: int


class _AwaitingBlocks(msgspec.Struct):
    peer: PeerId
    until: int
    order: tuple[bytes, ...]
    forward: bool
    """Whether they extend the last block, so that a prefix of them is an extension as well."""
    blocks: dict[bytes, BlockReceived]
    snapshots: dict[bytes, SnapshotReceived]
    with_snapshots: bool
    score: int
    """The peer's score when the blocks were requested."""
    buffered: int = 0


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
        self._applying: ApplyExtension | None = None
        self._buffer: ApplyExtension | None = None

    @property
    def wake_at(self) -> int | None:
        """When the current request times out."""
        return None if self._state is None else self._state.until

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
                if self._state is None or event.peer is None:
                    self._state = None
                    return self._next(now)
            case Received(peer=peer, message=BlockIds(ids=ids) | Signatures(ids=ids)):
                return self._receive_ids(peer, ids, now)
            case BlockReceived() | SnapshotReceived():
                return self._receive_item(event, now)
            case Applied(failed=failed):
                return self._applied(failed=failed, now=now)
            case Tick() if self._state is not None and self._state.until <= now:
                return self._time_out()
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
        self._state = _AwaitingIds(peer, now + self._settings.timeout)
        return [Send(peer, message)]

    def _request(self, peer: PeerId) -> GetBlockIds | GetSignatures | None:
        version = self._versions.get(peer)
        if version is None:
            return None
        count = self._settings.max_rollback + 1
        # The extension being applied counts as ours, so that the next one is loaded meanwhile.
        applying = () if self._applying is None else self._applying.ids[::-1]
        ids = (*applying, *self._history.last_ids(count))[:count]
        if version >= BLOCK_IDS_FROM:
            return GetBlockIds(tuple(ids))
        signatures = tuple(each for each in ids if len(each) == SIGNATURE_BYTES)
        return GetSignatures(signatures) if signatures else None

    # --- ids --------------------------------------------------------------------------------------

    def _receive_ids(self, peer: PeerId, ids: Sequence[bytes], now: int) -> _Actions:
        state = self._state
        if not isinstance(state, _AwaitingIds) or state.peer != peer:
            return []
        self._state = None
        if not ids:
            return [Blame(peer, "it knows none of our last blocks: it is on another fork")]
        bad = next((each for each in ids if self._is_invalid(each)), None)
        if bad is not None:
            return [Blame(peer, f"its chain has the invalid block {bad.hex()}")]
        if len(set(ids)) < len(ids):
            return [Blame(peer, "it lists a block twice")]
        first = next((place for place, each in enumerate(ids) if not self._has(each)), len(ids))
        if first == len(ids):
            claims = self._best.peer == peer and self._best.score > self._history.score()
            return [NothingNew(peer)] if claims and self._applying is None else []
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
        self._state = _AwaitingBlocks(
            peer,
            now + self._settings.timeout,
            order,
            forward=ids[first - 1] == self._tip(),
            blocks={},
            snapshots={},
            with_snapshots=with_snapshots,
            score=self._best.score,
        )
        actions: _Actions = []
        for each in order:
            actions.append(Send(peer, GetBlock(each)))
            if with_snapshots:
                actions.append(Send(peer, GetBlockSnapshot(each)))
        return actions

    def _has(self, block_id: bytes) -> bool:
        is_applying = self._applying is not None and block_id in self._applying.ids
        return is_applying or self._history.knows(block_id)

    def _tip(self) -> bytes:
        return self._history.last_id() if self._applying is None else self._applying.ids[-1]

    # --- blocks -----------------------------------------------------------------------------------

    def _receive_item(self, item: BlockReceived | SnapshotReceived, now: int) -> _Actions:
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
        state.until = now + self._settings.timeout
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
        for place, each in enumerate(state.order):
            if each not in state.blocks or (state.with_snapshots and each not in state.snapshots):
                return place
        return len(state.order)

    def _finish(self, state: _AwaitingBlocks, count: int, now: int) -> _Actions:
        self._state = None
        order = state.order[:count]
        extension = ApplyExtension(
            state.peer,
            tuple(state.blocks[each] for each in order),
            tuple(state.snapshots[each] for each in order) if state.with_snapshots else (),
        )
        for parent, child in zip(extension.blocks, extension.blocks[1:], strict=False):
            if child.reference != parent.block_id:
                return [Blame(state.peer, "its blocks do not follow each other")]
        if self._applying is not None:
            self._buffer = extension
            return []
        return self._apply(extension, now)

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
        return self._next(now)

    # --- timeouts and lost peers ------------------------------------------------------------------

    def _peer_left(self, peer: PeerId, now: int) -> _Actions:
        if self._best.peer == peer:
            self._best = BestPeer(None, 0)
        if self._state is None or self._state.peer != peer:
            return []
        self._state = None
        return self._next(now)

    def _time_out(self) -> _Actions:
        state = self._state
        assert state is not None, "a request is pending"
        self._state = None
        is_prefetch = isinstance(state, _AwaitingIds) and self._applying is not None
        if is_prefetch:
            return []
        if self._best.peer != state.peer:
            return [NothingNew(state.peer)]
        if isinstance(state, _AwaitingIds):
            return [Blame(state.peer, "it did not respond to a request for block ids")]
        # A peer that has switched to another fork meanwhile no longer has the blocks.
        switched = state.score != self._best.score
        verdict = Verdict.SUSPEND if switched else Verdict.BLACKLIST
        return [Blame(state.peer, "it did not respond to a request for blocks", verdict)]
