"""The position of an export, derived from what was written: rows of blocks, the last one's ids.

What lives here: moving it forward and back. What does not: writing, and reading what was written
(the sinks).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from soliton.export.steps import Position, Stored

MAX_KEPT: Final = 20_000
"""Blocks kept below the last one: twice the depth of a rollback."""


class Trail:
    """The last blocks that were written."""

    def __init__(self) -> None:
        self.rows: list[Stored] = []
        self._ids: list[str] = []
        self._key: str | None = None

    @property
    def key(self) -> str | None:
        """The last block's key, ``None`` if it is not known."""
        return self._key

    def position(self) -> Position:
        """Return the position."""
        if not self.rows:
            return Position([], [], None)
        height = self.rows[-1].height
        last = [row for row in self.rows[-MAX_KEPT:] if row.height == height]
        return Position(last, list(self._ids), self._key)

    def ids(self, top: int, count: int) -> list[Stored]:
        """Return the last rows up to a height, the highest first."""
        found = (row for row in reversed(self.rows) if row.height <= top)
        return [row for row, _ in zip(found, range(count), strict=False)]

    def append(
        self, height: int, name: str, count: int, key: str | None, new: Sequence[str]
    ) -> None:
        """Add a block, or a further form of the last one with the ``new`` transactions."""
        if self.rows and self.rows[-1].height == height:
            self._ids += new
        else:
            self._squash()
            self._ids = list(new)
        self._key = key
        uid = 1 if not self.rows else self.rows[-1].uid + 1
        self.rows.append(Stored(uid, name, height, count))
        if len(self.rows) > 2 * MAX_KEPT:
            del self.rows[:MAX_KEPT]

    def back(self, name: str, count: int) -> None:
        """Go back to a row. Raises ``IndexError`` if it is not known."""
        while self.rows[-1].id != name or self.rows[-1].size > count:
            gone = self.rows.pop()
            if self.rows[-1].height != gone.height:
                # The content of the block below was not kept.
                self._ids, self._key = [], None
        self._ids = self._ids[:count]

    def _squash(self) -> None:
        """Keep only the last form of the last block."""
        while len(self.rows) > 1 and self.rows[-2].height == self.rows[-1].height:
            del self.rows[-2]
