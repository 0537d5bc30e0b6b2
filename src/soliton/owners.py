"""The owner of an address, for limits that hold for each of them.

What lives here: an address or network as a key. What does not: the limits.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import Final

_OTHER_BITS: Final = 64
"""The owner of an IPv6 address owns all that differ from it in these last bits."""


def owner_of(address: IPv4Address | IPv6Address) -> str:
    """Return the key of all addresses of one owner."""
    if isinstance(address, IPv6Address):
        mapped = address.ipv4_mapped
        if mapped is None:
            return str(IPv6Address(int(address) >> _OTHER_BITS << _OTHER_BITS))
        address = mapped
    return str(address)
