"""Verification of a store: that all records exist, can be decoded, and are consistent.

Whatever can be recomputed is: ids, signatures, roots and links of the blocks, their scores, the
chain of state hashes, the metadata of blocks, the locations of transactions. The state, which
cannot be recomputed without applying all blocks, is compared with related records: balances with
their histories, indexes with their targets. Every record of every kind is read.

What lives here: the checks, which end at the first damage. What does not: showing progress, and the
process that may crash on damaged data (``soliton.cli``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import msgspec

from soliton.chain import blocks
from soliton.chain.addresses import ADDRESS_LENGTH, Address
from soliton.chain.blocks import Block, BlockHeader, SignedHeader
from soliton.consensus import pos
from soliton.crypto.hashes import blake2b256
from soliton.ledger.environment import BlockMeta
from soliton.ledger.state import ASSET_BALANCES, DEPOSITS, LEASES, WAVES
from soliton.node.blockchain import Blockchain
from soliton.storage import layout
from soliton.storage.damage import UNREADABLE, kind_of, unreadable
from soliton.storage.errors import DamagedStore
from soliton.storage.indexes import asset_balance_at
from soliton.storage.layout import height_key, place_key

BLOCKS: Final = "blocks"
RECORDS: Final = "records"
"""What is counted, one after the other."""
REPORT_EVERY: Final = 100
"""Progress is reported after so many blocks."""
REPORT_RECORDS: Final = 20_000

_HEIGHT_BYTES: Final = 4
_PLACE_BYTES: Final = 6


class Verified(msgspec.Struct, frozen=True):
    """The numbers of what was read."""

    blocks: int
    transactions: int
    records: int


def verify(
    chain: Blockchain,
    on_progress: Callable[[str, int, int], None] = lambda _unit, _done, _total: None,
) -> Verified:
    """Check the whole store; raises ``DamagedStore`` for the first damage.

    ``on_progress`` is called with what is counted (``BLOCKS``, ``RECORDS``), how many are checked,
    and of about how many.
    """
    transactions = with_changes = 0
    kept = chain.store.kept
    before: BlockMeta | None = None
    for height in range(1, chain.height + 1):
        is_lone = 1 < height < kept.blocks_from
        check = _check_lone_header if is_lone else _check_block
        before = check(chain, height, before)
        transactions += before.transaction_count
        if height >= kept.changes_from:
            with_changes += before.transaction_count
        if height % REPORT_EVERY == 0:
            on_progress(BLOCKS, height, chain.height)
    records, total = _Records(chain), chain.store.database.estimated_rows()
    for _ in records.check():
        on_progress(RECORDS, records.count, total)
    records.compare(with_changes)
    return Verified(chain.height, transactions, records.count)


# --- blocks ---------------------------------------------------------------------------------------


def _same(height: int, name: str, found: object, expected: object) -> None:
    if found != expected:
        raise DamagedStore(f"block {height}: {name} is {found!r}, and should be {expected!r}")


def _check_header(
    chain: Blockchain, header: BlockHeader, block_id: bytes, height: int, before: BlockMeta | None
) -> BlockMeta:
    """Check the header of a block against its metadata and its parent; return the metadata."""
    meta = chain.store.meta(height)
    assert meta is not None, "the store says itself when it has none"
    same = partial(_same, height)
    same("its id", meta.id, block_id)
    same("its height by its id", chain.store.height_of(block_id), height)
    same("its time", meta.timestamp, header.timestamp)
    same("its generator", meta.generator, header.generator)
    same("its vote on the reward", meta.reward_vote, header.reward_vote)
    same("its votes on features", tuple(meta.feature_votes), tuple(header.feature_votes))
    score = pos.block_score(header.base_target)
    if before is not None:
        same("its parent", header.reference, before.id)
        score += int.from_bytes(before.score, "big")
    same("the chain's score", int.from_bytes(meta.score, "big"), score)
    return meta


def _check_lone_header(chain: Blockchain, height: int, before: BlockMeta | None) -> BlockMeta:
    """Check a block whose transactions were deleted. Up to version 4 its signature is of these,
    too, and cannot be checked.
    """
    header, signature = chain.header_at(height)
    meta = _check_header(chain, header, blocks.id_of(header, signature), height, before)
    if header.version >= blocks.PROTOBUF_VERSION:
        signed = SignedHeader(header, signature, meta.id, blocks.header_bytes(header))
        _same(height, "its signature", blocks.signature_is_valid(signed), True)
    return meta


def _check_block(chain: Blockchain, height: int, before: BlockMeta | None) -> BlockMeta:
    block = chain.block_at(height)
    header = block.header
    meta = _check_header(chain, header, block.id, height, before)
    same = partial(_same, height)
    same("its size", meta.size, len(block.data))
    same("the number of its transactions", meta.transaction_count, len(block.transactions))
    total = b""
    if before is not None:
        same("its signature", blocks.signature_is_valid(block), True)
        total = before.state_hash
    if header.version >= blocks.PROTOBUF_VERSION:
        root = blocks.transactions_root(block.transactions)
        same("the root of its transactions", header.transactions_root, root)
    if header.state_hash is not None:
        same("its state hash", header.state_hash, meta.snapshot_hash)
    sections = b"".join(chain.state_hash(height).sections)
    # The state hash below the lowest block that is kept was deleted.
    if total or before is None:
        same("its legacy state hash", meta.state_hash, blake2b256(total + sections))
    _check_transactions(chain, height, block)
    return meta


def _check_transactions(chain: Blockchain, height: int, block: Block) -> None:
    store = chain.store
    spans = blocks.transaction_spans(block.data) if block.transactions else []
    for index, (transaction, span) in enumerate(zip(block.transactions, spans, strict=True)):
        name = f"transaction {transaction.id.hex()} at height {height}"
        location = store.transaction_location(transaction.id)
        if location is None:
            raise DamagedStore(f"{name} is not in the index")
        at = location.height, location.index, location.offset, location.length
        # In old chains a transaction may be in two blocks: the index has the last one.
        if location.height <= height and at != (height, index, *span):
            raise DamagedStore(f"{name} is said to be at {at}, and is at {(height, index, *span)}")
        place = msgspec.structs.replace(location, height=height, index=index)
        if height >= store.kept.changes_from and store.transaction_changes(place) is None:
            raise DamagedStore(f"{name}: {kind_of(layout.SNAPSHOT)} is missing")
        store.call_record(place)


# --- records --------------------------------------------------------------------------------------


class _Records:
    """The checks of all records, by kind."""

    def __init__(self, chain: Blockchain) -> None:
        self._chain = chain
        self._store = chain.store
        self._counts: Counter[bytes] = Counter()
        self._undo: list[int] = []
        self.count = 0

    def check(self) -> Iterator[None]:
        """Check each record; yields now and then, for reports of progress."""
        checks: dict[bytes, Callable[[bytes, bytes], None]] = {
            row.prefix: self._decode_with(row.decode) for row in layout.ROWS.values()
        }
        checks[layout.ROWS[WAVES].prefix] = self._balance
        checks[layout.ROWS[LEASES].prefix] = self._leases
        checks[layout.ROWS[ASSET_BALANCES].prefix] = self._asset_balance
        checks |= {
            layout.HISTORY: self._of_account(layout.HISTORY_SIZES),
            layout.BLOCK: self._of_height,
            layout.HEADER: self._of_height,
            layout.SHORT_ID: self._short_id,
            layout.META: self._of_height,
            layout.UNDO: self._undo_record,
            layout.REPLACED: self._decode_of_height(layout.decode_replaced),
            layout.BY_HAND: self._decode_of_height(layout.decode_by_hand),
            layout.BLOCK_HEIGHT: self._block_height,
            layout.TRANSACTION: self._decode_with(layout.decode_location),
            layout.ADDRESS_TRANSACTION: self._account_transaction,
            layout.SNAPSHOT: self._of_transaction,
            layout.CALL: self._of_transaction,
            layout.ADDRESS_ALIAS: self._decode_with(bytes.decode),
            layout.ADDRESS_LEASE: self._accept,
            layout.ADDRESS_NFT: self._accept,
            layout.ASSET_HISTORY: self._accept,
            layout.TIP[:1]: self._accept,
        }
        for key, value in self._store.scan(b"", b""):
            check = checks.get(key[:1])
            if check is None:
                raise DamagedStore(f"the record {key[:80].hex()} is of no kind that is known")
            try:
                check(key, value)
            except UNREADABLE as error:
                raise unreadable(key, error) from error
            self._counts[key[:1]] += 1
            self.count += 1
            if self.count % REPORT_RECORDS == 0:
                yield

    def compare(self, transactions: int) -> None:
        """Check the numbers of records of each kind; ``transactions`` is that of those whose
        changes are kept.
        """
        height = self._chain.height
        # All below the lowest block that is kept, apart from the first one.
        lone = max(0, self._store.kept.blocks_from - 2)
        expected = {
            layout.BLOCK: height - lone,
            layout.HEADER: lone,
            layout.META: height,
            layout.BLOCK_HEIGHT: height - lone,
            layout.SNAPSHOT: transactions,
        }
        for prefix, count in expected.items():
            if self._counts[prefix] != count:
                raise DamagedStore(
                    f"of {kind_of(prefix)} there are {self._counts[prefix]} records, not {count}"
                )
        lowest = self._undo[0] if self._undo else height + 1
        if self._undo != list(range(lowest, height + 1)):
            raise DamagedStore(f"of {kind_of(layout.UNDO)} records are missing")

    def _fail(self, key: bytes, what: str) -> DamagedStore:
        return DamagedStore(f"{kind_of(key)} ({key[:80].hex()}) {what}")

    def _accept(self, key: bytes, value: bytes) -> None:
        """Accept a record that is checked elsewhere, or has nothing to compare."""

    def _decode_with(self, decode: Callable[[bytes], object]) -> Callable[[bytes, bytes], None]:
        def check(_key: bytes, value: bytes) -> None:
            decode(value)

        return check

    def _decode_of_height(
        self, decode: Callable[[bytes], object]
    ) -> Callable[[bytes, bytes], None]:
        def check(key: bytes, value: bytes) -> None:
            self._of_height(key, value)
            decode(value)

        return check

    def _of_account(self, sizes: tuple[int, ...]) -> Callable[[bytes, bytes], None]:
        def check(key: bytes, value: bytes) -> None:
            if len(value) not in sizes or len(key) != 1 + ADDRESS_LENGTH + _HEIGHT_BYTES:
                raise self._fail(key, "has a wrong length")

        return check

    def _of_height(self, key: bytes, _value: bytes) -> None:
        if key != height_key(key[:1], self._height(key)):
            raise self._fail(key, "has a wrong length")

    def _height(self, key: bytes) -> int:
        height = int.from_bytes(key[1 : 1 + _HEIGHT_BYTES], "big")
        if not 0 < height <= self._chain.height:
            raise self._fail(key, f"is of height {height}, which the chain has not")
        return height

    def _undo_record(self, key: bytes, value: bytes) -> None:
        layout.decode_undo(value)
        self._undo.append(self._height(key))

    def _block_height(self, key: bytes, value: bytes) -> None:
        height = int.from_bytes(value, "big")
        meta = self._store.meta(height)
        if meta is None or meta.id != key[1:]:
            raise self._fail(key, f"is {height}, where another block is")

    def _short_id(self, key: bytes, value: bytes) -> None:
        for height in layout.decode_heights(value):
            meta = self._store.meta(height)
            if meta is None or layout.short_id_key(meta.id) != key:
                raise self._fail(key, f"names {height}, where another block is")

    def _of_transaction(self, key: bytes, _value: bytes) -> None:
        meta = self._store.meta(self._height(key))
        index = int.from_bytes(key[1 + _HEIGHT_BYTES :], "big")
        if len(key) != 1 + _PLACE_BYTES or meta is None or index >= meta.transaction_count:
            raise self._fail(key, "is of no transaction of its block")

    def _account_transaction(self, key: bytes, value: bytes) -> None:
        place = key[1 + ADDRESS_LENGTH :]
        location = self._store.transaction_location(value)
        if location is None:
            raise self._fail(key, f"names {value[:64].hex()}, which is not on the chain")
        own = place_key(location.height, location.index)
        # As above: the index has the last of two blocks.
        if own != place and own < place:
            raise self._fail(key, f"names {value.hex()}, which is elsewhere")

    def _balance(self, key: bytes, value: bytes) -> None:
        balance = layout.ROWS[WAVES].decode(value)
        own = self._last(Address(key[1:]))
        if own is None or own[0] != balance:
            raise self._fail(key, f"is {balance}, and its history ends with {own and own[0]}")

    def _leases(self, key: bytes, value: bytes) -> None:
        leases = layout.ROWS[LEASES].decode(value)
        own = self._last(Address(key[1:]))
        effective = leases.lease_in - leases.lease_out - self._store.get(DEPOSITS, Address(key[1:]))
        if own is None or own[1] - own[0] != effective:
            raise self._fail(key, "are not those at the end of the balance's history")

    def _last(self, address: Address) -> tuple[int, int] | None:
        found = next(self._store.balance_history(address, self._chain.height), None)
        return None if found is None else (found[1], found[2])

    def _asset_balance(self, key: bytes, value: bytes) -> None:
        balance = layout.ROWS[ASSET_BALANCES].decode(value)
        address, asset_id = layout.decode_asset_balance_key(key)
        last = asset_balance_at(self._store, address, asset_id, self._chain.height)
        if last != balance:
            raise self._fail(key, f"is {balance}, and its history ends with {last}")
