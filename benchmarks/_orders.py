"""Signed orders as clients send them, for the benchmarks.

What lives here: one order of a market. What does not: which orders, and sending them.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from soliton.chain import orders
from soliton.chain.orders import Order, Side
from soliton.chain.values import AssetId
from soliton.crypto.keys import KeyPair

FEE = 300_000
DAY_MS = 24 * 60 * 60 * 1_000


@dataclass(frozen=True)
class Market:
    """A pair on a matcher."""

    chain_id: int
    matcher_public_key: bytes
    amount_asset: AssetId | None
    price_asset: AssetId | None

    def order(
        self, keys: KeyPair, side: Side, amount: int, price: int, *, now: int, number: int = 0
    ) -> bytes:
        """The JSON of an order that expires in a day; ``number`` tells orders of one time apart."""
        draft = Order(
            version=3,
            chain_id=self.chain_id,
            sender_public_key=keys.public_key,
            matcher_public_key=self.matcher_public_key,
            amount_asset=self.amount_asset,
            price_asset=self.price_asset,
            side=side,
            amount=amount,
            price=price,
            timestamp=now + number,
            expiration=now + DAY_MS,
            matcher_fee=FEE,
        )
        return msgspec.json.encode(
            orders.to_json(orders.sign(orders.build(draft), keys.private_key))
        )
