"""What can go wrong with the store on disk.

What lives here: typed problems that tell an operator what to do. What does not: what the data
means, and telling the database's own errors apart (``environment``).
"""

from __future__ import annotations

from soliton.errors import EnvironmentProblem, InputError


class StorageProblem(EnvironmentProblem):
    """The disk or the database refuses: full, not writable, in use by another process, damaged."""


class StoreFull(StorageProblem):
    """There is no space left for what is to be written; what was written before is all there."""


class StoreBusy(StorageProblem):
    """Too many read the store at the same time; one more may a moment later."""


class DamagedStore(StorageProblem):
    """What is on the disk is not what was written: cut, overwritten, or records are missing."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the store is damaged: {what}; {WHAT_TO_DO}")
        self.what = what


class BelowProblem(StorageProblem):
    """What the store stands on - the state of another node - cannot be read now, or is none."""


class NotBelow(InputError):
    """What the store stands on has this, or had it, and cannot say so."""


class WrongStore(InputError):
    """A directory that holds something else: another network, or a layout that this version cannot
    read.
    """


class StoreInUse(StorageProblem):
    """Another process is writing to the store."""


class RollbackTooDeep(InputError):
    """A height below the lowest one for which undo records are kept."""

    def __init__(self, height: int, lowest: int) -> None:
        super().__init__(f"cannot roll back to height {height}: the lowest possible is {lowest}")
        self.height = height
        self.lowest = lowest


WHAT_TO_DO = (
    "`soliton verify` says where; move its directory away and import the chain anew, or copy the "
    "directory from a backup"
)
"""The end of every message about damage."""
