"""Moments of a database to which it can be brought back, and forward again.

A moment costs nothing to remember: from then on the values that writes replace are kept, and going
back is writing them. What going back replaces is kept as well, so that a moment on a branch which
was left can be reached again. Moments form a tree; between two of them lies the way over the last
one that both came from.

What lives here: the moments, and what is to be written to reach one. What does not: writing
(``database``), what the records mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

MAX_KEPT: Final = 2_000_000
"""Records that are kept for all moments together: half a gigabyte. A block of the largest kind has
some 60,000.
"""

Items = dict[bytes, bytes | None]
Read = Callable[[bytes], bytes | None]


class _Moment:
    """``back`` has what the parent held where this one differs, ``forth`` the reverse once it was
    left for the parent.
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
        """Itself and those before it."""
        at: _Moment | None = self
        while at is not None:
            yield at
            at = at.parent


class Timeline:
    """The moments of one database. ``lost`` tells that there was more to keep than is allowed, so
    that all moments were forgotten.
    """

    __slots__ = ("_here", "_kept", "_moments", "_next", "_since", "lost")

    def __init__(self) -> None:
        self._moments: dict[int, _Moment] = {}
        self._here: _Moment | None = None
        self._since: Items = {}
        self._next = 1
        self._kept = 0
        self.lost = False

    def __len__(self) -> int:
        return len(self._moments)

    def __contains__(self, number: int) -> bool:
        return number in self._moments

    @property
    def kept(self) -> int:
        """How many records are kept."""
        return self._kept + len(self._since)

    def note(self, keys: Iterable[bytes], read: Read) -> None:
        """Keep what these keys hold: they are about to be written."""
        if self._here is None:
            return
        since = self._since
        for key in keys:
            if key not in since:
                since[key] = read(key)
        if self.kept > MAX_KEPT:
            self.forget_all()
            self.lost = True

    def mark(self) -> int:
        """Remember this moment: its number, which no other one gets in the life of the process."""
        here = self._here
        if here is None or self._since:
            self._kept += len(self._since)
            here = self._here = _Moment(here, self._since)
            self._since = {}
        else:
            here.names += 1
        number, self._next = self._next, self._next + 1
        self._moments[number] = here
        return number

    def way_to(self, number: int, read: Read) -> Items:
        """What to write to be at a moment; raises ``KeyError`` for one that nobody knows.

        ``arrived`` has to be told when it is written.
        """
        target = self._moments[number]
        way = dict(self._since)
        common = self._common(target)
        at = self._here
        while at is not None and at is not common:
            if at.forth is None:
                at.forth = {key: way[key] if key in way else read(key) for key in at.back}
                self._kept += len(at.forth)
            way.update(at.back)
            at = at.parent
        down = []
        for each in target.ancestors():
            if each is common:
                break
            down.append(each)
        for each in reversed(down):
            # It was left before, else it would be on the way here.
            way.update(each.forth or {})
        return way

    def _common(self, target: _Moment) -> _Moment | None:
        mine = {id(each) for each in self._here.ancestors()} if self._here is not None else set()
        return next((each for each in target.ancestors() if id(each) in mine), None)

    def arrived(self, number: int) -> None:
        """The database is at this moment now."""
        self._here = self._moments[number]
        self._since = {}

    def forget(self, number: int) -> None:
        """Let go of a moment; what others need of it stays."""
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
            if moment is self._here:
                if parent is None:
                    return
                # What has been written since then counts from the one before.
                self._kept -= len(moment.back)
                self._since = self._since | moment.back
                self._here = parent
            else:
                self._kept -= len(moment.back) + len(moment.forth or ())
            if parent is None:
                return
            parent.children -= 1
            moment = parent

    def forget_all(self) -> None:
        """Let go of all moments; their numbers are not given again."""
        self._moments.clear()
        self._here, self._since, self._kept = None, {}, 0
