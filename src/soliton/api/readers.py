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

import logging
from collections.abc import Awaitable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Final

import msgspec

from soliton.api.errors import NODE_NOT_REACHABLE, TOO_MANY_LONG_ANSWERS, UNKNOWN, ApiError
from soliton.api.http import Request
from soliton.api.lookup import node_of
from soliton.api.number_strings import with_strings
from soliton.api.rest import broadcasting
from soliton.api.routes import Handler, Reads, Route
from soliton.api.translate import refusal
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.table import type_by_id
from soliton.errors import SolitonError
from soliton.node.node import Node
from soliton.node.signatures import signed_messages, verified_messages
from soliton.web.answers import APPLICATION_JSON, Deferred, Stream, Whole
from soliton.web.channel import Channel, ChannelServer, ChannelSpec
from soliton.web.client import HttpBusy, HttpTrouble, Response
from soliton.web.number_strings import JSON_WITH_STRINGS, Accepted
from soliton.web.upstream import Upstream

MAX_WAITING: Final = 4_096
"""Transactions that a worker has checked and the writer has not seen; more are refused."""
MAX_GROUP: Final = 64
"""What the writer does in one go takes about two milliseconds."""
MAX_GROUP_BYTES: Final = 512 * 1024

_log = logging.getLogger(__name__)

_VERIFIED: Final = 1
_PROTOBUF: Final = 2

encode_json = msgspec.json.Encoder().encode


def reader_routes(
    routes: Sequence[Route], upstream: Upstream, channel: TransactionChannel
) -> tuple[Route, ...]:
    """The same routes for a process that reads: others are handed to the writer."""
    hand_over, broadcast = _passing_on(upstream), _broadcasting(upstream, channel)
    return tuple(
        route
        if route.reads is not Reads.NODE
        else replace(
            route,
            handler=broadcast if route.handler is broadcasting.broadcast else hand_over,
            relayed=True,
        )
        for route in routes
    )


def _passing_on(upstream: Upstream) -> Handler:
    def pass_on(request: Request) -> Coroutine[None, None, object]:
        """The writer's answer to this request."""
        return _passed_on(request, upstream)

    return pass_on


async def _passed_on(request: Request, upstream: Upstream) -> object:
    answer = await _said(
        upstream.pass_on(
            request.method,
            request.path,
            request.query_string,
            request.headers,
            request.body,
            request.client,
        )
    )
    return Stream(answer.chunks(), answer.headers, answer.status)


def _broadcasting(upstream: Upstream, channel: TransactionChannel) -> Handler:
    def broadcast(request: Request) -> object:
        """Check a signed transaction, and let the writer keep it."""
        if request.flag("trace"):
            return _passed_on(request, upstream)
        # At once, so that the client is charged for what that takes.
        transaction = broadcasting.claimed_transaction(request.json(), node_of(request))
        if transaction.version < 1:
            # It has no form in which it could be handed over.
            return _passed_on(request, upstream)
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
    """What a client is told of what the writer says."""
    if outcome.status == _UNKNOWN.status:
        raise NODE_NOT_REACHABLE.error()
    if outcome.status == HTTPStatus.OK:
        return codec.to_json(transaction)
    request.context.traffic.count_error(outcome.status)
    if request.wish is Accepted.STRINGS:
        return Whole(with_strings(outcome.text), JSON_WITH_STRINGS, outcome.status)
    return Whole(outcome.text, APPLICATION_JSON, outcome.status)


class SubmittedTransaction(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A transaction on its way to the writer."""

    flags: int
    data: bytes


class Outcome(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What the writer says to it: a status and, unless that is 200, the error as JSON."""

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
    # The writer takes as much from each worker before it has others' turn.
    pipelined=False,
)
TransactionChannel = Channel[SubmittedTransaction, Outcome]


def transaction_server(node: Node) -> ChannelServer[SubmittedTransaction, Outcome]:
    """What puts the transactions that readers have checked into the pool."""
    return ChannelServer(TRANSACTIONS, partial(_take, node))


def _take(node: Node, sent: SubmittedTransaction) -> Outcome:
    decode = codec.decode_protobuf if sent.flags & _PROTOBUF else codec.decode_legacy
    try:
        transaction = decode(sent.data, node.network.chain_id)
    except SolitonError as error:
        return _refused(refusal(error, node.network.family))
    verified = signed_messages(transaction) if sent.flags & _VERIFIED else ()
    try:
        broadcasting.submit(node, transaction, verified=verified)
    except ApiError as error:
        return _refused(error)
    except Exception:  # noqa: BLE001 - a fault of ours at one is no news about the others
        _log.exception("transaction %s failed", transaction.id.hex())
        return _refused(UNKNOWN.error())
    return Outcome(HTTPStatus.OK)


def _refused(error: ApiError) -> Outcome:
    return Outcome(error.kind.status, encode_json(error.body()))


async def _said(asking: Awaitable[Response]) -> Response:
    """The writer's answer; raises ``ApiError`` where there is none."""
    try:
        return await asking
    except HttpBusy as error:
        raise TOO_MANY_LONG_ANSWERS.error() from error
    except HttpTrouble as error:
        raise NODE_NOT_REACHABLE.error() from error
