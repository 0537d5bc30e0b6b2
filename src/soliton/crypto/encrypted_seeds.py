"""Password-encrypted texts, the form in which the ecosystem's wallets store and export seeds.

The password is hashed some thousand times with SHA-256, OpenSSL's EVP_BytesToKey derives the key,
and AES-256-CBC encrypts. There is no authentication: only the padding shows a wrong password.

What lives here: encryption and decryption. What does not: the meaning of the text
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
"""The most that a file may request: about a second of work."""
SALT_BYTES: Final = 8
_MARK: Final = b"Salted__"
_KEY_BYTES: Final = 32
_BLOCK_BITS: Final = 128


def encrypt_text(
    text: str, password: str, rounds: int = DEFAULT_ROUNDS, salt: bytes | None = None
) -> str:
    """Encrypt ``text`` and return base64. ``salt`` is 8 random bytes, by default the system's.

    Raises ``CryptoError`` if ``rounds`` is out of range.
    """
    salt = os.urandom(SALT_BYTES) if salt is None else salt
    padder = padding.PKCS7(_BLOCK_BITS).padder()
    encryptor = _cipher(password, rounds, salt).encryptor()
    padded = padder.update(text.encode("utf-8", "surrogatepass")) + padder.finalize()
    secret = encryptor.update(padded) + encryptor.finalize()
    return base64.b64encode(_MARK + salt + secret).decode()


def decrypt_text(secret: str, password: str, rounds: int = DEFAULT_ROUNDS) -> str:
    """Reverse ``encrypt_text``. Raises ``CryptoError`` for damaged text or a wrong password; about
    one wrong password in 256 is not detected, and returns nonsense if that is valid UTF-8.
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
        # No cause: it may quote the decrypted text.
        raise CryptoError("a wrong password, or damaged bytes") from None


def _cipher(password: str, rounds: int, salt: bytes) -> Cipher[modes.CBC]:
    if not 1 <= rounds <= MAX_ROUNDS:
        raise CryptoError(f"an encrypted seed has 1 to {MAX_ROUNDS} rounds, not {rounds}")
    text = password.encode("utf-8", "surrogatepass")
    for _ in range(rounds):
        text = hashlib.sha256(text).hexdigest().encode()
    # EVP_BytesToKey with MD5: three blocks.
    blocks, block = b"", b""
    for _ in range(3):
        block = hashlib.md5(block + text + salt, usedforsecurity=False).digest()
        blocks += block
    return Cipher(algorithms.AES(blocks[:_KEY_BYTES]), modes.CBC(blocks[_KEY_BYTES:]))
