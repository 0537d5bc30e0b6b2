"""What all estimators are built on: walking a tree without recursion, and taking changes back.

What lives here: ``Walk``, which runs the steps of an estimator; ``Journal``, the changes of
dictionaries that can be undone; the errors and the bound on work. What does not: any cost.

An estimator handles each kind of node in a generator: it yields an expression whenever it needs
the cost of one, is sent that cost, and returns its own. The generators wait in a list, so trees of
any depth can be walked. How expensive a walk can get is another matter: the first two estimators
and corners of the third need time that is exponential in the size of a script, by their
definition; ``MAX_STEPS`` and ``MAX_STEPS_BEFORE``
end such walks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final, TypeVar, cast

from soliton.ride.errors import RideError
from soliton.ride.expressions import Expression

MAX_STEPS: Final = 5_000_000
"""Nodes that the third estimator may visit, some three seconds: hundreds of times as many as for
the largest dApps known. The reference has no such bound, it would go on for hours.
"""
MAX_STEPS_BEFORE: Final = 50_000_000
"""Nodes that the first two estimators may visit; scripts of their time are known that took some
millions.
"""
MAX_DEPTH: Final = 200_000
"""Nodes that may be open at the same time, some hundred megabytes. The bytes of a script do not
suffice for half of them, unless functions or values come to mention themselves: by redeclared
names they can, and the reference would never end.
"""
WATCHED_STEPS: Final = 1_024
"""Whoever watches an estimation is asked so often whether it shall go on."""
MAX_LONG: Final = 2**63 - 1
MIN_LONG: Final = -(2**63)

Steps = Generator[Expression, int, int]
"""The handling of one node: yields expressions, is sent their costs, returns a cost."""

Key = TypeVar("Key")
Item = TypeVar("Item")


class EstimationError(RideError):
    """A script that cannot be estimated."""


class EstimationTooLong(EstimationError):
    """A script whose estimation would take too many steps, or lead too deep."""


class Walk:
    """The walks of one estimation: they share the bound on their steps."""

    __slots__ = ("_left", "_max_steps", "_open", "_watch")

    def __init__(
        self,
        open_node: Callable[[Expression], int | Steps],
        max_steps: int,
        watch: Callable[[], None] | None = None,
    ) -> None:
        """``open_node`` gives the cost of a simple node, or the steps that lead to it; ``watch``
        raises to stop the walk.
        """
        self._watch = watch
        self._open = open_node
        self._max_steps = max_steps
        self._left = max_steps

    def cost(self, expression: Expression) -> int:
        """The cost of an expression; raises ``EstimationError``."""
        return self.finish(self._open(expression))

    def spend(self, steps: int) -> None:
        """Count work that is done elsewhere; raises ``EstimationTooLong``."""
        self._left -= steps
        if self._left < 0:
            raise self._too_long()

    def _too_long(self) -> EstimationTooLong:
        return EstimationTooLong(f"Script estimation takes more than {self._max_steps} steps")

    def finish(self, outcome: int | Steps) -> int:
        """What steps lead to; raises ``EstimationError``."""
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
                    steps = cast(Steps, outcome)
                    waiting.append(steps)
                    if len(waiting) > MAX_DEPTH:
                        raise EstimationTooLong(f"Script estimation is over {MAX_DEPTH} deep")
                    node = next(steps)
            except StopIteration as stop:
                waiting.pop()
                outcome = cast(int, stop.value)
                continue
            left -= 1
            if left < 0:
                raise self._too_long()
            if watch is not None and left % WATCHED_STEPS == 0:
                watch()
            outcome = open_node(node)


class Journal:
    """Changes of dictionaries, in order, so that they can be undone and done again."""

    __slots__ = ("_changes",)

    def __init__(self) -> None:
        self._changes: list[tuple[dict[str, object], str, object]] = []

    def put(self, table: dict[str, Item], key: str, item: Item) -> None:
        """Change what a table has under a key."""
        self._note(cast(dict[str, object], table), key)
        table[key] = item

    def remove(self, table: dict[str, Item], key: str) -> None:
        """Take a key out of a table."""
        self._note(cast(dict[str, object], table), key)
        table.pop(key, None)

    def _note(self, table: dict[str, object], key: str) -> None:
        self._changes.append((table, key, table.get(key, _NOTHING)))

    def mark(self) -> int:
        """A place to go back to."""
        return len(self._changes)

    def undo(self, mark: int) -> None:
        """Take back all changes since a mark."""
        changes = self._changes
        while len(changes) > mark:
            table, key, old = changes.pop()
            if old is _NOTHING:
                table.pop(key, None)
            else:
                table[key] = old

    def cut(self, mark: int) -> list[tuple[dict[str, object], str, object]]:
        """Take back all changes since a mark, and give them for ``again``."""
        redo: list[tuple[dict[str, object], str, object]] = []
        for table, key, _old in self._changes[mark:]:
            redo.append((table, key, table.get(key, _NOTHING)))
        self.undo(mark)
        return redo

    def again(self, changes: list[tuple[dict[str, object], str, object]]) -> None:
        """Do changes again that were cut."""
        for table, key, item in changes:
            self._note(table, key)
            if item is _NOTHING:
                table.pop(key, None)
            else:
                table[key] = item


class _Nothing:
    """Stands for a key that a table does not have."""


_NOTHING: Final = _Nothing()


def wrapped(number: int) -> int:
    """A number as the 64-bit arithmetic of the reference leaves it, which does not notice
    overflows.
    """
    if MIN_LONG <= number <= MAX_LONG:
        return number
    return (number - MIN_LONG) % 2**64 + MIN_LONG


def header(function: int | str) -> str:
    """A function as the reference names it in messages."""
    return f"Native({function})" if isinstance(function, int) else f"User({function})"
