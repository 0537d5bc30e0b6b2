"""Signatures: round trips, hostile input, and the exact rule next to a slow rendering of it."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl import bindings as sodium

from soliton.crypto import base58, curve25519, edwards
from soliton.crypto.edwards import FIELD_PRIME, GROUP_ORDER
from soliton.crypto.errors import CryptoError
from tests.amounts import examples
from tests.vectors import load_vectors, report

PRIVATE_KEY = base58.decode("3kMEhU5z3v8bmer1ERFUUhW58Dtuhyo9hE5vrhjqAWYT")
PUBLIC_KEY = base58.decode("HBqhfdFASRQ5eBBpu2y6c6KKi1az6bMx8v1JxX4iW1Q8")
ORDER_EIGHT = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")

# Made with this code, and accepted by the slow rendering of the rule below.
FROZEN_SIGNATURE = (
    "e7d1035ecee6cf8168d38162b0255ac3388a9fcd00a00cb1014105f34dee0385"
    "47a7297a515b94193a7e72d0472150149813c4954f3f7cac43461bbb49d9ca00"
)

keys = st.binary(min_size=32, max_size=32)
messages = st.binary(max_size=300)


def verify_by_the_book(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """The rule, step by step, in the slow arithmetic."""
    sign_bit = signature[63] & 0x80
    signature = signature[:63] + bytes([signature[63] & 0x7F])
    if signature[63] & 0xE0:
        return False
    u = int.from_bytes(public_key, "little") % 2**255
    y = (u - 1) * pow(u + 1, FIELD_PRIME - 2, FIELD_PRIME) % FIELD_PRIME
    encoded = bytearray(y.to_bytes(32, "little"))
    encoded[31] |= sign_bit
    key, base = edwards.decode(bytes(encoded)), edwards.decode(b"\x58" + b"\x66" * 31)
    assert base is not None
    if key is None:
        return False
    digest = hashlib.sha512(signature[:32] + encoded + message).digest()
    challenge = int.from_bytes(digest, "little") % GROUP_ORDER
    response = int.from_bytes(signature[32:], "little")
    point = edwards.multiply_add(response, base, challenge, edwards.negate(key))
    return edwards.encode(point) == signature[:32]


def scalar_bytes(number: int) -> bytes:
    return (number % GROUP_ORDER).to_bytes(32, "little")


def to_public_key(point: bytes) -> bytes:
    """Edwards to Montgomery: u = (1 + y) / (1 - y)."""
    y = int.from_bytes(point, "little") % 2**255
    u = (1 + y) * pow(1 - y, FIELD_PRIME - 2, FIELD_PRIME) % FIELD_PRIME
    return u.to_bytes(32, "little")


@cache
def torsion_points() -> tuple[bytes, ...]:
    """The eight points of small order."""
    point = edwards.decode(ORDER_EIGHT)
    assert point is not None
    return tuple(
        edwards.encode(edwards.multiply_add(factor, point, 0, edwards.NEUTRAL))
        for factor in range(8)
    )


def add_points(first: bytes, second: bytes) -> bytes:
    one, other = edwards.decode(first), edwards.decode(second)
    assert one is not None
    assert other is not None
    return edwards.encode(edwards.add(one, other))


@given(keys, messages)
@settings(max_examples=examples(50))
def test_signs_and_verifies(private_key: bytes, message: bytes) -> None:
    public_key = curve25519.public_key(private_key)
    signature = curve25519.sign(private_key, message)
    assert curve25519.verify(public_key, message, signature)
    assert not curve25519.verify(public_key, message + b"!", signature)
    assert signature != curve25519.sign(private_key, message)


@given(keys, messages, st.binary(min_size=64, max_size=64))
@settings(max_examples=15, deadline=None)
def test_given_random_bytes_make_the_signature_of_the_rule(
    private_key: bytes, message: bytes, random: bytes
) -> None:
    signature = curve25519.sign(private_key, message, random)
    assert signature == curve25519.sign(private_key, message, random)
    assert verify_by_the_book(curve25519.public_key(private_key), message, signature)
    prefix = b"\xfe" + b"\xff" * 31
    digest = hashlib.sha512(prefix + curve25519.clamp(private_key) + message + random).digest()
    nonce = scalar_bytes(int.from_bytes(digest, "little"))
    assert signature[:32] == sodium.crypto_scalarmult_ed25519_base_noclamp(nonce)


def test_frozen_signature() -> None:
    assert curve25519.public_key(PRIVATE_KEY) == PUBLIC_KEY
    signature = curve25519.sign(PRIVATE_KEY, b"soliton", bytes(range(64)))
    assert signature.hex() == FROZEN_SIGNATURE
    assert curve25519.verify(PUBLIC_KEY, b"soliton", signature)


@given(st.integers(0, 511))
@settings(max_examples=examples(60))
def test_every_bit_counts(bit: int) -> None:
    signature = bytearray(curve25519.sign(PRIVATE_KEY, b"message"))
    signature[bit // 8] ^= 1 << bit % 8
    assert not curve25519.verify(PUBLIC_KEY, b"message", bytes(signature))


@given(
    st.integers(1, GROUP_ORDER - 1),
    st.integers(1, GROUP_ORDER - 1),
    st.integers(0, 7),
    st.integers(0, 7),
    st.integers(0, 7),
    messages,
)
@settings(max_examples=examples(150), deadline=None)
def test_hostile_signatures_are_judged_by_the_book(
    a: int, r: int, key_torsion: int, point_torsion: int, multiples: int, message: bytes
) -> None:
    """Points with a part of small order, and responses that are not reduced."""
    torsion = torsion_points()
    key = add_points(
        sodium.crypto_scalarmult_ed25519_base_noclamp(scalar_bytes(a)), torsion[key_torsion]
    )
    point = add_points(
        sodium.crypto_scalarmult_ed25519_base_noclamp(scalar_bytes(r)), torsion[point_torsion]
    )
    digest = hashlib.sha512(point + key + message).digest()
    response = (r + int.from_bytes(digest, "little") * a) % GROUP_ORDER + multiples * GROUP_ORDER
    tail = bytearray(response.to_bytes(32, "little"))
    tail[31] |= key[31] & 0x80
    signature = point + bytes(tail)
    public_key = to_public_key(key)
    expected = verify_by_the_book(public_key, message, signature)
    assert curve25519.verify(public_key, message, signature) == expected
    if key_torsion == point_torsion == 0 and multiples == 0:
        assert expected


def test_hostile_signatures_of_both_verdicts_exist() -> None:
    """What makes the test above worth something: equal equations, told apart by the cofactor."""
    verdicts = set()
    for number in range(1, 40):
        key = add_points(
            sodium.crypto_scalarmult_ed25519_base_noclamp(scalar_bytes(number)), ORDER_EIGHT
        )
        point = sodium.crypto_scalarmult_ed25519_base_noclamp(scalar_bytes(number + 1))
        digest = hashlib.sha512(point + key).digest()
        challenge = int.from_bytes(digest, "little") % GROUP_ORDER
        tail = bytearray(scalar_bytes(number + 1 + challenge * number))
        tail[31] |= key[31] & 0x80
        verdict = curve25519.verify(to_public_key(key), b"", point + bytes(tail))
        assert verdict == (challenge % 8 == 0)
        verdicts.add(verdict)
    assert verdicts == {True, False}


@given(keys, messages, st.binary(min_size=64, max_size=64))
@settings(max_examples=examples(100), deadline=None)
def test_random_bytes_are_judged_by_the_book(key: bytes, message: bytes, signature: bytes) -> None:
    expected = verify_by_the_book(key, message, signature)
    assert curve25519.verify(key, message, signature) == expected


def test_weak_keys_verify_until_somebody_asks() -> None:
    """Anybody can sign for a key of small order; the list is what a rule refuses them by."""
    identity, response = b"\x01" + bytes(31), bytes(32)
    weak = to_public_key(identity)
    assert curve25519.is_weak(weak)
    assert curve25519.verify(weak, b"anything", identity + response)


def test_weak_keys() -> None:
    small_order = {to_public_key(point) for point in torsion_points()}
    assert all(curve25519.is_weak(key) for key in small_order)
    assert all(curve25519.is_weak(key[:31] + bytes([key[31] | 0x80])) for key in small_order)
    for coordinate in (FIELD_PRIME - 1, FIELD_PRIME, FIELD_PRIME + 1):
        assert curve25519.is_weak(coordinate.to_bytes(32, "little"))
    assert not curve25519.is_weak((FIELD_PRIME + 2).to_bytes(32, "little"))
    assert not curve25519.is_weak(PUBLIC_KEY)
    assert not curve25519.is_weak(b"")


@pytest.mark.parametrize("length", [0, 1, 31, 33, 64])
def test_wrong_key_lengths(length: int) -> None:
    signature = curve25519.sign(PRIVATE_KEY, b"m")
    assert curve25519.verify(bytes(length), b"m", signature) is False
    with pytest.raises(CryptoError, match="32 bytes"):
        curve25519.public_key(bytes(length))
    with pytest.raises(CryptoError, match="32 bytes"):
        curve25519.sign(bytes(length), b"m")


@pytest.mark.parametrize("length", [0, 32, 63, 65, 128])
def test_wrong_signature_and_random_lengths(length: int) -> None:
    signature = (curve25519.sign(PRIVATE_KEY, b"m") * 2)[:length]
    assert curve25519.verify(PUBLIC_KEY, b"m", signature) is False
    with pytest.raises(CryptoError, match="64 random bytes"):
        curve25519.sign(PRIVATE_KEY, b"m", bytes(length))


def test_a_libsodium_that_forgives_the_cofactor_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(curve25519, "_sodium_accepts", lambda *_: True)
    assert curve25519.verify(PUBLIC_KEY, b"m", bytes(64))
    monkeypatch.setattr(curve25519, "_SODIUM_IS_EXACT", False)
    assert not curve25519.verify(PUBLIC_KEY, b"m", bytes(64))
    assert curve25519.verify(PUBLIC_KEY, b"m", curve25519.sign(PRIVATE_KEY, b"m"))


def test_cached_keys_are_bounded() -> None:
    limit = curve25519.edwards_keys.cache_parameters()["maxsize"]
    assert limit == curve25519.MAX_CACHED_KEYS


def verdict(vector: dict[str, Any]) -> bool:
    return curve25519.verify(
        bytes.fromhex(vector["public"]),
        bytes.fromhex(vector["message"]),
        bytes.fromhex(vector["signature"]),
    )


@pytest.mark.parametrize("name", ["signatures_curve25519", "signature_edge_cases"])
def test_vectors(name: str) -> None:
    vectors = load_vectors(name)
    assert [vector for vector in vectors if verdict(vector) != vector["valid"]] == []
    report.ran(name, len(vectors))
