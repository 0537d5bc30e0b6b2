"""Snapshots of an engine: the bytes of its books, with orders by priority.

A snapshot can be written in slices while further commands are applied: a level that changes before
it is written saves its former orders (copy on write).

What lives here: writing and reading. What does not: files and checksums (``soliton.matcher``), and
the settings, which are not part of a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Self

import msgspec

from soliton.chain.errors import ChainError
from soliton.chain.orders import Side
from soliton.errors import InputError, InvariantBroken
from soliton.matching.book import BookSide, LastTrade, OrderBook, check_invariants
from soliton.matching.commands import read_order, write_order
from soliton.matching.model import ActiveOrder
from soliton.matching.pairs import pair_to_bytes, read_pair

FORMAT_VERSION: Final = 1
SLICE: Final = 250
"""The number of orders in a slice: about half a millisecond's work."""
MAX_NUMBER_BYTES: Final = 32
"""The maximum length of the sum of amounts times prices, which exceeds 64 bits."""


class SnapshotError(InputError):
    """The bytes are not a snapshot of an engine."""


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


def write(last_offset: int, last_timestamp: int, books: Sequence[OrderBook]) -> bytes:
    """The bytes of a snapshot after the command at ``last_offset``."""
    writing = Writing(last_offset, last_timestamp, books)
    for _ in writing.slices():
        pass
    return b"".join(writing.pieces)


class Writing:
    """A snapshot being written, of the books after the command at ``last_offset``.

    Use it as a context manager to write in slices between commands: inside, the books save what
    changes.
    """

    def __init__(self, last_offset: int, last_timestamp: int, books: Sequence[OrderBook]) -> None:
        self.last_offset = last_offset
        self.pieces: list[bytes] = []
        """Joined, they are the snapshot once ``slices`` is exhausted."""
        self._last_timestamp = last_timestamp
        # A copy of all that may change, except the levels' orders.
        self._books = [
            (_head_of(book), [_Side(side, list(side.ranks)) for side in (book.bids, book.asks)])
            for book in books
        ]

    def __enter__(self) -> Self:
        """Raises ``InvariantBroken`` if another snapshot of the books is being written."""
        for each in self._sides():
            if each.side.kept is not None:
                raise InvariantBroken("a snapshot of these books is being written already")
            each.side.kept = each.kept
        return self

    def __exit__(self, *_exception: object) -> None:
        for each in self._sides():
            each.side.kept = None

    def _sides(self) -> Iterator[_Side]:
        for _, sides in self._books:
            yield from sides

    def slices(self, orders: int = SLICE) -> Iterator[None]:
        """Write the snapshot, yielding after so many orders."""
        numbers = (FORMAT_VERSION, self.last_offset, self._last_timestamp)
        self.pieces.append(_members(numbers, 1) + _list_of(len(self._books)))
        for head, sides in self._books:
            self.pieces.append(_members(head, 2))
            for side in sides:
                yield from self._write_side(side, orders)

    def _write_side(self, side: _Side, orders: int) -> Iterator[None]:
        header_index, count = len(self.pieces), 0
        self.pieces.append(b"")
        rows: list[bytes] = []
        for rank in reversed(side.ranks):
            price, kept = abs(rank), side.kept.get(rank)
            for active in side.side.levels[rank].orders() if kept is None else kept:
                rows.append(_ENCODER.encode(_write_order(price, active)))
                if len(rows) == orders:
                    self.pieces.append(b"".join(rows))
                    count += orders
                    rows.clear()
                    yield
        self.pieces.append(b"".join(rows))
        self.pieces[header_index] = _list_of(count + len(rows))


class _Side(msgspec.Struct):
    """A side of a book, its levels at the start, and the former orders of changed levels."""

    side: BookSide
    ranks: list[int]
    kept: dict[int, list[ActiveOrder]] = {}


def _head_of(book: OrderBook) -> tuple[object, ...]:
    """The fields of a ``_Book`` before its orders."""
    trade = book.last_trade
    return (
        pair_to_bytes(book.pair),
        book.created,
        book.changed_at,
        book.next_timestamp,
        None if trade is None else _Trade(trade.price, trade.amount, trade.side),
    )


def _members(values: Sequence[object], more: int) -> bytes:
    """The start of an array: its first members; ``more`` follow."""
    return _list_of(len(values) + more) + b"".join(map(_ENCODER.encode, values))


def _list_of(count: int) -> bytes:
    """The header of an array (https://github.com/msgpack/msgpack/blob/master/spec.md, array format
    family).
    """
    if count < 1 << 4:
        return bytes((0x90 | count,))
    if count < 1 << 16:
        return b"\xdc" + count.to_bytes(2, "big")
    return b"\xdd" + count.to_bytes(4, "big")


def _write_order(level_price: int, active: ActiveOrder) -> _Order:
    return _Order(
        level_price,
        write_order(active.order),
        active.amount,
        active.fee,
        active.price_nominator.to_bytes(MAX_NUMBER_BYTES, "big").lstrip(b"\0"),
        active.percent_min_fee,
        active.percent_const_min_fee,
    )


def read(data: bytes) -> tuple[int, int, list[OrderBook]]:
    """The inverse of ``write``; raises ``SnapshotError``, also for inconsistent books."""
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
    # Most orders are unfilled: reusing the order's own int objects saves memory.
    return ActiveOrder(
        order,
        is_market=False,
        amount=order.amount if stored.amount == order.amount else stored.amount,
        fee=order.matcher_fee if stored.fee == order.matcher_fee else stored.fee,
        price_nominator=int.from_bytes(stored.price_nominator, "big"),
        percent_min_fee=stored.percent_min_fee,
        percent_const_min_fee=stored.percent_const_min_fee,
    )
