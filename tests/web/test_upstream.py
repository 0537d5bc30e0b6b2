"""A server behind this one, over a real unix socket."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
import uvloop

from soliton.api.application import Application
from soliton.api.http import Request
from soliton.api.routes import GET, POST, Body, BodyKind, Handler, Route
from soliton.web import client, upstream
from soliton.web.answers import Stream, Whole
from soliton.web.client import HttpBroken, HttpBusy, HttpUnreachable
from soliton.web.client_http1 import request_bytes
from soliton.web.connection import HttpConnection
from soliton.web.server import RunningServer, serve_locally
from soliton.web.upstream import Upstream, relayed
from tests.api.client import make_context

LARGE = bytes(range(256)) * 20_000


async def pieces(count: int) -> AsyncIterator[bytes]:
    for number in range(count):
        yield b"piece %d," % number
        await asyncio.sleep(0)


async def slow(_request: Request) -> object:
    await asyncio.sleep(0.1)
    return "slow"


def route(path: str, handler: Handler, body: Body | None = None) -> Route:
    return Route(
        methods=POST if body else GET,
        path=path,
        handler=handler,
        tag="t",
        summary="",
        body=body,
        response={},
        example=1,
    )


APP = Application(
    make_context(),
    (
        route("/large", lambda _request: Whole(LARGE)),
        route("/stream", lambda _request: Stream(pieces(50), ())),
        route("/empty", lambda _request: Whole(b"", status=202)),
        route("/slow", slow),
        route("/echo", lambda request: Whole(request.body), Body(BodyKind.TEXT, "", "", {})),
    ),
)


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[RunningServer]:
    running = await serve_locally(APP, str(tmp_path / "socket"))
    yield running
    await running.stop()


async def asked(behind: Upstream, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    request = request_bytes(method, path, b"host: x\r\n", body)
    answer = await behind.send(request, may_repeat=method == "GET")
    return answer.status, await answer.read()


async def test_answers_of_every_kind(server: RunningServer) -> None:
    behind = Upstream(server.host)
    for _ in range(3):
        assert await asked(behind, "GET", "/large") == (200, LARGE)
        assert (await asked(behind, "GET", "/stream"))[1].endswith(b"piece 49,")
        assert await asked(behind, "GET", "/empty") == (202, b"")
        assert await asked(behind, "POST", "/echo", b"hello") == (200, b"hello")
        assert (await asked(behind, "GET", "/nowhere"))[0] == 404
        assert (await asked(behind, "POST", "/echo"))[1] == b""
    head = await behind.send(request_bytes("HEAD", "/large", b"host: x\r\n", b""), has_body=False)
    assert (head.status, await head.read()) == (404, b"")
    answers = await asyncio.gather(*(asked(behind, "GET", "/slow") for _ in range(20)))
    assert set(answers) == {(200, b'"slow"')}
    behind.close()


async def test_a_reader_that_takes_its_time(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_UNREAD_BYTES", 1_000)
    behind = Upstream(server.host)
    answer = await behind.send(request_bytes("GET", "/large", b"host: x\r\n", b""))
    received = bytearray()
    async for chunk in answer.chunks():
        received += chunk
        await asyncio.sleep(0)
    assert received == LARGE
    behind.close()


async def test_an_answer_that_nobody_wants(server: RunningServer) -> None:
    behind = Upstream(server.host)
    answer = await behind.send(request_bytes("GET", "/large", b"host: x\r\n", b""))
    answer.drop()
    assert await asked(behind, "GET", "/empty") == (202, b"")
    behind.close()


async def test_as_many_as_there_may_be(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream, "MAX_CONNECTIONS", 2)
    behind = Upstream(server.host)
    tasks = [asyncio.create_task(asked(behind, "GET", "/slow")) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(HttpBusy):
        await asked(behind, "GET", "/empty")
    assert [status for status, _ in await asyncio.gather(*tasks)] == [200, 200]
    assert await asked(behind, "GET", "/empty") == (202, b"")
    behind.close()


async def test_a_server_that_goes_and_comes(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    behind = Upstream(str(path))
    with pytest.raises(HttpUnreachable):
        await asked(behind, "GET", "/empty")
    for _ in range(2):
        running = await serve_locally(APP, str(path))
        assert await asked(behind, "GET", "/empty") == (202, b"")
        fresh = Upstream(str(path))
        waiting = [asyncio.create_task(asked(each, "GET", "/slow")) for each in (fresh, behind)]
        await asyncio.sleep(0.02)
        for connection in behind_connections(running):
            connection.abort()
        # What rested may have been closed unread: that one is sent again, once.
        with pytest.raises(HttpBroken):
            await waiting[0]
        assert await waiting[1] == (200, b'"slow"')
        await running.stop()
        path.unlink(missing_ok=True)
    behind.close()


class Counting:
    """A server that counts the requests it has read, and can fall silent."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.hangs_up_after = -1

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        while not reader.at_eof():
            line = await reader.readline()
            if not line:
                break
            await reader.readuntil(b"\r\n\r\n")
            self.seen.append(line.split()[0])
            if len(self.seen) == self.hangs_up_after:
                break
            writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
        writer.close()


@pytest_asyncio.fixture
async def counting(tmp_path: Path) -> AsyncIterator[Counting]:
    made = Counting()
    server = await asyncio.start_unix_server(made, str(tmp_path / "socket"))
    yield made
    server.close()


async def test_what_may_have_been_done_is_not_done_again(
    counting: Counting, tmp_path: Path
) -> None:
    behind = Upstream(str(tmp_path / "socket"))
    assert await asked(behind, "POST", "/") == (202, b"")
    counting.hangs_up_after = 2
    with pytest.raises(HttpBroken):
        await asked(behind, "POST", "/")
    assert counting.seen == [b"POST"] * 2
    assert await asked(behind, "GET", "/") == (202, b"")
    counting.hangs_up_after = 4
    assert await asked(behind, "GET", "/") == (202, b"")
    assert counting.seen == [b"POST"] * 2 + [b"GET"] * 3
    behind.close()


async def test_what_never_got_out_is_sent_on_another_connection(
    counting: Counting, tmp_path: Path
) -> None:
    behind = Upstream(str(tmp_path / "socket"))
    assert await asked(behind, "POST", "/") == (202, b"")
    # The system closes it here; that this side has read nothing of that is the case in question.
    counting.writers[0].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
    assert await asked(behind, "POST", "/") == (202, b"")
    assert counting.seen == [b"POST"] * 2
    assert len(counting.writers) == 2
    behind.close()


async def test_a_connection_that_rested_for_long_is_not_used_again(
    counting: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seconds, connections in ((60.0, 1), (0.0, 4)):
        monkeypatch.setattr(upstream, "MAX_IDLE_SECONDS", seconds)
        behind = Upstream(str(tmp_path / "socket"))
        for _ in range(3):
            assert await asked(behind, "POST", "/") == (202, b"")
        assert len(counting.writers) == connections
        behind.close()


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_connection_that_is_closing_is_not_used_again(
    tmp_path: Path, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """Its end is known to the loop, and not yet to us."""

    async def main() -> None:
        counting, behind = Counting(), Upstream(str(tmp_path / "socket"))
        server = await asyncio.start_unix_server(counting, str(tmp_path / "socket"))
        try:
            for _ in range(3):
                assert await asked(behind, "POST", "/") == (202, b"")
                transport = behind._idle[-1].transport
                assert transport is not None
                transport.close()
            assert len(counting.writers) == 3
        finally:
            server.close()
            for writer in counting.writers:
                writer.close()
                await writer.wait_closed()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())


async def test_a_connection_that_the_server_closes_is_not_used_again(tmp_path: Path) -> None:
    writers: list[asyncio.StreamWriter] = []

    async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 400 No\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno")
        # It is not closed yet when the next request comes.
        writers.append(writer)

    server = await asyncio.start_unix_server(closing, str(tmp_path / "socket"))
    behind = Upstream(str(tmp_path / "socket"))
    for _ in range(3):
        async with asyncio.timeout(60):
            assert await asked(behind, "POST", "/") == (400, b"no")
    assert len(writers) == 3
    for writer in writers:
        writer.close()
    behind.close()
    server.close()


def behind_connections(running: RunningServer) -> list[asyncio.Transport]:
    return [
        each._transport for each in running._shared.connections if isinstance(each, HttpConnection)
    ]


async def test_an_answer_that_is_none(tmp_path: Path) -> None:
    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"nonsense\r\n\r\n")
        writer.close()

    server = await asyncio.start_unix_server(nonsense, str(tmp_path / "socket"))
    with pytest.raises(HttpBroken):
        await asked(Upstream(str(tmp_path / "socket")), "GET", "/")
    server.close()


def test_the_connection_s_own_headers_stay_behind() -> None:
    headers = {b"host": b"x", b"connection": b"close", b"transfer-encoding": b"chunked",
               b"content-length": b"99", b"te": b"trailers", b"x-api-key": b"k"}  # fmt: skip
    assert relayed("POST", "/a?b=c", headers, b"12") == (
        b"POST /a?b=c HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\ncontent-length: 2\r\n\r\n12"
    )
