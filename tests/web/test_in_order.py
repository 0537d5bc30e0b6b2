"""Answers that are made beside one another: begun at once, sent in the order of asking."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Final

import pytest
import pytest_asyncio

from soliton.web.answers import Answer, Awaited, Deferred, Whole
from soliton.web.in_order import MAX_BESIDE, MAX_BODY_BYTES
from soliton.web.request import Request
from soliton.web.server import RunningServer, ServerLimits, serve
from tests.web.services import Simple
from tests.web.test_later_answers import bodies, request

HEAD_SECONDS: Final = 0.3
OFFER: Final = (
    b"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


class Beside(Simple):
    """Paths with ``beside`` let the next one begin; ``tell`` has what ends each of them."""

    def __init__(self) -> None:
        super().__init__(self.respond)
        self.begun: list[str] = []
        self.tell: dict[str, Callable[[object], None]] = {}

    def respond(self, asked: Request) -> Answer:
        path = asked.path
        if "beside" in path:
            self.begun.append(path)
            ask = partial(self.tell.__setitem__, path)
            return Deferred(ask, lambda _: self.whole(path), lets_next_begin=True)
        if "alone" in path:
            self.begun.append(path)
            return Deferred(partial(self.tell.__setitem__, path), lambda _: self.whole(path))
        if "later" in path:
            return Awaited(self.later(path))
        self.begun.append(path)
        return Whole(path.encode())

    def whole(self, path: str) -> Whole:
        if "fault" in path:
            raise ValueError(path)
        return Whole(path.encode())

    async def later(self, path: str) -> Whole:
        self.begun.append(path)
        return Whole(path.encode())

    async def has_begun(self, *paths: str) -> None:
        """Wait until these have begun, and a while for what should not."""
        async with asyncio.timeout(60):
            while self.begun != list(paths):  # noqa: ASYNC110 - the server's own pace
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        assert self.begun == list(paths)


@pytest_asyncio.fixture
async def service() -> Beside:
    return Beside()


@pytest_asyncio.fixture
async def server(service: Beside) -> AsyncIterator[RunningServer]:
    running = await serve(service, "127.0.0.1", 0, ServerLimits(head_seconds=HEAD_SECONDS))
    yield running
    await running.stop()


async def test_they_begin_together_and_leave_in_order(
    server: RunningServer, service: Beside
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    paths = [f"/beside-{number}" for number in range(10)]
    writer.write(b"".join(map(request, paths[:5])))
    await service.has_begun(*paths[:5])
    # Another packet, while those are in work.
    writer.write(b"".join(map(request, paths[5:])))
    await service.has_begun(*paths)
    for path in reversed(paths[1:]):
        service.tell[path](None)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.read(1), 0.05)
    service.tell[paths[0]](None)
    assert await bodies(reader, 10) == [path.encode() for path in paths]
    writer.close()


async def test_what_needs_a_turn_of_its_own_waits_for_all_before_it(
    server: RunningServer, service: Beside
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    for second in ("/later", "/alone"):
        service.begun.clear()
        paths = ["/beside-1", "/now", "/beside-2", second, "/beside-3", "/after"]
        writer.write(b"".join(map(request, paths)))
        before = ["/beside-1", "/now", "/beside-2"]
        # The service is asked, and nobody has asked its answer to be made.
        await service.has_begun(*before, *(["/alone"] if second == "/alone" else []))
        assert "/alone" not in service.tell
        service.tell["/beside-2"](None)
        service.tell["/beside-1"](None)
        assert await bodies(reader, 3) == [each.encode() for each in before]
        if second == "/alone":
            service.tell.pop("/alone")(None)
        assert await bodies(reader, 1) == [second.encode()]
        await service.has_begun(*paths)
        service.tell["/beside-3"](None)
        assert await bodies(reader, 2) == [b"/beside-3", b"/after"]
    writer.close()


async def test_only_so_many_are_in_work(server: RunningServer, service: Beside) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    many = 3 * MAX_BESIDE
    writer.write(b"".join(request(f"/beside-{number}") for number in range(many)))
    done = 0
    while done < many:
        most = min(done + MAX_BESIDE, many)
        await service.has_begun(*(f"/beside-{number}" for number in range(most)))
        service.tell[f"/beside-{done}"](None)
        assert await bodies(reader, 1) == [b"/beside-%d" % done]
        done += 1
        if done > MAX_BESIDE + 5:
            break
    writer.close()


async def test_only_so_many_bytes_are_in_work(server: RunningServer, service: Beside) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    size = MAX_BODY_BYTES // 4
    for number in range(12):
        writer.write(request(f"/beside-{number}", "x" * size))
    for number in range(12):
        most = min(number + 4, 12)
        await service.has_begun(*(f"/beside-{each}" for each in range(most)))
        service.tell[f"/beside-{number}"](None)
        assert await bodies(reader, 1) == [b"/beside-%d" % number]
    writer.close()


async def test_a_fault_of_one_is_its_own(server: RunningServer, service: Beside) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    paths = ["/beside-1", "/beside-fault", "/beside-2"]
    writer.write(b"".join(map(request, paths)))
    await service.has_begun(*paths)
    for path in paths:
        service.tell[path](None)
    assert await bodies(reader, 3) == [b"/beside-1", b"Internal Server Error", b"/beside-2"]
    writer.close()


async def test_the_last_request_of_a_connection_ends_it_behind_the_others(
    server: RunningServer, service: Beside
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request("/beside-1") + request("/beside-2", version="1.0"))
    await service.has_begun("/beside-1", "/beside-2")
    service.tell["/beside-2"](None)
    service.tell["/beside-1"](None)
    assert await bodies(reader, 2) == [b"/beside-1", b"/beside-2"]
    assert await reader.read() == b""
    writer.close()


@pytest.mark.parametrize(
    ("behind", "expected"),
    [
        (b"NONSENSE\r\n\r\n", b"HTTP/1.1 400"),
        (b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n", b"HTTP/1.1 413"),
        (OFFER, b""),
    ],
)
async def test_what_is_no_plain_request_waits_behind_them(
    server: RunningServer, service: Beside, behind: bytes, expected: bytes
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request("/beside-1") + request("/beside-2") + behind)
    await service.has_begun("/beside-1", "/beside-2")
    service.tell["/beside-2"](None)
    service.tell["/beside-1"](None)
    assert await bodies(reader, 2) == [b"/beside-1", b"/beside-2"]
    assert (await reader.read(1_000)).startswith(expected)
    writer.close()


async def test_a_client_that_left_stops_nothing(
    server: RunningServer, service: Beside, caplog: pytest.LogCaptureFixture
) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request("/beside-1") + request("/beside-2") + request("/later"))
    await service.has_begun("/beside-1", "/beside-2")
    writer.transport.abort()
    await asyncio.sleep(0.05)
    service.tell["/beside-2"](None)
    service.tell["/beside-1"](None)
    # What had been asked for is done: who answers may have counted on it.
    await service.has_begun("/beside-1", "/beside-2", "/later")
    assert not caplog.records


async def test_a_head_that_has_begun_has_its_time_when_nothing_is_in_work(
    server: RunningServer, service: Beside
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request("/beside-1") + b"GET /slow")
    await service.has_begun("/beside-1")
    await asyncio.sleep(2 * HEAD_SECONDS)
    service.tell["/beside-1"](None)
    assert await bodies(reader, 1) == [b"/beside-1"]
    assert await asyncio.wait_for(reader.read(), 60) == b""
    writer.close()


async def test_the_end_of_the_server_waits_for_them(service: Beside) -> None:
    running = await serve(service, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(request("/beside-1") + request("/beside-2"))
    await service.has_begun("/beside-1", "/beside-2")
    stopping = asyncio.create_task(running.stop())
    await asyncio.sleep(0.05)
    service.tell["/beside-1"](None)
    service.tell["/beside-2"](None)
    assert await bodies(reader, 2) == [b"/beside-1", b"/beside-2"]
    assert await reader.read() == b""
    await stopping
    writer.close()
