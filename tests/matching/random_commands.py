"""Random commands for one pair, from a seed: small and large amounts, close prices, orders that
expire, all versions, market orders with little to spend.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from random import Random

from soliton.chain.orders import Order, Side
from soliton.crypto.hashes import blake2b256
from soliton.matching.commands import (
    CancelAllOrders,
    CancelOrder,
    CancelSource,
    Command,
    DeleteOrderBook,
    PlaceMarketOrder,
    PlaceOrder,
)
from soliton.matching.fees import AssetType, CompositeFee, DynamicFee, FixedFee, PercentFee
from soliton.matching.rules import MatchingSettings
from tests.matching.makers import (
    AMOUNT_ASSET,
    FEE_ASSET,
    NOW,
    PAIR,
    PRICE_ASSET,
    account,
    make_order,
)

SETTINGS = MatchingSettings(
    order_fees=(
        (-1, DynamicFee(300_000, 300_000)),
        (200, DynamicFee(100_000, 300_000, frozenset((account("dave"),)))),
        (400, PercentFee(AssetType.SPENDING, Decimal("0.3"), 300_000)),
        (600, FixedFee(FEE_ASSET, 10)),
        (700, CompositeFee(DynamicFee(7, 3), {PAIR: PercentFee(AssetType.PRICE, Decimal(1), 1)})),
        (800, PercentFee(AssetType.AMOUNT, Decimal("0.1"), 1)),
        (900, PercentFee(AssetType.RECEIVING, Decimal("0.1"), 1)),
    ),
    tick_sizes={PAIR: ((0, 1), (300, 25), (500, 3))},
)
"""Every hundred commands something changes."""
SENDERS = ("alice", "bob", "carol", "dave")


def random_order(random: Random, now: int, scale: int) -> Order:
    """An order at one of about a hundred prices, valid or just not."""
    version = random.randint(1, 4)
    amount = int(10 ** random.uniform(0, 11) * 10 ** random.uniform(-1, 1)) + 1
    price = max(1, scale * random.randint(50, 150) // 100 + random.randint(-2, 2))
    return make_order(
        random.choice((Side.BUY, Side.SELL)),
        amount,
        price,
        sender=random.choice(SENDERS),
        version=version,
        fee=random.choice((1, 10, 300_000, 10**9, 10**17)),
        fee_asset=random.choice((None, AMOUNT_ASSET, PRICE_ASSET, FEE_ASSET))
        if version > 2
        else None,
        timestamp=now - random.randint(0, 1_000),
        expiration=now + random.choice((0, 500, 50_000, 86_400_000)),
    )


def random_commands(seed: int, count: int) -> Iterator[tuple[int, int, Command]]:
    """Offset, timestamp and command; offsets may skip some, time never goes back."""
    random = Random(seed)
    offset, now = random.randint(-1, 5), NOW
    scale = random.choice((50, 1_000, 10**6, 10**8, 10**11))
    placed: list[bytes] = []
    for _ in range(count):
        offset += random.choice((1, 1, 1, 1, 2))
        now += random.choice((0, 0, 1, 100))
        yield offset, now, _random_command(random, now, scale, placed)


def _random_command(random: Random, now: int, scale: int, placed: list[bytes]) -> Command:
    draw = random.random()
    if draw < 0.002:
        return DeleteOrderBook(PAIR)
    if draw < 0.006:
        return CancelAllOrders(PAIR)
    if draw < 0.3:
        # Half of the time one of the last orders, which may be gone; sometimes one that never was.
        order_id = blake2b256(random.randbytes(4))
        if placed and random.random() < 0.95:
            order_id = random.choice(placed[-40:])
        return CancelOrder(PAIR, order_id, random.choice(tuple(CancelSource)))
    order = random_order(random, now, scale)
    placed.append(order.id)
    fees = (random.randint(1, order.matcher_fee), random.randint(1, order.matcher_fee))
    percents = random.choice(((None, None), (fees[0], None), fees))
    if draw < 0.45:
        needed = order.amount if order.side is Side.SELL else order.amount * order.price // 10**8
        spend = random.choice((needed, needed + order.matcher_fee, random.randint(0, needed)))
        least, const = percents
        return PlaceMarketOrder(order, spend, least, const, random.random() < 0.5)
    return PlaceOrder(order, *percents)
