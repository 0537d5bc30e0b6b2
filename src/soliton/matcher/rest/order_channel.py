"""The channel that carries orders from worker processes to the matcher, and results back.

A worker decodes an order, verifies its signature and submits it; the matcher returns the result.

What lives here: the forms of orders and errors in the channel. What does not: the channel itself
(``soliton.web.channel``), decoding orders (``order_worker``) and placing them (``application``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Final, cast

import msgspec

from soliton.chain.orders import Order, PriceMode, Side
from soliton.chain.values import AssetId
from soliton.matcher.rest.answers import Answer, error_envelope
from soliton.matching.errors import REQUEST_TIMEOUT, MatcherError
from soliton.web.channel import Channel, ChannelServer, ChannelSpec
from soliton.web.types import Headers

GROUP: Final = 8
MAX_WAITING: Final = 10_000
"""The maximum number of orders of one worker that are in flight."""
KEPT_VALUES: Final = 16_384

UNKNOWN: Final = error_envelope(MatcherError(REQUEST_TIMEOUT), "TimedOut")
"""The response if the outcome of a request is unknown."""

_Row = tuple[
    int, int, bytes, bytes, bytes | None, bytes | None, Side, int, int, int, int, int,
    bytes | None, PriceMode, bytes | None, tuple[bytes, ...], bytes | None, bytes, bytes,
]  # fmt: skip
"""The fields of an ``Order`` in their order."""
_row_of: Final = msgspec.structs.astuple


class SubmittedOrder(msgspec.Struct, array_like=True, gc=False, frozen=True):
    """An order, and whether its signature is valid (``None``: not verified)."""

    is_signed: bool | None
    row: _Row


RefusalFields = tuple[bytes, int, bytes, Headers]
"""The fields of an ``Answer`` with an error."""


def refusal_of(answer: Answer | None) -> RefusalFields | None:
    """An error response as it goes through the channel; ``None`` for an accepted order."""
    if answer is None:
        return None
    return answer.body, answer.status, answer.content_type, answer.headers


OrderChannel = Channel[SubmittedOrder, RefusalFields | None]
ORDERS: Final = ChannelSpec[SubmittedOrder, RefusalFields | None](
    SubmittedOrder, RefusalFields | None, refusal_of(UNKNOWN), MAX_WAITING, GROUP
)


def submitted(order: Order, is_signed: bool | None) -> SubmittedOrder:
    """An order as it goes through the channel."""
    return SubmittedOrder(is_signed, cast("_Row", _row_of(order)))


def order_server(
    place: Callable[[Order, bool | None], Awaitable[Answer | None]],
) -> ChannelServer[SubmittedOrder, RefusalFields | None]:
    """The server for the orders of all workers. ``place`` does not raise; it returns the error if
    an order is rejected. Orders being written to the journal complete even after a shutdown.
    """

    async def respond(order: SubmittedOrder) -> RefusalFields | None:
        return refusal_of(await place(_order(order.row), order.is_signed))

    return ChannelServer(ORDERS, respond)


@lru_cache(maxsize=KEPT_VALUES)
def _known(value: bytes) -> bytes:
    return value


def _order(row: _Row) -> Order:
    """The order with these fields; keys and assets are interned."""
    amount_asset, price_asset, fee_asset = row[4], row[5], row[12]
    return Order(
        row[0],
        row[1],
        _known(row[2]),
        _known(row[3]),
        amount_asset and AssetId(_known(amount_asset)),
        price_asset and AssetId(_known(price_asset)),
        *row[6:12],
        fee_asset and AssetId(_known(fee_asset)),
        *row[13:],
    )
