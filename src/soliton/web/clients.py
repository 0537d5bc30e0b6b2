"""The identity of a client for rate limits: an address, or a network of addresses.

What lives here: the key of a client, from its address. What does not: the limits (the
applications).
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Final

_NETWORK_BITS: Final = 64
"""The owner of an IPv6 address owns all of its network."""
LOCAL: Final = ""
"""The key of all clients on this machine."""


@lru_cache(maxsize=4096)
def client_key(host: str) -> str:
    """Return the key of all connections of one client; ``LOCAL`` for those on this machine.

    A connection that is not over IP counts as local.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return LOCAL
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    if address.is_loopback:
        return LOCAL
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Network((address, _NETWORK_BITS), strict=False).network_address)
    return str(address)
