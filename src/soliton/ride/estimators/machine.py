"""The base of all estimators: traversal without recursion, and undoable changes.

What lives here: ``Walk``, which runs the steps of an estimator; ``Journal``, undoable changes of
dictionaries; the errors and the limits of work. What does not: costs.

An estimator handles each kind of node in a generator, which yields an expression to request its
cost, receives that cost, and returns its own. The generators are kept in a list, so trees may have
any depth. By their definition, the first two estimators and corner cases of the third take time
exponential in the size of a script. ``MAX_STEPS`` and ``MAX_STEPS_BEFORE`` limit it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final, TypeVar, cast

from soliton.ride.errors import RideError
from soliton.ride.expressions import Expression

MAX_STEPS: Final = 5_000_000
"""The limit of nodes that the third estimator visits, some three seconds: hundreds of times as many
as for the largest known dApps. The reference has no limit, and would run for hours.
"""
MAX_STEPS_BEFORE: Final = 50_000_000
"""The limit of nodes that the first two estimators visit. Some scripts of their time took several
million.
"""
MAX_DEPTH: Final = 200_000
"""The limit of nested nodes, some hundred megabytes. A script is too short for half of it, unless
redeclared names make functions or values refer to themselves; the reference would then not end.
"""
WATCHED_STEPS: Final = 1_024
"""``watch`` is called once per this many nodes."""

Steps = Generator[Expression, int, int]
"""The handler of a node: yields expressions, receives their costs, returns a cost."""

Item = TypeVar("Item")


class EstimationError(RideError):
    """The script cannot be estimated."""


class EstimationTooLong(EstimationError):
    """The estimation exceeds the limit of steps or of depth."""


class Walk:
    """The traversals of an estimation, which share the limit of steps."""

    __slots__ = ("_left", "_max_steps", "_open", "_watch")

    def __init__(
        self,
        open_node: Callable[[Expression], int | Steps],
        max_steps: int,
        watch: Callable[[], None] | None = None,
    ) -> None:
        """``open_node`` returns the cost of a leaf, or the steps of another node; ``watch`` may
        raise to cancel.
        """
        self._watch = watch
        self._open = open_node
        self._max_steps = max_steps
        self._left = max_steps

    def cost(self, expression: Expression) -> int:
        """Return the cost of an expression; raise ``EstimationError`` if there is none."""
        return self.finish(self._open(expression))

    def spend(self, steps: int) -> None:
        """Count work that is done elsewhere; raise ``EstimationTooLong`` beyond the limit."""
        self._left -= steps
        if self._left < 0:
            raise self._too_long()

    def _too_long(self) -> EstimationTooLong:
        return EstimationTooLong(f"Script estimation takes more than {self._max_steps} steps")

    def finish(self, outcome: int | Steps) -> int:
        """Run steps to the end and return the cost; raise ``EstimationError`` if there is none."""
        waiting: list[Steps] = []
        open_node = self._open
        left, watch = self._left, self._watch
        while True:
            try:
                if type(outcome) is int:
                    if not waiting:
                        self._left = left
                        return outcome
                    node = waiting[-1].send(outcome)
                else:
                    steps: Steps = outcome  # type: ignore[assignment]
                    waiting.append(steps)
                    if len(waiting) > MAX_DEPTH:
                        raise EstimationTooLong(f"Script estimation is over {MAX_DEPTH} deep")
                    node = next(steps)
            except StopIteration as stop:
                waiting.pop()
                outcome = stop.value
                continue
            left -= 1
            if left < 0:
                raise self._too_long()
            if watch is not None and left % WATCHED_STEPS == 0:
                watch()
            outcome = open_node(node)


class Journal:
    """A log of changes to dictionaries that can be undone and redone."""

    __slots__ = ("_changes",)

    def __init__(self) -> None:
        self._changes: list[tuple[dict[str, object], str, object]] = []

    def put(self, table: dict[str, Item], key: str, item: Item) -> None:
        """Set a key."""
        self._note(cast(dict[str, object], table), key)
        table[key] = item

    def remove(self, table: dict[str, Item], key: str) -> None:
        """Remove a key."""
        self._note(cast(dict[str, object], table), key)
        table.pop(key, None)

    def _note(self, table: dict[str, object], key: str) -> None:
        self._changes.append((table, key, table.get(key, _NOTHING)))

    def mark(self) -> int:
        """Return a mark for ``undo`` and ``cut``."""
        return len(self._changes)

    def undo(self, mark: int) -> None:
        """Undo all changes since a mark."""
        changes = self._changes
        while len(changes) > mark:
            table, key, old = changes.pop()
            if old is _NOTHING:
                table.pop(key, None)
            else:
                table[key] = old

    def cut(self, mark: int) -> list[tuple[dict[str, object], str, object]]:
        """Undo all changes since a mark, and return them for ``redo``."""
        changes = [(table, key, table.get(key, _NOTHING)) for table, key, _ in self._changes[mark:]]
        self.undo(mark)
        return changes

    def redo(self, changes: list[tuple[dict[str, object], str, object]]) -> None:
        """Redo changes that were cut."""
        for table, key, item in changes:
            self._note(table, key)
            if item is _NOTHING:
                table.pop(key, None)
            else:
                table[key] = item


_NOTHING: Final = object()
"""Marks a missing key."""


def header(function: int | str) -> str:
    """Return the reference's name of a function in messages."""
    return f"Native({function})" if isinstance(function, int) else f"User({function})"
