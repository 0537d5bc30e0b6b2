"""Route tables, and routing.

Several routes may match a path. They are tried in the order of declaration; one that raises
``Rejected`` passes the request to the next.

The syntax of lines is that of ``soliton.web.parameters``, with the words ``auth`` (``Auth``),
``when`` (``always``: also while the service starts or stops) and ``tag``.

Routes that the reference matcher does not have (``own``) are strict: a parameter that cannot be
read or that they do not have is an error which names it.

What lives here: the record that routing and the OpenAPI document use, the rows that produce it, and
the router. What does not: the routes themselves, and handling requests (``application``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final

import msgspec

from soliton.chain.addresses import ETHEREUM_KEY_LENGTH, PUBLIC_KEY_LENGTH
from soliton.chain.errors import FormatError
from soliton.chain.layouts import DIGEST_LENGTH, SIGNATURE_LENGTH
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.matcher.rest.answers import Answer, Refusal
from soliton.matcher.rest.examples import ADDRESS, ASSET, ORDER_ID, PUBLIC_KEY
from soliton.matcher.rest.requests import MAX_BASE58_CHARS, Request
from soliton.matching.errors import REQUEST_ARGUMENT_INVALID, MatcherError
from soliton.matching.pairs import parse_asset
from soliton.web.parameters import (
    MAX_SHOWN_CHARS,
    Kind,
    Parameter,
    Place,
    parameters,
    read_line,
    unknown_name,
    wrong_value,
)

Handler = Callable[[Request], Awaitable[Answer]]


class Auth(Enum):
    """Who may use a route. The application checks ``KEY``, handlers check the others."""

    PUBLIC = "public"
    KEY = "the operator's key"
    SIGNATURE = "a signature of the account"
    SIGNATURE_OR_KEY = "a signature of the account, or the operator's key"
    SIGNED_BODY = "a signature in the body"


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One operation. Path segments in braces are parameters; with ``barrier`` the route is
    unavailable while the service starts or stops.
    """

    handler: Handler
    summary: str
    example: Any = None
    method: str = "GET"
    path: str = ""
    tag: str = ""
    auth: Auth = Auth.PUBLIC
    barrier: bool = True
    parameters: tuple[Parameter, ...] = ()
    body: Any = None
    status: int = 200
    description: str = ""
    documented: bool = True
    content_type: str = "application/json"
    own: bool = False
    """The reference matcher has no such route."""
    redirects: bool = False
    """A pair in reverse order is redirected to the right one."""
    statuses: Mapping[int, str] = {}
    """Further statuses, with their meanings."""

    @property
    def name(self) -> str:
        """The operation's name, for the documentation and metrics."""
        return self.handler.__name__.strip("_")

    def read_parameters(self, request: Request) -> None:
        """Convert the parameters of a route of ours into ``request.arguments``; raises ``Refusal``
        for one that cannot be read, and for one that the route does not have.
        """
        query = request.query()
        texts = self._path_texts(request) | query
        wanted = [each.name for each in self.parameters if each.place is Place.QUERY]
        if (problem := unknown_name(query, wanted)) is not None:
            unknown = next(name for name in query if name not in wanted)
            raise _wrong(unknown[:MAX_SHOWN_CHARS], problem)
        for parameter in self.parameters:
            text = texts.get(parameter.name)
            if text is not None:
                request.arguments[parameter.name] = _converted(parameter, text)
        if self.auth in _SIGNED:
            for parameter in _HEADERS:
                text = request.header(parameter.name.lower().encode())
                if text is not None:
                    _converted(parameter, text)

    def _path_texts(self, request: Request) -> dict[str, str]:
        parts = zip(self.path.split("/")[1:], request.segments, strict=True)
        return {part[1:-1]: text for part, text in parts if part.startswith("{")}


def _converted(parameter: Parameter, text: str) -> object:
    value = parameter.kind.convert(text)
    if value is None:
        raise _wrong(parameter.name, wrong_value(parameter, text))
    return value


def _wrong(name: str, reason: str) -> Refusal:
    error = MatcherError(REQUEST_ARGUMENT_INVALID, form=1, name=name, reason=reason)
    return Refusal(error, "SimpleErrorResponse")


def _asset(text: str) -> str | None:
    try:
        asset = parse_asset(text)
    except FormatError:
        return None
    return text if asset is None or len(asset) == DIGEST_LENGTH else None


def _base58(*lengths: int) -> Callable[[str], bytes | None]:
    def convert(text: str) -> bytes | None:
        try:
            found = base58.decode(text, MAX_BASE58_CHARS)
        except Base58Error:
            return None
        return found if len(found) in lengths else None

    return convert


_ASSET: Final = Kind(
    "asset", {"type": "string"}, _asset, f"WAVES, or {DIGEST_LENGTH} bytes in base58"
)
_KEY: Final = Kind(
    "key",
    {"type": "string"},
    _base58(PUBLIC_KEY_LENGTH, ETHEREUM_KEY_LENGTH),
    f"{PUBLIC_KEY_LENGTH} or {ETHEREUM_KEY_LENGTH} bytes in base58",
)
_SIGNATURE: Final = Kind(
    "signature",
    {"type": "string"},
    _base58(SIGNATURE_LENGTH),
    f"{SIGNATURE_LENGTH} bytes in base58",
)
_SIGNED: Final = (Auth.SIGNATURE, Auth.SIGNATURE_OR_KEY)
_HEADERS: Final = tuple(
    parameters(
        """
Timestamp | natural_long | Milliseconds since 1970, as they were signed. | -
Signature | signature    | The signature.                                | -
""",
        _SIGNATURE,
    ).values()
)
"""The headers of a signed request."""

_WORDS: Final = ("auth", "when", "tag")
_SHARED: Final = parameters(
    f"""
amount    | asset | The amount asset: WAVES, or an id in base58. | {ASSET}
price     | asset | The price asset: WAVES, or an id in base58.  | WAVES
asset     | asset | WAVES, or an id in base58.                   | {ASSET}
address   | text  | An account's address.                        | {ADDRESS}
publicKey | key   | An account's public key in base58.           | {PUBLIC_KEY}
orderId   | text  | An order's id in base58.                     | {ORDER_ID}
""",
    _ASSET,
    _KEY,
)


class Row(msgspec.Struct, frozen=True):
    """A row of a route table, not parsed yet."""

    line: str
    route: Route


def row(
    line: str,
    handler: Handler,
    summary: str,
    example: object = None,
    **more: Any,  # noqa: ANN401 - fields of a route
) -> Row:
    """A route: its line, handler, summary, an example response and further fields."""
    return Row(line, Route(handler=handler, summary=summary, example=example, **more))


def table(
    tag: str, text: str, *rows: Row, kinds: Iterable[Kind] = (), own: bool = False
) -> tuple[Route, ...]:
    """The routes of a group. ``text`` declares parameters used only in this group; with ``own`` the
    reference matcher has none of them.
    """
    known = _SHARED | parameters(text, *kinds)
    found = (_route(each, tag, known) for each in rows)
    return tuple(msgspec.structs.replace(each, own=own or each.own) for each in found)


def _route(row: Row, tag: str, known: dict[str, Parameter]) -> Route:
    line = read_line(row.line, known, _WORDS)
    return msgspec.structs.replace(
        row.route,
        method=line.method,
        path=line.path,
        parameters=(*line.of_path, *line.of_query),
        tag=line.words.get("tag", tag),
        auth=Auth[line.words.get("auth", "public").upper()],
        barrier=line.words.get("when") != "always",
    )


class Router:
    """Finds routes by method and number of segments."""

    __slots__ = ("_routes",)

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes: dict[tuple[str, int], list[tuple[tuple[tuple[int, str], ...], Route]]] = {}
        for route in routes:
            parts = route.path.removesuffix("/").split("/")[1:]
            fixed = tuple((i, part) for i, part in enumerate(parts) if not part.startswith("{"))
            self._routes.setdefault((route.method, len(parts)), []).append((fixed, route))

    def find(self, method: str, segments: tuple[str, ...]) -> Iterator[Route]:
        """The matching routes, in order."""
        for fixed, route in self._routes.get((method, len(segments)), ()):
            if all(segments[index] == part for index, part in fixed):
                yield route
