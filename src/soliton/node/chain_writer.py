"""Putting blocks on the chain, and taking them off: one at a time, and only here.

``ChainWriter`` joins the rules with the store: it has a block checked and applied, and records the
outcome. It is the single writer; the importer, the miner and (through the node) peers use it.

What lives here: appending, growing, removing, changing to a fork. What does not: the rules
(``soliton.ledger``), records on disk (``soliton.storage``), the pool, the clock.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/BlockchainUpdaterImpl.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple

from soliton.chain import blocks
from soliton.chain.blocks import Block, SignedHeader
from soliton.chain.genesis import genesis_block
from soliton.chain.networks.model import Network
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
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
)
from soliton.ledger.editing import edited_accounts
from soliton.ledger.environment import (
    BlockEnvironment,
    BlockMeta,
    genesis_environment,
)
from soliton.ledger.errors import BlockRejected
from soliton.ledger.metas import grown_meta, meta_of
from soliton.ledger.rules_at import RuleBook
from soliton.ledger.state import Changes, Overlay, State
from soliton.node.accounts import accounts_of
from soliton.node.blockchain import Blockchain
from soliton.node.by_hand import by_hand_of
from soliton.node.call_records import call_record
from soliton.node.events import BlockAppended, BlockExtended, ChainEvent, RolledBack
from soliton.steps import Steps, run_steps
from soliton.storage.blocks import NewBlock, NewTransaction
from soliton.storage.errors import StorageProblem
from soliton.storage.store import Store


class _LiquidStep(NamedTuple):
    """A form of the last block, its application so far, and what its new transactions did."""

    block: Block
    progress: BlockInProgress
    outcomes: tuple[Outcome, ...]


class ChainWriter(Blockchain):
    """A chain on a store, from its genesis block on."""

    def __init__(self, network: Network, store: Store, rules: RuleBook | None = None) -> None:
        """Continue the chain in the store, or begin it with the network's genesis block; ``rules``
        as in ``Blockchain``.
        """
        super().__init__(network, store, rules)
        self._store: Store = store
        self._liquid: list[_LiquidStep] = []
        self._liquid_stored: list[_LiquidStep] | None = None
        self._noted: list[ChainEvent] = []
        self.asks_turns = store.below is None
        """Whether blocks that are made here prove that it is their generator's turn: on the chain
        of another node nobody could.
        """
        self.on_change: Callable[[ChainEvent], None] = lambda _event: None
        if store.height == 0:
            self.begin()
            store.flush()
            self._last = None

    @property
    def store(self) -> Store:
        """Where it is kept."""
        return self._store

    def height_of(self, block_id: bytes) -> int | None:
        """The height of the block with this id, which may be that of an earlier form of the last
        block.
        """
        return self.height if self.knows_liquid(block_id) else super().height_of(block_id)

    def append_own(self, block: Block, progress: BlockInProgress) -> AppliedBlock:
        """Put a block on top that was made here; ``progress`` is what it was made from.

        Its transactions have been applied already and nothing was signed by anybody else; its place
        and its time are checked all the same. Raises ``BlockRejected``.
        """
        headers.check_features(self)
        if self.asks_turns:
            headers.check_header(self, block.header, block.id, None)
        return self.put(block, progress)

    def append(
        self, block: Block, *, now: int | None = None, verify_signatures: bool = True
    ) -> AppliedBlock:
        """Check a block completely and put it on top; the caller flushes the chain.

        ``now`` (ms) bounds the block's time; ``None`` for history. Without ``verify_signatures``
        the caller checks those of the block and its transactions before it flushes. Raises
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
        """The same in steps, for a block on the last one's present form, whose header and signature
        were checked: ``check_header`` gave the hit source. With ``snapshots`` its transactions do
        what these tell.
        """
        progress = yield from checking_block(
            self,
            block,
            now=now,
            verify_signatures=False,
            hit_source=hit_source,
            snapshots=snapshots,
        )
        return self.put(block, progress)

    def check_header(self, head: SignedHeader, now: int | None) -> bytes:
        """The hit source of a block that may follow; the caller checks the signature."""
        if head.header.reference != self.last_block.id:
            raise BlockRejected(self.height + 1, "its reference is not the last block")
        headers.check_features(self)
        return headers.check_header(self, head.header, head.id, now)

    def put(self, block: Block, progress: BlockInProgress) -> AppliedBlock:
        """Put a block on top that the caller has checked."""
        applied = progress.finish()
        self._record(block, applied, progress.environment)
        if self._liquid_stored is None:
            self._liquid_stored = self._liquid
        self._liquid = [_LiquidStep(block, progress, applied.outcomes)]
        self.on_change(BlockAppended(self.height, block, edited_accounts(applied.edited)))
        return applied

    @contextmanager
    def shortened(self, block_id: bytes) -> Iterator[tuple[AnyTransaction, ...]]:
        """``shorten``, to put another block on top: where that is refused, the last block is again
        what it was. Gives the transactions taken off.
        """
        forms = self._liquid[:]
        taken = self.shorten(block_id) if forms else ()
        try:
            yield taken
        except InputError:
            for before, step in pairwise(forms[len(self._liquid) - 1 :] if taken else ()):
                added = step.block.transactions[len(before.block.transactions) :]
                self.extend(
                    added,
                    step.block.header.state_hash,
                    step.block.signature,
                    verify_signatures=False,
                )
            raise

    def begin(self) -> None:
        """Put the genesis block into an empty store."""
        block = genesis_block(self.network)
        environment = genesis_environment(block, self.network, self.rules)
        progress = apply_block(self.store, block, environment)
        self._record(block, progress.finish(), environment)
        self._liquid = []

    def _record(self, block: Block, applied: AppliedBlock, environment: BlockEnvironment) -> None:
        height, meta = applied.height, meta_of(block, applied, environment)
        self._store.append(_stored(block, applied, meta, environment, self))
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
        verify_signatures: bool = True,
        verified: Collection[bytes] = (),
        snapshots: SnapshotsOfBlock | None = None,
    ) -> Block:
        """Add a microblock's transactions to the last block and give its new form.

        ``total_signature`` is the generator's for the longer block, ``state_hash`` what its header
        then holds. Signatures of those that were ``verified`` (their ids) are not looked at. With
        ``snapshots`` they do what these tell. Raises ``BlockRejected``; the block stays as it was
        then.
        """
        height = self.height
        if not self._liquid:
            raise BlockRejected(height, "the last block takes no more transactions")
        last, progress, _ = self._liquid[-1]
        if not self.rules.at(height - 1).ng:
            raise BlockRejected(height, "microblocks are not activated")
        if last.header.challenged is not None:
            raise BlockRejected(height, "a challenging block takes no microblocks")
        known = progress.encoded if last.header.version >= blocks.PROTOBUF_VERSION else None
        # Those that were there before are not encoded again with each microblock.
        encoded = None if known is None else (*known, *map(codec.encode_protobuf, transactions))
        total = blocks.extended(last, transactions, state_hash, total_signature, encoded)
        if verify_signatures and not blocks.signature_is_valid(total):
            raise BlockRejected(height, "invalid signature of the total block")
        progress = progress.copy()
        if snapshots is None:
            run_steps(
                progress.adding(
                    transactions, verify_signatures=verify_signatures, verified=verified
                )
            )
        else:
            run_steps(progress.adding_snapshots(transactions, snapshots))
        progress.check_state_hash(state_hash)
        return self.extend_own(total, progress, micro_signature)

    def extend_own(self, total: Block, progress: BlockInProgress, micro: bytes = b"") -> Block:
        """Let the last block become a longer one that was made here, from ``progress``.

        It is written at once; raises ``StorageProblem``, and the block stays as it was.
        """
        height, added = self.height, len(total.transactions) - len(self.last_block.transactions)
        applied = progress.finish()
        self._replace(total, applied, self.meta(height))
        self._liquid.append(_LiquidStep(total, progress, applied.outcomes))
        self.on_change(BlockExtended(height, total, added, micro))
        return total

    def _replace(self, total: Block, applied: AppliedBlock, meta: BlockMeta) -> None:
        first = meta.transaction_count
        meta = grown_meta(meta, total, applied)
        index = _index(total, applied, self.state, first)
        try:
            self._store.extend(
                NewBlock(applied.height, total.data, meta, applied.changes, index, first)
            )
        except StorageProblem:
            self._go_back()
            raise
        self._remember(applied.height, meta)
        self._last = total

    def knows_liquid(self, block_id: bytes) -> bool:
        """Whether the last block had this id at some point since its first transactions."""
        return any(step.block.id == block_id for step in self._liquid)

    def liquid_forms(self) -> tuple[Block, ...]:
        """The forms that the last block has had, the shortest first; none if it cannot grow."""
        return tuple(step.block for step in self._liquid)

    def liquid_form(self, block_id: bytes) -> Block | None:
        """The last block in the form that had this id."""
        return next((step.block for step in self._liquid if step.block.id == block_id), None)

    def liquid_outcomes(self, block_id: bytes) -> list[tuple[Outcome, ...]]:
        """What the transactions of the last block did up to the form that had this id: of the first
        form, and of what each microblock added. None of them if it never had that id.
        """
        ids = [step.block.id for step in self._liquid]
        count = ids.index(block_id) + 1 if block_id in ids else 0
        return [step.outcomes for step in self._liquid[:count]]

    def liquid_changes(self) -> Changes | None:
        """What the last block has changed so far, with its microblocks; ``None`` if it cannot grow.
        Not to be written.
        """
        return self._liquid[-1].progress.overlay.changes if self._liquid else None

    def liquid_progress(self) -> BlockInProgress | None:
        """A copy of the last block's application, ``None`` if that takes no microblocks."""
        grows = self.rules.at(self.height - 1).ng and self.last_block.header.challenged is None
        return self._liquid[-1].progress.copy() if self._liquid and grows else None

    def shorten(self, block_id: bytes) -> tuple[AnyTransaction, ...]:
        """Take the last block back to the form with this id; gives the transactions taken off.

        Raises ``KeyError`` when it never had that id, and ``StorageProblem`` after as many steps as
        were written.
        """
        if not self.knows_liquid(block_id):
            raise KeyError(block_id.hex())
        before = self.last_block.transactions
        try:
            while self.last_block.id != block_id:
                self._store.shorten()
                self._liquid.pop()
                self._last = self._liquid[-1].block
        finally:
            self._metas.pop(self.height, None)
            if len(self.last_block.transactions) < len(before):
                self.on_change(RolledBack(self.height, self.last_block))
        return before[len(self.last_block.transactions) :]

    def rollback(self, height: int, on_removed: Callable[[Block], None] | None = None) -> None:
        """Remove all blocks above a height; ``on_removed`` gets them, the highest first.

        Raises ``RollbackTooDeep``, and ``StorageProblem`` when not all of them could be removed.
        """
        top, chain_id = self.height, self.network.chain_id

        def tell(data: bytes) -> None:
            if on_removed is not None:
                on_removed(blocks.decode(data, chain_id))

        try:
            self._store.rollback(height, tell)
        finally:
            if self.height < top:
                self._forget()
                self.on_change(RolledBack(self.height, self.last_block))

    # --- forks ------------------------------------------------------------------------------------

    def branch(self, height: int) -> ChainWriter:
        """The same chain without the blocks above a height, to put others on top: in memory, beside
        this one, which goes on being read meanwhile. Raises ``RollbackTooDeep``.
        """
        made = ChainWriter(self.network, self._store.branch(height), self.rules)
        made._metas.update((at, meta) for at, meta in self._metas.items() if at <= height)
        if height == self.height:
            made._smallest.learn(self._smallest)
        made.on_change = made._noted.append
        made.drift_ms, made.waived = self.drift_ms, self.waived
        made.asks_turns = self.asks_turns
        return made

    def adopt(self, branch: ChainWriter, height: int) -> list[Block]:
        """Become a branch that was made at a height, in one atomic step; the blocks that went, the
        highest first.

        Nothing was put on this chain since. Raises ``StorageProblem``: nothing has happened then.
        """
        removed = [self.block_at(each) for each in range(self.height, height, -1)]
        self._store.adopt(branch.store)
        self._forget()
        self._metas.update(branch._metas)
        self._smallest.learn(branch._smallest)
        self._liquid, self._last = branch._liquid, branch.last_block
        if removed:
            self.on_change(RolledBack(height, self.block_at(height)))
        for event in branch._noted:
            self.on_change(event)
        return removed

    def flush(self) -> None:
        """Write what was put on top since the last time.

        Raises ``StorageProblem``: the chain is then as it is stored, and what is not has not
        happened.
        """
        try:
            self._store.flush()
        except StorageProblem:
            self._go_back()
            raise
        self._liquid_stored = None

    def _go_back(self) -> None:
        """Be again what the store holds; a last block that was growing goes on growing."""
        steps = self._liquid if self._liquid_stored is None else self._liquid_stored
        self._forget()
        if steps and steps[-1].block.id == self.meta(self.height).id:
            self._liquid = steps
            self._last = steps[-1].block

    def discard_pending(self) -> None:
        """Go back to what was flushed last."""
        self._store.discard_pending()
        self._forget()

    def _forget(self) -> None:
        super()._forget()
        self._liquid = []
        self._liquid_stored = None


def _stored(
    block: Block,
    applied: AppliedBlock,
    meta: BlockMeta,
    environment: BlockEnvironment,
    below: Blockchain,
) -> NewBlock:
    """What is stored of a block."""
    return NewBlock(
        applied.height,
        block.data,
        meta,
        applied.changes,
        _index(block, applied, below.state),
        by_hand=by_hand_of(block, environment, below.drift_ms),
        edited=applied.edited,
        initial=applied.initial,
    )


def _index(
    block: Block, applied: AppliedBlock, before: State, first: int = 0
) -> list[NewTransaction]:
    """What is stored of a block's transactions from number ``first`` on."""
    if not applied.outcomes:
        return []
    spans = blocks.transaction_spans(block.data)[first:]
    # Aliases may have been made in this very block.
    after = Overlay(before, applied.height)
    after.changes = applied.changes
    return [
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
        for transaction, (offset, length), outcome in zip(
            block.transactions[first:], spans, applied.outcomes, strict=True
        )
    ]
