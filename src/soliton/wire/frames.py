"""Frames: how messages are delimited on a connection.

``u32 length of the rest | 12 34 56 78 | u8 code | u32 payload length | (u32 checksum | payload)``,
big-endian. The checksum is the first four bytes of the payload's hash; an empty payload has none.

What lives here: splitting a stream into frames, within limits, and encoding frames. What does not:
which messages are allowed when (``connection``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/network/LegacyFrameCodec.scala``.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from typing import Final, NamedTuple

from soliton.crypto.hashes import blake2b256
from soliton.wire.errors import CannotSend, PeerFault
from soliton.wire.kinds import BY_CODE, BY_RECORD, Kind
from soliton.wire.messages import Message

MAGIC: Final = 0x12345678
CHECKSUM_BYTES: Final = 4
_LENGTH: Final = struct.Struct(">I")
_HEADER: Final = struct.Struct(">IIBi")
_AFTER_LENGTH: Final = _HEADER.size - _LENGTH.size
MAX_PAYLOAD_BYTES: Final = max(kind.limit for kind in BY_CODE.values())
MAX_BUFFERED_BYTES: Final = _HEADER.size + CHECKSUM_BYTES + MAX_PAYLOAD_BYTES
"""The largest incomplete frame."""


def encode(message: Message) -> bytes:
    """Return the frame of a message, the same for all peers; raise ``CannotSend`` if too long."""
    kind = BY_RECORD[type(message)]
    payload = message.encode()
    if len(payload) > kind.limit:
        raise CannotSend(f"{kind.name} of {len(payload)} bytes, above {kind.limit}")
    if not payload:
        return _HEADER.pack(_AFTER_LENGTH, MAGIC, kind.code, 0)
    length = _AFTER_LENGTH + CHECKSUM_BYTES + len(payload)
    head = _HEADER.pack(length, MAGIC, kind.code, len(payload))
    return head + blake2b256(payload)[:CHECKSUM_BYTES] + payload


class Frame(NamedTuple):
    """A complete frame: its kind and payload; ``None`` for a payload that was discarded."""

    kind: Kind
    payload: bytes | None
    size: int


class FrameReader:
    """Splits a stream into frames. It never buffers more than one incomplete frame and the chunk
    that was fed last. Payloads of ``unwanted`` codes are not buffered at all.
    """

    __slots__ = ("_buffer", "_kind", "_remaining", "_skip", "unwanted")

    def __init__(self, unwanted: Collection[int] = ()) -> None:
        self.unwanted = unwanted
        self._buffer = bytearray()
        # The frame being read: its kind, the bytes after its header, whether to discard them.
        self._kind: Kind | None = None
        self._remaining = 0
        self._skip = False

    @property
    def buffered(self) -> int:
        """The number of bytes in the buffer."""
        return len(self._buffer)

    @property
    def missing(self) -> int:
        """The number of bytes that the frame still lacks whose header has been read."""
        return 0 if self._kind is None else max(0, self._remaining - len(self._buffer))

    def feed(self, data: bytes) -> None:
        """Append received bytes."""
        self._buffer += data

    def next(self) -> Frame | None:
        """Return the next complete frame, or ``None``; raise ``PeerFault`` on a violation."""
        if self._kind is None and not self._begin():
            return None
        kind = self._kind
        assert kind is not None, "begun"
        if self._skip:
            count = min(self._remaining, len(self._buffer))
            del self._buffer[:count]
            self._remaining -= count
            if self._remaining:
                return None
            self._kind = None
            return Frame(kind, None, 0)
        if len(self._buffer) < self._remaining:
            return None
        payload = bytes(self._buffer[CHECKSUM_BYTES : self._remaining])
        checksum = bytes(self._buffer[: min(self._remaining, CHECKSUM_BYTES)])
        size, self._kind = self._remaining + _HEADER.size, None
        del self._buffer[: self._remaining]
        if payload and blake2b256(payload)[:CHECKSUM_BYTES] != checksum:
            raise PeerFault(f"{kind.name} with a wrong checksum")
        return Frame(kind, payload, size)

    def _begin(self) -> bool:
        """Read a header; return false if it is incomplete."""
        buffer = self._buffer
        # Some nodes send frames of length 0, and others ignore them.
        while len(buffer) >= _LENGTH.size and not any(buffer[: _LENGTH.size]):
            del buffer[: _LENGTH.size]
        if len(buffer) < _HEADER.size:
            self._check_prefix()
            return False
        length, magic, code, payload_length = _HEADER.unpack_from(buffer)
        kind = self._check(length, magic, code, payload_length)
        del buffer[: _HEADER.size]
        self._kind, self._remaining = kind, length - _AFTER_LENGTH
        self._skip = code in self.unwanted and payload_length > 0
        return True

    def _check_prefix(self) -> None:
        """Raise as soon as the bytes cannot become a header."""
        buffer = self._buffer
        if len(buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer)
            if not _AFTER_LENGTH <= length <= MAX_BUFFERED_BYTES:
                raise PeerFault(f"a frame of {length} bytes")
        magic = _LENGTH.pack(MAGIC)
        if not magic.startswith(buffer[_LENGTH.size : 2 * _LENGTH.size]):
            raise PeerFault("bytes that are not a frame")

    @staticmethod
    def _check(length: int, magic: int, code: int, payload_length: int) -> Kind:
        if magic != MAGIC:
            raise PeerFault("bytes that are not a frame")
        kind = BY_CODE.get(code)
        if kind is None:
            raise PeerFault(f"unknown message {code}")
        if not 0 <= payload_length <= kind.limit:
            raise PeerFault(f"{kind.name} of {payload_length} bytes, above {kind.limit}")
        expected = _AFTER_LENGTH + (CHECKSUM_BYTES + payload_length if payload_length else 0)
        if length != expected:
            raise PeerFault(f"{kind.name} in a frame of {length} bytes, not {expected}")
        return kind
