"""The chain as served to peers: scores, ids, blocks, microblocks of the last block, snapshots.

What lives here: answers to requests, read from the present chain. What does not: changing the chain
(``receiving``), connections (``core``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/network/HistoryReplierL1.scala``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

from soliton.chain import blocks, snapshots
from soliton.chain.blocks import Block
from soliton.chain.snapshots import BlockSnapshot, BlockSnapshotEncoder
from soliton.chain.transactions import codec
from soliton.ledger.apply import Outcome
from soliton.ledger.finality import GENESIS_HEIGHT
from soliton.ledger.snapshots import snapshot_of
from soliton.ledger.state import Status
from soliton.node.chain_writer import ChainWriter
from soliton.steps import Steps, run_steps
from soliton.storage.layout import TransactionLocation
from soliton.wire import messages
from soliton.wire.messages import Message
from soliton.wire.versions import BLOCK_IDS_FROM, Version

FOLLOWING_IDS: Final = 100
"""How many ids an answer has after the common one."""
MAX_MICROBLOCKS: Final = 1_000
"""Microblocks of one block kept for peers: at the shortest interval there are fewer."""
STEP_TRANSACTIONS: Final = 16
"""Transactions whose snapshots are encoded in one step, some two milliseconds."""

ChainRequest = (
    messages.GetBlock
    | messages.GetBlockIds
    | messages.GetSignatures
    | messages.GetMicroblock
    | messages.GetBlockSnapshot
    | messages.GetMicroblockSnapshot
)
"""Requests that are answered from the chain."""


def block_message(block: Block) -> messages.LegacyBlock | messages.ProtobufBlock:
    """Return the message with a block, in the encoding of its version."""
    return _message(block.data)


class NodeHistory:
    """The chain of a node as its peers see it; implements ``soliton.sync.model.History``."""

    def __init__(self, chain: ChainWriter) -> None:
        self._chain = chain
        self._microblocks: dict[bytes, Message] = {}
        self._microblocks_height = 0

    def score(self) -> int:
        """Return the score of the chain, including the last block."""
        return int.from_bytes(self._chain.meta(self._chain.height).score, "big")

    def last_ids(self, count: int) -> Sequence[bytes]:
        """Return the ids of the last blocks, the newest first, down to the last final one: no chain
        that parts from ours below that can replace ours.
        """
        top, final = self._chain.height, self._chain.finalized_height
        lowest = max(final, top - count + 1)
        return [self._chain.meta(each).id for each in range(top, lowest - 1, -1)]

    def ends_at_a_vote(self) -> bool:
        """Whether ``last_ids`` ends at a block that votes have made final."""
        return self._chain.voted_height >= self._chain.finalized_height > GENESIS_HEIGHT

    def knows(self, block_id: bytes) -> bool:
        """Whether a block is in the chain, also for earlier ids of the last block."""
        return self._chain.height_of(block_id) is not None

    def last_id(self) -> bytes:
        """Return the present id of the last block."""
        return self._chain.last_block.id

    def generator(self) -> bytes:
        """Return the public key of the last block's generator."""
        return self._chain.last_block.header.generator

    def keep_microblock(self, total_id: bytes, message: Message) -> None:
        """Keep a microblock of the last block for peers, and drop those of older blocks."""
        height = self._chain.height
        if height != self._microblocks_height:
            self._microblocks.clear()
            self._microblocks_height = height
        self._microblocks[total_id] = message
        if len(self._microblocks) > MAX_MICROBLOCKS:
            del self._microblocks[next(iter(self._microblocks))]

    def answer(self, request: ChainRequest, version: Version) -> Message | None:
        """Return the answer for a peer of this version; ``None`` where the reference sends none.

        Raises ``NotKept`` where a pruned node cannot answer: the connection ends then, and the peer
        asks another one. Without an answer it would wait, and blame this node.
        """
        return run_steps(self.answering(request, version))

    def answering(self, request: ChainRequest, version: Version) -> Steps[Message | None]:
        """Do the same in steps, since the snapshots of a full block take long."""
        if isinstance(request, messages.GetBlockSnapshot):
            return (yield from self._block_snapshot(request.block_id))
        return self._at_once(request, version)

    def _at_once(self, request: ChainRequest, version: Version) -> Message | None:
        match request:
            case messages.GetBlockIds(ids=ids):
                return messages.BlockIds(self._ids_after(ids))
            case messages.GetSignatures(ids=ids):
                after = self._ids_after(ids)
                if version >= BLOCK_IDS_FROM:
                    return messages.BlockIds(after)
                return messages.Signatures(_signatures(after))
            case messages.GetBlock(block_id=block_id):
                return self._block(block_id)
            case messages.GetMicroblock(block_id=block_id):
                if self._microblocks_height != self._chain.height:
                    return None
                return self._microblocks.get(block_id)
            case messages.GetMicroblockSnapshot(block_id=block_id):
                return self._microblock_snapshot(block_id)
            case messages.GetBlockSnapshot():
                raise AssertionError("answered in steps")

    def _ids_after(self, ids: Sequence[bytes]) -> tuple[bytes, ...]:
        """Return the first of these ids in the chain, and the ids of the blocks after it. Raises
        ``NotKept`` if the next of these has only its header here.
        """
        chain = self._chain
        for each in ids:
            height = chain.height_of(each)
            if height is not None:
                chain.store.kept.need_block(height + 1)
                last = min(chain.height, height + FOLLOWING_IDS)
                return (each, *(chain.meta(at).id for at in range(height + 1, last + 1)))
        return ()

    def _block(self, block_id: bytes) -> Message | None:
        liquid = self._chain.liquid_form(block_id)
        if liquid is not None:
            return block_message(liquid)
        height = self._chain.height_of(block_id)
        data = None if height is None else self._chain.store.block_data(height)
        return None if data is None else _message(data)

    # --- snapshots --------------------------------------------------------------------------------

    def _microblock_snapshot(self, block_id: bytes) -> Message | None:
        steps = self._chain.liquid_outcomes(block_id)
        if len(steps) < 2:
            return None
        return messages.MicroblockSnapshot(
            snapshots.encode_microblock(_snapshots(block_id, steps[-1]))
        )

    def _block_snapshot(self, block_id: bytes) -> Steps[Message | None]:
        height = self._chain.height_of(block_id)
        if height is None:
            return None
        forms = self._chain.liquid_outcomes(block_id)
        encoder = BlockSnapshotEncoder(block_id)
        if forms:
            for number, outcome in enumerate(chain.from_iterable(forms), 1):
                encoder.add(snapshot_of(outcome.changes, outcome.status))
                if number % STEP_TRANSACTIONS == 0:
                    yield
        elif not (yield from self._add_stored(height, encoder)):
            return None
        return messages.BlockSnapshot(encoder.encode())

    def _add_stored(self, height: int, encoder: BlockSnapshotEncoder) -> Steps[bool]:
        """Add the stored changes of a block's transactions; return whether all exist."""
        store, chain_id = self._chain.store, self._chain.network.chain_id
        data = store.block_data(height) if self._chain.meta(height).transaction_count else None
        if data is None:
            return True
        legacy = data[0] < blocks.PROTOBUF_VERSION
        decode = codec.decode_legacy if legacy else codec.decode_trusted
        for number, piece in enumerate(blocks.transaction_pieces(data)):
            place = TransactionLocation(height, number, 0, 0, 0, 0)
            location = store.transaction_location(decode(piece, chain_id).id)
            changes = store.transaction_changes(place)
            if location is None or changes is None:
                return False
            # Duplicate ids are from the first years, when no transaction could fail.
            here = (location.height, location.index) == (height, number)
            encoder.add(snapshot_of(changes, location.status if here else Status.SUCCEEDED))
            if (number + 1) % STEP_TRANSACTIONS == 0:
                yield
        return True


def _snapshots(block_id: bytes, outcomes: Iterable[Outcome]) -> BlockSnapshot:
    found = tuple(snapshot_of(each.changes, each.status) for each in outcomes)
    return BlockSnapshot(block_id, found)


def _message(data: bytes) -> messages.LegacyBlock | messages.ProtobufBlock:
    legacy = data[0] < blocks.PROTOBUF_VERSION
    return (messages.LegacyBlock if legacy else messages.ProtobufBlock)(data)


def _signatures(ids: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the ids that old peers understand: without leading digests, up to the next digest."""
    found: list[bytes] = []
    for each in ids:
        if len(each) == messages.SIGNATURE_BYTES:
            found.append(each)
        elif found:
            break
    return tuple(found)
