"""The interactive page: Swagger UI with assets from an installed package, nothing from a CDN.

What lives here: our own small page, the assets that may be served, and the redirects that lead to
the page. What does not: the document that it shows (``openapi``).

Redirects as in wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/CompositeHttpService.scala``.
"""

from __future__ import annotations

import html
from importlib.util import find_spec
from pathlib import Path

from soliton.api.context import ApiContext
from soliton.api.errors import RejectionError
from soliton.api.http import Raw, Request
from soliton.api.routes import GET, TEXT, Parameter, Route
from soliton.errors import EnvironmentProblem

PAGE_PATH = "/api-docs/index.html"

ASSETS = {
    "swagger-ui.css": b"text/css; charset=UTF-8",
    "swagger-ui-bundle.js": b"text/javascript; charset=UTF-8",
    "favicon-16x16.png": b"image/png",
    "favicon-32x32.png": b"image/png",
}

_HTML = b"text/html; charset=UTF-8"
_PERMANENT_REDIRECT = 308
_CACHED = ((b"cache-control", b"public, max-age=3600"),)
_CONTENT_POLICY = (
    b"default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    b"frame-ancestors 'self'"
)
_PAGE_HEADERS = ((b"content-security-policy", _CONTENT_POLICY),)

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="swagger-ui.css">
<link rel="icon" type="image/png" href="favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<script src="swagger-ui-bundle.js"></script>
<script src="start.js"></script>
</body>
</html>
"""

_START = b"""window.ui = SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  deepLinking: true,
  docExpansion: "none",
  filter: true,
  persistAuthorization: true,
  tryItOutEnabled: true,
  validatorUrl: "none"
});
"""


def assets_folder() -> Path:
    """Where the installed package keeps Swagger UI; its Python code is never imported."""
    spec = find_spec("swagger_ui")
    if spec is None or not spec.submodule_search_locations:
        raise EnvironmentProblem("the package swagger-ui-py is not installed")
    return Path(spec.submodule_search_locations[0]) / "static"


def swagger_routes(context: ApiContext) -> tuple[Route, ...]:
    """The page, its files and the redirects to it; none of them is in the OpenAPI document."""
    page = Raw(
        _PAGE.format(title=html.escape(context.title)).encode("utf-8"), _HTML, headers=_PAGE_HEADERS
    )
    redirect = Raw(
        b"The request, and all future requests should be repeated using "
        b'<a href="%s">this URI</a>.' % PAGE_PATH.encode("ascii"),
        _HTML,
        _PERMANENT_REDIRECT,
        ((b"location", PAGE_PATH.encode("ascii")),),
    )
    start = Raw(_START, b"text/javascript; charset=UTF-8")
    fixed = {"/": redirect, "/swagger": redirect, "/api-docs": redirect, "/api-docs/": redirect}
    fixed |= {PAGE_PATH: page, "/api-docs/start.js": start}
    return (
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
        ),
    )


def _route(path: str, answer: Raw) -> Route:
    def handler(_request: Request) -> Raw:
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
    )


def _asset(request: Request) -> Raw:
    name = request.text("file")
    content_type = ASSETS.get(name)
    if content_type is None:
        raise RejectionError("no such file")
    return Raw((assets_folder() / name).read_bytes(), content_type, headers=_CACHED)
