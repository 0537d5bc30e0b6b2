"""RSA signatures: recorded ones, another library's, and what the reference accepts besides."""

from __future__ import annotations

import hashlib

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric import rsa as other
from hypothesis import given
from hypothesis import strategies as st

from soliton.crypto import rsa
from soliton.crypto.errors import CryptoError
from tests.vectors import load_vectors, report

NAMES = {
    "NONE": rsa.NO_DIGEST,
    "MD5": "md5",
    "SHA-1": "sha1",
    "SHA-256": "sha256",
    "SHA-384": "sha384",
    "SHA-512": "sha512",
    "SHA3-224": "sha3_224",
    "SHA3-256": "sha3_256",
    "SHA3-384": "sha3_384",
    "SHA3-512": "sha3_512",
}
P = int(
    "d7f004cb8f203c6868ae11477bb394eb856f047cbac6ae1b46c9752735a68c05"
    "a45493b4732e9108553249a875826f3f72b2787ba339b25101f2511f19964ebd",
    16,
)
Q = int(
    "d4e142d93ca939be210c258ec3ec1d019c7c7024eb450f7e3157f2c286e4dc53"
    "14c36557d0b84e737857b5b853a08ac4784f127756ca15b564d4865e323e1fd7",
    16,
)
"""A key of these tests, made at random until its signature of ``0`` began with a zero."""
_D = pow(65537, -1, (P - 1) * (Q - 1))
PRIVATE = other.RSAPrivateNumbers(
    P, Q, _D, _D % (P - 1), _D % (Q - 1), pow(Q, -1, P), other.RSAPublicNumbers(65537, P * Q)
).private_key()
PUBLIC_BYTES = PRIVATE.public_key().public_bytes(
    serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
)
PUBLIC = rsa.parse_public_key(PUBLIC_BYTES)


def test_recorded_signatures() -> None:
    vectors = load_vectors("rsa")
    for vector in vectors:
        key = rsa.PublicKey(int(vector["n"]), int(vector["e"]))
        valid = rsa.verify_hashed(
            NAMES[vector["hash"]],
            bytes.fromhex(vector["digest"]),
            bytes.fromhex(vector["signature"]),
            key,
        )
        assert valid == vector["valid"]
    report.ran("rsa", len(vectors))


@pytest.mark.parametrize("algorithm", [hashes.SHA224(), hashes.SHA256(), hashes.SHA3_512()])
def test_signatures_of_another_library(algorithm: hashes.HashAlgorithm) -> None:
    name = algorithm.name.replace("-", "_")
    signature = PRIVATE.sign(b"message", padding.PKCS1v15(), algorithm)
    assert rsa.verify(name, b"message", signature, PUBLIC)
    assert not rsa.verify(name, b"massage", signature, PUBLIC)
    assert not rsa.verify("sha384", b"message", signature, PUBLIC)


def sign_raw(content: bytes) -> bytes:
    numbers = PRIVATE.private_numbers()
    length = 128
    block = b"\0\1" + b"\xff" * (length - 3 - len(content)) + b"\0" + content
    return pow(int.from_bytes(block, "big"), numbers.d, PUBLIC.modulus).to_bytes(length, "big")


def test_message_without_digest() -> None:
    signature = sign_raw(b"any message")
    assert rsa.verify(rsa.NO_DIGEST, b"any message", signature, PUBLIC)
    assert not rsa.verify(rsa.NO_DIGEST, b"any massage", signature, PUBLIC)
    # Two bytes longer, the message is compared as a digest info without parameters.
    with pytest.raises(CryptoError, match="out of bounds"):
        rsa.verify(rsa.NO_DIGEST, b"other message", signature, PUBLIC)
    with pytest.raises(CryptoError, match="out of bounds"):
        rsa.verify(rsa.NO_DIGEST, b"ab", sign_raw(b""), PUBLIC)


def test_digest_without_null() -> None:
    hashed = hashlib.sha256(b"m").digest()
    content = bytes.fromhex("302f300b0609608648016503040201") + b"\x04\x20" + hashed
    assert rsa.verify("sha256", b"m", sign_raw(content), PUBLIC)
    assert not rsa.verify("sha256", b"n", sign_raw(content), PUBLIC)


def test_signature_without_leading_zeros() -> None:
    signature = sign_raw(b"0")
    assert signature[0] == 0
    assert rsa.verify(rsa.NO_DIGEST, b"0", signature[1:], PUBLIC)
    assert not rsa.verify(rsa.NO_DIGEST, b"0", b"\0" + signature, PUBLIC)


def test_short_padding_is_refused() -> None:
    content = bytes(range(1, 129 - 2 - 1 - 7))
    signature = sign_raw(content)
    assert not rsa.verify(rsa.NO_DIGEST, content, signature, PUBLIC)
    assert rsa.verify(rsa.NO_DIGEST, content[1:], sign_raw(content[1:]), PUBLIC)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x30",
        PUBLIC_BYTES[:-1],
        PUBLIC_BYTES + b"\0",
        PUBLIC_BYTES.replace(
            bytes.fromhex("2a864886f70d010101"), bytes.fromhex("2a864886f70d01010a")
        ),
        b"\x30\x84\xff\xff\xff\xff" + PUBLIC_BYTES,
    ],
)
def test_bytes_that_are_no_key(data: bytes) -> None:
    with pytest.raises(CryptoError):
        rsa.parse_public_key(data)


def test_small_key_is_refused() -> None:
    with pytest.raises(CryptoError, match="at least 512"):
        rsa.parse_public_key(
            bytes.fromhex("301b300d06092a864886f70d0101010500030a0030070202")
            + b"\x7f\xff\x02\x01\x03"
        )


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_hostile_bytes(key: bytes, signature: bytes) -> None:
    with pytest.raises(CryptoError):
        rsa.parse_public_key(key)
    assert not rsa.verify("sha1", b"", signature, PUBLIC)
