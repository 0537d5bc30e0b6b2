"""A client that reads as little as it likes: frames of HTTP/2, made by hand.

Source: RFC 9113 and RFC 7541, and ``doc/PROTOCOL-HTTP2.md`` of gRPC.
"""

from __future__ import annotations

import asyncio
from collections import Counter

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _WINDOW = 0, 1, 3, 4, 6, 8
_ACK, _END_STREAM, _END_HEADERS = 1, 1, 4
_INITIAL_WINDOW = 4


class Raw:
    """A connection whose streams may be sent ``window`` bytes each, until it says more."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, window: int
    ) -> None:
        self.data: Counter[int] = Counter()
        """Bytes that came on each stream."""
        self.ended: set[int] = set()
        """Streams that ended with a status."""
        self.reset: set[int] = set()
        """Streams that the server wants to hear of no more."""
        self.codes: dict[int, int] = {}
        """Why."""
        self.heads: dict[int, bytes] = {}
        """The last header block of each stream."""
        self._reader, self._writer = reader, writer
        self._last = -1
        settings = _INITIAL_WINDOW.to_bytes(2, "big") + window.to_bytes(4, "big")
        writer.write(_PREFACE + _frame(_SETTINGS, 0, 0, settings))
        self._task = asyncio.create_task(self._read())

    def call(self, path: str, request: bytes | None, timeout: str = "") -> int:
        """Call; without a request it is still to come. The stream's number."""
        self._last += 2
        head = b"\x83\x86" + _literal(b"\x04", path) + _literal(b"\x01", "here")
        head += _literal(b"\0", "content-type", "application/grpc") + _literal(
            b"\0", "te", "trailers"
        )
        if timeout:
            head += _literal(b"\0", "grpc-timeout", timeout)
        self._writer.write(_frame(_HEADERS, _END_HEADERS, self._last, head))
        if request is not None:
            message = b"\0" + len(request).to_bytes(4, "big") + request
            self._writer.write(_frame(_DATA, _END_STREAM, self._last, message))
        return self._last

    def add(self, stream: int, *requests: bytes, ended: bool = False) -> None:
        """More messages of a request that goes on, in one write, or all of them."""
        data = b"".join(b"\0" + len(each).to_bytes(4, "big") + each for each in requests)
        parts = (data[start : start + 16_384] for start in range(0, len(data), 16_384))
        found = b"".join(_frame(_DATA, 0, stream, each) for each in parts)
        self._writer.write(found + (_frame(_DATA, _END_STREAM, stream, b"") if ended else b""))

    def allow(self, stream: int, count: int) -> None:
        """So many bytes more may be sent on a stream."""
        for each in (0, stream):
            self._writer.write(_frame(_WINDOW, 0, each, count.to_bytes(4, "big")))

    async def close(self) -> None:
        """Hang up."""
        self._task.cancel()
        self._writer.close()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _read(self) -> None:
        while True:
            head = await self._reader.readexactly(9)
            body = await self._reader.readexactly(int.from_bytes(head[:3], "big"))
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
            if kind == _DATA:
                self.data[stream] += len(body)
            elif kind == _RESET:
                self.reset.add(stream)
                self.codes[stream] = int.from_bytes(body, "big")
            elif kind == _HEADERS:
                self.heads[stream] = body
            elif kind in (_SETTINGS, _PING) and not flags & _ACK:
                answer = body if kind == _PING else b""
                self._writer.write(_frame(kind, _ACK, 0, answer))
            if kind in (_DATA, _HEADERS) and flags & _END_STREAM:
                self.ended.add(stream)


async def connect(port: int, window: int = 0) -> Raw:
    """A connection to a port of this machine."""
    return Raw(*await asyncio.open_connection("127.0.0.1", port), window)


def _frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + body


def _literal(head: bytes, *texts: str) -> bytes:
    return head + b"".join(bytes((len(each),)) + each.encode() for each in texts)
