"""Dispatching requests: the method of a request's head, parsed once for all equal heads.

What lives here: methods, and parsing the head of a request. What does not: its messages
(``calls``), and the functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sized
from functools import partial
from typing import Any, Final

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from soliton.grpc_api.errors import NOT_A_MESSAGE, Code, Refused
from soliton.grpc_api.framing import (
    ENCODINGS,
    MAX_REQUEST_BYTES,
    http_status,
    seconds_of,
    status,
)
from soliton.grpc_api.messages import DIGEST_LENGTH
from soliton.web.http2.requests import Head

Methods = Mapping[str, object]
Metadata = Mapping[str, str]
"""The headers of a request, by name."""
Part = tuple[ServiceDescriptor, Methods]

_NOT_POST: Final = http_status(405, ((b"allow", b"POST"),))
_NO_GRPC: Final = http_status(415)
MAX_ITEMS: Final = MAX_REQUEST_BYTES // (2 + DIGEST_LENGTH)
"""Limit on the items in the lists of a request: so many ids fit into its bytes."""
_CONTENT: Final = b"application/grpc"
_TOO_LONG: Final = "the headers are longer than this server takes"
_CHAIN, _METADATA = "chain", "metadata"


class Method:
    """A method of a service: its function, and how to call it."""

    __slots__ = (
        "_parse",
        "function",
        "holds_snapshot",
        "path",
        "streams_requests",
        "streams_responses",
        "takes_metadata",
    )

    def __init__(self, method: MethodDescriptor, function: Any) -> None:  # noqa: ANN401 - any kind
        self.path = f"/{method.containing_service.full_name}/{method.name}"
        self.function = function
        self._parse = GetMessageClass(method.input_type).FromString
        names = inspect.signature(function).parameters
        self.streams_responses: bool = method.server_streaming
        """Whether the response is a stream of messages."""
        self.streams_requests: bool = method.client_streaming
        """Whether the request is a stream of messages, each of which is answered."""
        self.holds_snapshot = _CHAIN in names
        """Whether its function takes the chain, as of one snapshot."""
        self.takes_metadata = _METADATA in names
        """Whether its function takes the metadata."""

    def parsed(self, data: bytes) -> Message:
        """Parse a request; raises ``Refused``."""
        try:
            request = self._parse(data)
        except (DecodeError, RecursionError, ValueError) as error:
            raise Refused(Code.UNKNOWN, NOT_A_MESSAGE) from error
        if len(data) > MAX_ITEMS and items_of(request) > MAX_ITEMS:
            raise too_many_items()
        return request

    def call(self, chain: object, request: Message, metadata: Metadata) -> object:
        """Call the function with a request and, if it takes them, the chain and the metadata."""
        given = (chain, request) if self.holds_snapshot else (request,)
        return self.function(*given, metadata) if self.takes_metadata else self.function(*given)


def too_many_items() -> Refused:
    """Return the refusal of a request whose lists have more than ``MAX_ITEMS`` items."""
    return Refused(Code.RESOURCE_EXHAUSTED, f"too many items: at most {MAX_ITEMS}")


def items_of(request: Message) -> int:
    """Return the number of items in the lists of a request."""
    values = (value for _, value in request.ListFields() if not isinstance(value, bytes | str))
    return sum(len(value) for value in values if isinstance(value, Sized))


class Route:
    """The parsed head of a request; ``refusal`` is the response if it is invalid."""

    __slots__ = ("is_gzip", "metadata", "method", "refusal", "seconds")

    def __init__(self) -> None:
        self.method: Method | None = None
        self.refusal: bytes | None = None
        self.seconds: float | None = None
        """The timeout of the call."""
        self.is_gzip = False
        """Whether its messages may be compressed with gzip."""
        self.metadata: Metadata = {}


class Routes:
    """The methods on one port."""

    def __init__(self, parts: Iterable[Part]) -> None:
        """``parts`` are the services with a function for each method."""
        made = [
            Method(each, given[each.name]) for service, given in parts for each in service.methods
        ]
        self._methods = {each.path.encode(): each for each in made}

    def route(self, head: Head) -> Route:
        """Return the route of a head; equal heads share it."""
        made = head.made
        if not isinstance(made, Route):
            made = head.made = self._read(head)
        return made

    def _read(self, head: Head) -> Route:
        made = Route()
        fields = dict(head.fields)
        refused = partial(status, trailers=(), is_all=True)
        content = fields.get(b"content-type", b"")
        if head.is_too_large:
            made.refusal = refused(Code.RESOURCE_EXHAUSTED, _TOO_LONG)
        elif head.method != b"POST":
            made.refusal = _NOT_POST
        elif content[: len(_CONTENT)] != _CONTENT or content[len(_CONTENT) :][:1] not in _BEHIND:
            made.refusal = _NO_GRPC
        elif (method := self._methods.get(head.path)) is None:
            name = head.path.decode("utf-8", "replace").lstrip("/")
            made.refusal = refused(Code.UNIMPLEMENTED, f"Method not found: {name}")
        else:
            made.method = method
            if method.takes_metadata:
                made.metadata = {
                    name.decode("ascii"): value.decode("utf-8", "replace")
                    for name, value in head.fields
                }
            try:
                self._read_rest(made, fields)
            except Refused as error:
                made.refusal = refused(error.code, error.text, trailers=error.trailers)
        return made

    def _read_rest(self, made: Route, fields: Mapping[bytes, bytes]) -> None:
        timeout = fields.get(b"grpc-timeout")
        made.seconds = None if timeout is None else seconds_of(timeout)
        encoding = fields.get(b"grpc-encoding", b"identity")
        made.is_gzip = encoding == b"gzip"
        if encoding not in (b"identity", b"gzip"):
            text = "requests may be packed with gzip, or not at all"
            accepted = (("grpc-accept-encoding", ENCODINGS.decode()),)
            raise Refused(Code.UNIMPLEMENTED, text, accepted)


_BEHIND: Final = (b"", b"+", b";")
