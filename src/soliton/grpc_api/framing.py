"""The encoding of gRPC in HTTP/2: length-prefixed messages, and statuses as headers.

What lives here: messages, statuses, timeouts as bytes. What does not: frames
(``soliton.web.http2``), and calls (``calls``).

Source: grpc/grpc ``doc/PROTOCOL-HTTP2.md``.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from soliton.grpc_api.errors import Code, Refused
from soliton.web.http2.hpack import encode

MAX_REQUEST_BYTES: Final = 4 * 1024 * 1024
PREFIX_BYTES: Final = 5
ENCODINGS: Final = b"identity,gzip"
"""The accepted encodings of requests."""
MAX_TEXT_BYTES: Final = 4_096
"""Limit on a status message, and on each trailer, so that all fit into a frame."""
_GZIP: Final = 31
_MOST_DIGITS: Final = 8
_STATUSES_KEPT: Final = 256

_NUMBERS: Final = {
    Code.CANCELLED: 1,
    Code.UNKNOWN: 2,
    Code.INVALID_ARGUMENT: 3,
    Code.DEADLINE_EXCEEDED: 4,
    Code.NOT_FOUND: 5,
    Code.ALREADY_EXISTS: 6,
    Code.RESOURCE_EXHAUSTED: 8,
    Code.FAILED_PRECONDITION: 9,
    Code.UNIMPLEMENTED: 12,
    Code.INTERNAL: 13,
    Code.UNAVAILABLE: 14,
}
_UNITS: Final = {b"H": 3_600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
_FIRST: Final = ((b":status", b"200"), (b"content-type", b"application/grpc"))
HEAD: Final = encode(_FIRST)
"""The header block that begins every response."""
OK: Final = encode(((b"grpc-status", b"0"),))
"""The header block of trailers that ends a successful response."""

Trailers = tuple[tuple[str, str], ...]


def number_of(code: Code) -> int:
    """Return the number of a status code."""
    return _NUMBERS[code]


def message(data: bytes) -> bytes:
    """Return a message with its length prefix, uncompressed."""
    return b"\0" + len(data).to_bytes(4, "big") + data


def length_of(data: bytes | bytearray, most: int = MAX_REQUEST_BYTES) -> int | None:
    """Return the length of the message that begins with ``data``, its prefix not included, or
    ``None`` if the prefix is incomplete; raises ``Refused`` if the message is too long.
    """
    if len(data) < PREFIX_BYTES:
        return None
    length = int.from_bytes(data[1:PREFIX_BYTES], "big")
    if length > most:
        text = f"Received message larger than max ({length} vs. {most})"
        raise Refused(Code.RESOURCE_EXHAUSTED, text)
    return length


def unpacked(flag: int, data: bytes, *, is_gzip: bool) -> bytes:
    """Decompress a message if its flag says so; raises ``Refused``."""
    if flag == 0:
        return data
    if flag != 1 or not is_gzip:
        raise Refused(
            Code.INTERNAL, "a message is compressed with an encoding that was not announced"
        )
    reader = zlib.decompressobj(_GZIP)
    try:
        found = reader.decompress(data, MAX_REQUEST_BYTES + 1)
    except zlib.error as error:
        raise Refused(Code.INTERNAL, "a message cannot be decompressed") from error
    if len(found) > MAX_REQUEST_BYTES:
        text = f"Received message larger than max (unpacked, vs. {MAX_REQUEST_BYTES})"
        raise Refused(Code.RESOURCE_EXHAUSTED, text)
    if not reader.eof or reader.unused_data:
        raise Refused(Code.INTERNAL, "a message cannot be decompressed")
    return found


def seconds_of(timeout: bytes) -> float:
    """Return the timeout of a call in seconds; raises ``Refused``."""
    number, unit = timeout[:-1], _UNITS.get(timeout[-1:])
    if unit is None or not number.isdigit() or len(number) > _MOST_DIGITS:
        raise Refused(Code.INTERNAL, "grpc-timeout is no time")
    return int(number) * unit


@lru_cache(_STATUSES_KEPT)
def status(code: Code, text: str, trailers: Trailers, *, is_all: bool) -> bytes:
    """Return the header block of an error status; ``is_all`` if nothing was sent before it."""
    made = [(b"grpc-status", b"%d" % number_of(code))]
    if text:
        made.append((b"grpc-message", escaped(text)))
    made += [(name.encode("ascii"), _plain(value)) for name, value in trailers]
    return encode((*_FIRST, *made) if is_all else made)


def http_status(number: int, fields: Iterable[tuple[bytes, bytes]] = ()) -> bytes:
    """Return the header block of a response to a request that is not a gRPC call."""
    return encode(((b":status", b"%d" % number), *fields))


def escaped(text: str) -> bytes:
    """Return a status message percent-encoded for a header."""
    data = text[:MAX_TEXT_BYTES].encode("utf-8", "replace")
    found = b"".join(_ESCAPED[each] for each in data)[:MAX_TEXT_BYTES]
    # Remove an escape sequence that was cut off.
    return found[: found.rindex(b"%")] if b"%" in found[-2:] else found


_ESCAPED: Final = tuple(
    bytes((each,)) if 0x20 <= each <= 0x7E and each != 0x25 else b"%%%02X" % each
    for each in range(256)
)


def _plain(value: str) -> bytes:
    """Return a header value with question marks in place of other characters."""
    data = value[:MAX_TEXT_BYTES].encode("ascii", "replace").strip()
    return bytes(each if 0x20 <= each <= 0x7E else 0x3F for each in data)
