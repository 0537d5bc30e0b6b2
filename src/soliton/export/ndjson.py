"""The chain as a file with an object in each line, to be read by whatever reads lines.

A line is a block or what it has grown by (``append``), or says which of what came before no longer
counts (``rollback``). The file is its own position: when it is opened again, a line that was cut
off by a crash goes, the others say where to go on.

What lives here: lines, and finding the position in them. What does not: which step comes next
(``follower``).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from soliton.export.errors import AnotherExport, DatabaseAway, WrongChain
from soliton.export.sources import ChainBlock
from soliton.export.steps import Position, Step, Stored
from soliton.export.trail import Trail
from soliton.storage.files import sync_directory

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
_BEGINNING: Final = b'{"event":"'
"""Of each line."""


class NdjsonFile:
    """A file that is written."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        self._trail = Trail()

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
                sync_directory(path.parent)
        except BaseException:
            file.close()
            raise
        return made

    def close(self) -> None:
        """Let go of the file."""
        # What a full disk has not taken is made again: the last step has failed.
        with contextlib.suppress(OSError):
            self._file.close()

    def idle(self) -> None:
        """There is nothing to be made anew."""

    def position(self) -> Position:
        """Where the file is."""
        return self._trail.position()

    def ids(self, top: int, count: int) -> list[Stored]:
        """The last rows up to a height, the highest first."""
        return self._trail.ids(top, count)

    def write(self, step: Step, before: Position) -> Position:
        """Write the lines of a step; raises ``DatabaseAway``."""
        del before
        with _away(self._path):
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
        """Find the position, and take off a line that was not finished."""
        self._file.seek(0)
        end = 0
        for number, line in enumerate(self._file, 1):
            begins = number > 1 or _BEGINNING.startswith(line[: len(_BEGINNING)])
            if begins and not line.endswith(b"\n"):
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
        if line.event == "rollback":
            self._trail.back(line.id, line.count)
        else:
            names = [each.id for each in line.transactions]
            self._trail.append(line.height, line.id, line.count, line.key, names)


def step_lines(step: Step, trail: Trail) -> Iterator[dict[str, object]]:
    """What there is to be written for a step; each is to be followed before the next is made."""
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


@contextlib.contextmanager
def _away(path: Path) -> Iterator[None]:
    """Errors of the system as ours."""
    try:
        yield
    except OSError as error:
        raise DatabaseAway(f"{path}: {error.strerror}") from error


def opener(path: Path) -> Callable[[], NdjsonFile]:
    """What opens the file again after trouble."""
    return lambda: NdjsonFile.open(path)
