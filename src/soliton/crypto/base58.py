"""Base58 with the Bitcoin alphabet: the text form of ids, keys, addresses and signatures.

What lives here: bytes to text and back. What does not: the meaning of the bytes.

Rules: wavesplatform/Waves ``common/utils/Base58.scala``. Each leading zero byte is a leading ``1``;
the empty string decodes to no bytes. GMP does the arithmetic. It would skip white space and accept
signs, so every byte outside the alphabet is mapped to one that GMP rejects.
"""

from __future__ import annotations

import gmpy2

from soliton.crypto.errors import Base58Error

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
BASE = 58

MAX_TEXT_CHARS = 16_384
"""The default limit for decoding, whose cost grows faster than linearly. The protocol's own Base58
strings (keys, signatures, attachments, proofs, seeds) have a few hundred characters at most."""

_GMP_DIGITS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[:BASE]
_OUTSIDE = bytes(set(range(256)) - set(ALPHABET.encode()))
_TO_GMP = bytes.maketrans(ALPHABET.encode() + _OUTSIDE, _GMP_DIGITS + b"*" * len(_OUTSIDE))
_FROM_GMP = bytes.maketrans(_GMP_DIGITS, ALPHABET.encode())
_ZERO_DIGIT = ALPHABET[0]


def encode(data: bytes) -> str:
    """Encode ``data`` in Base58."""
    significant = data.lstrip(b"\0")
    zeros = _ZERO_DIGIT * (len(data) - len(significant))
    if not significant:
        return zeros
    digits: str = gmpy2.mpz.from_bytes(significant, "big").digits(BASE)
    return zeros + digits.encode().translate(_FROM_GMP).decode()


def decode(text: str, max_chars: int = MAX_TEXT_CHARS) -> bytes:
    """Decode a Base58 string. Raise ``Base58Error`` for a character outside the alphabet, or more
    than ``max_chars`` characters.
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
