"""The interactive page: Swagger UI with assets from an installed package, nothing from a CDN.

What lives here: its routes, and the redirects that lead to the page. What does not: the page
(``soliton.web.swagger``), the document that it shows (``openapi``), and the explorer, which
browsers get at ``/`` (``explorer``).

Redirects as in wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/CompositeHttpService.scala``.
"""

from __future__ import annotations

from soliton.api.context import ApiContext
from soliton.api.errors import RejectionError
from soliton.api.explorer import explorer_routes
from soliton.api.http import Request
from soliton.api.routes import GET, Reads, Route
from soliton.web.answers import Whole
from soliton.web.parameters import TEXT, Parameter
from soliton.web.swagger import ASSETS, PAGE_HEADERS, START_SCRIPT, assets_folder, page_for

PAGE_PATH = "/api-docs/index.html"

_HTML = b"text/html; charset=UTF-8"
_PERMANENT_REDIRECT = 308
_CACHED = ((b"cache-control", b"public, max-age=3600"),)


def swagger_routes(context: ApiContext) -> tuple[Route, ...]:
    """The page, its files and the redirects to it; none of them is in the OpenAPI document."""
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
        *(_route(path, answer) for path, answer in fixed.items()),
        Route(
            methods=GET,
            path="/api-docs/{file}",
            handler=_asset,
            tag="api-docs",
            summary="A file of Swagger UI",
            parameters=(Parameter("file", TEXT, "File name", "swagger-ui.css"),),
            response={"type": "string"},
            example="",
            content_type="application/octet-stream",
            documented=False,
            reads=Reads.CHAIN,
        ),
    )


def _route(path: str, answer: Whole) -> Route:
    def handler(_request: Request) -> Whole:
        return answer

    return Route(
        methods=GET,
        path=path,
        handler=handler,
        tag="api-docs",
        summary="The interactive page",
        response={"type": "string"},
        example="",
        content_type="text/html",
        documented=False,
        reads=Reads.CHAIN,
    )


def _asset(request: Request) -> Whole:
    name = request.text("file")
    content_type = ASSETS.get(name)
    if content_type is None:
        raise RejectionError("no such file")
    return Whole((assets_folder() / name).read_bytes(), content_type, headers=_CACHED)
