"""The clock of a private chain, which can be set, moved and stopped.

What lives here: the clock. What does not: its users.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from soliton.controls.errors import ControlRefused
from soliton.node.node import system_clock

MAX_TIME_MS: Final = 2**53 - 1
"""In the year 287396; doubles cannot represent all later times."""
YEARS_MS: Final = 100 * 365 * 86_400_000
"""The drift of a frozen clock that clients may have."""


class ClockState(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """In milliseconds: the offset from the system's clock, the time of a frozen clock, and the time
    set for the next block.
    """

    offset: int = 0
    frozen_at: int | None = None
    next_block: int | None = None


class DevClock:
    """An adjustable clock of milliseconds since 1970."""

    __slots__ = ("_wall", "state")

    def __init__(self, wall: Callable[[], int] = system_clock) -> None:
        """``wall`` is the system's clock."""
        self._wall = wall
        self.state = ClockState()

    def __call__(self) -> int:
        state = self.state
        if state.next_block is not None:
            return state.next_block
        return self._wall() + state.offset if state.frozen_at is None else state.frozen_at

    @property
    def drift(self) -> int:
        """The difference to the system's clock, which clients use."""
        state = self.state
        if state.frozen_at is not None:
            return YEARS_MS
        ahead = 0 if state.next_block is None else state.next_block - self._wall()
        return max(abs(state.offset), abs(ahead))

    def set(self, time: int) -> None:
        """Set the time; raises ``ControlRefused``."""
        self._set(checked_time(time))

    def _set(self, time: int) -> None:
        if self.state.frozen_at is not None:
            self.state = ClockState(frozen_at=time)
        else:
            self.state = ClockState(offset=time - self._wall())

    def checked(self, state: ClockState) -> ClockState:
        """Validate the state of another clock; raises ``ControlRefused``."""
        for time in (state.frozen_at, state.next_block, self._wall() + state.offset):
            if time is not None:
                checked_time(time)
        return state

    def travel(self, milliseconds: int) -> None:
        """Move the clock forward; raises ``ControlRefused``."""
        if milliseconds < 0:
            raise ControlRefused(f"{milliseconds} ms: time goes forward; set the clock instead")
        self.set(self() + milliseconds)

    def freeze(self) -> None:
        """Stop the clock."""
        self.state = ClockState(frozen_at=self())

    def unfreeze(self) -> None:
        """Continue from the time of the frozen clock."""
        if self.state.frozen_at is not None:
            self.state = ClockState(offset=self.state.frozen_at - self._wall())

    def set_next_block(self, time: int) -> None:
        """Set the time of the next block; the clock continues from it."""
        self.state = msgspec.structs.replace(self.state, next_block=checked_time(time))

    def block_made(self, time: int) -> None:
        """Advance the clock to the time of a new block."""
        state = self.state
        if state.next_block is not None:
            self.state = msgspec.structs.replace(state, next_block=None)
        elif self() >= time:
            return
        # Unchecked, because a listener must not reject a block, even beyond MAX_TIME_MS.
        self._set(time)


def checked_time(time: int) -> int:
    """Validate a time; raises ``ControlRefused``."""
    if not 0 <= time <= MAX_TIME_MS:
        raise ControlRefused(f"a time of {time} ms: 0 to {MAX_TIME_MS} are allowed")
    return time
