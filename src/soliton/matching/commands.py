"""The engine's commands, and their bytes in a journal.

A record is ``version ‖ kind ‖ fields``; numbers are big endian. An order is stored in its signed
form, so that the journal proves what its owner requested.

What lives here: the commands, ``encode`` and ``decode``. What does not: their storage
(``soliton.matcher``), and what they do (``engine``).

Source: the commands are those of wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/queue/ValidatedCommand.scala``; the bytes are ours.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import msgspec

from soliton.chain import orders, protobuf
from soliton.chain.addresses import ADDRESS_LENGTH, Address, check_address
from soliton.chain.errors import FormatError
from soliton.chain.layouts import DIGEST_LENGTH, take
from soliton.chain.orders import Order, Side
from soliton.chain.proto import order_pb2
from soliton.chain.values import MAX_I64
from soliton.matching.pairs import AssetPair, pair_of, pair_to_bytes, read_pair

FORMAT_VERSION: Final = 1
MAX_COMMAND_BYTES: Final = 8_192
"""Well above the longest order (8 proofs of 64 bytes and 1,024 bytes of attachment)."""
MAX_SHARED: Final = 65_536
"""The maximum number of interned keys, assets and fees of orders; then the cache is cleared."""

_FIRST_PROTOBUF_VERSION: Final = 4


class CancelSource(IntEnum):
    """Who requested a cancellation, and why."""

    NOT_TRACKED = 0
    REQUEST = 1
    EXPIRATION = 2
    BALANCE_TRACKING = 3


class PlaceOrder(msgspec.Struct, frozen=True, gc=False):
    """Match a limit order and keep its remainder in the book.

    The percent fees are those computed by validation, in units of the fee asset, if the pair is
    charged by percentage.
    """

    order: Order
    percent_min_fee: int | None = None
    percent_const_min_fee: int | None = None

    @property
    def pair(self) -> AssetPair:
        """The pair of its book."""
        return pair_of(self.order)


class PlaceMarketOrder(msgspec.Struct, frozen=True, gc=False):
    """Match a market order, which may spend up to ``available_for_spending``, and drop its
    remainder.

    ``whole_units`` as in ``ActiveOrder``; it is false in journals of older versions.
    """

    order: Order
    available_for_spending: int
    percent_min_fee: int | None = None
    percent_const_min_fee: int | None = None
    whole_units: bool = False

    @property
    def pair(self) -> AssetPair:
        """The pair of its book."""
        return pair_of(self.order)


class CancelOrder(msgspec.Struct, frozen=True, gc=False):
    """Cancel an order. ``owner`` is its sender's address, if known."""

    pair: AssetPair
    order_id: bytes
    source: CancelSource
    owner: Address | None = None


class CancelAllOrders(msgspec.Struct, frozen=True, gc=False):
    """Cancel all orders of a book."""

    pair: AssetPair


class DeleteOrderBook(msgspec.Struct, frozen=True, gc=False):
    """Cancel all orders of a book and delete it."""

    pair: AssetPair


class CorrectedSide(msgspec.Struct, frozen=True, gc=False):
    """One order of an execution that is corrected.

    ``rests`` is true if it was in its book when the command was made. Then the book knows what
    remains of it; otherwise ``amount``, ``fee`` and ``price_nominator`` are its last state, as in
    ``ActiveOrder``. Where two executions exceed the order for a while, ``amount`` is negative.
    ``goes_on`` is true if it may trade again: it stays in its book, or returns there.
    """

    order: Order
    is_market: bool
    rests: bool
    goes_on: bool
    amount: int
    fee: int
    price_nominator: int
    percent_min_fee: int | None = None
    percent_const_min_fee: int | None = None


class CorrectExecution(msgspec.Struct, frozen=True, gc=False):
    """Take back an execution that the chain has not executed; or, if ``stands`` is true, count one
    again that was taken back, since the chain has executed it after all.

    ``execution_offset`` and ``index`` (among the executions of that command) identify it;
    ``last_trade`` is the latest other execution of the book (price, amount, the taker's side).
    """

    execution_offset: int
    index: int
    stands: bool
    amount: int
    price: int
    taker_fee: int
    maker_fee: int
    taker: CorrectedSide
    maker: CorrectedSide
    last_trade: tuple[int, int, Side] | None = None

    @property
    def pair(self) -> AssetPair:
        """The pair of its book."""
        return pair_of(self.taker.order)


Command = (
    PlaceOrder
    | PlaceMarketOrder
    | CancelOrder
    | CancelAllOrders
    | DeleteOrderBook
    | CorrectExecution
)

_PLACE, _PLACE_MARKET, _CANCEL, _CANCEL_ALL, _DELETE, _PLACE_MARKET_WHOLE, _CORRECT = range(1, 8)
_SUM_BYTES: Final = 32
"""The length of the sum of amounts times prices, which exceeds 64 bits."""
_MAX_SUM: Final = 1 << 192
"""Far above the sum of 2^63 executions of the greatest amount and price."""
_MAX_INDEX: Final = 0xFFFF_FFFF


def encode(command: Command) -> bytes:
    """The record of a command; raises ``FormatError`` for an order its version cannot represent."""
    match command:
        case PlaceOrder():
            fees = _write_fees(command.percent_min_fee, command.percent_const_min_fee)
            return bytes((FORMAT_VERSION, _PLACE)) + fees + write_order(command.order)
        case PlaceMarketOrder():
            fees = _write_fees(command.percent_min_fee, command.percent_const_min_fee)
            kind = _PLACE_MARKET_WHOLE if command.whole_units else _PLACE_MARKET
            head = bytes((FORMAT_VERSION, kind)) + fees
            return head + _units(command.available_for_spending) + write_order(command.order)
        case CancelOrder():
            head = bytes((FORMAT_VERSION, _CANCEL, command.source))
            owner = b"" if command.owner is None else command.owner
            return head + pair_to_bytes(command.pair) + command.order_id + owner
        case CancelAllOrders():
            return bytes((FORMAT_VERSION, _CANCEL_ALL)) + pair_to_bytes(command.pair)
        case DeleteOrderBook():
            return bytes((FORMAT_VERSION, _DELETE)) + pair_to_bytes(command.pair)
        case CorrectExecution():
            return bytes((FORMAT_VERSION, _CORRECT)) + _write_correction(command)


def decode(data: bytes) -> Command:
    """The inverse of ``encode``; raises ``FormatError`` (or another ``ChainError`` of an order's
    own rules) for invalid bytes.
    """
    if len(data) > MAX_COMMAND_BYTES:
        raise FormatError(f"a command of {len(data)} bytes, at most {MAX_COMMAND_BYTES}")
    version, kind = take(data, 0, 2)
    if version != FORMAT_VERSION:
        raise FormatError(f"a command of format {version}, {FORMAT_VERSION} expected")
    match kind:
        case 1:
            least, const, offset = _read_fees(data, 2)
            return PlaceOrder(read_order(data[offset:]), least, const)
        case 2 | 6:
            least, const, offset = _read_fees(data, 2)
            available = _read_units(data, offset)
            order, whole = read_order(data[offset + 8 :]), kind == _PLACE_MARKET_WHOLE
            return PlaceMarketOrder(order, available, least, const, whole)
        case 3:
            return _read_cancel(data)
        case 4:
            return CancelAllOrders(_read_only_pair(data))
        case 5:
            return DeleteOrderBook(_read_only_pair(data))
        case 7:
            return _read_correction(data, 2)
        case _:
            raise FormatError(f"a command of kind {kind}")


def write_order(order: Order) -> bytes:
    """``version ‖ chain id ‖ signed form``: binary up to version 3, protobuf from version 4."""
    head = bytes((order.version, order.chain_id))
    if order.version < _FIRST_PROTOBUF_VERSION:
        return head + orders.to_bytes(order)
    return head + protobuf.serialize(orders.to_message(order))


def read_order(data: bytes) -> Order:
    """The inverse of ``write_order``; reads all of ``data``; raises ``ChainError``."""
    version, chain_id = take(data, 0, 2)
    if version < _FIRST_PROTOBUF_VERSION:
        return _shared(orders.from_bytes(version, data[2:], chain_id))
    message = protobuf.parse(order_pb2.Order, data[2:])
    order = orders.from_message(message, chain_id)
    if order.version != version:
        raise FormatError(f"an order of version {order.version} in place of {version}")
    return _shared(order)


class _Shared(dict[Any, Any]):
    """An intern table: maps each value to the first equal one."""

    def __missing__(self, value: object) -> object:
        if len(self) >= MAX_SHARED:
            self.clear()
        self[value] = value
        return value


_SHARED: Final = _Shared()


def _shared(order: Order) -> Order:
    """The order with interned keys, assets and fee. Many orders rest in books, so each should be
    small.
    """
    known = _SHARED
    # Positional arguments take a sixth of the time.
    return Order(
        order.version,
        order.chain_id,
        known[order.sender_public_key],
        known[order.matcher_public_key],
        known[order.amount_asset],
        known[order.price_asset],
        order.side,
        order.amount,
        order.price,
        order.timestamp,
        order.expiration,
        known[order.matcher_fee],
        known[order.matcher_fee_asset],
        order.price_mode,
        order.attachment,
        order.proofs,
        order.eip712_signature,
        order.body,
        order.id,
    )


def _read_cancel(data: bytes) -> CancelOrder:
    try:
        source = CancelSource(take(data, 2, 1)[0])
    except ValueError as error:
        raise FormatError(str(error)) from error
    pair, offset = read_pair(data, 3)
    order_id = take(data, offset, DIGEST_LENGTH)
    offset += DIGEST_LENGTH
    if offset == len(data):
        return CancelOrder(pair, order_id, source)
    owner = take(data, offset, ADDRESS_LENGTH)
    _expect_end(data, offset + ADDRESS_LENGTH)
    check_address(owner, owner[1])
    return CancelOrder(pair, order_id, source, Address(owner))


def _write_correction(command: CorrectExecution) -> bytes:
    if not 0 <= command.index <= _MAX_INDEX:
        raise FormatError(f"execution {command.index} of a command")
    amounts = (command.amount, command.price, command.taker_fee, command.maker_fee)
    pieces = [
        _units(command.execution_offset),
        command.index.to_bytes(4, "big"),
        bytes((command.stands,)),
        *map(_units, amounts),
    ]
    if command.last_trade is None:
        pieces.append(b"\0")
    else:
        price, amount, side = command.last_trade
        pieces += (b"\1", _units(price), _units(amount), bytes((side,)))
    return b"".join((*pieces, _write_side(command.taker), _write_side(command.maker)))


def _write_side(side: CorrectedSide) -> bytes:
    if not -MAX_I64 <= side.amount <= MAX_I64:
        raise FormatError(f"{side.amount} units")
    order = write_order(side.order)
    return b"".join(
        (
            bytes((side.is_market + 2 * side.rests + 4 * side.goes_on,)),
            side.amount.to_bytes(8, "big", signed=True),
            _units(side.fee),
            side.price_nominator.to_bytes(_SUM_BYTES, "big"),
            _write_fees(side.percent_min_fee, side.percent_const_min_fee),
            len(order).to_bytes(2, "big"),
            order,
        )
    )


def _read_correction(data: bytes, offset: int) -> CorrectExecution:
    execution_offset, offset = _read_units(data, offset), offset + 8
    index, offset = int.from_bytes(take(data, offset, 4), "big"), offset + 4
    stands, offset = _read_flags(data, offset, 1), offset + 1
    amount, price, taker_fee, maker_fee = (
        _read_units(data, at) for at in range(offset, offset + 32, 8)
    )
    offset += 32
    last_trade = None
    has_trade, offset = _read_flags(data, offset, 1), offset + 1
    if has_trade:
        side = Side(_read_flags(data, offset + 16, 1))
        last_trade = _read_units(data, offset), _read_units(data, offset + 8), side
        offset += 17
    taker, offset = _read_side(data, offset)
    maker, offset = _read_side(data, offset)
    _expect_end(data, offset)
    if pair_of(taker.order) != pair_of(maker.order) or taker.order.side is maker.order.side:
        raise FormatError("two orders that cannot match")
    return CorrectExecution(
        *(execution_offset, index, bool(stands), amount, price, taker_fee, maker_fee),
        *(taker, maker, last_trade),
    )


def _read_side(data: bytes, offset: int) -> tuple[CorrectedSide, int]:
    flags, offset = _read_flags(data, offset, 7), offset + 1
    amount, offset = int.from_bytes(take(data, offset, 8), "big", signed=True), offset + 8
    fee, offset = _read_units(data, offset), offset + 8
    nominator = int.from_bytes(take(data, offset, _SUM_BYTES), "big")
    if nominator > _MAX_SUM:
        raise FormatError(f"a sum of amounts times prices of {nominator}")
    least, const, offset = _read_fees(data, offset + _SUM_BYTES)
    length, offset = int.from_bytes(take(data, offset, 2), "big"), offset + 2
    order = read_order(take(data, offset, length))
    if amount > order.amount or fee > order.matcher_fee:
        raise FormatError("more remains of an order than it had")
    side = CorrectedSide(
        *(order, bool(flags & 1), bool(flags & 2), bool(flags & 4), amount, fee, nominator),
        *(least, const),
    )
    return side, offset + length


def _read_flags(data: bytes, offset: int, most: int) -> int:
    flags = take(data, offset, 1)[0]
    if flags > most:
        raise FormatError(f"flags {flags}")
    return flags


def _read_only_pair(data: bytes) -> AssetPair:
    pair, offset = read_pair(data, 2)
    _expect_end(data, offset)
    return pair


def _expect_end(data: bytes, offset: int) -> None:
    if offset != len(data):
        raise FormatError(f"{len(data) - offset} bytes after the command")


def _write_fees(least: int | None, const: int | None) -> bytes:
    flags = (least is not None) + 2 * (const is not None)
    return b"".join((bytes((flags,)), *(_units(fee) for fee in (least, const) if fee is not None)))


def _read_fees(data: bytes, offset: int) -> tuple[int | None, int | None, int]:
    flags = take(data, offset, 1)[0]
    if flags == 0:
        return None, None, offset + 1
    if flags > 3:
        raise FormatError(f"flags of fees {flags}")
    offset += 1
    least = const = None
    if flags & 1:
        least, offset = _read_units(data, offset), offset + 8
    if flags & 2:
        const, offset = _read_units(data, offset), offset + 8
    return least, const, offset


def _units(value: int) -> bytes:
    if not 0 <= value <= MAX_I64:
        raise FormatError(f"{value} units")
    return value.to_bytes(8, "big")


def _read_units(data: bytes, offset: int) -> int:
    units = int.from_bytes(take(data, offset, 8), "big", signed=True)
    if units < 0:
        raise FormatError(f"{units} units")
    return units
