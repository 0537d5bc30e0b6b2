"""Errors of the journal.

What lives here: exceptions, distinguished by how the matcher handles them. What does not: the
errors that clients see (``soliton.matching.errors``).
"""

from __future__ import annotations

from soliton.errors import EnvironmentProblem, InputError


class JournalProblem(EnvironmentProblem):
    """A problem of the disk, the broker or the journal itself."""


class JournalUnavailable(JournalProblem):
    """Commands were not stored (for example for lack of space), nothing else changed, and a retry
    may succeed.
    """


class LeadershipLost(JournalProblem):
    """Another process leads now (appending is not allowed here), or the outcome of an attempt is
    unknown. Following the journal shows its content, and leads to the next term.
    ``nothing_stored`` is true if the commands were certainly never sent.
    """

    def __init__(self, message: str, *, nothing_stored: bool = False) -> None:
        super().__init__(message)
        self.nothing_stored = nothing_stored


class JournalInUse(JournalProblem):
    """Another process has the journal open."""


class JournalDamaged(JournalProblem):
    """A stored command cannot be read back: its checksum is wrong, or it is missing.

    ``offset`` is the first lost one.
    """

    def __init__(self, place: str, offset: int, reason: str) -> None:
        super().__init__(f"{place}: the journal is damaged at offset {offset}: {reason}")
        self.offset = offset


class JournalGap(JournalProblem):
    """The offset at which reading should start is outside the journal."""

    def __init__(self, wanted: int, first: int, last: int) -> None:
        super().__init__(
            f"the journal holds offsets {first} to {last}, and should be read from {wanted}: "
            "a snapshot and its journal belong together"
        )
        self.wanted = wanted
        self.first = first
        self.last = last


class WrongJournal(InputError):
    """The files or the topic belong to another matcher, network or version."""


class UnequalRules(WrongJournal):
    """The master has other trading rules than this matcher: the same commands would give different
    books.
    """
