"""The file that keeps a matcher's account seed under a password, ``account.dat``.

It holds the encrypted seed and nothing else, so that files go from the reference matcher to this
one and back.

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
"""Far above the longest seed."""


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
    """Make the file, which only its owner may read; raises ``MatcherSettingsError``, also where
    there is one already.
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
