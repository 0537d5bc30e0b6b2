"""Cancelling orders.

What lives here: the routes. What does not: signatures (``auth``) and cancelling (``canceling``).

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/http/routes/v0/CancelRoute.scala``.
"""

from __future__ import annotations

from typing import Any, Final

from soliton.chain.addresses import Address
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.matcher.rest import auth, examples
from soliton.matcher.rest.answers import Answer, Refusal, encode_json, flat_error, flat_error_body
from soliton.matcher.rest.requests import (
    MAX_BASE58_CHARS,
    Request,
    invalid_json,
    owner_of,
    read_address,
    read_json,
    read_order_id,
    read_pair,
    traded_pair,
)
from soliton.matcher.rest.routes import row, table
from soliton.matcher.service import Matcher
from soliton.matching.commands import CancelSource
from soliton.matching.errors import NOT_KNOWN_TO_BE_STORED, ORDER_NOT_FOUND, MatcherError
from soliton.matching.pairs import AssetPair

MAX_BATCH: Final = 1_000
"""The maximum number of order ids in one request; the limit on bodies allows some more."""


async def cancel_in_pair(request: Request) -> Answer:
    """Cancel one order, or all orders of a pair."""
    pair = read_pair(*request.segments[2:4])
    try:
        await traded_pair(request.core, pair)
    except Refusal as refusal:
        if refusal.word == "InfoNotFound":
            raise Refusal(refusal.error, "OrderCancelRejected") from None
        raise
    return await _cancel(request, pair)


async def cancel_anywhere(request: Request) -> Answer:
    """Cancel one order, or all orders of the account."""
    return await _cancel(request, None)


async def _cancel(request: Request, pair: AssetPair | None) -> Answer:
    owner, order_id = auth.read_cancel(request)
    if order_id is None:
        return _batch(await request.core.canceling.cancel_all(owner, pair))
    return await _cancel_one(request.core, order_id, owner)


async def _cancel_one(core: Matcher, order_id: bytes, owner: Address) -> Answer:
    try:
        await core.canceling.cancel(order_id, owner, CancelSource.REQUEST)
    except MatcherError as error:
        stored = error.kind not in NOT_KNOWN_TO_BE_STORED
        return flat_error(error, "OrderCancelRejected" if stored else "WavesNodeUnavailable")
    return Answer(encode_json(_success(order_id)))


def _batch(results: list[tuple[bytes, MatcherError | None]]) -> Answer:
    items = [
        _success(order_id) if error is None else flat_error_body(error, "OrderCancelRejected")
        for order_id, error in results
    ]
    # The items are a list within a list: clients depend on that.
    body = {"success": True, "status": "BatchCancelCompleted", "message": [items]}
    return Answer(encode_json(body))


def _success(order_id: bytes) -> dict[str, Any]:
    return {"orderId": base58.encode(order_id), "success": True, "status": "OrderCanceled"}


async def cancel_orders_of_address(request: Request) -> Answer:
    """Cancel some orders of an account, by id."""
    owner = read_address(request.core, request.segments[2])
    auth.check_signature_or_key(request, owner)
    ids = _read_ids(read_json(request))
    return _batch(await request.core.canceling.cancel_many(owner, ids))


def _read_ids(body: object) -> list[bytes]:
    if not isinstance(body, list):
        raise invalid_json("")
    if len(body) > MAX_BATCH:
        raise invalid_json(f"({MAX_BATCH})")
    ids: list[bytes] = []
    wrong: list[str] = []
    for index, text in enumerate(body):
        try:
            ids.append(base58.decode(text if isinstance(text, str) else "0", MAX_BASE58_CHARS))
        except Base58Error:
            wrong.append(f"({index})")
    if wrong:
        raise invalid_json(*wrong)
    return ids


async def cancel_order_with_key(request: Request) -> Answer:
    """Cancel any order, for the operator."""
    named = auth.named_user(request)
    order_id = read_order_id(request.segments[3])
    core = request.core
    if named is not None:
        owner: Address | None = owner_of(core, named)
    else:
        info = core.queries.order_info(order_id)
        owner = None if info is None else info.owner
    if owner is None:
        error = MatcherError(ORDER_NOT_FOUND, id=base58.encode(order_id))
        return flat_error(error, "OrderCancelRejected")
    return await _cancel_one(core, order_id, owner)


ROUTES: Final = table("cancel", "",
    row("POST /matcher/orderbook/{amount}/{price}/cancel auth=signed_body", cancel_in_pair,
        "Cancel an order, or all orders of a pair", examples.CANCELLED,
        body=examples.CANCEL_REQUEST,
        description="With orderId: that order, signed sender ‖ orderId. With timestamp: all orders "
        "of the pair, signed sender ‖ timestamp (8 bytes, big endian)."),
    row("POST /matcher/orderbook/cancel auth=signed_body", cancel_anywhere,
        "Cancel an order, or all orders of the account", examples.CANCELLED,
        body=examples.CANCEL_REQUEST,
        description="As for one pair."),
    row("POST /matcher/orders/{address}/cancel auth=signature_or_key", cancel_orders_of_address,
        "Cancel some orders of an account", examples.CANCELLED_MANY, body=[examples.ORDER_ID],
        description="A signature is that of the account in the path, whose key the header "
        "X-User-Public-Key has."),
    row("POST /matcher/orders/cancel/{orderId} auth=key", cancel_order_with_key,
        "Cancel any order", examples.CANCELLED),
)  # fmt: skip
