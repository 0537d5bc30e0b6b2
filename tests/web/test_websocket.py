"""WebSocket connections through the real server, beside plain requests and other upgrades."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import errno
import gc
import os
import socket
from collections import Counter
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.protocol import Protocol

from soliton.turns import PIECE_BYTES
from soliton.web import connection as connections
from soliton.web.answers import Answer, Upgrade, Whole
from soliton.web.connection import HttpConnection
from soliton.web.http1 import RequestParser
from soliton.web.limits import HEALTH_PATHS
from soliton.web.request import Request
from soliton.web.server import RunningServer, ServerLimits, serve
from soliton.web.websocket import CONTROL_FRAMES, MAX_FRAGMENTS, WebSocket
from tests.web.services import Simple


def echo(request: Request) -> Answer:
    """Repeats messages; a plain request is told its path."""
    if not request.is_websocket:
        return Whole(request.path.encode())
    return Whole(b"no", status=403) if request.path == "/refused" else Upgrade(repeat)


async def repeat(socket: WebSocket) -> None:
    while True:
        message = await socket.receive()
        assert isinstance(message, str)
        await socket.send(message.encode())


ECHO = Simple(echo)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[RunningServer]:
    limits = ServerLimits(head_seconds=0.3, websocket_message_bytes=100)
    running = await serve(ECHO, "127.0.0.1", 0, limits)
    yield running
    await running.stop()


async def test_messages_go_both_ways_and_outlive_the_limit_on_heads(server: RunningServer) -> None:
    async with connect(f"ws://127.0.0.1:{server.port}/echo", proxy=None) as connection:
        await connection.send("first")
        assert await connection.recv() == "first"
        await asyncio.sleep(0.5)
        await connection.send("second")
        assert await connection.recv() == "second"


async def test_the_application_may_refuse(server: RunningServer) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"ws://127.0.0.1:{server.port}/refused", proxy=None)
    assert refused.value.response.status_code == 403
    assert refused.value.response.body == b"no"


async def test_a_long_message_ends_the_connection(server: RunningServer) -> None:
    async with connect(f"ws://127.0.0.1:{server.port}/echo", proxy=None) as connection:
        await connection.send("x" * 101)
        with pytest.raises(ConnectionClosed) as closed:
            await connection.recv()
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009


def exchange(port: int, head: str, more: bytes = b"", wanted: bytes = b"") -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as plug:
        plug.sendall(head.replace("\n", "\r\n").encode("ascii") + more)
        received = b""
        while wanted not in received or not wanted:
            chunk = plug.recv(65536)
            if not chunk:
                break
            received += chunk
        return received


async def test_a_frame_in_the_packet_of_the_request_is_not_lost(server: RunningServer) -> None:
    key = base64.b64encode(os.urandom(16)).decode("ascii")
    head = f"""GET /echo HTTP/1.1
Host: x
Connection: Upgrade
Upgrade: websocket
Sec-WebSocket-Version: 13
Sec-WebSocket-Key: {key}

"""
    frame = b"\x81\x85\0\0\0\0early"
    received = await asyncio.to_thread(exchange, server.port, head, frame, b"early")
    assert received.startswith(b"HTTP/1.1 101") and received.endswith(b"\x81\x05early")


HANDSHAKE = """GET /echo HTTP/1.1\r
Host: x\r
Connection: Upgrade\r
Upgrade: websocket\r
Sec-WebSocket-Version: 13\r
Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r
\r
"""


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("HTTP/1.0", "HTTP/1.1"),
        ("Hosts: x", "Host: x"),
        ("Host: x\r\nHost: x", "Host: x"),
        ("Sec-WebSocket-Key: BBBBBBBBBBBBBBBBBBBBBB==\r\nSec-WebSocket-Key", "Sec-WebSocket-Key"),
        ("Sec-WebSocket-Version: 8\r\nSec-WebSocket-Version", "Sec-WebSocket-Version"),
        ("Sec-WebSocket-Version: 12", "Sec-WebSocket-Version: 13"),
        ("POST", "GET"),
    ],
)
async def test_other_handshakes_open_no_websocket(
    server: RunningServer, wrong: str, right: str
) -> None:
    head = HANDSHAKE.replace(right, wrong).replace("Upgrade\r", "Upgrade, close\r", 1)
    received = await asyncio.to_thread(exchange, server.port, head.replace("\r\n", "\n"), b"\r\n")
    assert received.startswith(b"HTTP/1.1 ") and not received.startswith(b"HTTP/1.1 101")


# What a client says before it was let in, and what it is answered after that.
EARLY: dict[str, tuple[bytes, int | None]] = {
    "nothing after the end": (b"\x88\x82\0\0\0\0\x03\xe8", 1000),
    "a frame that is not masked": (b"\x81\x01x", 1002),
    "a close between fragments": (
        b"\x01\x81\0\0\0\0x\x88\x82\0\0\0\0\x03\xe8\x80\x81\0\0\0\0y", 1000),
    "a close between fragments, and no reason": (
        b"\x01\x81\0\0\0\0x\x00\x80\0\0\0\0\x88\x80\0\0\0\0", None),
    "a kind of frame that there is not": (b"\x83\x80\0\0\0\0", 1002),
    "a message that is no text": (b"\x81\x81\0\0\0\0\xff", 1007),
    "a message that is too long": (b"\x82\xfe\xff\xff\0\0\0\0", 1009),
}  # fmt: skip


@pytest.mark.parametrize("early", EARLY)
async def test_who_breaks_the_rules_before_being_let_in_hears_it_after(
    server: RunningServer, early: str, caplog: pytest.LogCaptureFixture
) -> None:
    frame, code = EARLY[early]
    close = b"\x88\0" if code is None else code.to_bytes(2, "big")
    head = HANDSHAKE.replace("\r\n", "\n")
    received = await asyncio.to_thread(exchange, server.port, head, frame)
    assert received.startswith(b"HTTP/1.1 101") and close in received.partition(b"\r\n\r\n")[2]
    assert [record.getMessage() for record in caplog.records] == []


PINGS = (b"\x89\xfd\0\0\0\0" + b"p" * 125) * 500
MESSAGES = (b"\x81\xe4\0\0\0\0" + b"m" * 100) * 500
"""To each of these there is an answer."""


def send_without_reading(port: int, frames: bytes, most: int) -> bool:
    """Whether the server ends the connection before so many bytes were sent."""
    with socket.socket() as plug:
        # Before it connects: a system that has announced more room than it then has drops the
        # packets that say what the server has received, and nothing more is sent for a minute.
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plug.settimeout(60)
        plug.connect(("127.0.0.1", port))
        plug.sendall(HANDSHAKE.encode("ascii"))
        sent = 0
        try:
            while sent < most:
                sent += plug.send(frames)
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        return False


async def test_who_does_not_read_answers_is_dropped_after_a_while() -> None:
    limits = ServerLimits(write_seconds=0.3)
    running = await serve(ECHO, "127.0.0.1", 0, limits)
    try:
        assert await asyncio.to_thread(
            send_without_reading, running.port, MESSAGES, 64 * 1024 * 1024
        )
    finally:
        await running.stop()


async def test_pings_that_are_never_read_do_not_fill_the_memory(server: RunningServer) -> None:
    assert await asyncio.to_thread(send_without_reading, server.port, PINGS, 64 * 1024 * 1024)
    async with connect(f"ws://127.0.0.1:{server.port}/echo", proxy=None) as connection:
        await connection.send("still here")
        assert await connection.recv() == "still here"


async def test_connections_of_a_client_count_until_they_end() -> None:
    limits = ServerLimits(connections_per_client=2, counts_local_clients=True)
    running = await serve(ECHO, "127.0.0.1", 0, limits)
    try:
        for _ in range(4):
            async with connect(f"ws://127.0.0.1:{running.port}/echo", proxy=None) as connection:
                await connection.send("again")
                assert await connection.recv() == "again"
        # The end of the last one may still be on its way.
        status = b""
        for _ in range(100):
            status = await asyncio.to_thread(status_of, running.port)
            if status == b"200":
                break
            await asyncio.sleep(0.05)
        assert status == b"200"
    finally:
        await running.stop()


async def test_the_reserve_is_for_this_machine() -> None:
    running = await serve(ECHO, "127.0.0.1", 0, ServerLimits(connections=2, reserved=1))
    url = f"ws://127.0.0.1:{running.port}/echo"
    try:
        async with connect(url, proxy=None), connect(url, proxy=None):
            assert await asyncio.to_thread(status_of, running.port) == b"200"
    finally:
        await running.stop()


@pytest.mark.parametrize("path", sorted(HEALTH_PATHS))
async def test_the_reserve_is_for_questions_about_health(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked by anybody."""
    monkeypatch.setattr(connections, "LOCAL", "nobody")
    running = await serve(ECHO, "127.0.0.1", 0, ServerLimits(connections=2, reserved=1))
    url = f"ws://127.0.0.1:{running.port}/echo"
    try:
        async with connect(url, proxy=None), connect(url, proxy=None):
            assert await asyncio.to_thread(status_of, running.port) == b"503"
            assert await asyncio.to_thread(status_of, running.port, path) == b"200"
    finally:
        await running.stop()


@pytest.mark.parametrize(
    "limits",
    [
        ServerLimits(connections=2, reserved=0),
        ServerLimits(connections_per_client=2, counts_local_clients=True),
    ],
)
async def test_too_many_connections_are_told_so(limits: ServerLimits) -> None:
    running = await serve(ECHO, "127.0.0.1", 0, limits)
    try:
        url = f"ws://127.0.0.1:{running.port}/echo"
        async with connect(url, proxy=None) as first, connect(url, proxy=None):
            with pytest.raises(InvalidStatus) as refused:
                await connect(url, proxy=None)
            assert refused.value.response.status_code == 503
            assert refused.value.response.headers["retry-after"] == "1"
            await first.send("still here")
            assert await first.recv() == "still here"
    finally:
        await running.stop()


def status_of(port: int, path: str = "/plain") -> bytes:
    head = f"GET {path} HTTP/1.1\nHost: x\nConnection: close\n\n"
    return exchange(port, head).split(b" ")[1]


async def test_an_offer_of_http2_is_still_answered_in_http1(server: RunningServer) -> None:
    head = """GET /plain HTTP/1.1
Host: x
Connection: Upgrade, HTTP2-Settings, close
Upgrade: h2c
HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA

"""
    received = await asyncio.to_thread(exchange, server.port, head, b"", b"/plain")
    assert received.startswith(b"HTTP/1.1 200") and received.endswith(b"/plain")


async def test_without_websocket_the_request_is_a_plain_one() -> None:
    running = await serve(Simple(lambda _request: Whole(b"plain")), "127.0.0.1", 0)
    try:
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"ws://127.0.0.1:{running.port}/plain", proxy=None)
        assert refused.value.response.status_code == 200
    finally:
        await running.stop()


def handshake(port: int) -> socket.socket:
    """A WebSocket that says nothing yet."""
    plug = socket.create_connection(("127.0.0.1", port), timeout=60)
    plug.sendall(HANDSHAKE.encode("ascii"))
    received = b""
    while b"\r\n\r\n" not in received:
        received += plug.recv(1)
    return plug


def rest_of(plug: socket.socket, data: bytes) -> bytes:
    """What the server says to these bytes, to the end."""
    with plug, contextlib.suppress(ConnectionError):
        received = b""
        plug.sendall(data)
        while chunk := plug.recv(65536):
            received += chunk
    return received


EMPTY = b"\x00\x80\0\0\0\0"
PING, PONG = b"\x89\x80\0\0\0\0", b"\x8a\x80\0\0\0\0"
FLOODS = {
    "empty fragments": (b"\x01\x80\0\0\0\0" + EMPTY * 20_000, 1009),
    "pings": (PING * 20_000, 1008),
    "pongs": (PONG * 20_000, 1008),
    "pings between fragments": (b"\x01\x80\0\0\0\0" + (PING + EMPTY) * 20_000, 1008),
}


@pytest.mark.parametrize("flood", FLOODS)
async def test_frames_that_are_almost_nothing_are_limited_in_number(
    server: RunningServer, flood: str
) -> None:
    data, code = FLOODS[flood]
    plug = await asyncio.to_thread(handshake, server.port)
    received = await asyncio.to_thread(rest_of, plug, data)
    # Each ping before the limit has its answer.
    closing = received.replace(b"\x8a\x00", b"")
    assert closing[:1] == b"\x88" and closing[2:4] == code.to_bytes(2, "big")
    assert received.count(b"\x8a\x00") <= CONTROL_FRAMES + PIECE_BYTES // len(PING)
    async with connect(f"ws://127.0.0.1:{server.port}/echo", proxy=None) as connection:
        await connection.send("still here")
        assert await connection.recv() == "still here"


async def test_a_message_may_have_many_fragments_and_a_client_many_pings(
    server: RunningServer,
) -> None:
    plug = await asyncio.to_thread(handshake, server.port)
    fragments = b"\x01\x80\0\0\0\0" + EMPTY * (MAX_FRAGMENTS - 2) + b"\x80\x81\0\0\0\0z"
    pongs = b"\x8a\x00" * (CONTROL_FRAMES - 1)
    with plug:
        plug.sendall(PING * (CONTROL_FRAMES - 1) + fragments)
        received = b""
        while len(received) < len(pongs) + 3:
            received += await asyncio.to_thread(plug.recv, 65536)
    assert received == pongs + b"\x81\x01z"


async def test_messages_that_come_together_are_taken_in_turns() -> None:
    """However many of them are in a packet: between two of them the loop serves the others."""
    passes, seen, all_came = 0, list[int](), asyncio.Event()

    async def count() -> None:
        nonlocal passes
        while True:
            passes += 1
            await asyncio.sleep(0)

    async def listen(socket: WebSocket) -> None:
        while True:
            await socket.receive()
            seen.append(passes)
            if len(seen) == 1_200:
                all_came.set()

    running = await serve(Simple(lambda _: Upgrade(listen)), "127.0.0.1", 0)
    counting = asyncio.create_task(count())
    try:
        plugs = [await asyncio.to_thread(handshake, running.port) for _ in range(3)]
        for plug in plugs:
            plug.sendall(b"\x81\x81\0\0\0\0x" * 400)
        async with asyncio.timeout(60):
            await all_came.wait()
        for plug in plugs:
            plug.close()
    finally:
        counting.cancel()
        await running.stop()
    # Those of a packet that come first may be taken at once, one of each connection.
    assert max(Counter(seen).values()) <= 2 * len(plugs)


async def test_who_comes_back_has_the_debts_of_its_earlier_connections() -> None:
    limits = ServerLimits(counts_local_clients=True)
    running = await serve(ECHO, "127.0.0.1", 0, limits)
    url = f"ws://127.0.0.1:{running.port}/echo"
    try:
        async with connect(url, proxy=None) as connection:
            await connection.send("first")
            assert await connection.recv() == "first"
        running._shared.debts.charge("", 1_000)
        async with connect(url, proxy=None, close_timeout=0) as connection:
            await connection.send("second")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await connection.recv()
    finally:
        await running.stop()


def left() -> list[str]:
    """What of connections is still in memory."""
    kinds = (RequestParser, HttpConnection, WebSocket, Protocol)
    return [type(each).__name__ for each in gc.get_objects() if isinstance(each, kinds)]


async def test_what_a_connection_was_goes_without_a_search_for_cycles(
    server: RunningServer,
) -> None:
    gc.collect()
    before = Counter(left())
    gc.disable()
    try:
        for _ in range(3):
            await asyncio.to_thread(status_of, server.port)
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            key = base64.b64encode(os.urandom(16)).decode()
            writer.write(
                b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
                b"GET /echo HTTP/1.1\r\nHost: x\r\nupgrade: websocket\r\n"
                b"connection: Upgrade\r\nsec-websocket-version: 13\r\n"
                b"sec-websocket-key: %s\r\n\r\n" % key.encode()
            )
            await reader.readuntil(b"101 Switching Protocols")
            writer.close()
        for _ in range(200):
            if Counter(left()) == before:
                break
            await asyncio.sleep(0.02)
        assert Counter(left()) == before
    finally:
        gc.enable()


async def test_who_has_gone_when_told_why_leaves_nothing(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The transports of asyncio raise then."""

    def gone(_: asyncio.Transport) -> None:
        raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")

    plug = await asyncio.to_thread(handshake, server.port)
    (connection,) = server._shared.connections
    assert isinstance(connection, WebSocket)
    monkeypatch.setattr(type(connection._transport), "write_eof", gone)
    # A frame that is not masked breaks the rules.
    await asyncio.to_thread(rest_of, plug, b"\x81\x01x")
    async with asyncio.timeout(60):
        while server._shared.connections:  # noqa: ASYNC110 - as long as it takes
            await asyncio.sleep(0.01)
    assert caplog.records == []
