"""The journal: the commands of a matcher in the one order in which they happened.

Everything that changes an order book is a command, and a command happens when the journal has it.
The books are what comes out of applying the journal from its start, or from a snapshot on; so
recovery, a standby that keeps up, and the ordinary start are the same thing: following the journal.

What lives here: the protocol that both forms have. ``embedded`` keeps files of its own, ``kafka``
keeps a topic that several matchers share, ``snapshots`` keeps what the engine looked like at an
offset. What does not: what a command is (bytes here; ``soliton.matching.commands``).

How a matcher uses it, whichever form it has:

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
"""The longest command; an order with all its proofs takes some 2,000 bytes."""
MAX_AHEAD_MS: Final = 60_000
"""How far the last command may be ahead of the clock for the next one to bear the same time."""


def time_after(last: int, now: int) -> int:
    """The time of the next command. A clock that goes back a little is waited for; one command that
    was stamped far ahead does not decide about all that come after it.
    """
    return now if last - now > MAX_AHEAD_MS else max(last, now)


class Position(NamedTuple):
    """Where a command stands: its offset, and the time in milliseconds at which it happened."""

    offset: int
    timestamp: int


class Record(NamedTuple):
    """A command in the journal. Offsets grow from record to record, not always by one. Timestamps
    do not fall, but where a clock was found to have been ahead (``time_after``).
    """

    offset: int
    timestamp: int
    payload: bytes


class Journal(Protocol):
    """One ordered log of commands with one writer. Use from one event loop."""

    @property
    def first_offset(self) -> int:
        """The lowest offset that can still be read; of an empty journal, the next one."""
        ...

    @property
    def last_offset(self) -> int:
        """The highest offset known to be in the journal, -1 before the first."""
        ...

    @property
    def leading(self) -> bool:
        """Whether this process may append."""
        ...

    async def append(self, payloads: Sequence[bytes]) -> list[Position]:
        """Write commands in this order; returns when they cannot be lost.

        Several calls may be under way; they are stored and answered in the order of the calls.
        Cancelling a call does not take its commands back. Raises ``JournalUnavailable`` when none
        of them was stored and the call may be repeated, and ``LeadershipLost`` when this process
        no longer leads: then the commands may or may not be in the journal, and ``follow`` tells.
        """
        ...

    def records(
        self, from_offset: int, to_offset: int | None = None
    ) -> AsyncIterator[list[Record]]:
        """The commands from an offset up to another, included, or to the last one of this moment;
        in batches.

        Raises ``JournalGap`` when ``from_offset`` is below the first or more than one above the
        last, ``JournalDamaged`` where a checksum is wrong.
        """
        ...

    def follow(self, from_offset: int) -> AsyncIterator[list[Record]]:
        """All commands from an offset on, in batches, also those that another process writes
        meanwhile. Ends when this process leads and all commands before its term were given out.

        ``from_offset`` is 0 or one above a command that was read before. Raises as ``records``.
        """
        ...

    async def term_ended(self) -> None:
        """Returns when this process no longer leads (never, while it does)."""
        ...

    async def confirm(self) -> None:
        """Return when what was stored survives a power failure, too, unless settings do not
        ask for that. Raises ``JournalProblem``.
        """
        ...

    async def truncate_before(self, offset: int) -> None:
        """Allow commands below an offset to be forgotten; some of them may stay."""
        ...

    async def close(self) -> None:
        """Finish what is being written and let go of files and connections."""
        ...
