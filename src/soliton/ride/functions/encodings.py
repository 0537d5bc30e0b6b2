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
MAX_SHORT_BYTES: Final = 1024
"""The limit of bytes of the functions with ``_1C`` in their names."""
MAX_SHORT_BASE16_CHARS: Final = 2 * MAX_SHORT_BYTES
MAX_SHORT_BASE64_CHARS: Final = 1375
"""1024 bytes in base64, and the prefix."""

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


def to_short_base64(data: bytes) -> Value:
    """``toBase64String_1C``."""
    return _base64(data, MAX_SHORT_BYTES)


def _base64(data: bytes, limit: int = MAX_BASE64_BYTES) -> str:
    if len(data) > limit:
        raise EvaluationError(f"base64Encode input exceeds {limit}")
    return base64.b64encode(data).decode()


def from_base64(text: str) -> Value:
    """``fromBase64String``: with or without the prefix, with or without padding."""
    return checked_bytes(_from_base64(text, MAX_BASE64_CHARS))


def from_short_base64(text: str) -> Value:
    """``fromBase64String_1C``."""
    data = _from_base64(text, MAX_SHORT_BASE64_CHARS)
    if len(data) > MAX_SHORT_BYTES:
        raise EvaluationError(f"byte vector length {len(data)} exceeds limit {MAX_SHORT_BYTES}")
    return data


def _from_base64(text: str, max_chars: int) -> bytes:
    if units_length(text) > max_chars:
        raise EvaluationError(f"base64Decode input exceeds {max_chars}")
    match = _BASE64.fullmatch(text.removeprefix(_BASE64_PREFIX))
    if match is None or match[2] not in _PADDING.get(len(match[1]) % 4, ()):
        raise EvaluationError("can't parse Base64 string")
    return base64.b64decode(match[1] + "=" * (-len(match[1]) % 4))


def to_base16(data: bytes) -> Value:
    """``toBase16String`` since version 4."""
    return _base16(data, MAX_BASE16_BYTES)


def to_short_base16(data: bytes) -> Value:
    """``toBase16String_1C``."""
    return _base16(data, MAX_SHORT_BYTES)


def _base16(data: bytes, limit: int) -> str:
    if len(data) > limit:
        raise EvaluationError(f"Base16 encode input length={len(data)} should not exceed {limit}")
    return data.hex()


def to_long_base16(data: bytes) -> Value:
    """``toBase16String`` in version 3."""
    return checked_text(data.hex())


def from_base16(text: str) -> Value:
    """``fromBase16String`` since version 4."""
    return _from_base16(text, MAX_BASE16_CHARS)


def from_short_base16(text: str) -> Value:
    """``fromBase16String_1C``."""
    return _from_base16(text, MAX_SHORT_BASE16_CHARS)


def _from_base16(text: str, max_chars: int) -> Value:
    length = units_length(text)
    if length > max_chars:
        raise EvaluationError(f"Base16 decode input length={length} should not exceed {max_chars}")
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
