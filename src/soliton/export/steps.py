"""Where an export is, and what it writes next: the words that sinks and the follower share.

What lives here: the records, and what a sink is. What does not: which step comes next
(``follower``), writing it (``database``, ``ndjson``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from soliton.export.sources import ChainBlock


class Stored(NamedTuple):
    """A row of blocks: one of a key block has the block's time, one of a microblock none."""

    uid: int
    id: str
    height: int
    size: int
    """How many transactions the block has up to here."""


class Position(msgspec.Struct):
    """Where the database is: the rows of its last block, the ids of that one's transactions in
    their order, and what does not change while it grows. Without rows it is empty.
    """

    last: list[Stored]
    ids: list[str]
    key: str | None

    @property
    def top(self) -> Stored | None:
        """The last row."""
        return self.last[-1] if self.last else None


class Step(msgspec.Struct, frozen=True):
    """What is written at once: go back to a row (``cut``), give it another id where the block has
    one, let it grow by ``grown``, or put ``blocks`` on top.
    """

    cut: Stored | None = None
    renamed: str | None = None
    grown: ChainBlock | None = None
    blocks: Sequence[ChainBlock] = ()


class Sink(Protocol):
    """What follows the chain; one that raises is opened anew."""

    def position(self) -> Position:
        """Where it is."""

    def ids(self, top: int, count: int) -> list[Stored]:
        """The last rows of blocks up to a height, the highest first."""

    def write(self, step: Step, before: Position) -> Position:
        """Carry out a step on what is where it was ``before``; where it is then."""

    def idle(self) -> None:
        """There was no step to be made."""

    def close(self) -> None:
        """Let go of it."""
