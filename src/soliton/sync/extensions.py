"""The loader of extensions: how a node gets the blocks of a better chain.

Ids first, then blocks, all asked for at once; while one extension is applied, the next is loaded.
One peer is asked at a time, the one with the best score. Silence is limited for each item.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/network/RxExtensionLoader.scala``. Two things differ, both
for peers that stay silent where others say that there is nothing: a peer that does not answer is
blamed only while it still claims a better chain than ours, and an extension of the last block may
be applied in parts when it gets too large to hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from soliton.sync.model import (
    Action,
    Blame,
    Heard,
    History,
    Joined,
    Left,
    NothingNew,
    PeerId,
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

MAX_HELD_BYTES: Final = 128 * 1024 * 1024
"""Blocks and snapshots of one extension; a hundred full blocks have less."""


class LoaderSettings(msgspec.Struct, frozen=True):
    """``timeout`` (ms) for each item (``synchronization.synchronization-timeout``);
    ``max_rollback`` blocks may be given up for a better chain; ``snapshots`` are wanted in place of
    execution (``enable-light-mode``).
    """

    timeout: int = 60_000
    max_rollback: int = 100
    snapshots: bool = False


USUAL: Final = LoaderSettings()


class BlockCame(msgspec.Struct, frozen=True):
    """A block that a peer has sent, of which somebody has read the header."""

    peer: PeerId
    block_id: bytes
    reference: bytes
    message: LegacyBlock | ProtobufBlock


class SnapshotCame(msgspec.Struct, frozen=True):
    """The snapshots of a block that a peer has sent, of which somebody has read the id."""

    peer: PeerId
    block_id: bytes
    message: BlockSnapshot


class Applied(msgspec.Struct, frozen=True):
    """An extension has been applied as a whole, or not at all (``failed``)."""

    failed: bool = False


class ApplyExtension(msgspec.Struct, frozen=True):
    """Put these blocks on the chain, after those of ours that they do not build on are taken off.

    Their order is that of the chain; ``snapshots`` are those of the same places, where wanted.
    """

    peer: PeerId
    blocks: tuple[BlockCame, ...]
    snapshots: tuple[SnapshotCame, ...] = ()

    @property
    def ids(self) -> tuple[bytes, ...]:
        """The ids of the blocks, the oldest first."""
        return tuple(each.block_id for each in self.blocks)


class _WaitsForIds(msgspec.Struct):
    peer: PeerId
    until: int


class _WaitsForBlocks(msgspec.Struct):
    peer: PeerId
    until: int
    order: tuple[bytes, ...]
    forward: bool
    """Whether they build on the last block: then a part of them is an extension as well."""
    blocks: dict[bytes, BlockCame]
    snapshots: dict[bytes, SnapshotCame]
    with_snapshots: bool
    score: int
    """What the peer's chain was worth when its blocks were asked for."""
    held: int = 0


class ExtensionLoader:
    """Loads one extension after the other."""

    def __init__(
        self,
        history: History,
        is_invalid: Callable[[bytes], bool],
        settings: LoaderSettings = USUAL,
    ) -> None:
        """``is_invalid`` says whether a block with this id was refused lately."""
        self._history = history
        self._is_invalid = is_invalid
        self._settings = settings
        self._versions: dict[PeerId, Version] = {}
        self._best = BestPeer(None, 0)
        self._state: _WaitsForIds | _WaitsForBlocks | None = None
        self._applying: ApplyExtension | None = None
        self._buffer: ApplyExtension | None = None

    @property
    def wake_at(self) -> int | None:
        """When patience ends."""
        return None if self._state is None else self._state.until

    @property
    def busy_with(self) -> PeerId | None:
        """Who is being asked."""
        return None if self._state is None else self._state.peer

    @property
    def is_applying(self) -> bool:
        """Whether an extension is being applied."""
        return self._applying is not None

    def expects(self, peer: PeerId, block_id: bytes) -> bool:
        """Whether a block was asked for; others are news that a peer tells by itself."""
        state = self._state
        if not isinstance(state, _WaitsForBlocks) or state.peer != peer:
            return False
        return block_id in state.order and block_id not in state.blocks

    def handle(
        self,
        event: Joined | Left | Heard | BestPeer | BlockCame | SnapshotCame | Applied | Tick,
        now: int,
    ) -> list[Action | ApplyExtension]:
        """What follows from an event."""
        match event:
            case Joined(peer=peer, version=version):
                self._versions[peer] = version
            case Left(peer=peer):
                self._versions.pop(peer, None)
                return self._lose(peer, now)
            case BestPeer():
                self._best = event
                if self._state is None or event.peer is None:
                    self._state = None
                    return self._next(now)
            case Heard(peer=peer, message=BlockIds(ids=ids) | Signatures(ids=ids)):
                return self._take_ids(peer, ids, now)
            case BlockCame() | SnapshotCame():
                return self._take_item(event, now)
            case Applied(failed=failed):
                return self._applied(failed=failed, now=now)
            case Tick() if self._state is not None and self._state.until <= now:
                return self._lose_patience()
            case _:
                pass
        return []

    # --- asking -----------------------------------------------------------------------------------

    def _next(self, now: int) -> list[Action | ApplyExtension]:
        """Ask the best peer what comes next, unless enough is on its way."""
        peer = self._best.peer
        if self._state is not None or self._buffer is not None or peer is None:
            return []
        message = self._question(peer)
        if message is None:
            return []
        self._state = _WaitsForIds(peer, now + self._settings.timeout)
        return [Send(peer, message)]

    def _question(self, peer: PeerId) -> GetBlockIds | GetSignatures | None:
        version = self._versions.get(peer)
        if version is None:
            return None
        count = self._settings.max_rollback + 1
        coming = () if self._applying is None else self._applying.ids[::-1]
        # What is being applied counts as ours: so the next part is there when this one is done.
        ids = (*coming, *self._history.last_ids(count))[:count]
        if version >= BLOCK_IDS_FROM:
            return GetBlockIds(tuple(ids))
        old = tuple(each for each in ids if len(each) == SIGNATURE_BYTES)
        return GetSignatures(old) if old else None

    # --- ids --------------------------------------------------------------------------------------

    def _take_ids(
        self, peer: PeerId, ids: Sequence[bytes], now: int
    ) -> list[Action | ApplyExtension]:
        state = self._state
        if not isinstance(state, _WaitsForIds) or state.peer != peer:
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
            # What a block of ours builds on we have as well.
            reason = "it lists a block of ours behind one that we do not have"
            return [Blame(peer, reason, Verdict.SUSPEND)]
        # Of a peer that has none its blocks are taken alone, and executed.
        version = self._versions.get(peer)
        with_snapshots = (
            self._settings.snapshots and version is not None and version >= SNAPSHOTS_FROM
        )
        self._state = _WaitsForBlocks(
            peer,
            now + self._settings.timeout,
            order,
            forward=ids[first - 1] == self._tip(),
            blocks={},
            snapshots={},
            with_snapshots=with_snapshots,
            score=self._best.score,
        )
        actions: list[Action | ApplyExtension] = []
        for each in order:
            actions.append(Send(peer, GetBlock(each)))
            if with_snapshots:
                actions.append(Send(peer, GetBlockSnapshot(each)))
        return actions

    def _has(self, block_id: bytes) -> bool:
        coming = self._applying is not None and block_id in self._applying.ids
        return coming or self._history.knows(block_id)

    def _tip(self) -> bytes:
        return self._history.last_id() if self._applying is None else self._applying.ids[-1]

    # --- blocks -----------------------------------------------------------------------------------

    def _take_item(self, item: BlockCame | SnapshotCame, now: int) -> list[Action | ApplyExtension]:
        state = self._state
        if not isinstance(state, _WaitsForBlocks) or state.peer != item.peer:
            return []
        if item.block_id not in state.order:
            return []
        if isinstance(item, BlockCame):
            if item.block_id in state.blocks:
                return []
            state.blocks[item.block_id] = item
        else:
            if item.block_id in state.snapshots or not state.with_snapshots:
                return []
            state.snapshots[item.block_id] = item
        state.held += len(item.message.data)
        state.until = now + self._settings.timeout
        wanted = len(state.order)
        if len(state.blocks) == wanted and (
            not state.with_snapshots or len(state.snapshots) == wanted
        ):
            return self._finish(state, wanted, now)
        if state.held > MAX_HELD_BYTES:
            whole = self._whole(state)
            if state.forward and whole:
                return self._finish(state, whole, now)
            self._state = None
            reason = f"its fork takes more than {MAX_HELD_BYTES} bytes"
            return [Blame(item.peer, reason, Verdict.SUSPEND)]
        return []

    def _whole(self, state: _WaitsForBlocks) -> int:
        """How many blocks from the first on are there with all that belongs to them."""
        for place, each in enumerate(state.order):
            if each not in state.blocks or (state.with_snapshots and each not in state.snapshots):
                return place
        return len(state.order)

    def _finish(
        self, state: _WaitsForBlocks, count: int, now: int
    ) -> list[Action | ApplyExtension]:
        self._state = None
        order = state.order[:count]
        extension = ApplyExtension(
            state.peer,
            tuple(state.blocks[each] for each in order),
            tuple(state.snapshots[each] for each in order) if state.with_snapshots else (),
        )
        for one, following in zip(extension.blocks, extension.blocks[1:], strict=False):
            if following.reference != one.block_id:
                return [Blame(state.peer, "its blocks do not follow each other")]
        if self._applying is not None:
            self._buffer = extension
            return []
        return self._apply(extension, now)

    def _apply(self, extension: ApplyExtension, now: int) -> list[Action | ApplyExtension]:
        self._applying = extension
        return [extension, *self._next(now)]

    def _applied(self, *, failed: bool, now: int) -> list[Action | ApplyExtension]:
        self._applying = None
        buffer, self._buffer = self._buffer, None
        if failed:
            # What is on its way builds on what has just been refused.
            self._state = None
        elif buffer is not None:
            return self._apply(buffer, now)
        return self._next(now)

    # --- the end of patience ----------------------------------------------------------------------

    def _lose(self, peer: PeerId, now: int) -> list[Action | ApplyExtension]:
        if self._best.peer == peer:
            self._best = BestPeer(None, 0)
        if self._state is None or self._state.peer != peer:
            return []
        self._state = None
        return self._next(now)

    def _lose_patience(self) -> list[Action | ApplyExtension]:
        state = self._state
        assert state is not None, "somebody was waited for"
        self._state = None
        asked_early = isinstance(state, _WaitsForIds) and self._applying is not None
        if asked_early:
            return []
        if self._best.peer != state.peer:
            return [NothingNew(state.peer)]
        if isinstance(state, _WaitsForIds):
            return [Blame(state.peer, "it was asked for block ids and said nothing")]
        # Who has changed to another fork meanwhile has not the blocks any more, and says nothing.
        moved = state.score != self._best.score
        verdict = Verdict.SUSPEND if moved else Verdict.BLACKLIST
        return [Blame(state.peer, "it was asked for blocks and said nothing", verdict)]
