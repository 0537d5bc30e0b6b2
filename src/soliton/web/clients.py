"""The identity of a client for rate limits: an address, or a network of addresses.

What lives here: the key of a client, from its address. What does not: the limits (the
applications).
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Final

from soliton.owners import owner_of
from soliton.proxies import UNKNOWN

LOCAL: Final = ""
"""The key of all clients on this machine."""


@lru_cache(maxsize=4096)
def client_key(host: str) -> str:
    """Return the key of all connections of one client; ``LOCAL`` for those on this machine.

    A connection that is not over IP has no address, and counts as local. ``UNKNOWN`` is the key of
    all whose address cannot be read.
    """
    if not host:
        return LOCAL
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return UNKNOWN
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    if address.is_loopback:
        return LOCAL
    return owner_of(address)
