"""What the tests of the peer protocol share: frames made by hand, and pairs that have met."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection, Iterable, Iterator

from soliton.wire import handshake
from soliton.wire.connection import Connection, Event
from soliton.wire.handshake import Handshake
from soliton.wire.versions import Version

R = ord("R")
CURRENT = Version(1, 5, 7)


def framed(code: int, payload: bytes) -> bytes:
    """A frame, written down from its description and not by our own writer."""
    if not payload:
        return struct.pack(">IIBI", 9, 0x12345678, code, 0)
    checksum = hashlib.blake2b(payload, digest_size=32).digest()[:4]
    head = struct.pack(">IIBI", 13 + len(payload), 0x12345678, code, len(payload))
    return head + checksum + payload


def greeting(nonce: int = 1, version: Version = CURRENT, application: str = "wavesR") -> Handshake:
    """A handshake on the chain R."""
    return Handshake(application, version, "n1", nonce, None, 0)


def connection(version: Version = CURRENT, unwanted: Collection[int] = ()) -> Connection:
    """A conversation with a peer of this version in which both handshakes are through."""
    made = Connection(greeting(), "waves", R, unwanted)
    made.receive(handshake.encode(greeting(2, version)))
    made.introduce()
    return made


def pieces(data: bytes, sizes: Iterable[int]) -> Iterator[bytes]:
    """Data, cut into pieces of these sizes, and the rest."""
    offset = 0
    for size in sizes:
        if offset >= len(data):
            return
        yield data[offset : offset + size]
        offset += size
    if offset < len(data):
        yield data[offset:]


def heard(talking: Connection, parts: Iterable[bytes]) -> list[Event]:
    """All events of these bytes."""
    return [event for part in parts for event in talking.receive(part)]
