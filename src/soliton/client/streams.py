"""Streams of a matcher: order books, an account, rates, over a WebSocket; and going on after a
break.

What lives here: what is sent and what comes, without input or output. What does not: connections
(``matcher``, ``async_matcher``). The protocol is in ``docs/reference/matcher-rest.md``.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import msgspec

from soliton.client.account import Account
from soliton.client.amounts import AssetLike
from soliton.client.errors import NodeBroken
from soliton.client.matcher_routes import failure, signature_headers
from soliton.client.order import pair_text
from soliton.client.steps import FIRST_PAUSE, MAX_PAUSE

DEFAULT_DEPTH: Final = 100
SILENCE_SECONDS: Final = 90.0
"""A matcher pings every 30 seconds or so."""
MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
PATH: Final = "/ws/v0"
_UNREADABLE: Final = (
    *(msgspec.DecodeError, RecursionError, InvalidOperation),
    *(LookupError, TypeError, ValueError),
)
_FOR_A_WHILE: Final = frozenset((13, 14, 109051922, 109077767, 109077772))
"""Errors that end a connection, after which another one is as good as new."""


class LiveBook:
    """An order book as it is now: prices with amounts, both decimal numbers."""

    __slots__ = ("asks", "bids")

    def __init__(self) -> None:
        self.bids: dict[Decimal, Decimal] = {}
        self.asks: dict[Decimal, Decimal] = {}

    @property
    def best_bid(self) -> Decimal | None:
        """The highest price that somebody wants to buy at."""
        return max(self.bids, default=None)

    @property
    def best_ask(self) -> Decimal | None:
        """The lowest price that somebody wants to sell at."""
        return min(self.asks, default=None)


class BookUpdate(msgspec.Struct, frozen=True):
    """Levels of a book that have changed (amount 0: gone), its last trade as price, amount and
    side; ``book`` is all of it as it is now. ``is_whole`` where it begins (again).
    """

    amount_asset: str
    price_asset: str
    book: LiveBook
    bids: tuple[tuple[Decimal, Decimal], ...] = ()
    asks: tuple[tuple[Decimal, Decimal], ...] = ()
    trade: tuple[Decimal, Decimal, str] | None = None
    is_whole: bool = False


class OrderUpdate(msgspec.Struct, frozen=True, rename=None):
    """What changed about an order; what did not is ``None``."""

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
    """What changed of an account: balances by asset, tradable and reserved, and orders.
    ``is_whole`` where it begins (again).
    """

    address: str
    balances: dict[str, tuple[Decimal, Decimal]]
    orders: tuple[OrderUpdate, ...]
    is_whole: bool = False


class RatesUpdate(msgspec.Struct, frozen=True):
    """Rates of fee assets that have changed; one that is gone is -1."""

    rates: dict[str, float]
    is_whole: bool = False


Update = BookUpdate | AccountUpdate | RatesUpdate


class _Account(msgspec.Struct, frozen=True):
    S: str
    U: int = 0
    b: dict[str, tuple[Decimal, Decimal]] = {}
    o: tuple[OrderUpdate, ...] = ()


class MatcherStream:
    """One stream, over as many connections as it takes."""

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
        """What to send when a connection is there."""
        self._books = {}
        messages: list[dict[str, Any]] = [
            {"T": "obs", "S": pair, "d": self._depth} for pair in self._pairs
        ]
        if self._account is not None:
            of_account: dict[str, Any] = {"T": "aus", "S": self._account.address}
            if self._token is not None:
                of_account |= {"t": "jwt", "j": self._token}
            else:
                headers = dict(signature_headers(self._account))
                of_account |= {
                    "t": "sig",
                    "j": headers["Signature"],
                    "k": self._account.public_key,
                    "_": int(headers["Timestamp"]),
                }
            messages.append(of_account)
        if self._rates:
            messages.append({"T": "rus", "S": "ru"})
        return [msgspec.json.encode(each).decode() for each in messages]

    def received(self, text: str | bytes) -> tuple[Update | None, str | None]:
        """The update in a message, and what to send back, if anything. Raises ``NodeRefused``, or
        ``NodeBroken`` where the connection is done with.
        """
        try:
            told = msgspec.json.decode(text, type=dict[str, Any])
            kind = told.get("T")
            if kind == "pp":
                return None, text if isinstance(text, str) else text.decode()
            if kind == "e":
                raise self._failed(told)
            self._pause = FIRST_PAUSE
            match kind:
                case "ob":
                    return self._book(told), None
                case "au":
                    return _account_update(told), None
                case "ru":
                    rates = msgspec.convert(told.get("r", {}), dict[str, float])
                    return RatesUpdate(rates, told.get("U") == 0), None
        except _UNREADABLE as error:
            raise NodeBroken(f"no message of a matcher: {error}") from error
        return None, None

    def lost(self) -> float:
        """For how long to pause before the next connection."""
        pause, self._pause = self._pause, min(2 * self._pause, MAX_PAUSE)
        return pause

    def _failed(self, told: dict[str, Any]) -> Exception:
        error = failure(told)
        return NodeBroken(error.message) if error.code in _FOR_A_WHILE else error

    def _book(self, told: dict[str, Any]) -> BookUpdate:
        pair, is_whole = str(told.get("S")), told.get("U") == 0
        if is_whole or pair not in self._books:
            self._books[pair] = LiveBook()
        book = self._books[pair]
        changed = []
        for side, levels in ((book.bids, told.get("b", ())), (book.asks, told.get("a", ()))):
            rows = tuple((Decimal(price), Decimal(amount)) for price, amount in levels)
            for price, amount in rows:
                if amount:
                    side[price] = amount
                else:
                    side.pop(price, None)
            changed.append(rows)
        trade = told.get("t")
        amount_asset, _, price_asset = pair.partition("-")
        return BookUpdate(
            amount_asset,
            price_asset,
            book,
            changed[0],
            changed[1],
            None if trade is None else (Decimal(trade[0]), Decimal(trade[1]), str(trade[2])),
            is_whole,
        )


def _account_update(told: dict[str, Any]) -> AccountUpdate:
    found = msgspec.convert(told, _Account)
    return AccountUpdate(found.S, found.b, found.o, found.U == 0)
