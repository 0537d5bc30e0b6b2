"""Answers that a quick application gives later: in order, whatever the client does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial

import pytest
import pytest_asyncio

from soliton.web.answers import Answer, Awaited, Deferred, Whole
from soliton.web.request import Request
from soliton.web.server import RunningServer, serve
from tests.web.services import Simple


class Slow(Simple):
    """Answers with the path: at once, soon or later, as it says."""

    def __init__(self) -> None:
        super().__init__(self.respond)
        self.finished: list[bytes] = []
        self.go_on = asyncio.Event()

    def whole(self, path: bytes) -> Whole:
        self.finished.append(path)
        return Whole(path)

    def respond(self, request: Request) -> Answer:
        path = request.path.encode()
        if path.startswith(b"/soon"):
            return Deferred(partial(self.soon, path), lambda _: self.whole(path + request.body))
        if path.startswith(b"/now"):
            return self.whole(path)
        return Awaited(self.later(path + request.body))

    def soon(self, path: bytes, tell: Callable[[None], None]) -> None:
        if path.startswith(b"/sooner"):
            tell(None)
        else:
            task = asyncio.create_task(self.pause(path))
            task.add_done_callback(lambda _: tell(None))

    async def pause(self, path: bytes) -> None:
        if b"wait" in path:
            await self.go_on.wait()
        await asyncio.sleep(0)

    async def later(self, path: bytes) -> Whole:
        await self.pause(path)
        return self.whole(path)


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
    async with asyncio.timeout(60):
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
    async with asyncio.timeout(60):
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
