"""Frames: how messages follow each other on a connection.

``u32 length of the rest | 12 34 56 78 | u8 code | u32 payload length | (u32 checksum | payload)``,
big-endian; a message without payload has no checksum, which is the beginning of the payload's hash.

What lives here: cutting bytes into frames, within limits, and making frames. What does not: who may
say what and when (``connection``).

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
"""What a frame that is still to be completed can take."""


def encode(message: Message) -> bytes:
    """The frame of a message, the same for all peers; raises ``CannotSend`` if it is too long."""
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
    """A whole frame: its kind and payload; ``None`` for a payload that was let go unread."""

    kind: Kind
    payload: bytes | None
    size: int


class FrameReader:
    """Cuts what comes into frames. At no time does it hold more than one frame that is not whole
    and what was handed in last; payloads of ``unwanted`` codes are not held at all.
    """

    __slots__ = ("_buffer", "_kind", "_left", "_skip", "unwanted")

    def __init__(self, unwanted: Collection[int] = ()) -> None:
        self.unwanted = unwanted
        self._buffer = bytearray()
        # Of the frame that has begun: what it is, its bytes behind the header, how many to let go.
        self._kind: Kind | None = None
        self._left = 0
        self._skip = False

    @property
    def buffered(self) -> int:
        """Bytes held at present."""
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        """Take what came."""
        self._buffer += data

    def next(self) -> Frame | None:
        """The next frame, ``None`` while there is none; raises ``PeerFault``."""
        if self._kind is None and not self._begin():
            return None
        kind = self._kind
        assert kind is not None, "begun"
        if self._skip:
            gone = min(self._left, len(self._buffer))
            del self._buffer[:gone]
            self._left -= gone
            if self._left:
                return None
            self._kind = None
            return Frame(kind, None, 0)
        if len(self._buffer) < self._left:
            return None
        payload = bytes(self._buffer[CHECKSUM_BYTES : self._left])
        checksum = bytes(self._buffer[: min(self._left, CHECKSUM_BYTES)])
        size, self._kind = self._left + _HEADER.size, None
        del self._buffer[: self._left]
        if payload and blake2b256(payload)[:CHECKSUM_BYTES] != checksum:
            raise PeerFault(f"{kind.name} with a wrong checksum")
        return Frame(kind, payload, size)

    def _begin(self) -> bool:
        """Read a header; whether a frame has begun."""
        buffer = self._buffer
        # Some nodes send frames of nothing, and others let them pass.
        while len(buffer) >= _LENGTH.size and not any(buffer[: _LENGTH.size]):
            del buffer[: _LENGTH.size]
        if len(buffer) < _HEADER.size:
            self._check_beginning()
            return False
        length, magic, code, payload_length = _HEADER.unpack_from(buffer)
        kind = self._check(length, magic, code, payload_length)
        del buffer[: _HEADER.size]
        self._kind, self._left = kind, length - _AFTER_LENGTH
        self._skip = code in self.unwanted and payload_length > 0
        return True

    def _check_beginning(self) -> None:
        """Refuse what cannot become a header as soon as that is clear."""
        buffer = self._buffer
        if len(buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer)
            if not _AFTER_LENGTH <= length <= MAX_BUFFERED_BYTES:
                raise PeerFault(f"a frame of {length} bytes")
        magic = _LENGTH.pack(MAGIC)
        if not magic.startswith(buffer[_LENGTH.size : 2 * _LENGTH.size]):
            raise PeerFault("bytes that are no frame")

    @staticmethod
    def _check(length: int, magic: int, code: int, payload_length: int) -> Kind:
        if magic != MAGIC:
            raise PeerFault("bytes that are no frame")
        kind = BY_CODE.get(code)
        if kind is None:
            raise PeerFault(f"message {code}, which nobody knows")
        if not 0 <= payload_length <= kind.limit:
            raise PeerFault(f"{kind.name} of {payload_length} bytes, above {kind.limit}")
        expected = _AFTER_LENGTH + (CHECKSUM_BYTES + payload_length if payload_length else 0)
        if length != expected:
            raise PeerFault(f"{kind.name} in a frame of {length} bytes, not {expected}")
        return kind
