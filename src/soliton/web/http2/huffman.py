"""Decoding Huffman-coded strings of header blocks.

What lives here: the code and its decoder. What does not: header blocks (``hpack``).

Source: RFC 7541, sections 5.2 and appendix B.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from soliton.errors import InputError

END: Final = 256
_MOST_PADDING: Final = 7
# The code is canonical, so the length of each symbol's code word defines it: length, then symbols.
_WORDS: Final[tuple[tuple[int, bytes], ...]] = (
    (5, b"012aceiost"),
    (6, b" %-./3456789=A_bdfghlmnpru"),
    (7, b":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"),
    (8, b"&*,;XZ"),
    (10, b'!"()?'),
    (11, b"'+|"),
    (12, b"#>"),
    (13, b"\x00$@[]~"),
    (14, b"^}"),
    (15, b"<`{"),
    (19, b"\\\xc3\xd0"),
    (20, b"\x80\x82\x83\xa2\xb8\xc2\xe0\xe2"),
    (21, b"\x99\xa1\xa7\xac\xb0\xb1\xb3\xd1\xd8\xd9\xe3\xe5\xe6"),
    (
        22,
        (
            b"\x81\x84\x85\x86\x88\x92\x9a\x9c\xa0\xa3\xa4\xa9\xaa\xad\xb2\xb5\xb9\xba\xbb\xbd\xbe\xc4"
            b"\xc6\xe4\xe8\xe9"
        ),
    ),
    (
        23,
        (
            b"\x01\x87\x89\x8a\x8b\x8c\x8d\x8f\x93\x95\x96\x97\x98\x9b\x9d\x9e\xa5\xa6\xa8\xae\xaf\xb4"
            b"\xb6\xb7\xbc\xbf\xc5\xe7\xef"
        ),
    ),
    (24, b"\t\x8e\x90\x91\x94\x9f\xab\xce\xd7\xe1\xec\xed"),
    (25, b"\xc7\xcf\xea\xeb"),
    (26, b"\xc0\xc1\xc8\xc9\xca\xcd\xd2\xd5\xda\xdb\xee\xf0\xf2\xf3\xff"),
    (27, b"\xcb\xcc\xd3\xd4\xd6\xdd\xde\xdf\xf1\xf4\xf5\xf6\xf7\xf8\xfa\xfb\xfc\xfd\xfe"),
    (
        28,
        (
            b"\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\x10\x11\x12\x13\x14\x15\x17\x18\x19\x1a\x1b"
            b"\x1c\x1d\x1e\x1f\x7f\xdc\xf9"
        ),
    ),
    (30, b"\n\r\x16"),
)
_END_LENGTH: Final = 30

Step = tuple[int, bytes]
"""The transition of four bits: the next state (-1: invalid), and the completed symbols."""


class NoHuffman(InputError):
    """The bytes are not a valid string of this code."""


def codes() -> list[tuple[int, int]]:
    """Return the code word of each symbol, the end's the last: its bits, and its length."""
    found = [(0, 0)] * (END + 1)
    code, before = 0, 0
    words = [(length, symbol) for length, symbols in _WORDS for symbol in symbols]
    for length, symbol in [*words, (_END_LENGTH, END)]:
        code <<= length - before
        found[symbol] = code, length
        code, before = code + 1, length
    return found


def decode(data: bytes) -> bytes:
    """Decode a string; raises ``NoHuffman``."""
    steps, accepted = _machine()
    found: list[bytes] = []
    state = 0
    for byte in data:
        state, made = steps[state << 4 | byte >> 4]
        if made:
            found.append(made)
        if state >= 0:
            state, made = steps[state << 4 | byte & 15]
            if made:
                found.append(made)
        if state < 0:
            raise NoHuffman("the end stands inside of a string")
    if not accepted[state]:
        raise NoHuffman("the padding is none")
    return b"".join(found)


@cache
def _machine() -> tuple[list[Step], list[bool]]:
    """Return the transition for each state and four bits, and whether a string may end in each
    state.
    """
    children, ends = _tree()
    steps = [_step(children, state, bits) for state in range(len(children)) for bits in range(16)]
    return steps, ends


def _tree() -> tuple[list[list[int]], list[bool]]:
    """Return the code as a tree: the children of each inner node for 0 and 1 (negative: symbols,
    from -1 down), and whether the path to it is valid padding.
    """
    children, ends = [[0, 0]], [True]
    for symbol, (code, length) in enumerate(codes()):
        at = 0
        for bit in range(length - 1, -1, -1):
            side = code >> bit & 1
            if bit == 0:
                children[at][side] = -1 - symbol
            elif children[at][side] == 0:
                children.append([0, 0])
                ones = code >> bit == (1 << length - bit) - 1
                ends.append(ones and length - bit <= _MOST_PADDING)
                children[at][side] = len(children) - 1
                at = len(children) - 1
            else:
                at = children[at][side]
    return children, ends


def _step(children: list[list[int]], state: int, bits: int) -> Step:
    made = b""
    for shift in (3, 2, 1, 0):
        state = children[state][bits >> shift & 1]
        if state < 0:
            symbol = -1 - state
            if symbol == END:
                return -1, b""
            made += bytes((symbol,))
            state = 0
    return state, made
