"""ccxt on a private chain: markets, books, orders, trades, settled to the last unit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from soliton.chain import orders
from soliton.chain.orders import Order, Side
from soliton.crypto import base58
from soliton.crypto.keys import key_pair
from soliton.matcher.ccxt import SolitonMatcher
from soliton.matcher.ccxt.asynchronous import SolitonMatcher as AsyncMatcher
from tests.e2e.programs import API_KEY, Program, balance, call, devnet, eventually, is_mined

pytestmark = pytest.mark.slow

RICH = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"
BUYER = "3MMiWb5hjTXwst33rEaebQq8RnXZRFrTjuY"
BUYER_SEED, RICH_SEED = "soliton devnet account 1", "waves private node seed with waves tokens"
SYMBOL = "Silver/WAVES"
COIN = 10**8
FEE = 300_000


@pytest.fixture(scope="module")
def chain() -> Iterator[Program]:
    with devnet() as program:
        yield program


@pytest.fixture(scope="module")
def asset(chain: Program) -> str:
    """An asset with two decimals, all of it the rich account's."""
    issue = {
        "type": 3,
        "version": 2,
        "sender": RICH,
        "name": "Silver",
        "description": "",
        "quantity": 10**9,
        "decimals": 2,
        "reissuable": False,
        "fee": COIN,
    }
    signed = call(f"{chain.node_url}/transactions/sign", issue, key=API_KEY).json()
    issued: str = call(f"{chain.node_url}/transactions/broadcast", signed).json()["id"]
    eventually(lambda: is_mined(chain.node_url, issued), "the issue")
    return issued


def options(chain: Program, seed: str) -> dict[str, Any]:
    secret = base58.encode(key_pair(seed).private_key)
    return {"secret": secret, "urls": {"api": chain.matcher_url}}


def open_market(chain: Program, asset: str) -> str:
    """A market opens with its first order, which is none of ccxt's: 10 are offered for 2.5 each."""
    keys, matcher = key_pair(RICH_SEED), call(f"{chain.matcher_url}/matcher").json()
    now = time.time_ns() // 1_000_000
    draft = Order(
        version=3,
        chain_id=ord("R"),
        sender_public_key=keys.public_key,
        matcher_public_key=base58.decode(matcher),
        amount_asset=base58.decode(asset),
        price_asset=None,
        side=Side.SELL,
        amount=1_000,
        price=25 * 10**13,
        timestamp=now,
        expiration=now + 3_600_000,
        matcher_fee=FEE,
    )
    order = orders.to_json(orders.sign(orders.build(draft), keys.private_key))
    answer = call(f"{chain.matcher_url}/matcher/orderbook", order)
    assert answer.status == 200, answer.body
    return str(answer.json()["message"]["id"])


def test_a_day_at_the_market(chain: Program, asset: str) -> None:
    offer = open_market(chain, asset)
    before = balance(chain.node_url, BUYER)
    seller = SolitonMatcher(options(chain, RICH_SEED))
    buyer = SolitonMatcher(options(chain, BUYER_SEED))
    market = buyer.load_markets()[SYMBOL]
    assert (market["id"], market["precision"]["price"]) == (f"{asset}-WAVES", 1e-8)
    bought = buyer.create_order(SYMBOL, "limit", "buy", 4, 2.6)
    order = buyer.fetch_order(bought["id"])
    assert (order["status"], order["price"], order["average"]) == ("closed", 2.6, 2.5)
    order = seller.fetch_order(offer)
    assert (order["filled"], order["remaining"], order["average"]) == (4, 6, 2.5)
    (trade,) = buyer.fetch_trades(SYMBOL)
    assert (trade["amount"], trade["price"], trade["side"]) == (4, 2.5, "buy")
    assert seller.fetch_order_book(SYMBOL)["asks"] == [[2.5, 6]]
    assert buyer.fetch_ticker(SYMBOL)["last"] == 2.5
    assert buyer.fetch_ohlcv(SYMBOL, "1m")[-1][4:] == [2.5, 4]
    (mine,) = buyer.fetch_order_trades(bought["id"])
    assert (mine["amount"], mine["cost"], mine["side"]) == (4, 10, "buy")
    eventually(lambda: is_mined(chain.node_url, mine["id"]), "the exchange")
    eventually(lambda: buyer.fetch_balance()["Silver"]["total"] == 4, "the balance")
    assert call(f"{chain.node_url}/assets/balance/{BUYER}/{asset}").json()["balance"] == 400
    assert balance(chain.node_url, BUYER) == before - 10 * COIN - FEE
    assert seller.cancel_order(offer)["status"] == "canceled"
    assert seller.fetch_open_orders() == []
    assert [each["status"] for each in seller.fetch_closed_orders(SYMBOL)] == ["canceled"]
    for exchange in (buyer, seller):
        exchange.session.close()


async def test_the_same_awaited(chain: Program, asset: str) -> None:
    await asyncio.to_thread(open_market, chain, asset)
    exchange = AsyncMatcher(options(chain, BUYER_SEED))
    try:
        placed = await exchange.create_order(SYMBOL, "limit", "buy", 1, 1.25)
        assert [1.25, 1.0] in (await exchange.fetch_order_book(SYMBOL))["bids"]
        assert (await exchange.fetch_open_orders())[0]["id"] == placed["id"]
        bought = await exchange.create_order(SYMBOL, "market", "buy", 1)
        order = await exchange.fetch_order(bought["id"])
        assert (order["status"], order["filled"], order["average"]) == ("closed", 1, 2.5)
        await exchange.cancel_all_orders()
        assert await exchange.fetch_open_orders() == []
    finally:
        await exchange.close()
