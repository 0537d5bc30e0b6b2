"""HTML pages: the market page at ``/``, and the interactive documentation.

What lives here: their routes. What does not: Swagger UI (``soliton.web.swagger``), the market
page's markup, style and scripts (``soliton.pages``).
"""

from __future__ import annotations

import re
from typing import Final

from soliton.crypto import base58
from soliton.matcher.rest.answers import Answer, Rejected, encode_json
from soliton.matcher.rest.openapi import document
from soliton.matcher.rest.requests import Request
from soliton.matcher.rest.routes import Route, row, table
from soliton.matcher.service import Matcher
from soliton.pages.files import Page, file_answer, page, page_answer
from soliton.web.answers import Whole
from soliton.web.swagger import ASSETS, PAGE_HEADERS, START_SCRIPT, assets_folder, page_for
from soliton.web.types import Headers

MAX_ADDRESS_CHARACTERS: Final = 300
_HTML: Final = b"text/html; charset=UTF-8"
_SCRIPT: Final = b"text/javascript; charset=UTF-8"
_PERMANENT_REDIRECT: Final = 308
_DOCUMENTATION: Final = b"/api-docs/index.html"
_BESIDE: Final = re.compile(r"https?://(?:127\.0\.0\.1|localhost)(?::[0-9]{1,5})?")
_CACHED: Final[Headers] = ((b"cache-control", b"public, max-age=3600"),)


def _market_page(core: Matcher) -> Page:
    """The market page: live order books, and placing orders."""
    settings = core.settings
    values = {
        "network": settings.network.name,
        "public-key": base58.encode(core.public_key),
        "chain-id": str(settings.network.chain_id),
        "node": _node_beside(settings.node.url),
    }
    return page("exchange", "exchange.js", values)


def _node_beside(url: str) -> str:
    """The node's URL if it is on this machine; other addresses are not disclosed."""
    return url if _BESIDE.fullmatch(url) else ""


async def page_file(request: Request) -> Answer:
    """A script or style of the page."""
    answer = file_answer("/".join(request.segments[1:]), request.headers)
    if answer is None:
        raise Rejected
    return _answer(answer)


def _answer(whole: Whole) -> Answer:
    return Answer(whole.body, whole.status, whole.content_type, whole.headers)


async def documentation(request: Request) -> Answer:
    """Swagger UI."""
    title = f"Matcher on {request.core.settings.network.name}"
    return Answer(page_for(title), content_type=_HTML, headers=PAGE_HEADERS)


async def start_script(request: Request) -> Answer:
    """The script that starts Swagger UI."""
    del request
    return Answer(START_SCRIPT, content_type=_SCRIPT)


async def to_documentation(request: Request) -> Answer:
    """A redirect to the documentation."""
    del request
    body = b'The documentation is <a href="%s">here</a>.' % _DOCUMENTATION
    return Answer(body, _PERMANENT_REDIRECT, _HTML, ((b"location", _DOCUMENTATION),))


async def asset_file(request: Request) -> Answer:
    """A file of Swagger UI."""
    name = request.segments[1]
    content_type = ASSETS.get(name)
    if content_type is None:
        raise Rejected
    body = (assets_folder() / name).read_bytes()
    return Answer(body, content_type=content_type, headers=_CACHED)


def page_routes(documented: tuple[Route, ...]) -> tuple[Route, ...]:
    """The routes of pages; the OpenAPI document contains only the ``documented`` routes."""
    openapi_json: bytes | None = None
    market: Page | None = None

    async def market_page(request: Request) -> Answer:
        """The market page, made at the first request."""
        nonlocal market
        if market is None:
            market = _market_page(request.core)
        # The page may connect to the signing service that its URL names.
        signer = request.query().get("signer", "")
        return _answer(page_answer(market, request.headers, signer[:MAX_ADDRESS_CHARACTERS]))

    async def openapi(request: Request) -> Answer:
        """The OpenAPI document, made at the first request."""
        nonlocal openapi_json
        if openapi_json is None:
            openapi_json = encode_json(document(request.core, documented))
        return Answer(openapi_json)

    pages = {
        "/": market_page,
        "/pages/{file}": page_file,
        "/pages/{version}/{file}": page_file,
        "/swagger": to_documentation,
        "/api-docs": to_documentation,
        "/api-docs/index.html": documentation,
        "/api-docs/start.js": start_script,
        "/api-docs/openapi.json": openapi,
        "/api-docs/swagger.json": openapi,
        "/api-docs/{file}": asset_file,
    }
    rows = (
        row(f"GET {path} when=always", handler, "A page", documented=False)
        for path, handler in pages.items()
    )
    parameters = """
    file | text | A file of a page | swagger-ui.css
    version | text | Version of a page's files | 0123456789ab
    """
    return table("pages", parameters, *rows)
