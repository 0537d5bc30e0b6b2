"""Connections without sockets: a service's server end, and a client that writes and reads bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httptools
import httpx
import msgspec

from soliton.web.answers import Service
from soliton.web.connection import HttpConnection, Shared
from soliton.web.limits import ServerLimits
from soliton.web.shared_counters import SharedCounters


@dataclass
class Answer:
    """What came back; each write of the server is a chunk."""

    status: int = 0
    headers: dict[bytes, bytes] = field(default_factory=dict)
    chunks: list[bytes] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)

    @property
    def content_type(self) -> str:
        return self.headers[b"content-type"].decode()

    def json(self) -> object:
        return msgspec.json.decode(self.body)

    def plain(self) -> object:
        """The JSON as the reference would give it: without a hint."""
        found = self.json()
        if isinstance(found, dict):
            found.pop("hint", None)
        return found


class Wire(asyncio.Transport):
    """The transport of a connection, and its client: ``send`` bytes, wait for an ``answer``."""

    def __init__(
        self,
        service: Service[Any],
        limits: ServerLimits | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        super().__init__({"peername": (host, 50_000)})
        self.written: list[bytes] = []
        self.is_open = True
        self.reads = True
        self._changed = asyncio.Event()
        self._protocol: asyncio.BaseProtocol = HttpConnection(
            Shared(service, limits or ServerLimits(), SharedCounters())
        )
        self._protocol.connection_made(self)

    # --- the client -------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """What the client says."""
        assert isinstance(self._protocol, asyncio.Protocol)
        if self.is_open:
            self._protocol.data_received(data)

    @property
    def received(self) -> bytes:
        """What the client has heard."""
        return b"".join(self.written)

    async def answer(self) -> Answer:
        """The first answer, when all of it is there; as much as there is when the server ends."""
        reading = _Reading()
        parser = httptools.HttpResponseParser(reading)
        for_whole = 0
        while not reading.is_done:
            for data in self.written[for_whole:]:
                parser.feed_data(data)
            for_whole = len(self.written)
            if not self.is_open:
                break
            if not reading.is_done:
                self._changed.clear()
                await self._changed.wait()
        reading.answer.status = parser.get_status_code()
        return reading.answer

    def leave(self) -> None:
        """The client goes."""
        self.abort()

    # --- the transport ----------------------------------------------------------------------------

    def write(self, data: Any) -> None:
        if self.is_open:
            self.written.append(bytes(data))
            self._changed.set()

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._changed.set()
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)

    def abort(self) -> None:
        self.close()

    def is_closing(self) -> bool:
        return not self.is_open

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def get_write_buffer_size(self) -> int:
        return 0

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol


class _Reading:
    """What an answer's parser calls."""

    def __init__(self) -> None:
        self.answer = Answer()
        self.is_done = False

    def on_header(self, name: bytes, value: bytes) -> None:
        assert name not in self.answer.headers or name == b"vary"
        self.answer.headers[name] = value

    def on_body(self, body: bytes) -> None:
        self.answer.chunks.append(body)

    def on_message_complete(self) -> None:
        self.is_done = True
        if b"transfer-encoding" in self.answer.headers or not self.answer.chunks:
            self.answer.chunks.append(b"")


def head(line: str, headers: dict[str, str]) -> bytes:
    """``METHOD /path?query`` and headers as they are sent."""
    given = headers if "host" in map(str.lower, headers) else {"Host": "test", **headers}
    lines = [f"{line} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return "\r\n".join([*lines, "\r\n"]).encode()


class MemoryHttp(httpx.AsyncBaseTransport):
    """What takes the place of the network between an httpx client and a service."""

    def __init__(self, service: Service[Any]) -> None:
        self._service = service

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        wire = Wire(self._service)
        target = request.url.raw_path.decode()
        wire.send(head(f"{request.method} {target}", dict(request.headers)))
        sending = asyncio.create_task(self._send(wire, request))
        try:
            answer = await wire.answer()
        finally:
            sending.cancel()
        headers = [item for item in answer.headers.items() if item[0] != b"transfer-encoding"]
        return httpx.Response(answer.status, headers=headers, content=answer.body)

    async def _send(self, wire: Wire, request: httpx.Request) -> None:
        stream = request.stream
        assert isinstance(stream, httpx.AsyncByteStream)
        chunked = "transfer-encoding" in request.headers
        async for piece in _pieces(stream):
            wire.send(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
            await asyncio.sleep(0)
        if chunked:
            wire.send(b"0\r\n\r\n")


async def _pieces(stream: httpx.AsyncByteStream) -> AsyncIterator[bytes]:
    async for piece in stream:
        if piece:
            yield piece
