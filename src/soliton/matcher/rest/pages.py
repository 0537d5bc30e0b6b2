"""Pages for people: the market page at ``/``, and the interactive documentation.

What lives here: their routes. What does not: Swagger UI (``soliton.web.swagger``), the market
page's texts and script (files of ``soliton.matcher.page``).
"""

from __future__ import annotations

import html
from importlib.resources import files
from typing import Final

from soliton.crypto import base58
from soliton.matcher.rest.answers import Answer, Rejected, encode_json
from soliton.matcher.rest.openapi import document
from soliton.matcher.rest.requests import Request
from soliton.matcher.rest.routes import Handler, Route
from soliton.web.swagger import ASSETS, PAGE_HEADERS, START_SCRIPT, assets_folder, page_for
from soliton.web.types import Headers

_HTML: Final = b"text/html; charset=UTF-8"
_SCRIPT: Final = b"text/javascript; charset=UTF-8"
_STYLE: Final = b"text/css; charset=UTF-8"
_PERMANENT_REDIRECT: Final = 308
_DOCUMENTATION: Final = b"/api-docs/index.html"
_POLICY: Final = (
    b"default-src 'none'; img-src 'self' data:; style-src 'self'; script-src 'self'; "
    b"connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_MARKET_HEADERS: Final[Headers] = (
    (b"content-security-policy", _POLICY),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
_CACHED: Final[Headers] = ((b"cache-control", b"public, max-age=3600"),)


async def market_page(request: Request) -> Answer:
    """What is traded here, live."""
    settings = request.core.settings
    values = {
        "network": settings.network.name,
        "public-key": base58.encode(request.core.public_key),
    }
    text = _file("page.html")
    for name, value in values.items():
        text = text.replace("{{" + name + "}}", html.escape(value))
    return Answer(text.encode("utf-8"), content_type=_HTML, headers=_MARKET_HEADERS)


def _file(name: str) -> str:
    return files("soliton.matcher.page").joinpath(name).read_text(encoding="utf-8")


async def page_style(request: Request) -> Answer:
    """The market page's style."""
    del request
    return Answer(_file("page.css").encode("utf-8"), content_type=_STYLE, headers=_MARKET_HEADERS)


async def page_script(request: Request) -> Answer:
    """The market page's script."""
    del request
    return Answer(_file("page.js").encode("utf-8"), content_type=_SCRIPT, headers=_MARKET_HEADERS)


async def documentation(request: Request) -> Answer:
    """Swagger UI."""
    title = f"Matcher on {request.core.settings.network.name}"
    return Answer(page_for(title), content_type=_HTML, headers=PAGE_HEADERS)


async def start_script(request: Request) -> Answer:
    """What starts Swagger UI."""
    del request
    return Answer(START_SCRIPT, content_type=_SCRIPT)


async def to_documentation(request: Request) -> Answer:
    """The documentation is elsewhere."""
    del request
    words = b'The documentation is <a href="%s">here</a>.' % _DOCUMENTATION
    return Answer(words, _PERMANENT_REDIRECT, _HTML, ((b"location", _DOCUMENTATION),))


async def asset_file(request: Request) -> Answer:
    """A file of Swagger UI."""
    name = request.segments[1]
    content_type = ASSETS.get(name)
    if content_type is None:
        raise Rejected
    body = (assets_folder() / name).read_bytes()
    return Answer(body, content_type=content_type, headers=_CACHED)


def page_routes(documented: tuple[Route, ...]) -> tuple[Route, ...]:
    """The pages; none of them is in the OpenAPI document, which is about the given routes."""
    made: bytes | None = None

    async def openapi(request: Request) -> Answer:
        """The OpenAPI document; it never changes, and is made when first asked for."""
        nonlocal made
        if made is None:
            made = encode_json(document(request.core, documented))
        return Answer(made)

    return (
        _page("/", market_page),
        _page("/page.css", page_style),
        _page("/page.js", page_script),
        _page("/swagger", to_documentation),
        _page("/api-docs", to_documentation),
        _page("/api-docs/index.html", documentation),
        _page("/api-docs/start.js", start_script),
        _page("/api-docs/openapi.json", openapi),
        _page("/api-docs/swagger.json", openapi),
        _page("/api-docs/{file}", asset_file),
    )


def _page(path: str, handler: Handler) -> Route:
    return Route("GET", path, handler, "pages", "A page", barrier=False, documented=False)
