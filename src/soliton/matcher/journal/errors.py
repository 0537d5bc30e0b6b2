"""What can go wrong with a journal.

What lives here: typed problems, told apart by what the matcher has to do about them. What does
not: the refusals that its clients see (``soliton.matching.errors``).
"""

from __future__ import annotations

from soliton.errors import EnvironmentProblem, InputError


class JournalProblem(EnvironmentProblem):
    """The disk, the broker or the journal itself is in trouble."""


class JournalUnavailable(JournalProblem):
    """Commands were not stored (no space, say), nothing else has changed, and later attempts may
    succeed.
    """


class LeadershipLost(JournalProblem):
    """Another process leads now (appending is not allowed here), or the outcome of an attempt
    is unknown. Following the journal tells what is in it, and leads to the next term.
    ``nothing_stored`` says that it is known, and what was to be appended never went out.
    """

    def __init__(self, message: str, *, nothing_stored: bool = False) -> None:
        super().__init__(message)
        self.nothing_stored = nothing_stored


class JournalInUse(JournalProblem):
    """Another process has the journal open."""


class JournalDamaged(JournalProblem):
    """A command that was stored cannot be read back: its checksum is wrong, or it is missing.

    ``offset`` is the first one that is lost.
    """

    def __init__(self, place: str, offset: int, reason: str) -> None:
        super().__init__(f"{place}: the journal is damaged at offset {offset}: {reason}")
        self.offset = offset


class JournalGap(JournalProblem):
    """The journal does not reach back, or not on, to where reading should start."""

    def __init__(self, wanted: int, first: int, last: int) -> None:
        super().__init__(
            f"the journal holds offsets {first} to {last}, and should be read from {wanted}: "
            "a snapshot and its journal belong together"
        )
        self.wanted = wanted
        self.first = first
        self.last = last


class WrongJournal(InputError):
    """Files or a topic of something else: another matcher, another network, another version."""


class UnequalRules(WrongJournal):
    """The matcher that leads has other rules of trading than this one: both would make different
    books of the same commands.
    """
