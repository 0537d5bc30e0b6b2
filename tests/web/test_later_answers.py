"""Answers that a quick application gives later: in order, whatever the client does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from soliton.web.server import RunningServer, serve
from soliton.web.types import LaterAnswer, Receive, Scope, Send, SoonAnswer, WholeAnswer


class Slow:
    """Answers with the path: at once, soon, later, or through ASGI, as its first letter says."""

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
    ) -> WholeAnswer | SoonAnswer | LaterAnswer:
        del method, query, headers, host
        if path.startswith(b"/soon"):
            return SoonAnswer(lambda tell: self.soon(path + body, tell))
        return self.whole(path) if path.startswith(b"/now") else self.later(path + body)

    def soon(self, path: bytes, tell: Callable[[WholeAnswer], None]) -> None:
        if path.startswith(b"/sooner"):
            tell(self.whole(path))
        else:
            task = asyncio.create_task(self.later(path))
            task.add_done_callback(lambda done: tell(done.result()))

    async def later(self, path: bytes) -> WholeAnswer:
        if b"wait" in path:
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


@pytest.mark.parametrize("path", ["/later", "/soon", "/sooner"])
async def test_one_connection_is_used_again_and_again(server: RunningServer, path: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    for number in range(5):
        writer.write(request(f"{path}{number}", "body"))
        assert await bodies(reader, 1) == [b"%s%dbody" % (path.encode(), number)]
        writer.write(request("/now"))
        assert await bodies(reader, 1) == [b"/now"]
    writer.close()


@pytest.mark.parametrize("first", ["/wait", "/soon-wait"])
async def test_requests_sent_together_are_answered_in_order(
    server: RunningServer, slow: Slow, first: str
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    together = [request(first, "a"), request("/later", "b"), request("/soon", "c")]
    together += [request("/sooner", "d"), request("/now")]
    writer.write(b"".join(together))
    await asyncio.sleep(0.05)
    assert slow.finished == []
    slow.go_on.set()
    in_order = [first.encode() + b"a", b"/laterb", b"/soonc", b"/soonerd", b"/now"]
    assert await bodies(reader, 5) == in_order
    writer.write(request("/later", "again"))
    assert await bodies(reader, 1) == [b"/lateragain"]
    writer.close()


@pytest.mark.parametrize("path", ["/wait", "/soon-wait"])
async def test_a_client_that_left_does_not_stop_the_work(
    server: RunningServer, slow: Slow, path: str
) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request(path, "left"))
    await asyncio.sleep(0.05)
    writer.transport.abort()
    await asyncio.sleep(0.05)
    slow.go_on.set()
    async with asyncio.timeout(5):
        while slow.finished != [path.encode() + b"left"]:  # noqa: ASYNC110 - the server's own task
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("path", ["/later", "/soon", "/sooner"])
async def test_old_clients_see_the_connection_end(server: RunningServer, path: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request(path, "x", version="1.0"))
    assert await bodies(reader, 1) == [path.encode() + b"x"]
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
