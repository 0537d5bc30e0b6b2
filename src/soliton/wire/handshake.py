"""The handshake: how two nodes introduce themselves before the first message.

It has no frame and no length: it is read field by field as its bytes come, and the first message
may follow in the same segment.

What lives here: the record, its bytes, and whom we talk to. What does not: duplicates and limits
of connections, which are the node's.

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
"""Of the application's and of the node's name: lengths are signed bytes."""
MAX_PORT: Final = 65_535
_PORT_BYTES: Final = 4
_IPV4_BYTES: Final = 4 + _PORT_BYTES
_IPV6_BYTES: Final = 16 + _PORT_BYTES
MAX_BYTES: Final = 1 + MAX_NAME_BYTES + 12 + 1 + MAX_NAME_BYTES + 8 + 4 + _IPV6_BYTES + 8
"""No handshake is longer."""

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


class PeerAddress(NamedTuple):
    """Where a node can be dialled."""

    ip: IpAddress
    port: int

    def __str__(self) -> str:
        return f"{self.ip}:{self.port}" if self.ip.version == 4 else f"[{self.ip}]:{self.port}"


class Handshake(msgspec.Struct, frozen=True):
    """What a node says of itself. ``nonce`` tells the nodes of one address apart; ``declared`` is
    where it says that it can be dialled; ``time`` (seconds since 1970) nobody looks at.
    """

    application: str
    version: Version
    node_name: str
    nonce: int
    declared: PeerAddress | None
    time: int


def encode(handshake: Handshake) -> bytes:
    """The bytes of a handshake."""
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
    """Bytes are still missing."""


class _Reader:
    """Takes fields off the beginning of the bytes that have come so far."""

    __slots__ = ("data", "offset")

    def __init__(self, data: bytes | bytearray) -> None:
        self.data = data
        self.offset = 0

    def take(self, length: int) -> bytes:
        end = self.offset + length
        if end > len(self.data):
            raise _Incomplete
        found = bytes(self.data[self.offset : end])
        self.offset = end
        return found

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
    """The handshake at the beginning of what a peer has sent, and its length; ``None`` while bytes
    are missing. Raises ``PeerFault`` as soon as the bytes cannot become one.
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
    """Raise ``PeerFault`` when its sender is of another network, or too old."""
    wanted = application_name(family, chain_id)
    # Networks that came out of this one refuse for longer.
    verdict = Verdict.SUSPEND if family == "waves" else Verdict.BLACKLIST
    if handshake.application != wanted:
        raise PeerFault(f"it is a node of {handshake.application!r}, not of {wanted!r}", verdict)
    if not is_accepted(family, handshake.version):
        raise PeerFault(f"its version {handshake.version} is not spoken here", verdict)
