"""The header blocks of one connection: reassembled from frames, decoded, and cached.

What lives here: blocks of several frames, and the cache of decoded blocks. What does not: decoding
(``hpack``) and the meaning of headers (``requests``).
"""

from __future__ import annotations

from soliton.web.http2 import frames
from soliton.web.http2.floods import Fault
from soliton.web.http2.hpack import BadBlock, Decoder
from soliton.web.http2.limits import (
    BLOCK_BYTES,
    BLOCKS_KEPT,
    CONTINUATIONS,
    HEADER_LIST_BYTES,
    KEPT_BLOCK_BYTES,
    KEPT_LIST_BYTES,
    MOST_HEADER_LIST_BYTES,
)
from soliton.web.http2.requests import Head


class Blocks:
    """Reassembles and decodes header blocks."""

    __slots__ = ("_count", "_data", "_decoder", "_known", "flags", "is_open", "number")

    def __init__(self) -> None:
        self._decoder = Decoder()
        self._known: dict[bytes, Head] = {}
        self._data = bytearray()
        self._count = 0
        self.is_open = False
        """Whether the next frame has to continue a block."""
        self.number = self.flags = 0
        """The stream of that block, and the flags of its first frame."""

    def begin(self, flags: int, number: int, data: bytes) -> None:
        """Begin a block of several frames."""
        self.is_open = True
        self.flags, self.number, self._count = flags, number, 0
        self._data += data

    def add(self, data: bytes, *, is_last: bool) -> bool:
        """Add a frame; return whether the block is complete. Raises ``Fault``."""
        self._count += 1
        self._data += data
        if self._count > CONTINUATIONS or len(self._data) > BLOCK_BYTES:
            raise Fault(frames.ENHANCE_YOUR_CALM, b"a header block is too long")
        return is_last

    def take(self) -> bytes:
        """Return the complete block."""
        block = bytes(self._data)
        self._data.clear()
        self.is_open = False
        return block

    def read(self, block: bytes) -> Head:
        """Decode a block; raises ``Fault``."""
        known = self._known
        found = known.get(block)
        if found is not None:
            return found
        decoder = self._decoder
        before = decoder.changes
        try:
            headers, size = decoder.decode(block, HEADER_LIST_BYTES, MOST_HEADER_LIST_BYTES)
        except BadBlock as error:
            raise Fault(frames.COMPRESSION_ERROR, str(error).encode()) from error
        if size > MOST_HEADER_LIST_BYTES:
            raise Fault(frames.ENHANCE_YOUR_CALM, b"too many headers")
        head = Head(headers, size)
        if decoder.changes != before:
            known.clear()
        elif len(block) <= KEPT_BLOCK_BYTES and size <= KEPT_LIST_BYTES:
            if len(known) >= BLOCKS_KEPT:
                known.clear()
            known[block] = head
        return head
