"""The interface on a private chain's matcher: every order that is wrong is refused with its code,
and nothing is reserved for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from soliton.chain import orders
from soliton.chain.orders import Order, Side
from soliton.crypto import base58
from soliton.crypto.keys import KeyPair, key_pair
from tests.e2e.programs import API_KEY, Program, call, devnet
from tests.matcher.devnet import BUYER_SEED, COIN, FEE, issue_silver

pytestmark = pytest.mark.slow

BUYER, STRANGER = key_pair(BUYER_SEED), key_pair("nobody")
MINUTE, DAY = 60_000, 86_400_000
PRICE = 25 * 10**13
"""Of an asset with two decimals in native coins: 2.5."""


class Desk:
    """A matcher, an asset, and orders for it that are right but for what a case changes."""

    def __init__(self, chain: Program) -> None:
        self.url = chain.matcher_url
        self.asset = base58.decode(issue_silver(chain))
        self.matcher = base58.decode(call(f"{self.url}/matcher").json())

    def order(self, keys: KeyPair = BUYER, **changes: Any) -> Order:
        now = time.time_ns() // 1_000_000
        values: dict[str, Any] = {
            "version": 3,
            "chain_id": ord("R"),
            "sender_public_key": keys.public_key,
            "matcher_public_key": self.matcher,
            "amount_asset": self.asset,
            "price_asset": None,
            "side": Side.BUY,
            "amount": 100,
            "price": PRICE,
            "timestamp": now,
            "expiration": now + DAY,
            "matcher_fee": FEE,
        }
        return orders.sign(orders.build(Order(**(values | changes))), keys.private_key)

    def place(self, order: Order) -> tuple[int, dict[str, Any]]:
        body = orders.to_json(order) | {"version": order.version}
        answer = call(f"{self.url}/matcher/orderbook", body)
        told: dict[str, Any] = answer.json()
        return answer.status, told

    def reserved(self, keys: KeyPair) -> dict[str, int]:
        path = f"/matcher/balance/reserved/{base58.encode(keys.public_key)}"
        found: dict[str, int] = call(self.url + path, key=API_KEY).json()
        return found


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with devnet() as chain:
        yield Desk(chain)


def in_a_while(milliseconds: int) -> int:
    return time.time_ns() // 1_000_000 + milliseconds


CASES: dict[str, tuple[int, Callable[[Desk], Order]]] = {
    "wrong signature": (
        9440512,
        lambda desk: msgspec.structs.replace(desk.order(), proofs=(bytes(64),)),
    ),
    "no signature": (9440512, lambda desk: msgspec.structs.replace(desk.order(), proofs=())),
    "another's key": (
        9440512,
        lambda desk: msgspec.structs.replace(
            desk.order(sender_public_key=STRANGER.public_key),
        ),
    ),
    "wrong matcher": (3076, lambda desk: desk.order(matcher_public_key=STRANGER.public_key)),
    "expired": (9441798, lambda desk: desk.order(expiration=in_a_while(-1))),
    "expires at once": (9441798, lambda desk: desk.order(expiration=in_a_while(MINUTE - 1_000))),
    "expires too late": (9437184, lambda desk: desk.order(expiration=in_a_while(31 * DAY))),
    "wrong order of the pair": (
        9440771,
        lambda desk: desk.order(amount_asset=None, price_asset=desk.asset),
    ),
    "one asset twice": (9440776, lambda desk: desk.order(price_asset=desk.asset)),
    "unknown asset": (11534345, lambda desk: desk.order(amount_asset=bytes([7]) * 32)),
    "no amount": (9437184, lambda desk: desk.order(amount=0)),
    "a negative amount": (9437184, lambda desk: desk.order(amount=-1)),
    "too great an amount": (9437184, lambda desk: desk.order(amount=10**18)),
    "no price": (9437184, lambda desk: desk.order(price=0)),
    "overflow": (9437184, lambda desk: desk.order(amount=10**17, price=9 * 10**18)),
    "nothing after rounding": (9437184, lambda desk: desk.order(amount=1, price=10**6)),
    "digits that the chain cannot hold": (9441284, lambda desk: desk.order(price=PRICE + 1)),
    "too low a fee": (9441542, lambda desk: desk.order(matcher_fee=FEE - 1)),
    "a fee in another asset": (
        9441540,
        lambda desk: desk.order(matcher_fee_asset=desk.asset),
    ),
    "more than there is": (3147270, lambda desk: desk.order(amount=50_000_000)),
    "an account without anything": (3147270, lambda desk: desk.order(STRANGER)),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_wrong_is_refused_and_reserves_nothing(desk: Desk, name: str) -> None:
    code, make = CASES[name]
    order = make(desk)
    before = desk.reserved(BUYER), desk.reserved(STRANGER)
    status, told = desk.place(order)
    assert (told["error"], told["status"], told["success"]) == (code, "OrderRejected", False), told
    assert status == (404 if code == 11534345 else 400)
    message = told["template"]
    assert "{{" not in told["message"] and message.split("{{")[0] in told["message"]
    assert (desk.reserved(BUYER), desk.reserved(STRANGER)) == before
    path = f"{desk.url}/matcher/orderbook/{base58.encode(desk.asset)}/WAVES"
    assert call(f"{path}/{base58.encode(order.id)}").json()["status"] == "NotFound"


def test_a_right_order_is_accepted_once_and_reserved(desk: Desk) -> None:
    order = desk.order()
    assert desk.place(order)[0] == 200
    assert desk.reserved(BUYER) == {"WAVES": 25 * COIN // 10 + FEE}
    status, told = desk.place(order)
    assert (status, told["error"]) == (400, 3148040)
    assert desk.reserved(BUYER) == {"WAVES": 25 * COIN // 10 + FEE}
    assert (
        call(f"{desk.url}/matcher/orders/cancel/{base58.encode(order.id)}", {}, key=API_KEY).json()[
            "status"
        ]
        == "OrderCanceled"
    )
    assert desk.reserved(BUYER) == {}
    assert desk.place(order)[1]["error"] == 3148040
