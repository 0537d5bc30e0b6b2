"""Routes as declarations.

What lives here: the ``Route`` record, from which routing, validation and the OpenAPI document
follow. What does not: finding routes (``soliton.web.routing``), handling a request
(``application``), and the routes themselves (``rest``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

import msgspec

from soliton.api import errors
from soliton.api.errors import ErrorKind
from soliton.api.http import Request
from soliton.errors import InvariantBroken
from soliton.web.parameters import Parameter, Place, Schema, unknown_name, wrong_value

GET = ("GET",)
POST = ("POST",)
DELETE = ("DELETE",)
PUT = ("PUT",)
ANY_METHOD = ("GET", "POST", "PUT", "DELETE")

Handler = Callable[[Request], object]


class Reads(Enum):
    """What the answers of a route depend on."""

    STATE = "state"
    """The chain alone. A ``GET`` has the same answer until the next block, and an ``ETag``. Any
    process with the store can answer.
    """
    CHAIN = "chain"
    """The chain and the clock, or nothing. Any process can answer."""
    NODE = "node"
    """State of the node's process: the pool, the wallet, events, peers."""


class BodyKind(Enum):
    """How a body is read, and what happens to a bad one."""

    TEXT = "text"
    """Any content type or none; may be empty. Read with ``request.body_text()``."""
    JSON = "json"
    """Content type JSON, not empty. Malformed JSON is error 1."""
    JSON_OR_REJECT = "json-or-reject"
    """As JSON, but malformed JSON rejects the route, which ends in a 404."""
    FORM_OR_JSON = "form-or-json"
    """A form or JSON_OR_REJECT. Read with ``request.listed(...)``."""


class Body(msgspec.Struct, frozen=True):
    """The body of a route."""

    kind: BodyKind
    description: str
    example: object
    schema: type | Schema
    get_is_405: bool = False
    """GET on the same path gets 405 instead of 404 (the reference's ``jsonPost``)."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One operation of the API: everything that routing, checks and documentation need."""

    methods: tuple[str, ...]
    path: str
    handler: Handler
    tag: str
    summary: str
    response: type | Schema
    """A msgspec-compatible type, or a ready JSON schema."""
    example: object
    """A real response."""
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    errors: tuple[ErrorKind, ...] = ()
    reads: Reads = Reads.NODE
    scope: str = ""
    """If set, the route requires the API key, or a key with this scope. The key is checked after
    the method and before parameters and body.
    """
    families: tuple[str, ...] = ()
    """The families of networks that have the route; empty for all of them."""
    content_type: str = "application/json"
    text: str = ""
    """The meaning of a plain-text answer with status 200, if there can be one."""
    statuses: tuple[tuple[int, str], ...] = ()
    """Successful statuses other than 200, with their descriptions."""
    documented: bool = True
    seconds: float | None = None
    """The timeout of the handler; ``None`` for the common one."""
    own: bool = False
    """The reference has no such route: what cannot be read in its parameters is error 199, not a
    route that does not exist.
    """
    guarded: bool = False
    """Requests that the route does not take need the API key, because of the path."""
    relayed: bool = False
    """Another process answers, and counts the slots and the costs."""

    @property
    def key(self) -> bool:
        """Whether the route requires the API key."""
        return bool(self.scope)

    @property
    def has_tag(self) -> bool:
        """Whether answers have an ``ETag``, which is the last block."""
        return self.reads is Reads.STATE and self.methods == GET

    def is_of(self, family: str) -> bool:
        """Whether the networks of a family have the route."""
        return not self.families or family in self.families

    def all_errors(self) -> tuple[ErrorKind, ...]:
        """The declared errors, and those that the key and the body imply."""
        takes = bool(self.parameters) or self.body is not None
        found = self.errors
        if self.key or (self.guarded and takes):
            found = (errors.API_KEY_NOT_VALID, *found)
        if self.own and errors.CUSTOM_VALIDATION_ERROR not in found:
            found = (*found, errors.CUSTOM_VALIDATION_ERROR)
        if errors.INVALID_ADDRESS in found and errors.CUSTOM_VALIDATION_ERROR not in found:
            # Text that is not base58 is reported with the general code.
            found = (*found, errors.CUSTOM_VALIDATION_ERROR)
        if self.body is not None and self.body.kind is not BodyKind.TEXT:
            found += tuple(
                kind for kind in (errors.WRONG_JSON, errors.WRONG_JSON_DATA) if kind not in found
            )
        return found


class CompiledRoute:
    """A route prepared for requests."""

    __slots__ = (
        "body",
        "handler",
        "is_json",
        "key",
        "methods",
        "number",
        "of_chain",
        "own",
        "path",
        "queries",
        "route",
        "scope",
    )

    def __init__(self, route: Route, number: int) -> None:
        """``number`` is the index of the route in its application."""
        names = [segment[1:-1] for segment in route.path.split("/") if segment.startswith("{")]
        declared = {item.name: item for item in route.parameters if item.place is Place.PATH}
        if sorted(names) != sorted(declared):
            raise InvariantBroken(f"{route.path}: path parameters and declarations differ")
        self.route = route
        self.number = number
        self.of_chain = route.has_tag
        self.methods = frozenset(route.methods)
        self.handler = route.handler
        self.is_json = route.content_type == "application/json"
        self.key = route.key
        self.scope = route.scope
        self.body = route.body
        self.own = route.own
        self.path = tuple((declared[name], declared[name].kind.convert) for name in names)
        self.queries = tuple(item for item in route.parameters if item.place is Place.QUERY)

    def convert(self, request: Request, segments: tuple[str, ...]) -> bool:
        """Store the converted parameters in the request; False if one is missing or malformed, for
        which the node's own routes raise error 199.
        """
        arguments: dict[str, object] = {}
        for (parameter, convert), segment in zip(self.path, segments, strict=True):
            value = convert(segment)
            if value is None:
                return self._refuse(parameter, segment)
            arguments[parameter.name] = value
        if self.own and request.query_string:
            self._check_names(request.query)
        for parameter in self.queries:
            texts = request.query.get(parameter.name)
            if texts is None:
                if parameter.required:
                    return self._refuse(parameter, None)
                continue
            for text in texts if parameter.repeated else texts[:1]:
                value = parameter.kind.convert(text)
                if value is not None:
                    arguments[parameter.name] = value
                elif self._is_wrong(parameter, text):
                    return self._refuse(parameter, text)
                # Else an empty number or truth value: like a missing one, as in akka-http.
        request.arguments = arguments
        return True

    def _is_wrong(self, parameter: Parameter, text: str) -> bool:
        is_text = parameter.kind.schema.get("type") == "string"
        return bool(text) or parameter.required or is_text or self.own

    def _refuse(self, parameter: Parameter, text: str | None) -> bool:
        if self.own:
            raise errors.invalid_request(wrong_value(parameter, text))
        return False

    def _check_names(self, query: Mapping[str, list[str]]) -> None:
        problem = unknown_name(query, [each.name for each in self.queries])
        if problem is not None:
            raise errors.invalid_request(problem)


Match = tuple[CompiledRoute, tuple[str, ...]]
