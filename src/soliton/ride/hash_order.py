"""The iteration order of the reference's hash maps and hash sets.

What lives here: that order for string keys. It decides the order in which the fields of an object
pattern are tested, and in which compilers add up the values that a function mentions, if there are
more than four.

Source: scala/scala ``src/library/scala/collection/Hashing.scala`` and, in ``immutable`` beside it,
``{Map,HashMap,Set,HashSet}.scala`` (2.13).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

IN_ORDER: Final = 4
"""Maps and sets up to this size keep the order of insertion."""
_BITS: Final = 5
_MASK: Final = (1 << _BITS) - 1
_ALL_BITS: Final = 0xFFFF_FFFF
_SHORT: Final = 64


def hash_map_order(keys: list[str]) -> list[str]:
    """Return distinct keys in the order of a map or set."""
    return keys if len(keys) <= IN_ORDER else hash_order(keys)


def hash_order(keys: list[str]) -> list[str]:
    """Return distinct keys in the order of a map or set that ever had more than ``IN_ORDER``."""
    if len(keys) < 2:
        return keys
    return _listed([((_known_hash if len(key) <= _SHORT else _hash)(key), key) for key in keys], 0)


def _listed(entries: list[tuple[int, str]], shift: int) -> list[str]:
    """Return the keys of a trie node: its own first, then those of its children."""
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
    """Return Java's hash of a string; names have no characters outside the basic plane."""
    value = 0
    for code in map(ord, text):
        value = 31 * value + code & _ALL_BITS
    return value


def _hash(text: str) -> int:
    value = _text_hash(text)
    value = value + ~(value << 9) & _ALL_BITS
    value ^= value >> 14
    value = value + (value << 4) & _ALL_BITS
    return value ^ value >> 10


_known_hash: Final = lru_cache(4_096)(_hash)
"""The same for short names, most of which occur in many functions."""
