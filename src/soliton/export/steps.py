"""The position of an export and its next step: the records that sinks and the follower share.

What lives here: the records, and the protocol of sinks. What does not: choosing the next step
(``follower``), writing it (``database``, ``ndjson``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from soliton.export.sources import ChainBlock


class Stored(NamedTuple):
    """A row of blocks, for a key block or a microblock."""

    uid: int
    id: str
    height: int
    size: int
    """The number of the block's transactions up to here."""


class Position(msgspec.Struct):
    """A position: the rows of the last block, the ids of its transactions in order, and its key.
    Without rows, the export is empty.
    """

    last: list[Stored]
    ids: list[str]
    key: str | None

    @property
    def top(self) -> Stored | None:
        """The last row."""
        return self.last[-1] if self.last else None


class Step(msgspec.Struct, frozen=True):
    """A step, written atomically: go back to a row (``cut``), rename the block to another id, add
    what it has grown by (``grown``), or add ``blocks``.
    """

    cut: Stored | None = None
    renamed: str | None = None
    grown: ChainBlock | None = None
    blocks: Sequence[ChainBlock] = ()


class Sink(Protocol):
    """A destination of the export; after an exception it is opened again."""

    def position(self) -> Position:
        """Return the position."""

    def ids(self, top: int, count: int) -> list[Stored]:
        """Return the last rows of blocks up to a height, the highest first."""

    def write(self, step: Step, before: Position) -> Position:
        """Write a step, given the position ``before``, and return the new position."""

    def idle(self) -> None:
        """Called when there is no step to write."""

    def close(self) -> None:
        """Close the sink."""
