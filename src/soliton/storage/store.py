"""The store: state, blocks and indexes in one embedded database, always at a block boundary.

Blocks are appended to a batch in memory, which ``flush`` writes in one atomic transaction: after
every block when following a chain, after many when importing a file. After a crash the database
holds the last flushed batch. Each block has an undo record with the values that it replaced, so
blocks are removed by writing those back.

The records of a block are made in steps, since it may have 6,000 transactions: while they are made,
the store shows the chain without them.

What lives here: appending, removing, flushing. What does not: reading (``reader``), the key layout
(``layout``), computing the changes of a block (``soliton.ledger``).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from soliton.chain.addresses import Address
from soliton.chain.blocks import transactions_part
from soliton.chain.errors import FormatError
from soliton.errors import InvariantBroken
from soliton.steps import Steps, run_steps
from soliton.storage import layout
from soliton.storage.below import Below
from soliton.storage.block_records import (
    Items,
    put_history,
    put_replaced,
    put_transactions,
    step_ends,
)
from soliton.storage.blocks import NewBlock
from soliton.storage.database import Database
from soliton.storage.directories import (
    LMDB_NAME,
    check_identity,
    check_not_restoring,
    earlier_version,
)
from soliton.storage.errors import DamagedStore, RollbackTooDeep, StorageProblem
from soliton.storage.indexes import index_records
from soliton.storage.keeping import (
    ARCHIVE,
    AS_IT_IS,
    EVERYTHING,
    NETWORK_ROLLBACK,
    Keeping,
    encode_kept,
)
from soliton.storage.layout import height_key
from soliton.storage.pruning import Progress, Pruner
from soliton.storage.reader import StoreReader

UNDO_DEPTH: Final = 10_000
"""Blocks that can be removed again from a store that keeps everything; the network itself never
rolls back more than 100.
"""
ROLLBACK_STEP: Final = 200
"""Blocks removed in one atomic step."""


class _KeptBlock(NamedTuple):
    """The bytes of a block before it was extended, apart from its transactions, and where these are
    in the longer one.
    """

    head: bytes
    start: int
    end: int
    tail: bytes

    def rebuilt(self, longer: bytes) -> bytes:
        """Return the bytes of the block before."""
        return b"".join((self.head, longer[self.start : self.end], self.tail))


def _kept_block(data: bytes, longer: bytes) -> _KeptBlock:
    """Return what must be kept of a block's bytes to rebuild them from those of the longer one."""
    try:
        start, end = transactions_part(data)
        behind = transactions_part(longer)[0]
    except FormatError:
        return _KeptBlock(data, 0, 0, b"")
    kept = _KeptBlock(data[:start], behind, behind + end - start, data[end:])
    return kept if kept.rebuilt(longer) == data else _KeptBlock(data, 0, 0, b"")


class _Step(NamedTuple):
    """How to take back the last ``extend``: the values before it, except for those records that
    are as long as the block: the block itself, its undo record, which consisted of the first
    ``undone`` members of the present one and the ``id_key`` of the shorter form, and the record of
    replaced values, of which the first ``replaced`` members were there.
    """

    values: dict[bytes, bytes | None]
    block: _KeptBlock
    undone: int
    id_key: bytes
    replaced: int


class Prepared(NamedTuple):
    """All records of a block, for the store as it was at a moment; ``step`` is how to take back a
    longer form of the last block.
    """

    height: int
    items: Items
    accounts: Collection[Address]
    step: _Step | None
    moment: tuple[int, int]


class Store(StoreReader):
    """One chain on disk, for writing. It is not thread-safe; other threads may read a ``snapshot``,
    other processes the same directory.
    """

    def __init__(
        self,
        directory: Path,
        network: str,
        *,
        durable: bool = True,
        undo_depth: int = UNDO_DEPTH,
        exclusive: bool = True,
        below: Below | None = None,
        keeping: Keeping = AS_IT_IS,
    ) -> None:
        """Open the store of a network in ``directory``, creating it if necessary.

        ``durable`` waits for the disk at each flush. ``exclusive`` makes this process the only
        writer; readers open it without, which needs a chain. ``below`` is the base layer of a
        fork. ``keeping`` says what the writer keeps, and then ``undo_depth`` holds for a store that
        keeps everything. Raises ``WrongStore``, ``WrongMode``, ``StoreInUse``, ``DamagedStore`` or
        another ``StorageProblem``.
        """
        self._undo_depth = undo_depth
        self._steps: list[_Step] = []
        self._steps_height = 0
        self._moment = 0
        self._pruned = 0
        if (directory / LMDB_NAME).exists():
            raise earlier_version(directory)
        if exclusive:
            check_not_restoring(directory)
        database = Database(directory, durable=durable, exclusive=exclusive)
        try:
            super().__init__(database, below)
            self._check_identity(directory, network, exclusive=exclusive)
            if exclusive:
                self._keep(keeping)
        except BaseException:
            database.close()
            raise

    def _check_identity(self, directory: Path, network: str, *, exclusive: bool) -> None:
        stored = self._raw(layout.NETWORK)
        if stored is None and not exclusive:
            raise StorageProblem(f"{directory} holds no chain")
        if stored is None:
            self._pending[layout.NETWORK] = network.encode()
            self._pending[layout.VERSION] = bytes((layout.LAYOUT_VERSION,))
            return
        check_identity(directory, stored, self._raw(layout.VERSION), network)

    def _keep(self, keeping: Keeping) -> None:
        """Keep from now on what is wanted, and delete at once the lists that are not."""
        before, kept = self.kept, self.kept.changed_to(keeping)
        if kept.mode != ARCHIVE:
            self._undo_depth = max(keeping.rollback_depth, NETWORK_ROLLBACK)
        self._pruner = Pruner(self._db, keeping, self._undo_depth)
        if kept == before:
            return
        dropped = (
            (layout.ADDRESS_TRANSACTION, before.by_address, kept.by_address),
            (layout.ADDRESS_LEASE, before.by_lease, kept.by_lease),
            (layout.CALL, before.calls, kept.calls),
        )
        ranges = tuple(
            (prefix, bytes((prefix[0] + 1,))) for prefix, was, stays in dropped if was and not stays
        )
        self._db.write({layout.KEPT: encode_kept(kept)}, ranges)
        self._kept.value = kept

    def prune(self) -> bool:
        """Delete a little of what the store does not keep; return whether there was any.

        That takes some milliseconds. Raises ``StorageProblem``.
        """
        if self._pending:
            return False
        before = self._db.moment
        now = self._pruner.step(self.kept, self.height)
        if now is None:
            return False
        self._kept.value = now
        self._pruned += self._db.moment - before
        return True

    @property
    def is_prune_due(self) -> bool:
        """Whether enough has gathered that the store does not keep."""
        return self._pruner.is_due(self.kept, self.height)

    @property
    def prune_progress(self) -> Progress:
        """How far the deletion of what the store does not keep is."""
        return self._pruner.progress(self.kept, self.height)

    def append(self, block: NewBlock) -> None:
        """Add a block on top; it is on disk after the next ``flush``."""
        self.put(run_steps(self.preparing(block)))

    def preparing(self, block: NewBlock) -> Steps[Prepared]:
        """Make the records of a block on top, in steps, for ``put``."""
        moment = self._present()
        undo: Items = {}
        items, accounts = yield from self._records(block, undo)
        if block.height > self._undo_depth:
            items[height_key(layout.UNDO, block.height - self._undo_depth)] = None
        items[layout.TIP] = block.height.to_bytes(4, "big")
        items = yield from _in_order(items)
        return Prepared(block.height, items, accounts, None, moment)

    def extend(self, block: NewBlock) -> None:
        """Replace the last block by a longer version of itself and flush.

        ``block`` has the new bytes and results; its changes and transactions are only the
        additional ones. ``shorten`` undoes the step. On ``StorageProblem`` the block is unchanged.
        """
        self.put(run_steps(self.preparing_longer(block)))

    def preparing_longer(self, block: NewBlock) -> Steps[Prepared]:
        """Make the records of a longer version of the last block, as ``extend`` describes it, in
        steps, for ``put``. Flushes the store.
        """
        self.flush()
        moment = self._present()
        record = self._decoded(height_key(layout.UNDO, block.height), layout.decode_undo)
        if record is None or block.height != self.height:
            raise InvariantBroken(f"block {block.height} is not the last one, {self.height}")
        undo: Items = dict(record)
        # Only the id of the block's last version is indexed.
        previous = self.meta(block.height)
        if previous is None:
            raise DamagedStore(f"the records of block {block.height} are missing")
        id_key = layout.BLOCK_HEIGHT + previous.id
        undo.pop(id_key, None)
        undone = len(undo)
        items, accounts = yield from self._records(block, undo)
        items.setdefault(id_key, None)
        items = yield from _in_order(items)
        step = yield from self._step(block, items, id_key, undone)
        return Prepared(block.height, items, accounts, step, moment)

    def put(self, prepared: Prepared) -> None:
        """Add the records of a block; those of a longer version of the last block are flushed.

        Nothing else may have changed the store since they were made. On ``StorageProblem`` the
        last block is unchanged.
        """
        if prepared.moment != self._present():
            raise InvariantBroken(f"the store has gone on since block {prepared.height} was made")
        height, step = prepared.height, prepared.step
        if step is None:
            self._pending.update(prepared.items)
            for address in prepared.accounts:
                self._pending_history.setdefault(address, []).append(height)
            self.height = height
            return
        # Nothing was pending.
        self._pending = prepared.items
        self.flush()
        self._steps.append(step)
        self._steps_height = height

    def _present(self) -> tuple[int, int]:
        """Return what changes with every record, apart from those that are pruned."""
        return self.written, len(self._pending)

    def _step(self, block: NewBlock, items: Items, id_key: bytes, undone: int) -> Steps[_Step]:
        """Return how to take back the batch that extends a block; see ``_Step``."""
        block_key, undo_key, replaced_key = _long_keys(block.height)
        values: Items = {}
        for number, key in enumerate(items, 1):
            if key != undo_key:
                values[key] = self._db.get(key)
            if step_ends(number):
                yield
        before, replaced = values.pop(block_key), values.pop(replaced_key)
        if before is None or replaced is None:
            raise DamagedStore(f"the records of block {block.height} are missing")
        kept = _kept_block(before, block.data)
        return _Step(values, kept, undone, id_key, len(layout.decode_replaced(replaced).before))

    def shorten(self) -> None:
        """Undo the last ``extend``; possible while the block is on top in this process."""
        self.flush()
        step, height = self._steps[-1], self.height
        block_key, undo_key, replaced_key = _long_keys(height)
        data = self._raw(block_key)
        record = self._decoded(undo_key, layout.decode_undo)
        replaced = self._decoded(replaced_key, layout.decode_replaced)
        if data is None or record is None or replaced is None:
            raise DamagedStore(f"the records of block {height} are missing")
        undo = [*list(record)[: step.undone], (step.id_key, None)]
        values = dict(step.values)
        values[block_key] = step.block.rebuilt(data)
        values[undo_key] = layout.encode(undo)
        values[replaced_key] = layout.encode(
            msgspec.structs.replace(replaced, before=replaced.before[: step.replaced])
        )
        self._db.write(values)
        self._steps.pop()

    def _records(self, block: NewBlock, undo: Items) -> Steps[tuple[Items, Collection[Address]]]:
        """Return all records of a block, and the accounts with another balance; ``undo`` gets the
        previous value of each key. Changes nothing: reads of the base layer may fail.
        """
        items: Items = {}
        for number, (key, value) in enumerate(
            index_records(block, self, by_lease=self.kept.by_lease), 1
        ):
            undo.setdefault(key, self._raw(key))
            items[key] = value
            if step_ends(number):
                yield
        for table, written in block.changes.items():
            row = layout.ROWS[table]
            for number, (name, content) in enumerate(written.items(), 1):
                key, value = row.prefix + row.key(name), row.encode(content)
                old = self._raw(key)
                if old != value:
                    undo.setdefault(key, old)
                    items[key] = value
                if step_ends(number):
                    yield
        at = block.height.to_bytes(4, "big")
        if block.by_hand is not None:
            key = layout.BY_HAND + at
            undo[key] = None
            items[key] = layout.encode(block.by_hand)
        accounts = yield from put_history(block, self, items, undo)
        yield from put_replaced(block, self._raw, items, undo)
        if block.transactions or block.moved:
            yield from put_transactions(block, self._raw, items, undo, self.kept)
        undo[layout.BLOCK_HEIGHT + block.meta.id] = None
        items[layout.BLOCK_HEIGHT + block.meta.id] = at
        items[layout.BLOCK + at] = block.data
        items[layout.META + at] = layout.encode(block.meta)
        items[layout.UNDO + at] = layout.encode(list(undo.items()))
        return items, accounts

    @property
    def written(self) -> int:
        """A number that changes with each write, apart from those of ``prune``."""
        return self._db.moment - self._pruned

    def flush(self) -> None:
        """Write everything appended so far in one atomic transaction.

        On ``StorageProblem`` the batch is discarded.
        """
        if not self._pending:
            return
        try:
            self._db.write(self._pending)
        except StorageProblem:
            self.discard_pending()
            raise
        self._pending = {}
        self._pending_history = {}
        if self.height != self._steps_height:
            self._steps.clear()

    def rollback(self, height: int, on_removed: Callable[[bytes], None] | None = None) -> None:
        """Remove all blocks above ``height``; ``on_removed`` receives their bytes, highest first.

        Each atomic step removes complete blocks, so an interruption or a ``StorageProblem`` leaves
        the store at a block boundary. Raises ``RollbackTooDeep``, and removes nothing, if the undo
        records do not go back that far.
        """
        self.flush()
        self._steps.clear()
        lowest = self._lowest_rollback()
        if height < lowest:
            raise RollbackTooDeep(height, lowest)
        while self.height > height:
            bottom = max(height, self.height - ROLLBACK_STEP)
            items: dict[bytes, bytes | None] = {}
            removed = [self._undo_block(top, items) for top in range(self.height, bottom, -1)]
            items[layout.TIP] = bottom.to_bytes(4, "big")
            self._db.write(items)
            self.height = bottom
            if on_removed is not None:
                for data in removed:
                    on_removed(data)

    def branch(self, height: int) -> Store:
        """Return the same chain without the blocks above ``height``, to append other blocks to.

        The branch shares the database. Its blocks are in memory until this store ``adopt``s it;
        dropping it has no effect. Raises ``RollbackTooDeep``.
        """
        self.flush()
        lowest = self._lowest_rollback()
        if height < lowest:
            raise RollbackTooDeep(height, lowest)
        branch = copy.copy(self)
        branch._pending, branch._pending_history, branch._steps = {}, {}, []
        for top in range(self.height, height, -1):
            branch._undo_block(top, branch._pending)
        branch._pending[layout.TIP] = height.to_bytes(4, "big")
        branch.height, branch._moment = height, self.written
        return branch

    def adopt(self, branch: Store) -> None:
        """Replace this chain by a branch, in one atomic step.

        This store must not have been written since the branch was made. On ``StorageProblem`` it is
        unchanged.
        """
        if self._pending or branch._moment != self.written:
            raise InvariantBroken("the store has gone on since the branch was made")
        branch.flush()
        self._steps.clear()
        self.height = self._tip()

    # --- moments ----------------------------------------------------------------------------------

    def mark(self) -> int:
        """Mark the present content for ``restore_moment``, and return the moment's number."""
        self.flush()
        return self._db.timeline.mark()

    def restore_moment(self, moment: int) -> int:
        """Restore the content of a moment, in one atomic step. Return the lowest height whose block
        has changed, or the one above the last block.

        Raises ``KeyError`` for an unknown moment, and ``StorageProblem``.
        """
        self.flush()
        timeline = self._db.timeline
        items = timeline.path_to(moment, self._db.get)
        top = self.height
        self._steps.clear()
        if items:
            self._db.write(items)
        timeline.moved_to(moment)
        self._changed_all()
        changed = (
            int.from_bytes(key[len(layout.META) :], "big")
            for key in items
            if key.startswith(layout.META)
        )
        return min(changed, default=min(top, self.height) + 1)

    def forget_moment(self, moment: int) -> None:
        """Drop a moment."""
        self._db.timeline.forget(moment)

    def wipe(self) -> None:
        """Delete everything but the network's name, and drop all moments."""
        self.discard_pending()
        self._steps.clear()
        self._db.timeline.forget_all()
        identity = (layout.NETWORK, layout.VERSION)
        items: dict[bytes, bytes | None] = {
            key: None for key, _ in self._db.scan(b"", b"") if key not in identity
        }
        kept = EVERYTHING.changed_to(self.kept.wanted)
        items[layout.KEPT] = None if kept == EVERYTHING else encode_kept(kept)
        self._db.write(items)
        self._changed_all()

    def become(self, other: Store) -> None:
        """Copy the content of another store of the same network, in one atomic step.

        On ``StorageProblem`` this store is unchanged.
        """
        self.flush()
        other.flush()
        self._steps.clear()
        items: dict[bytes, bytes | None] = dict(other._db.scan(b"", b""))
        for key, value in self._db.scan(b"", b""):
            if items.get(key) == value:
                del items[key]
            else:
                items.setdefault(key, None)
        self._db.write(items)
        self._changed_all()

    def _changed_all(self) -> None:
        """The content is another one."""
        self._pruner.forget()
        self._read_kept()
        self.height = self._tip()

    def has_moment(self, moment: int) -> bool:
        """Whether a moment can be restored."""
        return moment in self._db.timeline

    def _lowest_rollback(self) -> int:
        """Return the lowest height that the undo records reach. It does not follow from the height
        of the chain, because removed blocks have taken their undo records with them.
        """
        for key, _ in self.scan(layout.UNDO, layout.UNDO):
            lowest = int.from_bytes(key[len(layout.UNDO) :], "big") - 1
            return max(lowest, self.kept.lowest_rollback)
        return self.height

    def _undo_block(self, height: int, items: dict[bytes, bytes | None]) -> bytes:
        """Add the undo records of the block at a height to ``items``; return the block's bytes."""
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
        self._db.snapshots.revoke()
        try:
            self.flush()
        finally:
            self._db.close()

    def discard_pending(self) -> None:
        """Discard the blocks that were appended since the last flush."""
        # The identity of the chain belongs to no block.
        identity = (layout.NETWORK, layout.VERSION)
        self._pending = {key: self._pending[key] for key in identity if key in self._pending}
        self._pending_history = {}
        self.height = self._tip()


def _in_order(items: Items) -> Steps[Items]:
    """Return records in the order of their keys, in which the database takes them four times as
    fast.
    """
    ordered: Items = {}
    for number, key in enumerate(sorted(items), 1):
        ordered[key] = items[key]
        if step_ends(number):
            yield
    return ordered


def _long_keys(height: int) -> tuple[bytes, bytes, bytes]:
    """Return the keys of a block's records that grow with the block: its bytes, its undo record,
    and the values that it replaced.
    """
    return (
        height_key(layout.BLOCK, height),
        height_key(layout.UNDO, height),
        height_key(layout.REPLACED, height),
    )
