"""The journal: an ordered log of a matcher's commands.

Every change of an order book is a command, and a command takes effect once the journal has stored
it. The books are the result of applying the journal from its start or from a snapshot. So recovery,
a standby that keeps up, and an ordinary start are the same operation: following the journal.

What lives here: the protocol of both implementations, ``embedded`` (local files) and ``kafka`` (a
topic shared by several matchers). ``snapshots`` stores the engine's state at an offset. What does
not: the meaning of commands, which are bytes here (``soliton.matching.commands``).

Usage:

    while True:
        async for batch in journal.follow(engine.offset + 1):
            apply(batch)
        # This process leads now, and has applied all there is.
        serve()  # journal.append, then apply; until LeadershipLost
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple, Protocol

MAX_PAYLOAD_BYTES: Final = 64 * 1024
"""The maximum size of a command; an order with all its proofs takes some 2,000 bytes."""
MAX_AHEAD_MS: Final = 60_000
"""How far the last timestamp may be ahead of the clock for the next command to repeat it."""


def time_after(last: int, now: int) -> int:
    """The timestamp of the next command. It does not fall if the clock goes back a little; but one
    timestamp far in the future does not affect all later ones.
    """
    return now if last - now > MAX_AHEAD_MS else max(last, now)


class Position(NamedTuple):
    """The offset and the timestamp (milliseconds) of a command."""

    offset: int
    timestamp: int


class Record(NamedTuple):
    """A command in the journal. Offsets ascend, not always by one. Timestamps do not fall, except
    after a clock that was far ahead (``time_after``).
    """

    offset: int
    timestamp: int
    payload: bytes


class Journal(Protocol):
    """One ordered log of commands with one writer. Use from one event loop."""

    @property
    def first_offset(self) -> int:
        """The lowest readable offset; the next one if the journal is empty."""

    @property
    def last_offset(self) -> int:
        """The highest offset known to be in the journal, -1 if it is empty."""

    async def append(self, payloads: Sequence[bytes]) -> list[Position]:
        """Append commands in this order; returns once they are durable.

        Concurrent calls are stored and completed in the order of the calls. Cancelling a call does
        not remove its commands. Raises ``JournalUnavailable`` if none was stored and the call may
        be retried, and ``LeadershipLost`` if this process no longer leads: then the commands may or
        may not be in the journal, and ``follow`` has to be called again.
        """

    def records(self, from_offset: int) -> AsyncIterator[list[Record]]:
        """The commands from an offset to the current end, in batches.

        Raises ``JournalGap`` if ``from_offset`` is below the first or more than one above the last,
        ``JournalDamaged`` if a checksum is wrong.
        """

    def follow(self, from_offset: int) -> AsyncIterator[list[Record]]:
        """All commands from an offset on, in batches, including those that another process writes
        meanwhile. Ends when this process leads and all commands before its term were yielded.

        ``from_offset`` is 0 or one above a command that was read before. Raises as ``records``.
        """

    async def term_ended(self) -> None:
        """Wait until this process no longer leads."""

    async def confirm(self) -> None:
        """Wait until the stored commands survive a power failure, if the settings require that.
        Raises ``JournalProblem``.
        """

    async def truncate_before(self, offset: int) -> None:
        """Allow commands below an offset to be deleted; some of them may stay."""

    async def close(self) -> None:
        """Finish pending writes and close files and connections."""
