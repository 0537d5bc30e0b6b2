"""A matcher's WebSocket stream of order books, an account and rates, and its resumption.

What lives here: messages in both directions, without input or output. What does not: connections
(``matcher``, ``async_matcher``). The protocol is in ``docs/reference/matcher-rest.md``.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import msgspec

from soliton.client.account import Account
from soliton.client.amounts import AssetLike, decimal_in
from soliton.client.errors import AmountError, NodeBroken
from soliton.client.matcher_routes import failure, signature_headers
from soliton.client.order import pair_text
from soliton.client.steps import FIRST_PAUSE, MAX_PAUSE

DEFAULT_DEPTH: Final = 100
SILENCE_SECONDS: Final = 90.0
"""Longest silence of a live connection: a matcher pings about every 30 seconds."""
MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
PATH: Final = "/ws/v0"
_UNREADABLE: Final = (
    *(msgspec.DecodeError, RecursionError, InvalidOperation),
    *(LookupError, TypeError, ValueError),
)
_FOR_A_WHILE: Final = frozenset((13, 14, 109051922, 109077767, 109077772))
"""Errors that end a connection and are cured by a new one."""


class LiveBook:
    """The present order book: amounts by price, both decimal numbers."""

    __slots__ = ("asks", "bids")

    def __init__(self) -> None:
        self.bids: dict[Decimal, Decimal] = {}
        self.asks: dict[Decimal, Decimal] = {}

    @property
    def best_bid(self) -> Decimal | None:
        """The highest price of a buyer, ``None`` if there is none."""
        return max(self.bids, default=None)

    @property
    def best_ask(self) -> Decimal | None:
        """The lowest price of a seller, ``None`` if there is none."""
        return min(self.asks, default=None)


class BookUpdate(msgspec.Struct, frozen=True):
    """The changed levels of a book as (price, amount), amount 0 for a removed level; ``trade`` is
    its last trade as (price, amount, side); ``book`` is the whole book now. ``is_whole`` is true
    for a snapshot, which replaces what was known before.
    """

    amount_asset: str
    price_asset: str
    book: LiveBook
    bids: tuple[tuple[Decimal, Decimal], ...] = ()
    asks: tuple[tuple[Decimal, Decimal], ...] = ()
    trade: tuple[Decimal, Decimal, str] | None = None
    is_whole: bool = False


class OrderUpdate(msgspec.Struct, frozen=True, rename=None):
    """The changes of an order; unchanged members are ``None``."""

    id: str = msgspec.field(name="i")
    status: str | None = msgspec.field(default=None, name="s")
    amount_asset: str | None = msgspec.field(default=None, name="A")
    price_asset: str | None = msgspec.field(default=None, name="P")
    side: str | None = msgspec.field(default=None, name="S")
    order_type: str | None = msgspec.field(default=None, name="T")
    timestamp: int | None = msgspec.field(default=None, name="t")
    price: Decimal | None = msgspec.field(default=None, name="p")
    amount: Decimal | None = msgspec.field(default=None, name="a")
    fee: Decimal | None = msgspec.field(default=None, name="f")
    fee_asset: str | None = msgspec.field(default=None, name="F")
    filled_amount: Decimal | None = msgspec.field(default=None, name="q")
    filled_fee: Decimal | None = msgspec.field(default=None, name="Q")
    average_price: Decimal | None = msgspec.field(default=None, name="r")
    executed: Decimal | None = msgspec.field(default=None, name="E")


class AccountUpdate(msgspec.Struct, frozen=True):
    """The changes of an account: balances by asset, as (tradable, reserved), and orders.
    ``is_whole`` is true for a snapshot.
    """

    address: str
    balances: dict[str, tuple[Decimal, Decimal]]
    orders: tuple[OrderUpdate, ...]
    is_whole: bool = False


class RatesUpdate(msgspec.Struct, frozen=True):
    """Changed rates of fee assets; -1 for one that was removed."""

    rates: dict[str, float]
    is_whole: bool = False


Update = BookUpdate | AccountUpdate | RatesUpdate


class _Account(msgspec.Struct, frozen=True):
    S: str
    U: int = 0
    b: dict[str, tuple[Decimal, Decimal]] = {}
    o: tuple[OrderUpdate, ...] = ()


class MatcherStream:
    """The state of one stream, over any number of successive connections."""

    def __init__(
        self,
        books: Iterable[tuple[AssetLike, AssetLike]] = (),
        *,
        account: Account | None = None,
        token: str | None = None,
        rates: bool = False,
        depth: int = DEFAULT_DEPTH,
    ) -> None:
        self._pairs = ["-".join(pair_text(*each)) for each in books]
        self._books: dict[str, LiveBook] = {}
        self._account = account
        self._token = token
        self._rates = rates
        self._depth = depth
        self._pause = FIRST_PAUSE

    def opening(self) -> list[str]:
        """Return the messages to send on a new connection, and forget the books."""
        self._books = {}
        messages: list[dict[str, Any]] = [
            {"T": "obs", "S": pair, "d": self._depth} for pair in self._pairs
        ]
        if self._account is not None:
            subscription: dict[str, Any] = {"T": "aus", "S": self._account.address}
            if self._token is not None:
                subscription |= {"t": "jwt", "j": self._token}
            else:
                headers = dict(signature_headers(self._account))
                subscription |= {
                    "t": "sig",
                    "j": headers["Signature"],
                    "k": self._account.public_key,
                    "_": int(headers["Timestamp"]),
                }
            messages.append(subscription)
        if self._rates:
            messages.append({"T": "rus", "S": "ru"})
        return [msgspec.json.encode(each).decode() for each in messages]

    def received(self, text: str | bytes) -> tuple[Update | None, str | None]:
        """Return the update in a message and the reply to send, either may be ``None``. Raises
        ``NodeRefused``, or ``NodeBroken`` if the connection has to be replaced.
        """
        try:
            message = msgspec.json.decode(text, type=dict[str, Any])
            kind = message.get("T")
            if kind == "pp":
                return None, text if isinstance(text, str) else text.decode()
            if kind == "e":
                raise self._failed(message)
            self._pause = FIRST_PAUSE
            match kind:
                case "ob":
                    return self._book(message), None
                case "au":
                    return _account_update(message), None
                case "ru":
                    rates = msgspec.convert(message.get("r", {}), dict[str, float])
                    return RatesUpdate(rates, message.get("U") == 0), None
        except _UNREADABLE as error:
            raise NodeBroken(f"invalid message from the matcher: {error}") from error
        return None, None

    def lost(self) -> float:
        """Return the pause in seconds before the next connection; it doubles up to a limit."""
        pause, self._pause = self._pause, min(2 * self._pause, MAX_PAUSE)
        return pause

    def _failed(self, message: dict[str, Any]) -> Exception:
        error = failure(message)
        return NodeBroken(error.message) if error.code in _FOR_A_WHILE else error

    def _book(self, message: dict[str, Any]) -> BookUpdate:
        pair, is_whole = str(message.get("S")), message.get("U") == 0
        if is_whole or pair not in self._books:
            self._books[pair] = LiveBook()
        book = self._books[pair]
        changed = []
        for side, levels in ((book.bids, message.get("b", ())), (book.asks, message.get("a", ()))):
            rows = tuple((_number(price), _number(amount)) for price, amount in levels)
            for price, amount in rows:
                if amount:
                    side[price] = amount
                else:
                    side.pop(price, None)
            changed.append(rows)
        trade = message.get("t")
        amount_asset, _, price_asset = pair.partition("-")
        return BookUpdate(
            amount_asset,
            price_asset,
            book,
            changed[0],
            changed[1],
            None if trade is None else (_number(trade[0]), _number(trade[1]), str(trade[2])),
            is_whole,
        )


def _number(value: object) -> Decimal:
    """Return a number of a message, which is text in JSON; raises ``NodeBroken``."""
    if isinstance(value, int | float):
        return Decimal(str(value))
    try:
        return decimal_in(str(value))
    except AmountError as error:
        raise NodeBroken(f"invalid message from the matcher: {error}") from error


def _account_update(message: dict[str, Any]) -> AccountUpdate:
    found = msgspec.convert(message, _Account)
    return AccountUpdate(found.S, found.b, found.o, found.U == 0)
