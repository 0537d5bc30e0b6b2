"""Answers that a quick application gives as coroutines: in order, whatever the client does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio

from soliton.web.server import RunningServer, serve
from soliton.web.types import LaterAnswer, Receive, Scope, Send, WholeAnswer


class Slow:
    """Answers with the path: at once, later, or through ASGI, as its first letter says."""

    def __init__(self) -> None:
        self.finished: list[bytes] = []
        self.go_on = asyncio.Event()

    def whole(self, path: bytes) -> WholeAnswer:
        self.finished.append(path)
        return WholeAnswer(200, ((b"content-length", b"%d" % len(path)),), path)

    def answer_at_once(
        self,
        method: str,
        path: bytes,
        query: bytes,
        headers: dict[bytes, bytes],
        body: bytes,
        host: str,
    ) -> WholeAnswer | LaterAnswer:
        del method, query, headers, host
        return self.whole(path) if path.startswith(b"/now") else self.later(path + body)

    async def later(self, path: bytes) -> WholeAnswer:
        if path.startswith(b"/wait"):
            await self.go_on.wait()
        await asyncio.sleep(0)
        return self.whole(path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What comes behind an answer that is not there yet."""
        more = True
        body = b""
        while more:
            message = await receive()
            body += bytes(message.get("body", b""))  # type: ignore[call-overload]
            more = bool(message.get("more_body"))
        raw_path = scope["raw_path"]
        assert isinstance(raw_path, bytes)
        whole = self.whole(raw_path + body)
        await send({"type": "http.response.start", "status": 200, "headers": [*whole.headers]})
        await send({"type": "http.response.body", "body": whole.body})


@pytest_asyncio.fixture
async def slow() -> Slow:
    return Slow()


@pytest_asyncio.fixture
async def server(slow: Slow) -> AsyncIterator[RunningServer]:
    running = await serve(slow, "127.0.0.1", 0)
    yield running
    slow.go_on.set()
    await running.stop()


def request(path: str, body: str = "", version: str = "1.1") -> bytes:
    head = f"{'POST' if body else 'GET'} {path} HTTP/{version}\r\nHost: x\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


async def bodies(reader: asyncio.StreamReader, count: int) -> list[bytes]:
    found = []
    async with asyncio.timeout(5):
        for _ in range(count):
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            found.append(await reader.readexactly(length))
    return found


async def test_one_connection_is_used_again_and_again(server: RunningServer) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    for number in range(5):
        writer.write(request(f"/later{number}", "body") + b"")
        assert await bodies(reader, 1) == [b"/later%dbody" % number]
        writer.write(request("/now"))
        assert await bodies(reader, 1) == [b"/now"]
    writer.close()


async def test_requests_sent_together_are_answered_in_order(
    server: RunningServer, slow: Slow
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request("/wait", "a") + request("/later", "b") + request("/now"))
    await asyncio.sleep(0.05)
    assert slow.finished == []
    slow.go_on.set()
    assert await bodies(reader, 3) == [b"/waita", b"/laterb", b"/now"]
    writer.write(request("/later", "again"))
    assert await bodies(reader, 1) == [b"/lateragain"]
    writer.close()


async def test_a_client_that_left_does_not_stop_the_work(server: RunningServer, slow: Slow) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request("/wait", "left"))
    await asyncio.sleep(0.05)
    writer.transport.abort()
    await asyncio.sleep(0.05)
    slow.go_on.set()
    async with asyncio.timeout(5):
        while slow.finished != [b"/waitleft"]:  # noqa: ASYNC110 - the server's own task
            await asyncio.sleep(0.01)


async def test_old_clients_see_the_connection_end(server: RunningServer) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request("/later", "x", version="1.0"))
    assert await bodies(reader, 1) == [b"/laterx"]
    assert await reader.read() == b""
    writer.close()


async def test_the_end_of_the_server_cuts_off_what_takes_too_long(slow: Slow) -> None:
    running = await serve(slow, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(request("/wait", "x"))
    await asyncio.sleep(0.05)
    await running.stop()
    assert await reader.read() == b""
    writer.close()
