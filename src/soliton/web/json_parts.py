"""Counting the parts of a JSON text before it is parsed.

A parser makes an object for each array, object and member. A megabyte of them blocks the event loop
for a tenth of a second and more.

What lives here: counting. What does not: parsers, and the limits of each.
"""

from __future__ import annotations

from typing import Final

_PIECES: Final = 8_192
"""How many pieces (an even number) are split off at a time, so that counting can stop early."""


def has_more_parts(data: bytes, most: int) -> bool:
    """Whether a JSON text has more than so many objects, arrays and members."""
    if _parts(data) <= most:
        return False
    rest, parts = _without_escapes(data), 0
    while rest:
        # The last piece is unsplit. An even number of pieces precedes it, so it begins outside.
        *pieces, rest = rest.split(b'"', _PIECES)
        if len(pieces) < _PIECES:
            pieces, rest = [*pieces, rest], b""
        parts += _parts(b"".join(pieces[::2]))
        if parts > most:
            return True
    return False


def _parts(data: bytes) -> int:
    return data.count(b"{") + data.count(b"[") + data.count(b":")


def outside_texts(data: bytes) -> bytes:
    """Return the text outside of the strings of a valid JSON text. Each colon there is a member's.

    Escapes are removed first; then every second part between quotation marks is outside.
    """
    return b"".join(_without_escapes(data).split(b'"')[::2])


def _without_escapes(data: bytes) -> bytes:
    if b"\\" in data:
        return data.replace(b"\\\\", b"").replace(b'\\"', b"")
    return data
