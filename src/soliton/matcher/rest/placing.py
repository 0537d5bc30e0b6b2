"""Placing orders.

What lives here: both routes, and a function on bytes for the fast path. What does not: validating
orders (``Placing.place``).

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/http/routes/v0/PlaceRoute.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.chain.orders import Order
from soliton.matcher.rest import examples
from soliton.matcher.rest.answers import Answer, encode_json, flat_error
from soliton.matcher.rest.order_json import order_json, read_order
from soliton.matcher.rest.requests import Request, check_content_type
from soliton.matcher.rest.routes import row, table
from soliton.matcher.service import Matcher
from soliton.matching.errors import NOT_KNOWN_TO_BE_STORED, MatcherError

PLACE_PATH: Final = "/matcher/orderbook"
"""The path that receives nearly all orders."""


async def place_answer(
    core: Matcher, headers: dict[bytes, bytes], body: bytes, *, market: bool
) -> Answer:
    """Place the order in a body; responds once the journal and the book have it."""
    order = posted_order(headers, body, core.settings.network.chain_id)
    return await refused(core, order, market=market) or placed(order)


def posted_order(headers: dict[bytes, bytes], body: bytes, chain_id: int) -> Order:
    """The order in a request; raises ``Refusal``."""
    check_content_type(headers)
    return read_order(body, chain_id)


async def refused(
    core: Matcher, order: Order, *, market: bool, is_signed: bool | None = None
) -> Answer | None:
    """Place an order; returns the error if it is rejected; arguments as ``Placing.place``."""
    try:
        await core.placing.place(order, market=market, is_signed=is_signed)
    except MatcherError as error:
        stored = error.kind not in NOT_KNOWN_TO_BE_STORED
        return flat_error(error, "OrderRejected" if stored else "WavesNodeUnavailable")
    return None


def placed(order: Order) -> Answer:
    """The response for an accepted order."""
    body = {"success": True, "status": "OrderAccepted", "message": order_json(order)}
    return Answer(encode_json(body))


async def place_limit_order(request: Request) -> Answer:
    """Place a limit order."""
    return await place_answer(request.core, request.headers, request.body, market=False)


async def place_market_order(request: Request) -> Answer:
    """Place a market order."""
    return await place_answer(request.core, request.headers, request.body, market=True)


ROUTES: Final = table("place", "",
    row("POST /matcher/orderbook when=always", place_limit_order, "Place a limit order",
        examples.PLACED,
        body=examples.ORDER,
        description="Accepted means: the journal has the order and the book has processed it; it "
        "may be filled already."),
    row("POST /matcher/orderbook/market when=always", place_market_order, "Place a market order",
        examples.PLACED, body=examples.ORDER,
        description="What finds no counter order at once is dropped. The price is the worst one "
        "that is acceptable."),
)  # fmt: skip
