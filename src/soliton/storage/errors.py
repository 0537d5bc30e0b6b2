"""Errors of the store on disk.

What lives here: error types with messages for the operator. What does not: translating the
database's own errors (``environment``).
"""

from __future__ import annotations

from soliton.errors import EnvironmentProblem, InputError


class StorageProblem(EnvironmentProblem):
    """The disk or the database fails: full, not writable, in use by another process, damaged."""


class StoreFull(StorageProblem):
    """No space is left on the disk; what was written before is intact."""


class StoreBusy(StorageProblem):
    """Too many concurrent readers; retry later."""


class DamagedStore(StorageProblem):
    """The content of the disk is corrupt: truncated, overwritten, or with missing records."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the store is damaged: {what}; {REPAIR_HINT}")
        self.what = what


class NotKept(StorageProblem):
    """The store has deleted this record, or never wrote it: its mode does not keep it. The
    operator may choose another one; whoever has asked for it is not to blame.
    """

    def __init__(self, what: str, has: str, setting: str) -> None:
        """``has`` says what the store has of this kind, if anything; ``setting`` keeps it."""
        have = f" ({has})" if has else ""
        super().__init__(f"not kept here: {what}{have}; a node with {setting} has it")
        self.setting = setting


class BelowProblem(StorageProblem):
    """The base layer, which is the state of another node, is unavailable or unusable."""


class NotBelow(InputError):
    """The base layer cannot provide this record, although the chain has or had it."""


class WrongStore(InputError):
    """The directory holds another network, or a layout that this version cannot read."""


class WrongMode(InputError):
    """The settings ask for records that the store has deleted."""


class StoreInUse(StorageProblem):
    """Another process is writing to the store."""


class RollbackTooDeep(InputError):
    """The height is below the lowest one for which undo records are kept."""

    def __init__(self, height: int, lowest: int) -> None:
        super().__init__(f"cannot roll back to height {height}: the lowest possible is {lowest}")
        self.height = height
        self.lowest = lowest


REPAIR_HINT = (
    "`soliton verify` says where; move its directory away and import the chain anew, or copy the "
    "directory from a backup"
)
"""The end of every message about damage."""
