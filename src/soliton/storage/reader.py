"""Reading the store: state, blocks and records of one chain.

What lives here: decoding what is stored, above it what is about to be. What does not: writing
(``store``), the key layout (``layout``), LMDB (``database``), indexes (``indexes``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from soliton.chain.addresses import Address
from soliton.ledger.edits import ByHand
from soliton.ledger.environment import BlockMeta
from soliton.ledger.state import APPROVALS, DATA, Changes, Table
from soliton.storage import layout
from soliton.storage.below import Below, scan_both, scan_both_back
from soliton.storage.damage import UNREADABLE, kind_of, readable, unreadable
from soliton.storage.database import Database
from soliton.storage.errors import DamagedStore
from soliton.storage.layout import TransactionLocation, height_key, history_key, place_key

K = TypeVar("K")
V = TypeVar("V")

_MAX_ID_BYTES: Final = 64


class StoreReader:
    """One chain on a disk, as it is at a moment; ``height`` is that of the last block, 0 in an
    empty store.
    """

    def __init__(self, database: Database, below: Below | None = None) -> None:
        """Where it is kept, and what it stands on."""
        self._db = database
        self.below = below
        self._pending: dict[bytes, bytes | None] = {}
        self._pending_history: dict[Address, list[int]] = {}
        self.height = self._tip()

    def follow(self) -> bool:
        """See what the process that writes has flushed since: whether there is anything new.

        For a store that was opened without ``exclusive``; a snapshot is not followed.
        """
        changed = self._db.follow()
        self.height = self._tip()
        return changed

    def snapshot(self) -> StoreReader:
        """What the store holds now, for one other thread to read while this one goes on.

        That thread closes it, soon after ``revoked`` is set: the store cannot grow before. Raises
        ``StoreBusy`` when too many are open.
        """
        taken = StoreReader(self._db.snapshot(), self.below)
        if self._pending:
            taken._pending = dict(self._pending)
            taken._pending_history = {at: each[:] for at, each in self._pending_history.items()}
            taken.height = self.height
        return taken

    @property
    def database(self) -> Database:
        """Where it is kept."""
        return self._db

    @property
    def revoked(self) -> bool:
        """Whether the store waits for this snapshot to be closed."""
        return self._db.revoked

    def scan(self, prefix: bytes, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values under a prefix, in key order, from ``start`` on."""
        own = self._db.scan(prefix, start)
        return own if self.below is None else scan_both(own, self.below.scan(prefix, start))

    def scan_back(self, prefix: bytes, before: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Keys and values under a prefix, in falling key order, from below ``prefix + before`` on,
        or from the last where nothing is given.
        """
        own = self._db.scan_back(prefix, before)
        if self.below is None:
            return own
        return scan_both_back(prefix, own, self.below.scan_back(prefix, before))

    def close(self) -> None:
        """Let go of it; the object cannot be used afterwards."""
        self._db.close()

    def _raw(self, key: bytes) -> bytes | None:
        found = self._pending[key] if key in self._pending else self._db.get(key)
        return self.below.get(key) if found is None and self.below is not None else found

    def _decoded(self, key: bytes, decode: Callable[[bytes], V]) -> V | None:
        raw = self._raw(key)
        return None if raw is None else _decoded(key, raw, decode)

    def _needed(self, prefix: bytes, height: int) -> bytes | None:
        """A record that there has to be at each height of the chain; ``None`` beyond it."""
        if not 0 < height <= self.height:
            return None
        raw = self._raw(height_key(prefix, height))
        if raw is None:
            raise DamagedStore(f"{kind_of(prefix)} at height {height} is missing")
        return raw

    def _tip(self) -> int:
        return int.from_bytes(self._raw(layout.TIP) or b"", "big")

    def get(self, table: Table[K, V], key: K) -> V:
        """The value of a key of a state table, its default where there is none."""
        row = layout.ROWS[table]
        raw = self._raw(row.prefix + row.key(key))
        if raw is None:
            return table.default
        try:
            value: V = row.decode(raw)
        except UNREADABLE as error:
            raise unreadable(row.prefix + row.key(key), error) from error
        return value

    def transaction_height(self, transaction_id: bytes) -> int | None:
        """The height of a transaction's block."""
        location = self.transaction_location(transaction_id)
        return None if location is None else location.height

    def transaction_location(self, transaction_id: bytes) -> TransactionLocation | None:
        """Where a transaction is on the chain."""
        if len(transaction_id) > _MAX_ID_BYTES:
            return None
        return self._decoded(layout.TRANSACTION + transaction_id, layout.decode_location)

    def block_data(self, height: int) -> bytes | None:
        """The bytes of the block at a height."""
        return self._needed(layout.BLOCK, height)

    def block_piece(self, height: int, offset: int, length: int) -> tuple[int, bytes] | None:
        """The first byte of the block at a height, and ``length`` bytes from ``offset`` on.

        Of a long block a short piece costs no more than of a short one.
        """
        key = height_key(layout.BLOCK, height)
        found: bytes | memoryview | None
        found = self._pending[key] if key in self._pending else self._db.view(key)
        if found is None and self.below is not None:
            found = self.below.get(key)
        return None if found is None else (found[0], bytes(found[offset : offset + length]))

    def meta(self, height: int) -> BlockMeta | None:
        """What is known about the block at a height."""
        raw = self._needed(layout.META, height)
        if raw is None:
            return None
        return _decoded(height_key(layout.META, height), raw, layout.decode_meta)

    def height_of(self, block_id: bytes) -> int | None:
        """The height of the block with this id."""
        if len(block_id) > _MAX_ID_BYTES:
            return None
        raw = self._raw(layout.BLOCK_HEIGHT + block_id)
        return None if raw is None else int.from_bytes(raw, "big")

    @readable(layout.HISTORY)
    def balance_history(self, address: Address, top: int) -> Iterator[tuple[int, int, int]]:
        """Height, own balance and effective balance at every change up to ``top``, the newest
        first.
        """
        for height in reversed(self._pending_history.get(address, ())):
            if height <= top:
                raw = self._pending[history_key(address, height)]
                if raw is not None:
                    yield height, *_history_value(raw)
        prefix = layout.HISTORY + address
        for key, raw in self.scan_back(prefix, (top + 1).to_bytes(4, "big")):
            if key not in self._pending:
                yield int.from_bytes(key[len(prefix) :], "big"), *_history_value(raw)

    @readable(layout.ROWS[DATA].prefix)
    def data_entries(self, address: Address, after: str | None = None) -> Iterator[tuple[str, Any]]:
        """An account's data entries in key order, deleted ones left out; sees what is flushed.

        ``after`` starts behind a key, so that a long list can be read piece by piece.
        """
        decode = layout.ROWS[DATA].decode
        prefix = layout.ROWS[DATA].prefix + address
        start = prefix if after is None else prefix + after.encode() + b"\0"
        for raw_key, raw in self.scan(prefix, start):
            value = decode(raw)
            if value is not None:
                yield layout.decode_data_key(raw_key)[1], value

    def is_listed(self, address: Address, height: int, index: int) -> bool:
        """Whether a transaction, by its place, is one of the account's."""
        return (
            self._raw(layout.ADDRESS_TRANSACTION + address + place_key(height, index)) is not None
        )

    def transaction_changes(self, location: TransactionLocation) -> Changes | None:
        """What a transaction wrote."""
        return self._decoded(
            layout.SNAPSHOT + place_key(location.height, location.index), layout.decode_changes
        )

    def told_of(self, height: int, index: int) -> tuple[Changes, dict[str, object] | None]:
        """What a transaction wrote, and what the dApp did that it called, by its place."""
        place = place_key(height, index)
        changes = self._decoded(layout.SNAPSHOT + place, layout.decode_changes)
        return changes or {}, self._decoded(layout.CALL + place, layout.decode_call)

    def replaced(self, height: int) -> layout.Replaced | None:
        """What the block at a height changed at its beginning, and what it replaced; ``None`` of
        blocks that earlier versions have stored.
        """
        return self._decoded(height_key(layout.REPLACED, height), layout.decode_replaced)

    def call_record(self, location: TransactionLocation) -> dict[str, object] | None:
        """What clients see of the dApp that a transaction called; leases by their ids only."""
        return self._decoded(
            layout.CALL + place_key(location.height, location.index), layout.decode_call
        )

    def approvals(self) -> dict[int, int]:
        """The features that votes have approved, with the height at which they did."""
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
        """What no other node would accept of the block at a height."""
        return self._decoded(height_key(layout.BY_HAND, height), layout.decode_by_hand)

    def first_by_hand(self) -> int | None:
        """The height from which on the chain was changed by hand; sees what is flushed."""
        for key, _ in self.scan(layout.BY_HAND, layout.BY_HAND):
            return int.from_bytes(key[len(layout.BY_HAND) :], "big")
        return None

    def had_data(self, address: Address) -> bool:
        """Whether an account ever had an entry in its data storage, deleted ones count too."""
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


def _history_value(raw: bytes) -> tuple[int, int]:
    balance, lease_in, lease_out = layout.HISTORY_VALUE.unpack(raw)
    return balance, balance + lease_in - lease_out
