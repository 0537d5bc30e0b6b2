"""Some thousand sequences of made-up events; more of them with the module beside."""

from __future__ import annotations

from tests.amounts import times
from tests.fuzzing.sync_events import MACHINES, run


def test_made_up_events_break_no_machine() -> None:
    reached = run(times(2_000, 50_000), seed=3)
    assert min(reached[name] for name in MACHINES) > 100
