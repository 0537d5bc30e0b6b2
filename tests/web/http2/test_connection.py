"""A connection on a real socket: its patience, and what it writes at a time."""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from soliton.turns import Rounds
from soliton.web.http2 import connection as connections
from soliton.web.http2 import limits as named
from soliton.web.http2.connection import Http2Connection
from soliton.web.http2.limits import Http2Limits
from soliton.web.http2.server import Http2Server, serve
from soliton.web.server import bind
from soliton.web.shared_counters import SharedCounters
from tests.web.http2.client import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    PREFACE,
    SETTINGS,
    WINDOW_UPDATE,
    Frame,
    Recorder,
    frame,
    number,
    request,
    settings,
)

MOMENT = 0.3
SOON = 10.0
HELLO = PREFACE + settings()
LARGE = 3_000_000


class Client:
    """A connection, and what has come on it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def next(self, kind: int) -> Frame:
        """The next frame of a kind."""
        while True:
            head = await self.reader.readexactly(9)
            body = await self.reader.readexactly(int.from_bytes(head[:3], "big"))
            if head[3] == kind:
                return Frame(kind, head[4], int.from_bytes(head[5:], "big"), body)

    async def is_closed(self) -> float:
        """Wait for the end; after how many seconds it came."""
        since = time.monotonic()
        try:
            while await asyncio.wait_for(self.reader.read(65_536), SOON):
                pass
        except ConnectionError:
            pass
        return time.monotonic() - since


@asynccontextmanager
async def serving(
    answers: bytes | None = b"x", **changed: Any
) -> AsyncIterator[tuple[Http2Server, Any]]:
    loop = asyncio.get_running_loop()

    def make(connection: Http2Connection) -> Recorder:
        made = Recorder(answers)
        # The machine is there when the handler is first told anything.
        loop.call_soon(lambda: setattr(made, "machine", connection.machine))
        return made

    server = await serve(bind("127.0.0.1", 0), make, Http2Limits(**changed), SharedCounters())
    writers = []

    async def connect(first: bytes = HELLO) -> Client:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writers.append(writer)
        writer.write(first)
        return Client(reader, writer)

    try:
        yield server, connect
    finally:
        await server.stop(0)
        for each in writers:
            each.close()
        await asyncio.sleep(0)
        assert not server.shared.connections and server.shared._open.total() == 0


@pytest.mark.parametrize("first", [b"", PREFACE[:10], PREFACE, PREFACE + settings()[:8]])
async def test_who_says_nothing(first: bytes) -> None:
    async with serving(handshake_seconds=MOMENT) as (_, connect):
        client = await connect(first)
        # Other than these, who has said what it wants stays.
        stays = await connect()
        assert MOMENT * 0.7 < await client.is_closed() < SOON / 2
        stays.writer.write(frame(PING, 0, 0, b"12345678"))
        assert (await stays.next(PING)).body == b"12345678"


async def test_a_connection_without_a_stream() -> None:
    async with serving(idle_seconds=MOMENT, handshake_seconds=0.1) as (_, connect):
        client = await connect(HELLO + request(1))
        await asyncio.sleep(2 * MOMENT)
        client.writer.write(frame(DATA, END_STREAM, 1, b"x"))
        assert (await client.next(DATA)).body == b"x"
        gone = await client.next(GOAWAY)
        assert gone.body == number(1) + number(0)
        assert await client.is_closed() < SOON / 2


async def test_who_is_silent_is_asked_whether_it_lives() -> None:
    often: dict[str, Any] = {"silent_seconds": MOMENT, "answer_seconds": MOMENT}
    async with serving(handshake_seconds=0.1, **often) as (_, connect):
        lives, gone = await connect(HELLO + request(1)), await connect(HELLO + request(1))
        for _ in range(3):
            asked = await asyncio.wait_for(lives.next(PING), SOON)
            assert not asked.flags
            lives.writer.write(frame(PING, ACK, 0, asked.body))
        assert await gone.is_closed() < SOON / 2
        lives.writer.write(frame(DATA, END_STREAM, 1, b"x"))
        assert (await lives.next(DATA)).body == b"x"


async def test_who_reads_nothing_of_what_it_allows() -> None:
    async with serving(bytes(LARGE), write_seconds=MOMENT, handshake_seconds=0.1) as (
        server,
        connect,
    ):
        wide = frame(WINDOW_UPDATE, 0, 0, number(2**30)) + settings((4, 2**30))
        await connect(HELLO + wide + b"".join(request(each, ended=True) for each in (1, 3, 5)))
        reads = await connect(HELLO + wide + request(1, ended=True))
        count = 0
        while count < LARGE:
            count += len((await asyncio.wait_for(reads.next(DATA), SOON)).body)
        for _ in range(200):
            if len(server.shared.connections) == 1:
                break
            await asyncio.sleep(0.05)
        assert len(server.shared.connections) == 1


async def test_answers_that_nobody_reads_fill_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each ping has an answer; who reads none is cut off when too many wait."""
    monkeypatch.setattr(connections, "MAX_UNREAD_BYTES", 100_000)
    monkeypatch.setattr("soliton.web.http2.floods.MAX_EMPTY", 10**9)
    async with serving(ping_seconds=0) as (server, connect):
        client = await connect()
        await client.next(4)
        client.writer.transport.pause_reading()
        pings = frame(PING, 0, 0, bytes(8)) * 5_000
        async with asyncio.timeout(SOON):
            while server.shared.connections:
                client.writer.write(pings)
                await asyncio.wait([asyncio.ensure_future(client.writer.drain())], timeout=0.1)


async def test_idle_connections_give_way_to_new_ones() -> None:
    async with serving(connections=2) as (server, connect):
        first, _ = [await connect(), await connect()]
        third = await connect()
        assert (await third.next(4)).kind == 4
        await first.is_closed()
        assert len(server.shared.connections) == 2


async def test_connections_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Http2Connection, "is_idle", False)
    async with serving(connections=2, reserved=1) as (server, connect):
        # The third has the place that is reserved for this machine.
        three = [await connect(), await connect(), await connect()]
        for each in three:
            await each.next(4)
        fourth = await connect()
        assert await fourth.is_closed() < SOON / 2
        assert len(server.shared.connections) == 3
        three[0].writer.close()
        await three[0].is_closed()
        await asyncio.sleep(0.05)
        assert (await (await connect()).next(4)).kind == 4


async def test_answers_of_a_packet_share_a_write(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    flush = Http2Connection._flush

    def counted(self: Http2Connection) -> None:
        written.append(self.machine.out.size)
        flush(self)

    monkeypatch.setattr(Http2Connection, "_flush", counted)
    async with serving() as (_, connect):
        client = await connect()
        await client.next(4)
        await client.next(4)
        before = len(written)
        client.writer.write(b"".join(request(each, ended=True) for each in range(1, 101, 2)))
        for _ in range(50):
            await client.next(DATA)
        # Reading is divided on a busy machine.
        assert len([each for each in written[before:] if each]) < 25


def test_limits_that_hold_together() -> None:
    """What the system may be handed at once is less than what ends a connection."""
    assert named.OUTPUT_BYTES + 64 * 1024 < named.MAX_UNREAD_BYTES
    assert named.HEADER_LIST_BYTES < named.MOST_HEADER_LIST_BYTES


def _costly(count: int) -> bytes:
    """Requests whose headers take longer to read than to send."""
    static = b"\x8f" * 300
    return b"".join(
        frame(HEADERS, END_HEADERS | END_STREAM, stream, request(stream)[9:] + static)
        for stream in range(1, 2 * count + 1, 2)
    )


async def test_headers_that_take_long_wait_for_their_turns() -> None:
    """A packet holds hundreds of them; others are answered in between, however many there are."""
    count, connections = 200, 8
    async with serving() as (server, connect):
        kind = await connect()
        await kind.next(SETTINGS)
        [other] = server.shared.connections
        costly = [await connect(HELLO + _costly(count)) for _ in range(connections)]
        await costly[0].next(HEADERS)
        kind.writer.write(request(1, ended=True))
        await kind.next(HEADERS)
        hostile: Any = [each.machine._handler for each in server.shared.connections - {other}]
        begun = sum(told[0] == "request" for each in hostile for told in each.told)
        assert begun < count * connections / 2, "it has waited for all of them"
        # Nothing is lost.
        for each in costly[1:]:
            for _ in range(count * 2):
                await each.next(HEADERS)


def test_what_is_short_takes_turns_with_what_is_long() -> None:
    async def run() -> list[str]:
        rounds = Rounds()
        done: list[str] = []
        for name in "abcd":
            rounds.join(partial(done.append, name))
        for name in "xy":
            rounds.join(partial(done.append, name), is_short=True)
        await asyncio.sleep(MOMENT)
        return done

    assert "".join(asyncio.run(run())) == "xaybcd"


async def test_who_has_gone_when_told_why_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The transports of asyncio raise then."""

    def gone(_: asyncio.Transport) -> None:
        raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")

    async with serving() as (server, connect):
        client = await connect()
        await client.next(SETTINGS)
        (connection,) = server.shared.connections
        monkeypatch.setattr(type(connection._transport), "write_eof", gone)
        # Its input waits for a turn, so nobody else is there to close it.
        monkeypatch.setattr(Http2Connection, "is_late", lambda _: True)
        client.writer.write(frame(PING, 0, 0, b"short"))
        assert await client.is_closed() < SOON / 2
        async with asyncio.timeout(SOON):
            while server.shared.connections:  # noqa: ASYNC110 - as long as it takes
                await asyncio.sleep(0.01)
    assert caplog.records == []
