"""Orders of accounts: status, history and transactions.

What lives here: the routes and the JSON of an order's record. What does not: the records
(``soliton.matcher.records``).

Sources: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/http/routes/v0/{HistoryRoute,MarketsRoute,
TransactionsRoute}.scala``.
"""

from __future__ import annotations

from typing import Any, Final

from soliton.chain.addresses import Address
from soliton.chain.transactions import codec
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.matcher.records import OrderInfo
from soliton.matcher.rest import auth, examples
from soliton.matcher.rest.answers import (
    METHOD_NOT_ALLOWED,
    Answer,
    bounded,
    encode_json,
    envelope,
    plain,
    refuse,
)
from soliton.matcher.rest.order_json import order_json
from soliton.matcher.rest.requests import (
    Request,
    owner_of,
    pair_assets,
    pair_or_redirect,
    read_address,
    read_flag,
    read_json,
    read_order_id,
    read_public_key,
)
from soliton.matcher.rest.routes import row, table
from soliton.matcher.service import Matcher
from soliton.matcher.time_slices import in_slices
from soliton.matching.errors import FEATURE_NOT_IMPLEMENTED, ORDER_NOT_FOUND
from soliton.matching.model import OrderStatus
from soliton.matching.pairs import AssetPair, asset_text, pair_of

_FIXED_PRICE_VERSION: Final = 3
"""From this version on, the price of exchange transactions has eight decimals for every pair."""
TRANSACTION_SLICE: Final = 20
"""Transactions that are decoded between two pauses; each takes some 100 µs."""
_TRANSACTION_MEMBERS: Final = (
    *("type", "chainId", "id", "sender", "senderPublicKey", "fee", "feeAssetId", "timestamp"),
    *("proofs", "version", "order1", "order2", "amount", "price", "assetDecimalsPrice"),
    *("buyMatcherFee", "sellMatcherFee"),
)
"""In the order of the reference, whose transactions have a chain id in all versions."""
_UNTOUCHED: Final = (OrderStatus.ACCEPTED, OrderStatus.NOT_FOUND)


def item_json(info: OrderInfo) -> dict[str, Any]:
    """An order as an item of a list."""
    return {
        "id": base58.encode(info.id),
        "type": info.side.name.lower(),
        "orderType": "market" if info.is_market else "limit",
        "amount": info.amount,
        "filled": info.filled,
        "price": info.price,
        "fee": info.fee,
        "filledFee": info.filled_fee,
        "feeAsset": asset_text(info.fee_asset),
        "timestamp": info.timestamp,
        "status": info.status.value,
        "assetPair": info.pair.to_json(),
        "avgWeighedPrice": info.average_price,
        "version": info.version,
        "totalExecutedPriceAssets": bounded(info.executed_price_assets),
    }


# --- one order ------------------------------------------------------------------------------------


async def order_status(request: Request) -> Answer:
    """The status of an order, for anyone who knows its id."""
    order_id = read_order_id(request.segments[4])
    await pair_or_redirect(request)
    info = request.core.queries.order_info(order_id)
    if info is None:
        status = OrderStatus.NOT_FOUND.value
        return plain({"status": status, "message": "The limit order is not found"})
    body: dict[str, Any] = {"status": info.status.value}
    if info.status not in _UNTOUCHED:
        body |= {"filledAmount": info.filled, "filledFee": info.filled_fee}
    return plain(body)


async def order_of_public_key(request: Request) -> Answer:
    """An order of the signing account; without a signature, the request is for an order book."""
    # The segments are parsed first, so that errors refer to them rather than to a pair.
    order_id = read_order_id(request.segments[3])
    public_key = read_public_key(request.segments[2])
    auth.check_signature(request, public_key)
    return _item(request.core, order_id, owner_of(request.core, public_key))


async def order_of_address(request: Request) -> Answer:
    """An order of an account, for the operator."""
    owner = read_address(request.core, request.segments[2])
    order_id = read_order_id(request.segments[3])
    auth.check_named_user(request, owner)
    return _item(request.core, order_id, owner)


def _item(core: Matcher, order_id: bytes, owner: Address) -> Answer:
    info = core.queries.order_info(order_id)
    if info is None or info.owner != owner:
        raise refuse(ORDER_NOT_FOUND, "InfoNotFound", id=base58.encode(order_id))
    return envelope(item_json(info))


# --- lists ----------------------------------------------------------------------------------------


async def history_of_public_key(request: Request) -> Answer:
    """The orders of the signing account."""
    flags = _flags(request, (True, True))
    public_key = read_public_key(request.segments[2])
    auth.check_signature(request, public_key)
    return _list(request.core, owner_of(request.core, public_key), None, *flags)


async def history_in_pair(request: Request) -> Answer:
    """The orders of the signing account in one pair."""
    public_key = read_public_key(request.segments[5])
    pair = await pair_or_redirect(request)
    flags = _flags(request, (True, True))
    auth.check_signature(request, public_key)
    return _list(request.core, owner_of(request.core, public_key), pair, *flags)


async def history_of_address(request: Request) -> Answer:
    """The orders of an account, for the operator."""
    owner = read_address(request.core, request.segments[2])
    auth.check_named_user(request, owner)
    return _list(request.core, owner, None, *_flags(request, (True, False)))


def _flags(request: Request, default: tuple[bool, bool]) -> tuple[bool, bool]:
    """Whether to list active orders, and closed ones."""
    query = request.query()
    active, closed = read_flag(query, "activeOnly"), read_flag(query, "closedOnly")
    match active, closed:
        case None, None:
            return default
        case True, True:
            return False, False
        case True, _:
            return True, False
        case _, True:
            return False, True
        case _:
            return True, True


def _list(
    core: Matcher, owner: Address, pair: AssetPair | None, active: bool, closed: bool
) -> Answer:
    found = core.queries.history(owner, pair, active=active, closed=closed)
    return plain([item_json(info) for info in found])


# --- the rest -------------------------------------------------------------------------------------


async def transactions(request: Request) -> Answer:
    """The exchange transactions of an order."""
    core, order_id = request.core, read_order_id(request.segments[2])
    transactions = in_slices(core.database.transactions_of(order_id), TRANSACTION_SLICE)
    return plain([await _transaction_json(core, each) async for each in transactions])


async def _transaction_json(core: Matcher, transaction: AnyTransaction) -> dict[str, Any]:
    body = codec.to_json(transaction)
    payload = transaction.payload
    if isinstance(payload, Exchange):
        price = payload.price
        if transaction.version >= _FIXED_PRICE_VERSION:
            amount, quote = await pair_assets(core, pair_of(payload.order1))
            shift = quote.decimals - amount.decimals
            price = price * 10**shift if shift > 0 else price // 10**-shift
        body |= {
            "chainId": transaction.chain_id,
            "assetDecimalsPrice": price,
            "order1": order_json(payload.order1),
            "order2": order_json(payload.order2),
        }
    return {name: body[name] for name in _TRANSACTION_MEMBERS if name in body} | body


async def delete_from_history(request: Request) -> Answer:
    """Does nothing; kept for old clients."""
    body = read_json(request)
    order_id = body.get("orderId") if isinstance(body, dict) else None
    if not isinstance(order_id, str):
        raise refuse(FEATURE_NOT_IMPLEMENTED, "NotImplemented")
    read_order_id(order_id)
    return Answer(encode_json({"success": True, "status": "OrderDeleted", "orderId": order_id}))


async def delete_is_no_get(request: Request) -> Answer:
    """Only POST is supported."""
    del request
    return METHOD_NOT_ALLOWED


(SIGNED_ORDER_ROUTE,) = table("history", "",
    row("GET /matcher/orderbook/{publicKey}/{orderId} auth=signature", order_of_public_key,
        "An order of the account", {"success": True, **examples.HISTORY_ITEM}),
)  # fmt: skip
"""Separate from the others: it comes before the order book, whose path has the same form."""

ROUTES: Final = table("history", """
activeOnly | boolean | Only orders that may still be executed. | -
closedOnly | boolean | Only orders that are done with.         | -
""",
    row("GET /matcher/orderbook/{amount}/{price}/delete", delete_is_no_get, "There is only POST",
        documented=False),
    row("GET /matcher/orderbook/{amount}/{price}/publicKey/{publicKey}?activeOnly&closedOnly "
        "auth=signature", history_in_pair, "The account's orders of a pair",
        [examples.HISTORY_ITEM], redirects=True,
        description="Active orders first, then the last finalised ones, each newest first."),
    row("GET /matcher/orderbook/{publicKey}?activeOnly&closedOnly auth=signature",
        history_of_public_key, "The account's orders", [examples.HISTORY_ITEM],
        description="Active orders first, then the last finalised ones, each newest first."),
    row("GET /matcher/orders/{address}?activeOnly&closedOnly auth=key", history_of_address,
        "The orders of an account", [examples.HISTORY_ITEM],
        description="Without a flag only the active ones."),
    row("GET /matcher/orders/{address}/{orderId} auth=key", order_of_address,
        "An order of an account", {"success": True, **examples.HISTORY_ITEM}),
    row("GET /matcher/orderbook/{amount}/{price}/{orderId}", order_status, "The status of an order",
        examples.ORDER_STATUS, redirects=True),
    row("GET /matcher/transactions/{orderId} when=always", transactions,
        "The exchange transactions of an order", [examples.TRANSACTION]),
    row("POST /matcher/orderbook/{amount}/{price}/delete", delete_from_history,
        "Does nothing (deprecated)",
        {"success": True, "status": "OrderDeleted", "orderId": examples.ORDER_ID},
        body=examples.CANCEL_REQUEST,
        statuses={501: "Without an order id; the reference matcher answers so."}),
)  # fmt: skip
