"""How much there is in a JSON text, counted before it is read.

A parser makes an object for each array, object and member: a text of a megabyte takes a tenth of a
second and more if it has nothing else, and everybody waits.

What lives here: counting. What does not: parsers, and how much each of them takes.
"""

from __future__ import annotations

from typing import Final

_PIECES: Final = 8_192
"""So many, an even number, are cut off at a time: what has too much is seldom looked through."""


def has_more_parts(data: bytes, most: int) -> bool:
    """Whether a JSON text has more than so many objects, arrays and members."""
    if _parts(data) <= most:
        return False
    rest, parts = _without_escapes(data), 0
    while rest:
        # The last piece is what has not been cut; as many as these are before it, it is outside.
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
    """What of a valid JSON text is in none of its strings. Each colon there is a member's.

    What is escaped goes first; then every second part between quotation marks is outside.
    """
    return b"".join(_without_escapes(data).split(b'"')[::2])


def _without_escapes(data: bytes) -> bytes:
    if b"\\" in data:
        return data.replace(b"\\\\", b"").replace(b'\\"', b"")
    return data
