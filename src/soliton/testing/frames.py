"""What is undone behind each test, module, class and session.

A frame is opened and closed around each of them, whether there is a chain yet or not: one that
comes later begins in all frames that are open.

What lives here: the frames, and the one kit of a process. What does not: when they are opened
(``plugin``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from soliton.testing.kit import Kit


class Frames:
    """Those of one process, around its kit."""

    def __init__(self) -> None:
        self.kit: Kit | None = None
        self.make: Callable[[], Kit] | None = None
        """Makes a kit when somebody first wants one."""
        self._open: list[Callable[[], None] | None] = []

    def need(self) -> Kit:
        """The kit; it is made when it is first needed."""
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
        """What happens here is undone afterwards, on a chain that can."""
        self._open.append(self._enter())
        try:
            yield
        finally:
            leave = self._open.pop()
            if leave is not None:
                leave()

    def close(self) -> None:
        """End the kit, if there is one."""
        kit, self.kit = self.kit, None
        self._open = [None for _ in self._open]
        if kit is not None:
            kit.close()


FRAMES = Frames()
"""Those of this process."""
