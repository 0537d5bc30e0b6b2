"""The small HTTP client against servers that behave and servers that do not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import uvloop

from soliton import turns
from soliton.errors import InputError
from soliton.web.client import (
    ClientLimits,
    HttpBroken,
    HttpBusy,
    HttpClient,
    HttpTimeout,
    HttpTooLarge,
    HttpTrouble,
    HttpUnreachable,
)

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.close()


def answer(body: bytes, status: str = "200 OK", more: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body


async def test_connections_are_kept_and_bodies_sent() -> None:
    heads: list[bytes] = []
    connections = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            heads.append(head)
            body = await reader.readexactly(2) if b"content-length: 2" in head else b"none"
            writer.write(answer(body))

    async with serving(handler) as url:
        client = HttpClient(url + "/base/", headers={"X-API-Key": "k"})
        assert (await client.request("GET", "/a")).body == b"none"
        assert (await client.request("POST", "/b", b"{}")).body == b"{}"
        client.close()
    assert connections == 1
    assert heads[0].startswith(b"GET /base/a HTTP/1.1\r\n") and b"X-API-Key: k\r\n" in heads[0]


def test_the_loop_of_the_programs() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer(b"x"))
        await writer.drain()

    async def ask() -> bytes:
        async with serving(handler) as url:
            client = HttpClient(url)
            body = (await client.request("GET", "/")).body
            client.close()
        return body

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(ask()) == b"x"


async def test_a_connection_that_was_closed_meanwhile_is_replaced() -> None:
    served = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal served
        await reader.readuntil(b"\r\n\r\n")
        served += 1
        writer.write(answer(b"x"))
        await writer.drain()

    async with serving(handler) as url:
        client = HttpClient(url)
        for _ in range(3):
            assert (await client.request("GET", "/")).body == b"x"
        client.close()
    assert served == 3


async def test_chunked_answers() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n")
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async with serving(handler) as url:
        client = HttpClient(url)
        found = await client.request("GET", "/")
        client.close()
    assert (found.status, found.body) == (404, b"abc")


@pytest.mark.parametrize(
    ("sent", "kind", "words"),
    [
        (b"nonsense\r\n\r\n", HttpBroken, "no usable answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", HttpBroken, "no answer"),
        (answer(b"x" * 2_000), HttpTooLarge, "no usable answer: an answer of more than 1000 bytes"),
    ],
)
async def test_answers_that_are_none(sent: bytes, kind: type[HttpTrouble], words: str) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        await writer.drain()

    async with serving(handler) as url:
        client = HttpClient(url, ClientLimits(answer_bytes=1_000))
        with pytest.raises(kind, match=words):
            await client.request("GET", "/")
        client.close()


async def test_silence_ends_in_time() -> None:
    async def handler(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with serving(handler) as url:
        client = HttpClient(url, ClientLimits(answer_seconds=0.05))
        with pytest.raises(HttpTimeout, match="in time"):
            await client.request("GET", "/")
        client.close()


async def test_nobody_there() -> None:
    async with serving(lambda _reader, _writer: asyncio.sleep(0)) as url:
        pass
    client = HttpClient(url)
    with pytest.raises(HttpUnreachable, match="cannot be reached"):
        await client.request("GET", "/")


async def test_a_server_that_takes_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing_comes(*_arguments: object, **_more: object) -> None:
        await asyncio.sleep(30)

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "create_connection", nothing_comes)
    client = HttpClient("http://127.0.0.1:1", ClientLimits(connect_seconds=0.01))
    with pytest.raises(HttpUnreachable, match="in time"):
        await client.request("GET", "/")


async def test_what_may_not_arrive_twice_is_sent_once() -> None:
    heads: list[bytes] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer(b"x"))
        heads.append(await reader.readuntil(b"\r\n\r\n"))

    async with serving(handler) as url:
        client = HttpClient(url)
        assert (await client.request("POST", "/", may_repeat=False)).body == b"x"
        with pytest.raises(HttpBroken, match="hung up"):
            await client.request("POST", "/", may_repeat=False)
        client.close()
    assert len(heads) == 2


async def test_more_requests_wait_or_are_refused() -> None:
    go_on = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await go_on.wait()
        writer.write(answer(b"x"))
        await writer.drain()

    async with serving(handler) as url:
        for waits in (True, False):
            go_on.clear()
            client = HttpClient(url, ClientLimits(1, waits=waits))
            first = asyncio.create_task(client.request("GET", "/"))
            second = asyncio.create_task(client.request("GET", "/"))
            await asyncio.sleep(0)
            go_on.set()
            assert (await first).body == b"x"
            if waits:
                assert (await second).body == b"x"
            else:
                with pytest.raises(HttpBusy):
                    await second
            client.close()


@pytest.mark.parametrize(
    "url", ["", "localhost:6869", "ftp://host", "http://", "http://h:x", "http://[h"]
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(InputError, match="should look like"):
        HttpClient(url)


async def test_a_stream_that_is_read_too_slowly_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("soliton.web.client.MAX_UNREAD_BYTES", 64 * 1024)
    line, sent = b"x" * 1_023, 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for _ in range(32 * 1024):
            writer.write(line + b"\n")
            await writer.drain()
            sent += 1

    async with serving(handler) as url:
        client = HttpClient(url)
        async with client.stream("/events") as (_, lines), asyncio.timeout(20):
            assert await anext(lines) == line
            before = -1
            while sent != before:
                before = sent
                await asyncio.sleep(0.05)
            assert sent < 32 * 1024
            assert len([each async for each in lines]) == 32 * 1024 - 1
        client.close()


async def test_a_line_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("soliton.web.client.MAX_LINE_BYTES", 1_000)

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nshort\n" + b"x" * 2_000)
        await writer.drain()

    async with serving(handler) as url:
        client = HttpClient(url)
        async with client.stream("/events") as (_, lines):
            with pytest.raises(HttpBroken, match="a line of more than 1000 bytes"):
                assert [line async for line in lines] == [b"short"]
        client.close()


async def test_streams_give_lines_as_they_come() -> None:
    go_on = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: 1\ndata")
        await go_on.wait()
        writer.write(b": x\n\n")
        await writer.drain()

    async with serving(handler) as url:
        client = HttpClient(url)
        async with client.stream("/events") as (status, lines):
            assert status == 200
            assert await anext(lines) == b"id: 1"
            go_on.set()
            assert [line async for line in lines] == [b"data: x", b""]
        client.close()


CHUNKS = 50_000


async def test_an_answer_in_the_smallest_chunks_is_read_in_slices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(turns, "ARRIVAL_SECONDS", 0.0)
    passes = 0

    async def count() -> None:
        nonlocal passes
        while True:
            passes += 1
            await asyncio.sleep(0)

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"1\r\nx\r\n" * CHUNKS + b"0\r\n\r\n")
        await writer.drain()

    counting = asyncio.create_task(count())
    async with serving(handler) as url:
        client = HttpClient(url)
        found = await client.request("GET", "/")
        client.close()
    counting.cancel()
    assert found.body == b"x" * CHUNKS
    assert passes > CHUNKS * 6 // (8 * 1024)


async def test_what_came_before_the_end_of_the_connection_is_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where much of it still waits for its turn then."""
    monkeypatch.setattr(turns, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(turns, "ARRIVAL_SECONDS", 0.0)
    body = bytes(range(256)) * 4_000

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body)
        await writer.drain()

    async with serving(handler) as url:
        client = HttpClient(url)
        assert (await client.request("GET", "/")).body == body
        client.close()


async def test_lines_in_any_pieces() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        for piece in (b"a", b"b\n", b"\nc\nd", b"e", b"\nnot a line"):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)

    async with serving(handler) as url:
        client = HttpClient(url)
        async with client.stream("/") as (_, lines):
            assert [line async for line in lines] == [b"ab", b"", b"c", b"de"]
        client.close()
