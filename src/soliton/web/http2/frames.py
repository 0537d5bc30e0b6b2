"""The frames of HTTP/2: constants, and encoding those that a server sends.

What lives here: constants and bytes. What does not: the effects of frames (``machine``).

Source: RFC 9113, sections 4, 6 and 7.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD_BYTES: Final = 9
HEAD: Final = Struct(">HBBBL")
"""The high 16 and the low 8 bits of the length, kind, flags, stream."""
LONG: Final = Struct(">L")
SETTING: Final = Struct(">HL")

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE = range(6)
PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(6, 10)

ACK: Final = 1
END_STREAM: Final = 1
END_HEADERS: Final = 4
PADDED: Final = 8
WITH_PRIORITY: Final = 32

NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR = range(4)
STREAM_CLOSED, FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL, COMPRESSION_ERROR = 5, 6, 7, 8, 9
ENHANCE_YOUR_CALM: Final = 11

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE = 1, 2, 3, 4
MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = 5, 6

STREAM_MASK: Final = 0x7FFF_FFFF
MAX_WINDOW: Final = 0x7FFF_FFFF
USUAL_WINDOW: Final = 65_535
FRAME_BYTES: Final = 16_384
"""The longest frame that is accepted and sent: the protocol's default."""
LARGEST_FRAME_BYTES: Final = (1 << 24) - 1


def frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
    """Encode a frame."""
    length = len(body)
    return HEAD.pack(length >> 8, length & 0xFF, kind, flags, stream) + body


def settings(pairs: tuple[tuple[int, int], ...]) -> bytes:
    """Encode a SETTINGS frame."""
    return frame(SETTINGS, 0, 0, b"".join(SETTING.pack(*each) for each in pairs))


def window_update(stream: int, count: int) -> bytes:
    """Encode a WINDOW_UPDATE frame."""
    return frame(WINDOW_UPDATE, 0, stream, LONG.pack(count))


def reset(stream: int, code: int) -> bytes:
    """Encode a RST_STREAM frame."""
    return frame(RST_STREAM, 0, stream, LONG.pack(code))


def go_away(last: int, code: int, words: bytes = b"") -> bytes:
    """Encode a GOAWAY frame; streams above ``last`` were not processed."""
    return frame(GOAWAY, 0, 0, LONG.pack(last) + LONG.pack(code) + words)
