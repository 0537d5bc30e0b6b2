"""The chain as Parquet files, a directory for so many heights: for DuckDB, Spark and the like.

Below the directory stand ``blocks`` and ``transactions``, each with a file for each range of
heights (``range=1000/part.parquet`` begins at height 1,000). A file is written beside and put
in place at once, so who reads sees the old one or the new one. What lies in ranges that are full is
not touched any more, unless the chain goes back that far. The last range grows: its files are
written anew, at most every so many seconds.

The two files of a range carry the same mark. Where the marks differ, or a file is missing, the
program was ended between the two, and the range is read from the chain again.

What lives here: files, and the position that they hold. What does not: which step comes next
(``follower``).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from soliton.export.errors import AnotherExport, DatabaseAway, WrongChain
from soliton.export.sources import ChainBlock, Members
from soliton.export.steps import Position, Step, Stored
from soliton.storage.files import replace_file, sync_directory

if TYPE_CHECKING:
    import pyarrow as pa

RANGE: Final = 1_000
"""Heights of a file, unless told."""
KNOWN_RANGES: Final = 20
"""Full ranges whose blocks are known, for a chain that goes back."""
_TABLES: Final = ("blocks", "transactions")
_MARK: Final = b"soliton.mark"
_FILE: Final = "part.parquet"

_encode: Final = msgspec.json.Encoder().encode


class Files(NamedTuple):
    """Where files are, how many heights each has, and how often the last ones are written."""

    directory: Path
    heights: int = RANGE
    seconds: float = 10.0


class _Block(NamedTuple):
    """A block as a row, and the rows of its transactions."""

    row: Members
    transactions: list[Members]


class ParquetFiles:
    """A directory that is written."""

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
        """Open a directory, or make one. Raises ``DatabaseAway``, ``AnotherExport`` or
        ``WrongChain``.
        """
        with _away(files.directory):
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
        """Write what is not written yet, and let go of the directory."""
        try:
            with contextlib.suppress(DatabaseAway):
                self.flush()
        finally:
            os.close(self._lock)

    def idle(self) -> None:
        """Write the last range if it was long enough ago."""
        if time.monotonic() - self._written_at >= self._files.seconds:
            self.flush()

    def flush(self) -> None:
        """Write the last range, if anything of it is not written. Raises ``DatabaseAway``."""
        if self._is_changed:
            with _away(self._files.directory):
                self._put()

    def position(self) -> Position:
        """Where the export is: with what it has in memory."""
        if not self._tail:
            return Position(self._below[-1:], [], None)
        row, transactions = self._tail[-1]
        return Position([_stored(row)], [each["id"] for each in transactions], row["key"])

    def ids(self, top: int, count: int) -> list[Stored]:
        """The last rows up to a height, the highest first."""
        tail = (_stored(block.row) for block in self._tail)
        found = [row for row in (*self._below, *tail) if row.height <= top]
        return found[: -count - 1 : -1]

    def write(self, step: Step, before: Position) -> Position:
        """Carry out a step; raises ``DatabaseAway``."""
        del before
        with _away(self._files.directory):
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
        """The first height of the last range."""
        height: int = self._tail[0].row["height"]
        return height

    def _start(self, height: int) -> int:
        """Where the range of a height begins."""
        return height // self._files.heights * self._files.heights

    def _finish_range(self) -> None:
        """The last range is full: it is written, and only its ids stay in memory for a while."""
        self._put()
        self._below += [_stored(each.row) for each in self._tail]
        del self._below[: -KNOWN_RANGES * self._files.heights]
        self._tail = []

    def _go_back(self, cut: Stored) -> None:
        """Take off what is above a row; a range that was full is the last one again."""
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
        # What stands above goes first, from above: what is there is always a chain.
        for start in reversed(self._starts()):
            if start > self._start(cut.height):
                self._remove(start)
        self._put()

    def _starts(self) -> list[int]:
        """The ranges that have files, if only one of the two."""
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
        # The blocks come last: they say where the export is.
        for table, content in zip(reversed(_TABLES), rows, strict=True):
            place = self._place(table, self._start(self._first))
            place.parent.mkdir(parents=True, exist_ok=True)
            schema = _schema(table).with_metadata({_MARK: mark})
            made = pa.Table.from_pylist(content, schema=schema)
            beside = place.with_name(f".{place.name}")
            with beside.open("wb") as file:
                parquet.write_table(made, file, compression="zstd")
                file.flush()
                os.fsync(file.fileno())
            beside.replace(place)
            self._make_durable(place.parent)
        self._is_changed = False
        self._written_at = time.monotonic()

    def _make_durable(self, place: Path) -> None:
        """A crash of the machine leaves the names in a directory as they are now, and its own."""
        while place != self._files.directory.parent:
            if place.exists():
                sync_directory(place)
            place = place.parent

    def _check_heights(self) -> None:
        """Files of one directory have the same number of heights."""
        place = self._files.directory / ".heights"
        if not place.exists():
            replace_file(place, (f"{self._files.heights}\n".encode("ascii"),))
        if place.read_text(encoding="ascii").strip() != str(self._files.heights):
            raise WrongChain(f"the files in {self._files.directory} have other --heights: {place}")

    def _read(self) -> None:
        """Find where the export is."""
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
        """The blocks of a range; ``None`` where its two files do not belong together."""
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


@contextlib.contextmanager
def _away(directory: Path) -> Iterator[None]:
    """Errors of the system as ours."""
    try:
        yield
    except OSError as error:
        raise DatabaseAway(f"{directory}: {error.strerror or error}") from error


def opener(files: Files) -> Callable[[], ParquetFiles]:
    """What opens the directory again after trouble."""
    return lambda: ParquetFiles.open(files)
