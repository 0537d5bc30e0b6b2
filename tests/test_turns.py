"""Turns on the event loop: slices of what strangers send, and accounts of the time it takes."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from soliton import turns
from soliton.turns import DEBT_SECONDS, MAX_DEBTORS, PIECE_BYTES, SHARE, Debts, Intake, Rounds


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_who_uses_more_than_a_share_rests_until_it_is_made_up_for() -> None:
    clock = Clock()
    debts = Debts(clock=clock)
    assert debts.charge("a", 0.99 * DEBT_SECONDS) == 0
    assert debts.charge("a", 1.01 * DEBT_SECONDS) == pytest.approx(2 * DEBT_SECONDS / SHARE)
    assert debts.rest("a") == pytest.approx(2 * DEBT_SECONDS / SHARE) and debts.rest("b") == 0
    clock.now += 1.01 * DEBT_SECONDS / SHARE
    assert debts.rest("a") == 0
    clock.now += 1_000
    assert debts.charge("a", DEBT_SECONDS / 2) == 0


def test_the_accounts_of_a_crowd_do_not_fill_the_memory() -> None:
    debts = Debts(clock=Clock())
    for number in range(2 * MAX_DEBTORS):
        debts.charge(number, 1)
        debts.charge("busy", 1)
    assert len(debts._paid_at) == MAX_DEBTORS
    assert debts.rest("busy") > 0 and debts.rest(0) == 0


class Wire:
    """A transport that notes whether it is read from."""

    reads = True
    is_lost = False

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return self.is_lost

    def abort(self) -> None:
        self.is_lost = True


class Owner:
    """Notes the pieces, and in which pass of the loop each came."""

    def __init__(self, debts: Debts | None = None, rounds: Rounds | None = None) -> None:
        self.wire = Wire()
        self.pieces: list[bytes] = []
        self.passes: list[int] = []
        self.holds_after = -1
        self.rested = 0
        self.now = 0
        self.intake = Intake(rounds or Rounds(), debts or Debts(), self.work, self.end_rest)

    def begin(self) -> None:
        self.intake.begin(cast("asyncio.Transport", self.wire), "key")

    def work(self, data: bytes) -> None:
        self.pieces.append(data)
        self.passes.append(self.now)
        if len(self.pieces) == self.holds_after:
            self.intake.hold()

    def end_rest(self) -> None:
        self.rested += 1

    async def passes_of_the_loop(self, count: int) -> None:
        for _ in range(count):
            self.now += 1
            await asyncio.sleep(0)


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slice is over after one piece."""
    monkeypatch.setattr(turns, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(turns, "ARRIVAL_SECONDS", 0.0)


@pytest.mark.usefixtures("no_time")
async def test_a_packet_is_worked_off_in_turns_and_nothing_is_read_meanwhile() -> None:
    owner = Owner()
    owner.begin()
    data = bytes(range(256)) * (4 * PIECE_BYTES // 256)
    owner.intake.receive(data)
    assert not owner.wire.reads
    await owner.passes_of_the_loop(20)
    assert b"".join(owner.pieces) == data and owner.wire.reads
    assert len(set(owner.passes)) == len(owner.pieces) == 4


async def test_what_is_short_is_worked_on_at_once() -> None:
    owner = Owner()
    owner.begin()
    owner.intake.receive(b"short")
    assert owner.pieces == [b"short"] and owner.wire.reads


async def test_who_holds_gets_no_more_until_the_release() -> None:
    owner = Owner()
    owner.begin()
    owner.holds_after = 2
    owner.intake.receive(bytes(3 * PIECE_BYTES))
    await owner.passes_of_the_loop(10)
    assert len(owner.pieces) == 2 and not owner.wire.reads
    owner.intake.receive(b"more")
    owner.intake.release()
    assert len(owner.pieces) == 2, "in a later turn"
    await owner.passes_of_the_loop(10)
    assert b"".join(owner.pieces) == bytes(3 * PIECE_BYTES) + b"more" and owner.wire.reads


async def test_a_debt_belongs_to_the_stranger_and_not_to_the_connection() -> None:
    clock, rounds = Clock(), Rounds()
    debts = Debts(clock=clock)
    first, second = Owner(debts, rounds), Owner(debts, rounds)
    first.begin()
    first.intake.charge(10)
    assert first.intake.is_resting and not first.wire.reads
    first.intake.close()
    second.begin()
    second.intake.receive(b"again")
    await second.passes_of_the_loop(10)
    assert second.pieces == [] and not second.wire.reads
    clock.now += 1_000
    second.intake._end_rest()
    await second.passes_of_the_loop(10)
    assert second.pieces == [b"again"] and second.wire.reads and second.rested == 1


async def test_a_rest_goes_on_while_others_use_the_same_share() -> None:
    clock = Clock()
    debts = Debts(clock=clock)
    owner = Owner(debts)
    owner.begin()
    owner.intake.charge(1)
    debts.charge("key", 10)
    clock.now += 1 / SHARE
    owner.intake._end_rest()
    assert owner.intake.is_resting and owner.rested == 0
    owner.intake.close()


async def test_the_end_comes_behind_what_has_arrived() -> None:
    owner, ends = Owner(), list[int]()
    owner.begin()
    owner.holds_after = 1
    owner.intake.receive(bytes(2 * PIECE_BYTES))
    owner.intake.end(lambda: ends.append(len(owner.pieces)))
    await owner.passes_of_the_loop(10)
    assert ends == []
    owner.intake.release()
    await owner.passes_of_the_loop(10)
    assert ends == [2]


async def test_a_fault_of_the_work_ends_the_connection_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    owner = Owner()
    owner.begin()
    owner.intake._work = lambda data: [][len(data)]
    owner.intake.receive(bytes(2 * PIECE_BYTES))
    assert owner.wire.is_lost and owner.intake.waiting == 0
    assert "received bytes cannot be processed" in caplog.text


@pytest.mark.usefixtures("no_time")
async def test_a_turn_is_for_one_at_a_time() -> None:
    rounds, came = Rounds(), list[int]()

    async def take(number: int) -> None:
        await rounds.turn()
        came.append(number)

    tasks = [asyncio.create_task(take(number)) for number in range(3)]
    counts = []
    for _ in range(20):
        await asyncio.sleep(0)
        counts.append(len(came))
    assert came == [0, 1, 2] and {0, 1, 2, 3} <= set(counts)
    await asyncio.gather(*tasks)
