"""The explorer at ``/``: pages to look at the chain.

What lives here: its routes, and who gets it. What does not: its files (``soliton.pages``), and the
interactive page that all others get (``swagger``).
"""

from __future__ import annotations

from collections.abc import Callable

from soliton.api.context import ApiContext
from soliton.api.errors import RejectionError
from soliton.api.http import Request
from soliton.api.routes import GET, Reads, Route
from soliton.pages.files import file_answer, page, page_answer
from soliton.web.answers import Whole
from soliton.web.parameters import TEXT, Parameter
from soliton.web.types import Headers

MAX_NODE_CHARACTERS = 300
"""Of the address of another node that the page shall look at."""

_TAG = "explorer"
_VARY: Headers = ((b"vary", b"Accept"),)
_FILE = Parameter("file", TEXT, "File name", "style.css")
_VERSION = Parameter("version", TEXT, "Version of the files", "0123456789ab")


def explorer_routes(context: ApiContext, interactive: Whole) -> tuple[Route, ...]:
    """The page and its files; ``interactive`` leads those to the API's page who do not say that
    they read HTML.
    """
    other = Whole(
        interactive.body,
        interactive.content_type,
        interactive.status,
        interactive.headers + _VARY,
    )
    node = context.node
    if node is None:
        return (_route("/", lambda _request: other),)
    values = {
        "network": node.network.name,
        "coin": node.network.coin,
        "family": node.network.family,
        "obeys": "yes" if context.obeys else "no",
    }
    made = page("explorer", "explorer.js", values)

    def root(request: Request) -> Whole:
        if not reads_html(request.headers.get(b"accept")):
            return other
        (also, *_) = request.query.get("node", [""])
        return page_answer(made, request.headers, also[:MAX_NODE_CHARACTERS], _VARY)

    return (
        _route("/", root),
        _route("/pages/{file}", _file, _FILE),
        _route("/pages/{version}/{file}", _file, _VERSION, _FILE),
    )


def reads_html(accept: bytes | None) -> bool:
    """Whether a client asks for HTML by name, as browsers do; ``*/*`` says nothing."""
    for part in (accept or b"").lower().split(b","):
        name, *parameters = part.replace(b" ", b"").split(b";")
        if name == b"text/html":
            return not any(each.strip(b"0.") == b"q=" for each in parameters)
    return False


def _route(path: str, handler: Callable[[Request], Whole], *parameters: Parameter) -> Route:
    return Route(
        methods=GET,
        path=path,
        handler=handler,
        tag=_TAG,
        summary="The explorer",
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
