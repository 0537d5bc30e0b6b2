"""ccxt on a private chain: markets, books, orders, trades, settled to the last unit."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from soliton.crypto import base58
from soliton.crypto.keys import key_pair
from soliton.matcher.ccxt import SolitonMatcher
from soliton.matcher.ccxt.asynchronous import SolitonMatcher as AsyncMatcher
from tests.blocks import blocks
from tests.e2e.programs import Program, balance, call, devnet, eventually, is_mined
from tests.matcher.devnet import (
    BUYER,
    BUYER_SEED,
    COIN,
    FEE,
    RICH_SEED,
    SYMBOL,
    issue_silver,
    open_market,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def chain() -> Iterator[Program]:
    with devnet() as program:
        yield program


@pytest.fixture(scope="module")
def asset(chain: Program) -> str:
    return issue_silver(chain)


def options(chain: Program, seed: str, asset: str) -> dict[str, Any]:
    secret = base58.encode(key_pair(seed).private_key)
    own = {"tickers": {"Silver": asset}}
    return {"secret": secret, "urls": {"api": chain.matcher_url}, "options": own}


def test_a_day_at_the_market(chain: Program, asset: str) -> None:
    offer = open_market(chain, asset)
    before = balance(chain.node_url, BUYER)
    seller = SolitonMatcher(options(chain, RICH_SEED, asset))
    buyer = SolitonMatcher(options(chain, BUYER_SEED, asset))
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


def test_the_document_is_true(tmp_path: Path) -> None:
    """docs/how-to/trade-with-ccxt.md on a fresh chain, as it stands but for the ports."""
    trading, subscribing = blocks("docs/how-to/trade-with-ccxt.md", "python")
    with devnet() as fresh:
        source = f"{trading}\n{subscribing}".replace("http://127.0.0.1:6886", fresh.matcher_url)
        program = tmp_path / "trade.py"
        source = source.replace("http://127.0.0.1:6869", fresh.node_url)
        program.write_text(source, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(program)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert told[0].startswith("Gold/WAVES ") and float(told[-1]) == 1


async def test_the_same_awaited(chain: Program, asset: str) -> None:
    await asyncio.to_thread(open_market, chain, asset)
    exchange = AsyncMatcher(options(chain, BUYER_SEED, asset))
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
