"""What can go wrong with the store on disk.

What lives here: typed problems that tell an operator what to do. What does not: what the data
means.
"""

from __future__ import annotations

from soliton.errors import EnvironmentProblem, InputError


class StorageProblem(EnvironmentProblem):
    """The disk or the database refuses: full, not writable, in use by another process, damaged."""


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
