"""The bytes of a whole engine: its books with their orders in the order of priority.

What lives here: writing and reading. What does not: files and checksums (``soliton.matcher``), and
the settings, which are the operator's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from soliton.chain.errors import ChainError
from soliton.chain.orders import Side
from soliton.errors import InputError, InvariantBroken
from soliton.matching.book import BookSide, LastTrade, OrderBook, check_invariants
from soliton.matching.commands import read_order, write_order
from soliton.matching.model import ActiveOrder
from soliton.matching.pairs import pair_to_bytes, read_pair

FORMAT_VERSION: Final = 1
MAX_NUMBER_BYTES: Final = 32
"""Of the sum of amounts times prices, which leaves 64 bits."""


class SnapshotError(InputError):
    """Bytes that are no snapshot of an engine."""


class _Order(msgspec.Struct, array_like=True, frozen=True):
    level_price: int
    order: bytes
    amount: int
    fee: int
    price_nominator: bytes
    percent_min_fee: int | None
    percent_const_min_fee: int | None


class _Trade(msgspec.Struct, array_like=True, frozen=True):
    price: int
    amount: int
    side: int


class _Book(msgspec.Struct, array_like=True, frozen=True):
    pair: bytes
    created: int
    changed_at: int
    next_timestamp: int
    last_trade: _Trade | None
    bids: list[_Order]
    asks: list[_Order]


class _Engine(msgspec.Struct, array_like=True, frozen=True):
    version: int
    last_offset: int
    last_timestamp: int
    books: list[_Book]


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(_Engine)


def write(last_offset: int, last_timestamp: int, books: Iterable[OrderBook]) -> bytes:
    """The bytes of books after the command at ``last_offset``."""
    return _ENCODER.encode(
        _Engine(FORMAT_VERSION, last_offset, last_timestamp, list(map(_write_book, books)))
    )


def read(data: bytes) -> tuple[int, int, list[OrderBook]]:
    """The inverse of ``write``; raises ``SnapshotError``, also for books that could not be."""
    try:
        engine = _DECODER.decode(data)
        if engine.version != FORMAT_VERSION:
            raise SnapshotError(f"a snapshot of format {engine.version}")
        books = list(map(_read_book, engine.books))
    except (msgspec.DecodeError, ChainError, InvariantBroken, ValueError) as error:
        raise SnapshotError(f"no snapshot: {error}") from error
    if len({book.pair for book in books}) != len(books):
        raise SnapshotError("two books of one pair")
    return engine.last_offset, engine.last_timestamp, books


def _write_book(book: OrderBook) -> _Book:
    trade = book.last_trade
    return _Book(
        pair_to_bytes(book.pair),
        book.created,
        book.changed_at,
        book.next_timestamp,
        None if trade is None else _Trade(trade.price, trade.amount, trade.side),
        _write_side(book.bids),
        _write_side(book.asks),
    )


def _write_side(side: BookSide) -> list[_Order]:
    return [
        _Order(
            side.levels[rank].price,
            write_order(active.order),
            active.amount,
            active.fee,
            active.price_nominator.to_bytes(MAX_NUMBER_BYTES, "big").lstrip(b"\0"),
            active.percent_min_fee,
            active.percent_const_min_fee,
        )
        for rank in reversed(side.ranks)
        for active in side.levels[rank].orders()
    ]


def _read_book(stored: _Book) -> OrderBook:
    pair, end = read_pair(stored.pair, 0)
    if end != len(stored.pair):
        raise SnapshotError("bytes after a pair")
    book = OrderBook(pair, stored.created)
    book.changed_at = stored.changed_at
    book.next_timestamp = stored.next_timestamp
    if stored.last_trade is not None:
        trade = stored.last_trade
        book.last_trade = LastTrade(trade.price, trade.amount, Side(trade.side))
    for side, orders in ((Side.BUY, stored.bids), (Side.SELL, stored.asks)):
        for each in orders:
            active = _read_order(each)
            order = active.order
            if active.pair != pair or order.side is not side or order.id in book.index:
                raise SnapshotError("an order in the wrong place, or twice")
            book.rest(each.level_price, active)
    check_invariants(book)
    return book


def _read_order(stored: _Order) -> ActiveOrder:
    if len(stored.price_nominator) > MAX_NUMBER_BYTES:
        raise SnapshotError("a number that is too long")
    order = read_order(stored.order)
    if not (0 < stored.amount <= order.amount and 0 <= stored.fee <= order.matcher_fee):
        raise SnapshotError("more remains of an order than it had")
    return ActiveOrder(
        order,
        is_market=False,
        amount=stored.amount,
        fee=stored.fee,
        price_nominator=int.from_bytes(stored.price_nominator, "big"),
        percent_min_fee=stored.percent_min_fee,
        percent_const_min_fee=stored.percent_const_min_fee,
    )
