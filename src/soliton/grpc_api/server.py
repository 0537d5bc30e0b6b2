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
from contextlib import AbstractContextManager, contextmanager
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
STEP_SECONDS: Final = 0.005
"""How long a stream is made before others get their turn."""

Methods = Mapping[str, object]
Metadata = Mapping[str, str]
"""What a client sends beside its request, by name."""
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
    if method.server_streaming:
        return grpc.unary_stream_rpc_method_handler(_streaming(parse, function, views, clients))
    return grpc.unary_unary_rpc_method_handler(_answering(parse, function, views, clients))


def _answering(
    parse: Callable[[bytes], Message],
    function: Any,  # noqa: ANN401 - whatever the service has
    views: Views,
    clients: Clients,
) -> Callable[[bytes, Context], Awaitable[bytes]]:
    arguments = _arguments(function, views)

    async def answer(data: bytes, context: Context) -> bytes:
        try:
            request = _parsed(parse, data)
            with clients.call(context, stream=False), arguments(request, context) as given:
                found = function(*given)
                if inspect.isawaitable(found):
                    found = await found
            return found if isinstance(found, bytes) else found.SerializeToString()
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets a status
            await _refuse(context, error)

    return answer


def _streaming(
    parse: Callable[[bytes], Message],
    function: Any,  # noqa: ANN401 - whatever the service has
    views: Views,
    clients: Clients,
) -> Callable[[bytes, Context], Awaitable[None]]:
    arguments = _arguments(function, views)

    async def stream(data: bytes, context: Context) -> None:
        try:
            request = _parsed(parse, data)
            with (
                clients.call(context, stream=True) as call,
                arguments(request, context) as given,
            ):
                found = function(*given)
                if isinstance(found, Iterator):
                    await _write_all(found, context, call)
                else:
                    await _write_coming(found, context, call)
        except Exception as error:  # noqa: BLE001 - as above
            await _refuse(context, error)

    return stream


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
        if "chain" in names:
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
            with call.writing():
                await context.write(each if isinstance(each, bytes) else each.SerializeToString())
        if time.monotonic() - since > STEP_SECONDS:
            await asyncio.sleep(0)
            since = time.monotonic()


async def _write_coming(
    found: AsyncGenerator[Message | bytes, None], context: Context, call: Call
) -> None:
    try:
        async for each in found:
            with call.writing():
                await context.write(each if isinstance(each, bytes) else each.SerializeToString())
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
    elif isinstance(error, StorageProblem):
        refused = Refused(Code.UNAVAILABLE, str(error))
    elif isinstance(error, SolitonError):
        refused = Refused(Code.INTERNAL, str(error))
    else:
        _log.error("a call failed", exc_info=error)
        refused = Refused(Code.INTERNAL, "")
    await context.abort(grpc.StatusCode[refused.code.value], refused.words, refused.trailers)


class Unserved(grpc.GenericRpcHandler):
    """Answers calls that nobody serves, in the words of the reference's library."""

    def service(self, details: grpc.HandlerCallDetails) -> Any:  # noqa: ANN401 - as declared
        """A handler that refuses."""

        async def refuse(_requests: object, context: Context) -> None:
            words = f"Method not found: {details.method.lstrip('/')}"
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, words)

        return grpc.stream_stream_rpc_method_handler(refuse)
