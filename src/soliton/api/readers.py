"""The API of a process that only reads: what it answers itself, and what it hands to the writer.

With ``rest-api.workers`` other processes than the node's serve the interface. They read the same
store, see each block as soon as it is written, and answer everything that the chain alone answers.
What asks for the pool, the wallet, events or anything else that only the node has goes on to it,
over a unix socket, and its answer comes back as it is. A transaction is read and its signature
verified here, so that the writer has nothing left to do but apply it.

What lives here: which routes are which, and both ends of the socket. What does not: processes
(``soliton.cli.workers``), the socket (``soliton.web.upstream``).
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Final

from soliton.api.errors import NODE_NOT_REACHABLE, TOO_MANY_LONG_ANSWERS
from soliton.api.http import APPLICATION_JSON, Raw, Relayed, Request
from soliton.api.lookup import node_of
from soliton.api.rest import transactions
from soliton.api.rest.signing import read_claimed
from soliton.api.routes import POST, Body, BodyKind, Handler, Route
from soliton.api.translate import refusal, state_refusal
from soliton.chain.transactions import codec
from soliton.chain.transactions.table import type_by_id
from soliton.errors import SolitonError
from soliton.node.signatures import is_verified
from soliton.web.upstream import Answer, Upstream, UpstreamBusy, UpstreamLost, request_bytes

HANDOVER_PATH: Final = "/.writer/broadcast"
"""Only the writer's unix socket has it."""

_VERIFIED: Final = 1
_PROTOBUF: Final = 2

_READ_MODULES: Final = frozenset(
    (
        "account_data",
        "alias",
        "assets",
        "blockchain",
        "blocks",
        "consensus",
        "evaluation",
        "evidence",
        "leasing",
        "openapi",
        "scripts",
        "swagger",
        "utils",
    )
)
_READ_HANDLERS: Final = frozenset(
    (
        "addresses.of_public_key",
        "addresses.validate",
        "addresses.balance",
        "addresses.confirmed_balance",
        "addresses.details",
        "addresses.of_many",
        "addresses.of_many_posted",
        "addresses.effective",
        "addresses.confirmed_effective",
        "ethereum.abi",
        "ethereum.assets",
        "health.livez",
        "node.status",
        "node.version",
        "signing.serialize",
        "transactions.info",
        "transactions.info_of_many",
        "transactions.of_address",
    )
)


def only_reads(route: Route) -> bool:
    """Whether the chain alone answers a route."""
    module = route.handler.__module__.rsplit(".", 1)[-1]
    name = f"{module}.{getattr(route.handler, '__name__', '')}"
    return not route.key and (module in _READ_MODULES or name in _READ_HANDLERS)


def reader_routes(routes: Sequence[Route], upstream: Upstream) -> tuple[Route, ...]:
    """The same routes for a process that reads: others are handed to the writer."""
    hand_over, broadcast = _passing_on(upstream), _broadcasting(upstream)
    return tuple(
        route
        if only_reads(route)
        else replace(
            route, handler=broadcast if route.handler is transactions.broadcast else hand_over
        )
        for route in routes
    )


def writer_routes(routes: Sequence[Route]) -> tuple[Route, ...]:
    """The same routes for the process that writes, with what readers hand to it."""
    handed_over = Route(
        methods=POST,
        path=HANDOVER_PATH,
        handler=take_over,
        tag="transactions",
        summary="A transaction that a reader has checked",
        body=Body(BodyKind.TEXT, "flags and bytes", "", {}),
        response={},
        example={},
        documented=False,
    )
    return (*routes, handed_over)


def _passing_on(upstream: Upstream) -> Handler:
    async def pass_on(request: Request) -> object:
        """The writer's answer to this request."""
        answer = await _ask(upstream, _as_it_came(request), has_body=request.method != "HEAD")
        return Relayed(answer.status, answer.headers, answer.chunks())

    return pass_on


def _broadcasting(upstream: Upstream) -> Handler:
    def broadcast(request: Request) -> Coroutine[None, None, object]:
        """Check a signed transaction, and let the writer keep it."""
        return _hand_over(request, upstream)

    return broadcast


async def _hand_over(request: Request, upstream: Upstream) -> object:
    if request.flag("trace"):
        answer = await _ask(upstream, _as_it_came(request))
        return Relayed(answer.status, answer.headers, answer.chunks())
    node = node_of(request)
    try:
        transaction = read_claimed(request.json(), node)
    except SolitonError as error:
        raise refusal(error, node.network.family) from error
    kind = type_by_id(transaction.type_id)
    flags = _VERIFIED if is_verified(transaction) else 0
    flags |= 0 if transaction.version in kind.binary else _PROTOBUF
    accept = request.headers.get(b"accept")
    headers = {b"host": b"writer"} if accept is None else {b"host": b"writer", b"accept": accept}
    body = bytes((flags,)) + codec.encode(transaction)
    answer = await _ask(upstream, request_bytes("POST", HANDOVER_PATH, headers, body))
    said = await answer.read()
    if answer.status == 200:
        return codec.to_json(transaction)
    found = dict(answer.headers)
    content_type = found.get(b"content-type", APPLICATION_JSON)
    more = tuple(item for item in answer.headers if item[0] == b"retry-after")
    return Raw(said, content_type, answer.status, more)


def take_over(request: Request) -> Raw:
    """Put a transaction that a reader has checked into the pool."""
    node = node_of(request)
    flags, data = request.body[0], request.body[1:]
    decode = codec.decode_protobuf if flags & _PROTOBUF else codec.decode_legacy
    transaction = decode(data, node.network.chain_id)
    try:
        node.broadcast(transaction, verified=bool(flags & _VERIFIED))
    except SolitonError as error:
        raise state_refusal(error, transaction, node.network.family) from error
    return Raw(b"")


def _as_it_came(request: Request) -> bytes:
    query = request.query_string.decode("latin-1")
    target = f"{request.path}?{query}" if query else request.path
    return request_bytes(request.method, target, request.headers, request.body)


async def _ask(upstream: Upstream, data: bytes, *, has_body: bool = True) -> Answer:
    try:
        return await upstream.ask(data, has_body=has_body)
    except UpstreamBusy as error:
        raise TOO_MANY_LONG_ANSWERS.error() from error
    except UpstreamLost as error:
        raise NODE_NOT_REACHABLE.error() from error
