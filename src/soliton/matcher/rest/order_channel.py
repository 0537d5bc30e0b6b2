"""The way of orders from processes that read them to the one that places them, and back.

A worker reads an order, looks at its signature and hands it over; the matcher says what became of
it.

What lives here: orders and refusals as they go through a channel. What does not: the channel
(``soliton.web.channel``), reading orders (``order_worker``) and placing them (``application``).
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
"""Orders of one worker that are under way at the same time; it hands over no more."""
KEPT_VALUES: Final = 16_384

UNKNOWN: Final = error_envelope(MatcherError(REQUEST_TIMEOUT), "TimedOut")
"""Nobody can say whether what was asked for was done."""

_Row = tuple[
    int, int, bytes, bytes, bytes | None, bytes | None, Side, int, int, int, int, int,
    bytes | None, PriceMode, bytes | None, tuple[bytes, ...], bytes | None, bytes, bytes,
]  # fmt: skip
"""The fields of an ``Order`` in their order."""
_row_of: Final = msgspec.structs.astuple


class SubmittedOrder(msgspec.Struct, array_like=True, gc=False, frozen=True):
    """An order on its way, and whether its signature is valid (``None``: not looked at)."""

    is_signed: bool | None
    row: _Row


RefusalFields = tuple[bytes, int, bytes, Headers]
"""The fields of an ``Answer`` that refuses an order."""


def refusal_of(answer: Answer | None) -> RefusalFields | None:
    """An answer as it goes through the channel; nothing is said about an order that was taken."""
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
    """What takes the orders of all workers. ``place`` raises nothing, and gives back the refusal of
    an order that is refused. What is on its way to the journal goes there also after the end.
    """

    async def respond(sent: SubmittedOrder) -> RefusalFields | None:
        return refusal_of(await place(_order(sent.row), sent.is_signed))

    return ChannelServer(ORDERS, respond)


@lru_cache(maxsize=KEPT_VALUES)
def _known(value: bytes) -> bytes:
    return value


def _order(row: _Row) -> Order:
    """The order with these fields; the same account's key and the same asset are one object."""
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
