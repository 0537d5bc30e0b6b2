"""Reading the store: state, blocks and records of one chain.

What lives here: reading and decoding records, pending ones first. What does not: writing
(``store``), the key layout (``layout``), RocksDB (``database``), indexes (``indexes``).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import Any, Final, TypeVar

from soliton.chain.addresses import Address
from soliton.ledger.edits import ByHand
from soliton.ledger.environment import BlockMeta
from soliton.ledger.state import APPROVALS, DATA, Changes, Table, effective_balance
from soliton.storage import layout
from soliton.storage.below import Below, scan_both, scan_both_back
from soliton.storage.damage import UNREADABLE, kind_of, readable, unreadable
from soliton.storage.database import Database
from soliton.storage.errors import DamagedStore
from soliton.storage.headers import decode_header
from soliton.storage.keeping import EVERYTHING, Kept, KeptNow, decode_kept
from soliton.storage.layout import TransactionLocation, height_key, history_key, place_key

K = TypeVar("K")
V = TypeVar("V")

_MAX_ID_BYTES: Final = 64


class StoreReader:
    """A consistent view of one chain; ``height`` is that of the last block, 0 in an empty store."""

    def __init__(self, database: Database, below: Below | None = None) -> None:
        """``below`` is the base layer of a fork."""
        self._db = database
        self.below = below
        self._pending: dict[bytes, bytes | None] = {}
        self._pending_history: dict[Address, list[int]] = {}
        self._last_block: tuple[int, bytes, bytes | None] = 0, b"", None
        self._kept = KeptNow(EVERYTHING)
        self._read_kept()
        self.height = self._tip()

    def _read_kept(self) -> None:
        raw = self._db.get(layout.KEPT)
        self._kept.value = EVERYTHING if raw is None else _decoded(layout.KEPT, raw, decode_kept)

    @property
    def kept(self) -> Kept:
        """What the store keeps."""
        return self._kept.value

    def follow(self) -> bool:
        """Read what the writing process has flushed meanwhile; return whether anything is new.

        For a store that was opened without ``exclusive``, not for a snapshot.
        """
        changed = self._db.follow()
        if changed:
            self._read_kept()
        self.height = self._tip()
        return changed

    def snapshot(self) -> StoreReader:
        """Return a snapshot of the store, which one other thread may read.

        That thread must close it soon after ``revoked`` is set. Raises ``StoreBusy`` if too many
        are open.
        """
        database = self._db.snapshot()
        try:
            snapshot = StoreReader(database, self.below)
        except BaseException:
            # The database would wait for it for ever before it grows or closes.
            database.close()
            raise
        if self._pending:
            snapshot._pending = dict(self._pending)
            snapshot._pending_history = {at: each[:] for at, each in self._pending_history.items()}
            snapshot.height = self.height
        return snapshot

    @property
    def database(self) -> Database:
        """The database of the store."""
        return self._db

    @property
    def revoked(self) -> bool:
        """Whether this snapshot has to be closed."""
        return self._db.revoked

    def scan(self, prefix: bytes, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the keys and values of a prefix in ascending order, from ``start`` on."""
        own = self._db.scan(prefix, start)
        return own if self.below is None else scan_both(own, self.below.scan(prefix, start))

    def scan_back(self, prefix: bytes, before: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield the keys and values of a prefix in descending order, below ``prefix + before``, or
        from the last one if that is empty.
        """
        own = self._db.scan_back(prefix, before)
        if self.below is None:
            return own
        return scan_both_back(prefix, own, self.below.scan_back(prefix, before))

    def close(self) -> None:
        """Close the store; the object cannot be used afterwards."""
        self._db.close()

    def _raw(self, key: bytes) -> bytes | None:
        value = self._pending[key] if key in self._pending else self._db.get(key)
        return self.below.get(key) if value is None and self.below is not None else value

    def _decoded(self, key: bytes, decode: Callable[[bytes], V]) -> V | None:
        raw = self._raw(key)
        return None if raw is None else _decoded(key, raw, decode)

    def _needed(self, prefix: bytes, height: int) -> bytes | None:
        """Return a record that must exist at each height of the chain; ``None`` outside of it."""
        if not 0 < height <= self.height:
            return None
        raw = self._raw(height_key(prefix, height))
        if raw is None:
            raise DamagedStore(f"{kind_of(prefix)} at height {height} is missing")
        return raw

    def _tip(self) -> int:
        raw = self._raw(layout.TIP)
        return 0 if raw is None else _decoded(layout.TIP, raw, layout.decode_tip)

    def _checked_height(self, key: bytes, height: int) -> int:
        """Return a height that a record names, which has to be one of the chain. The base layer of
        a fork may have higher ones.
        """
        # A block has records before it is the last one.
        if self.below is None and not 0 < height <= self.height + 1:
            raise DamagedStore(f"{kind_of(key)} ({key[:80].hex()}) names the height {height}")
        return height

    def get(self, table: Table[K, V], key: K) -> V:
        """Return the value of a key of a state table, or the table's default."""
        row = layout.ROWS[table]
        stored = row.prefix + row.key(key)
        # As ``_raw``, without one more call: a block takes dozens of reads.
        raw = self._pending[stored] if stored in self._pending else self._db.get(stored)
        if raw is None and self.below is not None:
            raw = self.below.get(stored)
        if raw is None:
            return table.default
        try:
            value: V = row.decode(raw)
        except UNREADABLE as error:
            raise unreadable(stored, error) from error
        return value

    def transaction_height(self, transaction_id: bytes) -> int | None:
        """Return the height of a transaction's block."""
        location = self.transaction_location(transaction_id)
        return None if location is None else location.height

    def transaction_location(self, transaction_id: bytes) -> TransactionLocation | None:
        """Return where a transaction is on the chain."""
        if len(transaction_id) > _MAX_ID_BYTES:
            return None
        key = layout.TRANSACTION + transaction_id
        raw = self._raw(key)
        if raw is None:
            return None
        found = _decoded(key, raw, layout.decode_location)
        self._checked_height(key, found.height)
        return found

    def block_data(self, height: int) -> bytes | None:
        """Return the bytes of the block at a height; raises ``NotKept``."""
        self.kept.need_block(height)
        return self._needed(layout.BLOCK, height)

    def block_piece(self, height: int, offset: int, length: int) -> tuple[int, bytes] | None:
        """Return the first byte of the block at a height, and ``length`` bytes from ``offset`` on;
        raises ``NotKept``.

        The block that was read last is kept: clients ask for several transactions of one.
        """
        self.kept.need_block(height)
        key = height_key(layout.BLOCK, height)
        if key in self._pending:
            data = self._pending[key]
        else:
            if self._last_block[:2] != (self._db.moment, key):
                self._last_block = self._db.moment, key, self._db.get(key)
            data = self._last_block[2]
        if data is None and self.below is not None:
            data = self.below.get(key)
        if data is None:
            return None
        piece = bytes(data[offset : offset + length])
        if not piece:
            raise DamagedStore(f"{kind_of(key)} at height {height} ends before {offset}")
        return data[0], piece

    def lone_header(self, height: int) -> bytes | None:
        """Return the bytes of a block without its transactions, if these were deleted."""
        if not 1 < height < self.kept.blocks_from:
            return None
        meta, parent = self.meta(height), self.meta(height - 1)
        raw = self._needed(layout.HEADER, height)
        if raw is None or meta is None or parent is None:
            return None
        key = height_key(layout.HEADER, height)
        return _decoded(key, raw, lambda data: decode_header(data, meta, parent))

    def meta(self, height: int) -> BlockMeta | None:
        """Return the metadata of the block at a height."""
        raw = self._needed(layout.META, height)
        if raw is None:
            return None
        return _decoded(height_key(layout.META, height), raw, layout.decode_meta)

    def height_of(self, block_id: bytes) -> int | None:
        """Return the height of the block with this id."""
        if len(block_id) > _MAX_ID_BYTES:
            return None
        key = layout.BLOCK_HEIGHT + block_id
        raw = self._raw(key)
        if raw is None:
            return self._height_of_lone(block_id)
        return self._checked_height(key, _decoded(key, raw, layout.decode_height))

    def _height_of_lone(self, block_id: bytes) -> int | None:
        """Return the height of a block of which only the header is kept."""
        if self.kept.blocks_from == 1:
            return None
        key = layout.short_id_key(block_id)
        for height in self._decoded(key, layout.decode_heights) or ():
            meta = self.meta(self._checked_height(key, height))
            if meta is not None and meta.id == block_id:
                return height
        return None

    def balance_history(self, address: Address, top: int) -> Iterator[tuple[int, int, int]]:
        """Yield height, own balance and effective balance at every change up to ``top``, newest
        first.
        """
        for height in reversed(self._pending_history.get(address, ())):
            if height <= top:
                raw = self._pending[history_key(address, height)]
                if raw is not None:
                    yield height, *_history_value(raw)
        records = self.scan_back(layout.HISTORY + address, (top + 1).to_bytes(4, "big"))
        yield from _flushed_history(records, self._pending)

    @readable(layout.ROWS[DATA].prefix)
    def data_entries(
        self, address: Address, after: str | None = None, *, prefix: str = ""
    ) -> Iterator[tuple[str, Any]]:
        """Yield an account's flushed data entries whose keys have a ``prefix`` in key order, from
        behind the key ``after`` on; deleted ones are omitted.
        """
        decode = layout.ROWS[DATA].decode
        account = layout.ROWS[DATA].prefix + address
        start = account + (prefix.encode() if after is None else after.encode() + b"\0")
        for raw_key, raw in self.scan(account + prefix.encode(), start):
            value = decode(raw)
            if value is not None:
                yield layout.decode_data_key(raw_key)[1], value

    def is_listed(self, address: Address, height: int, index: int) -> bool:
        """Whether the transaction at a position is listed under the account; raises ``NotKept``."""
        self.kept.need_by_address()
        return (
            self._raw(layout.ADDRESS_TRANSACTION + address + place_key(height, index)) is not None
        )

    def transaction_changes(self, location: TransactionLocation) -> Changes | None:
        """Return the state changes of a transaction; raises ``NotKept``."""
        self.kept.need_changes(location.height)
        return self._decoded(
            layout.SNAPSHOT + place_key(location.height, location.index), layout.decode_changes
        )

    def changes_and_call(self, height: int, index: int) -> tuple[Changes, dict[str, object] | None]:
        """Return the state changes and the call record of the transaction at a position; raises
        ``NotKept``.
        """
        self.kept.need_changes(height)
        place = place_key(height, index)
        changes = self._decoded(layout.SNAPSHOT + place, layout.decode_changes)
        return changes or {}, self._decoded(layout.CALL + place, layout.decode_call)

    def replaced(self, height: int) -> layout.Replaced | None:
        """Return the ``Replaced`` record of the block at a height; ``None`` for blocks that earlier
        versions of the program have stored. Raises ``NotKept``.
        """
        self.kept.need_replaced(height)
        return self._decoded(height_key(layout.REPLACED, height), layout.decode_replaced)

    def call_record(self, location: TransactionLocation) -> dict[str, object] | None:
        """Return the record of a transaction's dApp call that clients see; leases by id only."""
        return self._decoded(
            layout.CALL + place_key(location.height, location.index), layout.decode_call
        )

    def approvals(self) -> dict[int, int]:
        """Return the features approved by votes, each with the height of its approval."""
        prefix = layout.ROWS[APPROVALS].prefix
        records = dict(self.scan(prefix, prefix))
        records.update(
            (key, value) for key, value in self._pending.items() if key.startswith(prefix) and value
        )
        return {
            int.from_bytes(key[1:], "big"): int.from_bytes(value, "big")
            for key, value in records.items()
            if self._pending.get(key, value) is not None
        }

    def by_hand(self, height: int) -> ByHand | None:
        """Return what was changed by hand with the block at a height."""
        return self._decoded(height_key(layout.BY_HAND, height), layout.decode_by_hand)

    def first_by_hand(self) -> int | None:
        """Return the first height at which the chain was changed by hand, as far as flushed."""
        for key, _ in self.scan(layout.BY_HAND, layout.BY_HAND):
            return int.from_bytes(key[len(layout.BY_HAND) :], "big")
        return None

    def has_had_data(self, address: Address) -> bool:
        """Whether an account has ever had a data entry, including deleted ones."""
        prefix = layout.ROWS[DATA].prefix + address
        if any(
            value is not None and key.startswith(prefix) for key, value in self._pending.items()
        ):
            return True
        return any(
            self._pending.get(key, value) is not None for key, value in self.scan(prefix, prefix)
        )


def _decoded(key: bytes, raw: bytes, decode: Callable[[bytes], V]) -> V:
    try:
        return decode(raw)
    except UNREADABLE as error:
        raise unreadable(key, error) from error


@readable(layout.HISTORY)
def _flushed_history(
    records: Iterator[tuple[bytes, bytes]], pending: Container[bytes]
) -> Iterator[tuple[int, int, int]]:
    for key, raw in records:
        if key not in pending:
            yield int.from_bytes(key[-4:], "big"), *_history_value(raw)


def _history_value(raw: bytes) -> tuple[int, int]:
    balance, leases, deposit = layout.decode_history(raw)
    return balance, effective_balance(balance, leases, deposit)
