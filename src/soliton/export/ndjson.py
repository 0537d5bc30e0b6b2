"""The chain as a file with an object in each line, to be read by whatever reads lines.

A line is a block or what it has grown by (``append``), or says which of what came before no longer
counts (``rollback``). The file is its own position: when it is opened again, a line that was cut
off by a crash goes, the others say where to go on.

What lives here: lines, and finding the position in them. What does not: which step comes next
(``follower``).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from soliton.export.errors import AnotherExport, DatabaseAway, WrongChain
from soliton.export.sources import ChainBlock
from soliton.export.steps import Position, Step, Stored

MAX_KEPT: Final = 20_000
"""Blocks that are known below the last one: twice what a node can take off."""

encode_json = msgspec.json.Encoder().encode


class _Named(msgspec.Struct):
    id: str


class _Line(msgspec.Struct):
    """What the position needs of a line."""

    event: str
    height: int
    id: str
    count: int
    key: str | None = None
    transactions: list[_Named] = []


_decode: Final = msgspec.json.Decoder(_Line).decode


class NdjsonFile:
    """A file that is written."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        self._rows: list[Stored] = []
        self._ids: list[str] = []
        self._key: str | None = None

    @classmethod
    def open(cls, path: Path) -> NdjsonFile:
        """Open a file, or make one; raises ``DatabaseAway``, ``AnotherExport`` or ``WrongChain``
        for a file that holds something else.
        """
        with _away(path):
            file = path.open("a+b")
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise AnotherExport(f"another export writes to {path}") from error
            made = cls(file, path)
            with _away(path):
                made._read()
        except BaseException:
            file.close()
            raise
        return made

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def idle(self) -> None:
        """There is nothing to be made anew."""

    def position(self) -> Position:
        """Where the file is."""
        if not self._rows:
            return Position([], [], None)
        height = self._rows[-1].height
        return Position(
            [row for row in self._rows[-MAX_KEPT:] if row.height == height],
            list(self._ids),
            self._key,
        )

    def ids(self, top: int, count: int) -> list[Stored]:
        """The last rows up to a height, the highest first."""
        found = (row for row in reversed(self._rows) if row.height <= top)
        return [row for row, _ in zip(found, range(count), strict=False)]

    def write(self, step: Step, before: Position) -> Position:
        """Write the lines of a step; raises ``DatabaseAway``."""
        del before
        with _away(self._path):
            if step.cut is not None:
                cut = step.cut
                line = {"event": "rollback", "height": cut.height, "id": cut.id}
                self._put(line | {"count": cut.size})
            if step.renamed is not None:
                top = self._rows[-1]
                line = {"event": "append", "height": top.height, "id": step.renamed}
                self._put(line | {"count": top.size, "key": self._key, "transactions": []})
            if step.grown is not None:
                self._put(_block_line(step.grown, self._rows[-1].size))
            for block in step.blocks:
                self._put(_block_line(block, 0))
            self._file.flush()
            os.fsync(self._file.fileno())
        return self.position()

    # --- lines ------------------------------------------------------------------------------------

    def _put(self, line: dict[str, object]) -> None:
        encoded = encode_json(line)
        self._file.write(encoded + b"\n")
        self._take(_decode(encoded))

    def _read(self) -> None:
        """Find the position, and take off a line that was not finished."""
        self._file.seek(0)
        end = 0
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                break
            try:
                self._take(_decode(line))
            except (msgspec.DecodeError, IndexError) as error:
                raise WrongChain(f"{self._path}:{number} is no line of an export") from error
            end += len(line)
        self._file.seek(end)
        self._file.truncate()

    def _take(self, line: _Line) -> None:
        """Move on with a line."""
        names = [each.id for each in line.transactions]
        if line.event == "rollback":
            while self._rows[-1].id != line.id:
                gone = self._rows.pop()
                if self._rows[-1].height != gone.height:
                    # What the block below held is not kept.
                    self._ids, self._key = [], None
            self._ids = self._ids[: line.count]
            return
        top = self._rows[-1] if self._rows else None
        if top is not None and top.height == line.height:
            self._ids += names
        else:
            self._squash()
            self._ids = names
        self._key = line.key
        uid = 1 if not self._rows else self._rows[-1].uid + 1
        self._rows.append(Stored(uid, line.id, line.height, line.count))
        if len(self._rows) > 2 * MAX_KEPT:
            del self._rows[:MAX_KEPT]

    def _squash(self) -> None:
        """The last block has come to its end: only its last form counts."""
        while len(self._rows) > 1 and self._rows[-2].height == self._rows[-1].height:
            del self._rows[-2]


def _block_line(block: ChainBlock, first: int) -> dict[str, object]:
    return {
        "event": "append",
        "height": block.height,
        "id": block.id,
        "reference": block.reference,
        "timestamp": block.timestamp,
        "key": block.key,
        "count": len(block.transactions),
        "transactions": [each.members for each in block.transactions[first:]],
    }


@contextmanager
def _away(path: Path) -> Iterator[None]:
    """Errors of the system as ours."""
    try:
        yield
    except OSError as error:
        raise DatabaseAway(f"{path}: {error.strerror}") from error


def opener(path: Path) -> Callable[[], NdjsonFile]:
    """What opens the file again after trouble."""
    return lambda: NdjsonFile.open(path)
