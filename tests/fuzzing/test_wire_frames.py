"""Some thousand damaged handshakes and frames; more of them with the module beside."""

from __future__ import annotations

from tests.fuzzing.wire_frames import run


def test_damaged_handshakes_and_frames_are_faults_and_nothing_else() -> None:
    counts = run(8_000, seed=3)
    assert sum(counts.values()) == 8_000
    assert min(counts[kind] for kind in ("frame fault", "frame said", "handshake fault")) > 100
