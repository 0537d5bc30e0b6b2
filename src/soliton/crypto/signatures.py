"""Signatures of both schemes of a chain: those of accounts, and those of endorsements.

A signed message is a key, a message and a signature. The length of the signature says which scheme
it is: Curve25519, or BLS12-381, where the key may be several keys, one after the other, which have
all signed.

What lives here: verification of either kind, in one step, or with the cheap part here and the rest
in another process. What does not: the schemes (``curve25519``, ``bls``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from soliton.crypto import bls, curve25519
from soliton.crypto.curve25519 import SignedMessage

BLS_WEIGHT: Final = 32
"""So many signatures of accounts take as long as one of BLS12-381."""


def bls_claim(public_keys: Iterable[bytes], message: bytes, signature: bytes) -> SignedMessage:
    """Return the signed message of a BLS signature by all these keys."""
    return b"".join(public_keys), message, signature


def is_bls(claim: SignedMessage) -> bool:
    """Whether the signature is one of BLS12-381, which takes longer to verify."""
    return len(claim[2]) == bls.SIGNATURE_LENGTH


def weight(claims: Iterable[SignedMessage]) -> int:
    """Return how many signatures of accounts take as long to verify as these signatures."""
    return sum(BLS_WEIGHT if is_bls(each) else 1 for each in claims)


def count_within(claims: Sequence[SignedMessage], limit: int) -> int:
    """Return how many of the first signatures have a weight up to a limit, at least one."""
    total = 0
    for count, each in enumerate(claims):
        total += BLS_WEIGHT if is_bls(each) else 1
        if total > limit:
            return max(1, count)
    return len(claims)


def verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a signature of either scheme is valid."""
    if len(signature) != bls.SIGNATURE_LENGTH:
        return curve25519.verify(public_key, message, signature)
    size = bls.PUBLIC_KEY_LENGTH
    keys = [public_key[start : start + size] for start in range(0, len(public_key), size)]
    return bls.is_valid(keys, message, signature)


def prepare(claim: SignedMessage) -> SignedMessage | None:
    """Return the form that ``verify_prepared`` takes, ``None`` for an invalid one."""
    return claim if is_bls(claim) else curve25519.to_ed25519(*claim)


def verify_prepared(claim: SignedMessage) -> bool:
    """Whether a signature is valid, in the form of ``prepare``."""
    return verify(*claim) if is_bls(claim) else curve25519.verify_ed25519(*claim)
