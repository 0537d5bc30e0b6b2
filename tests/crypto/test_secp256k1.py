"""secp256k1: recorded recoveries, signatures of our own, numbers at the edges."""

from __future__ import annotations

import pytest
from coincurve import PublicKey
from hypothesis import given
from hypothesis import strategies as st

from soliton.crypto import secp256k1
from soliton.crypto.errors import CryptoError
from soliton.crypto.hashes import keccak256
from soliton.crypto.secp256k1 import FIELD, ORDER
from tests.vectors import load_vectors, report

DIGEST = keccak256(b"message")
SECRET = bytes(range(1, 33))
GENERATOR = bytes.fromhex(
    "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"
    "483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8"
)

secrets = st.integers(1, ORDER - 1).map(lambda number: number.to_bytes(32, "big"))


def is_public_key(key: bytes) -> bool:
    """Whether these 64 bytes are a point of the curve."""
    if len(key) != secp256k1.PUBLIC_KEY_LENGTH:
        return False
    try:
        PublicKey(b"\x04" + key)
    except ValueError:
        return False
    return True


def test_recorded_recoveries() -> None:
    vectors = load_vectors("ecrecover")
    for vector in vectors:
        signature = bytes.fromhex(vector["signature"])
        key = secp256k1.recover(
            bytes.fromhex(vector["digest"]),
            int.from_bytes(signature[:32], "big"),
            int.from_bytes(signature[32:64], "big"),
            signature[64] - 27 if signature[64] >= 27 else signature[64],
        )
        assert key is not None
        assert "04" + key.hex() == vector["public_uncompressed"]
        assert is_public_key(key)
    report.ran("ecrecover", len(vectors))


@given(secrets, st.binary(min_size=32, max_size=32))
def test_the_signer_is_recovered(secret: bytes, digest: bytes) -> None:
    r, s, recovery_id = secp256k1.sign(secret, digest)
    key = secp256k1.public_key(secret)
    assert secp256k1.recover(digest, r, s, recovery_id) == key
    # The other half of s is the same signature with the other sign of the point.
    assert secp256k1.recover(digest, r, ORDER - s, recovery_id ^ 1) == key
    assert secp256k1.recover(digest, r, s, recovery_id ^ 1) != key


def test_s_counts_modulo_the_order() -> None:
    r, s, recovery_id = secp256k1.sign(SECRET, DIGEST)
    key = secp256k1.public_key(SECRET)
    assert secp256k1.recover(DIGEST, r, s + ORDER, recovery_id) == key
    assert secp256k1.recover(DIGEST, r, s + ORDER * 2**256, recovery_id) == key


@pytest.mark.parametrize(
    ("r", "s", "recovery_id"),
    [
        (0, 1, 0),
        (ORDER, 1, 0),
        (FIELD, 1, 0),
        (2**512, 1, 0),
        (5, 1, 0),
        (ORDER - 1, 1, 2),
        (1, 1, -1),
        (1, 1, 4),
    ],
)
def test_numbers_without_a_signer(r: int, s: int, recovery_id: int) -> None:
    assert secp256k1.recover(DIGEST, r, s, recovery_id) is None


def test_r_beyond_the_order_is_a_coordinate_all_the_same() -> None:
    small = next(r for r in range(1, 50) if secp256k1.recover(DIGEST, r, 1, 2) is not None)
    assert secp256k1.recover(DIGEST, ORDER + small, 1, 0) == secp256k1.recover(DIGEST, small, 1, 2)


@given(st.integers(0, 2**260), st.integers(0, 2**520), st.integers(-2, 300))
def test_any_numbers_have_a_signer_or_none(r: int, s: int, recovery_id: int) -> None:
    key = secp256k1.recover(DIGEST, r, s, recovery_id)
    assert key is None or is_public_key(key)


def test_keys() -> None:
    assert secp256k1.public_key(bytes(31) + b"\1") == GENERATOR
    assert is_public_key(GENERATOR)
    assert not is_public_key(GENERATOR[:-1] + b"\0")
    assert not is_public_key(GENERATOR[:-1])
    assert secp256k1.recover(bytes(31), 1, 1, 0) is None


@pytest.mark.parametrize("secret", [b"", bytes(32), ORDER.to_bytes(32, "big"), bytes(33)])
def test_secrets_that_are_none(secret: bytes) -> None:
    with pytest.raises(CryptoError):
        secp256k1.public_key(secret)


def test_only_hashes_are_signed() -> None:
    with pytest.raises(CryptoError):
        secp256k1.sign(SECRET, b"message")


def test_s_of_zero_leaves_only_the_hash() -> None:
    exists = [r for r in range(1, 20) if secp256k1.recover(DIGEST, r, 1, 0) is not None]
    assert [r for r in range(1, 20) if secp256k1.recover(DIGEST, r, 0, 0) is not None] == exists
    r = exists[-1]
    number = -int.from_bytes(DIGEST, "big") * pow(r, -1, ORDER) % ORDER
    key = secp256k1.public_key(number.to_bytes(32, "big"))
    assert secp256k1.recover(DIGEST, r, ORDER, 1) == key
    assert secp256k1.recover(bytes(32), r, 0, 0) == secp256k1.NO_KEY


@pytest.mark.parametrize("secret", [SECRET, (123_456_789).to_bytes(32, "big")])
def test_a_signature_of_the_point_at_infinity_has_the_key_zero(secret: bytes) -> None:
    """Made so that the two points of the formula cancel out. Expected value: web3j 4.9.8
    (``Sign.recoverFromSignature``) answers 0 for it, which the reference node pads to 64 bytes.
    """
    point = PublicKey.from_secret(secret).format()
    r, number = int.from_bytes(point[1:], "big"), int.from_bytes(DIGEST, "big")
    s = number * pow(int.from_bytes(secret, "big"), -1, ORDER) % ORDER
    assert secp256k1.recover(DIGEST, r, s, point[0] - 2) == bytes(64)
    assert secp256k1.recover(DIGEST, r, s + ORDER, point[0] - 2) == bytes(64)
    assert secp256k1.recover(DIGEST, r, s, (point[0] - 2) ^ 1) not in (None, bytes(64))
