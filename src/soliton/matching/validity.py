"""Whether an order is valid by itself at a given time, by the matcher's rules.

What lives here: rules on an order's own fields. What does not: rules that need settings, assets or
balances (``validation``), and signatures.

Source: wavesplatform/matcher
``waves-integration/src/main/scala/com/wavesplatform/dex/domain/order/Order.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.chain.orders import (
    EIP712_SIGNATURE_LENGTHS,
    MAX_AMOUNT,
    MAX_LIFETIME_MS,
    PRICE_CONSTANT,
    Order,
    Side,
)
from soliton.chain.values import MAX_I64
from soliton.crypto.secp256k1 import ORDER

_FIRST_WALLET_VERSION: Final = 4
_CANONICAL_LENGTH: Final = 65
_CANONICAL_V: Final = (27, 28)
_NUMBER_BYTES: Final = 32
_SAFE_VOLUME: Final = MAX_I64 - MAX_AMOUNT


def expires_in_time(order: Order, now: int) -> bool:
    """Whether the order is neither expired nor expires too late; ``now`` in milliseconds."""
    return now <= order.expiration <= now + MAX_LIFETIME_MS


def order_fault(order: Order, now: int) -> str | None:
    """The reference's message for the first rule that an order breaks at a time in milliseconds,
    or None.
    """
    # Fast path: nearly all orders are valid. The bound on the volume allows for any fee.
    if (
        0 < order.amount < MAX_AMOUNT
        and order.price > 0
        and 0 < order.amount * order.price // PRICE_CONSTANT <= _SAFE_VOLUME
        and order.amount_asset != order.price_asset
        and 0 < order.matcher_fee < MAX_AMOUNT
        and order.timestamp > 0
        and now <= order.expiration <= now + MAX_LIFETIME_MS
        and order.eip712_signature is None
    ):
        return None
    return _first_fault(order, now)


def _first_fault(order: Order, now: int) -> str | None:
    if order.amount <= 0:
        return "amount should be > 0"
    if order.price <= 0:
        return "price should be > 0"
    if order.amount >= MAX_AMOUNT:
        return "amount too large"
    fault = _volume_fault(order)
    if fault is not None:
        return fault
    if order.amount_asset == order.price_asset:
        return "Invalid AssetPair"
    if not 0 < order.matcher_fee < MAX_AMOUNT:
        return "matcherFee too large" if order.matcher_fee > 0 else "matcherFee should be > 0"
    if order.timestamp <= 0:
        return "timestamp should be > 0"
    if not expires_in_time(order, now):
        late = order.expiration >= now
        return "expiration should be " + ("earlier than 30 days" if late else "> currentTime")
    return wallet_fault(order)


def _volume_fault(order: Order) -> str | None:
    volume = order.amount * order.price // PRICE_CONSTANT
    buys = order.side is Side.BUY
    name = "SpendAmount" if buys else "ReceiveAmount"
    if volume <= 0:
        return f"{name} should be > 0"
    fee = order.matcher_fee if buys and order.price_asset is None else 0
    return f"{name} too large" if volume + fee > MAX_I64 else None


def form_fault(order: Order) -> str | None:
    """Why a wallet's signature is not in the one form that the matcher accepts, or None. The chain
    accepts other forms too, each of which would give the order another id.

    Orders read from a journal are not checked: some were accepted before this rule existed.
    """
    signature = order.eip712_signature
    if signature is None:
        return None
    s = int.from_bytes(signature[_NUMBER_BYTES : 2 * _NUMBER_BYTES], "big")
    if (
        len(signature) == _CANONICAL_LENGTH
        and 0 < int.from_bytes(signature[:_NUMBER_BYTES], "big") < ORDER
        and 0 < s <= ORDER // 2
        and signature[-1] in _CANONICAL_V
    ):
        return None
    return (
        "a matcher takes 65 bytes, r, s and v, where s is at most half the order of the curve and "
        f"v is 27 or 28; given are {len(signature)} bytes with v {signature[-1]}"
    )


def wallet_fault(order: Order) -> str | None:
    """What is wrong with the form of an Ethereum wallet's signature, or None."""
    signature = order.eip712_signature
    if signature is None:
        return None
    if order.version < _FIRST_WALLET_VERSION:
        return "eip712Signature available only since V4"
    if len(signature) not in EIP712_SIGNATURE_LENGTHS:
        return "eip712Signature should be of length 65 or 129"
    return None
