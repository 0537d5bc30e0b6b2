"""Deleting what the mode of a store does not keep, in steps beside the work of the node.

A step reads and deletes a bounded number of records and writes one batch, which also says in
``Kept`` what is gone from then on: after a crash at any moment the store is as one step left it,
and the next one goes on there. Nothing is deleted that a rollback, as deep as the settings allow,
or the blocks after it need.

Balances of long ago are deleted by height, the lowest first: of each account that a block changed,
all balances before that one go. What it changed is in the records of its transactions.

What lives here: what to delete next. What does not: what each mode keeps (``keeping``), when steps
run (``soliton.node.pruning``).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from soliton.chain.blocks import without_transactions
from soliton.ledger.environment import BlockMeta
from soliton.ledger.state import ASSET_BALANCES, DEPOSITS, LEASES, WAVES, Changes
from soliton.storage import layout
from soliton.storage.database import Database
from soliton.storage.engine import Range
from soliton.storage.errors import DamagedStore
from soliton.storage.headers import encode_header
from soliton.storage.keeping import FULL, PRUNED, Keeping, Kept, encode_kept
from soliton.storage.layout import HEIGHT_BYTES, height_key

STEP_BLOCKS: Final = 64
"""Blocks whose transactions are deleted in one step, and blocks without changed balances that one
step passes.
"""
STEP_BYTES: Final = 1024 * 1024
"""A step reads no further block behind this many bytes."""
STEP_TRANSACTIONS: Final = 64
"""Transactions whose changes are read at once."""
STEP_SEARCHES: Final = 128
"""Accounts whose earlier balances one step searches for, and balances that it deletes."""

Items = dict[bytes, bytes | None]


class Progress(NamedTuple):
    """How many blocks have been pruned since the first one, and how many will have been."""

    done: int
    due: int


class _Batch:
    """The deletions of one step."""

    def __init__(self) -> None:
        self.items: Items = {}
        self.ranges: list[Range] = []
        self.searches = 0

    def delete_heights(self, prefix: bytes, first: int, end: int) -> None:
        """Delete the records of the heights from ``first`` on, below ``end``."""
        if first < end:
            self.ranges.append((height_key(prefix, first), height_key(prefix, end)))

    @property
    def is_full(self) -> bool:
        """Whether the step has done its share."""
        return self.searches >= STEP_SEARCHES or len(self.items) >= STEP_SEARCHES


class Pruner:
    """Deletes from one database; not thread-safe, and only while nothing is pending."""

    def __init__(self, database: Database, keeping: Keeping, undo_depth: int) -> None:
        """``undo_depth`` is how many blocks can be rolled back."""
        self._db = database
        self._keeping = keeping
        self._undo_depth = undo_depth
        self._balances: Iterator[_Batch] | None = None
        self._balances_height = 0
        self._has_put_undo = False

    def forget(self) -> None:
        """Forget the place within a block: the chain is another one."""
        self._balances = None

    def targets(self, kept: Kept, height: int) -> tuple[int, int]:
        """Return from which heights on transactions and balances shall be kept, for a chain of a
        height.
        """
        blocks = kept.blocks_from
        if kept.mode == PRUNED:
            blocks = max(blocks, height + 1 - self._keeping.last_blocks)
        balances = kept.balances_from
        if kept.mode in (FULL, PRUNED):
            balances = max(balances, height + 1 - self._keeping.last_balances)
        return blocks, balances

    def progress(self, kept: Kept, height: int) -> Progress:
        """Return how far pruning is."""
        return Progress(
            kept.blocks_from + kept.balances_from - 2, sum(self.targets(kept, height)) - 2
        )

    def is_due(self, kept: Kept, height: int) -> bool:
        """Whether enough has gathered to be deleted."""
        blocks, balances = self.targets(kept, height)
        gathered = max(blocks - kept.blocks_from, balances - kept.balances_from)
        return gathered > self._keeping.interval

    def step(self, kept: Kept, height: int) -> Kept | None:
        """Delete a little, in one atomic batch, and return what is kept then; ``None`` if there was
        nothing to delete. Raises ``StorageProblem``.
        """
        if len(self._db.timeline):
            # A moment would not bring back what is deleted.
            return None
        blocks, balances = self.targets(kept, height)
        if kept.blocks_from < blocks:
            batch, now = self._blocks(kept, blocks)
        elif kept.balances_from < balances:
            batch, now = self._past(kept, balances)
        elif kept.mode == PRUNED and kept.changes_from < kept.balances_from:
            # The store was a full one, whose balances were deleted before.
            batch = _Batch()
            now = self._without_changes(batch, kept, kept.balances_from)
        else:
            return None
        if not self._has_put_undo:
            self._put_undo(batch, height)
        batch.items[layout.KEPT] = encode_kept(now)
        self._db.write(batch.items, tuple(batch.ranges), soon=False)
        self._has_put_undo = True
        return now

    def _put_undo(self, batch: _Batch, height: int) -> None:
        """Delete the undo records that a store with a greater depth has left."""
        lowest = height + 1 - self._undo_depth
        for key, _ in self._db.scan(layout.UNDO, layout.UNDO):
            first = int.from_bytes(key[len(layout.UNDO) :], "big")
            batch.delete_heights(layout.UNDO, first, lowest)
            return

    # --- transactions -----------------------------------------------------------------------------

    def _blocks(self, kept: Kept, until: int) -> tuple[_Batch, Kept]:
        """Replace the next blocks by their headers, and their ids by short ones."""
        batch, size = _Batch(), 0
        # The first block identifies the chain.
        first = at = max(2, kept.blocks_from)
        parent = self._meta(at - 1)
        while at < until and at - first < STEP_BLOCKS and size < STEP_BYTES:
            meta, data = self._meta(at), self._db.get(height_key(layout.BLOCK, at))
            if data is None:
                raise DamagedStore(f"the records of block {at} are missing")
            size += len(data)
            header = encode_header(without_transactions(data), meta, parent)
            batch.items[height_key(layout.HEADER, at)] = header
            short = msgspec.structs.replace(meta, snapshot_hash=b"", state_hash=b"", sections={})
            batch.items[height_key(layout.META, at)] = layout.encode(short)
            name = layout.short_id_key(meta.id)
            same = batch.items[name] if name in batch.items else self._db.get(name)
            batch.items[name] = (same or b"") + at.to_bytes(HEIGHT_BYTES, "big")
            batch.items[layout.BLOCK_HEIGHT + meta.id] = None
            parent, at = meta, at + 1
        batch.delete_heights(layout.BLOCK, first, at)
        return batch, msgspec.structs.replace(kept, blocks_from=max(at, kept.blocks_from))

    def _meta(self, height: int) -> BlockMeta:
        raw = self._db.get(height_key(layout.META, height))
        if raw is None:
            raise DamagedStore(f"the records of block {height} are missing")
        return layout.decode_meta(raw)

    # --- balances ---------------------------------------------------------------------------------

    def _past(self, kept: Kept, until: int) -> tuple[_Batch, Kept]:
        """Delete the balances before those of the next blocks, and what these blocks changed.

        While a block is under way, balances are answered from its height on.
        """
        batch, at = _Batch(), kept.balances_from
        # Those of the first blocks of all have no earlier ones, but records of their own.
        first, limit = at, min(until, at + STEP_BLOCKS)
        while at < limit and not batch.is_full:
            if self._balances is None or self._balances_height != at:
                self._balances, self._balances_height = self._before(at), at
            for part in self._balances:
                batch.items |= part.items
                batch.searches += part.searches
                if batch.is_full:
                    break
            else:
                self._balances = None
                at += 1
        batch.delete_heights(layout.REPLACED, first, at)
        now = msgspec.structs.replace(kept, balances_from=at)
        return batch, self._without_changes(batch, now, at) if kept.mode == PRUNED else now

    def _without_changes(self, batch: _Batch, kept: Kept, until: int) -> Kept:
        """Delete what the transactions below a height changed."""
        batch.delete_heights(layout.SNAPSHOT, kept.changes_from, until)
        batch.delete_heights(layout.CALL, kept.changes_from, until)
        return msgspec.structs.replace(kept, changes_from=max(until, kept.changes_from))

    def _before(self, height: int) -> Iterator[_Batch]:
        """Yield the deletions of balances before those that a block left, account by account."""
        for prefix in self._changed(height):
            before = height.to_bytes(HEIGHT_BYTES, "big")
            while True:
                batch = _Batch()
                batch.searches = 1
                earlier = list(islice(self._db.scan_back(prefix, before), STEP_SEARCHES))
                batch.items.update((key, None) for key, _ in earlier)
                yield batch
                if len(earlier) < STEP_SEARCHES:
                    break
                before = earlier[-1][0][len(prefix) :]

    def _changed(self, height: int) -> Iterator[bytes]:
        """Yield the beginnings of the keys of all balances that a block changed."""
        raw = self._db.get(height_key(layout.REPLACED, height))
        if raw is not None:
            yield from _histories(layout.decode_changes(layout.decode_replaced(raw).initial))
        prefix = start = height_key(layout.SNAPSHOT, height)
        # No iterator stays open between steps.
        while rows := list(islice(self._db.scan(prefix, start), STEP_TRANSACTIONS)):
            for _, value in rows:
                yield from _histories(layout.decode_changes(value))
            start = rows[-1][0] + b"\0"


def _histories(changes: Changes) -> Iterator[bytes]:
    for table in (WAVES, LEASES, DEPOSITS):
        for address in changes.get(table, ()):
            yield layout.HISTORY + address
    for address, asset_id in changes.get(ASSET_BALANCES, ()):
        yield layout.ASSET_HISTORY + asset_id + address
