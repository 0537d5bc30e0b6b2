"""Type 7, exchange: the execution of two orders by a matcher.

The sender is the matcher of the orders: the layouts do not contain a sender's key, and that of the
message is ignored.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/assets/exchange/ExchangeTransaction.scala``,
``transaction/serialization/impl/ExchangeTxSerializer.scala`` and
``transaction/validation/impl/ExchangeTxValidator.scala``.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final

import msgspec

from soliton.chain import kinds, orders
from soliton.chain.addresses import from_public_key
from soliton.chain.errors import FormatError, OrderInvalid, ValueRuleError
from soliton.chain.fields import Field, Kind, MessageKind
from soliton.chain.json_kinds import JsonKind
from soliton.chain.layouts import Values, Variable, take
from soliton.chain.order_schemas import ORDER_SCHEMA, SENT_ORDER_SCHEMA
from soliton.chain.orders import MAX_AMOUNT, Order, Side
from soliton.chain.transactions import checks, model
from soliton.chain.transactions.model import AnyTransaction

_FIRST_PROTOBUF_VERSION: Final = 3
_ORDERS: Final = 2
_MARK: Final = 1

_RawOrder = tuple[int, bytes]


class Exchange(msgspec.Struct, frozen=True, gc=False):
    """Exchanges ``amount`` of the pair's amount asset at ``price``; buyer and seller pay the
    matcher fees. Before version 3 the first order is the buyer's.
    """

    order1: Order
    order2: Order
    amount: int
    price: int
    buy_matcher_fee: int
    sell_matcher_fee: int

    @property
    def orders(self) -> tuple[Order, Order]:
        """Both orders, in the order of the transaction."""
        return self.order1, self.order2

    @property
    def buy_order(self) -> Order:
        """The buy order."""
        return self.order1 if self.order1.side is Side.BUY else self.order2

    @property
    def sell_order(self) -> Order:
        """The sell order."""
        return self.order2 if self.order1.side is Side.BUY else self.order1


def _sender(payload: Exchange) -> bytes:
    return payload.buy_order.matcher_public_key


def _validate(transaction: AnyTransaction) -> None:
    payload: Exchange = transaction.payload
    orders.check_ranges(payload.order1)
    orders.check_ranges(payload.order2)
    checks.check_fee(transaction)
    if not 0 < payload.amount <= MAX_AMOUNT:
        raise ValueRuleError(orders.AMOUNT_ERROR)
    if not 0 < payload.price <= MAX_AMOUNT:
        raise ValueRuleError(f"price should be in interval (0; {MAX_AMOUNT}]")
    if payload.sell_matcher_fee > MAX_AMOUNT:
        raise ValueRuleError("sellMatcherFee too large")
    if payload.buy_matcher_fee > MAX_AMOUNT:
        raise ValueRuleError("buyMatcherFee too large")
    if transaction.fee > MAX_AMOUNT:
        raise ValueRuleError("fee too large")
    _check_pair(transaction)
    _check_orders(transaction)


def _check_pair(transaction: AnyTransaction) -> None:
    payload: Exchange = transaction.payload
    buy, sell = payload.buy_order, payload.sell_order
    if transaction.version < _FIRST_PROTOBUF_VERSION and payload.order1.side is not Side.BUY:
        raise ValueRuleError("order1 should have OrderType.BUY")
    if buy.side is not Side.BUY:
        raise ValueRuleError("buyOrder should has OrderType.BUY")
    if sell.side is not Side.SELL:
        raise ValueRuleError("sellOrder should has OrderType.SELL")
    if buy.matcher_public_key != sell.matcher_public_key:
        raise ValueRuleError("buyOrder.matcher should be the same as sellOrder.matcher")
    if (buy.amount_asset, buy.price_asset) != (sell.amount_asset, sell.price_asset):
        raise ValueRuleError("Both orders should have same AssetPair")


def _check_orders(transaction: AnyTransaction) -> None:
    payload: Exchange = transaction.payload
    for order in (payload.buy_order, payload.sell_order):
        message = orders.fault(order, transaction.timestamp)
        if message is not None:
            raise OrderInvalid(order, message)
    latest = max(payload.order1.version, payload.order2.version)
    if transaction.version == 1 and latest > 1:
        raise ValueRuleError("can only contain orders of version 1")
    if transaction.version < _FIRST_PROTOBUF_VERSION and latest >= 4:
        raise ValueRuleError("can only contain orders of version < 4")


# --- legacy binary --------------------------------------------------------------------------------


def _read_orders_1(data: bytes, offset: int) -> tuple[tuple[_RawOrder, _RawOrder], int]:
    first = _take_length(data, offset)
    second = _take_length(data, offset + 4)
    start = offset + 8
    middle = start + first
    return (
        ((1, take(data, start, first)), (1, take(data, middle, second))),
        middle + second,
    )


def _write_orders_1(pair: tuple[Order, Order]) -> bytes:
    if any(order.version != 1 for order in pair):
        raise FormatError("can only contain orders of version 1")
    first, second = map(orders.to_bytes, pair)
    return len(first).to_bytes(4, "big") + len(second).to_bytes(4, "big") + first + second


def _read_orders_2(data: bytes, offset: int) -> tuple[tuple[_RawOrder, _RawOrder], int]:
    first, offset = _read_order_2(data, offset)
    second, offset = _read_order_2(data, offset)
    return (first, second), offset


def _read_order_2(data: bytes, offset: int) -> tuple[_RawOrder, int]:
    length = _take_length(data, offset)
    offset += 4
    # An order of version 1 does not begin with its version, so a byte precedes it that the length
    # does not count.
    version = take(data, offset, 1)[0]
    if version == _MARK:
        offset += 1
    return (version, take(data, offset, length)), offset + length


def _write_orders_2(pair: tuple[Order, Order]) -> bytes:
    parts: list[bytes] = []
    for order in pair:
        data = orders.to_bytes(order)
        mark = bytes((_MARK,)) if order.version == 1 else b""
        parts += (len(data).to_bytes(4, "big"), mark, data)
    return b"".join(parts)


def _take_length(data: bytes, offset: int) -> int:
    return int.from_bytes(take(data, offset, 4), "big", signed=True)


def _bind(values: Values, chain_id: int) -> None:
    raw: tuple[_RawOrder, _RawOrder] = values.pop("orders")
    for name, (version, data) in zip(("order1", "order2"), raw, strict=True):
        values[name] = orders.from_bytes(version, data, chain_id)


_LAYOUT = "orders price amount buy_matcher_fee sell_matcher_fee fee timestamp"


# --- protobuf and JSON ----------------------------------------------------------------------------


def _order(place: int) -> Kind:
    def read(messages: Sequence[Any], chain_id: int) -> Order:
        if len(messages) != _ORDERS:
            raise FormatError(f"an exchange of {len(messages)} orders")
        return orders.from_message(messages[place], chain_id)

    def fill(messages: Any, order: Order) -> None:  # noqa: ANN401 - a repeated member
        orders.fill_message(messages.add(), order)

    return Kind(
        JsonKind(orders.from_json, orders.to_json, ORDER_SCHEMA, SENT_ORDER_SCHEMA),
        message=MessageKind(read, fill=fill),
        ride="Order",
        accounts=lambda order: (from_public_key(order.sender_public_key, order.chain_id),),
    )


TYPE = model.TransactionType(
    type_id=7,
    name="exchange",
    title="ExchangeTransaction",
    payload=Exchange,
    max_version=3,
    fields=(
        Field("order1", _order(0), path="orders"),
        Field("order2", _order(1), path="orders"),
        Field("amount", kinds.LONG),
        Field("price", kinds.LONG),
        Field("buy_matcher_fee", kinds.LONG),
        Field("sell_matcher_fee", kinds.LONG),
    ),
    binary={
        1: model.BinaryForm(
            b"\7",
            _LAYOUT,
            model.Auth.SIGNATURE_LAST,
            own={"orders": Variable(_read_orders_1, _write_orders_1)},
            bind=_bind,
        ),
        # The leading zero, which other types have only in the stored form, is signed here.
        2: model.BinaryForm(
            b"\0\7\2",
            _LAYOUT,
            model.Auth.PROOFS,
            own={"orders": Variable(_read_orders_2, _write_orders_2)},
            bind=_bind,
        ),
    },
    protobuf=model.ProtobufForm("exchange"),
    ride=model.RideForm(
        "buyOrder sellOrder price amount buyMatcherFee sellMatcherFee",
        extra={
            "buyOrder": model.RideField("Order", attrgetter("buy_order")),
            "sellOrder": model.RideField("Order", attrgetter("sell_order")),
        },
        for_assets=True,
    ),
    validate=_validate,
    protobuf_since=_FIRST_PROTOBUF_VERSION,
    sender=_sender,
    signature_versions=frozenset({1}),
    request=model.RequestForm(fee_required=False),
)
