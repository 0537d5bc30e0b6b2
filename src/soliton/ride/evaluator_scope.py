"""Scopes: the names that are visible while a script is compiled or run.

What lives here: the chain of declarations, and lookup. What does not: the declarations of the
evaluators.

Declarations form a linked list, innermost first, as in the reference, which searches it linearly. A
script can have ten thousand declarations, so every ``SEGMENT``-th link here has an index of the
links below it. It does not contain itself: without reference cycles, the objects of a run are freed
with their last reference.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

D = TypeVar("D")

SEGMENT: Final = 64
Key = tuple[bool, str]
"""Whether it is a function, and its name: functions and values have separate namespaces."""


class Scope(Generic[D]):
    """A declaration and its ``outer`` scope."""

    __slots__ = ("_depth", "_index", "_jump", "declaration", "key", "outer")

    def __init__(self, key: Key, declaration: D, outer: Scope[D] | None) -> None:
        self.key = key
        self.declaration = declaration
        self.outer = outer
        self._depth: int = 0 if outer is None else outer._depth + 1
        self._index: dict[Key, Scope[D]] | None = None
        self._jump: Scope[D] | None = None

    def _segment(self) -> dict[Key, Scope[D]]:
        """Index the links below by key, to the end of the segment; inner ones take precedence."""
        index: dict[Key, Scope[D]] = {}
        link = self.outer
        for _ in range(SEGMENT - 1):
            assert link is not None
            index.setdefault(link.key, link)
            link = link.outer
        self._index, self._jump = index, link
        return index


def find(scope: Scope[D] | None, key: Key) -> Scope[D] | None:
    """Return the innermost declaration of a name."""
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
