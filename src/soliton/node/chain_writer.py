"""The single writer of the chain: appends and removes blocks.

``ChainWriter`` connects the rules with the store: it checks and applies a block, and stores the
result. The importer, the miner and (through the node) peers use it.

What lives here: appending, extending, rollback, switching to a fork. What does not: the rules
(``soliton.ledger``), records on disk (``soliton.storage``), the pool, the clock.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/BlockchainUpdaterImpl.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from soliton.chain import blocks
from soliton.chain.blocks import Block, Encoded, SignedHeader
from soliton.chain.finalization import FinalizationVoting
from soliton.chain.genesis import genesis_block
from soliton.chain.networks.model import Network
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto.curve25519 import SignedMessage
from soliton.errors import InputError
from soliton.ledger import headers
from soliton.ledger.apply import (
    AppliedBlock,
    BlockInProgress,
    Outcome,
    SnapshotsOfBlock,
    apply_block,
    check_block,
    checking_block,
    checking_claims,
)
from soliton.ledger.editing import edited_accounts
from soliton.ledger.environment import (
    BlockEnvironment,
    BlockMeta,
    genesis_environment,
)
from soliton.ledger.errors import BlockRejected
from soliton.ledger.finality import check_voting
from soliton.ledger.metas import grown_meta, meta_of
from soliton.ledger.rules_at import RuleBook
from soliton.ledger.state import Changes, Overlay, State
from soliton.node.accounts import accounts_of
from soliton.node.blockchain import Blockchain
from soliton.node.by_hand import by_hand_of
from soliton.node.call_records import call_record
from soliton.node.events import BlockAppended, BlockExtended, ChainEvent, RolledBack
from soliton.node.liquid import LiquidBlock
from soliton.node.settings import Settings
from soliton.steps import Steps, run_steps
from soliton.storage.below import Below
from soliton.storage.blocks import NewBlock, NewTransaction
from soliton.storage.errors import StorageProblem
from soliton.storage.store import UNDO_DEPTH, Prepared, Store


def open_store(
    settings: Settings, *, durable: bool = True, writes: bool = True, below: Below | None = None
) -> Store:
    """Open the store in the settings' data directory; ``durable``, ``below`` as in ``Store``, and
    one process ``writes``.
    """
    return Store(
        settings.data_directory,
        settings.network.name,
        durable=durable,
        undo_depth=max(settings.db.max_rollback_depth, UNDO_DEPTH),
        exclusive=writes,
        below=below,
        keeping=settings.db.keeping,
    )


TRANSACTIONS_IN_STEP: Final = 64
"""Transactions that are encoded or indexed in one step, some two milliseconds."""


class Longer(NamedTuple):
    """A longer form of the last block: its application, and its records."""

    total: Block
    progress: BlockInProgress
    applied: AppliedBlock
    meta: BlockMeta
    prepared: Prepared


class ChainWriter(Blockchain):
    """A chain on a store, from its genesis block on."""

    def __init__(self, network: Network, store: Store, rules: RuleBook | None = None) -> None:
        """Continue the chain in the store, or begin it with the network's genesis block; ``rules``
        as in ``Blockchain``.
        """
        super().__init__(network, store, rules)
        self._store: Store = store
        self._liquid: LiquidBlock | None = None
        # The one before blocks that are not flushed yet.
        self._liquid_stored: LiquidBlock | None = None
        self._is_flushed = True
        self._events: list[ChainEvent] = []
        self.requires_proof_of_stake = store.below is None
        """Whether blocks made here need a valid proof of stake: not on top of another node's chain,
        where no local account could have one.
        """
        self.on_change: Callable[[ChainEvent], None] = lambda _event: None
        if store.height == 0:
            self.begin()
            store.flush()
            self._last = None

    @property
    def store(self) -> Store:
        """The store of the chain."""
        return self._store

    def height_of(self, block_id: bytes) -> int | None:
        """Return the height of the block with this id, also for an earlier form of the last
        block.
        """
        return self.height if self.knows_liquid(block_id) else super().height_of(block_id)

    def append_own(self, block: Block, progress: BlockInProgress) -> AppliedBlock:
        """Append a block made here from ``progress``.

        Its transactions are already applied and its signature is our own, so only its place and
        time are checked. Raises ``BlockRejected``.
        """
        headers.check_features(self)
        if self.requires_proof_of_stake:
            headers.check_header(self, block.header, block.id, None)
        return self.put(block, progress)

    def append(
        self, block: Block, *, now: int | None = None, verify_signatures: bool = True
    ) -> AppliedBlock:
        """Check a block completely and append it; the caller flushes the chain.

        ``now`` (ms) bounds the block's time; ``None`` for history. Without ``verify_signatures``
        the caller verifies the signatures of block and transactions before it flushes. Raises
        ``BlockRejected``.
        """
        if block.header.reference != self.last_block.id:
            if self.knows_liquid(block.header.reference):
                # Later microblocks are dropped.
                with self.shortened(block.header.reference):
                    return self.append(block, now=now, verify_signatures=verify_signatures)
            raise BlockRejected(self.height + 1, "its reference is not the last block")
        return self.put(
            block, check_block(self, block, now=now, verify_signatures=verify_signatures)
        )

    def appending(
        self,
        block: Block,
        hit_source: bytes,
        *,
        now: int | None = None,
        snapshots: SnapshotsOfBlock | None = None,
    ) -> Steps[AppliedBlock]:
        """Append in steps, on the present form of the last block. The caller has checked header
        (``check_header`` returned the hit source) and signature. With ``snapshots`` these are
        applied in place of the transactions.
        """
        progress = yield from checking_block(
            self,
            block,
            now=now,
            verify_signatures=False,
            hit_source=hit_source,
            snapshots=snapshots,
        )
        return (yield from self._putting(block, progress))

    def check_header(self, head: SignedHeader, now: int | None) -> bytes:
        """Check the header of the next block and return its hit source; the caller verifies the
        signature.
        """
        if head.header.reference != self.last_block.id:
            raise BlockRejected(self.height + 1, "its reference is not the last block")
        headers.check_features(self)
        return headers.check_header(self, head.header, head.id, now)

    def put(self, block: Block, progress: BlockInProgress) -> AppliedBlock:
        """Append a block that the caller has checked."""
        return run_steps(self._putting(block, progress))

    def _putting(self, block: Block, progress: BlockInProgress) -> Steps[AppliedBlock]:
        applied = progress.finish()
        yield from self._recording(block, applied, progress.environment)
        if self._is_flushed:
            self._liquid_stored, self._is_flushed = self._liquid, False
        self._liquid = LiquidBlock(block, progress, applied)
        self.on_change(BlockAppended(self.height, block, edited_accounts(applied.edited)))
        return applied

    @contextmanager
    def shortened(self, block_id: bytes) -> Iterator[tuple[AnyTransaction, ...]]:
        """``shorten`` in order to append another block: if that is refused, the last block gets its
        microblocks back. Yields the removed transactions.
        """
        liquid = self._liquid
        removed = [] if liquid is None else liquid.parts_above(block_id)
        taken = () if liquid is None else self.shorten(block_id)
        try:
            yield taken
        except InputError:
            for part in removed:
                self.extend(
                    part.transactions,
                    part.state_hash,
                    part.signature,
                    voting=part.voting,
                    verify_signatures=False,
                )
            raise

    def begin(self) -> None:
        """Store the genesis block in an empty store."""
        block = genesis_block(self.network)
        environment = genesis_environment(block, self.network, self.rules)
        progress = apply_block(self.store, block, environment)
        run_steps(self._recording(block, progress.finish(), environment))
        self._liquid = None

    def _recording(
        self, block: Block, applied: AppliedBlock, environment: BlockEnvironment
    ) -> Steps[None]:
        height, meta = applied.height, meta_of(block, applied, environment)
        stored = yield from _stored(block, applied, meta, environment, self)
        self._store.put((yield from self._store.preparing(stored)))
        self._remember(height, meta)
        self._last = block
        if environment.approved:
            self._read_approvals()

    # --- the liquid block -------------------------------------------------------------------------

    def extend(
        self,
        transactions: tuple[AnyTransaction, ...],
        state_hash: bytes | None,
        total_signature: bytes,
        micro_signature: bytes = b"",
        *,
        voting: FinalizationVoting | None = None,
        verify_signatures: bool = True,
        verified: Collection[bytes] = (),
        snapshots: SnapshotsOfBlock | None = None,
    ) -> Block:
        """Add a microblock's transactions to the last block and return its new form.

        ``total_signature`` is the generator's signature of the longer block, ``state_hash`` the one
        in its header, ``voting`` that of the microblock. Signatures of ``verified`` transactions
        (ids) are not verified again. With ``snapshots`` these are applied instead. Raises
        ``BlockRejected`` and leaves the block unchanged.
        """
        longer = run_steps(
            self.extending(
                transactions,
                state_hash,
                total_signature,
                voting=voting,
                verify_signatures=verify_signatures,
                verified=verified,
                snapshots=snapshots,
            )
        )
        return self.lengthen(longer, micro_signature, voting)

    def extending(
        self,
        transactions: tuple[AnyTransaction, ...],
        state_hash: bytes | None,
        total_signature: bytes,
        *,
        voting: FinalizationVoting | None = None,
        verify_signatures: bool = True,
        verified: Collection[bytes] = (),
        snapshots: SnapshotsOfBlock | None = None,
    ) -> Steps[Longer]:
        """Make the longer form of the last block in steps, as ``extend`` does, but do not replace
        the last block: ``lengthen`` does, if that is the same as before.
        """
        height, liquid = self.height, self._liquid
        if liquid is None:
            raise BlockRejected(height, "the last block takes no more transactions")
        if not self.rules.at(height - 1).ng:
            raise BlockRejected(height, "microblocks are not activated")
        if liquid.block.header.challenged is not None:
            raise BlockRejected(height, "a challenging block takes no microblocks")
        encoded: list[bytes] | None = None
        if liquid.block.header.version >= blocks.PROTOBUF_VERSION:
            encoded = []
            for number, each in enumerate(transactions, 1):
                encoded.append(codec.encode_protobuf(each))
                if number % TRANSACTIONS_IN_STEP == 0:
                    yield
        total = liquid.longer(transactions, state_hash, total_signature, encoded, voting)
        if verify_signatures and not blocks.signature_is_valid(total):
            raise BlockRejected(height, "invalid signature of the total block")
        if voting is not None:
            claims = self._check_voting(total, liquid.progress)
            if verify_signatures:
                yield from checking_claims(height, claims)
        progress = liquid.progress.copy()
        progress.vote(voting)
        if snapshots is None:
            yield from progress.adding(
                transactions,
                verify_signatures=verify_signatures,
                verified=verified,
                encoded=None if encoded is None else tuple(encoded),
            )
        else:
            yield from progress.adding_snapshots(transactions, snapshots)
        progress.check_state_hash(state_hash)
        return (yield from self._lengthening(total, progress))

    def _check_voting(self, total: Block, progress: BlockInProgress) -> list[SignedMessage]:
        """Check the voting of a longer form of the last block; return its signatures."""
        return check_voting(
            total.header,
            self.height,
            progress.generators,
            lambda height: self.meta(height).id,
            self.network.functionality.max_valid_endorsers,
        )

    def extend_own(
        self,
        total: Block,
        progress: BlockInProgress,
        micro: bytes = b"",
        voting: FinalizationVoting | None = None,
    ) -> Block:
        """Replace the last block by a longer form made here from ``progress``. ``micro`` is the
        signature of the microblock, and ``voting`` its own.

        It is written at once. Raises ``StorageProblem`` and leaves the block unchanged.
        """
        return self.lengthen(run_steps(self._lengthening(total, progress)), micro, voting)

    def _lengthening(self, total: Block, progress: BlockInProgress) -> Steps[Longer]:
        applied, meta = progress.finish(), self.meta(self.height)
        first = meta.transaction_count
        start, end = blocks.transactions_part(self.last_block.data)
        behind = blocks.transactions_part(total.data)[0] + end - start
        meta = grown_meta(meta, total, applied)
        index = yield from _index(total, applied, self.state, first, behind)
        moved = _moved(self.last_block, total)
        stored = NewBlock(applied.height, total.data, meta, applied.changes, index, first, moved)
        try:
            prepared = yield from self._store.preparing_longer(stored)
        except StorageProblem:
            self._go_back()
            raise
        return Longer(total, progress, applied, meta, prepared)

    def lengthen(
        self, longer: Longer, micro: bytes = b"", voting: FinalizationVoting | None = None
    ) -> Block:
        """Replace the last block, which is the same as when the longer form was made; ``micro`` and
        ``voting`` as in ``extend_own``. Raises ``StorageProblem`` and leaves the block unchanged.
        """
        total, applied = longer.total, longer.applied
        height, added = self.height, len(total.transactions) - len(self.last_block.transactions)
        try:
            self._store.put(longer.prepared)
        except StorageProblem:
            self._go_back()
            raise
        self._remember(height, longer.meta)
        self._last = total
        assert self._liquid is not None, "the last block can grow"
        self._liquid.grow(total, longer.progress, applied)
        self.on_change(BlockExtended(height, total, added, micro, voting))
        return total

    def knows_liquid(self, block_id: bytes) -> bool:
        """Whether a form of the last block has this id."""
        return self._liquid is not None and block_id in self._liquid

    def liquid_ids(self) -> tuple[bytes, ...]:
        """Return the ids of the forms of the last block, the shortest first; none if it cannot
        grow.
        """
        return () if self._liquid is None else self._liquid.ids

    def liquid_form(self, block_id: bytes) -> Block | None:
        """Return the form of the last block with this id."""
        return None if self._liquid is None else self._liquid.form(block_id)

    def liquid_outcomes(self, block_id: bytes) -> list[tuple[Outcome, ...]]:
        """Return the outcomes of the last block's transactions up to the form with this id, by form
        and microblock; empty if there is no such form.
        """
        return [] if self._liquid is None else self._liquid.outcomes(block_id)

    def last_changes(self) -> Changes | None:
        """Return the changes of the last microblock, or of the last block if it has none; ``None``
        if it cannot grow. Read-only.
        """
        return None if self._liquid is None else self._liquid.last_changes()

    def changes_above(self, block_id: bytes) -> list[Changes]:
        """Return the changes of each microblock behind a form of the last block. Read-only."""
        return [] if self._liquid is None else self._liquid.changes_above(block_id)

    def liquid_progress(self) -> BlockInProgress | None:
        """Return a copy of the last block's application, ``None`` if it takes no microblocks."""
        grows = self.rules.at(self.height - 1).ng and self.last_block.header.challenged is None
        return self._liquid.progress.copy() if self._liquid is not None and grows else None

    def longer(
        self,
        transactions: tuple[AnyTransaction, ...],
        state_hash: bytes | None,
        signature: bytes,
        encoded: Encoded | None = None,
        voting: FinalizationVoting | None = None,
    ) -> Block:
        """Return the last block, which can grow, with appended transactions; ``encoded`` are these
        in protobuf, if they are known, and ``voting`` is that of the microblock. The chain is not
        changed.
        """
        assert self._liquid is not None, "the last block can grow"
        return self._liquid.longer(transactions, state_hash, signature, encoded, voting)

    def shorten(self, block_id: bytes) -> tuple[AnyTransaction, ...]:
        """Return the last block to the form with this id, and return the removed transactions.

        Raises ``KeyError`` if there is no such form, and ``StorageProblem`` when not all
        microblocks could be removed.
        """
        if not self.knows_liquid(block_id):
            raise KeyError(block_id.hex())
        before = self.last_block.transactions
        try:
            while self.last_block.id != block_id:
                assert self._liquid is not None, "it has this form"
                self._store.shorten()
                self._liquid.shorten()
                self._last = self._liquid.block
        finally:
            self._metas.pop(self.height, None)
            if len(self.last_block.transactions) < len(before):
                self.on_change(RolledBack(self.height, self.last_block))
        return before[len(self.last_block.transactions) :]

    def rollback(self, height: int, on_removed: Callable[[Block], None] | None = None) -> None:
        """Remove all blocks above a height; ``on_removed`` receives them, the highest first.

        Raises ``RollbackTooDeep``, and ``StorageProblem`` when not all of them could be removed.
        """
        top, chain_id = self.height, self.network.chain_id

        def removed(data: bytes) -> None:
            if on_removed is not None:
                on_removed(blocks.decode(data, chain_id))

        try:
            self._store.rollback(height, removed)
        finally:
            if self.height < top:
                self._forget()
                self.on_change(RolledBack(self.height, self.last_block))

    # --- forks ------------------------------------------------------------------------------------

    def branch(self, height: int) -> ChainWriter:
        """Return an in-memory copy of the chain without the blocks above a height, on which other
        blocks can be appended while this chain is still read. Raises ``RollbackTooDeep``.
        """
        branch = ChainWriter(self.network, self._store.branch(height), self.rules)
        branch._metas.update((at, meta) for at, meta in self._metas.items() if at <= height)
        if height == self.height:
            branch._smallest.copy_from(self._smallest)
        branch.on_change = branch._events.append
        branch.drift_ms, branch.waived = self.drift_ms, self.waived
        branch.requires_proof_of_stake = self.requires_proof_of_stake
        return branch

    def adopt(self, branch: ChainWriter, height: int, *, shortened: bool = False) -> list[Block]:
        """Switch to a branch that was made at a height, in one atomic step, and return the removed
        blocks, the highest first. ``shortened``: its first block is an earlier form of our last
        one, so that only microblocks are removed.

        This chain must be unchanged since then. Raises ``StorageProblem`` and changes nothing.
        """
        removed = [self.block_at(each) for each in range(self.height, height, -1)]
        self._store.adopt(branch.store)
        self._forget()
        self._metas.update(branch._metas)
        self._smallest.copy_from(branch._smallest)
        self._liquid, self._last = branch._liquid, branch.last_block
        if removed:
            kept = height + shortened
            self.on_change(RolledBack(kept, self.block_at(kept)))
        for event in branch._events[int(shortened) :]:
            self.on_change(event)
        return removed

    def flush(self) -> None:
        """Write the blocks appended since the last flush.

        Raises ``StorageProblem`` and reverts the chain to what is stored.
        """
        try:
            self._store.flush()
        except StorageProblem:
            self._go_back()
            raise
        self._liquid_stored, self._is_flushed = None, True

    def _go_back(self) -> None:
        """Revert to what the store holds; a liquid last block stays liquid."""
        liquid = self._liquid if self._is_flushed else self._liquid_stored
        self._forget()
        if liquid is not None and liquid.block.id == self.meta(self.height).id:
            self._liquid = liquid
            self._last = liquid.block

    def discard_pending(self) -> None:
        """Revert to the last flush."""
        self._store.discard_pending()
        self._forget()

    def _forget(self) -> None:
        super()._forget()
        self._liquid, self._liquid_stored, self._is_flushed = None, None, True


def _stored(
    block: Block,
    applied: AppliedBlock,
    meta: BlockMeta,
    environment: BlockEnvironment,
    below: Blockchain,
) -> Steps[NewBlock]:
    """Return the record to store for a block."""
    return NewBlock(
        applied.height,
        block.data,
        meta,
        applied.changes,
        (yield from _index(block, applied, below.state)),
        by_hand=by_hand_of(block, environment, below.drift_ms),
        edited=applied.edited,
        initial=applied.initial,
    )


def _moved(before: Block, total: Block) -> list[tuple[int, bytes, int]]:
    """Return index, id and offset of the transactions of a block that are elsewhere in the bytes of
    its longer version, because a voting in the header has another size.
    """
    transactions, modern = before.transactions, total.header.version >= blocks.PROTOBUF_VERSION
    if not (transactions and modern) or len(before.signed) == len(total.signed):
        return []
    spans = blocks.transaction_spans(total.data)
    return [
        (index, transaction.id, offset)
        for index, (transaction, (offset, _)) in enumerate(zip(transactions, spans, strict=False))
    ]


def _index(
    block: Block, applied: AppliedBlock, before: State, first: int = 0, start: int = 0
) -> Steps[list[NewTransaction]]:
    """Return the records to store for a block's transactions from index ``first`` on, which begins
    in its bytes at ``start``.
    """
    if not applied.outcomes:
        return []
    spans = blocks.transaction_spans(block.data, start)
    # Aliases may have been made in this very block.
    after = Overlay(before, applied.height)
    after.changes = applied.changes
    found = []
    for number, (transaction, (offset, length), outcome) in enumerate(
        zip(block.transactions[first:], spans, applied.outcomes, strict=True), 1
    ):
        found.append(
            NewTransaction(
                transaction.id,
                offset,
                length,
                outcome.status,
                outcome.complexity,
                accounts_of(transaction, outcome, after),
                outcome.changes,
                call_record(transaction, outcome.state_changes, after, before),
            )
        )
        if number % TRANSACTIONS_IN_STEP == 0:
            yield
    return found
