"""Reverse proxies in front of a server, and the clients that they name in a header.

A header of a request is believed only if a trusted proxy sends the request, and only as far as
trusted proxies have written it: its list is read from its end, to the first address that is no
trusted proxy's. No header makes a client local, since those have no limits.

What lives here: the setting, and reading ``X-Forwarded-For`` and ``Forwarded``. What does not:
limits (the servers, the applications).

Source: RFC 7239, sections 4 to 6; for ``X-Forwarded-For`` the practice of common proxies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final, NoReturn, Protocol

import msgspec

UNKNOWN: Final = "unknown"
"""In place of an address: all clients that cannot be told apart."""
MAX_PROXIES: Final = 64
"""Addresses and networks of trusted proxies, each compared with those in a header."""
MAX_FORWARDED_BYTES: Final = 4_096
"""The longest header that is read; a hundred addresses."""
MIN_PREFIX_BITS: Final = {4: 8, 6: 16}
"""Larger networks are a mistake: their clients would write what is believed."""
X_FORWARDED_FOR: Final = "X-Forwarded-For"
FORWARDED: Final = "Forwarded"
HEADERS: Final = (X_FORWARDED_FOR, FORWARDED)
_MAX_ADDRESS_BYTES: Final = 64
_PAIR: Final = re.compile(
    rb"[ \t]*+(?:([!#$%&'*+.^_`|~0-9A-Za-z-]++)="
    rb'(?:"((?:[^"\\]|\\.)*+)"|([^",; \t]++)))?+[ \t]*+([,;]|\Z)'
)
_ESCAPED: Final = re.compile(rb"\\(.)")

Address = IPv4Address | IPv6Address


class Settings(Protocol):
    """The section of a service's settings."""

    def text(self, key: str, default: str | None) -> str:
        """Return a string."""

    def text_items(self, key: str) -> list[tuple[int, str]]:
        """Return the strings of a list with their numbers."""

    def refuse(self, key: str, expected: str, *, show: bool = True) -> NoReturn:
        """Raise the error for a value."""

    def refuse_item(self, key: str, number: int, expected: str, *, show: bool = True) -> NoReturn:
        """Raise the error for an item of a list."""


class TrustedProxies(msgspec.Struct, frozen=True):
    """The networks of trusted proxies, and the header in which they name their clients."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    header: str = X_FORWARDED_FOR

    def trusts(self, host: str) -> bool:
        """Whether a connection from this address is a trusted proxy's."""
        if not self.networks:
            return False
        address = _parsed(host)
        return address is not None and self._includes(address)

    def client_of(self, host: str, headers: Mapping[bytes, bytes]) -> str:
        """Return the address of the client of a trusted proxy's request; ``UNKNOWN`` if that
        cannot be read, or is this machine's.

        Without a header it is the proxy's own, ``host``, but not if it has the other header: a
        proxy that writes that one has other clients.
        """
        nodes = self._nodes(headers)
        if nodes is None:
            return host
        client = UNKNOWN
        for node in reversed(nodes):
            address = _address(node)
            if address is None or address.is_loopback:
                return UNKNOWN
            client = str(address)
            if not self._includes(address):
                break
        return client

    def _nodes(self, headers: Mapping[bytes, bytes]) -> list[bytes] | None:
        """Return what the header says about each proxy's client; ``None`` if there is none."""
        value = headers.get(self.header.lower().encode("ascii"))
        if value is None:
            others = (each.lower().encode("ascii") for each in HEADERS)
            return [] if any(each in headers for each in others) else None
        if len(value) > MAX_FORWARDED_BYTES:
            return []
        if self.header == FORWARDED:
            return _forwarded(value)
        return [node for each in value.split(b",") if (node := each.strip(b" \t"))]

    def _includes(self, address: Address) -> bool:
        return any(address in network for network in self.networks)


NO_PROXIES: Final = TrustedProxies()


def read_proxies(section: Settings) -> TrustedProxies:
    """Read ``trusted-proxies`` and ``forwarded-header`` of a section."""
    networks = []
    for number, text in section.text_items("trusted-proxies"):
        try:
            network = ip_network(text)
        except ValueError:
            section.refuse_item("trusted-proxies", number, "an IP address or network (10.0.0.0/24)")
        least = MIN_PREFIX_BITS[network.version]
        if network.prefixlen < least:
            expected = f"a network of proxies only, of at least /{least}"
            section.refuse_item("trusted-proxies", number, expected)
        networks.append(network)
    if len(networks) > MAX_PROXIES:
        section.refuse("trusted-proxies", f"at most {MAX_PROXIES} items", show=False)
    header = section.text("forwarded-header", X_FORWARDED_FOR)
    names = {each.lower(): each for each in HEADERS}
    if header and header.lower() not in names:
        section.refuse("forwarded-header", " or ".join(HEADERS))
    return TrustedProxies(tuple(networks), names.get(header.lower(), X_FORWARDED_FOR))


def _forwarded(value: bytes) -> list[bytes]:
    """Return the ``for`` of each element, empty if it has none; no list at all if any of it is
    malformed: then nobody knows what a proxy has written, and what its client.
    """
    nodes: list[bytes] = []
    node: bytes | None = None
    is_empty, at = True, 0
    while (pair := _PAIR.match(value, at)) is not None:
        name, quoted, plain, end = pair.groups()
        if name is not None:
            is_empty = False
        if name is not None and name.lower() == b"for":
            if node is not None:
                return []
            node = _ESCAPED.sub(rb"\1", quoted) if plain is None else plain
        if end != b";":
            if not is_empty:
                nodes.append(node or b"")
            node, is_empty = None, True
        if not end:
            return nodes
        at = pair.end()
    return []


def _address(node: bytes) -> Address | None:
    """Return the address in a node, which may have a port, and brackets if it is of IPv6."""
    if len(node) > _MAX_ADDRESS_BYTES:
        return None
    text = node.decode("latin-1")
    if text.startswith("["):
        text, bracket, port = text[1:].partition("]")
        if not bracket or (port and not (port[0] == ":" and _is_port(port[1:]))):
            return None
        address = _parsed(text)
        return address if ":" in text else None
    host, colon, port = text.partition(":")
    if colon and ":" not in port:
        return _parsed(host) if _is_port(port) else None
    return _parsed(text)


def _is_port(text: str) -> bool:
    """Whether it is a port, or a name in place of one, which begins with an underscore."""
    return text.startswith("_") or (text.isascii() and text.isdecimal())


def _parsed(text: str) -> Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        return address.ipv4_mapped or address
    return address
