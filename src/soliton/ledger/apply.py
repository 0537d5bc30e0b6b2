"""One block on a state, from top to bottom.

``apply_block`` is the reader's entry: what the generator gets, then each transaction, then the
hashes. The miner uses the same ``BlockInProgress`` to find out which transactions fit and which
state hash its block must carry.

What lives here: the state transition of a block. What does not: whether the header may follow its
parent (``soliton.consensus``), the rules of one transaction (``transactions``), storing the result.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/diffs/BlockDiffer.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from soliton.chain.addresses import Address, from_public_key
from soliton.chain.blocks import Block, Encoded
from soliton.chain.features import Feature
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.crypto.curve25519 import SignedMessage
from soliton.errors import InputError
from soliton.ledger import fees
from soliton.ledger.context import ChainView, Context, PastTransaction
from soliton.ledger.errors import (
    BlockRejected,
    TransactionInBlockRejected,
    TransactionRejected,
    WrongStateHash,
)
from soliton.ledger.hashes import (
    EMPTY_HASH,
    StateHash,
    leaves_out_unchanged,
    legacy_hash,
    next_snapshot_hash,
)
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules_at import Rules
from soliton.ledger.scripts import NO_SCRIPTS, Scripts
from soliton.ledger.state import Changes, Overlay, State, Status, touched_accounts
from soliton.ledger.state_changes import StateChanges
from soliton.ledger.transactions import apply_transaction
from soliton.ride.environment import BlockInfo

Patch = Callable[[Overlay], None]
"""A change of the state at the beginning of a block, outside of any transaction."""

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


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What became of a transaction of a block.

    ``touched`` are the accounts that it changed itself; ``changes`` are all that go with it, the
    generator's part of the fee among them. ``complexity`` is that of the scripts that were run, as
    clients are told; ``state_changes`` are those of a dApp that it called.
    """

    status: Status
    complexity: int
    touched: tuple[Address, ...]
    changes: Changes
    state_changes: StateChanges | None = None


class AppliedBlock(msgspec.Struct, frozen=True):
    """The outcome of a block, or of one more microblock of it.

    ``changes`` are above the state before it; ``outcomes`` are those of its transactions, in order;
    hashes, ``carry`` and ``total_fee`` are of the whole block so far. ``unverified`` are signatures
    that it stands and falls with, where these were left to the caller.
    """

    height: int
    changes: Changes
    outcomes: tuple[Outcome, ...]
    snapshot_hash: bytes
    state_hash: StateHash
    carry: Carry
    total_fee: int
    unverified: tuple[SignedMessage, ...] = ()


def apply_block(
    state: State,
    block: Block,
    parent: ParentBlock | None,
    rules: Rules,
    parent_rules: Rules,
    payouts: Iterable[Payout] = (),
    *,
    patch: Patch | None = None,
    verify_signatures: bool = True,
    scripts: Scripts = NO_SCRIPTS,
    seen: BlockInfo | None = None,
    chain: ChainView | None = None,
) -> BlockInProgress:
    """Apply a block to the state after its parent (``None`` for the genesis block).

    ``rules`` are those at the block's height, ``patch`` changes the state at its beginning. Without
    ``verify_signatures`` the caller checks the signatures that are then left in the outcome; the
    block's own signature and its header are the caller's business. In a block that challenges
    another one, transactions that do not apply are elided, and signatures always verified. Scripts
    see the block as ``seen`` and those below in ``chain``. Raises ``BlockRejected``.
    """
    header = block.header
    progress = BlockInProgress(
        state,
        header.generator,
        header.timestamp,
        parent,
        rules,
        parent_rules,
        scripts,
        seen,
        chain,
    )
    progress.begin(block.transactions, payouts, patch)
    progress.add_all(
        block.transactions,
        verify_signatures=verify_signatures,
        elide=block.header.challenged is not None,
    )
    progress.check_state_hash(block.header.state_hash)
    return progress


class BlockFull(InputError):
    """A transaction that does not fit into the block any more."""


class BlockInProgress:
    """A block while its transactions are applied one by one.

    It can go on after ``finish``: a microblock is one more step of the same block.
    """

    __slots__ = (
        "_applied",
        "_carry",
        "_complexity",
        "_context",
        "_encoded",
        "_generator",
        "_originals",
        "_outcomes",
        "_parent",
        "_parent_rules",
        "_state",
        "_step",
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
        scripts: Scripts = NO_SCRIPTS,
        seen: BlockInfo | None = None,
        chain: ChainView | None = None,
    ) -> None:
        height = 1 if parent is None else parent.height + 1
        self._state = state
        self._parent = parent
        self._parent_rules = parent_rules
        self._generator = from_public_key(generator, rules.chain_id)
        self._applied: dict[bytes, PastTransaction] = {}
        self._context = Context(
            height,
            timestamp,
            None if parent is None else parent.timestamp,
            rules,
            scripts,
            seen,
            self._applied,
            chain,
        )
        self._carry: dict[AssetId | None, int] = {}
        self._complexity = 0
        self._encoded: list[bytes] = []
        self._originals: Changes = {}
        self._outcomes: list[Outcome] = []
        self._step = Overlay(state, height)
        self._total_fee = 0
        self._transactions_bytes = 0
        self.overlay = Overlay(state, height)
        self.snapshot_hash = EMPTY_HASH if parent is None else parent.snapshot_hash

    def copy(self) -> BlockInProgress:
        """The same block, to try something that may fail; the original stays as it is."""
        twin = object.__new__(BlockInProgress)
        for name in self.__slots__:
            setattr(twin, name, getattr(self, name))
        twin._carry = dict(self._carry)
        twin._applied = dict(self._applied)
        twin._context = msgspec.structs.replace(
            self._context,
            applied=twin._applied,
            unverified=list(self._context.unverified),
        )
        twin._originals = {table: dict(values) for table, values in self._originals.items()}
        twin._encoded = list(self._encoded)
        twin._outcomes = list(self._outcomes)
        twin._step, twin.overlay = (Overlay(self._state, self.height) for _ in range(2))
        twin._step.merge(self._step)
        twin.overlay.merge(self.overlay)
        return twin

    @property
    def height(self) -> int:
        """The height at which the block will stand."""
        return self._context.height

    @property
    def encoded(self) -> Encoded | None:
        """The ``SignedTransaction`` of each transaction so far, if all were made to know their
        size: whoever makes the block's bytes need not make them again.
        """
        complete = len(self._encoded) == len(self.overlay.transaction_ids)
        return tuple(self._encoded) if complete else None

    def begin(
        self,
        transactions: Iterable[AnyTransaction] = (),
        payouts: Iterable[Payout] = (),
        patch: Patch | None = None,
    ) -> None:
        """What happens before the first transaction: a patch of the state, then credits.

        The generator gets the fees carried over, all fees before NG, and its share of the reward.
        """
        if self._parent is None:
            return
        initial = Overlay(self.overlay, self.height)
        if patch is not None:
            patch(initial)
        portfolio = Portfolio()
        if self._parent_rules.sponsorship or self._parent_rules.ng_carry:
            for asset_id, amount in self._parent.carry:
                portfolio.add(self._generator, asset_id, amount)
        if not self._parent_rules.ng:
            for transaction in transactions:
                portfolio.add(self._generator, transaction.fee_asset_id, transaction.fee)
        for payout in payouts:
            portfolio.add(payout.address, None, payout.amount)
        try:
            portfolio.write(initial)
        except TransactionRejected as error:
            raise BlockRejected(self.height, f"credits to its generator: {error}") from error
        if initial.changes:
            self.snapshot_hash = next_snapshot_hash(self.snapshot_hash, initial.changes)
            self._merge(initial)

    def add_all(
        self,
        transactions: Iterable[AnyTransaction],
        *,
        verify_signatures: bool,
        elide: bool = False,
    ) -> None:
        """Apply a block's or microblock's transactions; raises ``TransactionInBlockRejected``."""
        # A wrong signature is one more reason to elide a transaction.
        verify_signatures = verify_signatures or elide
        for transaction in transactions:
            try:
                codec.validate(transaction)
                self.add(transaction, verify_signature=verify_signatures)
            except InputError as error:
                if not elide:
                    raise TransactionInBlockRejected(self.height, transaction, error) from error
                self._elide(transaction)

    def add(self, transaction: AnyTransaction, *, verify_signature: bool = True) -> None:
        """Apply one more transaction; raises as ``apply_transaction`` does, or ``BlockFull``."""
        counted = self._check_room(transaction)
        applied = apply_transaction(
            transaction, self.overlay, self._context, verify_signature=verify_signature
        )
        changes, status = applied.changes, applied.status
        complexity = self._complexity + applied.complexity
        most = self._parent_rules.max_complexity
        if most is not None and complexity > most:
            raise BlockFull(f"Limit of txs was reached: complexity {complexity} of {most}")
        touched = touched_accounts(changes.changes)
        self._share_fee(transaction, changes)
        mark = b"" if status is Status.SUCCEEDED else transaction.id + bytes((status,))
        self.snapshot_hash = next_snapshot_hash(self.snapshot_hash, changes.changes, mark)
        self._merge(changes)
        self._outcomes.append(
            Outcome(status, applied.spent, touched, changes.changes, applied.state_changes)
        )
        self._applied[transaction.id] = PastTransaction(transaction, self.height, status)
        self._transactions_bytes += len(counted)
        if counted and self._context.rules.has(Feature.BLOCK_V5):
            self._encoded.append(counted)
        self._complexity = complexity

    def _elide(self, transaction: AnyTransaction) -> None:
        """Keep a transaction that does not apply: its id counts as used, nothing else changes."""
        mark = Overlay(self.overlay, self.height)
        mark.record_transaction(transaction.id)
        status = transaction.id + bytes((Status.ELIDED,))
        self.snapshot_hash = next_snapshot_hash(self.snapshot_hash, {}, status)
        self._merge(mark)
        self._outcomes.append(Outcome(Status.ELIDED, 0, (), {}))

    def _merge(self, above: Overlay) -> None:
        for table, written in above.changes.items():
            if not leaves_out_unchanged(table):
                continue
            # What a balance was before the block decides whether the legacy hash shows it.
            originals = self._originals.setdefault(table, {})
            for key in written:
                if key not in originals:
                    originals[key] = self._state.get(table, key)
        self._step.merge(above)
        self.overlay.merge(above)

    def _check_room(self, transaction: AnyTransaction) -> bytes:
        """The bytes that count against the block's limit; raises ``BlockFull``."""
        limits = self._parent_rules
        count = len(self.overlay.transaction_ids)
        if limits.max_transactions is not None and count >= limits.max_transactions:
            raise BlockFull(f"Limit of txs was reached: {limits.max_transactions}")
        if limits.max_transactions_bytes is None:
            return b""
        protobuf = self._context.rules.has(Feature.BLOCK_V5)
        counted = codec.encode_protobuf(transaction) if protobuf else codec.encode(transaction)
        if self._transactions_bytes + len(counted) > limits.max_transactions_bytes:
            raise BlockFull(f"Limit of txs was reached: {limits.max_transactions_bytes} bytes")
        return counted

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

    def check_state_hash(self, claimed: bytes | None) -> None:
        """Raise ``WrongStateHash`` when a header claims another hash than the computed one."""
        if claimed is not None and claimed != self.snapshot_hash:
            raise WrongStateHash(
                self.height,
                f"state hash {claimed.hex()} is not the computed {self.snapshot_hash.hex()}",
            )

    def finish(self) -> AppliedBlock:
        """The outcome of all since the last ``finish``; the hashes are of the whole block."""
        parent, step = self._parent, self._step
        outcomes, self._outcomes = tuple(self._outcomes), []
        unverified = self._context.unverified
        self._context = msgspec.structs.replace(self._context, unverified=[])
        self._step = Overlay(self._state, self.height)
        total = b"" if parent is None else parent.legacy_total
        return AppliedBlock(
            height=self.height,
            changes=step.changes,
            outcomes=outcomes,
            snapshot_hash=self.snapshot_hash,
            state_hash=legacy_hash(total, self._originals, self.overlay.changes),
            carry=tuple(self._carry.items()),
            total_fee=self._total_fee,
            unverified=tuple(unverified),
        )
