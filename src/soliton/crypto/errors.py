"""The errors of this package.

What lives here: what a caller may want to tell apart. What does not: a signature or a proof that
does not verify, which is an answer (``False`` or ``None``), not an error.
"""

from __future__ import annotations

from soliton.errors import InputError


class CryptoError(InputError):
    """Bytes that cannot be what they are said to be: a key of a wrong length, an index outside of a
    tree.
    """


class Base58Error(CryptoError):
    """A text that is not Base58, or too long to be looked at."""
