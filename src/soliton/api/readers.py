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

import asyncio
import logging
from collections.abc import Awaitable, Coroutine, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Final

import msgspec

from soliton.api.errors import NODE_NOT_REACHABLE, TOO_MANY_LONG_ANSWERS, UNKNOWN, ApiError
from soliton.api.http import APPLICATION_JSON, Raw, Relayed, Request
from soliton.api.lookup import node_of
from soliton.api.rest import broadcasting
from soliton.api.routes import POST, Body, BodyKind, Handler, Route
from soliton.api.significands import with_strings
from soliton.api.translate import refusal, state_refusal
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.table import type_by_id
from soliton.errors import SolitonError
from soliton.node.node import Node
from soliton.node.signatures import signed_messages, verified_messages
from soliton.web.significands import JSON_WITH_STRINGS, Accepted, accepted
from soliton.web.upstream import Answer, Upstream, UpstreamBusy, UpstreamLost, request_bytes

HANDOVER_PATH: Final = "/.writer/broadcast"
"""Only the writer's unix socket has it."""
MAX_WAITING: Final = 4_096
"""Transactions that a worker has checked and the writer has not seen; more are refused."""
MAX_LOT: Final = 64
"""What the writer does in one go takes about two milliseconds."""
MAX_LOT_BYTES: Final = 512 * 1024

_log = logging.getLogger(__name__)

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


encode_json = msgspec.json.Encoder().encode


def only_reads(route: Route) -> bool:
    """Whether the chain alone answers a route."""
    module = route.handler.__module__.rsplit(".", 1)[-1]
    name = f"{module}.{getattr(route.handler, '__name__', '')}"
    return not route.key and (module in _READ_MODULES or name in _READ_HANDLERS)


def reader_routes(routes: Sequence[Route], upstream: Upstream) -> tuple[Route, ...]:
    """The same routes for a process that reads: others are handed to the writer."""
    hand_over, broadcast = _passing_on(upstream), _broadcasting(upstream, Handover(upstream))
    return tuple(
        route
        if only_reads(route)
        else replace(
            route,
            handler=broadcast if route.handler is broadcasting.broadcast else hand_over,
            relayed=True,
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
    return Relayed(answer.status, answer.headers, answer.chunks())


def _broadcasting(upstream: Upstream, handover: Handover) -> Handler:
    def broadcast(request: Request) -> Coroutine[None, None, object]:
        """Check a signed transaction, and let the writer keep it."""
        if request.flag("trace"):
            return _passed_on(request, upstream)
        # At once, so that the client is charged for what that takes.
        transaction = broadcasting.claimed_transaction(request.json(), node_of(request))
        if transaction.version < 1:
            # It has no form in which it could be handed over.
            return _passed_on(request, upstream)
        return _hand_over(request, transaction, _checked(transaction), handover)

    return broadcast


def _checked(transaction: AnyTransaction) -> Handed:
    flags = _VERIFIED if verified_messages(transaction) else 0
    flags |= 0 if transaction.version in type_by_id(transaction.type_id).binary else _PROTOBUF
    return Handed(flags, codec.encode(transaction))


async def _hand_over(
    request: Request, transaction: AnyTransaction, handed: Handed, handover: Handover
) -> object:
    outcome = await handover.send(handed)
    if outcome.status == HTTPStatus.OK:
        return codec.to_json(transaction)
    request.context.traffic.count_error(outcome.status)
    if accepted(request.headers.get(b"accept")) is Accepted.STRINGS:
        return Raw(with_strings(outcome.text), JSON_WITH_STRINGS, outcome.status)
    return Raw(outcome.text, APPLICATION_JSON, outcome.status)


class Handed(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A transaction on its way to the writer."""

    flags: int
    data: bytes


class Outcome(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What the writer says to it: a status and, unless that is 200, the error as JSON."""

    status: int
    text: bytes = b""


class Handover:
    """The way of transactions to the writer: what comes while one lot is under way goes with the
    next.
    """

    __slots__ = ("_sending", "_upstream", "_waiting")

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._waiting: list[tuple[Handed, asyncio.Future[Outcome]]] = []
        self._sending: asyncio.Task[None] | None = None

    async def send(self, handed: Handed) -> Outcome:
        """Hand a transaction over; raises ``ApiError`` when the writer is too busy or away."""
        if len(self._waiting) >= MAX_WAITING:
            raise TOO_MANY_LONG_ANSWERS.error()
        outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((handed, outcome))
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_all())
        return await outcome

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                await self._send_lot(self._take_lot())
        finally:
            self._sending = None

    def _take_lot(self) -> list[tuple[Handed, asyncio.Future[Outcome]]]:
        count = size = 0
        for handed, _ in self._waiting[:MAX_LOT]:
            size += len(handed.data)
            if count and size > MAX_LOT_BYTES:
                break
            count += 1
        lot, self._waiting = self._waiting[:count], self._waiting[count:]
        return lot

    async def _send_lot(self, lot: list[tuple[Handed, asyncio.Future[Outcome]]]) -> None:
        body = encode_lot([handed for handed, _ in lot])
        try:
            request = request_bytes("POST", HANDOVER_PATH, {b"host": b"writer"}, body)
            # What a transaction does it does once: the pool knows it again by its id.
            answer = await _said(self._upstream.ask(request, may_repeat=True))
            outcomes = decode_outcomes(await answer.read())
            if len(outcomes) != len(lot):
                raise UpstreamLost("not as many outcomes as transactions")
        except (ApiError, UpstreamLost, msgspec.MsgspecError) as error:
            away = error if isinstance(error, ApiError) else NODE_NOT_REACHABLE.error()
            for _, outcome in lot:
                if not outcome.done():
                    outcome.set_exception(away)
            return
        for (_, outcome), found in zip(lot, outcomes, strict=True):
            if not outcome.done():
                outcome.set_result(found)


def take_over(request: Request) -> Raw:
    """Put the transactions that a reader has checked into the pool."""
    node = node_of(request)
    return Raw(encode_outcomes([_take(node, handed) for handed in decode_lot(request.body)]))


def _take(node: Node, handed: Handed) -> Outcome:
    decode = codec.decode_protobuf if handed.flags & _PROTOBUF else codec.decode_legacy
    family = node.network.family
    try:
        transaction = decode(handed.data, node.network.chain_id)
    except SolitonError as error:
        return _refused(refusal(error, family))
    verified = signed_messages(transaction) if handed.flags & _VERIFIED else ()
    try:
        node.broadcast(transaction, verified=verified)
    except SolitonError as error:
        return _refused(state_refusal(error, transaction, family))
    except Exception:  # noqa: BLE001 - a fault of ours at one is no news about the others
        _log.exception("transaction %s failed", transaction.id.hex())
        return _refused(UNKNOWN.error())
    return Outcome(HTTPStatus.OK)


def _refused(error: ApiError) -> Outcome:
    return Outcome(error.kind.status, encode_json(error.body()))


async def _said(asking: Awaitable[Answer]) -> Answer:
    """The writer's answer; raises ``ApiError`` where there is none."""
    try:
        return await asking
    except UpstreamBusy as error:
        raise TOO_MANY_LONG_ANSWERS.error() from error
    except UpstreamLost as error:
        raise NODE_NOT_REACHABLE.error() from error


encode_lot = msgspec.msgpack.Encoder().encode
encode_outcomes = msgspec.msgpack.Encoder().encode
decode_lot = msgspec.msgpack.Decoder(list[Handed]).decode
decode_outcomes = msgspec.msgpack.Decoder(list[Outcome]).decode
