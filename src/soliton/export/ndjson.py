"""The chain as a file with a JSON object in each line.

A line is a block or what it has grown by (``append``), or cancels earlier lines (``rollback``). The
file is its own position: on opening, an incomplete last line is removed, and the others determine
where to resume.

What lives here: lines, and finding the position in them. What does not: choosing the next step
(``follower``).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from soliton.export.errors import AnotherExport, WrongChain, system_errors
from soliton.export.sources import ChainBlock
from soliton.export.steps import Position, Step, Stored
from soliton.export.trail import Trail
from soliton.storage.files import sync_directory

encode_json = msgspec.json.Encoder().encode


class _Named(msgspec.Struct):
    id: str


class _Line(msgspec.Struct):
    """The members of a line that determine the position."""

    event: str
    height: int
    id: str
    count: int
    key: str | None = None
    transactions: list[_Named] = []


_decode: Final = msgspec.json.Decoder(_Line).decode
_BEGINNING: Final = b'{"event":"'
"""The beginning of each line."""


class NdjsonFile:
    """An open file, as a sink."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        self._trail = Trail()

    @classmethod
    def open(cls, path: Path) -> NdjsonFile:
        """Open or create a file; raises ``DatabaseAway``, ``AnotherExport``, or ``WrongChain`` for
        a file that is not an export.
        """
        with system_errors(path):
            if path.exists() and not path.is_file():
                raise WrongChain(f"{path} is no regular file, which an export reads to go on")
            file = path.open("a+b")
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise AnotherExport(f"another export writes to {path}") from error
            made = cls(file, path)
            with system_errors(path):
                made._read()
                sync_directory(path.parent)
        except BaseException:
            file.close()
            raise
        return made

    def close(self) -> None:
        """Close the file."""
        # Data that a full disk has refused belongs to a failed step, which is repeated.
        with contextlib.suppress(OSError):
            self._file.close()

    def idle(self) -> None:
        """Nothing to do."""

    def position(self) -> Position:
        """See ``Sink``."""
        return self._trail.position()

    def ids(self, top: int, count: int) -> list[Stored]:
        """See ``Sink``."""
        return self._trail.ids(top, count)

    def write(self, step: Step, before: Position) -> Position:
        """Write the lines of a step; raises ``DatabaseAway``."""
        del before
        with system_errors(self._path):
            for line in step_lines(step, self._trail):
                self._put(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        return self.position()

    # --- lines ------------------------------------------------------------------------------------

    def _put(self, line: dict[str, object]) -> None:
        encoded = encode_json(line)
        self._file.write(encoded + b"\n")
        self._take(_decode(encoded))

    def _read(self) -> None:
        """Find the position, and remove an incomplete last line."""
        self._file.seek(0)
        end = 0
        for number, line in enumerate(self._file, 1):
            begins = number > 1 or _BEGINNING.startswith(line[: len(_BEGINNING)])
            if begins and not line.endswith(b"\n"):
                break
            try:
                self._take(_decode(line))
            except (msgspec.DecodeError, IndexError) as error:
                raise WrongChain(f"{self._path}:{number} is not a line of an export") from error
            end += len(line)
        self._file.seek(end)
        self._file.truncate()

    def _take(self, line: _Line) -> None:
        """Move the position past a line."""
        if line.event == "rollback":
            self._trail.back(line.id, line.count)
        else:
            names = [each.id for each in line.transactions]
            self._trail.append(line.height, line.id, line.count, line.key, names)


def step_lines(step: Step, trail: Trail) -> Iterator[dict[str, object]]:
    """Yield the lines of a step; the trail has to follow each line before the next is requested."""
    if step.cut is not None:
        cut = step.cut
        line = {"event": "rollback", "height": cut.height, "id": cut.id}
        yield line | {"count": cut.size}
    if step.renamed is not None:
        top = trail.rows[-1]
        line = {"event": "append", "height": top.height, "id": step.renamed}
        yield line | {"count": top.size, "key": trail.key, "transactions": []}
    if step.grown is not None:
        yield _block_line(step.grown, trail.rows[-1].size)
    for block in step.blocks:
        yield _block_line(block, 0)


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
