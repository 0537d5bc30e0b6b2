"""The verifiable random function that selects block generators: VXEdDSA on Curve25519 with
Elligator 2.

What lives here: ``prove`` and ``verify``. What does not: the message, and the use of the output
(``soliton.consensus``).

Rules: Signal's public "XEdDSA and VXEdDSA" specification as wavesplatform/curve25519-java
implements it (``gen_x.java``, ``veddsa.java``). wavesplatform/gowaves ``pkg/crypto/vxeddsa.go``
differs: it accepts an unreduced encoding of the point V and an unreduced response. This module
follows the Java library, which rejects both.

A proof is the point V, the challenge and the response, 32 bytes each. libsodium does the
arithmetic. It rejects points outside the subgroup of prime order, which no honest proof has. For
those, the integers of ``soliton.crypto.edwards`` give the reference's result in a few milliseconds.
"""

from __future__ import annotations

import hashlib
import os

from nacl import bindings as sodium
from nacl.exceptions import RuntimeError as SodiumRefused

from soliton.crypto import edwards
from soliton.crypto.curve25519 import KEY_BYTES, clamp, edwards_keys, hash_to_scalar
from soliton.crypto.edwards import FIELD_PRIME, GROUP_ORDER
from soliton.crypto.errors import CryptoError

PROOF_BYTES = 96
OUTPUT_BYTES = 32
RANDOM_BYTES = 32
MAX_MESSAGE_BYTES = 1_048_576
"""The reference's limit. The protocol's messages have 32 bytes."""

_BASE_POINT = b"\x58" + b"\x66" * 31
_NEUTRAL_POINT = b"\x01" + bytes(31)
_SIGN_BIT = 1 << 255
_HASH_BLOCK_BYTES = 128
_PROTOCOL = b"VEdDSA_25519_SHA512_Elligator2"


def _labels(name: bytes) -> bytes:
    """Join three length-prefixed labels: the protocol, no customisation, and ``name``."""
    return b"".join((b"\x03", bytes((len(_PROTOCOL),)), _PROTOCOL, b"\x00", b"\x01", name))


_POINT_LABELS = _labels(b"1")
_NONCE_LABELS = _labels(b"2")
_CHALLENGE_LABELS = _labels(b"3")
_OUTPUT_LABELS = _labels(b"4")


def prove(private_key: bytes, message: bytes, random: bytes | None = None) -> bytes:
    """Return a proof. ``random`` is 32 secret bytes, by default the system's."""
    if len(message) > MAX_MESSAGE_BYTES:
        raise CryptoError(f"A VRF message of {len(message)} bytes is over {MAX_MESSAGE_BYTES}")
    if random is None:
        random = os.urandom(RANDOM_BYTES)
    elif len(random) != RANDOM_BYTES:
        raise CryptoError(f"A VRF proof takes {RANDOM_BYTES} random bytes, not {len(random)}")
    scalar = clamp(private_key)
    key = sodium.crypto_scalarmult_ed25519_base_noclamp(scalar)
    if key[31] & 0x80:
        scalar = sodium.crypto_core_ed25519_scalar_negate(scalar)
        key = key[:31] + bytes((key[31] & 0x7F,))
    point = _message_point(key, message)
    value = sodium.crypto_scalarmult_ed25519_noclamp(scalar, point)
    nonce = _nonce(scalar, key, point, value, message, random)
    commitment = sodium.crypto_scalarmult_ed25519_base_noclamp(nonce)
    value_commitment = sodium.crypto_scalarmult_ed25519_noclamp(nonce, point)
    challenge = _challenge(key, point, value, commitment, value_commitment, message)
    response = sodium.crypto_core_ed25519_scalar_add(
        sodium.crypto_core_ed25519_scalar_mul(challenge, scalar), nonce
    )
    return value + challenge + response


def verify(public_key: bytes, message: bytes, proof: bytes) -> bytes | None:
    """Return the 32-byte output of a valid proof, or ``None`` for an invalid one."""
    if len(public_key) != KEY_BYTES or len(proof) != PROOF_BYTES:
        return None
    if len(message) > MAX_MESSAGE_BYTES:
        return None
    value, challenge, response = proof[:32], proof[32:64], proof[64:]
    if (
        _number(public_key) >= FIELD_PRIME
        or _number(value) % _SIGN_BIT >= FIELD_PRIME
        or _number(challenge) >= GROUP_ORDER
        or _number(response) >= GROUP_ORDER
    ):
        return None
    key = edwards_keys(public_key)[0]
    point = _message_point(key, message)
    if point == _NEUTRAL_POINT:
        return None
    try:
        solved = _solve(key, point, value, challenge, response)
    except SodiumRefused:
        maybe_solved = _solve_exactly(key, point, value, challenge, response)
        if maybe_solved is None:
            return None
        solved = maybe_solved
    commitment, value_commitment, cleared_value = solved
    if challenge != _challenge(key, point, value, commitment, value_commitment, message):
        return None
    output = hashlib.sha512(_BASE_POINT + _OUTPUT_LABELS + cleared_value).digest()
    return output[:OUTPUT_BYTES]


def _solve(
    key: bytes, point: bytes, value: bytes, challenge: bytes, response: bytes
) -> tuple[bytes, bytes, bytes]:
    """Return the two commitments that a proof implies (response * base - challenge * key), and
    8 * value.

    Raises ``SodiumRefused`` for points that are not on the curve or not of prime order, and for
    neutral results.
    """
    commitment = sodium.crypto_core_ed25519_sub(
        sodium.crypto_scalarmult_ed25519_base_noclamp(response),
        sodium.crypto_scalarmult_ed25519_noclamp(challenge, key),
    )
    value_commitment = sodium.crypto_core_ed25519_sub(
        sodium.crypto_scalarmult_ed25519_noclamp(response, point),
        sodium.crypto_scalarmult_ed25519_noclamp(challenge, value),
    )
    cleared_value = value
    for _ in range(3):
        cleared_value = sodium.crypto_core_ed25519_add(cleared_value, cleared_value)
    return commitment, value_commitment, cleared_value


def _solve_exactly(
    key: bytes, point: bytes, value: bytes, challenge: bytes, response: bytes
) -> tuple[bytes, bytes, bytes] | None:
    """Like ``_solve``, for all points of the curve. Return ``None`` for any other, and for a key or
    value of small order.
    """
    base_point, message_point = edwards.decode(_BASE_POINT), edwards.decode(point)
    key_point, value_point = edwards.decode(key), edwards.decode(value)
    if base_point is None or message_point is None or key_point is None or value_point is None:
        return None
    cleared_value = edwards.clear_cofactor(value_point)
    if edwards.is_neutral(cleared_value) or edwards.is_neutral(edwards.clear_cofactor(key_point)):
        return None
    s, h = _number(response), _number(challenge)
    commitment = edwards.multiply_add(s, base_point, h, edwards.negate(key_point))
    value_commitment = edwards.multiply_add(s, message_point, h, edwards.negate(value_point))
    return (
        edwards.encode(commitment),
        edwards.encode(value_commitment),
        edwards.encode(cleared_value),
    )


def _message_point(key: bytes, message: bytes) -> bytes:
    digest = hashlib.sha512(_BASE_POINT + _POINT_LABELS + key + message).digest()
    return sodium.crypto_core_ed25519_from_uniform(digest[:32])


def _nonce(
    scalar: bytes, key: bytes, point: bytes, value: bytes, message: bytes, random: bytes
) -> bytes:
    """Return the secret nonce of a proof. The private key starts a block of the hash function."""
    start = _to_hash_block(_BASE_POINT + _NONCE_LABELS + random)
    secret = _to_hash_block(scalar)
    return hash_to_scalar(start + secret + _NONCE_LABELS + key + point + value + message)


def _challenge(
    key: bytes,
    point: bytes,
    value: bytes,
    commitment: bytes,
    value_commitment: bytes,
    message: bytes,
) -> bytes:
    committed = _BASE_POINT + _CHALLENGE_LABELS + commitment
    return hash_to_scalar(
        committed + _CHALLENGE_LABELS + key + point + value + value_commitment + message
    )


def _to_hash_block(data: bytes) -> bytes:
    return data + bytes(-len(data) % _HASH_BLOCK_BYTES)


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")
