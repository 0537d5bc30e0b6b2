"""The order in which the reference's hash maps list their keys.

What lives here: that order for keys that are texts. It decides in which order the fields of an
object pattern are checked, when there are more than four.

Source: scala/scala ``src/library/scala/collection/immutable/{Map,HashMap}.scala`` (2.13).
"""

from __future__ import annotations

from typing import Final

_SMALL: Final = 4
"""Maps up to this size keep the order of insertion."""
_BITS: Final = 5
_MASK: Final = (1 << _BITS) - 1


def hash_map_order(keys: list[str]) -> list[str]:
    """The distinct keys in the order of the reference."""
    if len(keys) <= _SMALL:
        return keys
    return _listed([(_improved(_text_hash(key)), key) for key in keys], 0)


def _listed(entries: list[tuple[int, str]], shift: int) -> list[str]:
    """A node lists the keys that it holds itself before those of its children."""
    if shift >= 32:
        return [key for _, key in entries]
    slots: dict[int, list[tuple[int, str]]] = {}
    for entry in entries:
        slots.setdefault(entry[0] >> shift & _MASK, []).append(entry)
    own = [slots[slot][0][1] for slot in sorted(slots) if len(slots[slot]) == 1]
    below = [
        key
        for slot in sorted(slots)
        if len(slots[slot]) > 1
        for key in _listed(slots[slot], shift + _BITS)
    ]
    return own + below


def _text_hash(text: str) -> int:
    """As Java computes it, over UTF-16 units; names are Latin."""
    value = 0
    for char in text:
        value = (31 * value + ord(char)) & 0xFFFF_FFFF
    return value


def _improved(value: int) -> int:
    return (value ^ value >> 16) & 0xFFFF_FFFF
