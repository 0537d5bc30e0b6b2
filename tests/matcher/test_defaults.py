"""A trader who moves the funds of an execution away: the other one is released, and it has
consequences.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis.strategies import integers, lists

from soliton.chain.orders import Side
from soliton.matcher.defaults import FORGET_MS, MAX_PAUSE_MS, Default, after_another
from soliton.matcher.node_client import Broadcast, BroadcastAnswer
from soliton.matcher.service import Matcher
from soliton.matcher.settings import Settlement as SettlementSettings
from soliton.matching import errors
from soliton.matching.errors import MatcherError
from tests.matcher.kit import (
    ALICE,
    BOB,
    CAROL,
    COIN,
    FEE,
    PAIR,
    USD,
    FakeNode,
    address_of,
    eventually,
    make_order,
    running,
    settings_in,
)

PRICE = 250
PENDING_MS = 200
SETTLEMENT = SettlementSettings(interval_ms=20, max_pending_ms=PENDING_MS)


@pytest.fixture
def node() -> FakeNode:
    node = FakeNode()
    for keys in (ALICE, BOB, CAROL):
        node.fund(keys)
    node.answer = BroadcastAnswer(Broadcast.NOT_YET, "Accounts balance errors")
    return node


@pytest_asyncio.fixture
async def matcher(tmp_path: Path, node: FakeNode) -> AsyncIterator[Matcher]:
    async with running(settings_in(tmp_path, settlement=SETTLEMENT), node) as matcher:
        yield matcher


async def take(matcher: Matcher) -> None:
    """Bob takes what Alice offers."""
    await matcher.placing.place(make_order(ALICE, Side.SELL, COIN, PRICE), market=False)
    await matcher.placing.place(make_order(BOB, Side.BUY, COIN, PRICE), market=False)


async def given_up(matcher: Matcher) -> None:
    """Until the execution of the second command is taken back."""
    await eventually(lambda: matcher.database.trade(PAIR, 1, 0, taken_back=True) is not None)


async def test_who_takes_and_runs_pays_for_it_and_the_other_is_released(
    matcher: Matcher, node: FakeNode
) -> None:
    before = await matcher.queries.tradable(address_of(ALICE), PAIR)
    await take(matcher)
    node.balances[address_of(BOB)][USD] = PRICE - 1
    held = await matcher.queries.tradable(address_of(ALICE), PAIR)
    assert held[None] == before[None] - COIN - FEE
    await given_up(matcher)
    # Alice's order is back in its book, and holds what it held before.
    assert await matcher.queries.tradable(address_of(ALICE), PAIR) == held
    assert before[None] - held[None] == COIN + FEE
    assert matcher.settlement.unsettled_counts() == (0, 0)
    with pytest.raises(MatcherError) as raised:
        await matcher.placing.place(make_order(BOB, Side.BUY, COIN, PRICE), market=False)
    assert raised.value.kind is errors.ACCOUNT_UNRELIABLE
    assert raised.value.params["count"] == 1
    # Nobody else suffers.
    await matcher.placing.place(make_order(ALICE, Side.SELL, COIN, PRICE), market=False)
    # After a while, it may trade again.
    await eventually(lambda: not is_barred(matcher))
    await matcher.placing.place(make_order(BOB, Side.BUY, COIN, PRICE - 1), market=False)


def is_barred(matcher: Matcher) -> bool:
    known = matcher.database.default_of(address_of(BOB))
    return known is not None and matcher.now() < known.until


async def test_nobody_is_blamed_who_has_the_funds(matcher: Matcher, node: FakeNode) -> None:
    await take(matcher)
    await given_up(matcher)
    for keys in (ALICE, BOB):
        assert matcher.database.default_of(address_of(keys)) is None


async def test_what_is_leased_out_is_missing(matcher: Matcher, node: FakeNode) -> None:
    await take(matcher)
    node.leased[address_of(ALICE)] = node.balances[address_of(ALICE)][None]
    await given_up(matcher)
    assert matcher.database.default_of(address_of(ALICE)) is not None
    assert matcher.database.default_of(address_of(BOB)) is None


async def test_an_exchange_pays_the_fee_of_who_buys_coins(matcher: Matcher, node: FakeNode) -> None:
    """Bob has no coins, but the exchange gives him some."""
    await take(matcher)
    node.balances[address_of(BOB)][None] = 0
    await given_up(matcher)
    assert matcher.database.default_of(address_of(BOB)) is None


async def test_a_node_that_is_busy_ends_nothing(matcher: Matcher, node: FakeNode) -> None:
    node.answer = BroadcastAnswer(Broadcast.LATER, "the pool is full")
    await take(matcher)
    node.balances[address_of(BOB)][USD] = 0
    await eventually(lambda: len(node.sent) > 2 * PENDING_MS // 20)
    assert matcher.settlement.unsettled_counts()[1] == 0


async def test_an_exchange_that_waits_for_the_matchers_own_coins_goes_on_waiting(
    matcher: Matcher, node: FakeNode
) -> None:
    await take(matcher)
    node.balances[matcher.address] = {None: FEE - 1}
    node.balances[address_of(BOB)][USD] = 0
    await eventually(lambda: len(node.sent) > 4)
    await eventually(
        lambda: any(
            each.refused_since is not None
            and asyncio.get_running_loop().time() - each.refused_since > 2 * PENDING_MS / 1_000
            for each in matcher.settlement.off_chain.values()
        )
    )
    assert matcher.settlement.unsettled_counts()[1] == 0
    assert matcher.database.default_of(address_of(BOB)) is None


async def test_one_that_is_mined_after_all_is_settled(matcher: Matcher, node: FakeNode) -> None:
    """Everybody can read the transaction, and send it."""
    await take(matcher)
    await given_up(matcher)
    node.mine(node.sent[0])
    await eventually(lambda: matcher.database.trade(PAIR, 1, 0) is not None)
    assert matcher.settlement.unsettled_counts() == (0, 0)
    assert node.sent[0].id in matcher.settlement.pending


async def test_defaults_outlive_a_restart(tmp_path: Path, node: FakeNode) -> None:
    settings = settings_in(tmp_path, settlement=SETTLEMENT)
    async with running(settings, node) as matcher:
        matcher.database.put_default(address_of(BOB), Default(3, 0, 1 << 60))
    async with running(settings, node) as matcher:
        with pytest.raises(MatcherError):
            await matcher.placing.place(make_order(BOB, Side.BUY, COIN, PRICE), market=False)


@given(lists(integers(0, FORGET_MS), min_size=1, max_size=80), integers(1, MAX_PAUSE_MS))
def test_pauses_double_up_to_a_day(gaps: list[int], pause: int) -> None:
    now, known = 1_700_000_000_000, None
    expected = pause
    for gap in gaps:
        now += gap
        known = after_another(known, now, pause)
        assert known.until - now == min(MAX_PAUSE_MS, expected)
        expected = min(2 * expected, 2 * MAX_PAUSE_MS)
    assert known is not None and known.count == len(gaps)
    assert after_another(known, now + FORGET_MS + 1, pause).count == 1
