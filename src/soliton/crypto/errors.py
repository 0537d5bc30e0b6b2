"""The errors of this package.

A signature or proof that does not verify is no error: the functions return ``False`` or ``None``.
"""

from __future__ import annotations

from soliton.errors import InputError


class CryptoError(InputError):
    """An argument is malformed, such as a key of the wrong length."""


class Base58Error(CryptoError):
    """A string is not Base58, or exceeds the limit of length."""


class InvalidBlsKey(CryptoError):
    """Bytes are no public key of BLS12-381."""


class InvalidBlsSignature(CryptoError):
    """Bytes are no signature of BLS12-381, or not that of a message."""
