"""Names in scope, while a script is compiled or run.

What lives here: the chain of declarations and the search in it. What does not: what a declaration
is to the evaluators.

Declarations stand in a chain, the innermost first, as in the reference, whose search goes from one
to the next. A script can declare and name ten thousand things, so here every ``SEGMENT``-th link
has an index of the links below it. It is not in its index itself: nothing here is in a cycle, and
what a run has made goes with its last reference, without a search for cycles.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

D = TypeVar("D")

SEGMENT: Final = 64
Key = tuple[bool, str]
"""Whether it is a function, and its name: functions and values have names of their own."""


class Scope(Generic[D]):
    """One declaration and those that it can see, ``outer``."""

    __slots__ = ("_depth", "_index", "_jump", "declaration", "key", "outer")

    def __init__(self, key: Key, declaration: D, outer: Scope[D] | None) -> None:
        self.key = key
        self.declaration = declaration
        self.outer = outer
        self._depth: int = 0 if outer is None else outer._depth + 1
        self._index: dict[Key, Scope[D]] | None = None
        self._jump: Scope[D] | None = None

    def _segment(self) -> dict[Key, Scope[D]]:
        """The links below to the end of the segment, by key; the innermost of a name counts."""
        index: dict[Key, Scope[D]] = {}
        link = self.outer
        for _ in range(SEGMENT - 1):
            assert link is not None
            index.setdefault(link.key, link)
            link = link.outer
        self._index, self._jump = index, link
        return index


def find(scope: Scope[D] | None, key: Key) -> Scope[D] | None:
    """The innermost declaration of a name."""
    link = scope
    while link is not None:
        if link.key == key:
            return link
        if link._depth % SEGMENT == SEGMENT - 1:
            index = link._index
            if index is None:
                index = link._segment()
            found = index.get(key)
            if found is not None:
                return found
            link = link._jump
        else:
            link = link.outer
    return None
