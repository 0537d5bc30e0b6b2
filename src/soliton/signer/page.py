"""The page at ``/``: what the service does, its errors and limits, and a form to try it; with
stored keys also pending requests, the keys, the rules and the log.

What lives here: the values filled into the page. What does not: its texts, style and scripts
(``soliton.pages``), and the routes that it calls (``key_routes``).
"""

from __future__ import annotations

import html
import json
import re
from typing import Final

from soliton.chain.transactions.data import MAX_ENTRIES, MAX_KEY_BYTES, MAX_VALUE_BYTES, TYPE
from soliton.pages.files import Page, page
from soliton.signer.errors import FAULTS
from soliton.signer.openapi import EXAMPLE, WARNING
from soliton.signer.settings import SignerSettings

_LOCAL_NODE: Final = re.compile(r"https?://(?:127\.0\.0\.1|localhost)(?::[0-9]{1,5})?")


def signer_page(settings: SignerSettings) -> Page:
    """Return the page."""
    limits, network = settings.limits, settings.network
    values = {
        "network": network.name,
        "coin": network.coin,
        "keeps": "no" if settings.keys is None else "yes",
        # The parts of the page that its first paint shows.
        "parts": "hidden" if settings.keys is None else "",
        "write": "" if settings.keys is None else "hidden",
        # Only an address that reveals nothing about the operator's network.
        "node": settings.node_url if _LOCAL_NODE.fullmatch(settings.node_url) else "",
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
    return page("signer", "signer.js", values, {"errors": _error_rows()})


def _error_rows() -> str:
    return "\n".join(
        f"<tr><td>{fault.code}</td><td>{fault.status}</td><td>{html.escape(fault.meaning)}</td></tr>"
        for fault in FAULTS
    )
