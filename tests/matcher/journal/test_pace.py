"""Whether a disk is waited for where one is: by the writes that were, on a clock of the test's."""

from __future__ import annotations

import pytest

from soliton.matcher.journal.pace import (
    FIRST_PAUSE_SECONDS,
    LAST_PAUSE_SECONDS,
    QUICK_SECONDS,
    SLOW_WRITES,
    STALL_SECONDS,
    Pace,
)

QUICK, SLOW = QUICK_SECONDS / 2, QUICK_SECONDS * 2


class Disk:
    """A disk on which one write follows another as soon as it may be waited for."""

    def __init__(self) -> None:
        self.pace = Pace()
        self.now = 100.0

    def write(self, *times: float) -> None:
        for took in times:
            assert self.pace.is_quick(self.now)
            self.pace.note(self.now, self.now + took)
            self.now += took

    def wait(self) -> int:
        """For how long it now counts as slow, in whole seconds."""
        if self.pace.is_quick(self.now):
            return 0
        begun = self.now
        while not self.pace.is_quick(self.now):
            self.now += 0.25
        return round(self.now - begun)


@pytest.mark.parametrize(
    ("times", "pause"),
    [
        ((), 0),
        ((QUICK,) * 100, 0),
        ((SLOW,) * (SLOW_WRITES - 1), 0),
        ((SLOW,) * SLOW_WRITES, FIRST_PAUSE_SECONDS),
        ((*(SLOW,) * (SLOW_WRITES - 1), QUICK, SLOW), 0),
        ((QUICK, SLOW) * 100, 0),
        ((STALL_SECONDS * 0.9,), 0),
        ((STALL_SECONDS * 1.1,), FIRST_PAUSE_SECONDS),
    ],
)
def test_what_makes_a_disk_slow(times: tuple[float, ...], pause: float) -> None:
    disk = Disk()
    disk.write(*times)
    assert disk.wait() == pause


def test_a_disk_that_stays_slow_is_tried_less_and_less() -> None:
    disk, pauses = Disk(), []
    for _ in range(9):
        disk.write(*(SLOW,) * SLOW_WRITES)
        pauses.append(disk.wait())
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, LAST_PAUSE_SECONDS]


def test_one_that_is_quick_again_for_as_long_begins_anew() -> None:
    disk = Disk()
    for pause in (1, 2, 4):
        disk.write(*(SLOW,) * SLOW_WRITES)
        assert disk.wait() == pause
    disk.write(QUICK)
    disk.now += 2 * 4
    disk.write(QUICK, QUICK)
    disk.write(*(SLOW,) * SLOW_WRITES)
    assert disk.wait() == FIRST_PAUSE_SECONDS
