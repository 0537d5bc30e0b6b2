"""Route tables, and routing.

Several routes may match a path. They are tried in the order of declaration; one that raises
``Rejected`` passes the request to the next.

The syntax of lines is that of ``soliton.web.parameters``, with the words ``auth`` (``Auth``),
``when`` (``always``: also while the service starts or stops) and ``tag``.

What lives here: the record that routing and the OpenAPI document use, the rows that produce it, and
the router. What does not: the routes themselves, and handling requests (``application``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from enum import Enum
from typing import Any, Final

import msgspec

from soliton.matcher.rest.answers import Answer
from soliton.matcher.rest.examples import ADDRESS, ASSET, ORDER_ID, PUBLIC_KEY
from soliton.matcher.rest.requests import Request
from soliton.web.parameters import Kind, Parameter, parameters, read_line

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

    @property
    def name(self) -> str:
        """The operation's name, for the documentation and metrics."""
        return self.handler.__name__.strip("_")


_WORDS: Final = ("auth", "when", "tag")
_SHARED: Final = parameters(f"""
amount    | text | The amount asset: WAVES, or an id in base58. | {ASSET}
price     | text | The price asset: WAVES, or an id in base58.  | WAVES
asset     | text | WAVES, or an id in base58.                   | {ASSET}
address   | text | An account's address.                        | {ADDRESS}
publicKey | text | An account's public key in base58.           | {PUBLIC_KEY}
orderId   | text | An order's id in base58.                     | {ORDER_ID}
""")


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


def table(tag: str, text: str, *rows: Row, kinds: Iterable[Kind] = ()) -> tuple[Route, ...]:
    """The routes of a group. ``text`` declares parameters used only in this group."""
    known = _SHARED | parameters(text, *kinds)
    return tuple(_route(each, tag, known) for each in rows)


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
