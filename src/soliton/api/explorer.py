"""The explorer at ``/``: pages that show the chain.

What lives here: its routes, and detecting browsers. What does not: its files (``soliton.pages``),
and the interactive page for other clients (``swagger``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from soliton.api.context import ApiContext
from soliton.api.errors import RejectionError
from soliton.api.http import Request
from soliton.api.routes import GET, Reads, Route
from soliton.pages.files import file_answer, page, page_answer
from soliton.web.answers import Whole
from soliton.web.parameters import TEXT, Parameter
from soliton.web.types import Headers

MAX_NODE_CHARACTERS = 300
"""The limit on the URL of another node that the page should show."""

_VARY: Headers = ((b"vary", b"Accept"),)
_FILE = Parameter("file", TEXT, "File name", "style.css")
_VERSION = Parameter("version", TEXT, "Version of the files", "0123456789ab")


def explorer_routes(context: ApiContext, interactive: Whole) -> tuple[Route, ...]:
    """The routes of the page and its files. Clients that do not accept HTML get ``interactive``."""
    other = Whole(
        interactive.body,
        interactive.content_type,
        interactive.status,
        interactive.headers + _VARY,
    )
    node = context.node
    if node is None:
        return (page_route("/", lambda _request: other),)
    values = {
        "network": node.network.name,
        "coin": node.network.coin,
        "family": node.network.family,
        "obeys": "yes" if context.obeys else "no",
    }
    # Made at the first request.
    content = cache(lambda: page("explorer", "explorer.js", values))

    def root(request: Request) -> Whole:
        if not reads_html(request.headers.get(b"accept")):
            return other
        (also, *_) = request.query.get("node", [""])
        return page_answer(content(), request.headers, also[:MAX_NODE_CHARACTERS], _VARY)

    return (
        page_route("/", root),
        page_route("/pages/{file}", _file, _FILE),
        page_route("/pages/{version}/{file}", _file, _VERSION, _FILE),
    )


def reads_html(accept: bytes | None) -> bool:
    """Whether ``Accept`` contains ``text/html``, as browsers send it; ``*/*`` does not count."""
    for part in (accept or b"").lower().split(b","):
        name, *parameters = part.replace(b" ", b"").split(b";")
        if name == b"text/html":
            return not any(each.strip(b"0.") == b"q=" for each in parameters)
    return False


def page_route(path: str, handler: Callable[[Request], Whole], *parameters: Parameter) -> Route:
    """A route of a page or its files, which the OpenAPI document leaves out."""
    return Route(
        methods=GET,
        path=path,
        handler=handler,
        tag="pages",
        summary="A page",
        parameters=parameters,
        response={"type": "string"},
        example="",
        content_type="text/html",
        documented=False,
        reads=Reads.CHAIN,
    )


def _file(request: Request) -> Whole:
    answer = file_answer(request.path.removeprefix("/pages/"), request.headers)
    if answer is None:
        raise RejectionError("no such file")
    return answer
