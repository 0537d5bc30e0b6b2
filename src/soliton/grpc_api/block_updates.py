"""Blocks, microblocks and rollbacks as update messages.

What lives here: making them from the store. What does not: sending them (``updates``), and
following the node (``following``).

Source: wavesplatform/Waves ``grpc-server/src/main/scala/com/wavesplatform/events/events.scala``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from soliton.chain import blocks, microblocks
from soliton.chain.blocks import Block
from soliton.chain.finalization import added, decoded_voting
from soliton.chain.layouts import lenient_text
from soliton.chain.proto.block_pb2 import SignedMicroBlock
from soliton.chain.protobuf import delimited
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.grpc_api.link import Form
from soliton.grpc_api.messages import block_message, reward_messages, vrf_of
from soliton.grpc_api.metadata import Context, metadata_of
from soliton.grpc_api.past import BalanceCache, PastState
from soliton.grpc_api.proto.events_pb2 import BlockchainUpdated, StateUpdate
from soliton.grpc_api.state_updates import Update, merged, reverse, update_of
from soliton.ledger.state import ALIASES, ASSET_NAMES, ASSETS, Changes, Overlay, State
from soliton.node.blockchain import Blockchain

_APPEND_FIELD: Final = 11
_BODY_FIELD: Final = 1
_BLOCK_FIELD: Final = 1

_Append = BlockchainUpdated.Append
_Rollback = BlockchainUpdated.Rollback


class Step(NamedTuple):
    """A transaction of a block with its state changes."""

    transaction: AnyTransaction
    update: Update
    metadata: bytes
    aliases: tuple[str, ...]


class BlockSteps:
    """The state changes of a block: first its own, then those of its transactions."""

    def __init__(self, chain: Blockchain, height: int, cache: BalanceCache | None = None) -> None:
        """``cache`` caches balances from block to block. Raises ``Refused`` if the block was stored
        without the values that it replaced.
        """
        self.chain = chain
        self.height = height
        data = chain.store.block_data(height)
        assert data is not None, "the caller has checked the height"
        self.data = data
        self._past = PastState(chain.store, height, cache)
        self.state = Overlay(self._past, height)
        self.own = Update()
        if height > 1:
            self.own = update_of(self._past.initial, self.state, height)
        _apply(self.state, self._past.initial)
        self.steps: list[Step] = []

    def read(self, count: int | None = None) -> BlockSteps:
        """Read all transactions, or the first ``count``."""
        chain, height = self.chain, self.height
        pieces = blocks.transaction_pieces(self.data)
        legacy = self.data[0] < blocks.PROTOBUF_VERSION
        decode = codec.decode_legacy if legacy else codec.decode_trusted
        for index, piece in enumerate(pieces):
            if count is not None and index >= count:
                break
            transaction = decode(piece, chain.network.chain_id)
            changes, record = chain.store.changes_and_call(height, index)
            update = update_of(changes, self.state, height if index < self._past.count else 0)
            _apply(self.state, changes)
            context = Context(self.state, record)
            metadata = metadata_of(transaction, context).SerializeToString()
            aliases = tuple(changes.get(ALIASES, ()))
            self.steps.append(Step(transaction, update, metadata, aliases))
        self._past.behind(self.state.changes)
        return self

    def referenced(
        self, steps: Iterable[Step], *, by_tip: bool = False
    ) -> Iterator[StateUpdate.AssetInfo]:
        """Yield the assets in the changes of some steps, with their names after this block, or
        after the last block of the chain.
        """
        state: State = self.chain.state if by_tip else self.state
        seen: dict[AssetId, None] = {}
        for step in steps:
            seen.update(dict.fromkeys(step.update.asset_ids()))
        for asset_id in seen:
            info, name = state.get(ASSETS, asset_id), state.get(ASSET_NAMES, asset_id)
            if info is not None and name is not None:
                text = lenient_text(name.name)
                yield StateUpdate.AssetInfo(id=asset_id, decimals=info.decimals, name=text)


def _apply(state: Overlay, changes: Changes) -> None:
    for table, written in changes.items():
        mine = state.changes.get(table)
        if mine is None:
            state.changes[table] = dict(written)
        else:
            mine.update(written)


# --- appended -------------------------------------------------------------------------------------


def block_update(
    chain: Blockchain, height: int, cache: BalanceCache | None = None, forms: Sequence[Form] = ()
) -> bytes:
    """Return the whole block at a height as one update; ``forms`` are those of the last block."""
    found = BlockSteps(chain, height, cache).read()
    data = found.data
    if len(forms) > 1:
        # As in the reference, the header has the state hash of the first form.
        data = form_of(
            chain, height, msgspec.structs.replace(forms[-1], state_hash=forms[0].state_hash)
        ).data
    return _block_append(found, data, chain.meta(height).id, found.steps)


def key_block_update(found: BlockSteps, form: Form) -> bytes:
    """Return the update for the first form of a block, without microblocks."""
    data = form_of(found.chain, found.height, form).data
    return _block_append(found, data, form.id, found.steps[: form.count])


def _block_append(found: BlockSteps, data: bytes, block_id: bytes, steps: Sequence[Step]) -> bytes:
    chain, height = found.chain, found.height
    activations = chain.rules.activations()
    rest = _Append.BlockAppend(
        updated_waves_amount=chain.meta(height).total_waves,
        activated_features=sorted(each for each, at in activations.items() if at == height),
        vrf=vrf_of(chain, height, data),
        reward_shares=reward_messages(chain, height),
    )
    body = delimited(_BLOCK_FIELD, block_message(chain, height, data)) + rest.SerializeToString()
    details = _append_of(steps)
    if not found.own.is_empty():
        details.state_update.CopyFrom(found.own.message())
    append = delimited(_BODY_FIELD, body) + details.SerializeToString()
    return _updated(found, block_id, append, steps)


def micro_update(found: BlockSteps, reference: Form, form: Form) -> bytes:
    """Return the update from one form of a block to the next."""
    header = blocks.decode_header(found.data, found.chain.network.chain_id)[0]
    steps = found.steps[reference.count : form.count]
    micro = microblocks.assemble(
        version=header.version,
        reference=reference.id,
        total_signature=form.signature,
        generator=header.generator,
        transactions=tuple(step.transaction for step in steps),
        signature=form.micro_signature,
        total_block_id=form.id,
        state_hash=form.state_hash or None,
        finalization_voting=added(decoded_voting(reference.voting), decoded_voting(form.voting)),
    )
    append = _append_of(steps)
    append.micro_block.micro_block.CopyFrom(
        SignedMicroBlock.FromString(microblocks.encode_protobuf(micro))
    )
    if header.version >= blocks.PROTOBUF_VERSION:
        transactions = tuple(step.transaction for step in found.steps[: form.count])
        append.micro_block.updated_transactions_root = blocks.transactions_root(transactions)
    return _updated(found, form.id, append.SerializeToString(), steps)


def _append_of(steps: Sequence[Step]) -> BlockchainUpdated.Append:
    append = _Append(transaction_ids=[step.transaction.id for step in steps])
    for step in steps:
        append.transactions_metadata.add().MergeFromString(step.metadata)
        append.transaction_state_updates.append(step.update.message())
    return append


def _updated(found: BlockSteps, name: bytes, append: bytes, steps: Sequence[Step]) -> bytes:
    head = BlockchainUpdated(id=name, height=found.height)
    tail = BlockchainUpdated(referenced_assets=found.referenced(steps))
    return b"".join(
        (head.SerializeToString(), delimited(_APPEND_FIELD, append), tail.SerializeToString())
    )


def form_of(chain: Blockchain, height: int, form: Form) -> Block:
    """Return the block at a height in one of its forms."""
    whole = chain.block_at(height)
    if whole.id == form.id and len(whole.transactions) == form.count:
        stored = whole.header.state_hash or b""
        if stored == form.state_hash:
            return whole
    header = blocks.shortened_header(
        whole.header,
        whole.transactions[: form.count],
        form.state_hash or None,
        decoded_voting(form.voting),
    )
    return blocks.assemble(header, whole.transactions[: form.count], form.signature)


# --- rolled back ----------------------------------------------------------------------------------


def micro_rollback(
    found: BlockSteps, name: bytes, kept_count: int, count: int
) -> BlockchainUpdated:
    """Return the rollback of a block from ``count`` to ``kept_count`` transactions; ``name`` is the
    id in the update.
    """
    removed = found.steps[kept_count:count]
    made = BlockchainUpdated(id=name, height=found.height)
    made.rollback.type = _Rollback.MICROBLOCK
    _fill_rollback(made, found, [], removed)
    return made


def block_rollback(found: BlockSteps, form: Form, count: int) -> BlockchainUpdated:
    """Return the rollback of the block at a height, of which ``count`` transactions are left."""
    chain, height = found.chain, found.height
    block = form_of(chain, height, form)
    made = BlockchainUpdated(id=block.header.reference, height=height - 1)
    made.rollback.type = _Rollback.BLOCK
    removed = made.rollback.removed_blocks.add()
    removed.MergeFromString(block_message(chain, height, block.data))
    activations = chain.rules.activations()
    made.rollback.deactivated_features.extend(
        sorted(each for each, at in activations.items() if at == height)
    )
    _fill_rollback(made, found, [found.own], found.steps[:count])
    return made


def _fill_rollback(
    made: BlockchainUpdated, found: BlockSteps, own: list[Update], removed: Sequence[Step]
) -> None:
    back: list[Update] = []
    for step in reversed(removed):
        reverted = reverse(step.update)
        reverted.deleted_aliases.extend(step.aliases)
        back.append(reverted)
    back.extend(map(reverse, own))
    made.rollback.rollback_state_update.CopyFrom(merged(back).message())
    made.rollback.removed_transaction_ids.extend(step.transaction.id for step in reversed(removed))
    made.referenced_assets.extend(found.referenced(removed, by_tip=True))
