"""Orders of a matcher: making, signing, reading and writing them.

What lives here: ``Order``, and how an account makes one. What does not: the fields and their layout
(``soliton.chain.orders``), and placing it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from soliton.chain import orders
from soliton.chain.addresses import PUBLIC_KEY_LENGTH, address_text, from_public_key
from soliton.chain.errors import FormatError, ValueRuleError
from soliton.chain.orders import PriceMode, Side
from soliton.chain.proto import order_pb2
from soliton.chain.protobuf import parse, serialize
from soliton.client.amounts import (
    Amount,
    AssetLike,
    asset_bytes,
    asset_text,
    decimals_of,
    scaled,
    units,
)
from soliton.client.errors import AmountError
from soliton.client.transaction import chain_number, clock, json_object
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error

DEFAULT_VERSION: Final = 3
"""The latest version that every matcher accepts."""
DEFAULT_MATCHER_FEE: Final = 300_000
DEFAULT_LIFETIME_MS: Final = 29 * 24 * 60 * 60 * 1_000
PRICE_DECIMALS: Final = 8
_FIXED_PRICE_VERSION: Final = 4
_SIDES: Final = {"buy": Side.BUY, "sell": Side.SELL}
_MODES: Final = {
    None: PriceMode.DEFAULT,
    "fixedDecimals": PriceMode.FIXED_DECIMALS,
    "assetDecimals": PriceMode.ASSET_DECIMALS,
}


class Order:
    """An order of any version, signed or not. Immutable.

    ``Account.buy`` and ``Account.sell`` make one, ``from_json`` and ``from_bytes`` read one.
    """

    __slots__ = ("_inner",)

    def __init__(self, inner: orders.Order) -> None:
        """Wrap a ``soliton.chain`` order; not for users of the library."""
        self._inner = inner

    @property
    def inner(self) -> orders.Order:
        """The wrapped record of ``soliton.chain``, with all fields as they are on the chain."""
        return self._inner

    @property
    def id(self) -> str:
        """Its id in base58."""
        return base58.encode(self._inner.id)

    @property
    def version(self) -> int:
        """The version of its layout."""
        return self._inner.version

    @property
    def side(self) -> str:
        """``buy`` or ``sell``."""
        return "buy" if self._inner.side is Side.BUY else "sell"

    @property
    def amount(self) -> int:
        """The amount, in the smallest unit of the amount asset."""
        return self._inner.amount

    @property
    def price(self) -> int:
        """The price, in the integer units of orders (see ``price_units``)."""
        return self._inner.price

    @property
    def amount_asset(self) -> str | None:
        """The asset that is bought or sold; ``None`` is the chain's coin."""
        asset = self._inner.amount_asset
        return None if asset is None else base58.encode(asset)

    @property
    def price_asset(self) -> str | None:
        """The asset that the price is in; ``None`` is the chain's coin."""
        asset = self._inner.price_asset
        return None if asset is None else base58.encode(asset)

    @property
    def sender(self) -> str:
        """The address of its sender."""
        return address_text(from_public_key(self._inner.sender_public_key, self._inner.chain_id))

    @property
    def sender_public_key(self) -> str:
        """The public key of its sender, in base58."""
        return base58.encode(self._inner.sender_public_key)

    @property
    def matcher_public_key(self) -> str:
        """The public key of its matcher, in base58."""
        return base58.encode(self._inner.matcher_public_key)

    @property
    def timestamp(self) -> int:
        """The time of its making, in milliseconds."""
        return self._inner.timestamp

    @property
    def expiration(self) -> int:
        """The time at which it expires, in milliseconds."""
        return self._inner.expiration

    @property
    def body(self) -> bytes:
        """The bytes that are signed."""
        return self._inner.body

    @property
    def proofs(self) -> tuple[bytes, ...]:
        """Its signatures, or other proofs for the sender's script."""
        return self._inner.proofs

    def with_proofs(self, *proofs: bytes) -> Order:
        """Return a copy with these proofs; raises ``InputError`` if they are too many or too
        long.
        """
        if len(proofs) > orders.MAX_PROOFS or any(
            len(proof) > orders.MAX_PROOF_BYTES for proof in proofs
        ):
            raise ValueRuleError(
                f"at most {orders.MAX_PROOFS} proofs of at most {orders.MAX_PROOF_BYTES} bytes"
            )
        return Order(msgspec.structs.replace(self._inner, proofs=proofs))

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that matchers accept."""
        return orders.to_json(self._inner)

    def to_bytes(self) -> bytes:
        """Serialize it in the form of its version: legacy up to version 3, protobuf in version
        4.
        """
        if self._inner.version < _FIXED_PRICE_VERSION:
            return orders.to_bytes(self._inner)
        return self.to_protobuf()

    def to_protobuf(self) -> bytes:
        """Serialize it as an ``Order`` message, whatever its version."""
        return serialize(orders.to_message(self._inner))

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | str | bytes, chain_id: int | str) -> Order:
        """Read a JSON object or its text; raises ``InputError``."""
        return cls(orders.from_json(dict(json_object(value)), chain_number(chain_id)))

    @classmethod
    def from_bytes(cls, data: bytes, version: int, chain_id: int | str) -> Order:
        """Read the result of ``to_bytes`` of an order of ``version``; raises ``InputError``."""
        if version < _FIXED_PRICE_VERSION:
            return cls(orders.from_bytes(version, data, chain_number(chain_id)))
        return cls.from_protobuf(data, chain_id)

    @classmethod
    def from_protobuf(cls, data: bytes, chain_id: int | str) -> Order:
        """Read an ``Order`` message; raises ``InputError``."""
        return cls(orders.from_message(parse(order_pb2.Order, data), chain_number(chain_id)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Order) and self._inner == other._inner

    def __hash__(self) -> int:
        return hash((self._inner.id, self._inner.proofs))

    def __repr__(self) -> str:
        return f"<Order {self.side} {self.amount} at {self.price}: {self.id}>"


class OrderMaking:
    """The orders of an account."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def chain_id(self) -> int: ...

        @property
        def public_key_bytes(self) -> bytes: ...

        @property
        def can_sign(self) -> bool: ...

        def sign(self, message: bytes) -> bytes: ...

        def private_key(self) -> str: ...

    def _stamp(self) -> int:
        """Return the timestamp of the next transaction or order."""
        return clock.next()

    def buy(
        self,
        amount: Amount,
        asset: AssetLike,
        price: Amount,
        price_asset: AssetLike = None,
        *,
        matcher: str | bytes,
        **options: Any,  # noqa: ANN401 - those of ``order``
    ) -> Order:
        """``order`` with the side ``buy``."""
        return self.order("buy", amount, asset, price, price_asset, matcher=matcher, **options)

    def sell(
        self,
        amount: Amount,
        asset: AssetLike,
        price: Amount,
        price_asset: AssetLike = None,
        *,
        matcher: str | bytes,
        **options: Any,  # noqa: ANN401 - those of ``order``
    ) -> Order:
        """``order`` with the side ``sell``."""
        return self.order("sell", amount, asset, price, price_asset, matcher=matcher, **options)

    def order(
        self,
        side: str,
        amount: Amount,
        asset: AssetLike,
        price: Amount,
        price_asset: AssetLike = None,
        *,
        matcher: str | bytes,
        matcher_fee: Amount = DEFAULT_MATCHER_FEE,
        matcher_fee_asset: AssetLike = None,
        price_mode: str | None = None,
        attachment: bytes | None = None,
        timestamp: int | None = None,
        expiration: int | None = None,
        version: int = DEFAULT_VERSION,
    ) -> Order:
        """Make an order to buy or sell an amount of ``asset`` for at most (at least) ``price`` of
        ``price_asset`` each, through the matcher with a public key, until ``expiration`` (default:
        29 days from now). ``timestamp`` and ``expiration`` are in milliseconds.

        A price that is an ``int`` is in the units of orders; decimal text is in whole assets, and
        requires the decimals of both assets. Raises ``InputError``.
        """
        if side not in _SIDES:
            raise FormatError(f"an order's side is buy or sell, not {side!r}")
        if price_mode not in _MODES:
            raise FormatError(f"a price mode is fixedDecimals or assetDecimals, not {price_mode!r}")
        stamp = self._stamp() if timestamp is None else timestamp
        draft = orders.Order(
            version=version,
            chain_id=self.chain_id,
            sender_public_key=self.public_key_bytes,
            matcher_public_key=key_bytes(matcher),
            amount_asset=asset_bytes(asset),
            price_asset=asset_bytes(price_asset),
            side=_SIDES[side],
            amount=units(amount, asset),
            price=price_units(price, asset, price_asset, version, price_mode),
            timestamp=stamp,
            expiration=stamp + DEFAULT_LIFETIME_MS if expiration is None else expiration,
            matcher_fee=units(matcher_fee, matcher_fee_asset),
            matcher_fee_asset=asset_bytes(matcher_fee_asset),
            price_mode=_MODES[price_mode],
            attachment=attachment,
        )
        orders.check_ranges(draft)
        made = orders.build(draft)
        fault = orders.fault(made, stamp)
        if fault is not None:
            raise ValueRuleError(fault)
        if self.can_sign:
            made = msgspec.structs.replace(made, proofs=(self.sign(made.body),))
        return Order(made)


def price_units(
    price: Amount,
    asset: AssetLike,
    price_asset: AssetLike,
    version: int = DEFAULT_VERSION,
    price_mode: str | None = None,
) -> int:
    """Convert a price to the integer units of orders: with 8 decimals in version 4, unless the
    price mode is ``assetDecimals``; else with 8 plus the price asset's decimals minus the amount
    asset's. Raises ``AmountError``.

    >>> price_units("1.5", None, None, 4)
    150000000
    """
    if isinstance(price, int):
        return price
    if version >= _FIXED_PRICE_VERSION and price_mode != "assetDecimals":
        return scaled(price, PRICE_DECIMALS)
    amount_decimals, price_decimals = decimals_of(asset), decimals_of(price_asset)
    if amount_decimals is None or price_decimals is None:
        raise AmountError(
            "a decimal price wants the decimals of both assets: give them as node.asset(id) tells "
            "them, or the price in units of orders"
        )
    return scaled(price, PRICE_DECIMALS + price_decimals - amount_decimals)


def pair_text(asset: AssetLike, price_asset: AssetLike) -> tuple[str, str]:
    """Return the ids of both assets as matchers write them."""
    return asset_text(asset) or "WAVES", asset_text(price_asset) or "WAVES"


def key_bytes(key: str | bytes) -> bytes:
    """Return the public key of a matcher in bytes; raises ``InputError``."""
    try:
        data = base58.decode(key) if isinstance(key, str) else key
    except Base58Error as error:
        raise FormatError(f"not a public key of a matcher: {error}") from error
    if len(data) != PUBLIC_KEY_LENGTH:
        raise FormatError(f"a public key has {PUBLIC_KEY_LENGTH} bytes, not {len(data)}")
    return data
