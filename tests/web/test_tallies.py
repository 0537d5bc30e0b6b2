"""Counts that processes keep together."""

from __future__ import annotations

from pathlib import Path

import pytest

from soliton.web.tallies import CLIENT_CELLS, CONNECTIONS, IDLE, LONG, Tallies, join, share


@pytest.fixture
def three(tmp_path: Path) -> list[Tallies]:
    path = tmp_path / "tallies"
    return [share(path, 3), join(path, 3, 1), join(path, 3, 2)]


def test_counts_are_sums_over_all(three: list[Tallies]) -> None:
    for times, tallies in enumerate(three):
        for _ in range(times + 1):
            tallies.counts(LONG).add("a")
    three[0].counts(LONG).add(None)
    three[2].counts(IDLE).add("a")
    for tallies in three:
        counts = tallies.counts(LONG)
        assert (counts.total(), counts.of("a"), counts.of("b")) == (7, 6, 0)
        assert tallies.counts(IDLE).total() == 1 and tallies.counts(CONNECTIONS).total() == 0
    three[0].counts(LONG).add("a", -1)
    assert three[1].counts(LONG).of("a") == 5


def test_numbers_are_sums_over_all(three: list[Tallies]) -> None:
    for tallies in three:
        tallies.own[7] += 2
        tallies.own[8] += 1
    assert [tallies.sum(7) for tallies in three] == [6] * 3
    three[0].strike(2, (8,))
    assert (three[1].sum(7), three[1].sum(8)) == (6, 2)


def test_what_an_ended_process_had_open_is_struck_out(three: list[Tallies]) -> None:
    for tallies in three:
        for kind in (LONG, IDLE, CONNECTIONS):
            tallies.counts(kind).add("a")
    three[0].strike(1, ())
    for kind in (LONG, IDLE, CONNECTIONS):
        counts = three[2].counts(kind)
        assert (counts.total(), counts.of("a")) == (2, 2)


def test_all_know_a_client_by_the_same_cell(three: list[Tallies]) -> None:
    names = [f"10.0.0.{number}" for number in range(100)]
    cells = [[tallies.cell(name) for name in names] for tallies in three]
    assert cells[0] == cells[1] == cells[2] and max(cells[0]) < CLIENT_CELLS
    # Nobody can tell beforehand with whom a client shares a cell.
    assert [Tallies().cell(name) for name in names] != cells[0]
    three[1].times[cells[1][0]] = 3.5
    assert three[2].times[cells[2][0]] == 3.5


def test_alone_nothing_is_shared() -> None:
    one, other = Tallies(), Tallies()
    one.counts(LONG).add("a")
    one.own[1] += 1
    assert other.counts(LONG).total() == other.sum(1) == 0
