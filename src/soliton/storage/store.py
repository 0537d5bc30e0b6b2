"""The store: state, blocks and indexes in one embedded database, always at a block boundary.

Blocks are appended to a batch in memory and written in one atomic transaction by ``flush``: after
every block when a chain is followed, after many when a file is imported. Whatever happens in
between, the database holds the last flushed batch. Each block leaves an undo record, so removing
blocks is writing back what was there before.

What lives here: appending, removing, flushing. What does not: reading (``reader``), the key layout
(``layout``), what the changes of a block are (``soliton.ledger``).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from soliton.errors import InvariantBroken
from soliton.storage import layout
from soliton.storage.below import Below
from soliton.storage.block_records import put_history, put_replaced, put_transactions
from soliton.storage.blocks import NewBlock
from soliton.storage.database import Database
from soliton.storage.directories import decode_network
from soliton.storage.errors import DamagedStore, RollbackTooDeep, StorageProblem, WrongStore
from soliton.storage.indexes import index_records
from soliton.storage.layout import height_key
from soliton.storage.reader import StoreReader

UNDO_DEPTH: Final = 10_000
"""Blocks that can be removed again; the network itself never goes back more than 100."""
ROLLBACK_STEP: Final = 200
"""Blocks that are removed in one atomic step."""


class Store(StoreReader):
    """One chain on disk, to be written. Use from one thread; others may read a ``snapshot``, and
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
        outgrows: bool = True,
        below: Below | None = None,
    ) -> None:
        """Open or make the store of a network in ``directory``.

        ``durable`` waits for the disk at each flush. Who does not write opens it without
        ``exclusive``; of those who do there can be one. ``outgrows`` as in ``Database``. It may
        stand on what is ``below``. Raises
        ``WrongStore``, ``StoreInUse``, ``DamagedStore`` or another ``StorageProblem``.
        """
        self._undo_depth = undo_depth
        self._steps: list[dict[bytes, bytes | None]] = []
        self._steps_height = 0
        self._moment = 0
        database = Database(directory, durable=durable, exclusive=exclusive, outgrows=outgrows)
        try:
            super().__init__(database, below)
            self._check_identity(directory, network)
        except BaseException:
            database.close()
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

    def append(self, block: NewBlock) -> None:
        """Add a block on top; it is on disk after the next ``flush``."""
        height = block.height
        self._rehearse(block, {})
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
        self._rehearse(block, undo)
        # What grows keeps one name: that of its last form.
        before = self.meta(block.height)
        if before is not None:
            undo.pop(layout.BLOCK_HEIGHT + before.id, None)
            self._pending[layout.BLOCK_HEIGHT + before.id] = None
        self._put_block(block, undo)
        step = {key: self._db.get(key) for key in self._pending}
        self.flush()
        self._steps.append(step)
        self._steps_height = block.height

    def shorten(self) -> None:
        """Take back the last ``extend``; possible as long as this process has the block on top."""
        self.flush()
        self._db.write(self._steps[-1])
        self._steps.pop()

    def _rehearse(self, block: NewBlock, undo: Mapping[bytes, bytes | None]) -> None:
        """Read what writing a block reads of what is below, which may fail: nothing is written yet
        then.
        """
        if self.below is None:
            return
        trial = copy.copy(self)
        trial._pending = dict(self._pending)
        trial._pending_history = {at: each[:] for at, each in self._pending_history.items()}
        trial._put_block(block, dict(undo))

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
        if block.by_hand is not None:
            key = height_key(layout.BY_HAND, height)
            undo[key] = None
            pending[key] = layout.encode(block.by_hand)
        for address in put_history(block, self, pending, undo):
            self._pending_history.setdefault(address, []).append(height)
        put_replaced(block, self._raw, pending, undo)
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
            self._db.write(self._pending)
        except StorageProblem:
            self.discard_pending()
            raise
        self._pending = {}
        self._pending_history = {}
        if self.height != self._steps_height:
            self._steps.clear()

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
            self._db.write(items)
            self.height = bottom
            if on_removed is not None:
                for data in removed:
                    on_removed(data)

    def branch(self, height: int) -> Store:
        """The same chain without the blocks above ``height``, for others to be put on top.

        It shares the database; what is put on it is in memory until this store ``adopt``s it, and
        dropping it leaves no trace. Raises ``RollbackTooDeep``.
        """
        self.flush()
        lowest = self._lowest_rollback()
        if height < lowest:
            raise RollbackTooDeep(height, lowest)
        made = copy.copy(self)
        made._pending, made._pending_history, made._steps = {}, {}, []
        for top in range(self.height, height, -1):
            made._take_back(top, made._pending)
        made._pending[layout.TIP] = height.to_bytes(4, "big")
        made.height, made._moment = height, self._db.moment
        return made

    def adopt(self, branch: Store) -> None:
        """Become a branch, in one atomic step.

        This store has not been written since the branch was made. Raises ``StorageProblem``, and
        is as it was then.
        """
        if self._pending or branch._moment != self._db.moment:
            raise InvariantBroken("the store has gone on since the branch was made")
        branch.flush()
        self._steps.clear()
        self.height = self._tip()

    # --- moments ----------------------------------------------------------------------------------

    def mark(self) -> int:
        """Remember what it holds now, for ``go_to``: the number of the moment."""
        self.flush()
        return self._db.timeline.mark()

    def go_to(self, moment: int) -> int:
        """Hold again what it held at a moment, in one atomic step: the lowest height at which
        there is another block now, or another form of it, or the one above the last.

        Raises ``KeyError`` for a moment that is not known (any more), and ``StorageProblem``.
        """
        self.flush()
        timeline = self._db.timeline
        items = timeline.way_to(moment, self._db.get)
        top = self.height
        self._steps.clear()
        if items:
            self._db.write(items)
        timeline.arrived(moment)
        self.height = self._tip()
        changed = (
            int.from_bytes(key[len(layout.META) :], "big")
            for key in items
            if key.startswith(layout.META)
        )
        return min(changed, default=min(top, self.height) + 1)

    def forget_moment(self, moment: int) -> None:
        """Let go of a moment."""
        self._db.timeline.forget(moment)

    def wipe(self) -> None:
        """Hold nothing but whose chain it is. All moments are forgotten."""
        self.discard_pending()
        self._steps.clear()
        self._db.timeline.forget_all()
        kept = (layout.NETWORK, layout.VERSION)
        self._db.write({key: None for key, _ in self._db.scan(b"", b"") if key not in kept})
        self.height = self._tip()

    def become(self, other: Store) -> None:
        """Hold what another store of the same network holds, in one atomic step.

        Raises ``StorageProblem``, and is as it was then.
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
        self.height = self._tip()

    def knows_moment(self, moment: int) -> bool:
        """Whether it can go there."""
        return moment in self._db.timeline

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
        self._db.snapshots.revoke()
        try:
            self.flush()
        finally:
            self._db.close()

    def discard_pending(self) -> None:
        """Forget the blocks that were appended since the last flush."""
        # What says whose chain this is belongs to no block.
        identity = (layout.NETWORK, layout.VERSION)
        self._pending = {key: self._pending[key] for key in identity if key in self._pending}
        self._pending_history = {}
        self.height = self._tip()
