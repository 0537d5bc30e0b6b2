"""The API of a worker process, which reads the store and forwards the rest to the writer.

With ``rest-api.workers`` worker processes serve the interface. They read the same store, see each
block as soon as it is written, and answer the requests that depend on the chain alone. Requests
for the pool, the wallet, events and other state of the node are forwarded over a unix socket, and
the response is returned unchanged. A worker parses a broadcast transaction and verifies its
signature, so that the writer only has to apply it.

What lives here: which routes are forwarded, and both ends of the socket. What does not: processes
(``soliton.cli.workers``), the socket (``soliton.web.upstream``).
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Sequence
from functools import partial
from http import HTTPStatus
from typing import Final

import msgspec

from soliton.api.errors import NODE_NOT_REACHABLE, TOO_MANY_LONG_ANSWERS, UNKNOWN, ApiError
from soliton.api.http import Request
from soliton.api.lookup import node_of
from soliton.api.number_strings import with_strings
from soliton.api.rest import broadcasting
from soliton.api.rest.signing import SHORT_BYTES
from soliton.api.routes import Handler, Reads, Route
from soliton.api.translate import refusal
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.table import type_by_id
from soliton.errors import SolitonError
from soliton.node.node import Node
from soliton.node.signatures import signed_messages, verified_messages
from soliton.node.turns import Turn
from soliton.web.answers import APPLICATION_JSON, Deferred, Stream, Whole
from soliton.web.channel import Channel, ChannelServer, ChannelSpec
from soliton.web.client import HttpBusy, HttpTrouble
from soliton.web.number_strings import JSON_WITH_STRINGS, Accepted
from soliton.web.upstream import Upstream

MAX_WAITING: Final = 4_096
"""Transactions queued for the writer by one worker; more are refused."""
MAX_GROUP: Final = 64
"""The writer's batch size: about two milliseconds of work."""
MAX_GROUP_BYTES: Final = 512 * 1024

_log = logging.getLogger(__name__)

_VERIFIED: Final = 1
_PROTOBUF: Final = 2

encode_json = msgspec.json.Encoder().encode


def reader_routes(
    routes: Sequence[Route], upstream: Upstream, channel: TransactionChannel
) -> tuple[Route, ...]:
    """The same routes for a worker process: those that need the node are forwarded."""
    forward, broadcast = partial(_forwarded, upstream), _broadcasting(upstream, channel)
    return tuple(
        route
        if route.reads is not Reads.NODE
        else msgspec.structs.replace(
            route,
            handler=broadcast if route.handler is broadcasting.broadcast else forward,
            relayed=True,
        )
        for route in routes
    )


async def _forwarded(upstream: Upstream, request: Request) -> object:
    """The writer's response to this request."""
    try:
        response = await upstream.pass_on(
            request.method,
            request.path,
            request.query_string,
            request.headers,
            request.body,
            request.client,
        )
    except HttpBusy as error:
        raise TOO_MANY_LONG_ANSWERS.error() from error
    except HttpTrouble as error:
        raise NODE_NOT_REACHABLE.error() from error
    return Stream(response.chunks(), response.headers, response.status)


def _broadcasting(upstream: Upstream, channel: TransactionChannel) -> Handler:
    def broadcast(request: Request) -> object:
        """Check a signed transaction and submit it to the writer."""
        if request.flag("trace") or len(request.body) > SHORT_BYTES:
            return _forwarded(upstream, request)
        # Not in a coroutine, so that the client is charged for the time.
        transaction = broadcasting.claimed_transaction(request.json(), node_of(request))
        if transaction.version < 1:
            # There is no binary form to submit.
            return _forwarded(upstream, request)
        if channel.is_full:
            raise TOO_MANY_LONG_ANSWERS.error()
        submit = partial(channel.submit, _checked(transaction))
        return Deferred(submit, partial(_answer, request, transaction))

    return broadcast


def _checked(transaction: AnyTransaction) -> SubmittedTransaction:
    flags = _VERIFIED if verified_messages(transaction) else 0
    flags |= 0 if transaction.version in type_by_id(transaction.type_id).binary else _PROTOBUF
    return SubmittedTransaction(flags, codec.encode(transaction))


def _answer(request: Request, transaction: AnyTransaction, outcome: Outcome) -> object:
    """The response to the client for an outcome."""
    if outcome.status == _UNKNOWN.status:
        raise NODE_NOT_REACHABLE.error()
    if outcome.status == HTTPStatus.OK:
        return codec.to_json(transaction)
    if request.accepts is Accepted.STRINGS:
        return Whole(with_strings(outcome.text), JSON_WITH_STRINGS, outcome.status)
    return Whole(outcome.text, APPLICATION_JSON, outcome.status)


class SubmittedTransaction(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A transaction on its way to the writer."""

    flags: int
    data: bytes


class Outcome(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The writer's reply: an HTTP status and, unless that is 200, the error as JSON."""

    status: int
    text: bytes = b""


_UNKNOWN: Final = Outcome(0)
TRANSACTIONS: Final = ChannelSpec[SubmittedTransaction, Outcome](
    SubmittedTransaction,
    Outcome,
    _UNKNOWN,
    MAX_WAITING,
    MAX_GROUP,
    MAX_GROUP_BYTES,
    lambda sent: len(sent.data),
    # The writer takes one batch from each worker in turn.
    pipelined=False,
)
TransactionChannel = Channel[SubmittedTransaction, Outcome]


def transaction_server(node: Node) -> ChannelServer[SubmittedTransaction, Outcome]:
    """The server that puts the transactions of worker processes into the pool."""
    return ChannelServer(TRANSACTIONS, partial(_take, node))


def _take(node: Node, sent: SubmittedTransaction) -> Outcome | Coroutine[object, object, Outcome]:
    decode = codec.decode_protobuf if sent.flags & _PROTOBUF else codec.decode_legacy
    try:
        transaction = decode(sent.data, node.network.chain_id)
    except SolitonError as error:
        return _refused(refusal(error, node.network.family))
    verified = signed_messages(transaction) if sent.flags & _VERIFIED else ()
    turn = node.turns.begin(partial(broadcasting.submit, node, transaction, verified=verified))
    if turn.is_done:
        return _outcome(node, transaction, turn)
    return _later(node, transaction, turn)


async def _later(node: Node, transaction: AnyTransaction, turn: Turn[None]) -> Outcome:
    await turn.wait()
    return _outcome(node, transaction, turn)


def _outcome(node: Node, transaction: AnyTransaction, turn: Turn[None]) -> Outcome:
    try:
        broadcasting.finish(node, transaction, turn)
    except ApiError as error:
        return _refused(error)
    except Exception:  # noqa: BLE001 - one failure must not affect the rest of the batch
        _log.exception("transaction %s failed", transaction.id.hex())
        return _refused(UNKNOWN.error())
    return Outcome(HTTPStatus.OK)


def _refused(error: ApiError) -> Outcome:
    return Outcome(error.kind.status, encode_json(error.body()))
