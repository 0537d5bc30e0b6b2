"""Orders for tests of matching: made quickly, with proofs of zeros, for made-up accounts."""

from __future__ import annotations

from soliton.chain import orders
from soliton.chain.orders import Order, PriceMode, Side
from soliton.crypto.hashes import blake2b256
from soliton.matching.pairs import Asset, AssetPair

CHAIN_ID = ord("D")
MATCHER = bytes(range(32))
AMOUNT_ASSET = blake2b256(b"amount")
PRICE_ASSET = blake2b256(b"price")
FEE_ASSET = blake2b256(b"fee")
PAIR = AssetPair(AMOUNT_ASSET, PRICE_ASSET)
NOW = 1_700_000_000_000
DAY_MS = 24 * 60 * 60 * 1_000


def account(name: str) -> bytes:
    """The public key of a made-up account."""
    return blake2b256(name.encode())


def make_order(
    side: Side,
    amount: int,
    price: int,
    *,
    sender: str = "alice",
    pair: AssetPair = PAIR,
    fee: int = 300_000,
    fee_asset: Asset = None,
    version: int = 3,
    timestamp: int = NOW,
    expiration: int = NOW + DAY_MS,
) -> Order:
    """An order of any version, with an id of its own for every different argument."""
    return orders.build(
        Order(
            version=version,
            chain_id=CHAIN_ID,
            sender_public_key=account(sender),
            matcher_public_key=MATCHER,
            amount_asset=pair.amount_asset,
            price_asset=pair.price_asset,
            side=side,
            amount=amount,
            price=price,
            timestamp=timestamp,
            expiration=expiration,
            matcher_fee=fee,
            matcher_fee_asset=fee_asset,
            price_mode=PriceMode.ASSET_DECIMALS if version >= 4 else PriceMode.DEFAULT,
            proofs=(bytes(64),),
        )
    )
