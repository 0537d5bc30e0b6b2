"""One block on a state, from top to bottom.

``apply_block`` is the reader's entry: what the generator gets, then each transaction, then the
hashes. The miner uses the same ``BlockInProgress`` to find out which transactions fit and which
state hash its block must carry.

What lives here: the state transition of a block. What does not: whether the header may follow its
parent (``soliton.consensus``), the rules of one transaction (``transactions``), storing the result.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/diffs/BlockDiffer.scala``.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from soliton.chain.addresses import Address, from_public_key
from soliton.chain.blocks import Block
from soliton.chain.features import Feature
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.errors import InputError
from soliton.ledger import fees
from soliton.ledger.context import Context
from soliton.ledger.errors import BlockRejected, TransactionInBlockRejected
from soliton.ledger.hashes import EMPTY_HASH, StateHash, legacy_hash, next_snapshot_hash
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules_at import Rules
from soliton.ledger.state import Changes, Overlay, State
from soliton.ledger.transactions import apply_transaction

Carry = tuple[tuple[AssetId | None, int], ...]
"""The part of a block's fees that its successor's generator gets, by asset."""


class ParentBlock(msgspec.Struct, frozen=True):
    """What applying a block needs to know of the one below: the results of having applied that."""

    height: int
    timestamp: int
    snapshot_hash: bytes
    legacy_total: bytes
    carry: Carry


class Payout(msgspec.Struct, frozen=True):
    """A share of the block reward."""

    address: Address
    amount: int


class AppliedBlock(msgspec.Struct, frozen=True):
    """The outcome of a block: changes above the state before it, hashes, and what the next block
    needs.
    """

    height: int
    changes: Changes
    transaction_ids: tuple[bytes, ...]
    snapshot_hash: bytes
    state_hash: StateHash
    carry: Carry
    total_fee: int


def apply_block(
    state: State,
    block: Block,
    parent: ParentBlock | None,
    rules: Rules,
    parent_rules: Rules,
    payouts: Iterable[Payout] = (),
    *,
    verify_signatures: bool = True,
) -> AppliedBlock:
    """Apply a block to the state after its parent (``None`` for the genesis block).

    ``rules`` are those at the block's height. Without ``verify_signatures`` the caller has checked
    the signatures of the transactions; the block's own signature and its header are the caller's
    business. Raises ``BlockRejected``.
    """
    progress = BlockInProgress(
        state, block.header.generator, block.header.timestamp, parent, rules, parent_rules
    )
    progress.pay_generator(block.transactions, payouts)
    for transaction in block.transactions:
        try:
            codec.validate(transaction)
            progress.add(transaction, verify_signature=verify_signatures)
        except InputError as error:
            raise TransactionInBlockRejected(progress.height, transaction, error) from error
    claimed = block.header.state_hash
    if claimed is not None and claimed != progress.snapshot_hash:
        raise BlockRejected(
            progress.height,
            f"state hash {claimed.hex()} is not the computed {progress.snapshot_hash.hex()}",
        )
    return progress.finish()


class BlockFull(InputError):
    """A transaction that does not fit into the block any more."""


class BlockInProgress:
    """A block while its transactions are applied one by one."""

    __slots__ = (
        "_carry",
        "_context",
        "_generator",
        "_parent",
        "_parent_rules",
        "_state",
        "_total_fee",
        "_transactions_bytes",
        "overlay",
        "snapshot_hash",
    )

    def __init__(
        self,
        state: State,
        generator: bytes,
        timestamp: int,
        parent: ParentBlock | None,
        rules: Rules,
        parent_rules: Rules,
    ) -> None:
        height = 1 if parent is None else parent.height + 1
        self._state = state
        self._parent = parent
        self._parent_rules = parent_rules
        self._generator = from_public_key(generator, rules.chain_id)
        self._context = Context(
            height, timestamp, None if parent is None else parent.timestamp, rules
        )
        self._carry: dict[AssetId | None, int] = {}
        self._total_fee = 0
        self._transactions_bytes = 0
        self.overlay = Overlay(state, height)
        self.snapshot_hash = EMPTY_HASH if parent is None else parent.snapshot_hash

    @property
    def height(self) -> int:
        """The height at which the block will stand."""
        return self._context.height

    def pay_generator(
        self, transactions: Iterable[AnyTransaction], payouts: Iterable[Payout] = ()
    ) -> None:
        """Credit what is due before the first transaction: fees carried over, all fees before NG,
        the reward.
        """
        if self._parent is None:
            return
        portfolio = Portfolio()
        if self._parent_rules.sponsorship or self._parent_rules.ng_carry:
            for asset_id, amount in self._parent.carry:
                portfolio.add(self._generator, asset_id, amount)
        if not self._parent_rules.ng:
            for transaction in transactions:
                portfolio.add(self._generator, transaction.fee_asset_id, transaction.fee)
        for payout in payouts:
            portfolio.add(payout.address, None, payout.amount)
        portfolio.write(self.overlay)
        if self.overlay.changes:
            self.snapshot_hash = next_snapshot_hash(self.snapshot_hash, self.overlay.changes)

    def add(self, transaction: AnyTransaction, *, verify_signature: bool = True) -> None:
        """Apply one more transaction; raises as ``apply_transaction`` does, or ``BlockFull``."""
        size = self._check_room(transaction)
        changes = apply_transaction(
            transaction, self.overlay, self._context, verify_signature=verify_signature
        )
        self._share_fee(transaction, changes)
        self.snapshot_hash = next_snapshot_hash(self.snapshot_hash, changes.changes)
        self.overlay.merge(changes)
        self._transactions_bytes += size

    def _check_room(self, transaction: AnyTransaction) -> int:
        """The size that counts against the block's limit; raises ``BlockFull``."""
        limits = self._parent_rules
        count = len(self.overlay.transaction_ids)
        if limits.max_transactions is not None and count >= limits.max_transactions:
            raise BlockFull(f"Limit of txs was reached: {limits.max_transactions}")
        if limits.max_transactions_bytes is None:
            return 0
        protobuf = self._context.rules.has(Feature.BLOCK_V5)
        size = len(codec.encode_protobuf(transaction) if protobuf else codec.encode(transaction))
        if self._transactions_bytes + size > limits.max_transactions_bytes:
            raise BlockFull(f"Limit of txs was reached: {limits.max_transactions_bytes} bytes")
        return size

    def _share_fee(self, transaction: AnyTransaction, changes: Overlay) -> None:
        rules = self._context.rules
        asset_id, fee = fees.generator_fee(transaction, self.overlay, rules)
        if asset_id is None:
            self._total_fee += fee
        if not self._parent_rules.ng:
            return
        part = fees.current_part(fee)
        portfolio = Portfolio()
        portfolio.add(self._generator, asset_id, part)
        portfolio.write(changes)
        if fee != part:
            self._carry[asset_id] = self._carry.get(asset_id, 0) + fee - part

    def finish(self) -> AppliedBlock:
        """The outcome, hashes included."""
        parent, changes = self._parent, self.overlay.changes
        return AppliedBlock(
            height=self.height,
            changes=changes,
            transaction_ids=tuple(self.overlay.transaction_ids),
            snapshot_hash=self.snapshot_hash,
            state_hash=legacy_hash(
                b"" if parent is None else parent.legacy_total, self._state, changes
            ),
            carry=tuple(self._carry.items()),
            total_fee=self._total_fee,
        )
