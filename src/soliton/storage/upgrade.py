"""Upgrading the store of an earlier version of the program in place.

Layout 2 had the same records in LMDB. They are written to a store of today beside the old file in
the order of their keys, so that an upgrade that was interrupted goes on after the last one. The old
file is deleted at the end; until then the directory is refused by all other commands.

What lives here: the upgrade. What does not: LMDB's format (``lmdb_file``).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from soliton.storage import layout
from soliton.storage.database import Database
from soliton.storage.directories import LMDB_NAME
from soliton.storage.engine import translate_errors
from soliton.storage.errors import WrongStore
from soliton.storage.lmdb_file import lmdb_file

UPGRADED_VERSION: Final = 2
"""The layout of LMDB whose records are those of today."""
BATCH_BYTES: Final = 4 * 1024 * 1024
"""The size of the keys and values that are written at once."""
_LOCK_NAME: Final = "lock.mdb"

Report = Callable[[int, int], None]


def upgrade(directory: Path, report: Report) -> int:
    """Upgrade the store in a directory, and return the number of its records.

    ``report`` is called with the records so far and the total. Raises ``WrongStore`` where there is
    nothing to upgrade, ``StoreInUse``, ``DamagedStore`` or another ``StorageProblem``.
    """
    old = directory / LMDB_NAME
    if not old.exists():
        raise WrongStore(f"{directory} has no store of an earlier version")
    with translate_errors(directory, "upgraded"), lmdb_file(old) as file:
        facts = dict(_facts(file.rows(b"!")))
        if facts.get(layout.VERSION) != bytes((UPGRADED_VERSION,)):
            raise WrongStore(f"{old} has a layout that cannot be upgraded; import the chain anew")
        database = Database(directory, durable=True, exclusive=True)
        try:
            done = _copy(file.rows, file.count, database, report)
            database.write({layout.VERSION: bytes((layout.LAYOUT_VERSION,))})
            database.flush()
        finally:
            database.close()
    old.unlink()
    (directory / _LOCK_NAME).unlink(missing_ok=True)
    return done


def _facts(rows: layout.Rows) -> layout.Rows:
    for key, value in rows:
        if not key.startswith(b"!"):
            return
        yield key, value


def _copy(
    rows: Callable[[bytes], layout.Rows], total: int, database: Database, report: Report
) -> int:
    last = next((key for key, _ in database.scan_back(b"")), b"")
    before = sum(1 for _ in database.scan(b"", b"")) if last else 0
    return before + write_rows(rows(last), database, lambda done: report(before + done, total))


def write_rows(rows: layout.Rows, database: Database, report: Callable[[int], None]) -> int:
    """Write rows in batches of ``BATCH_BYTES``, and return their number; ``report`` is called with
    that so far.
    """
    done = size = 0
    batch: dict[bytes, bytes | None] = {}
    for key, value in rows:
        batch[key] = value
        size += len(key) + len(value)
        if size >= BATCH_BYTES:
            database.write(batch)
            done += len(batch)
            report(done)
            batch, size = {}, 0
    database.write(batch)
    return done + len(batch)
