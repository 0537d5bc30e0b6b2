"""``/events``: changes of the chain and the pool as server-sent events. No other node has it.

What lives here: the parameters. What does not: the events (``soliton.api.event_stream``).
"""

from __future__ import annotations

from functools import partial
from typing import Final

from soliton.api import errors
from soliton.api.event_ids import Found, Place, UnknownPlace, find_place, oldest_events
from soliton.api.event_stream import EventFilter, EventStream
from soliton.api.http import Request
from soliton.api.lookup import address_of_text, node_of
from soliton.api.rest import examples
from soliton.api.route_table import row, table
from soliton.node.node import Node
from soliton.web.answers import Stream

MAX_ACCOUNTS: Final = 100
"""The limit on accounts; each is looked up for each transaction."""

_NAMES: Final = ("block", "microblock", "finalized", "transaction", "unconfirmed")
_DEFAULT: Final = "block,microblock,transaction"
_START_SECONDS: Final = 20.0
_HEADERS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


def events(request: Request) -> Stream:
    """The stream of events, from now on or from a place of the chain."""
    node, context = node_of(request), request.context
    filters, start = _filter(request), partial(_start, request, node)
    stream = EventStream(node, filters, context.event_streams, context.time_slices, start)
    return Stream(stream.chunks(), _HEADERS, endless=True)


def _filter(request: Request) -> EventFilter:
    names = set((request.optional_text("events") or _DEFAULT).split(","))
    if unknown := sorted(names - set(_NAMES)):
        raise errors.invalid_request(f"no such event: {unknown[0]}; there are {', '.join(_NAMES)}")
    accounts = [
        address_of_text(text, node_of(request)) for text in request.query.get("address", ())
    ]
    if len(accounts) > MAX_ACCOUNTS:
        raise errors.TOO_BIG_SEQUENCE_WITH_LIMIT.error(limit=MAX_ACCOUNTS)
    return EventFilter(
        blocks="block" in names,
        microblocks="microblock" in names,
        finalized="finalized" in names,
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
            raise errors.EVENTS_GONE.error(reason=str(error)) from error
    first = request.optional_integer("from")
    if first is None:
        count = len(chain.last_block.transactions)
        return Found(Place(chain.height, count), count, False)
    oldest = oldest_events(chain)
    if not oldest <= first <= chain.height + 1:
        raise errors.EVENTS_GONE.error(reason=f"from can be {oldest} to {chain.height + 1} now")
    below = first - 1
    count = chain.meta(below).transaction_count if below else 0
    return Found(Place(below, count), count, False)


_EXAMPLE: Final = """\
retry: 2000

id: 2.1.1.sVv6eEvzD3Fyz2wO.eDa5eEQb
event: synced
data: {"height":2,"id":"Cuxb2NpxeXvCZdT9CSQRqLzWrPyjs3KvWm3gd8HsKZe","transactionCount":1,\
"finalizedHeight":1}

"""

_EVENTS: Final = f"Comma-separated list of {', '.join(_NAMES)}; by default {_DEFAULT}"
_LAST_EVENT: Final = "Resume after this event, for clients that cannot send `Last-Event-ID`"

ROUTES: Final = table("events", f"""
events      | text     | {_EVENTS} | block,transaction
address.of  | text*    | Only transactions of these accounts | {examples.ADDRESS}
type        | natural* | Only transactions of these types | 4
from        | natural  | Begin with the block at this height and continue to the present | 2
lastEventId | text     | {_LAST_EVENT} | 2.1.1.sVv6eEvzD3Fyz2wO.eDa5eEQb
""",
    row("GET /events?events&address.of&type&from&lastEventId", events,
        "Blocks, microblocks, transactions, rollbacks and the pool as they happen",
        {"description": "Server-sent events, each with `id`, `event` and JSON in `data`"}, _EXAMPLE,
        "CUSTOM_VALIDATION_ERROR EVENTS_GONE INVALID_ADDRESS TOO_BIG_SEQUENCE_WITH_LIMIT "
        "TOO_MANY_WAITING", content_type="text/event-stream",
        # A worker that forwards the request counts it as one that waits, without a slot.
        seconds=_START_SECONDS),
    own=True,
)  # fmt: skip
