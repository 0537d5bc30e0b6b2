"""The store: state, blocks and indexes in one embedded database, always at a block boundary.

Blocks are appended to a batch in memory and written in one atomic transaction by ``flush``: after
every block when a chain is followed, after many when a file is imported. Whatever happens in
between, the database holds the last flushed batch. Each block leaves an undo record, so removing
blocks is writing back what was there before.

What lives here: reading, appending, removing, flushing. What does not: the key layout (``layout``),
what the changes of a block are (``soliton.ledger``).
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import lmdb

from soliton.chain.addresses import Address
from soliton.errors import InvariantBroken
from soliton.ledger.state import APPROVALS, DATA, Changes, Table
from soliton.storage import layout
from soliton.storage.block_records import put_history, put_transactions
from soliton.storage.blocks import NewBlock
from soliton.storage.damage import UNREADABLE, kind_of, readable, unreadable
from soliton.storage.directories import decode_network, take_ownership
from soliton.storage.environment import (
    NOTHING,
    Snapshots,
    begin_reading,
    grow,
    open_environment,
    problem_of,
    reader_slots,
    typed,
    write,
)
from soliton.storage.errors import (
    DamagedStore,
    RollbackTooDeep,
    StorageProblem,
    StoreBusy,
    WrongStore,
)
from soliton.storage.indexes import index_records
from soliton.storage.layout import (
    BlockMeta,
    TransactionLocation,
    height_key,
    history_key,
    place_key,
)

K = TypeVar("K")
V = TypeVar("V")

UNDO_DEPTH: Final = 10_000
"""Blocks that can be removed again; the network itself never goes back more than 100."""
ROLLBACK_STEP: Final = 200
"""Blocks that are removed in one atomic step."""


class Store:
    """One chain on disk. Use from one thread; others may read a ``snapshot``, and other processes
    the same directory.

    ``height`` is that of the last block, 0 in an empty store. A snapshot is ``revoked`` when the
    store waits for it to be closed.
    """

    def __init__(
        self,
        directory: Path,
        network: str,
        *,
        durable: bool = True,
        undo_depth: int = UNDO_DEPTH,
        exclusive: bool = True,
    ) -> None:
        """Open or make the store of a network in ``directory``.

        ``durable`` waits for the disk at each flush. Who does not write opens it without
        ``exclusive``; of those who do there can be one. Raises ``WrongStore``, ``StoreInUse``,
        ``DamagedStore`` or another ``StorageProblem``.
        """
        self.directory = directory
        self._durable = durable
        self._owner: int | None = None
        # The types of LMDB do not tell which one gives bytes, and which one memory.
        self._read: Any = NOTHING
        self._views: Any = NOTHING
        with typed(directory, "opened"):
            directory.mkdir(parents=True, exist_ok=True)
            self._owner = take_ownership(directory) if exclusive else None
            try:
                self._env = open_environment(directory, durable=durable, exclusive=exclusive)
            except BaseException:
                self._release()
                raise
        self._pending: dict[bytes, bytes | None] = {}
        self._pending_history: dict[Address, list[int]] = {}
        self._undo_depth = undo_depth
        self._steps: list[dict[bytes, bytes | None]] = []
        self._steps_height = 0
        self.revoked = False
        self._origin: Store | None = None
        self._snapshots = Snapshots()
        try:
            self._look_anew("opened")
            self._check_identity(directory, network)
            self.height = self._tip()
        except BaseException:
            self._let_go()
            raise

    def _check_identity(self, directory: Path, network: str) -> None:
        found = self._raw(layout.NETWORK)
        if found is None:
            self._pending[layout.NETWORK] = network.encode()
            self._pending[layout.VERSION] = bytes((layout.LAYOUT_VERSION,))
            return
        name = decode_network(found)
        if name != network:
            raise WrongStore(f"{directory} holds the chain {name}, not {network}")
        if self._raw(layout.VERSION) != bytes((layout.LAYOUT_VERSION,)):
            raise WrongStore(f"{directory} was written by another version; import the chain anew")

    def follow(self) -> bool:
        """See what the process that writes has flushed since: whether there is anything new.

        For who opened without ``exclusive``; a snapshot is not followed.
        """
        before = self._read.id()
        try:
            self._look_anew("read")
        except lmdb.MapResizedError:
            self._snapshots.revoke()
            self._stop_reading()
            # 0 takes over the size that the other process has given the map.
            self._env.set_mapsize(0)
            self._look_anew("read")
        self.height = self._tip()
        return bool(self._read.id() != before)

    def forget_dead_readers(self) -> None:
        """Let go of what processes were reading when they were killed."""
        self._env.reader_check()

    # --- snapshots --------------------------------------------------------------------------------

    def snapshot(self) -> Store:
        """What the store holds now, for one other thread to read while this one goes on.

        That thread closes it, soon after ``revoked`` is set: the store cannot grow before. Raises
        ``StoreBusy`` when too many are open.
        """
        self._snapshots.check_room()
        taken = copy.copy(self)
        taken._pending = dict(self._pending)
        taken._pending_history = {at: heights[:] for at, heights in self._pending_history.items()}
        taken._read = taken._views = NOTHING
        try:
            taken._look_anew("read")
        except lmdb.MapResizedError as error:
            raise StoreBusy("the store has just grown") from error
        if not taken._pending:
            # Another process may have gone on since this one looked.
            taken.height = taken._tip()
        taken._owner = None
        taken._origin = self
        self._snapshots.add(taken)
        return taken

    @property
    def snapshots(self) -> int:
        """How many snapshots are open in this process."""
        return len(self._snapshots)

    @property
    def reader_slots(self) -> int:
        """How many may not begin to read because others do, in all processes."""
        return reader_slots(self._env)

    # --- reading ----------------------------------------------------------------------------------

    def _raw(self, key: bytes) -> bytes | None:
        if key in self._pending:
            return self._pending[key]
        try:
            value: bytes | None = self._read.get(key)
        except lmdb.Error as error:
            raise unreadable(key, error) from error
        return value

    def _decoded(self, key: bytes, decode: Callable[[bytes], V]) -> V | None:
        raw = self._raw(key)
        if raw is None:
            return None
        try:
            return decode(raw)
        except UNREADABLE as error:
            raise unreadable(key, error) from error

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

    def used_bytes(self) -> int:
        """How much of the database file is in use."""
        info, page = self._env.info(), self._env.stat()["psize"]
        used: int = (info["last_pgno"] + 1) * page
        return used

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
        try:
            found = self._pending[key] if key in self._pending else self._views.get(key)
        except lmdb.Error as error:
            raise unreadable(key, error) from error
        return None if found is None else (found[0], bytes(found[offset : offset + length]))

    def meta(self, height: int) -> BlockMeta | None:
        """What is known about the block at a height."""
        if self._needed(layout.META, height) is None:
            return None
        return self._decoded(height_key(layout.META, height), layout.decode_meta)

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
        key = layout.SNAPSHOT + place_key(location.height, location.index)
        return self._decoded(key, layout.decode_changes)

    def call_record(self, location: TransactionLocation) -> dict[str, object] | None:
        """What clients are told of the dApp that a transaction called; leases by their ids only."""
        key = layout.CALL + place_key(location.height, location.index)
        return self._decoded(key, layout.decode_call)

    def scan_back(self, prefix: bytes, before: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Keys and values under a prefix, in falling key order, from below ``prefix + before`` on,
        or from the last where nothing is given.
        """
        try:
            with self._read.cursor() as cursor:
                found = cursor.set_range(prefix + (before or b"\xff" * 33))
                found = cursor.prev() if found else cursor.last()
                while found and cursor.key().startswith(prefix):
                    yield cursor.key(), cursor.value()
                    found = cursor.prev()
        except lmdb.Error as error:
            raise unreadable(prefix, error) from error

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

    def scan(self, prefix: bytes, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values under a prefix, in key order, from ``start`` on."""
        try:
            with self._read.cursor() as cursor:
                found = cursor.set_range(start)
                while found and cursor.key().startswith(prefix):
                    yield cursor.key(), cursor.value()
                    found = cursor.next()
        except lmdb.Error as error:
            raise unreadable(prefix, error) from error

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

    # --- writing ----------------------------------------------------------------------------------

    def append(self, block: NewBlock) -> None:
        """Add a block on top; it is on disk after the next ``flush``."""
        height = block.height
        self._put_block(block, {})
        if height > self._undo_depth:
            self._pending[height_key(layout.UNDO, height - self._undo_depth)] = None
        self._pending[layout.TIP] = height.to_bytes(4, "big")
        self.height = height

    def extend(self, block: NewBlock) -> None:
        """Replace the last block by a longer form of itself and flush.

        ``block`` has the new bytes and results; its changes and transactions are only those that
        came in addition. ``shorten`` takes the step back. Raises ``StorageProblem``: the block is
        as it was then.
        """
        self.flush()
        record = self._decoded(height_key(layout.UNDO, block.height), layout.decode_undo)
        if record is None or block.height != self.height:
            raise InvariantBroken(f"block {block.height} is not the last one, {self.height}")
        undo: dict[bytes, bytes | None] = dict(record)
        # What grows keeps one name: that of its last form.
        before = self.meta(block.height)
        if before is not None:
            undo.pop(layout.BLOCK_HEIGHT + before.id, None)
            self._pending[layout.BLOCK_HEIGHT + before.id] = None
        self._put_block(block, undo)
        step = {key: self._read.get(key) for key in self._pending}
        self.flush()
        self._steps.append(step)
        self._steps_height = block.height

    def shorten(self) -> None:
        """Take back the last ``extend``; possible as long as this process has the block on top."""
        self.flush()
        self._write(self._steps[-1])
        self._steps.pop()

    def _put_block(self, block: NewBlock, undo: dict[bytes, bytes | None]) -> None:
        """Write everything of a block; ``undo`` keeps what each key held before the block."""
        pending = self._pending

        def put(key: bytes, value: bytes) -> None:
            old = self._raw(key)
            if old != value:
                undo.setdefault(key, old)
                pending[key] = value

        # Before the state itself: whether an account has had an asset is asked there.
        for key, value in index_records(block, self):
            undo.setdefault(key, self._raw(key))
            pending[key] = value
        for table, written in block.changes.items():
            row = layout.ROWS[table]
            for key, value in written.items():
                put(row.prefix + row.key(key), row.encode(value))
        height = block.height
        for address in put_history(block, self, pending, undo):
            self._pending_history.setdefault(address, []).append(height)
        put_transactions(block, self._raw, pending, undo)
        undo[layout.BLOCK_HEIGHT + block.meta.id] = None
        pending[layout.BLOCK_HEIGHT + block.meta.id] = height.to_bytes(4, "big")
        pending[height_key(layout.BLOCK, height)] = block.data
        pending[height_key(layout.META, height)] = layout.encode(block.meta)
        pending[height_key(layout.UNDO, height)] = layout.encode(list(undo.items()))

    def flush(self) -> None:
        """Write everything appended so far in one atomic transaction.

        Raises ``StorageProblem``, and forgets it: what is not written has not happened.
        """
        if not self._pending:
            return
        try:
            self._write(self._pending)
        except StorageProblem:
            self.discard_pending()
            raise
        self._pending = {}
        self._pending_history = {}
        if self.height != self._steps_height:
            self._steps.clear()

    def _write(self, items: dict[bytes, bytes | None]) -> None:
        """All or nothing; whatever happens, what the store holds is read afterwards."""
        if self._origin is not None:
            raise InvariantBroken("a snapshot of the store is not written")
        # Sorted keys let the database append to pages instead of searching for each key.
        deletes = [key for key, value in items.items() if value is None]
        puts = [(key, value) for key in sorted(items) if (value := items[key]) is not None]
        try:
            while True:
                try:
                    # Reading goes on meanwhile: its slots stay taken, whoever else wants some.
                    write(self._env, puts, deletes)
                    break
                except lmdb.MapFullError:
                    self._grow()
        except (OSError, lmdb.Error) as error:
            self._look_anew("read")
            raise problem_of(error, self.directory, "written") from error
        self._look_anew("read")

    def _look_anew(self, doing: str) -> None:
        """Read what the store holds now."""
        self._stop_reading()
        try:
            self._read, self._views = begin_reading(self._env)
        except lmdb.MapResizedError:
            raise
        except lmdb.ReadersFullError:
            # Those of processes that were killed count as well.
            self._env.reader_check()
            with typed(self.directory, doing):
                self._read, self._views = begin_reading(self._env)
        except lmdb.PanicError:
            self._open_again(doing)
        except lmdb.Error as error:
            raise problem_of(error, self.directory, doing) from error

    def _open_again(self, doing: str) -> None:
        """After a disk that failed in the middle of a commit LMDB does nothing more."""
        self._snapshots.revoke()
        with typed(self.directory, doing):
            self._env.close()
            self._env = open_environment(
                self.directory, durable=self._durable, exclusive=self._owner is not None
            )
            self._read, self._views = begin_reading(self._env)

    def _stop_reading(self) -> None:
        self._read.abort()
        self._views.abort()
        # A transaction that has ended holds its slot until nobody knows it.
        self._read = self._views = NOTHING

    def _grow(self) -> None:
        self._snapshots.revoke()
        self._stop_reading()
        try:
            grow(self._env)
        finally:
            self._look_anew("read")

    def rollback(self, height: int, on_removed: Callable[[bytes], None] | None = None) -> None:
        """Remove all blocks above ``height``; ``on_removed`` gets their bytes, the highest first.

        Every atomic step removes some whole blocks, so that an interruption leaves the store at a
        block boundary; so does a ``StorageProblem``, after the steps that were written. Raises
        ``RollbackTooDeep`` when undo records do not go back that far (nothing is removed then).
        """
        self.flush()
        self._steps.clear()
        lowest = self._lowest_rollback()
        if height < lowest:
            raise RollbackTooDeep(height, lowest)
        while self.height > height:
            bottom = max(height, self.height - ROLLBACK_STEP)
            items: dict[bytes, bytes | None] = {}
            removed = [self._take_back(top, items) for top in range(self.height, bottom, -1)]
            items[layout.TIP] = bottom.to_bytes(4, "big")
            self._write(items)
            self.height = bottom
            if on_removed is not None:
                for data in removed:
                    on_removed(data)

    def _lowest_rollback(self) -> int:
        """Blocks that were removed before took their undo records with them: what counts is the
        lowest record that there is, not the distance from the top.
        """
        for key, _ in self.scan(layout.UNDO, layout.UNDO):
            return max(1, int.from_bytes(key[len(layout.UNDO) :], "big") - 1)
        return self.height

    def _take_back(self, height: int, items: dict[bytes, bytes | None]) -> bytes:
        """Add to ``items`` what undoes the block at a height, after those above; its bytes."""
        data = self._raw(height_key(layout.BLOCK, height))
        undo = self._decoded(height_key(layout.UNDO, height), layout.decode_undo)
        if data is None or undo is None:
            raise DamagedStore(f"the records of block {height} are missing")
        items.update(undo)
        for prefix in (layout.BLOCK, layout.META, layout.UNDO):
            items[height_key(prefix, height)] = None
        return data

    def close(self) -> None:
        """Write what is pending and close; the object cannot be used afterwards."""
        if self._origin is not None:
            self._stop_reading()
            self._origin._snapshots.remove(self)
            return
        self._snapshots.revoke()
        try:
            self.flush()
        finally:
            self._let_go()

    def _let_go(self) -> None:
        self._stop_reading()
        self._env.close()
        self._release()

    def _release(self) -> None:
        if self._owner is not None:
            os.close(self._owner)
            self._owner = None

    def discard_pending(self) -> None:
        """Forget the blocks that were appended since the last flush."""
        # What says whose chain this is belongs to no block.
        identity = (layout.NETWORK, layout.VERSION)
        self._pending = {key: self._pending[key] for key in identity if key in self._pending}
        self._pending_history = {}
        self.height = self._tip()


_MAX_ID_BYTES: Final = 64


def _history_value(raw: bytes) -> tuple[int, int]:
    balance, lease_in, lease_out = layout.HISTORY_VALUE.unpack(raw)
    return balance, balance + lease_in - lease_out
