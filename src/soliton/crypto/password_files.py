"""Password encryption as the ecosystem's programs use it for files.

AES-128/ECB/PKCS5 with a key derived by PBKDF2-HMAC-SHA512. The salt is a public constant and ECB
reveals equal blocks, so a good password matters more than usual.

What lives here: key derivation, encryption, decryption. What does not: the files
(``soliton.node.wallet``, ``soliton.matcher.account_file``).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/utils/JsonFileStorage.scala``,
wavesplatform/matcher ``dex/src/main/scala/com/wavesplatform/dex/crypto/Enigma.scala``.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from soliton.crypto.errors import CryptoError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import Cipher, modes

KEY_SALT: Final = b"0495c728-1614-41f6-8ac3-966c22b4a62d"
KEY_ROUNDS: Final = 999_999
KEY_BYTES: Final = 16
BLOCK_BITS: Final = 128


def file_key(password: str) -> bytes:
    """Derive the key from a password; deliberately slow, most of a second."""
    # The format's Java implementation uses the UTF-8 bytes of the password, too.
    secret = password.encode("utf-8", "surrogatepass")
    return hashlib.pbkdf2_hmac("sha512", secret, KEY_SALT, KEY_ROUNDS, KEY_BYTES)


def encrypt(key: bytes, plain: bytes) -> bytes:
    """Encrypt the content of a file."""
    from cryptography.hazmat.primitives import padding

    padder = padding.PKCS7(BLOCK_BITS).padder()
    encryptor = _cipher(key).encryptor()
    padded = padder.update(plain) + padder.finalize()
    return encryptor.update(padded) + encryptor.finalize()


def decrypt(key: bytes, secret: bytes) -> bytes:
    """Reverse ``encrypt``. Raises ``CryptoError`` for a wrong key, except that about one wrong key
    in 256 is not detected and returns nonsense.
    """
    from cryptography.hazmat.primitives import padding

    decryptor = _cipher(key).decryptor()
    unpadder = padding.PKCS7(BLOCK_BITS).unpadder()
    try:
        plain = unpadder.update(decryptor.update(secret) + decryptor.finalize())
        return plain + unpadder.finalize()
    except ValueError:
        # No cause: it may quote the decrypted bytes.
        raise CryptoError("a wrong password, or damaged bytes") from None


def _cipher(key: bytes) -> Cipher[modes.ECB]:
    # Imported with the first file: most nodes and matchers that start have none.
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(key), modes.ECB())  # noqa: S305 - the files' format
