"""Distinguished encoding (DER) of the few structures that are read without a library.

What lives here: a reader of elements in sequence. What does not: what the elements mean (``rsa``,
``certificate_names``).

Source: ITU-T X.690.
"""

from __future__ import annotations

from typing import Final

from soliton.crypto.errors import CryptoError

INTEGER: Final = 0x02
BIT_STRING: Final = 0x03
OCTET_STRING: Final = 0x04
NULL: Final = 0x05
OBJECT_IDENTIFIER: Final = 0x06
UTF8_STRING: Final = 0x0C
PRINTABLE_STRING: Final = 0x13
SEQUENCE: Final = 0x30
SET: Final = 0x31

_LONG_LENGTH: Final = 0x80
_MAX_LENGTH_BYTES: Final = 4


class Reader:
    """Reads DER elements in sequence."""

    def __init__(self, data: bytes) -> None:
        self.rest = data

    def next(self, tag: int) -> bytes:
        """Return the content of the next element, which must have this tag."""
        if len(self.rest) < 2 or self.rest[0] != tag:
            raise CryptoError("not the element that a key has here")
        length, start = self.rest[1], 2
        if length >= _LONG_LENGTH:
            count = length - _LONG_LENGTH
            start += count
            if not 0 < count <= _MAX_LENGTH_BYTES or len(self.rest) < start:
                raise CryptoError("a length that is none")
            length = int.from_bytes(self.rest[2:start], "big")
        content = self.rest[start : start + length]
        if len(content) != length:
            raise CryptoError("an element that ends early")
        self.rest = self.rest[start + length :]
        return content

    def only(self, tag: int) -> bytes:
        """Return the content of the only element."""
        content = self.next(tag)
        if self.rest:
            raise CryptoError("excess key data")
        return content

    def all(self, tag: int) -> list[bytes]:
        """Return the contents of the rest, whose elements must have this tag."""
        found = []
        while self.rest:
            found.append(self.next(tag))
        return found


def first_element(data: bytes) -> bytes:
    """Return the first element with its tag and length; raise ``CryptoError`` if it is cut off."""
    reader = Reader(data)
    reader.next(data[0] if data else 0)
    return data[: len(data) - len(reader.rest)]
