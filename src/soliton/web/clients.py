"""Who a client is, as far as limits go: one address, or one network of addresses.

What lives here: telling clients apart by where they connect from. What does not: what each of them
may do (the applications say that).
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Final

_NETWORK_BITS: Final = 64
"""Who has one IPv6 address has all of its network."""
LOCAL: Final = ""
"""The key of all clients on this machine."""


@lru_cache(maxsize=4096)
def client_key(host: str) -> str:
    """What is the same for all connections of one client; ``LOCAL`` for those on this machine.

    What is no address (a connection that is not over IP) counts as local.
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
