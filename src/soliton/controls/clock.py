"""The clock of a private chain: it can be set, moved and stopped.

What lives here: the clock. What does not: who looks at it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from soliton.controls.errors import ControlRefused
from soliton.node.node import system_clock

MAX_TIME_MS: Final = 2**53 - 1
"""In the year 287396; clients that count in doubles know no later one."""
YEARS_MS: Final = 100 * 365 * 86_400_000
"""How far from the machine's time transactions may be where the clock stands still."""


class ClockState(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Milliseconds: how far the clock is ahead of the machine's, at what time it stands still, and
    what the next block's time is to be.
    """

    offset: int = 0
    frozen_at: int | None = None
    next_block: int | None = None


class DevClock:
    """Milliseconds since 1970, as somebody wants them to be."""

    __slots__ = ("_wall", "state")

    def __init__(self, wall: Callable[[], int] = system_clock) -> None:
        """``wall`` is the clock of the machine."""
        self._wall = wall
        self.state = ClockState()

    def __call__(self) -> int:
        state = self.state
        if state.next_block is not None:
            return state.next_block
        return self._wall() + state.offset if state.frozen_at is None else state.frozen_at

    @property
    def drift(self) -> int:
        """How far times of clients may be from this one: theirs go on as the machine's does."""
        state = self.state
        if state.frozen_at is not None:
            return YEARS_MS
        ahead = 0 if state.next_block is None else state.next_block - self._wall()
        return max(abs(state.offset), abs(ahead))

    def set(self, time: int) -> None:
        """Let it be this time now; raises ``ControlRefused``."""
        self._be(checked_time(time))

    def _be(self, time: int) -> None:
        if self.state.frozen_at is not None:
            self.state = ClockState(frozen_at=time)
        else:
            self.state = ClockState(offset=time - self._wall())

    def checked(self, state: ClockState) -> ClockState:
        """How somebody else's clock went; raises ``ControlRefused`` if this one cannot go so."""
        for time in (state.frozen_at, state.next_block, self._wall() + state.offset):
            if time is not None:
                checked_time(time)
        return state

    def travel(self, milliseconds: int) -> None:
        """Let so much time pass at once; raises ``ControlRefused``."""
        if milliseconds < 0:
            raise ControlRefused(f"{milliseconds} ms: time goes forward; set the clock instead")
        self.set(self() + milliseconds)

    def freeze(self) -> None:
        """Stand still."""
        self.state = ClockState(frozen_at=self())

    def go_on(self) -> None:
        """Go on from where it stands."""
        if self.state.frozen_at is not None:
            self.state = ClockState(offset=self.state.frozen_at - self._wall())

    def set_next_block(self, time: int) -> None:
        """Let the next block have this time, and time go on from there."""
        self.state = msgspec.structs.replace(self.state, next_block=checked_time(time))

    def block_made(self, time: int) -> None:
        """A block has this time: nothing comes before it any more."""
        state = self.state
        if state.next_block is not None:
            self.state = msgspec.structs.replace(state, next_block=None)
        elif self() >= time:
            return
        # Whoever hears of blocks refuses none, also not one that is later than clocks are set to.
        self._be(time)


def checked_time(time: int) -> int:
    """A time that a clock can have; raises ``ControlRefused`` for others."""
    if not 0 <= time <= MAX_TIME_MS:
        raise ControlRefused(f"a time of {time} ms: 0 to {MAX_TIME_MS} are allowed")
    return time
