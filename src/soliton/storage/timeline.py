"""Savepoints ("moments") of a database, which it can be moved back and forward to.

Marking a moment is free. From then on the values that writes replace are kept, and moving back
writes them. The values that moving back replaces are kept as well, so that a moment on an abandoned
branch can be reached again. Moments form a tree; the path between two leads over their last common
ancestor.

What lives here: the moments, and the records to write to reach one. What does not: writing
(``database``), the meaning of records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

MAX_RECORDS: Final = 2_000_000
"""Records kept for all moments together, half a gigabyte; the largest blocks have some 60,000."""

Items = dict[bytes, bytes | None]
Read = Callable[[bytes], bytes | None]


class _Moment:
    """``back`` holds the parent's values of the records that differ; ``forth`` holds this moment's,
    once it has been left for the parent.
    """

    __slots__ = ("back", "children", "forth", "names", "parent")

    def __init__(self, parent: _Moment | None, back: Items) -> None:
        self.parent = parent
        self.back = back
        self.forth: Items | None = None
        self.names = 1
        self.children = 0
        if parent is not None:
            parent.children += 1

    def ancestors(self) -> Iterator[_Moment]:
        """Yield this moment and its ancestors, newest first."""
        moment: _Moment | None = self
        while moment is not None:
            yield moment
            moment = moment.parent


class Timeline:
    """The moments of one database. ``lost`` is true if the limit was exceeded, so that all moments
    were dropped.
    """

    __slots__ = ("_current", "_moments", "_next", "_since", "_stored", "lost")

    def __init__(self) -> None:
        self._moments: dict[int, _Moment] = {}
        self._current: _Moment | None = None
        self._since: Items = {}
        self._next = 1
        self._stored = 0
        self.lost = False

    def __len__(self) -> int:
        return len(self._moments)

    def __contains__(self, number: int) -> bool:
        return number in self._moments

    @property
    def record_count(self) -> int:
        """The number of records that are kept."""
        return self._stored + len(self._since)

    def record(self, keys: Iterable[bytes], read: Read) -> None:
        """Keep the present values of keys that are about to be written."""
        if self._current is None:
            return
        since = self._since
        for key in keys:
            if key not in since:
                since[key] = read(key)
        if self.record_count > MAX_RECORDS:
            self.forget_all()
            self.lost = True

    def mark(self) -> int:
        """Mark the present moment and return its number, which is unique in this process."""
        here = self._current
        if here is None or self._since:
            self._stored += len(self._since)
            here = self._current = _Moment(here, self._since)
            self._since = {}
        else:
            here.names += 1
        number, self._next = self._next, self._next + 1
        self._moments[number] = here
        return number

    def path_to(self, number: int, read: Read) -> Items:
        """Return the records to write to reach a moment; raise ``KeyError`` if it is unknown.

        The caller calls ``moved_to`` after writing them.
        """
        target = self._moments[number]
        items = dict(self._since)
        common = self._common(target)
        at = self._current
        while at is not None and at is not common:
            if at.forth is None:
                at.forth = {key: items[key] if key in items else read(key) for key in at.back}
                self._stored += len(at.forth)
            items.update(at.back)
            at = at.parent
        down = []
        for each in target.ancestors():
            if each is common:
                break
            down.append(each)
        for each in reversed(down):
            # It has been left before, otherwise it would be an ancestor of the current moment.
            items.update(each.forth or {})
        return items

    def _common(self, target: _Moment) -> _Moment | None:
        mine = (
            {id(each) for each in self._current.ancestors()} if self._current is not None else set()
        )
        return next((each for each in target.ancestors() if id(each) in mine), None)

    def moved_to(self, number: int) -> None:
        """The database has been moved to this moment."""
        self._current = self._moments[number]
        self._since = {}

    def forget(self, number: int) -> None:
        """Drop a moment; records that other moments need are kept."""
        moment = self._moments.pop(number, None)
        if moment is None:
            return
        moment.names -= 1
        self._prune(moment)
        if not self._moments:
            self.forget_all()

    def _prune(self, moment: _Moment) -> None:
        while moment.names == 0 and moment.children == 0:
            parent = moment.parent
            if moment is self._current:
                if parent is None:
                    return
                # Later writes are now relative to its parent.
                self._stored -= len(moment.back)
                self._since = self._since | moment.back
                self._current = parent
            else:
                self._stored -= len(moment.back) + len(moment.forth or ())
            if parent is None:
                return
            parent.children -= 1
            moment = parent

    def forget_all(self) -> None:
        """Drop all moments; their numbers are not reused."""
        self._moments.clear()
        self._current, self._since, self._stored = None, {}, 0
