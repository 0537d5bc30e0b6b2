"""The largest orders that are legal go the whole way: over HTTP into the journal and the books, and
through a restart, a snapshot, a replay and the audit. No command ends the matcher for ever.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from soliton.chain import orders
from soliton.chain.orders import MAX_AMOUNT, PRICE_CONSTANT, Order, Side
from soliton.chain.values import MAX_I64
from soliton.matcher.audit import Audit
from soliton.matcher.node_client import Asset
from soliton.matcher.records import describe
from soliton.matcher.rest.app import build_app
from soliton.matcher.service import Matcher
from soliton.matcher.stores import reading
from soliton.matching.model import OrderStatus, limit_order
from soliton.matching.pairs import AssetPair
from tests.matcher.fakes import Reply, exchange
from tests.matcher.kit import (
    ALICE,
    BOB,
    CAROL,
    COIN,
    MATCHER,
    PAIR,
    USD,
    FakeNode,
    address_of,
    make_order,
    running,
    settings_in,
)

MOST = MAX_AMOUNT - 1
"""The largest amount and the largest fee: the bound itself is refused."""


def rich_node() -> FakeNode:
    """Everybody owns all that an account can own of an asset."""
    node = FakeNode()
    for keys in (ALICE, BOB, CAROL, MATCHER):
        node.balances[address_of(keys)] = {None: MAX_I64, USD: MAX_I64}
    return node


def asking(matcher: Matcher) -> Callable[..., Awaitable[Reply]]:
    """Requests to a matcher, without sockets."""
    app = build_app(matcher)

    async def ask(line: str, body: Any = None) -> Reply:
        return await exchange(app.gate, line, body)

    return ask


def state_of(matcher: Matcher, pair: AssetPair = PAIR) -> object:
    """What a recovery must give back."""
    book = matcher.engine.book(pair)
    assert book is not None
    infos = [
        matcher.queries.history(address_of(keys), None, active=True, closed=True)
        for keys in (ALICE, BOB)
    ]
    return (
        book.depth(1_000),
        matcher.database.trades(pair, 1_000),
        infos,
        matcher.engine.last_offset,
    )


async def check_journal(matcher_settings: Any) -> int:
    """What ``matcher verify`` makes of the journal: the number of executions."""
    from soliton.matching.engine import Engine
    from soliton.matching.rules import MatchingSettings

    audit = Audit(Engine(MatchingSettings(order_v4_start_offset=-1)), MATCHER.public_key)
    async with reading(matcher_settings) as (_, batches):
        async for batch in batches:
            for record in batch:
                audit.take(record)
    audit.finish()
    return audit.counts.executions


@pytest.mark.parametrize("version", [1, 2, 3, 4])
async def test_a_trade_whose_worth_leaves_64_bits_is_one_like_any_other(
    tmp_path: Path, version: int
) -> None:
    """2^64 is passed by amount times price of an order for 1,000,000,000 at 9.22."""
    settings, node = settings_in(tmp_path), rich_node()
    price = (MAX_I64 - MOST) * PRICE_CONSTANT // MOST
    sell = make_order(ALICE, Side.SELL, MOST, price, version=version)
    buy = make_order(BOB, Side.BUY, MOST, price, version=version)
    async with running(settings, node) as matcher:
        ask = asking(matcher)
        for order in (sell, buy):
            answer = await ask("POST /matcher/orderbook", orders.to_json(order))
            assert answer.status == 200, answer.body
        await matcher.database.flush()
        before = state_of(matcher)
    for path in (tmp_path / "snapshots").iterdir():
        path.unlink()
    async with running(settings, node) as matcher:
        assert state_of(matcher) == before
        info = matcher.queries.order_info(buy.id)
        assert info is not None
        assert (info.status, info.price_nominator) == (OrderStatus.FILLED, MOST * price)
        assert info.average_price == price
    assert await check_journal(settings) == 1


def extreme_order(chance: random.Random, side: Side) -> Order:
    """A legal order, as large as one of its numbers allows."""
    amount = chance.choice((MOST, MOST // 2, chance.randint(1, MOST), 10 ** chance.randint(0, 17)))
    room = (MAX_I64 - MOST) * PRICE_CONSTANT // amount
    least = -(-PRICE_CONSTANT // amount)
    # Prices of all orders meet around a few values, so that there are executions.
    price = max(least, min(room, MAX_I64, chance.choice((1, 10**9, 9 * 10**8, 10**18, MAX_I64))))
    fee = chance.choice((300_000, 10**9, MOST // 8, MOST))
    return make_order(
        ALICE if side is Side.SELL else BOB,
        *(side, amount, price),
        fee=fee,
        version=chance.choice((1, 2, 3, 4)),
    )


@pytest.mark.parametrize("seed", range(8))
async def test_random_extremes_survive_restarts(tmp_path: Path, seed: int) -> None:
    """Each taken order is journalled and matched; a restart with and without the snapshot gives the
    same books, histories and trades; the audit of the journal finds nothing.
    """
    # Both assets have eight decimals, so that no price is refused for its last digits.
    settings, node, chance = settings_in(tmp_path), rich_node(), random.Random(seed)
    node.assets[USD] = Asset("US dollar", 8, scripted=False)
    taken = 0
    async with running(settings, node) as matcher:
        ask = asking(matcher)
        for number in range(60):
            order = extreme_order(chance, Side.SELL if number % 2 else Side.BUY)
            answer = await ask("POST /matcher/orderbook", orders.to_json(order))
            assert answer.status in (200, 400), answer.body
            taken += answer.status == 200
        for line in ("", "/status"):
            shown = await ask(f"GET /matcher/orderbook/WAVES/{_text(USD)}{line}")
            assert shown.status == 200
            _check_numbers(shown.json())
        before = state_of(matcher)
        trades = len(matcher.database.trades(PAIR, 1_000))
        # What a killed process leaves, and not even its orders database.
        shutil.copytree(tmp_path / "journal", tmp_path / "killed" / "journal")
    assert taken > 5
    async with running(settings_in(tmp_path / "killed"), node) as matcher:
        assert state_of(matcher) == before
    async with running(settings, node) as matcher:
        assert state_of(matcher) == before
        await matcher.snapshots.save()
    for path in (tmp_path / "snapshots").iterdir():
        path.unlink()
    async with running(settings, node) as matcher:
        assert state_of(matcher) == before
    assert await check_journal(settings) == trades


def _text(asset: bytes) -> str:
    from soliton.crypto import base58

    return base58.encode(asset)


def _check_numbers(value: object) -> None:
    """Clients read whole numbers into 64 bits with a sign."""
    if isinstance(value, dict):
        for each in value.values():
            _check_numbers(each)
    elif isinstance(value, list):
        for each in value:
            _check_numbers(each)
    elif isinstance(value, int):
        assert -MAX_I64 - 1 <= value <= MAX_I64, value


async def test_the_sum_of_a_level_is_shown_as_far_as_64_bits_go(tmp_path: Path) -> None:
    """At the price 1 an amount of 10^18 costs 100 coins' worth: ten such orders leave 63 bits."""
    settings, node = settings_in(tmp_path), rich_node()
    node.assets[USD] = Asset("US dollar", 8, scripted=False)
    async with running(settings, node) as matcher:
        ask = asking(matcher)
        for _ in range(20):
            order = make_order(BOB, Side.BUY, MOST, 1)
            answer = await ask("POST /matcher/orderbook", orders.to_json(order))
            assert answer.status == 200, answer.body
        for path in ("", "/status"):
            shown = await ask(f"GET /matcher/orderbook/WAVES/{_text(USD)}{path}")
            _check_numbers(shown.json())
            assert str(MAX_I64) in shown.body.decode()


def test_an_order_of_many_fills_keeps_its_exact_worth() -> None:
    """However it was filled, an order is worth no more than its amount times the largest price."""
    order = make_order(ALICE, Side.SELL, MOST, 1)
    worth = MAX_AMOUNT * MAX_I64
    active = msgspec.structs.replace(limit_order(order), amount=1, price_nominator=worth)
    info = describe(active, OrderStatus.FILLED)
    stored = msgspec.msgpack.encode(info)
    assert msgspec.msgpack.decode(stored, type=type(info)) == info
    assert info.price_nominator == worth


def test_a_record_of_before_is_read() -> None:
    """Fifteen members, the last of them the whole worth."""
    info = describe(limit_order(make_order(ALICE, Side.SELL, COIN, 250)), OrderStatus.CANCELLED)
    old = msgspec.msgpack.encode([*msgspec.msgpack.decode(msgspec.msgpack.encode(info))[:14], 7])
    assert msgspec.msgpack.decode(old, type=type(info)).price_nominator == 7
