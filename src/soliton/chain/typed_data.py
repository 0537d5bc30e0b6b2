"""EIP-712: the hash of an order as typed data, which an Ethereum wallet displays and signs.

Sources: EIP-712; wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/assets/exchange/EthOrders.scala``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from soliton.chain.json_kinds import write_bytes
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.crypto.hashes import keccak256

if TYPE_CHECKING:
    from soliton.chain.orders import Order

_FIXED_DECIMALS_VERSION: Final = 4
_NATIVE: Final = "WAVES"
_DOMAIN_TYPE: Final = keccak256(b"EIP712Domain(string name,string version,uint256 chainId)")
_DOMAIN_NAME: Final = keccak256(b"Waves Order")
_MEMBERS: Final = (
    "Order(int32 version,string matcherPublicKey,string amountAsset,string priceAsset,"
    "string orderType,int64 amount,int64 price,int64 timestamp,int64 expiration,"
    "int64 matcherFee,string matcherFeeAssetId,string priceMode"
)
_ORDER_TYPES: Final = (
    keccak256(f"{_MEMBERS})".encode()),
    keccak256(f"{_MEMBERS},string attachment)".encode()),
)
_DOMAIN_VERSIONS: Final = (keccak256(b"1"), keccak256(b"2"))


def order_hash(order: Order) -> bytes:
    """Return the hash of the order as typed data."""
    mode = order.price_mode.name
    if mode == "DEFAULT":
        mode = "FIXED_DECIMALS" if order.version >= _FIXED_DECIMALS_VERSION else "ASSET_DECIMALS"
    words = [
        _number(order.version),
        _text(base58.encode(order.matcher_public_key)),
        _text(_asset_text(order.amount_asset)),
        _text(_asset_text(order.price_asset)),
        _text(order.side.name),
        _number(order.amount),
        _number(order.price),
        _number(order.timestamp),
        _number(order.expiration),
        _number(order.matcher_fee),
        _text(_asset_text(order.matcher_fee_asset)),
        _text(mode),
    ]
    if order.attachment is not None:
        words.append(_text(write_bytes(order.attachment)))
    kind = 0 if order.attachment is None else 1
    domain = keccak256(
        _DOMAIN_TYPE + _DOMAIN_NAME + _DOMAIN_VERSIONS[kind] + _number(order.chain_id)
    )
    return keccak256(b"\x19\1" + domain + keccak256(_ORDER_TYPES[kind] + b"".join(words)))


def _number(value: int) -> bytes:
    return value.to_bytes(32, "big", signed=True)


def _text(value: str) -> bytes:
    return keccak256(value.encode())


def _asset_text(asset: AssetId | None) -> str:
    return _NATIVE if asset is None else base58.encode(asset)
