"""Counts that processes keep together."""

from __future__ import annotations

from pathlib import Path

import pytest

from soliton.web.shared_counters import (
    CLIENT_CELLS,
    CONNECTIONS,
    IDLE,
    LONG,
    SharedCounters,
    join,
    share,
)


@pytest.fixture
def three(tmp_path: Path) -> list[SharedCounters]:
    path = tmp_path / "counters"
    return [share(path, 3), join(path, 3, 1), join(path, 3, 2)]


def test_counts_are_sums_over_all(three: list[SharedCounters]) -> None:
    for times, counters in enumerate(three):
        for _ in range(times + 1):
            counters.counts(LONG).add("a")
    three[0].counts(LONG).add(None)
    three[2].counts(IDLE).add("a")
    for counters in three:
        counts = counters.counts(LONG)
        assert (counts.total(), counts.of("a"), counts.of("b")) == (7, 6, 0)
        assert counters.counts(IDLE).total() == 1 and counters.counts(CONNECTIONS).total() == 0
    three[0].counts(LONG).add("a", -1)
    assert three[1].counts(LONG).of("a") == 5


def test_numbers_are_sums_over_all(three: list[SharedCounters]) -> None:
    for counters in three:
        counters.own[7] += 2
        counters.own[8] += 1
    assert [counters.sum(7) for counters in three] == [6] * 3
    three[0].reset_slot(2, (8,))
    assert (three[1].sum(7), three[1].sum(8)) == (6, 2)


def test_what_an_ended_process_had_open_is_struck_out(three: list[SharedCounters]) -> None:
    for counters in three:
        for kind in (LONG, IDLE, CONNECTIONS):
            counters.counts(kind).add("a")
    three[0].reset_slot(1, ())
    for kind in (LONG, IDLE, CONNECTIONS):
        counts = three[2].counts(kind)
        assert (counts.total(), counts.of("a")) == (2, 2)


def test_all_know_a_client_by_the_same_cell(three: list[SharedCounters]) -> None:
    names = [f"10.0.0.{number}" for number in range(100)]
    cells = [[counters.cell(name) for name in names] for counters in three]
    assert cells[0] == cells[1] == cells[2] and max(cells[0]) < CLIENT_CELLS
    # Nobody can tell beforehand with whom a client shares a cell.
    assert [SharedCounters().cell(name) for name in names] != cells[0]
    three[1].times[cells[1][0]] = 3.5
    assert three[2].times[cells[2][0]] == 3.5


def test_alone_nothing_is_shared() -> None:
    one, other = SharedCounters(), SharedCounters()
    one.counts(LONG).add("a")
    one.own[1] += 1
    assert other.counts(LONG).total() == other.sum(1) == 0
