"""Routes as declarations.

What lives here: the ``Route`` record that routing, validation and the OpenAPI document are all made
from. What does not: finding routes (``soliton.web.routing``), carrying out a request
(``application``), and the routes themselves (``rest``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from soliton.api import errors
from soliton.api.errors import ErrorKind
from soliton.api.http import Request
from soliton.errors import InvariantBroken
from soliton.web.parameters import Parameter, Place, Schema

GET = ("GET",)
POST = ("POST",)
DELETE = ("DELETE",)
PUT = ("PUT",)
ANY_METHOD = ("GET", "POST", "PUT", "DELETE")

Handler = Callable[[Request], object]


class Reads(Enum):
    """What the answers of a route are made of."""

    STATE = "state"
    """The chain alone: the answer to a ``GET`` is the same until the next block, as its ``ETag``
    says. Any process that has the store can give it.
    """
    CHAIN = "chain"
    """The chain, and what changes without it (the clock) or nothing; any process can give it."""
    NODE = "node"
    """What one process alone has: the pool, the wallet, events, peers."""


class BodyKind(Enum):
    """How a body is read, and what happens to a bad one."""

    TEXT = "text"
    """Any content type, also none, also empty; ``request.body_text()``."""
    JSON = "json"
    """Content type JSON, not empty; malformed JSON is error 1."""
    JSON_OR_REJECT = "json-or-reject"
    """As JSON, but malformed JSON lets the next route try, so that it ends in the 404."""
    FORM_OR_JSON = "form-or-json"
    """A form or JSON_OR_REJECT; ``request.listed(...)``."""


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a route."""

    kind: BodyKind
    description: str
    example: object
    schema: type | Schema
    get_is_405: bool = False
    """GET on the same path answers 405 in place of 404 (the reference's ``jsonPost``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
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
    """Where it is given: the API key, or one with this scope, is asked for, after the method and
    before parameters and body.
    """
    families: tuple[str, ...] = ()
    """The families of networks that have the route; none for all of them."""
    content_type: str = "application/json"
    text: str = ""
    """What it means when an answer with status 200 is plain text, if that can be."""
    statuses: tuple[tuple[int, str], ...] = ()
    """Answers besides 200 that are no errors: status and description."""
    documented: bool = True
    seconds: float | None = None
    """How long the answer may take; ``None`` is what all others may."""
    relayed: bool = False
    """Another process answers, and sees to the places for long answers and what they cost."""

    @property
    def key(self) -> bool:
        """Whether the API key is asked for."""
        return bool(self.scope)

    @property
    def has_tag(self) -> bool:
        """Whether answers have an ``ETag``, the last block."""
        return self.reads is Reads.STATE and self.methods == GET

    def is_of(self, family: str) -> bool:
        """Whether the networks of a family have it."""
        return not self.families or family in self.families

    def all_errors(self) -> tuple[ErrorKind, ...]:
        """The declared errors and those that follow from the declaration."""
        found = (errors.API_KEY_NOT_VALID, *self.errors) if self.key else self.errors
        if errors.INVALID_ADDRESS in found and errors.CUSTOM_VALIDATION_ERROR not in found:
            # What is not even base58 has no code of its own.
            found = (*found, errors.CUSTOM_VALIDATION_ERROR)
        if self.body is not None and self.body.kind is not BodyKind.TEXT:
            found += tuple(
                kind for kind in (errors.WRONG_JSON, errors.WRONG_JSON_DATA) if kind not in found
            )
        return found


class CompiledRoute:
    """A route with what one request needs, worked out once."""

    __slots__ = (
        "body",
        "handler",
        "is_json",
        "key",
        "methods",
        "number",
        "of_chain",
        "path",
        "queries",
        "route",
        "scope",
    )

    def __init__(self, route: Route, number: int) -> None:
        """``number`` is the place of the route among all of an application."""
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
        self.path = tuple((name, declared[name].kind.convert) for name in names)
        self.queries = tuple(item for item in route.parameters if item.place is Place.QUERY)

    def convert(self, request: Request, segments: tuple[str, ...]) -> bool:
        """Put the converted parameters into the request; False when one refuses."""
        arguments: dict[str, object] = {}
        for (name, convert), segment in zip(self.path, segments, strict=True):
            value = convert(segment)
            if value is None:
                return False
            arguments[name] = value
        for parameter in self.queries:
            texts = request.query.get(parameter.name)
            if texts is None:
                if parameter.required:
                    return False
                continue
            for text in texts if parameter.repeated else texts[:1]:
                value = parameter.kind.convert(text)
                if value is None:
                    return False
                arguments[parameter.name] = value
        request.arguments = arguments
        return True


Match = tuple[CompiledRoute, tuple[str, ...]]
