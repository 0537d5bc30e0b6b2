"""Routes as declarations, and finding the routes that a path may mean.

What lives here: kinds of parameters, the ``Route`` record that routing, validation and the OpenAPI
document are all made from, and the trie of path segments. What does not: carrying out a request
(``asgi``), and the routes themselves (``rest``).

Several routes may fit one path. They are tried in order, static segments before parameters, and a
parameter that refuses its segment lets the next route try, as the ``~`` of akka-http does in
wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/CompositeHttpService.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from urllib.parse import unquote

from soliton.api.errors import (
    API_KEY_NOT_VALID,
    CUSTOM_VALIDATION_ERROR,
    INVALID_ADDRESS,
    WRONG_JSON,
    WRONG_JSON_DATA,
    ErrorKind,
    RejectionError,
)
from soliton.api.etags import depends_on_chain_alone
from soliton.api.http import Request
from soliton.api.scopes import scope_of
from soliton.errors import InvariantBroken

MAX_PATH_SEGMENTS = 16
"""No route is half as deep; more is refused before any search."""

WHATEVER = "*"
"""As the last segment of a route's path: whatever is there, also if it is nothing."""

_MAX_INT = 2**31 - 1
_MAX_LONG = 2**63 - 1
_MAX_DIGITS = 19

GET = ("GET",)
POST = ("POST",)
DELETE = ("DELETE",)
PUT = ("PUT",)
ANY_METHOD = ("GET", "POST", "PUT", "DELETE")

Schema = Mapping[str, object]
Handler = Callable[[Request], object]


@dataclass(frozen=True, slots=True)
class Kind:
    """What a parameter's text may be; ``convert`` returns None to refuse or raises ``ApiError``."""

    name: str
    schema: Schema
    convert: Callable[[str], object | None]


def _natural(limit: int) -> Callable[[str], int | None]:
    def convert(text: str) -> int | None:
        if not text.isdecimal() or not text.isascii() or len(text.lstrip("0")) > _MAX_DIGITS:
            return None
        value = int(text.lstrip("0") or "0")
        return value if value <= limit else None

    return convert


def _signed(limit: int) -> Callable[[str], int | None]:
    natural = _natural(limit + 1)

    def convert(text: str) -> int | None:
        sign, digits = (text[:1], text[1:]) if text[:1] in ("-", "+") else ("", text)
        value = natural(digits)
        if value is None or (value > limit and sign != "-"):
            return None
        return -value if sign == "-" else value

    return convert


_TRUTHS = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(
    ("false", "no", "off", "0"), False
)


def _boolean(text: str) -> bool | None:
    return _TRUTHS.get(text.lower())


TEXT = Kind("text", {"type": "string"}, lambda text: text)
NATURAL = Kind(
    "natural",
    {"type": "integer", "format": "int32", "minimum": 0, "maximum": _MAX_INT},
    _natural(_MAX_INT),
)
NATURAL_LONG = Kind(
    "natural_long",
    {"type": "integer", "format": "int64", "minimum": 0, "maximum": _MAX_LONG},
    _natural(_MAX_LONG),
)
INTEGER = Kind("integer", {"type": "integer", "format": "int32"}, _signed(_MAX_INT))
LONG = Kind("long", {"type": "integer", "format": "int64"}, _signed(_MAX_LONG))
BOOLEAN = Kind("boolean", {"type": "boolean"}, _boolean)
ORDER = Kind(
    "order",
    {"type": "string", "enum": ["asc", "desc"]},
    lambda text: text if text in ("asc", "desc") else None,
)


class Place(Enum):
    """Where a parameter is found."""

    PATH = "path"
    QUERY = "query"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One declared parameter; ``example`` is what the documentation shows and tests send."""

    name: str
    kind: Kind
    description: str
    example: object
    place: Place = Place.PATH
    required: bool = True
    repeated: bool = False
    """The request keeps all values: read them from ``request.query``."""


def query_parameter(
    name: str,
    kind: Kind,
    description: str,
    example: object,
    *,
    required: bool = False,
    repeated: bool = False,
) -> Parameter:
    """A parameter of the query; a malformed or a missing required one rejects the route."""
    return Parameter(name, kind, description, example, Place.QUERY, required, repeated)


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
    key: bool = False
    """The API key is asked for, after the method and before parameters and body."""
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

    def all_errors(self) -> tuple[ErrorKind, ...]:
        """The declared errors and those that follow from the declaration."""
        found = (API_KEY_NOT_VALID, *self.errors) if self.key else self.errors
        if INVALID_ADDRESS in found and CUSTOM_VALIDATION_ERROR not in found:
            # What is not even base58 has no code of its own.
            found = (*found, CUSTOM_VALIDATION_ERROR)
        if self.body is not None and self.body.kind is not BodyKind.TEXT:
            found += tuple(kind for kind in (WRONG_JSON, WRONG_JSON_DATA) if kind not in found)
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
        self.of_chain = route.methods == GET and depends_on_chain_alone(route.path)
        self.methods = frozenset(route.methods)
        self.handler = route.handler
        self.is_json = route.content_type == "application/json"
        self.key = route.key
        self.scope = scope_of(route.methods[0], route.path)
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


class _Node:
    __slots__ = ("below", "parameter", "routes", "static")

    def __init__(self) -> None:
        self.static: dict[str, _Node] = {}
        self.parameter: _Node | None = None
        self.routes: list[CompiledRoute] = []
        self.below: list[CompiledRoute] = []
        """Those that take whatever else there is in the path."""


class Router:
    """The trie of all routes; paths without parameters are looked up in one step."""

    __slots__ = ("_fixed", "_root")

    def __init__(self, routes: Iterable[CompiledRoute]) -> None:
        self._root = _Node()
        fixed: list[str] = []
        for route in routes:
            node = self._root
            for segment in route.route.path.split("/")[1:]:
                if segment == WHATEVER:
                    break
                if segment.startswith("{"):
                    if node.parameter is None:
                        node.parameter = _Node()
                    node = node.parameter
                else:
                    node = node.static.setdefault(segment, _Node())
            is_open = route.route.path.endswith(f"/{WHATEVER}")
            (node.below if is_open else node.routes).append(route)
            if "{" not in route.route.path:
                fixed.append(route.route.path)
        self._fixed: dict[str, list[Match]] = {path: self._search(path) for path in fixed}

    def find(self, raw_path: str) -> list[Match]:
        """The routes that fit a path as it was sent, in the order in which they may try."""
        fixed = self._fixed.get(raw_path)
        return self._search(raw_path) if fixed is None else fixed

    def _search(self, raw_path: str) -> list[Match]:
        segments = raw_path.split("/", MAX_PATH_SEGMENTS + 1)[1:]
        found: list[Match] = []
        if len(segments) > MAX_PATH_SEGMENTS:
            return found
        if "%" in raw_path:
            try:
                segments = [unquote(segment, errors="strict") for segment in segments]
            except UnicodeDecodeError as error:
                raise RejectionError("path is not UTF-8") from error
        _walk(self._root, segments, 0, (), found)
        return found


def _walk(
    node: _Node, segments: list[str], index: int, taken: tuple[str, ...], found: list[Match]
) -> None:
    if index == len(segments):
        found.extend((route, taken) for route in node.routes)
        return
    segment = segments[index]
    child = node.static.get(segment)
    if child is not None:
        _walk(child, segments, index + 1, taken, found)
    if node.parameter is not None and segment:
        _walk(node.parameter, segments, index + 1, (*taken, segment), found)
    found.extend((route, taken) for route in node.below)
