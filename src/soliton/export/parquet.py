"""The chain as Parquet files, partitioned by height, for DuckDB, Spark and similar tools.

The directory has subdirectories ``blocks`` and ``transactions``, each with a file for each range of
heights (``range=1000/part.parquet`` begins at height 1,000). A file is replaced atomically, so
readers see the old one or the new one. The files of full ranges do not change, unless the chain is
rolled back that far. The last range grows: its files are rewritten, at most every so many seconds.

The two files of a range have the same mark. If the marks differ, or a file is missing, the program
was interrupted between the two, and the range is read from the chain again.

What lives here: files, and the position in them. What does not: choosing the next step
(``follower``).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from soliton.export.errors import AnotherExport, DatabaseAway, WrongChain, system_errors
from soliton.export.sources import ChainBlock, Members
from soliton.export.steps import Position, Step, Stored
from soliton.storage.files import replace_file, sync_directory

if TYPE_CHECKING:
    import pyarrow as pa

RANGE: Final = 1_000
"""Default of the heights per file."""
KNOWN_RANGES: Final = 20
"""Full ranges whose blocks are kept in memory, for rollbacks."""
_TABLES: Final = ("blocks", "transactions")
_MARK: Final = b"soliton.mark"
_FILE: Final = "part.parquet"

_encode: Final = msgspec.json.Encoder().encode


class Files(NamedTuple):
    """The directory, the heights per file, and the interval between rewrites of the last files."""

    directory: Path
    heights: int = RANGE
    seconds: float = 10.0


class _Block(NamedTuple):
    """The row of a block, and the rows of its transactions."""

    row: Members
    transactions: list[Members]


class ParquetFiles:
    """An open directory, as a sink."""

    def __init__(self, files: Files, lock: int) -> None:
        """See ``open``."""
        self._files = files
        self._lock = lock
        self._below: list[Stored] = []
        self._tail: list[_Block] = []
        self._is_changed = False
        self._written_at = 0.0

    @classmethod
    def open(cls, files: Files) -> ParquetFiles:
        """Open or create it. Raises ``DatabaseAway``, ``AnotherExport`` or ``WrongChain``."""
        with system_errors(files.directory):
            files.directory.mkdir(parents=True, exist_ok=True)
            lock = os.open(files.directory / ".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    raise AnotherExport(f"another export writes to {files.directory}") from error
                made = cls(files, lock)
                made._check_heights()
                made._read()
            except BaseException:
                os.close(lock)
                raise
        return made

    def close(self) -> None:
        """Write the rest, and release the directory."""
        try:
            with contextlib.suppress(DatabaseAway):
                self.flush()
        finally:
            os.close(self._lock)

    def idle(self) -> None:
        """Write the last range, if the interval has passed."""
        if time.monotonic() - self._written_at >= self._files.seconds:
            self.flush()

    def flush(self) -> None:
        """Write the last range, if it has changed. Raises ``DatabaseAway``."""
        if self._is_changed:
            with system_errors(self._files.directory):
                self._put()

    def position(self) -> Position:
        """Return the position, including what is only in memory."""
        if not self._tail:
            return Position(self._below[-1:], [], None)
        row, transactions = self._tail[-1]
        return Position([_stored(row)], [each["id"] for each in transactions], row["key"])

    def ids(self, top: int, count: int) -> list[Stored]:
        """See ``Sink``."""
        tail = (_stored(block.row) for block in self._tail)
        found = [row for row in (*self._below, *tail) if row.height <= top]
        return found[: -count - 1 : -1]

    def write(self, step: Step, before: Position) -> Position:
        """See ``Sink``; raises ``DatabaseAway``."""
        del before
        with system_errors(self._files.directory):
            if step.cut is not None:
                self._go_back(step.cut)
            if step.renamed is not None:
                self._tail[-1].row["id"] = step.renamed
            if step.grown is not None:
                self._tail[-1] = _block(step.grown)
            for block in step.blocks:
                if self._tail and self._start(block.height) != self._start(self._first):
                    self._finish_range()
                self._tail.append(_block(block))
            self._is_changed = True
        return self.position()

    # --- ranges -----------------------------------------------------------------------------------

    @property
    def _first(self) -> int:
        """The first height in memory."""
        height: int = self._tail[0].row["height"]
        return height

    def _start(self, height: int) -> int:
        """Return the first height of a range."""
        return height // self._files.heights * self._files.heights

    def _finish_range(self) -> None:
        """Write the full range, and keep only its ids in memory."""
        self._put()
        self._below += [_stored(each.row) for each in self._tail]
        del self._below[: -KNOWN_RANGES * self._files.heights]
        self._tail = []

    def _go_back(self, cut: Stored) -> None:
        """Remove what is above a row; a full range becomes the last one again."""
        while self._tail and self._tail[-1].row["height"] > cut.height:
            self._tail.pop()
        if not self._tail:
            start = self._start(cut.height)
            self._below = [row for row in self._below if row.height < start]
            self._tail = [
                each for each in self._load(start) or () if each.row["height"] <= cut.height
            ]
        row, transactions = self._tail[-1]
        row["transaction_count"] = cut.size
        row["id"] = cut.id
        del transactions[cut.size :]
        # Remove the ranges above from the top, so that the files are a chain at any time.
        for start in reversed(self._starts()):
            if start > self._start(cut.height):
                self._remove(start)
        self._put()

    def _starts(self) -> list[int]:
        """Return the ranges that have files, even if only one of the two."""
        found = self._files.directory.glob(f"*/range=*/{_FILE}")
        return sorted({int(path.parent.name.removeprefix("range=")) for path in found})

    def _remove(self, start: int) -> None:
        for table in _TABLES:
            place = self._place(table, start).parent
            shutil.rmtree(place, ignore_errors=True)
            self._make_durable(place.parent)

    def _place(self, table: str, start: int) -> Path:
        return self._files.directory / table / f"range={start}" / _FILE

    # --- files ------------------------------------------------------------------------------------

    def _put(self) -> None:
        """Write the files of the last range."""
        import pyarrow as pa
        from pyarrow import parquet

        mark = secrets.token_hex(16).encode()
        rows = (
            [each for block in self._tail for each in block.transactions],
            [block.row for block in self._tail],
        )
        # The blocks come last: they determine the position.
        for table, content in zip(reversed(_TABLES), rows, strict=True):
            place = self._place(table, self._start(self._first))
            place.parent.mkdir(parents=True, exist_ok=True)
            schema = _schema(table).with_metadata({_MARK: mark})
            made = pa.Table.from_pylist(content, schema=schema)
            temporary = place.with_name(f".{place.name}")
            with temporary.open("wb") as file:
                parquet.write_table(made, file, compression="zstd")
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(place)
            self._make_durable(place.parent)
        self._is_changed = False
        self._written_at = time.monotonic()

    def _make_durable(self, place: Path) -> None:
        """Sync a directory and those above it, so that a crash does not lose names in them."""
        while place != self._files.directory.parent:
            if place.exists():
                sync_directory(place)
            place = place.parent

    def _check_heights(self) -> None:
        """Check that the directory has the same number of heights per file."""
        place = self._files.directory / ".heights"
        if not place.exists():
            replace_file(place, (f"{self._files.heights}\n".encode("ascii"),))
        if place.read_text(encoding="ascii").strip() != str(self._files.heights):
            raise WrongChain(f"the files in {self._files.directory} have other --heights: {place}")

    def _read(self) -> None:
        """Find the position."""
        starts = self._starts()
        for start in starts[-KNOWN_RANGES - 1 :]:
            blocks = self._load(start)
            if blocks is None:
                if start != starts[-1]:
                    raise WrongChain(f"{self._place('blocks', start)} is damaged")
                self._remove(start)
            elif start == starts[-1]:
                self._tail = blocks
            else:
                self._below += [_stored(each.row) for each in blocks]

    def _load(self, start: int) -> list[_Block] | None:
        """Return the blocks of a range, ``None`` if its two files do not match."""
        from pyarrow import ArrowException, parquet

        try:
            found = [parquet.ParquetFile(self._place(table, start)).read() for table in _TABLES]
        except FileNotFoundError:
            return None
        except ArrowException as error:
            raise WrongChain(f"{self._place('blocks', start)} is no export: {error}") from error
        if found[0].schema.metadata.get(_MARK) != found[1].schema.metadata.get(_MARK):
            return None
        of_height: dict[int, list[Members]] = {}
        for row in found[1].to_pylist():
            of_height.setdefault(row["height"], []).append(row)
        return [_Block(row, of_height.get(row["height"], [])) for row in found[0].to_pylist()]


def _schema(table: str) -> pa.Schema:
    import pyarrow as pa

    text, whole = pa.string(), pa.int64()
    moment = pa.timestamp("ms", tz="UTC")
    if table == "blocks":
        return pa.schema(
            [
                ("height", whole),
                ("id", text),
                ("reference", text),
                ("time", moment),
                ("total_waves", whole),
                ("transaction_count", whole),
                ("key", text),
            ]
        )
    names = ("id", "sender", "recipient", "asset_id", "fee_asset_id", "status", "json")
    return pa.schema(
        [
            *(("height", whole), ("index", whole), ("type", pa.int16())),
            *(("version", pa.int16()), ("time", moment), ("fee", whole), ("amount", whole)),
            *((name, text) for name in names),
        ]
    )


def _block(block: ChainBlock) -> _Block:
    row = {
        "height": block.height,
        "id": block.id,
        "reference": block.reference,
        "time": block.timestamp,
        "total_waves": block.total_waves,
        "transaction_count": len(block.transactions),
        "key": block.key,
    }
    return _Block(
        row,
        [
            _transaction(each.members, block.height, index)
            for index, each in enumerate(block.transactions)
        ],
    )


def _transaction(members: Members, height: int, index: int) -> Members:
    amount = members.get("amount")
    return {
        "height": height,
        "index": index,
        "type": members["type"],
        "version": members.get("version"),
        "time": members["timestamp"],
        "fee": members["fee"],
        "amount": amount if isinstance(amount, int) else None,
        "id": members["id"],
        "sender": members.get("sender"),
        "recipient": members.get("recipient", members.get("dApp")),
        "asset_id": members.get("assetId"),
        "fee_asset_id": members.get("feeAssetId", members.get("feeAsset")),
        "status": members.get("applicationStatus", "succeeded"),
        "json": _encode(members).decode(),
    }


def _stored(row: Members) -> Stored:
    return Stored(row["height"], row["id"], row["height"], row["transaction_count"])
