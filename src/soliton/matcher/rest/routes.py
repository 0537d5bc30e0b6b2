"""Routes as declarations, and finding the one that takes a request.

Several routes may fit a path. They are tried in the order in which they are declared; one that
raises ``Rejected`` leaves the request to the next.

What lives here: the record that routing and the OpenAPI document are made from, and the search.
What does not: the routes themselves, and carrying out a request (``application``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from soliton.matcher.rest.answers import Answer
from soliton.matcher.rest.requests import Request

Handler = Callable[[Request], Awaitable[Answer]]
Schema = Mapping[str, Any]

TEXT_SCHEMA: Final[Schema] = {"type": "string"}
LONG_SCHEMA: Final[Schema] = {"type": "integer", "format": "int64"}
FLAG_SCHEMA: Final[Schema] = {"type": "boolean"}


class Auth(Enum):
    """Who may ask."""

    PUBLIC = "public"
    KEY = "the operator's key"
    SIGNATURE = "a signature of the account"
    SIGNATURE_OR_KEY = "a signature of the account, or the operator's key"
    SIGNED_BODY = "a signature in the body"


@dataclass(frozen=True, slots=True)
class Query:
    """A parameter of the query."""

    name: str
    description: str
    schema: Schema = field(default_factory=lambda: TEXT_SCHEMA)


@dataclass(frozen=True, slots=True)
class Route:
    """One operation. Path segments in braces are parameters; ``barrier`` refuses while the service
    starts or stops.
    """

    method: str
    path: str
    handler: Handler
    tag: str
    summary: str
    auth: Auth = Auth.PUBLIC
    barrier: bool = True
    queries: tuple[Query, ...] = ()
    body: Any = None
    example: Any = None
    status: int = 200
    description: str = ""
    documented: bool = True
    content_type: str = "application/json"

    @property
    def name(self) -> str:
        """The operation's name, for the documentation and metrics."""
        return self.handler.__name__.strip("_")


class Router:
    """All routes, by method and number of segments."""

    __slots__ = ("_routes",)

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes: dict[tuple[str, int], list[tuple[tuple[tuple[int, str], ...], Route]]] = {}
        for route in routes:
            parts = route.path.removesuffix("/").split("/")[1:]
            fixed = tuple((i, part) for i, part in enumerate(parts) if not part.startswith("{"))
            self._routes.setdefault((route.method, len(parts)), []).append((fixed, route))

    def find(self, method: str, segments: tuple[str, ...]) -> Iterator[Route]:
        """The routes that fit, in their order."""
        for fixed, route in self._routes.get((method, len(segments)), ()):
            if all(segments[place] == part for place, part in fixed):
                yield route
