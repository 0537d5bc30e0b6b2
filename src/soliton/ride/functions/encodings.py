"""Base16, Base58 and Base64: encoding and decoding.

What lives here: the limits of input and output, and the two decoders that are stricter or laxer
than Python's. What does not: Base58 itself (``soliton.crypto.base58``).

Sources: wavesplatform/Waves ``lang/jvm/src/main/scala/com/wavesplatform/lang/Global.scala``,
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/BaseGlobal.scala``. Base64 is read as
java.util.Base64 does it, Base16 as com.google.common.io.BaseEncoding.
"""

from __future__ import annotations

import base64
import re
from typing import Final

from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.ride.errors import EvaluationError
from soliton.ride.functions.data import checked_bytes
from soliton.ride.functions.text import checked_text, units_length
from soliton.ride.values import MAX_DATA_TRANSACTION_BYTES, MAX_STRING_BYTES, Value

MAX_BASE16_BYTES: Final = 8 * 1024
MAX_BASE16_CHARS: Final = 32 * 1024
MAX_BASE58_BYTES: Final = 64
MAX_BASE58_CHARS: Final = 100
MAX_BASE64_BYTES: Final = 32 * 1024
MAX_BASE64_CHARS: Final = 44 * 1024

_BASE64_PREFIX: Final = "base64:"
_NO_DIGIT_OF_BASE16: Final = re.compile(r"[^0-9a-f]")
_BASE64: Final = re.compile(r"([A-Za-z0-9+/]*)(={0,2})")
_PADDING: Final = {0: ("",), 2: ("", "=="), 3: ("", "=")}
"""The allowed padding by the number of characters modulo 4."""


def to_base58(data: bytes) -> Value:
    """``toBase58String``; 64 bytes are far below the limit of the result."""
    if len(data) > MAX_BASE58_BYTES:
        raise EvaluationError(f"base58Encode input exceeds {MAX_BASE58_BYTES}")
    return base58.encode(data)


def from_base58(text: str) -> Value:
    """``fromBase58String``."""
    if units_length(text) > MAX_BASE58_CHARS:
        raise EvaluationError(f"base58Decode input exceeds {MAX_BASE58_CHARS}")
    try:
        return base58.decode(text, MAX_BASE58_CHARS)
    except Base58Error:
        raise EvaluationError("can't parse Base58 string") from None


def to_base64(data: bytes) -> Value:
    """``toBase64String`` since version 4."""
    return checked_text(_base64(data), MAX_STRING_BYTES)


def to_long_base64(data: bytes) -> Value:
    """``toBase64String`` until version 3."""
    return checked_text(_base64(data), MAX_DATA_TRANSACTION_BYTES)


def _base64(data: bytes) -> str:
    if len(data) > MAX_BASE64_BYTES:
        raise EvaluationError(f"base64Encode input exceeds {MAX_BASE64_BYTES}")
    return base64.b64encode(data).decode()


def from_base64(text: str) -> Value:
    """``fromBase64String``: with or without the prefix, with or without padding."""
    if units_length(text) > MAX_BASE64_CHARS:
        raise EvaluationError(f"base64Decode input exceeds {MAX_BASE64_CHARS}")
    match = _BASE64.fullmatch(text.removeprefix(_BASE64_PREFIX))
    if match is None or match[2] not in _PADDING.get(len(match[1]) % 4, ()):
        raise EvaluationError("can't parse Base64 string")
    return checked_bytes(base64.b64decode(match[1] + "=" * (-len(match[1]) % 4)))


def to_base16(data: bytes) -> Value:
    """``toBase16String`` since version 4."""
    if len(data) > MAX_BASE16_BYTES:
        raise EvaluationError(
            f"Base16 encode input length={len(data)} should not exceed {MAX_BASE16_BYTES}"
        )
    return data.hex()


def to_long_base16(data: bytes) -> Value:
    """``toBase16String`` in version 3."""
    return checked_text(data.hex())


def from_base16(text: str) -> Value:
    """``fromBase16String`` since version 4."""
    length = units_length(text)
    if length > MAX_BASE16_CHARS:
        raise EvaluationError(
            f"Base16 decode input length={length} should not exceed {MAX_BASE16_CHARS}"
        )
    return from_long_base16(text)


def from_long_base16(text: str) -> Value:
    """``fromBase16String`` in version 3."""
    digits = text.lower()
    length = units_length(digits)
    if length % 2:
        raise EvaluationError(f"Invalid input length {length}")
    wrong = _NO_DIGIT_OF_BASE16.search(digits)
    if wrong is not None:
        raise EvaluationError(f"Unrecognized character: {_shown(wrong[0])}")
    return checked_bytes(bytes.fromhex(digits))


def _shown(character: str) -> str:
    """Return a character, or the number of its first code unit if it is no printable ASCII."""
    if " " < character <= "~":
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return f"0x{int.from_bytes(units[:2], 'big'):x}"
