"""The streams of a private chain's matcher: what an account owns follows its trades to the last
unit, through the chain and back.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from websockets.asyncio.client import connect

from soliton.crypto import base58
from soliton.crypto.curve25519 import sign
from soliton.crypto.keys import key_pair
from soliton.matcher.ccxt.asynchronous import SolitonMatcher
from tests.e2e.programs import devnet
from tests.matcher.devnet import BUYER, BUYER_SEED, issue_silver, open_market
from tests.matcher.websocket.streams import Stream

pytestmark = pytest.mark.slow


def introduction() -> dict[str, Any]:
    """The account's own signature."""
    keys, timestamp = key_pair(BUYER_SEED), time.time_ns() // 1_000_000
    signed = sign(keys.private_key, keys.public_key + timestamp.to_bytes(8, "big"))
    public_key = base58.encode(keys.public_key)
    return {"t": "sig", "j": base58.encode(signed), "k": public_key, "_": timestamp}


async def until(
    stream: Stream, kind: str, seen: dict[str, Any], wanted: dict[str, Any]
) -> list[dict[str, Any]]:
    """Read messages of a kind until the gathered balances are as wanted: the orders in them."""
    orders = []
    while seen != wanted:
        message = await asyncio.wait_for(stream.receive(), 20)
        if message["T"] == kind:
            seen.update(message.get("b", {}))
            orders += message.get("o", [])
    return orders


async def test_an_account_follows_its_trade() -> None:
    with devnet() as chain:
        asset = await asyncio.to_thread(issue_silver, chain)
        await asyncio.to_thread(open_market, chain, asset)
        secret = base58.encode(key_pair(BUYER_SEED).private_key)
        exchange = SolitonMatcher({"secret": secret, "urls": {"api": chain.matcher_url}})
        url = chain.matcher_url.replace("http:", "ws:") + "/ws/v0"
        async with connect(url, proxy=None) as connection:
            stream = Stream(connection)
            await stream.next("i")
            await stream.send(T="obs", S=f"{asset}-WAVES", d=1)
            assert (await stream.next("ob"))["a"] == [["2.5", "10.0"]]
            await stream.send(T="aus", S=BUYER, **introduction())
            balances = (await stream.next("au"))["b"]
            assert balances == {"WAVES": ["1000000.0", "0.0"]}
            await exchange.create_order(f"{asset}/WAVES", "limit", "buy", 1, 1.25)
            await until(stream, "au", balances, {"WAVES": ["999998.747", "1.253"]})
            bought = await exchange.create_order(f"{asset}/WAVES", "limit", "buy", 4, 2.5)
            orders = await until(
                stream, "au", balances, {"WAVES": ["999988.744", "1.253"], asset: ["4.0", "0.0"]}
            )
            (order,) = (each for each in orders if each["i"] == bought["id"])
            assert (order["s"], order["q"], order["Q"], order["r"]) == (
                *("Filled", "4.0", "0.003", "2.5"),
            )
            (match,) = order["m"]
            (trade,) = await exchange.fetch_order_trades(bought["id"])
            assert (match["i"], match["A"], match["P"], match["mt"]) == (
                *(trade["id"], "4.0", "10.0", "t"),
            )
            await exchange.cancel_all_orders()
            await until(
                stream, "au", balances, {"WAVES": ["999989.997", "0.0"], asset: ["4.0", "0.0"]}
            )
        await exchange.close()
