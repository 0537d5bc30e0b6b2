"""``account.dat``, the password-protected file of a matcher's account seed.

It holds only the encrypted seed, so that it is interchangeable with the reference matcher's.

What lives here: reading and writing it. What does not: the encryption
(``soliton.crypto.password_files``).

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/db/SecuredFileStorage.scala``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from soliton.crypto import password_files
from soliton.crypto.errors import CryptoError
from soliton.matcher.errors import MatcherSettingsError

MAX_FILE_BYTES: Final = 64 * 1024
"""Well above the longest seed."""


def read_account_seed(path: Path, password: str) -> bytes:
    """The account seed in a file; raises ``MatcherSettingsError``."""
    try:
        with path.open("rb") as file:
            secret = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise MatcherSettingsError(f"{path} cannot be read: {error.strerror}") from None
    if not secret or len(secret) > MAX_FILE_BYTES:
        raise MatcherSettingsError(f"{path} is no file with an account seed")
    try:
        return password_files.decrypt(password_files.file_key(password), secret)
    except CryptoError as error:
        raise MatcherSettingsError(f"{path} does not open: {error}") from None


def write_account_seed(path: Path, seed: bytes, password: str) -> None:
    """Create the file, readable by its owner only; raises ``MatcherSettingsError``, also if the
    file exists.
    """
    secret = password_files.encrypt(password_files.file_key(password), seed)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secret)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise MatcherSettingsError(f"{path} is there already, and was not changed") from None
    except OSError as error:
        raise MatcherSettingsError(f"{path} cannot be written: {error.strerror}") from None
