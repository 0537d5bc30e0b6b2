"""Trading with PyWaves (the distribution PyWaves-CE): `python trade.py NODE MATCHER`.

It runs in an environment of its own and prints one JSON object per line.
"""

from __future__ import annotations

import json
import sys
import time

import pywaves

SELLER, BUYER = (f"soliton devnet account {number}" for number in (3, 4))
COIN = 10**8


def tell(name: str, value: object) -> None:
    print(json.dumps({"name": name, "value": value}), flush=True)


def main(node: str, matcher: str) -> None:
    pywaves.setNode(node, "devnet", "R")
    pywaves.setMatcher(matcher)
    seller, buyer = pywaves.Address(seed=SELLER), pywaves.Address(seed=BUYER)
    issued = seller.issueAsset("Gold", "", 1_000 * COIN, 8, reissuable=False)
    gold = pywaves.Asset(issued["id"])
    while gold.status() != "Issued":
        time.sleep(0.05)
    pair = pywaves.AssetPair(gold, pywaves.Asset(""))
    offer = seller.sell(assetPair=pair, amount=3 * COIN, price=2.5)
    wish = buyer.buy(assetPair=pair, amount=2 * COIN, price=2.6)
    statuses = [offer.status(), wish.status()]
    offer.cancel()
    unknown = pywaves.Order(pywaves.b58encode(bytes(32)), pair, seller)
    statuses += [offer.status(), unknown.status()]
    tell("statuses", statuses)
    tell("history", [order["status"] for order in seller.getOrderHistory(pair)])
    resting = buyer.buy(assetPair=pair, amount=COIN, price=1)
    book = pair.orderbook()
    tell("book", {"asks": book["asks"], "bids": len(book["bids"])})
    tell("same book", pywaves.getOrderBook(pair)[0] == book["bids"])
    other = buyer.buy(assetPair=pair, amount=COIN, price=0.5)
    tell("cancelled by id", buyer.cancelOrderByID(pair, other.orderId) == other.orderId)
    tell("markets", len(pywaves.markets()["markets"]))
    buyer.cancelOpenOrders(pair)
    tell("cancelled", len(pair.orderbook()["bids"]))
    time.sleep(0.5)
    tell("tradable", list(buyer.tradableBalance(pair)))
    tell("ids", [offer.orderId, wish.orderId, resting.orderId])
    tell("asset", gold.assetId)
    tell("seller", seller.address)
    tell("buyer", buyer.address)


main(*sys.argv[1:])
