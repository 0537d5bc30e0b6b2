"""Derivation of an account's keys from a seed.

What lives here: seed → account seed → private key → public key. What does not: addresses
(``soliton.chain.addresses``), and storage of secrets.

Rules: wavesplatform/Waves ``wallet/Wallet.scala`` (account seed),
``lang/jvm/.../crypto/Curve25519.scala`` (private key); worked example:
wavesplatform/docs.wavesplatform, "Cryptographic practical details".
"""

from __future__ import annotations

import msgspec

from soliton.crypto import curve25519
from soliton.crypto.errors import CryptoError
from soliton.crypto.hashes import secure_hash, sha256

MIN_NONCE = -(2**31)
MAX_NONCE = 2**31 - 1
NONCE_BYTES = 4


class KeyPair(msgspec.Struct, frozen=True):
    """The two keys of an account. The ``repr`` omits the private one."""

    private_key: bytes
    public_key: bytes

    def __repr__(self) -> str:
        return f"{type(self).__name__}(public_key={self.public_key!r})"


def account_seed(seed: bytes, nonce: int = 0) -> bytes:
    """Return the seed of account number ``nonce`` of the wallet with this ``seed``."""
    if not MIN_NONCE <= nonce <= MAX_NONCE:
        raise CryptoError(f"Account nonce {nonce} is not in {MIN_NONCE}..{MAX_NONCE}")
    return secure_hash(nonce.to_bytes(NONCE_BYTES, "big", signed=True) + seed)


def key_pair_from_account_seed(account_seed: bytes) -> KeyPair:
    """Return the keys of the account with this account seed."""
    private_key = curve25519.clamp(sha256(account_seed))
    return KeyPair(private_key, curve25519.public_key(private_key))


def key_pair(seed: bytes | str, nonce: int = 0) -> KeyPair:
    """Return the keys of account number ``nonce`` of a wallet. A string is encoded as UTF-8."""
    if isinstance(seed, str):
        try:
            seed = seed.encode()
        except UnicodeEncodeError:
            raise CryptoError("The seed phrase cannot be encoded as UTF-8") from None
    return key_pair_from_account_seed(account_seed(seed, nonce))
