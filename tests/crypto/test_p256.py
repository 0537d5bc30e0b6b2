"""Signatures of P-256: what is valid, what is not, and what is no signature or key at all."""

from __future__ import annotations

import pytest

from soliton.crypto import p256
from soliton.crypto.errors import CryptoError

MESSAGE = b"a message"
FIELD = 2**256 - 2**224 + 2**192 + 2**96 - 1
X = 0x3ED7A28EC648EDCE5D5B7E252F6B2AAFBB44835114A24B3CAA8F710F64993BC2
Y = 0x5711A34CDC9229080B639F09977FEB7CA91ECCE1649BFEA8AD85C72B206ADE7E
R = 0xD6076DDB02C8FB702A5DF7CEF4F348B659D242C5B20989DD7ACDFCCE81411DA2
S = 0xC57A20E3779194B0DFF46C87AE79451C8E566DB7858A1C2396E6777D5B81D682
"""A key, and its signature of the message, made with OpenSSL."""


def pair(one: int, other: int) -> bytes:
    return one.to_bytes(32, "big") + other.to_bytes(32, "big")


KEY = pair(X, Y)


@pytest.mark.parametrize(
    ("message", "signature", "key", "valid"),
    [
        (MESSAGE, pair(R, S), KEY, True),
        (MESSAGE, pair(R, p256.ORDER - S), KEY, True),
        (MESSAGE, pair(R, S), KEY + b"\1", True),
        (b"another", pair(R, S), KEY, False),
        (b"", pair(R, S), KEY, False),
        (MESSAGE, pair(S, R), KEY, False),
    ],
)
def test_signatures(message: bytes, signature: bytes, key: bytes, valid: bool) -> None:
    assert p256.verify(message, signature, key) is valid


@pytest.mark.parametrize(
    ("signature", "key"),
    [
        (pair(0, S), KEY),
        (pair(R, 0), KEY),
        (bytes(64), KEY),
        (pair(p256.ORDER, S), KEY),
        (pair(R, p256.ORDER), KEY),
        (pair(R, S)[:63], KEY),
        (pair(R, S) + b"\0", KEY),
        (b"", KEY),
        (pair(R, S), b""),
        (pair(R, S), KEY[:63]),
        (pair(R, S), b"\4" + KEY),
        (pair(R, S), bytes(64)),
        (pair(R, S), pair(X, Y ^ 1)),
        (pair(R, S), pair(FIELD, Y)),
        (pair(R, S), b"\xff" * 64),
    ],
)
def test_what_is_no_signature_or_key(signature: bytes, key: bytes) -> None:
    """As the reference does with the provider that it prefers, Amazon Corretto."""
    with pytest.raises(CryptoError):
        p256.verify(MESSAGE, signature, key)
