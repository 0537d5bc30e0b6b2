"""The file of notices that are not delivered yet, and of the position on the chain.

Both are in one SQLite database and change in one transaction, so a notice exists exactly if the
position is after its block. It is delivered later from there, with any number of attempts.

What lives here: the file, as a sink of the export, and the queue of pending notices. What does not:
the content of notices (``notices``), delivery (``delivery``).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from soliton.export.errors import AnotherExport, DatabaseAway, SourceAway, WrongChain
from soliton.export.notices import Interests, Notice, notices_of
from soliton.export.sources import ChainBlock, Source
from soliton.export.steps import Position, Step, Stored

MAX_WAITING: Final = 10_000
"""Limit on pending notices; the chain is not followed until some were delivered."""
MAX_KEPT: Final = 20_000
"""Heights kept below the last one: twice the depth of a rollback."""
KNOWN_BELOW: Final = 100
"""Blocks kept below the first one: the usual depth of a rollback."""
MAX_UNDONE: Final = 1_000
"""Limit on the notices that one rollback notice names."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS rows (
    uid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, height INTEGER NOT NULL,
    size INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS rows_height ON rows (height);
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS notices (
    number INTEGER PRIMARY KEY AUTOINCREMENT, height INTEGER NOT NULL, place INTEGER NOT NULL,
    undone INTEGER NOT NULL DEFAULT 0, body TEXT
);
CREATE INDEX IF NOT EXISTS notices_place ON notices (height, place);
CREATE INDEX IF NOT EXISTS notices_waiting ON notices (number) WHERE body IS NOT NULL;
"""
_LAST: Final = """
SELECT uid, id, height, size FROM rows WHERE height = (SELECT max(height) FROM rows) ORDER BY uid
"""
_UP_TO: Final = """
SELECT uid, id, height, size FROM rows WHERE height <= ? ORDER BY uid DESC LIMIT ?
"""
_TO_UNDO: Final = """
SELECT number FROM notices
WHERE NOT undone AND (height > ? OR (height = ? AND place >= ?)) ORDER BY number
"""
_UNDO: Final = """
UPDATE notices SET undone = 1 WHERE NOT undone AND (height > ? OR (height = ? AND place >= ?))
"""
_IDS, _KEY, _STREAM = "ids", "key", "stream"

_encode = msgspec.json.Encoder().encode
_names: Final = msgspec.json.Decoder(list[str]).decode


class Waiting(NamedTuple):
    """A pending notice; ``name`` is the same in every attempt to deliver it."""

    number: int
    name: str
    body: bytes


class Outbox:
    """The file as the sink of an export."""

    def __init__(
        self,
        path: Path,
        lock: int,
        interests: Interests,
        address_of: Callable[[str], str],
    ) -> None:
        """See ``open``."""
        self._path = path
        self._lock = lock
        self._interests = interests
        self._address_of = address_of
        self._database = _connect(path, "FULL")
        self._database.executescript(_SCHEMA)

    @classmethod
    def open(
        cls, path: Path, source: Source, interests: Interests, from_height: int | None = None
    ) -> Outbox:
        """Open a file, or create one that begins at a height, by default after the last block.

        Raises ``DatabaseAway``, ``AnotherExport``, ``SourceAway``, and ``WrongChain`` for a file
        that is not an outbox.
        """
        with _away(path):
            lock = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    raise AnotherExport(f"another process uses {path}") from error
                made = cls(path, lock, interests, source.address_of)
                try:
                    made._begin(source, from_height)
                except BaseException:
                    made._database.close()
                    raise
            except BaseException:
                os.close(lock)
                raise
        return made

    def close(self) -> None:
        """Close the file."""
        self._database.close()
        os.close(self._lock)

    def idle(self) -> None:
        """Nothing to do."""

    def position(self) -> Position:
        """See ``Sink``."""
        with _away(self._path):
            found = self._database.execute(_LAST)
            rows = [Stored(*row) for row in found]
            return Position(rows, _names(self._state(_IDS) or "[]"), self._state(_KEY))

    def ids(self, top: int, count: int) -> list[Stored]:
        """See ``Sink``."""
        with _away(self._path):
            return [Stored(*row) for row in self._database.execute(_UP_TO, (top, count))]

    def write(self, step: Step, before: Position) -> Position:
        """Add the notices of a step and move the position; raises ``DatabaseAway``, also if there
        are too many pending notices.
        """
        with _away(self._path):
            count = self.count_waiting()
            if count >= MAX_WAITING:
                raise DatabaseAway(f"{count} notices wait for their receiver")
            self._database.execute("BEGIN IMMEDIATE")
            try:
                self._write(step, before)
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")
        return self.position()

    def count_waiting(self) -> int:
        """Return the number of pending notices."""
        return _count(self._database)

    # --- within a transaction ---------------------------------------------------------------------

    def _begin(self, source: Source, from_height: int | None) -> None:
        """Set up a new file, with some blocks below the first one in case of a fork there."""
        if self._state(_STREAM) is not None:
            return
        height = source.refresh()
        if not height:
            raise SourceAway("the chain has no block yet")
        last = height if from_height is None else from_height - 1
        if last > height:
            raise SourceAway(f"the chain is at height {height}, not at {last} yet")
        self._database.execute("BEGIN IMMEDIATE")
        for each in range(max(1, last - KNOWN_BELOW), last):
            name = source.block_id(each)
            if name is None:
                raise SourceAway("the chain changed while it was read")
            self._add_row(name, each, 0)
        for block in source.blocks(last, last) if last else ():
            self._add_block(block, 0, notifies=False)
        self._set_state(_STREAM, secrets.token_hex(8))
        self._database.execute("COMMIT")

    def _write(self, step: Step, before: Position) -> None:
        ids, key = before.ids, before.key
        top = before.top
        if step.cut is not None:
            assert top is not None
            self._database.execute("DELETE FROM rows WHERE uid > ?", (step.cut.uid,))
            # The content of a block below the last one was not kept.
            same = step.cut.height == top.height
            ids, key = (ids[: step.cut.size], key) if same else ([], None)
            self._set_state(_IDS, _encode(ids).decode())
            self._set_state(_KEY, key)
            self._undo(step.cut)
            top = step.cut
        if step.renamed is not None:
            assert top is not None
            self._add_row(step.renamed, top.height, top.size)
        if step.grown is not None:
            assert top is not None
            self._add_block(step.grown, top.size)
        for block in step.blocks:
            self._add_block(block, 0)
        if step.blocks:
            self._forget(step.blocks[-1].height)

    def _add_block(self, block: ChainBlock, first: int, *, notifies: bool = True) -> None:
        if first == 0:
            # The block below is complete: keep only its last form.
            self._database.execute(
                "DELETE FROM rows WHERE height = ?1 AND uid < "
                "(SELECT max(uid) FROM rows WHERE height = ?1)",
                (block.height - 1,),
            )
        self._add_row(block.id, block.height, len(block.transactions))
        names = [each.members["id"] for each in block.transactions]
        self._set_state(_IDS, _encode(names).decode())
        self._set_state(_KEY, block.key)
        if notifies:
            for notice in notices_of(block, first, self._interests, self._address_of):
                self._add_notice(notice)

    def _add_notice(self, notice: Notice) -> None:
        self._database.execute(
            "INSERT INTO notices (height, place, body) VALUES (?, ?, ?)",
            (notice.height, notice.behind, _encode(notice.members).decode()),
        )

    def _undo(self, cut: Stored) -> None:
        """Add a notice of the rollback; rollback notices have no place and are never undone."""
        place = (cut.height, cut.height, cut.size)
        numbers = [row[0] for row in self._database.execute(_TO_UNDO, place)]
        self._database.execute(_UNDO, place)
        where = {"height": cut.height, "block": cut.id, "transactionCount": cut.size}
        for at in range(0, len(numbers), MAX_UNDONE):
            undone = [self._name(number) for number in numbers[at : at + MAX_UNDONE]]
            self._add_notice(Notice(0, 0, {"event": "rollback", **where, "undone": undone}))

    def _forget(self, height: int) -> None:
        below = (height - MAX_KEPT,)
        self._database.execute("DELETE FROM rows WHERE height < ?", below)
        self._database.execute("DELETE FROM notices WHERE body IS NULL AND height < ?", below)

    def _add_row(self, name: str, height: int, size: int) -> None:
        self._database.execute(
            "INSERT INTO rows (id, height, size) VALUES (?, ?, ?)", (name, height, size)
        )

    def _name(self, number: int) -> str:
        return f"{self._state(_STREAM)}-{number}"

    def _state(self, name: str) -> str | None:
        return _state(self._database, name)

    def _set_state(self, name: str, value: str | None) -> None:
        self._database.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (name, value))


class WaitingNotices:
    """The queue of pending notices in a file, for the delivering thread."""

    def __init__(self, path: Path) -> None:
        """Raises ``DatabaseAway`` or ``WrongChain``."""
        self._path = path
        with _away(path):
            # Confirmations lost in a power failure lead to repeated deliveries.
            self._database = _connect(path, "NORMAL")
            self._database.executescript(_SCHEMA)

    def next(self, count: int) -> list[Waiting]:
        """Return the first pending notices, in order."""
        with _away(self._path):
            stream = _state(self._database, _STREAM)
            found = self._database.execute(
                "SELECT number, body FROM notices WHERE body IS NOT NULL ORDER BY number LIMIT ?",
                (count,),
            )
            return [Waiting(row[0], f"{stream}-{row[0]}", row[1].encode()) for row in found]

    def count(self) -> int:
        """Return the number of pending notices."""
        with _away(self._path):
            return _count(self._database)

    def done(self, number: int) -> None:
        """Record that a notice was delivered."""
        with _away(self._path):
            self._database.execute("UPDATE notices SET body = NULL WHERE number = ?", (number,))

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _connect(path: Path, durability: str) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(f"PRAGMA synchronous = {durability}")
    except BaseException:
        database.close()
        raise
    return database


def _count(database: sqlite3.Connection) -> int:
    found = database.execute("SELECT count(*) FROM notices WHERE body IS NOT NULL")
    return int(found.fetchone()[0])


def _state(database: sqlite3.Connection, name: str) -> str | None:
    found = database.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
    return None if found is None else found[0]


@contextlib.contextmanager
def _away(path: Path) -> Iterator[None]:
    """Convert exceptions of the system and of SQLite."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise DatabaseAway(f"{path}: {error}") from error
    except (sqlite3.DatabaseError, msgspec.DecodeError) as error:
        raise WrongChain(f"{path} is not a cursor of notices: {error}") from error
    except OSError as error:
        raise DatabaseAway(f"{path}: {error.strerror}") from error
