"""Lexical rules of names, numbers, strings and byte literals.

What lives here: the patterns, and parsing of literals. What does not: the grammar (``parser``).

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/parser/Parser.scala``.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.ride.compiler.errors import Source
from soliton.ride.compiler.syntax import Literal
from soliton.ride.expressions import BytesConst, LongConst, StringConst

MAX_CONSTANT_BYTES: Final = 32_767
"""The largest string or byte constant of a compiled script."""
MAX_ENCODED_CHARS: Final = 12 * 1024
"""The limit of a literal in base 58 or 64."""

BLANK: Final = re.compile(r"[ \t\r\n]*")
GAP: Final = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*+")
NAME: Final = re.compile(r"_?[A-Za-z](?:[A-Za-z0-9]|_(?!_))*")
MEMBER: Final = re.compile(r"[A-Za-z_](?:_?[A-Za-z0-9])*")
NUMBER: Final = re.compile(r"[+-]?[0-9]+(?:_[0-9]+)*")

KEYWORDS: Final = frozenset(
    {
        *("let", "strict", "base58", "base64", "true", "false"),
        *("if", "then", "else", "match", "case", "func"),
    }
)
KEYWORDS_SINCE_V8: Final = KEYWORDS | {"base16", "FOLD"}

_BYTES: Final = re.compile(r"base(58|64|16)'([^']*)('?)")
_TEXT: Final = re.compile(r'"((?:\\u[A-Za-z0-9]{0,4}|\\.|[^"\\])*)("?)', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u([A-Za-z0-9]{0,4})|(.))", re.DOTALL)
_ESCAPED: Final = {
    "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"',
}  # fmt: skip
_HEX: Final = re.compile(r"(?:[0-9A-Fa-f]{2})*")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_MIN_INT: Final = -(2**63)
_MAX_INT: Final = 2**63 - 1
_MAX_DIGITS: Final = 19


def read_number(source: Source, start: int) -> Literal:
    """Read the number at an offset; one must be there."""
    found = NUMBER.match(source.text, start)
    assert found is not None
    digits = found.group().replace("_", "")
    sign = -1 if digits.startswith("-") else 1
    # Python limits the digits that int() takes, and leading zeros are allowed.
    digits = digits.lstrip("+-").lstrip("0") or "0"
    value = sign * int(digits) if len(digits) <= _MAX_DIGITS else None
    if value is None or not _MIN_INT <= value <= _MAX_INT:
        raise source.error(
            start, "the number does not fit into 64 bits", "use a BigInt: parseBigIntValue(...)"
        )
    return Literal(start, found.end(), LongConst(value))


def read_text(source: Source, start: int) -> Literal:
    """Read the string literal whose opening quotation mark is at an offset."""
    found = _TEXT.match(source.text, start)
    if found is None or not found.group(2):
        raise source.error(start, "the text has no end", 'close it with "')
    content = found.group(1)
    if "\\" in content:
        content = _ESCAPE.sub(lambda escape: _escaped(source, start, escape), content)
    try:
        content = content.encode("utf-16", "surrogatepass").decode("utf-16")
        size = len(content.encode())
    except UnicodeError:
        raise source.error(start, "the text contains half of a surrogate pair") from None
    _check_size(source, start, size)
    return Literal(start, found.end(), StringConst(content))


def _escaped(source: Source, start: int, escape: re.Match[str]) -> str:
    code, char = escape.groups()
    if code is None:
        if char not in _ESCAPED:
            known = r"\b \f \n \r \t \\ \" \u0041"
            raise source.error(start, f"unknown escape {escape.group()!r}", f"known are {known}")
        return _ESCAPED[char]
    if len(code) != 4 or not _HEX.fullmatch(code):
        raise source.error(start, f"{escape.group()!r} is no character", "write \\u and 4 digits")
    return chr(int(code, 16))


def bytes_start(text: str, start: int) -> bool:
    """Whether a byte literal begins at an offset."""
    return _BYTES.match(text, start) is not None


def read_bytes(source: Source, start: int) -> Literal:
    """Read the byte literal at an offset: ``base58'...'``, ``base64'...'`` or ``base16'...'``."""
    found = _BYTES.match(source.text, start)
    assert found is not None
    base, content, closed = found.groups()
    if not closed:
        raise source.error(start, "the bytes have no end", "close them with '")
    try:
        value = _decoded(base, content)
    except ValueError as error:
        raise source.error(start, f"this is no base {base}: {error}") from None
    _check_size(source, start, len(value))
    return Literal(start, found.end(), BytesConst(value))


def _decoded(base: str, content: str) -> bytes:
    if base == "16":
        if not _HEX.fullmatch(content):
            raise ValueError("an even number of digits 0-9, a-f is needed")
        return bytes.fromhex(content)
    if len(content) > MAX_ENCODED_CHARS:
        raise ValueError(f"more than {MAX_ENCODED_CHARS} characters")
    if base == "58":
        try:
            return base58.decode(content, MAX_ENCODED_CHARS)
        except Base58Error as error:
            raise ValueError(str(error)) from None
    encoded = content.removeprefix("base64:")
    if not _BASE64.fullmatch(encoded):
        raise ValueError("a character is wrong")
    if encoded and not encoded.strip("="):
        raise ValueError("there is nothing before the =")
    encoded = encoded.rstrip("=")
    try:
        return base64.b64decode(encoded + "=" * (-len(encoded) % 4))
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def _check_size(source: Source, start: int, size: int) -> None:
    if size > MAX_CONSTANT_BYTES:
        raise source.error(
            start,
            f"the constant has {size} bytes, {MAX_CONSTANT_BYTES} are allowed",
            "join shorter ones",
        )
