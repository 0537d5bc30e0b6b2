"""The page at ``/``: what the service does, its errors and limits, and a form to try it.

What lives here: filling the template, and serving the page's own style and script. Nothing comes
from elsewhere, and the content policy forbids it. What does not: the texts (``page.html``).
"""

from __future__ import annotations

import html
import json
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from soliton.chain.transactions.data import MAX_ENTRIES, MAX_KEY_BYTES, MAX_VALUE_BYTES, TYPE
from soliton.signer.errors import FAULTS
from soliton.signer.openapi import EXAMPLE, WARNING
from soliton.signer.settings import SignerSettings

_HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; img-src data:; style-src 'self'; script-src 'self'; "
        "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def page_routes(settings: SignerSettings) -> tuple[Route, ...]:
    """The page, its style and its script."""
    return (
        Route("/", _serve(_page(settings), "text/html")),
        Route("/page.css", _serve(_file("page.css"), "text/css")),
        Route("/page.js", _serve(_file("page.js"), "text/javascript")),
    )


def _serve(text: str, media_type: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(_request: Request) -> Response:
        return Response(text, media_type=media_type, headers=_HEADERS)

    return answer


def _file(name: str) -> str:
    return files("soliton.signer").joinpath(name).read_text(encoding="utf-8")


def _page(settings: SignerSettings) -> str:
    limits, network = settings.limits, settings.network
    values = {
        "network": network.name,
        "coin": network.coin,
        "warning": WARNING,
        "fee": f"{network.fees.base[TYPE.type_id]:,}",
        "example": json.dumps(EXAMPLE, indent=2),
        "example-data": json.dumps(EXAMPLE["data"], indent=2),
        "entries": str(MAX_ENTRIES),
        "key-bytes": str(MAX_KEY_BYTES),
        "value-bytes": f"{MAX_VALUE_BYTES:,}",
        "seed-characters": f"{limits.seed_characters:,}",
        "body-bytes": f"{limits.body_bytes:,}",
        "body-seconds": f"{limits.body_seconds:g}",
        "node-seconds": f"{limits.node_seconds:g}",
        "requests": str(limits.requests_at_once),
    }
    text = _file("page.html")
    for name, value in values.items():
        text = text.replace("{{" + name + "}}", html.escape(value))
    return text.replace("{{errors}}", _error_rows())


def _error_rows() -> str:
    return "\n".join(
        f"<tr><td>{fault.code}</td><td>{fault.status}</td><td>{html.escape(fault.meaning)}</td></tr>"
        for fault in FAULTS
    )
