"""Secrets under a password, as the ecosystem's programs keep them in files.

AES-128/ECB/PKCS5 with a key that PBKDF2-HMAC-SHA512 makes from the password. Its salt is the same
for everybody and ECB shows equal blocks, so a good password matters more than usual.

What lives here: the key, encryption, decryption. What does not: what a file holds and where it is
(``soliton.node.wallet``, ``soliton.matcher.account_file``).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/utils/JsonFileStorage.scala``,
wavesplatform/matcher ``dex/src/main/scala/com/wavesplatform/dex/crypto/Enigma.scala``.
"""

from __future__ import annotations

from typing import Final

from cryptography.hazmat.primitives import hashes, padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

from soliton.crypto.errors import CryptoError

KEY_SALT: Final = b"0495c728-1614-41f6-8ac3-966c22b4a62d"
KEY_ROUNDS: Final = 999_999
KEY_BYTES: Final = 16
BLOCK_BITS: Final = 128


def file_key(password: str) -> bytes:
    """The key of a password; takes most of a second, on purpose."""
    # The Java function behind the format takes the UTF-8 bytes of the password, too.
    derivation = PBKDF2HMAC(hashes.SHA512(), KEY_BYTES, KEY_SALT, KEY_ROUNDS)
    return derivation.derive(password.encode("utf-8", "surrogatepass"))


def encrypt(key: bytes, plain: bytes) -> bytes:
    """What a file keeps of ``plain``."""
    padder = padding.PKCS7(BLOCK_BITS).padder()
    encryptor = _cipher(key).encryptor()
    padded = padder.update(plain) + padder.finalize()
    return encryptor.update(padded) + encryptor.finalize()


def decrypt(key: bytes, secret: bytes) -> bytes:
    """The inverse of ``encrypt``; raises ``CryptoError`` for what this key does not open. About one
    wrong key of 256 opens nonsense.
    """
    decryptor = _cipher(key).decryptor()
    unpadder = padding.PKCS7(BLOCK_BITS).unpadder()
    try:
        plain = unpadder.update(decryptor.update(secret) + decryptor.finalize())
        return plain + unpadder.finalize()
    except ValueError:
        # Without the cause, which may quote what was decrypted.
        raise CryptoError("a wrong password, or damaged bytes") from None


def _cipher(key: bytes) -> Cipher[modes.ECB]:
    return Cipher(algorithms.AES(key), modes.ECB())  # noqa: S305 - the files' format
