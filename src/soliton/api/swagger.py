"""The interactive page: Swagger UI with assets from our own package, without a CDN.

What lives here: its routes and redirects. What does not: the page (``soliton.web.swagger``), its
document (``openapi``), and the explorer, which browsers get at ``/`` (``explorer``).

Redirects as in wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/CompositeHttpService.scala``.
"""

from __future__ import annotations

from functools import partial

from soliton.api.context import ApiContext
from soliton.api.errors import RejectionError
from soliton.api.explorer import explorer_routes, page_route
from soliton.api.http import Request
from soliton.api.routes import Route
from soliton.web.answers import Whole
from soliton.web.parameters import TEXT, Parameter
from soliton.web.swagger import ASSETS, PAGE_HEADERS, START_SCRIPT, assets_folder, page_for

PAGE_PATH = "/api-docs/index.html"

_HTML = b"text/html; charset=UTF-8"
_PERMANENT_REDIRECT = 308
_CACHED = ((b"cache-control", b"public, max-age=3600"),)


def swagger_routes(context: ApiContext) -> tuple[Route, ...]:
    """The routes of the page, its files and the redirects to it."""
    page = Whole(page_for(context.title), _HTML, headers=PAGE_HEADERS)
    redirect = Whole(
        b"The request, and all future requests should be repeated using "
        b'<a href="%s">this URI</a>.' % PAGE_PATH.encode("ascii"),
        _HTML,
        _PERMANENT_REDIRECT,
        ((b"location", PAGE_PATH.encode("ascii")),),
    )
    start = Whole(START_SCRIPT, b"text/javascript; charset=UTF-8")
    fixed = {"/swagger": redirect, "/api-docs": redirect, "/api-docs/": redirect}
    fixed |= {PAGE_PATH: page, "/api-docs/start.js": start}
    return (
        *explorer_routes(context, redirect),
        *(page_route(path, partial(_fixed, answer)) for path, answer in fixed.items()),
        page_route("/api-docs/{file}", _asset, Parameter("file", TEXT, "File name", "start.js")),
    )


def _fixed(answer: Whole, _request: Request) -> Whole:
    return answer


def _asset(request: Request) -> Whole:
    name = request.text("file")
    content_type = ASSETS.get(name)
    if content_type is None:
        raise RejectionError("no such file")
    return Whole((assets_folder() / name).read_bytes(), content_type, headers=_CACHED)
