"""``/events``: the chain and the pool as they change, as server-sent events. No other node has it.

What lives here: what a client may ask for. What does not: the events (``soliton.api.feed``).
"""

from __future__ import annotations

from functools import partial
from typing import Final

from soliton.api.errors import (
    CUSTOM_VALIDATION_ERROR,
    EVENTS_GONE,
    INVALID_ADDRESS,
    TOO_BIG_SEQUENCE_WITH_LIMIT,
    TOO_MANY_WAITING,
    invalid_request,
)
from soliton.api.event_ids import MAX_HISTORY_BLOCKS, Found, Place, UnknownPlace, find_place
from soliton.api.feed import Feed, Wish
from soliton.api.http import RawStream, Request
from soliton.api.lookup import ADDRESS, address_of_text, node_of
from soliton.api.routes import GET, NATURAL, TEXT, Route, query_parameter
from soliton.node.node import Node

MAX_ACCOUNTS: Final = 100
"""Each is looked up for each transaction."""

_NAMES: Final = ("block", "microblock", "transaction", "unconfirmed")
_DEFAULT: Final = "block,microblock,transaction"
_START_SECONDS: Final = 20.0
_HEADERS: Final = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))


def events(request: Request) -> RawStream:
    """What happens, from now on or from a place of the chain."""
    node, feeds = node_of(request), request.context.feeds
    wish = _wish(request)
    feed = Feed(node, wish, feeds, partial(_start, request, node))
    return RawStream(feed.chunks(), b"text/event-stream", _HEADERS)


def _wish(request: Request) -> Wish:
    names = set((request.optional_text("events") or _DEFAULT).split(","))
    if unknown := sorted(names - set(_NAMES)):
        raise invalid_request(f"no such event: {unknown[0]}; there are {', '.join(_NAMES)}")
    accounts = [
        address_of_text(text, node_of(request)) for text in request.query.get("address", ())
    ]
    if len(accounts) > MAX_ACCOUNTS:
        raise TOO_BIG_SEQUENCE_WITH_LIMIT.error(limit=MAX_ACCOUNTS)
    return Wish(
        blocks="block" in names,
        microblocks="microblock" in names,
        transactions="transaction" in names,
        pool="unconfirmed" in names,
        types=frozenset(int(text) for text in request.query.get("type", ())),
        accounts=tuple(dict.fromkeys(accounts)),
    )


def _start(request: Request, node: Node) -> Found:
    chain = node.chain
    last = request.header("last-event-id") or request.optional_text("lastEventId")
    if last is not None:
        try:
            return find_place(chain, last)
        except UnknownPlace as error:
            raise EVENTS_GONE.error(reason=str(error)) from error
    first = request.optional_integer("from")
    if first is None:
        count = len(chain.last_block.transactions)
        return Found(Place(chain.height, count), count, False)
    oldest = max(1, chain.height - MAX_HISTORY_BLOCKS)
    if not oldest <= first <= chain.height + 1:
        raise EVENTS_GONE.error(reason=f"from can be {oldest} to {chain.height + 1} now")
    below = first - 1
    count = chain.meta(below).transaction_count if below else 0
    return Found(Place(below, count), count, False)


_EXAMPLE: Final = """\
retry: 2000

id: 2.1.1.sVv6eEvzD3Fyz2wO.eDa5eEQb
event: synced
data: {"height":2,"id":"Cuxb2NpxeXvCZdT9CSQRqLzWrPyjs3KvWm3gd8HsKZe","transactionCount":1}

"""

ROUTES: tuple[Route, ...] = (
    Route(
        methods=GET,
        path="/events",
        handler=events,
        tag="events",
        summary="Blocks, microblocks, transactions, rollbacks and the pool as they happen",
        parameters=(
            query_parameter(
                "events",
                TEXT,
                f"Which: some of {', '.join(_NAMES)}, with commas; by default {_DEFAULT}",
                "block,transaction",
            ),
            query_parameter(
                "address",
                TEXT,
                "Only transactions of these accounts",
                [ADDRESS.example],
                repeated=True,
            ),
            query_parameter(
                "type", NATURAL, "Only transactions of these types", [4], repeated=True
            ),
            query_parameter(
                "from", NATURAL, "Begin with the block at this height and go on to the present", 2
            ),
            query_parameter(
                "lastEventId",
                TEXT,
                "Go on behind this event, for clients that cannot send `Last-Event-ID`",
                "2.1.1.sVv6eEvzD3Fyz2wO.eDa5eEQb",
            ),
        ),
        response={"type": "string", "description": "Server-sent events"},
        example=_EXAMPLE,
        content_type="text/event-stream",
        # Also where it is handed on, it is a request that waits, and takes no place of others.
        seconds=_START_SECONDS,
        errors=(
            CUSTOM_VALIDATION_ERROR,
            EVENTS_GONE,
            INVALID_ADDRESS,
            TOO_BIG_SEQUENCE_WITH_LIMIT,
            TOO_MANY_WAITING,
        ),
    ),
)
