"""Serving calls: bytes in, a function, bytes out, or a status.

A service is a descriptor and a function for each of its calls. A function gets the chain at a
moment and the request, and gives a message, or what iterates over messages; what only the node has
it awaits. Streams are made in steps with other calls in between, and no faster than they are read.

What lives here: the way from a call to its function and back. What does not: the functions.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, aclosing, contextmanager
from typing import Any, Final, NoReturn, Protocol

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

from soliton.errors import SolitonError
from soliton.grpc_api.clients import Call, Clients
from soliton.grpc_api.errors import NOT_A_MESSAGE, Code, Refused
from soliton.grpc_api.views import Views
from soliton.storage.errors import StorageProblem

MAX_REQUEST_BYTES: Final = 4 * 1024 * 1024
MAX_CONNECTIONS: Final = 4_096
"""Of one port; more are closed at once."""
IDLE_CONNECTION_MS: Final = 600_000
HANDSHAKE_MS: Final = 20_000
STEP_SECONDS: Final = 0.005
"""How long a stream is made before others get their turn."""

Methods = Mapping[str, object]
Metadata = Mapping[str, str]
"""What a client sends beside its request, by name."""
_CHAIN: Final = "chain"
_log = logging.getLogger(__name__)


class Context(Protocol):
    """A call, as ``grpc.aio`` hands it over."""

    async def write(self, data: bytes, /) -> None:
        """Send one message of a stream, as soon as the client reads it."""

    async def abort(
        self, code: object, words: str, trailers: tuple[tuple[str, str], ...] = (), /
    ) -> NoReturn:
        """End the call with a status."""

    def invocation_metadata(self) -> Iterable[tuple[str, str]]:
        """What the client sent beside the request."""

    def peer(self) -> str:
        """Who calls."""


OPTIONS: Final = (
    ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
    ("grpc.max_send_message_length", -1),
    # Several processes may serve one port.
    ("grpc.so_reuseport", 1),
    # A client that has gone without a word is found out.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.max_pings_without_data", 0),
    # One that asks for nothing is closed, also before it has said anything.
    ("grpc.max_connection_idle_ms", IDLE_CONNECTION_MS),
    ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
    ("grpc.max_allowed_incoming_connections", MAX_CONNECTIONS),
)


def handlers(
    service: ServiceDescriptor, methods: Methods, views: Views, clients: Clients
) -> grpc.GenericRpcHandler:
    """What answers the calls of a service; each of its calls has a function."""
    made = {
        each.name: _handler(each, methods[each.name], views, clients) for each in service.methods
    }
    return grpc.method_handlers_generic_handler(service.full_name, made)


def _handler(
    method: MethodDescriptor,
    function: Any,  # noqa: ANN401 - whatever the service has
    views: Views,
    clients: Clients,
) -> Any:  # noqa: ANN401 - grpc has no types
    parse = GetMessageClass(method.input_type).FromString
    # One answer is a stream with one message: as long as it is not read, its call can be ended.
    return grpc.unary_stream_rpc_method_handler(
        _serving(parse, function, views, clients, streams=method.server_streaming)
    )


def _serving(
    parse: Callable[[bytes], Message],
    function: Any,  # noqa: ANN401 - whatever the service has
    views: Views,
    clients: Clients,
    *,
    streams: bool,
) -> Callable[[bytes, Context], Awaitable[None]]:
    arguments = _arguments(function, views)
    holds_moment = _CHAIN in inspect.signature(function).parameters

    async def answer(request: Message, context: Context) -> Message | bytes:
        with arguments(request, context) as given:
            found = function(*given)
            answer: Message | bytes = await found if inspect.isawaitable(found) else found
            return answer

    async def serve(data: bytes, context: Context) -> None:
        try:
            request = _parsed(parse, data)
            call = clients.call(context, stream=streams)
            if not streams:
                await _write(await answer(request, context), context, call)
                return
            call.holds_moment = holds_moment
            with arguments(request, context) as given:
                found = function(*given)
                if isinstance(found, Iterator):
                    await _write_all(found, context, call)
                else:
                    await _write_coming(found, context, call)
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets a status
            await _refuse(context, error)

    return serve


def _arguments(
    function: Any,  # noqa: ANN401 - as above
    views: Views,
) -> Callable[[Message, Context], AbstractContextManager[tuple[object, ...]]]:
    """What a function is called with: by the names of its parameters the chain at a moment, the
    request, and what the client sent beside it.
    """
    names = inspect.signature(function).parameters

    @contextmanager
    def given(request: Message, context: Context) -> Iterator[tuple[object, ...]]:
        beside = (dict(context.invocation_metadata()),) if "metadata" in names else ()
        if _CHAIN in names:
            with views.open() as chain:
                yield chain, request, *beside
        else:
            yield request, *beside

    return given


async def _write_all(found: Iterator[Message | bytes | None], context: Context, call: Call) -> None:
    since = time.monotonic()
    for each in found:
        # Nothing, or no bytes, is a step without a message; a message may well be empty.
        if each or isinstance(each, Message):
            await _write(each, context, call)
        if time.monotonic() - since > STEP_SECONDS:
            await asyncio.sleep(0)
            since = time.monotonic()


async def _write(message: Message | bytes, context: Context, call: Call) -> None:
    data = message if isinstance(message, bytes) else message.SerializeToString()
    with call.writing(len(data)):
        await context.write(data)


async def _write_coming(
    found: AsyncGenerator[Message | bytes, None], context: Context, call: Call
) -> None:
    try:
        async for each in found:
            await _write(each, context, call)
    finally:
        # What it holds is let go now, and not when somebody collects garbage.
        await found.aclose()


def _parsed(parse: Callable[[bytes], Message], data: bytes) -> Message:
    try:
        return parse(data)
    except (DecodeError, RecursionError, ValueError) as error:
        raise Refused(Code.UNKNOWN, NOT_A_MESSAGE) from error


async def _refuse(context: Context, error: Exception) -> NoReturn:
    if isinstance(error, Refused):
        refused = error
    elif isinstance(error, aio.AbortError):
        raise error
    elif isinstance(error, aio.InternalError):
        # The client has gone, and nobody hears of it.
        raise asyncio.CancelledError from error
    elif isinstance(error, StorageProblem):
        refused = Refused(Code.UNAVAILABLE, str(error))
    elif isinstance(error, SolitonError):
        refused = Refused(Code.INTERNAL, str(error))
    else:
        _log.error("a call failed", exc_info=error)
        refused = Refused(Code.INTERNAL, "")
    await context.abort(grpc.StatusCode[refused.code.value], refused.words, refused.trailers)


class Known(grpc.GenericRpcHandler):
    """Handlers whose calls are known before their requests are there."""

    def __init__(self, handlers: Iterable[grpc.GenericRpcHandler], clients: Clients) -> None:
        self._handlers = tuple(handlers)
        self._clients = clients

    def service(self, details: grpc.HandlerCallDetails) -> Any:  # noqa: ANN401 - as declared
        """What answers a call."""
        self._clients.arrived()
        found = (each.service(details) for each in self._handlers)
        return next((each for each in found if each is not None), None)


class Beside(grpc.GenericRpcHandler):
    """Services that the library answers itself, with calls that are counted like all others. It
    stands in the place of a server while they are added.
    """

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._handlers: list[grpc.GenericRpcHandler] = []

    def add_generic_rpc_handlers(self, handlers: Iterable[grpc.GenericRpcHandler]) -> None:
        """As a server."""
        self._handlers.extend(handlers)

    def add_registered_method_handlers(self, *_: object) -> None:
        """The same handlers once more, for libraries that look for methods by their name first."""

    def service(self, details: grpc.HandlerCallDetails) -> Any:  # noqa: ANN401 - as declared
        """What answers a call."""
        found = (each.service(details) for each in self._handlers)
        made = next((each for each in found if each is not None), None)
        if made is None:
            return None
        forms = made.request_deserializer, made.response_serializer
        if made.unary_unary is not None:
            behaviour = self._counted(made.unary_unary, streams=False)
            return grpc.unary_stream_rpc_method_handler(behaviour, *forms)
        if made.unary_stream is not None:
            behaviour = self._counted(made.unary_stream, streams=True)
            return grpc.unary_stream_rpc_method_handler(behaviour, *forms)
        behaviour = self._counted(made.stream_stream, streams=True)
        return grpc.stream_stream_rpc_method_handler(behaviour, *forms)

    def _counted(self, function: Any, *, streams: bool) -> Any:  # noqa: ANN401 - grpc has no types
        async def answer(request: object, context: Any) -> None:  # noqa: ANN401 - as above
            try:
                call = self._clients.call(context, stream=streams)
                counted = _Counted(context, call)
                made = function(request, counted)
                if inspect.isawaitable(made):
                    made = _one(await made)
                async with aclosing(made):
                    async for each in made:
                        await counted.write(each)
            except Refused as error:
                await _refuse(context, error)

        return answer


class _Counted:
    """A call of the library's services, which write as messages what ours write as bytes."""

    def __init__(self, context: Any, call: Call) -> None:  # noqa: ANN401 - grpc has no types
        self._context = context
        self._call = call
        self.abort = context.abort

    async def write(self, message: Message) -> None:
        """Send one message, as soon as the client reads it."""
        with self._call.writing(message.ByteSize()):
            await self._context.write(message)


async def _one(message: Message | None) -> AsyncGenerator[Message, None]:
    """The only message of an answer; none of a call that has written itself."""
    if message is not None:
        yield message


class Unserved(grpc.GenericRpcHandler):
    """Answers calls that nobody serves, in the words of the reference's library."""

    def service(self, details: grpc.HandlerCallDetails) -> Any:  # noqa: ANN401 - as declared
        """A handler that refuses."""

        async def refuse(_requests: object, context: Context) -> None:
            words = f"Method not found: {details.method.lstrip('/')}"
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, words)

        return grpc.stream_stream_rpc_method_handler(refuse)
