"""The chain to be read: blocks, transactions, balances, and what the rules need of it.

What lives here: looking up. What does not: putting blocks on top (``chain_writer``), records on
disk (``soliton.storage``), the rules (``soliton.ledger``), which read a chain as ``Ancestors``.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/Blockchain.scala``.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import msgspec

from soliton.chain import blocks
from soliton.chain.addresses import Address
from soliton.chain.blocks import Block
from soliton.chain.networks.model import Network
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.ledger import headers
from soliton.ledger.environment import BlockMeta, PastTransaction, block_info
from soliton.ledger.hashes import EMPTY_HASH, SECTIONS, StateHash
from soliton.ledger.rules_at import RuleBook
from soliton.ledger.state import WAVES, State, Status
from soliton.node.smallest_balances import SmallestBalances
from soliton.ride.environment import BlockInfo
from soliton.storage.damage import UNREADABLE, unreadable
from soliton.storage.errors import DamagedStore
from soliton.storage.layout import BLOCK, TransactionLocation, height_key
from soliton.storage.reader import StoreReader

_CACHED_METAS: Final = 256


class FoundTransaction(msgspec.Struct, frozen=True):
    """A transaction of the chain with its block's height, how it was applied, and the complexity
    of the scripts that it took.
    """

    transaction: AnyTransaction
    height: int
    status: int
    complexity: int


class Blockchain:
    """A chain in a store."""

    def __init__(self, network: Network, store: StoreReader, rules: RuleBook | None = None) -> None:
        """``rules`` are those of a chain that has mostly the same approvals."""
        self.network = network
        self._store = store
        self.rules = RuleBook(network) if rules is None else rules
        self._read_approvals()
        self._metas: OrderedDict[int, BlockMeta] = OrderedDict()
        self._smallest = SmallestBalances(store)
        self._last: Block | None = None
        self.waived: frozenset[Address] = frozenset()
        """Of these accounts no proofs are asked for."""
        self.drift_ms = 0
        """So much further than the network says may times of transactions be from a block's."""

    @property
    def store(self) -> StoreReader:
        """Where it is kept."""
        return self._store

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
    def state(self) -> State:
        """The state after the last block."""
        return self.store

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

    def allow_drift(self, milliseconds: int) -> None:
        """Take transactions whose times are so much further from a block's than the network allows:
        the clock of a private chain need not be that of its clients.
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
        """The block at a height; raises ``KeyError`` where there is none."""
        data = self.store.block_data(height)
        if data is None:
            raise KeyError(height)
        try:
            return blocks.decode(data, self.network.chain_id)
        except UNREADABLE as error:
            raise unreadable(height_key(BLOCK, height), error) from error

    def height_of(self, block_id: bytes) -> int | None:
        """The height of the block with this id."""
        return self.store.height_of(block_id)

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
        """The balance in wavelets with which an account mines on top of the block at ``height``."""
        return headers.generating_balance(self, address, self.height if height is None else height)

    def smallest_effective_balance(self, address: Address, bottom: int, top: int, /) -> int:
        """That of an account after the blocks ``bottom`` to ``top``, in wavelets."""
        return self._smallest.smallest(address, bottom, top, self.height)

    def balance(self, address: Address) -> int:
        """An account's balance in wavelets."""
        return self.store.get(WAVES, address)

    def _read_approvals(self) -> None:
        self.rules = self.rules.with_approvals(self.store.approvals())

    def _forget(self) -> None:
        """Read everything anew."""
        self._metas.clear()
        self._smallest.forget()
        self._read_approvals()
        self._last = None


class StoredChain:
    """What a chain holds, for scripts."""

    __slots__ = ("_chain",)

    def __init__(self, chain: Blockchain) -> None:
        self._chain = chain

    def block(self, height: int, /) -> BlockInfo | None:
        """The block at a height."""
        chain = self._chain
        if not 1 <= height <= chain.height:
            return None
        header = chain.last_block.header if height == chain.height else None
        header = header or chain.block_at(height).header
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
        """A transaction."""
        found = self._chain.transaction(transaction_id)
        if found is None:
            return None
        return PastTransaction(found.transaction, found.height, Status(found.status))

    def generating_balance(self, address: Address, height: int, /) -> int:
        """The smallest effective balance of an account in the blocks that count at a height, as
        far as they are stored below it; 0 while it is banned.
        """
        return headers.generating_balance(self._chain, address, height, height - 1)

    def has_data(self, address: Address, /) -> bool:
        """Whether an account ever had an entry in its data storage."""
        return self._chain.store.has_had_data(address)
