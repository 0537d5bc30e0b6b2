"""The routes of a matcher: one function for each request and its response.

What lives here: placing, cancelling, books, balances, histories, as steps. What does not: streams,
connections, and making orders (``order``).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec

from soliton.chain.errors import FormatError
from soliton.chain.layouts import DIGEST_LENGTH
from soliton.client.account import Account
from soliton.client.amounts import AssetLike
from soliton.client.delivery import deliver, is_uncertain, nothing_to_ask
from soliton.client.errors import NodeBroken, NodeRefused
from soliton.client.making import Whom
from soliton.client.matcher_records import (
    AssetPair,
    Book,
    BookStatus,
    Candle,
    Market,
    MarketList,
    MatcherSettings,
    OrderInfo,
    OrderStatus,
    Ticker,
    Trade,
)
from soliton.client.order import Order, key_bytes, pair_text
from soliton.client.records import TransactionInfo, transaction_info
from soliton.client.routes.accounts import address_of
from soliton.client.steps import (
    JSON,
    Answer,
    Core,
    Request,
    Steps,
    ask,
    call,
    check_same,
    decoded,
    get,
    post,
    query,
    refused,
    segment,
)
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.errors import InputError

Json = dict[str, Any]

NOT_FOUND: Final = "NotFound"
_MAX_ID_CHARS: Final = 64
_REVERSED: Final = 301
_OUTCOME_UNKNOWN: Final = 25612
_DUPLICATE: Final = 3148040
_CANCELLED: Final = frozenset((9437194, 9437195))
"""Error codes of an order that is already cancelled or completed."""


class HasPair(Protocol):
    """An order, or a matcher's record of one."""

    @property
    def id(self) -> str: ...

    @property
    def amount_asset(self) -> str | None: ...

    @property
    def price_asset(self) -> str | None: ...


def signature_headers(account: Account) -> tuple[tuple[str, str], ...]:
    """Return the headers that authenticate an account: its signature of its key and the time."""
    stamp = time.time_ns() // 1_000_000
    signature = account.sign(account.public_key_bytes + stamp.to_bytes(8, "big"))
    return (("Timestamp", str(stamp)), ("Signature", base58.encode(signature)))


def _book(asset: AssetLike, price_asset: AssetLike) -> str:
    amount, price = pair_text(asset, price_asset)
    return f"/matcher/orderbook/{segment(amount)}/{segment(price)}"


def _market(kind: str, asset: AssetLike, price_asset: AssetLike) -> str:
    amount, price = pair_text(asset, price_asset)
    return f"/api/v1/{kind}/{segment(amount)}/{segment(price)}"


# --- markets --------------------------------------------------------------------------------------


def public_key(core: Core) -> Steps[str]:
    """The matcher's public key, which its orders have to name. It is requested, unless the client
    was made with it.
    """
    if core.matcher_key is not None:
        return core.matcher_key
    found = yield from get(core, "/matcher", str)
    try:
        return base58.encode(key_bytes(found))
    except InputError as error:
        raise NodeBroken(f"invalid response from the matcher: {error}") from error


def settings(core: Core) -> Steps[MatcherSettings]:
    """The matcher's requirements for orders."""
    return get(core, "/matcher/settings", MatcherSettings)


def rates(core: Core) -> Steps[dict[str, float]]:
    """The rates of the assets that fees can be paid in."""
    return get(core, "/matcher/settings/rates", dict[str, float])


def markets(core: Core) -> Steps[list[Market]]:
    """All pairs that have an order book."""
    listing = yield from get(core, "/matcher/orderbook", MarketList)
    return listing.markets


def pair(core: Core, asset: AssetLike, price_asset: AssetLike) -> Steps[AssetPair]:
    """Two assets in the order in which the matcher trades them, as (amount, price) asset."""
    answer = yield from call(core, Request("GET", _book(asset, price_asset) + "/status"))
    amount, price = pair_text(asset, price_asset)
    if answer.status == _REVERSED:
        return AssetPair(price, amount)
    if answer.status != 200:
        raise refused(answer)
    return AssetPair(amount, price)


def book(
    core: Core, asset: AssetLike, price_asset: AssetLike, depth: int | None = None
) -> Steps[Book]:
    """The order book of a pair; ``depth`` limits the levels of each side."""
    return get(core, _book(asset, price_asset) + query(depth=depth), Book)


def book_status(core: Core, asset: AssetLike, price_asset: AssetLike) -> Steps[BookStatus]:
    """The best levels of a book, and its last trade."""
    return get(core, _book(asset, price_asset) + "/status", BookStatus)


def pair_rules(core: Core, asset: AssetLike, price_asset: AssetLike) -> Steps[Json]:
    """The requirements for orders of a pair."""
    return get(core, _book(asset, price_asset) + "/info", Json)


def order_fee(
    core: Core, side: str, amount: int, price: int, asset: AssetLike, price_asset: AssetLike
) -> Steps[Json]:
    """The minimum fee of an order: ``base``, and ``discount`` if there is one. ``amount`` and
    ``price`` are integers as in orders.
    """
    body = {"orderType": side, "amount": amount, "price": price}
    return post(core, _book(asset, price_asset) + "/calculateFee", body, Json)


def tickers(core: Core) -> Steps[list[Ticker]]:
    """The last 24 hours of all pairs. Only Soliton's matcher has this route."""
    return get(core, "/api/v1/tickers", list[Ticker])


def trades(
    core: Core,
    asset: AssetLike,
    price_asset: AssetLike,
    limit: int | None = None,
    since: int | None = None,
) -> Steps[list[Trade]]:
    """Executions of a pair, the oldest first. Only Soliton's matcher has this route."""
    path = _market("trades", asset, price_asset) + query(limit=limit, since=since)
    return get(core, path, list[Trade])


def candles(
    core: Core,
    asset: AssetLike,
    price_asset: AssetLike,
    interval: str | None = None,
    since: int | None = None,
    limit: int | None = None,
) -> Steps[list[Candle]]:
    """Candles of a pair, the oldest first. Only Soliton's matcher has this route."""
    path = _market("candles", asset, price_asset)
    return get(core, path + query(interval=interval, since=since, limit=limit), list[Candle])


# --- orders ---------------------------------------------------------------------------------------


def place(core: Core, order: Order, *, market: bool = False) -> Steps[str]:
    """Place an order and return its id. A ``market`` order is executed at once, as far as possible,
    and never enters the book. Raises ``NodeRefused``, or ``OutcomeUnknown`` if it cannot be known
    whether the order arrived.
    """
    if core.matcher_key not in (None, order.matcher_public_key):
        raise FormatError(f"an order for the matcher {order.matcher_public_key}, not this one")
    path = "/matcher/orderbook/market" if market else "/matcher/orderbook"
    request = Request("POST", path, msgspec.json.encode(order.to_json()), JSON, repeatable=False)

    def read(answer: Answer) -> str:
        _accepted(answer)
        return order.id

    def settle(refused: NodeRefused | None) -> Steps[str | None]:
        if refused is not None and refused.code == _DUPLICATE:
            return order.id
        found = yield from order_status(core, order)
        return None if found.status == NOT_FOUND else order.id

    return deliver(core, request, order.id, read, settle, _is_uncertain)


def cancel(core: Core, account: Account, order: HasPair) -> Steps[None]:
    """Cancel an order of an account. Raises ``FormatError`` for what is no id of an order,
    ``NodeRefused``, or ``OutcomeUnknown`` if it cannot be known whether the request arrived.
    """
    signature = account.sign(account.public_key_bytes + _id_bytes(order.id))
    body = {
        "sender": account.public_key,
        "orderId": order.id,
        "signature": base58.encode(signature),
    }
    path = _book(order.amount_asset, order.price_asset) + "/cancel"
    request = Request("POST", path, msgspec.json.encode(body), JSON, repeatable=False)

    def settle(refused: NodeRefused | None) -> Steps[bool | None]:
        if refused is not None and refused.code in _CANCELLED:
            return True
        found = yield from order_status(core, order)
        return True if found.status == "Cancelled" else None

    yield from deliver(core, request, order.id, _accepted, settle, _is_uncertain)


def _id_bytes(order_id: str) -> bytes:
    """The bytes of an order's id, which may be from a matcher's answer: longer bytes behind the
    public key would be an order of version 1, signed for whoever chose them.
    """
    try:
        found = base58.decode(order_id, _MAX_ID_CHARS)
    except Base58Error as error:
        raise FormatError(f"{order_id:.60} is no id of an order: {error}") from error
    if len(found) != DIGEST_LENGTH:
        raise FormatError(f"{order_id:.60} is no id of an order: {DIGEST_LENGTH} bytes in base58")
    return found


def cancel_all(
    core: Core,
    account: Account,
    asset: AssetLike = None,
    price_asset: AssetLike = None,
) -> Steps[None]:
    """Cancel all orders of an account, or all of a pair. Raises ``NodeRefused``, or
    ``OutcomeUnknown`` with the account's address; the request may be repeated.
    """
    headers = dict(signature_headers(account))
    body = {
        "sender": account.public_key,
        "timestamp": int(headers["Timestamp"]),
        "signature": headers["Signature"],
    }
    everything = pair_text(asset, price_asset) == ("WAVES", "WAVES")
    path = "/matcher/orderbook" if everything else _book(asset, price_asset)
    request = Request("POST", path + "/cancel", msgspec.json.encode(body), JSON)
    name = account.address
    yield from deliver(core, request, name, _accepted, nothing_to_ask, _is_uncertain)


def _accepted(answer: Answer) -> bool:
    """True for a matcher's response that it has done something. Raises ``NodeRefused``, or
    ``NodeBroken`` for a response that is not JSON: it comes from a proxy.
    """
    if answer.status != 200:
        raise refused(answer)
    decoded(answer, Any)
    return True


def _is_uncertain(error: NodeRefused) -> bool:
    return is_uncertain(error) or error.code == _OUTCOME_UNKNOWN


def order_status(core: Core, order: HasPair) -> Steps[OrderStatus]:
    """The status of an order; ``NotFound`` if the matcher does not know it."""
    path = _book(order.amount_asset, order.price_asset) + f"/{segment(order.id)}"
    answer = yield from call(core, Request("GET", path))
    if answer.status == 404:
        refusal = refused(answer)
        if refusal.code == 0:
            raise refusal
        return OrderStatus(NOT_FOUND)
    return decoded(answer, OrderStatus)


def order_transactions(core: Core, order_id: str) -> Steps[list[TransactionInfo]]:
    """The exchange transactions of an order."""
    rows = yield from get(core, f"/matcher/transactions/{segment(order_id)}", list[Json])
    try:
        return [transaction_info(row) for row in rows]
    except msgspec.ValidationError as error:
        raise NodeBroken(f"invalid response from the matcher: {error}") from error


# --- private data of an account -------------------------------------------------------------------


def orders(
    core: Core,
    account: Account,
    asset: AssetLike = None,
    price_asset: AssetLike = None,
    *,
    active: bool | None = None,
) -> Steps[list[OrderInfo]]:
    """The orders of an account, the active ones first: all, or those of a pair; with ``active``,
    only active ones (``True``) or only completed ones (``False``).
    """
    base = "/matcher/orderbook"
    if pair_text(asset, price_asset) != ("WAVES", "WAVES"):
        base = _book(asset, price_asset) + "/publicKey"
    flags = query(activeOnly=True if active else None, closedOnly=True if active is False else None)
    path = f"{base}/{segment(account.public_key)}{flags}"
    return _own(core, account, path, list[OrderInfo])


def order(core: Core, account: Account, order_id: str) -> Steps[OrderInfo]:
    """An order of an account; raises ``NotFound``."""
    path = f"/matcher/orderbook/{segment(account.public_key)}/{segment(order_id)}"
    found: OrderInfo = yield from _own(core, account, path, OrderInfo)
    check_same("an order", found.id, order_id)
    return found


def reserved(core: Core, account: Account) -> Steps[dict[str, int]]:
    """The amounts reserved for the orders of an account, by asset (the coin is ``WAVES``)."""
    path = f"/matcher/balance/reserved/{segment(account.public_key)}"
    return _own(core, account, path, dict[str, int])


def tradable(
    core: Core, account: Whom, asset: AssetLike, price_asset: AssetLike
) -> Steps[dict[str, int]]:
    """The amounts that an account can trade in a pair, by asset."""
    path = _book(asset, price_asset) + f"/tradableBalance/{address_of(account)}"
    return get(core, path, dict[str, int])


def _own(core: Core, account: Account, path: str, kind: Any) -> Steps[Any]:  # noqa: ANN401
    return ask(core, Request("GET", path, headers=signature_headers(account)), kind)


def failure(details: Mapping[str, Any]) -> NodeRefused:
    """Return the error in a message of a stream."""
    code = details.get("c")
    return NodeRefused(code if type(code) is int else 0, str(details.get("m", "")), details=details)
