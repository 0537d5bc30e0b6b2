"""The page at ``/``: what the service does, its errors and limits, and a form to try it.

What lives here: filling the template, and serving the page's own style and script. Nothing comes
from elsewhere, and the content policy forbids it. What does not: the texts (``page.html``).
"""

from __future__ import annotations

import html
import json
from importlib.resources import files
from typing import Final

from soliton.chain.transactions.data import MAX_ENTRIES, MAX_KEY_BYTES, MAX_VALUE_BYTES, TYPE
from soliton.signer.errors import FAULTS
from soliton.signer.openapi import EXAMPLE, WARNING
from soliton.signer.settings import SignerSettings
from soliton.web.answers import Whole
from soliton.web.types import Headers

_HEADERS: Final[Headers] = (
    (
        b"content-security-policy",
        (
            b"default-src 'none'; img-src data:; style-src 'self'; script-src 'self'; "
            b"connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
        ),
    ),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)


def pages(settings: SignerSettings) -> dict[str, Whole]:
    """The page, its style and its script, by their paths."""
    files = {
        "/": (_page(settings), b"text/html"),
        "/page.css": (_file("page.css"), b"text/css"),
        "/page.js": (_file("page.js"), b"text/javascript"),
    }
    return {
        path: Whole(text.encode(), kind + b"; charset=utf-8", headers=_HEADERS)
        for path, (text, kind) in files.items()
    }


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
