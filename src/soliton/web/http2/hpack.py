"""HPACK: decoding clients' header blocks, encoding our own.

Clients' blocks are decoded with a dynamic table of the default size. Clients repeat the same block;
its meaning does not change as long as the table does not. Our own blocks never use the dynamic
table, so each can be encoded once.

What lives here: blocks and both tables. What does not: the meaning and validity of headers
(``requests``).

Source: RFC 7541.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from soliton.errors import InputError
from soliton.web.http2.huffman import NoHuffman, decode

TABLE_BYTES: Final = 4_096
"""The maximum size of a connection's dynamic table."""
NO_TABLE: Final = b"\x20"
"""The prefix of a block that sets the size of the table to 0."""
ENTRY_BYTES: Final = 32
"""The overhead of each entry, added to its name and value."""
_MOST_INTEGER_BYTES: Final = 5
_MOST_RESIZES: Final = 2
"""Size updates at the beginning of a block (RFC 7541, section 4.2)."""
_INDEXED, _KEPT, _SIZE = 0x80, 0x40, 0x20
_HUFFMAN: Final = 0x80

Header = tuple[bytes, bytes]

_STATIC_TEXT: Final = """\
:authority
:method GET
:method POST
:path /
:path /index.html
:scheme http
:scheme https
:status 200
:status 204
:status 206
:status 304
:status 400
:status 404
:status 500
accept-charset
accept-encoding gzip, deflate
accept-language
accept-ranges
accept
access-control-allow-origin
age
allow
authorization
cache-control
content-disposition
content-encoding
content-language
content-length
content-location
content-range
content-type
cookie
date
etag
expect
expires
from
host
if-match
if-modified-since
if-none-match
if-range
if-unmodified-since
last-modified
link
location
max-forwards
proxy-authenticate
proxy-authorization
range
referer
refresh
retry-after
server
set-cookie
strict-transport-security
transfer-encoding
user-agent
vary
via
www-authenticate"""


def _static(line: str) -> Header:
    name, _, value = line.partition(" ")
    return name.encode(), value.encode()


STATIC: Final[tuple[Header, ...]] = tuple(map(_static, _STATIC_TEXT.split("\n")))
_FIRST_DYNAMIC: Final = len(STATIC) + 1
_WHOLE: Final = {header: at for at, header in reversed(tuple(enumerate(STATIC, 1)))}
_NAMES: Final = {name: at for at, (name, _) in reversed(tuple(enumerate(STATIC, 1)))}


class BadBlock(InputError):
    """The header block is invalid, so the state of the client's table is unknown."""


class Decoder:
    """Decodes one connection's header blocks, in order."""

    __slots__ = ("_limit", "_size", "_table", "changes")

    def __init__(self) -> None:
        self._table: deque[Header] = deque()
        """The newest first."""
        self._size = 0
        self._limit = TABLE_BYTES
        self.changes = 0
        """How often the table has changed: decoded blocks stay valid until then."""

    def decode(self, block: bytes, most: int, limit: int) -> tuple[list[Header], int]:
        """Return the headers of a block, and their total size. Headers beyond ``most`` bytes are
        left out. Decoding stops beyond ``limit`` bytes: the table is unusable then. Raises
        ``BadBlock``.
        """
        found: list[Header] = []
        at, end, size, resizes = 0, len(block), 0, 0
        while at < end:
            first = block[at]
            if first & _INDEXED:
                index, at = _integer(block, at, 0x7F)
                header = self._header(index)
            elif first & _KEPT:
                header, at = self._literal(block, at, 0x3F)
                self._keep(header)
            elif first & _SIZE:
                resizes += 1
                if size:
                    raise BadBlock("the table's size changes inside of a block")
                if resizes > _MOST_RESIZES:
                    raise BadBlock("the table's size changes more than twice")
                table_size, at = _integer(block, at, 0x1F)
                self._resize(table_size)
                continue
            else:
                header, at = self._literal(block, at, 0x0F)
            size += len(header[0]) + len(header[1]) + ENTRY_BYTES
            if size <= most:
                found.append(header)
            elif size > limit:
                break
        return found, size

    def _header(self, index: int) -> Header:
        if 0 < index < _FIRST_DYNAMIC:
            return STATIC[index - 1]
        if _FIRST_DYNAMIC <= index < _FIRST_DYNAMIC + len(self._table):
            return self._table[index - _FIRST_DYNAMIC]
        raise BadBlock("no header has this index")

    def _literal(self, block: bytes, at: int, mask: int) -> tuple[Header, int]:
        index, at = _integer(block, at, mask)
        if index:
            name = self._header(index)[0]
        else:
            name, at = _string(block, at)
        value, at = _string(block, at)
        return (name, value), at

    def _keep(self, header: Header) -> None:
        self.changes += 1
        self._table.appendleft(header)
        self._size += len(header[0]) + len(header[1]) + ENTRY_BYTES
        self._shrink()

    def _resize(self, limit: int) -> None:
        if limit > TABLE_BYTES:
            raise BadBlock("the table is larger than it may be")
        self.changes += 1
        self._limit = limit
        self._shrink()

    def _shrink(self) -> None:
        while self._size > self._limit:
            name, value = self._table.pop()
            self._size -= len(name) + len(value) + ENTRY_BYTES


def _integer(block: bytes, at: int, mask: int) -> tuple[int, int]:
    """Decode a number whose prefix is under the mask; return it and the offset after it."""
    try:
        number = block[at] & mask
        at += 1
        if number < mask:
            return number, at
        for shift in range(0, 7 * _MOST_INTEGER_BYTES, 7):
            byte = block[at]
            at += 1
            number += (byte & 0x7F) << shift
            if byte < 0x80:
                return number, at
    except IndexError:
        raise BadBlock("a number has no end") from None
    raise BadBlock("a number is too large")


def _string(block: bytes, at: int) -> tuple[bytes, int]:
    start = at
    length, at = _integer(block, at, 0x7F)
    end = at + length
    if end > len(block):
        raise BadBlock("a string has no end")
    text = block[at:end]
    if block[start] & _HUFFMAN:
        try:
            text = decode(text)
        except NoHuffman as error:
            raise BadBlock(str(error)) from error
    return text, end


def encode(headers: Iterable[Header]) -> bytes:
    """Encode headers without changing a table."""
    return b"".join(_encoded(name, value) for name, value in headers)


def _encoded(name: bytes, value: bytes) -> bytes:
    whole = _WHOLE.get((name, value))
    if whole is not None:
        return _number(whole, 0x7F, _INDEXED)
    index = _NAMES.get(name, 0)
    head = _number(index, 0x0F, 0)
    return head + (b"" if index else _text(name)) + _text(value)


def _text(text: bytes) -> bytes:
    return _number(len(text), 0x7F, 0) + text


def _number(number: int, mask: int, first: int) -> bytes:
    if number < mask:
        return bytes((first | number,))
    made = bytearray((first | mask,))
    number -= mask
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)
