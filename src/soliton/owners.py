"""The owner of an address, for limits that hold for each of them.

What lives here: an address or network as a key. What does not: the limits.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Final

_NETWORK_BITS: Final = 64
"""The owner of an IPv6 address owns all of its network."""


def owner_of(address: IPv4Address | IPv6Address) -> str:
    """Return the key of all addresses of one owner."""
    if isinstance(address, IPv6Address):
        mapped = address.ipv4_mapped
        if mapped is None:
            network = IPv6Network((int(address), _NETWORK_BITS), strict=False)
            return str(network.network_address)
        address = mapped
    return str(address)
