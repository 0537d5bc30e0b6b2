"""Order books: depth, status, markets, and the operator's actions on a whole book.

Responses about depth are cached in encoded form, by the request's own bytes, until the book
changes: most requests to a matcher are these.

What lives here: the routes and that cache. What does not: the books (``soliton.matching``).

Sources: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/http/routes/v0/MarketsRoute.scala``,
``routes/v1/OrderBookRoute.scala``, ``OrderBookHttpInfo.scala``, ``entities/HttpOrderBook.scala``.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Final

from soliton.chain.values import MAX_I64
from soliton.crypto import base58
from soliton.matcher.effects import Listener
from soliton.matcher.rest import examples
from soliton.matcher.rest.answers import (
    ACCEPTED,
    Answer,
    Refusal,
    bounded,
    encode_json,
    envelope,
    message,
    refuse,
)
from soliton.matcher.rest.requests import (
    Request,
    pair_assets,
    pair_or_redirect,
    read_depth,
    read_pair,
    traded_pair,
)
from soliton.matcher.rest.routes import row, table
from soliton.matcher.service import Matcher
from soliton.matching import errors
from soliton.matching.arithmetic import decimal_text, denormalize_amount, denormalize_price
from soliton.matching.book import LevelTotal, OrderBook
from soliton.matching.errors import MatcherError
from soliton.matching.events import (
    BookDeleted,
    Event,
    ExecutionCorrected,
    OrderAdded,
    OrderCanceled,
    OrderCancelFailed,
    OrderExecuted,
)
from soliton.matching.pairs import AssetPair, asset_text
from soliton.web.answers import Whole
from soliton.web.parameters import Kind

MAX_CACHED_PER_BOOK: Final = 16
"""The maximum number of cached requests per book, which differ in their depth."""

_BLACKLISTED_CLASSES: Final = (2, 5)
"""The last byte of the codes for a denied or blacklisted pair."""


def pair_of_event(event: Event) -> AssetPair | None:
    """The pair of an event's book; ``None`` for a failed cancellation."""
    match event:
        case (
            OrderAdded(order=order)
            | OrderCanceled(order=order)
            | OrderExecuted(taker=order)
            | ExecutionCorrected(taker=order)
        ):
            return order.pair
        case BookDeleted(pair=pair):
            return pair
        case OrderCancelFailed():
            return None


class BookAnswers(Listener):
    """A cache of encoded responses about order books, each until its book changes."""

    __slots__ = ("_by_pair", "_cached")

    def __init__(self) -> None:
        self._cached: dict[tuple[str, bytes], Whole] = {}
        self._by_pair: dict[AssetPair, list[tuple[str, bytes]]] = {}

    def get(self, raw_path: str, query_string: bytes) -> Whole | None:
        """The cached response to a request, or None."""
        return self._cached.get((raw_path, query_string))

    def put(self, raw_path: str, request: Request, answer: Whole) -> None:
        """Cache a response about the book in the request's path."""
        pair = read_pair(*request.segments[2:4])
        if answer.status != 200 or request.core.engine.book(pair) is None:
            return
        keys = self._by_pair.setdefault(pair, [])
        key = (raw_path, request.query_string)
        if len(keys) < MAX_CACHED_PER_BOOK and key not in self._cached:
            keys.append(key)
            self._cached[key] = answer

    def on_events(self, offset: int, timestamp: int, events: Sequence[Event]) -> None:
        """Drop the responses about the one book that a command concerns."""
        del offset, timestamp
        pair = pair_of_event(events[0]) if events else None
        if pair is not None:
            for key in self._by_pair.pop(pair, ()):
                del self._cached[key]


# --- depth ----------------------------------------------------------------------------------------


def served_depth(core: Matcher, depth: int | None) -> int:
    """The least configured depth that covers the requested one."""
    ranges = core.settings.depth_ranges
    requested = core.settings.default_depth if depth is None else depth
    return next((limit for limit in ranges if limit >= requested), ranges[-1])


async def order_book(request: Request) -> Answer:
    """The best levels of a book, in the units of orders."""
    depth = read_depth(request.query())
    pair = await pair_or_redirect(request)
    book, limit = request.core.engine.book(pair), served_depth(request.core, depth)
    bids, asks = ([], []) if book is None else book.depth(limit)
    return Answer(
        encode_json(
            {
                "timestamp": request.core.now() if book is None else book.changed_at,
                "pair": pair.to_json(),
                "bids": _bounded(bids),
                "asks": _bounded(asks),
            }
        )
    )


def _bounded(levels: list[LevelTotal]) -> list[LevelTotal]:
    if all(level.amount <= MAX_I64 for level in levels):
        return levels
    return [LevelTotal(level.price, bounded(level.amount)) for level in levels]


async def order_book_in_text(request: Request) -> Answer:
    """The best levels of a book, as decimal text."""
    core = request.core
    pair = await traded_pair(core, read_pair(*request.segments[3:5]))
    limit = served_depth(core, read_depth_of_either_sign(request))
    amount_decimals, price_decimals = (each.decimals for each in await pair_assets(core, pair))
    book = core.engine.book(pair)
    bids, asks = ([], []) if book is None else book.depth(limit)

    def in_text(levels: list[LevelTotal]) -> list[tuple[str, str]]:
        out = []
        for level in levels:
            price = denormalize_price(level.price, amount_decimals, price_decimals)
            amount = denormalize_amount(level.amount, amount_decimals)
            out.append((_padded(price, price_decimals), _padded(amount, amount_decimals)))
        return out

    changed_at = core.now() if book is None else book.changed_at
    body = {"timestamp": changed_at, "bids": in_text(bids), "asks": in_text(asks)}
    return Answer(encode_json(body))


def read_depth_of_either_sign(request: Request) -> int | None:
    """The depth for the ``/api/v1`` route. For a negative one the smallest depth is served, as in
    the reference, and a blank one is none.
    """
    query = request.query()
    text = query.get("depth", "")
    if not text:
        return None
    if text[:1] != "-":
        return read_depth(query)
    return -(read_depth({"depth": text[1:]}) or 0)


def _padded(value: Decimal, decimals: int) -> str:
    return format(value.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_EVEN), "f")


# --- one book -------------------------------------------------------------------------------------


async def book_status(request: Request) -> Answer:
    """The best levels and the last trade."""
    book = request.core.engine.book(await pair_or_redirect(request))
    return envelope({} if book is None else _status_json(book))


def _status_json(book: OrderBook) -> dict[str, Any]:
    status = book.status()
    body: dict[str, Any] = {}
    if (trade := status.last_trade) is not None:
        side = trade.side.name.lower()
        body |= {"lastPrice": trade.price, "lastAmount": trade.amount, "lastSide": side}
    if (bid := status.best_bid) is not None:
        body |= {"bid": bid.price, "bidAmount": bounded(bid.amount)}
    if (ask := status.best_ask) is not None:
        body |= {"ask": ask.price, "askAmount": bounded(ask.amount)}
    return body


async def book_info(request: Request) -> Answer:
    """Restrictions and tick size."""
    return envelope(await _info_json(request.core, await pair_or_redirect(request)))


async def _info_json(core: Matcher, pair: AssetPair) -> dict[str, Any]:
    tick = decimal_text(await tick_size(core, pair))
    body: dict[str, Any] = {"matchingRules": {"tickSize": tick}}
    restrictions = core.placement.restrictions.get(pair)
    if restrictions is not None:
        body["restrictions"] = {
            "stepAmount": decimal_text(restrictions.step_amount),
            "minAmount": decimal_text(restrictions.min_amount),
            "maxAmount": decimal_text(restrictions.max_amount),
            "stepPrice": decimal_text(restrictions.step_price),
            "minPrice": decimal_text(restrictions.min_price),
            "maxPrice": decimal_text(restrictions.max_price),
        }
    return body


async def tick_size(core: Matcher, pair: AssetPair) -> Decimal:
    """The tick size for the next order of a pair, as a decimal."""
    amount, price = await pair_assets(core, pair)
    decimals = amount.decimals, price.decimals
    return denormalize_price(core.engine.tick_size(pair, *decimals), *decimals)


async def markets(request: Request) -> Answer:
    """All existing books, except those of pairs that are no longer allowed."""
    core = request.core
    found = [
        market
        for pair, created in core.queries.listed_pairs().items()
        if (market := await _market_json(core, pair, created)) is not None
    ]
    return envelope({"matcherPublicKey": base58.encode(core.public_key), "markets": found})


async def _market_json(core: Matcher, pair: AssetPair, created: int) -> dict[str, Any] | None:
    try:
        amount, price = await pair_assets(core, pair)
    except MatcherError:
        return None  # An asset may be gone after a rollback of the chain.
    return {
        "amountAsset": asset_text(pair.amount_asset),
        "amountAssetName": amount.name,
        "amountAssetInfo": {"decimals": amount.decimals},
        "priceAsset": asset_text(pair.price_asset),
        "priceAssetName": price.name,
        "priceAssetInfo": {"decimals": price.decimals},
        "created": created,
        **await _info_json(core, pair),
    }


# --- for the operator -----------------------------------------------------------------------------


async def delete_book(request: Request) -> Answer:
    """Delete the book of a pair that is no longer allowed."""
    core, pair = request.core, read_pair(*request.segments[2:4])
    try:
        await traded_pair(core, pair)
    except Refusal as refusal:
        if refusal.word != "InfoNotFound" or not _is_denied(refusal.error):
            raise
    else:
        raise refuse(errors.ASSET_PAIR_NOT_BLACKLISTED, "InfoNotFound", assetPair=pair)
    _require_book(core, pair)
    await core.canceling.delete_book(pair)
    return message("Deleting order book", ACCEPTED)


def _is_denied(error: MatcherError) -> bool:
    return error.code & 0xFF in _BLACKLISTED_CLASSES


async def cancel_all_in_book(request: Request) -> Answer:
    """Cancel all orders of a pair."""
    core = request.core
    pair = await traded_pair(core, read_pair(*request.segments[2:4]))
    _require_book(core, pair)
    await core.canceling.cancel_all_in_book(pair)
    return message("Canceling all orders in order book", ACCEPTED)


def _require_book(core: Matcher, pair: AssetPair) -> None:
    if pair not in core.queries.pairs():
        raise refuse(errors.ORDER_BOOK_BROKEN, "OrderBookUnavailable", assetPair=pair)


_LEVELS: Final = Kind("levels", {"type": "integer", "minimum": 0}, lambda text: text)
_PARAMETERS: Final = """
depth | levels | How many levels; rounded up to the next depth that the matcher serves. | -
"""
ROUTES: Final = table("markets", _PARAMETERS,
    row("GET /matcher/orderbook", markets, "All markets", examples.MARKETS),
    row("GET /matcher/orderbook/{amount}/{price}/info", book_info, "Restrictions and tick size",
        examples.BOOK_INFO, redirects=True),
    row("GET /matcher/orderbook/{amount}/{price}/status", book_status, "Best levels and last trade",
        examples.BOOK_STATUS, redirects=True),
    row("DELETE /matcher/orderbook/{amount}/{price} auth=key", delete_book,
        "Delete the book of a pair that is not allowed",
        examples.done("Deleting order book"),
        status=ACCEPTED),
    row("POST /matcher/orderbook/{amount}/{price}/cancelAll auth=key", cancel_all_in_book,
        "Cancel all orders of a pair",
        examples.done("Canceling all orders in order book"), status=ACCEPTED),
    row("GET /api/v1/orderbook/{amount}/{price}?depth", order_book_in_text,
        "An order book as decimal text", examples.BOOK_IN_TEXT),
    kinds=(_LEVELS,),
)  # fmt: skip

(DEPTH_ROUTE,) = table("markets", _PARAMETERS,
    row("GET /matcher/orderbook/{amount}/{price}?depth", order_book,
        "An order book in the units of orders", examples.BOOK, redirects=True,
        statuses={403: "The path is that of an order, and its public key cannot be read."}),
    kinds=(_LEVELS,),
)  # fmt: skip
"""Separate from the others, since a signed route of the same form comes before it."""
