"""Base58 with the Bitcoin alphabet: how ids, keys, addresses and signatures are written as text.

What lives here: bytes to text and back, exact and fast. What does not: which text is an address or
an id.

Rules: wavesplatform/Waves ``common/utils/Base58.scala``. Each leading zero byte is a leading ``1``;
the empty text is the empty bytes. White space and signs are wrong characters like any other,
although GMP, which does the arithmetic, would skip some of them: every byte outside of the alphabet
is mapped to something that GMP refuses.
"""

from __future__ import annotations

import gmpy2

from soliton.crypto.errors import Base58Error

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
BASE = 58

MAX_TEXT_CHARS = 16_384
"""Longest text that is decoded by default. The work grows faster than the length, and what the
protocol itself writes in Base58 (keys, signatures, attachments, proofs, seeds) is a few hundred
characters at most."""

_GMP_DIGITS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[:BASE]
_NO_DIGIT = b"*"
_TO_GMP = bytes.maketrans(
    bytes(range(256)),
    bytes(
        _GMP_DIGITS[ALPHABET.index(chr(byte))] if chr(byte) in ALPHABET else _NO_DIGIT[0]
        for byte in range(256)
    ),
)
_FROM_GMP = bytes.maketrans(_GMP_DIGITS, ALPHABET.encode())
_ZERO_DIGIT = ALPHABET[0]


def encode(data: bytes) -> str:
    """Write ``data`` in Base58."""
    significant = data.lstrip(b"\0")
    zeros = _ZERO_DIGIT * (len(data) - len(significant))
    if not significant:
        return zeros
    digits: str = gmpy2.mpz.from_bytes(significant, "big").digits(BASE)
    return zeros + digits.encode().translate(_FROM_GMP).decode()


def decode(text: str, max_chars: int = MAX_TEXT_CHARS) -> bytes:
    """Read Base58; raise `Base58Error` for a wrong character or more than ``max_chars``
    characters.
    """
    if len(text) > max_chars:
        raise Base58Error(f"Base58 string of {len(text)} characters is longer than {max_chars}")
    significant = text.lstrip(_ZERO_DIGIT)
    zeros = bytes(len(text) - len(significant))
    if not significant:
        return zeros
    try:
        number = gmpy2.mpz(significant.encode("ascii").translate(_TO_GMP), BASE)
    except ValueError:
        raise _wrong_character(text) from None
    value: bytes = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return zeros + value


def _wrong_character(text: str) -> Base58Error:
    wrong = next(character for character in text if character not in ALPHABET)
    return Base58Error(f"requirement failed: Wrong char '{wrong}' in Base58 string '{text}'")
