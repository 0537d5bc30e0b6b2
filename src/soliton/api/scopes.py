"""Which scope a named API key needs for which of the routes that ask for a key.

What lives here: the table. What does not: the keys (``soliton.node.rest_settings``), asking for
one (``asgi``). The key of the interface's specification is good for every route.
"""

from __future__ import annotations

from typing import Final

ACCOUNTS: Final = "accounts"
DEBUG: Final = "debug"
OPERATE: Final = "operate"
SEEDS: Final = "seeds"
SIGN: Final = "sign"

_BY_ROUTE: Final = {
    ("POST", "/addresses"): ACCOUNTS,
    ("DELETE", "/addresses/{address}"): ACCOUNTS,
    ("GET", "/addresses/seed/{address}"): SEEDS,
    ("GET", "/wallet/seed"): SEEDS,
}
_BY_FIRST_SEGMENT: Final = {
    ("GET", "debug"): DEBUG,
    **{
        ("POST", name): SIGN
        for name in ("addresses", "alias", "assets", "leasing", "payment", "transactions", "zbs")
    },
}


def scope_of(method: str, path: str) -> str:
    """The scope for a route; what nobody has thought of needs that of who operates the node."""
    found = _BY_ROUTE.get((method, path))
    return found or _BY_FIRST_SEGMENT.get((method, path.split("/", 2)[1]), OPERATE)
