"""The chain: blocks go on top, or come off, one at a time and only here.

``Chain`` joins the pure rules with the store: it finds what the rules need to know about the blocks
below, applies a block, and records the outcome. It is the single writer; the importer, the miner
and (through the node) peers use it.

What lives here: appending, removing, looking up. What does not: the rules (``soliton.consensus``,
``soliton.ledger``), records on disk (``soliton.storage``), the pool, the clock.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/BlockchainUpdaterImpl.scala``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from soliton.chain import blocks
from soliton.chain.addresses import Address, from_public_key, parse_address
from soliton.chain.blocks import Block, BlockHeader, ChallengedHeader
from soliton.chain.features import IMPLEMENTED, Feature
from soliton.chain.genesis import genesis_block
from soliton.chain.networks.model import Network
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.consensus import pos, rewards
from soliton.consensus.header_check import ConsensusError, HeaderRules, Parent, check_header
from soliton.ledger import patches
from soliton.ledger.apply import (
    AppliedBlock,
    BlockInProgress,
    ParentBlock,
    Payout,
    apply_block,
)
from soliton.ledger.errors import BlockRejected, WrongStateHash
from soliton.ledger.hashes import EMPTY_HASH, SECTIONS, StateHash
from soliton.ledger.patches import Patches
from soliton.ledger.ride_scripts import RideScripts
from soliton.ledger.rules_at import RuleBook
from soliton.ledger.scripts import Scripts
from soliton.ledger.state import APPROVALS, BANS, WAVES, Overlay
from soliton.node.accounts import accounts_of
from soliton.node.called import call_record
from soliton.node.chain_view import StoredChain
from soliton.node.events import BlockAppended, BlockExtended, ChainEvent, RolledBack
from soliton.node.metas import approved_features, grown_meta, meta_of
from soliton.storage.blocks import NewBlock, NewTransaction
from soliton.storage.damage import UNREADABLE, unreadable
from soliton.storage.errors import DamagedStore, StorageProblem
from soliton.storage.indexes import minimum_effective_balance
from soliton.storage.layout import BLOCK, BlockMeta, TransactionLocation, height_key
from soliton.storage.store import Store

HIT_SOURCE_DEPTH: Final = 100
_CACHED_METAS: Final = 256


class _LiquidStep(NamedTuple):
    """A form of the last block, and its application so far."""

    block: Block
    progress: BlockInProgress


class FoundTransaction(msgspec.Struct, frozen=True):
    """A transaction of the chain with its block's height, how it was applied, and the complexity
    of the scripts that it took.
    """

    transaction: AnyTransaction
    height: int
    status: int
    complexity: int


class Chain:
    """A chain on a store, from its genesis block on."""

    def __init__(self, network: Network, store: Store, scripts: Scripts | None = None) -> None:
        """Continue the chain in the store, or begin it with the network's genesis block.

        ``scripts`` reads and runs what accounts and assets have for scripts.
        """
        self.network = network
        self.scripts: Scripts = RideScripts(network) if scripts is None else scripts
        self.store = store
        self.rules = RuleBook(network, store.approvals())
        settings = network.functionality
        self.dao = _optional_address(settings.dao_address, network.chain_id)
        self.xtn = _optional_address(settings.xtn_buyback_address, network.chain_id)
        self._metas: OrderedDict[int, BlockMeta] = OrderedDict()
        self._liquid: list[_LiquidStep] = []
        self._liquid_stored: list[_LiquidStep] | None = None
        self.on_change: Callable[[ChainEvent], None] = lambda _event: None
        if store.height == 0:
            self._begin(genesis_block(network))
            store.flush()
        self._last: Block | None = None

    # --- looking up -------------------------------------------------------------------------------

    @property
    def height(self) -> int:
        """The height of the last block."""
        return self.store.height

    @property
    def view(self) -> StoredChain:
        """The chain as scripts see it. Not kept: a chain that nobody needs any more is freed at
        once, with what it reads.
        """
        return StoredChain(self)

    @property
    def last_block(self) -> Block:
        """The last block."""
        if self._last is None:
            self._last = self.block_at(self.height)
        return self._last

    def follow(self) -> None:
        """See what the process that writes has put on the chain, or taken off."""
        if self.store.follow():
            self._forget()

    def block_at(self, height: int) -> Block:
        """The block at a height; raises ``KeyError`` where there is none."""
        data = self.store.block_data(height)
        if data is None:
            raise KeyError(height)
        try:
            return blocks.decode(data, self.network.chain_id)
        except UNREADABLE as error:
            raise unreadable(height_key(BLOCK, height), error) from error

    def height_of(self, block_id: bytes) -> int | None:
        """The height of the block with this id, which may be that of an earlier form of the last
        block.
        """
        return self.height if self.knows_liquid(block_id) else self.store.height_of(block_id)

    def meta(self, height: int) -> BlockMeta:
        """What is known about the block at a height; raises ``KeyError`` where there is none."""
        found = self._metas.get(height)
        if found is None:
            found = self.store.meta(height)
            if found is None:
                raise KeyError(height)
            self._remember(height, found)
        return found

    def _remember(self, height: int, meta: BlockMeta) -> None:
        self._metas[height] = meta
        if len(self._metas) > _CACHED_METAS:
            self._metas.popitem(last=False)

    def state_hash(self, height: int) -> StateHash:
        """The legacy state hash of a block with its sections; raises ``KeyError``."""
        meta = self.meta(height)
        sections = tuple(meta.sections.get(index, EMPTY_HASH) for index in range(len(SECTIONS)))
        return StateHash(meta.state_hash, sections)

    def transaction(self, transaction_id: bytes) -> FoundTransaction | None:
        """The transaction with this id, ``None`` where the chain has none."""
        location = self.store.transaction_location(transaction_id)
        return None if location is None else self._read_transaction(location)

    def _read_transaction(self, location: TransactionLocation) -> FoundTransaction:
        height, offset, length = location.height, location.offset, location.length
        found = self.store.block_piece(height, offset, length)
        if found is None:
            raise DamagedStore(f"block {height} of an indexed transaction is missing")
        first_byte, piece = found
        legacy = first_byte < blocks.PROTOBUF_VERSION
        decode = codec.decode_legacy if legacy else codec.decode_own
        try:
            transaction = decode(piece, self.network.chain_id)
        except UNREADABLE as error:
            raise unreadable(height_key(BLOCK, height), error) from error
        return FoundTransaction(transaction, height, location.status, location.complexity)

    def generating_balance(self, address: Address, height: int | None = None) -> int:
        """The balance in wavelets with which an account mines on top of the block at ``height``.

        It is 0 while a block that challenged the account's own one is within reach.
        """
        at = self.height if height is None else height
        rules = self.rules.at(at)
        bottom = max(1, at - rules.generating_balance_depth + 1)
        if rules.state_hash_required and any(
            bottom <= banned <= at for banned in self.store.get(BANS, address)
        ):
            return 0
        return minimum_effective_balance(self.store, address, bottom, at)

    # --- what the rules need to know --------------------------------------------------------------

    def parent_block(self) -> ParentBlock:
        """The last block as the ledger sees it."""
        height = self.height
        meta = self.meta(height)
        return ParentBlock(height, meta.timestamp, meta.snapshot_hash, meta.state_hash, meta.carry)

    def hit_source(self) -> bytes:
        """The hit source that decides who may mine on top of the last block."""
        height = self.height
        if self.rules.at(height).pos is not pos.NXT and height > HIT_SOURCE_DEPTH:
            height -= HIT_SOURCE_DEPTH
        return self.meta(height).hit_source

    def great_grandparent_timestamp(self) -> int | None:
        """The time of the block two below the last one, as base targets see it."""
        height = self.height
        return self.meta(height - 2).timestamp if height > 2 else None

    def consensus_parent(self, header: BlockHeader) -> Parent:
        """The last block as the check of this header sees it.

        Who challenges another generator mines with the balance of both.
        """
        balance = self._balance_of_key(header.generator)
        if header.challenged is not None:
            balance += self._balance_of_key(header.challenged.generator)
        return Parent(
            height=self.height,
            header=self.last_block.header,
            hit_source=self.hit_source(),
            great_grandparent_timestamp=self.great_grandparent_timestamp(),
            generating_balance=balance,
        )

    def _balance_of_key(self, public_key: bytes) -> int:
        return self.generating_balance(from_public_key(public_key, self.network.chain_id))

    def header_rules(self) -> HeaderRules:
        """The rules for the header of the next block."""
        return self.rules.header_at(self.height + 1)

    def next_reward(self) -> int:
        """The next block's reward in wavelets, before boost and shares; 0 before the feature."""
        activations = self.rules.activations()
        start = activations.get(Feature.BLOCK_REWARD)
        if start is None or self.height + 1 < start:
            return 0
        settings = self.network.rewards
        # The genesis block gets none. Votes can bring a reward down to nothing as well.
        first = self.height + 1 <= max(start, 2)
        current = settings.initial if first else self.meta(self.height).reward
        voters = rewards.voting_heights(self.height, activations, settings)
        if voters is None:
            return current
        votes = (self.meta(height).reward_vote for height in voters if height >= 1)
        return rewards.next_reward(current, votes, settings)

    def payouts(self, generator: bytes) -> tuple[Payout, ...]:
        """Who gets what of the next block's reward."""
        reward = self.next_reward()
        if reward == 0:
            return ()
        share = rewards.shares(
            self.height + 1, reward, self.rules.activations(), self.network.functionality
        )
        miner = from_public_key(generator, self.network.chain_id)
        parts = ((miner, share.miner), (self.dao, share.dao), (self.xtn, share.xtn_buyback))
        return tuple(Payout(to, amount) for to, amount in parts if to is not None and amount)

    def patch(self) -> Patches | None:
        """What the next block changes in the state before its first transaction."""
        return patches.at(self.network, self.height + 1, self.rules.activations())

    # --- writing ----------------------------------------------------------------------------------

    def append_own(self, block: Block, progress: BlockInProgress) -> AppliedBlock:
        """Put a block on top that was made here; ``progress`` is what it was made from.

        Its transactions have been applied already and nothing was signed by anybody else; its place
        and its time are checked all the same. Raises ``BlockRejected``.
        """
        self._check_features(self.height + 1)
        hit_source = self._check_header(block.header, block.id, None)
        return self._put(block, progress, hit_source)

    def append(
        self, block: Block, *, now: int | None = None, verify_signatures: bool = True
    ) -> AppliedBlock:
        """Check a block completely and put it on top; the caller flushes the chain.

        ``now`` (ms) bounds the block's time; ``None`` for history. Without ``verify_signatures``
        the caller checks those of the block and its transactions before it flushes. Raises
        ``BlockRejected``.
        """
        height = self.height + 1
        header = block.header
        if header.reference != self.last_block.id:
            if self.knows_liquid(header.reference):
                return self._append_below(block, now, verify_signatures=verify_signatures)
            raise BlockRejected(height, "its reference is not the last block")
        self._check_features(height)
        hit_source = self._check_header(header, block.id, now)
        if blocks.has_weak_key(block) or (
            verify_signatures and not blocks.signature_is_valid(block)
        ):
            raise BlockRejected(height, "invalid signature of the generator")
        if header.version >= blocks.PROTOBUF_VERSION:
            root = blocks.transactions_root(block.transactions)
            if root != header.transactions_root:
                raise BlockRejected(height, f"transactions root is not {root.hex()}")
        if header.challenged is not None:
            self._check_challenge(block, header.challenged, now)
        progress = self._apply(block, hit_source, verify_signatures=verify_signatures)
        return self._put(block, progress, hit_source)

    def _put(self, block: Block, progress: BlockInProgress, hit_source: bytes) -> AppliedBlock:
        applied = progress.finish()
        self._record(block, applied, hit_source)
        if self._liquid_stored is None:
            self._liquid_stored = self._liquid
        self._liquid = [_LiquidStep(block, progress)]
        self.on_change(BlockAppended(self.height, block))
        return applied

    def _append_below(
        self, block: Block, now: int | None, *, verify_signatures: bool
    ) -> AppliedBlock:
        """Put a block on an earlier form of the last one; later microblocks are dropped."""
        dropped = self._liquid[:]
        self.shorten(block.header.reference)
        try:
            return self.append(block, now=now, verify_signatures=verify_signatures)
        except BlockRejected:
            kept = len(self._liquid)
            for before, step in pairwise(dropped[kept - 1 :]):
                added = step.block.transactions[len(before.block.transactions) :]
                self.extend(
                    added,
                    step.block.header.state_hash,
                    step.block.signature,
                    verify_signatures=False,
                )
            raise

    def _apply(
        self, block: Block, hit_source: bytes, *, verify_signatures: bool
    ) -> BlockInProgress:
        height = self.height + 1
        rules = self.rules.at(height)
        seen = None
        if rules.has(Feature.SMART_ACCOUNTS):
            # Only scripts look at it.
            seen = self.view.describe(block.header, height, hit_source, self.next_reward())
        return apply_block(
            self.store,
            block,
            self.parent_block(),
            rules,
            self.rules.at(height - 1),
            self.payouts(block.header.generator),
            patch=self.patch(),
            verify_signatures=verify_signatures,
            scripts=self.scripts,
            seen=seen,
            chain=self.view,
        )

    def _check_challenge(self, block: Block, challenged: ChallengedHeader, now: int | None) -> None:
        """Refuse a challenge unless the challenged block is wrong in its state hash alone."""
        height = self.height + 1
        original = blocks.assemble(
            blocks.original_header(block.header, challenged),
            block.transactions,
            challenged.header_signature,
        )
        try:
            hit_source = self._check_header(original.header, original.id, now)
            self._apply(original, hit_source, verify_signatures=False)
        except WrongStateHash:
            return
        except BlockRejected as error:
            raise BlockRejected(height, f"invalid block challenge: {error.reason}") from error
        raise BlockRejected(height, "invalid block challenge: the state hash was right")

    def _check_features(self, height: int) -> None:
        """Refuse to go on where a feature is active that this version does not implement."""
        unknown = self.rules.at(height).features - IMPLEMENTED
        if unknown:
            raise BlockRejected(
                height, f"features {sorted(unknown)} are active there, a newer version is needed"
            )

    def _check_header(self, header: BlockHeader, block_id: bytes, now: int | None) -> bytes:
        try:
            return check_header(
                header, block_id, self.consensus_parent(header), self.header_rules(), now
            )
        except ConsensusError as error:
            raise BlockRejected(self.height + 1, str(error)) from error

    def _begin(self, block: Block) -> None:
        progress = apply_block(self.store, block, None, self.rules.at(1), self.rules.at(0))
        self._record(block, progress.finish(), block.header.generation_signature)
        self._liquid = []

    def _record(self, block: Block, applied: AppliedBlock, hit_source: bytes) -> None:
        height, header = applied.height, block.header
        meta = meta_of(self, block, applied, hit_source)
        approved = approved_features(self, height, header.feature_votes)
        if approved:
            applied.changes[APPROVALS] = dict.fromkeys(approved, height)
        if header.challenged is not None:
            banned = from_public_key(header.challenged.generator, self.network.chain_id)
            heights = (*self.store.get(BANS, banned), height)
            applied.changes[BANS] = {banned: heights}
        self.store.append(
            NewBlock(height, block.data, meta, applied.changes, self._index(block, applied))
        )
        self._remember(height, meta)
        self._last = block
        if approved:
            self._read_approvals()

    def _read_approvals(self) -> None:
        self.rules = RuleBook(self.network, self.store.approvals())

    def _index(self, block: Block, applied: AppliedBlock, first: int = 0) -> list[NewTransaction]:
        if not applied.outcomes:
            return []
        spans = blocks.transaction_spans(block.data)[first:]
        # Aliases may have been made in this very block.
        after = Overlay(self.store, applied.height)
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
                call_record(transaction, outcome.state_changes, after, self.store),
            )
            for transaction, (offset, length), outcome in zip(
                block.transactions[first:], spans, applied.outcomes, strict=True
            )
        ]

    # --- the liquid block -------------------------------------------------------------------------

    def extend(
        self,
        transactions: tuple[AnyTransaction, ...],
        state_hash: bytes | None,
        total_signature: bytes,
        *,
        verify_signatures: bool = True,
    ) -> Block:
        """Add a microblock's transactions to the last block and give its new form.

        ``total_signature`` is the generator's for the longer block, ``state_hash`` what its header
        then holds. Raises ``BlockRejected``; the block stays as it was then.
        """
        height = self.height
        if not self._liquid:
            raise BlockRejected(height, "the last block takes no more transactions")
        last, progress = self._liquid[-1]
        if not self.rules.at(height - 1).ng:
            raise BlockRejected(height, "microblocks are not activated")
        if last.header.challenged is not None:
            raise BlockRejected(height, "a challenging block takes no microblocks")
        total = blocks.extended(last, transactions, state_hash, total_signature)
        if verify_signatures and not blocks.signature_is_valid(total):
            raise BlockRejected(height, "invalid signature of the total block")
        progress = progress.copy()
        progress.add_all(transactions, verify_signatures=verify_signatures)
        progress.check_state_hash(state_hash)
        return self.extend_own(total, progress)

    def extend_own(self, total: Block, progress: BlockInProgress) -> Block:
        """Let the last block become a longer one that was made here, from ``progress``.

        It is written at once; raises ``StorageProblem``, and the block stays as it was.
        """
        height, added = self.height, len(total.transactions) - len(self.last_block.transactions)
        self._replace(total, progress.finish(), self.meta(height))
        self._liquid.append(_LiquidStep(total, progress))
        self.on_change(BlockExtended(height, total, added))
        return total

    def _replace(self, total: Block, applied: AppliedBlock, meta: BlockMeta) -> None:
        first = meta.transaction_count
        meta = grown_meta(meta, total, applied)
        index = self._index(total, applied, first)
        try:
            self.store.extend(
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
                self.store.shorten()
                self._liquid.pop()
                self._last = self._liquid[-1].block
        finally:
            self._metas.pop(self.height, None)
            if len(self.last_block.transactions) < len(before):
                self.on_change(RolledBack(self.height, self.last_block))
        return before[len(self.last_block.transactions) :]

    def rollback(self, height: int, on_removed: Callable[[Block], None] | None = None) -> None:
        """Remove all blocks above a height; ``on_removed`` gets them, the highest first.

        Raises ``RollbackTooDeep``, and ``StorageProblem`` when only some of them, or none, could be
        removed.
        """
        top, chain_id = self.height, self.network.chain_id

        def tell(data: bytes) -> None:
            if on_removed is not None:
                on_removed(blocks.decode(data, chain_id))

        try:
            self.store.rollback(height, tell)
        finally:
            if self.height < top:
                self._forget()
                self.on_change(RolledBack(self.height, self.last_block))

    def flush(self) -> None:
        """Write what was put on top since the last time.

        Raises ``StorageProblem``: the chain is then as it is stored, and what is not has not
        happened.
        """
        try:
            self.store.flush()
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
        self.store.discard_pending()
        self._forget()

    def _forget(self) -> None:
        self._metas.clear()
        self._liquid = []
        self._liquid_stored = None
        self._read_approvals()
        self._last = None

    def balance(self, address: Address) -> int:
        """An account's balance in wavelets."""
        return self.store.get(WAVES, address)


def _optional_address(text: str | None, chain_id: int) -> Address | None:
    return None if text is None else parse_address(text, chain_id)
