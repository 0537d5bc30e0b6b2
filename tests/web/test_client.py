"""The small HTTP client against servers that behave and servers that do not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import uvloop

from soliton.errors import InputError
from soliton.web.client import ClientLimits, HttpClient, HttpTrouble

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
            body = await reader.readexactly(2) if b"Content-Length: 2" in head else b"none"
            writer.write(answer(body))

    async with serving(handler) as url:
        client = HttpClient(url + "/base/", headers={"X-API-Key": "k"})
        assert (await client.request("GET", "/a")).body == b"none"
        assert (await client.request("POST", "/b", b"{}")).body == b"{}"
        await client.close()
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
            await client.close()
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
        await client.close()
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
        await client.close()
    assert (found.status, found.body) == (404, b"abc")


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"nonsense\r\n\r\n", "no usable answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", "no answer"),
        (answer(b"x" * 2_000), "no usable answer: an answer of more than 1000 bytes"),
    ],
)
async def test_answers_that_are_none(sent: bytes, words: str) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        await writer.drain()

    async with serving(handler) as url:
        client = HttpClient(url, ClientLimits(answer_bytes=1_000))
        with pytest.raises(HttpTrouble, match=words) as caught:
            await client.request("GET", "/")
        await client.close()
    assert caught.value.sent


async def test_silence_ends_in_time() -> None:
    async def handler(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with serving(handler) as url:
        client = HttpClient(url, ClientLimits(answer_seconds=0.05))
        with pytest.raises(HttpTrouble, match="in time"):
            await client.request("GET", "/")
        await client.close()


async def test_nobody_there() -> None:
    async with serving(lambda _reader, _writer: asyncio.sleep(0)) as url:
        pass
    client = HttpClient(url)
    with pytest.raises(HttpTrouble, match="cannot be reached") as caught:
        await client.request("GET", "/")
    assert not caught.value.sent


@pytest.mark.parametrize("url", ["", "localhost:6869", "ftp://host", "http://"])
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(InputError, match="should look like"):
        HttpClient(url)


async def test_a_stream_that_is_read_too_slowly_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("soliton.web.client._STREAM_BACKLOG", 4)

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        writer.write(b"x\n" * 9)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
            await reader.read()
        hung_up.set()

    hung_up = asyncio.Event()
    async with serving(handler) as url:
        client = HttpClient(url)
        async with client.stream("/events") as (_, lines), asyncio.timeout(5):
            await hung_up.wait()
            assert [line async for line in lines] == [b"x"] * 4
        await client.close()


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
        await client.close()
