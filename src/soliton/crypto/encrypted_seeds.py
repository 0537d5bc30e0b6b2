"""Texts under a password, as the ecosystem's wallets keep and export seeds.

The password is hashed some thousand times, OpenSSL's old derivation makes a key of it, AES-256-CBC
encrypts. Nothing says whether a password was right but the padding and what comes out.

What lives here: encryption and decryption. What does not: what the text means
(``soliton.keystore.imports``).

Source: wavesplatform/ts-lib-crypto ``src/crypto/seed-ecryption.ts``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from typing import Final

from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from soliton.crypto.errors import CryptoError

DEFAULT_ROUNDS: Final = 5_000
MAX_ROUNDS: Final = 1_000_000
"""What a file may ask for: about a second."""
SALT_BYTES: Final = 8
_MARK: Final = b"Salted__"
_KEY_BYTES: Final = 32
_BLOCK_BITS: Final = 128


def encrypt_text(
    text: str, password: str, rounds: int = DEFAULT_ROUNDS, salt: bytes | None = None
) -> str:
    """``text`` under a password, in base64; ``salt`` are 8 random bytes (taken from the system when
    not given). Raises ``CryptoError`` for a number of rounds beyond the limit.
    """
    salt = os.urandom(SALT_BYTES) if salt is None else salt
    padder = padding.PKCS7(_BLOCK_BITS).padder()
    encryptor = _cipher(password, rounds, salt).encryptor()
    padded = padder.update(text.encode("utf-8", "surrogatepass")) + padder.finalize()
    secret = encryptor.update(padded) + encryptor.finalize()
    return base64.b64encode(_MARK + salt + secret).decode()


def decrypt_text(secret: str, password: str, rounds: int = DEFAULT_ROUNDS) -> str:
    """The inverse of ``encrypt_text``. Raises ``CryptoError`` for what this password does not open;
    about one wrong password of 256 opens nonsense.
    """
    try:
        data = base64.b64decode(secret, validate=True)
    except (binascii.Error, ValueError):
        raise CryptoError("an encrypted seed is base64 text") from None
    if not data.startswith(_MARK) or len(data) < len(_MARK) + SALT_BYTES + _BLOCK_BITS // 8:
        raise CryptoError("this is no encrypted seed")
    salt, encrypted = data[len(_MARK) :][:SALT_BYTES], data[len(_MARK) + SALT_BYTES :]
    decryptor = _cipher(password, rounds, salt).decryptor()
    unpadder = padding.PKCS7(_BLOCK_BITS).unpadder()
    try:
        plain = unpadder.update(decryptor.update(encrypted) + decryptor.finalize())
        return (plain + unpadder.finalize()).decode()
    except ValueError:
        # Without the cause, which may quote what was decrypted.
        raise CryptoError("a wrong password, or damaged bytes") from None


def _cipher(password: str, rounds: int, salt: bytes) -> Cipher[modes.CBC]:
    if not 1 <= rounds <= MAX_ROUNDS:
        raise CryptoError(f"an encrypted seed has 1 to {MAX_ROUNDS} rounds, not {rounds}")
    text = password.encode("utf-8", "surrogatepass")
    for _ in range(rounds):
        text = hashlib.sha256(text).hexdigest().encode()
    # OpenSSL's EVP_BytesToKey with MD5: three blocks.
    blocks, block = b"", b""
    for _ in range(3):
        block = hashlib.md5(block + text + salt, usedforsecurity=False).digest()
        blocks += block
    return Cipher(algorithms.AES(blocks[:_KEY_BYTES]), modes.CBC(blocks[_KEY_BYTES:]))
