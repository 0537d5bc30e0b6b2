"""The handshake, which two nodes exchange before the first message.

It has no frame and no length, so it is parsed field by field; the first message may follow in the
same TCP segment.

What lives here: the record, its bytes, and which peers are accepted. What does not: duplicates and
connection limits, which the node checks.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/network/Handshake.scala``.
"""

from __future__ import annotations

import ipaddress
import struct
from typing import Final, NamedTuple

import msgspec

from soliton.wire.errors import PeerFault, Verdict
from soliton.wire.versions import Version, application_name, is_accepted

MAX_NAME_BYTES: Final = 127
"""The longest application name or node name: its length is a signed byte."""
MAX_PORT: Final = 65_535
_PORT_BYTES: Final = 4
_IPV4_BYTES: Final = 4 + _PORT_BYTES
_IPV6_BYTES: Final = 16 + _PORT_BYTES
MAX_BYTES: Final = 1 + MAX_NAME_BYTES + 12 + 1 + MAX_NAME_BYTES + 8 + 4 + _IPV6_BYTES + 8
"""The longest handshake."""

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


class PeerAddress(NamedTuple):
    """An IP address and port at which a node accepts connections."""

    ip: IpAddress
    port: int

    def __str__(self) -> str:
        return f"{self.ip}:{self.port}" if self.ip.version == 4 else f"[{self.ip}]:{self.port}"


class Handshake(msgspec.Struct, frozen=True):
    """A node's description of itself. ``nonce`` distinguishes nodes of one address, ``declared`` is
    the address that it accepts connections at, and ``time`` (seconds since 1970) is ignored.
    """

    application: str
    version: Version
    node_name: str
    nonce: int
    declared: PeerAddress | None
    time: int


def encode(handshake: Handshake) -> bytes:
    """Return the bytes of a handshake."""
    parts = [
        _name(handshake.application),
        struct.pack(">iii", *handshake.version),
        _name(handshake.node_name),
        struct.pack(">q", handshake.nonce),
    ]
    declared = handshake.declared
    if declared is None:
        parts.append(struct.pack(">i", 0))
    else:
        packed = declared.ip.packed
        parts.append(struct.pack(">i", len(packed) + _PORT_BYTES))
        parts += (packed, struct.pack(">i", declared.port))
    parts.append(struct.pack(">q", handshake.time))
    return b"".join(parts)


def _name(text: str) -> bytes:
    data = text.encode()
    while len(data) > MAX_NAME_BYTES:
        text = text[:-1]
        data = text.encode()
    return bytes((len(data),)) + data


class _Incomplete(Exception):
    """More bytes are needed."""


class _Reader:
    """Reads fields from the bytes received so far."""

    __slots__ = ("data", "offset")

    def __init__(self, data: bytes | bytearray) -> None:
        self.data = data
        self.offset = 0

    def take(self, length: int) -> bytes:
        end = self.offset + length
        if end > len(self.data):
            raise _Incomplete
        field = bytes(self.data[self.offset : end])
        self.offset = end
        return field

    def name(self, what: str) -> str:
        length = self.take(1)[0]
        if length > MAX_NAME_BYTES:
            raise PeerFault(f"handshake: {what} of a negative length")
        return self.take(length).decode(errors="replace")

    def number(self, length: int) -> int:
        return int.from_bytes(self.take(length), "big", signed=True)

    def address(self) -> PeerAddress | None:
        length = self.number(4)
        if length == 0:
            return None
        if length not in (_IPV4_BYTES, _IPV6_BYTES):
            raise PeerFault(f"handshake: a declared address of {length} bytes")
        ip = ipaddress.ip_address(self.take(length - _PORT_BYTES))
        port = self.number(_PORT_BYTES)
        if not 0 <= port <= MAX_PORT:
            raise PeerFault(f"handshake: port {port}")
        return PeerAddress(ip, port)


def decode(data: bytes | bytearray) -> tuple[Handshake, int] | None:
    """Return the handshake at the beginning of ``data`` and its length, or ``None`` while it is
    incomplete. Raise ``PeerFault`` as soon as the bytes cannot become one.
    """
    reader = _Reader(data)
    try:
        application = reader.name("application name")
        version = Version(reader.number(4), reader.number(4), reader.number(4))
        node_name = reader.name("node name")
        nonce = reader.number(8)
        declared = reader.address()
        time = reader.number(8)
    except _Incomplete:
        return None
    handshake = Handshake(application, version, node_name, nonce, declared, time)
    return handshake, reader.offset


def check(handshake: Handshake, family: str, chain_id: int) -> None:
    """Raise ``PeerFault`` if its sender belongs to another network, or is too old."""
    expected = application_name(family, chain_id)
    # Networks that forked off Waves blacklist instead of suspending.
    verdict = Verdict.SUSPEND if family == "waves" else Verdict.BLACKLIST
    if handshake.application != expected:
        raise PeerFault(f"it is a node of {handshake.application!r}, not of {expected!r}", verdict)
    if not is_accepted(family, handshake.version):
        raise PeerFault(f"its version {handshake.version} is not spoken here", verdict)
