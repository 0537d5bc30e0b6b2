"""Isolation: the chain is reverted after each test, module, class and session.

A frame is opened and closed around each of them, even if there is no chain yet. A chain that is
created later enters all open frames.

What lives here: the frames, and the one kit of a process. What does not: opening them (``plugin``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from soliton.testing.kit import Kit


class Frames:
    """The frames of one process, around its kit."""

    def __init__(self) -> None:
        self.kit: Kit | None = None
        self.make: Callable[[], Kit] | None = None
        """Creates the kit."""
        self._open: list[Callable[[], None] | None] = []

    def need(self) -> Kit:
        """The kit, created at the first call."""
        if self.kit is None:
            if self.make is None:
                raise RuntimeError("there is no test kit outside of pytest's run")
            self.kit = self.make()
            self._open = [self._enter() for _ in self._open]
        return self.kit

    def _enter(self) -> Callable[[], None] | None:
        return None if self.kit is None else self.kit.enter()

    @contextmanager
    def frame(self) -> Iterator[None]:
        """Revert the chain at the end of the ``with`` block, if it has controls."""
        self._open.append(self._enter())
        try:
            yield
        finally:
            leave = self._open.pop()
            if leave is not None:
                leave()

    def close(self) -> None:
        """Close the kit, if there is one."""
        kit, self.kit = self.kit, None
        self._open = [None for _ in self._open]
        if kit is not None:
            kit.close()


FRAMES = Frames()
"""The frames of this process."""
