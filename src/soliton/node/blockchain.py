"""Read access to the chain: blocks, transactions, balances, and what the rules need.

What lives here: lookups. What does not: appending blocks (``chain_writer``), records on disk
(``soliton.storage``), the rules (``soliton.ledger``), which read a chain as ``Ancestors``.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/Blockchain.scala``.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import msgspec

from soliton.chain import blocks
from soliton.chain.addresses import Address
from soliton.chain.blocks import MAX_FEATURE_VOTES, Block, BlockHeader
from soliton.chain.features import Feature
from soliton.chain.networks.model import Network
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.ledger import headers
from soliton.ledger.environment import BlockMeta, PastTransaction, block_info
from soliton.ledger.finality import GENESIS_HEIGHT, conflicting_indexes
from soliton.ledger.generators import Committed, GeneratorSet, with_conflicts
from soliton.ledger.hashes import (
    EMPTY_HASH,
    SECTIONS,
    SECTIONS_BEFORE_FINALITY,
    StateHash,
)
from soliton.ledger.rules_at import RuleBook
from soliton.ledger.state import WAVES, State, Status
from soliton.node.smallest_balances import SmallestBalances
from soliton.ride.environment import BlockInfo
from soliton.storage.damage import UNREADABLE, unreadable
from soliton.storage.errors import DamagedStore
from soliton.storage.layout import BLOCK, TransactionLocation, height_key
from soliton.storage.reader import StoreReader

_CACHED_METAS: Final = 256
MAX_ROLLBACK: Final = 100
_CACHED_VOTES: Final = 20_000
"""The blocks whose votes are cached: more than are counted together on any public network."""


class FoundTransaction(msgspec.Struct, frozen=True):
    """A transaction of the chain with its block's height, its status, and the complexity of the
    scripts that it ran.
    """

    transaction: AnyTransaction
    height: int
    status: int
    complexity: int


HEADER_BYTES: Final = 4_096
"""Read of a block to find its header and signature, which rarely have a tenth of that."""


class Blockchain:
    """A chain in a store."""

    def __init__(self, network: Network, store: StoreReader, rules: RuleBook | None = None) -> None:
        """``rules`` may be those of another chain with mostly the same feature approvals, to share
        its cache.
        """
        self.network = network
        self._store = store
        self.rules = RuleBook(network) if rules is None else rules
        self._read_approvals()
        self._metas: OrderedDict[int, BlockMeta] = OrderedDict()
        self._votes: dict[int, tuple[int, ...]] = {}
        self._smallest = SmallestBalances(store)
        self._last: Block | None = None
        self._generators: tuple[tuple[bytes, int, bool], GeneratorSet | None] | None = None
        self.waived: frozenset[Address] = frozenset()
        """Accounts whose transactions need no proofs (private chains)."""
        self.max_rollback = MAX_ROLLBACK
        """The most blocks that are removed for another chain (``synchronization.max-rollback``)."""
        self.drift_ms = 0
        """Additional tolerance for the timestamps of transactions (private chains)."""

    @property
    def store(self) -> StoreReader:
        """The store of the chain."""
        return self._store

    @property
    def height(self) -> int:
        """The height of the last block."""
        return self._store.height

    @property
    def view(self) -> StoredChain:
        """The chain as scripts see it. Not cached, to avoid a reference cycle: an unused chain is
        freed at once.
        """
        return StoredChain(self)

    @property
    def state(self) -> State:
        """The state after the last block."""
        return self._store

    @property
    def last_block(self) -> Block:
        """The last block."""
        if self._last is None:
            self._last = self.block_at(self.height)
        return self._last

    @property
    def finalized_height(self) -> int:
        """The height of the last block that is final: no automatic rollback removes it.

        It is what the blocks below the last one have made final, or else so far below the last one
        that the network does not roll back further.
        """
        return self.finalized_under(self.height)

    def finalized_under(self, height: int) -> int:
        """Return ``finalized_height`` as it was when the block at a height was the last one."""
        return max(self._voted_below(height), height - self.max_rollback, GENESIS_HEIGHT)

    def finalized_with(self, height: int) -> int:
        """Return the height of the last block that is final by the votings up to a height."""
        voted = self.meta(height).finalized_height if height > 0 else 0
        return max(voted, height - self.max_rollback, GENESIS_HEIGHT)

    @property
    def voted_height(self) -> int:
        """The height of the last block that votings below the last block have made final, or 0."""
        return self._voted_below(self.height)

    def _voted_below(self, height: int) -> int:
        return self.meta(height - 1).finalized_height if height > 1 else 0

    def follow(self) -> None:
        """Catch up with the process that writes the chain."""
        if self.store.follow():
            self._forget()

    def allow_drift(self, milliseconds: int) -> None:
        """Extend the network's limits for the timestamps of transactions: the clock of a private
        chain may differ from that of its clients.
        """
        more, rules = milliseconds - self.drift_ms, self.network.functionality
        if not more:
            return
        rules = msgspec.structs.replace(
            rules,
            max_transaction_time_back_offset_ms=rules.max_transaction_time_back_offset_ms + more,
            max_transaction_time_forward_offset_ms=rules.max_transaction_time_forward_offset_ms
            + more,
        )
        self.network = msgspec.structs.replace(self.network, functionality=rules)
        self.drift_ms = milliseconds
        self.rules = RuleBook(self.network, self.store.approvals())

    def block_at(self, height: int) -> Block:
        """Return the block at a height; raises ``KeyError`` if there is none."""
        data = self.store.block_data(height)
        if data is None:
            raise KeyError(height)
        try:
            return blocks.decode(data, self.network.chain_id)
        except UNREADABLE as error:
            raise unreadable(height_key(BLOCK, height), error) from error

    def header_at(self, height: int) -> tuple[BlockHeader, bytes]:
        """Return header and signature of the block at a height, without reading its transactions
        where their place allows it; raises ``KeyError`` if there is none.
        """
        lone = self.store.lone_header(height)
        if lone is not None:
            return blocks.decode_header(lone, self.network.chain_id)
        found = self.store.block_piece(height, 0, HEADER_BYTES)
        if found is None:
            raise KeyError(height)
        try:
            part = blocks.header_part(found[1])
            if part is None:
                part = self.store.block_data(height) or found[1]
            return blocks.decode_header(part, self.network.chain_id)
        except UNREADABLE as error:
            raise unreadable(height_key(BLOCK, height), error) from error

    def height_of(self, block_id: bytes) -> int | None:
        """Return the height of the block with this id."""
        return self.store.height_of(block_id)

    def meta(self, height: int) -> BlockMeta:
        """Return the metadata of the block at a height; raises ``KeyError`` if there is none."""
        found = self._metas.get(height)
        if found is None:
            found = self._read_meta(height)
            self._remember(height, found)
        return found

    def _read_meta(self, height: int) -> BlockMeta:
        found = self._store.meta(height)
        if found is None:
            raise KeyError(height)
        return found

    def _remember(self, height: int, meta: BlockMeta) -> None:
        if len(meta.feature_votes) > MAX_FEATURE_VOTES:
            # Whoever generates blocks may vote a million times in one: caches would grow with it.
            return
        self._metas[height] = meta
        if len(self._metas) > _CACHED_METAS:
            self._metas.popitem(last=False)
        self._remember_votes(height, meta.feature_votes)

    def feature_votes(self, height: int, /) -> tuple[int, ...]:
        """Return the features that a block votes for; raises ``KeyError`` if there is no block."""
        votes = self._votes.get(height)
        if votes is None:
            votes = self._read_meta(height).feature_votes
            if len(votes) <= MAX_FEATURE_VOTES:
                self._remember_votes(height, votes)
        return votes

    def _remember_votes(self, height: int, votes: tuple[int, ...]) -> None:
        # A count reads all blocks of a window, of which a node that follows has applied most.
        if len(self._votes) >= _CACHED_VOTES:
            self._votes.clear()
        self._votes[height] = votes

    def state_hash(self, height: int) -> StateHash:
        """Return the legacy state hash of a block with its sections; raises ``KeyError`` and
        ``NotKept``.
        """
        meta = self.meta(height)
        self.store.kept.need_state_hash(height)
        finality = self.rules.at(height).has(Feature.DETERMINISTIC_FINALITY)
        count = len(SECTIONS) if finality else SECTIONS_BEFORE_FINALITY
        sections = tuple(meta.sections.get(index, EMPTY_HASH) for index in range(count))
        return StateHash(meta.state_hash, sections)

    def transaction(self, transaction_id: bytes) -> FoundTransaction | None:
        """Return the transaction with this id, ``None`` if the chain has none."""
        location = self.store.transaction_location(transaction_id)
        return None if location is None else self._read_transaction(location)

    def _read_transaction(self, location: TransactionLocation) -> FoundTransaction:
        height, offset, length = location.height, location.offset, location.length
        found = self.store.block_piece(height, offset, length)
        if found is None:
            raise DamagedStore(f"block {height} of an indexed transaction is missing")
        first_byte, piece = found
        legacy = first_byte < blocks.PROTOBUF_VERSION
        decode = codec.decode_legacy if legacy else codec.decode_trusted
        try:
            transaction = decode(piece, self.network.chain_id)
        except UNREADABLE as error:
            raise unreadable(height_key(BLOCK, height), error) from error
        return FoundTransaction(transaction, height, location.status, location.complexity)

    def generating_balance(self, address: Address, height: int | None = None) -> int:
        """Return the generating balance in wavelets for a block on top of that at ``height``."""
        return headers.generating_balance(self, address, self.height if height is None else height)

    def generator_set(self, timestamp: int, /) -> GeneratorSet | None:
        """Return the generators of the next block, which has a timestamp (ms); ``None`` before
        deterministic finality. The set on top of the last block is cached.
        """
        enforced = timestamp >= self.rules.at(self.height).minimal_generating_balance_after
        key = self.meta(self.height).id, self.height, enforced
        if self._generators is None or self._generators[0] != key:
            known = self._known_committed()
            made = headers.make_generator_set(self, self.height + 1, timestamp, known)
            self._generators = key, made
        return self._generators[1]

    def _known_committed(self) -> tuple[Committed, ...] | None:
        """Return who has committed to the next block's period, if the set on top of the last
        block's parent is cached, and of the same period.
        """
        if self._generators is None:
            return None
        (block_id, height, _), known = self._generators
        header = self.last_block.header
        if known is None or (block_id, height + 1) != (header.reference, self.height):
            return None
        if known.period != self.rules.period_at(self.height + 1):
            return None
        return with_conflicts(
            known.committed, conflicting_indexes(header.finalization_voting), self.height
        )

    def generators_at(self, height: int) -> GeneratorSet | None:
        """Return the generators of the block at a height; ``None`` before deterministic finality.
        Those with a conflict up to that height are no members. Raises ``KeyError``.
        """
        return headers.make_generator_set(self, height, self.meta(height).timestamp)

    def smallest_effective_balance(self, address: Address, bottom: int, top: int, /) -> int:
        """Return the smallest effective balance of an account after each of the blocks ``bottom``
        to ``top``, in wavelets.
        """
        return self._smallest.smallest(address, bottom, top, self.height)

    def balance(self, address: Address) -> int:
        """Return an account's balance in wavelets."""
        return self.store.get(WAVES, address)

    def _read_approvals(self) -> None:
        self.rules = self.rules.with_approvals(self.store.approvals())

    def _forget(self) -> None:
        """Drop all caches."""
        self._metas.clear()
        self._votes.clear()
        self._generators = None
        self._smallest.forget()
        self._read_approvals()
        self._last = None


class StoredChain:
    """The chain, for scripts."""

    __slots__ = ("_chain",)

    def __init__(self, chain: Blockchain) -> None:
        self._chain = chain

    def block(self, height: int, /) -> BlockInfo | None:
        """Return the block at a height."""
        chain = self._chain
        if not 1 <= height <= chain.height:
            return None
        at_top = height == chain.height
        header = chain.last_block.header if at_top else chain.header_at(height)[0]
        meta = chain.meta(height)
        return block_info(
            chain.network,
            chain.rules,
            chain.height + 1,
            header,
            height,
            meta.hit_source,
            meta.reward,
        )

    def transaction(self, transaction_id: bytes, /) -> PastTransaction | None:
        """Return the transaction with this id."""
        found = self._chain.transaction(transaction_id)
        if found is None:
            return None
        return PastTransaction(found.transaction, found.height, Status(found.status))

    def generating_balance(self, address: Address, height: int, /) -> int:
        """Return an account's generating balance at a height, from the stored blocks below it; 0
        while the account is banned.
        """
        return headers.generating_balance(self._chain, address, height, height - 1)

    def has_data(self, address: Address, /) -> bool:
        """Whether an account ever had an entry in its data storage."""
        return self._chain.store.has_had_data(address)
