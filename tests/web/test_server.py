"""The real server on a free port: connections, bodies and hostile bytes."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import re
import socket
import struct
import threading
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TypeVar

import pytest
import pytest_asyncio

from soliton.api.app import build_app
from soliton.api.application import TOO_LONG, Application
from soliton.api.http import Request
from soliton.api.routes import GET, POST, Body, BodyKind, Route
from soliton.errors import EnvironmentProblem
from soliton.web import connection as connections
from soliton.web import request as web
from soliton.web.answers import Answer, Awaited, Whole
from soliton.web.server import RunningServer, ServerLimits, serve
from tests.api.client import make_context
from tests.web.services import Simple

Result = TypeVar("Result")


@pytest_asyncio.fixture
async def server() -> AsyncIterator[RunningServer]:
    running = await serve(build_app(make_context()), "127.0.0.1", 0, ServerLimits(head_seconds=0.3))
    yield running
    await running.stop()


async def aside(function: Callable[[], Result]) -> Result:
    return await asyncio.to_thread(function)


def connect(server: RunningServer) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)


def ask(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> tuple[int, bytes]:
    connection.request(method, path, body, headers or {})
    response = connection.getresponse()
    return response.status, response.read()


def ask_once(server: RunningServer, path: str = "/utils/time") -> tuple[int, bytes]:
    connection = connect(server)
    try:
        return ask(connection, "GET", path)
    finally:
        connection.close()


def exchange(server: RunningServer, *pieces: bytes, pause: float = 0.0) -> bytes:
    """Send raw bytes, return everything that comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as plug:
        for piece in pieces:
            plug.sendall(piece)
            time.sleep(pause)
        received = b""
        try:
            while chunk := plug.recv(65536):
                received += chunk
        except ConnectionResetError:
            pass
        return received


async def test_many_requests_on_one_connection(server: RunningServer) -> None:
    def talk() -> list[int]:
        connection = connect(server)
        statuses = [ask(connection, "GET", "/utils/time")[0] for _ in range(5)]
        statuses.append(ask(connection, "GET", "/nowhere")[0])
        statuses.append(ask(connection, "POST", "/utils/hash/fast", b"x")[0])
        statuses.append(ask(connection, "HEAD", "/utils/time")[0])
        statuses.append(ask(connection, "GET", "/utils/seed/2000")[0])
        statuses.append(ask(connection, "GET", "/utils/time")[0])
        connection.close()
        return statuses

    assert await aside(talk) == [200, 200, 200, 200, 200, 404, 200, 404, 400, 200]


@pytest.mark.parametrize("size", [1024 * 1024 + 1, 3 * 1024 * 1024])
async def test_an_oversize_body_is_413_and_the_connection_lives(
    server: RunningServer, size: int
) -> None:
    def talk() -> list[tuple[int, bytes]]:
        connection = connect(server)
        answers = [ask(connection, "POST", "/utils/hash/fast", b"x" * size)]
        answers.append(ask(connection, "GET", "/utils/seed/2000"))
        connection.close()
        return answers

    first, second = await aside(talk)
    assert first == (413, TOO_LONG.body)
    assert second[0] == 400


async def test_the_largest_body_and_a_chunked_one(server: RunningServer) -> None:
    def talk() -> list[int]:
        connection = connect(server)
        largest = ask(connection, "POST", "/utils/hash/fast", b"x" * 1024 * 1024)
        connection.request("POST", "/utils/hash/fast", iter([b"ab", b"c"]), encode_chunked=True)
        response = connection.getresponse()
        message = json.loads(response.read())["message"]
        connection.request("POST", "/utils/hash/fast", iter([b"x" * 600_000] * 2))
        oversize = connection.getresponse()
        oversize.read()
        connection.close()
        assert message == "abc"
        return [largest[0], response.status, oversize.status]

    assert await aside(talk) == [200, 200, 413]


async def test_a_slow_body_arrives_while_others_are_served(server: RunningServer) -> None:
    def slow() -> bytes:
        head = b"POST /utils/hash/fast HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        return exchange(server, head + b"Content-Length: 3\r\n\r\n", b"a", b"b", b"c", pause=0.15)

    slow_answer, quick_answer = await asyncio.gather(aside(slow), aside(lambda: ask_once(server)))
    assert quick_answer[0] == 200
    assert b" 200 OK" in slow_answer and b'"message":"abc"' in slow_answer


async def test_an_http2_offer_with_a_body_is_answered_in_http1(server: RunningServer) -> None:
    offer = {
        "Connection": "Upgrade, HTTP2-Settings",
        "Upgrade": "h2c",
        "HTTP2-Settings": "AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
    }

    def talk() -> list[tuple[int, bytes]]:
        connection = connect(server)
        answers = [ask(connection, "POST", "/utils/hash/fast", b"abc", offer)]
        answers.append(ask(connection, "GET", "/utils/seed/2000", None, offer))
        answers.append(ask(connection, "GET", "/utils/seed/2000"))
        connection.close()
        return answers

    first, second, third = await aside(talk)
    assert first[0] == 200 and json.loads(first[1])["message"] == "abc"
    assert second == third == (400, b'{"error":10,"message":"Too big sequence requested"}')


async def test_an_http2_offer_in_small_pieces(server: RunningServer) -> None:
    text = (
        b"POST /utils/hash/fast HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\n"
        b"Upgrade: h2c\r\nHTTP2-Settings: AA\r\nContent-Length: 3\r\n\r\nabc"
        b"GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    pieces = [text[index : index + 7] for index in range(0, len(text), 7)]
    answer = await aside(lambda: exchange(server, *pieces, pause=0.002))
    assert b'"message":"abc"' in answer
    assert b" 404 Not Found" in answer


TOO_LONG_HEADS = [
    b"GET /utils/time HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
    b"GET /utils/time?" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    b"GET /utils/time HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 15_000 + b"\r\n",
    b"GET /utils/time HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 257 + b"\r\n",
    b"POST /utils/hash/fast HTTP/1.1\r\nHost: x\r\nX: "
    + b"a" * 70_000
    + b"\r\nContent-Length: 1\r\n\r\na",
]


@pytest.mark.parametrize("data", TOO_LONG_HEADS, ids=[repr(data[:40]) for data in TOO_LONG_HEADS])
async def test_a_head_that_is_too_long_is_refused(server: RunningServer, data: bytes) -> None:
    for pieces in ([data], [data[:50], data[50:]], [data[:-3], data[-3:]]):
        answer = await aside(partial(exchange, server, *pieces, pause=0.02))
        assert answer.startswith(b"HTTP/1.1 400 "), answer[:80]
    largest = b"POST /utils/hash/fast HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    largest += b"Content-Length: 200000\r\n\r\n"
    answer = await aside(partial(exchange, server, largest + b"x" * 200_000))
    assert answer.startswith(b"HTTP/1.1 200 ")


FORBIDDEN = {
    b"A: b": 400,
    b"Host: x\r\nHost: y": 400,
    b"Host: x/y": 400,
    b"Host: x\r\nX-API-Key: a\r\nX-API-Key: b": 400,
    b"Host: x\r\nTransfer-Encoding: gzip, chunked": 501,
}


@pytest.mark.parametrize("lines", FORBIDDEN)
async def test_what_two_programs_may_understand_in_two_ways_is_refused(
    server: RunningServer, lines: bytes
) -> None:
    data = b"POST /utils/hash/fast HTTP/1.1\r\n" + lines + b"\r\n\r\n1\r\nx\r\n0\r\n\r\n"
    answer = await aside(lambda: exchange(server, data * 2))
    assert answer.startswith(b"HTTP/1.1 %d " % FORBIDDEN[lines])
    assert b"connection: close" in answer and answer.count(b"HTTP/1.1 ") == 1


HOSTILE = [
    b"\x00\x01\x02\r\n\r\n",
    b"GET /\xff HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"GET /utils/\xc3\xa9 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"GET http://[ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"GET * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET http://other/utils/time HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /utils/time HTTP/1.0\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n\x00: x\r\n\r\n",
    b"POST /utils/hash/fast HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"POST /utils/hash/fast HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    b"POST /utils/hash/fast HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: " + b"a" * 100_000,
    b"GET /" + b"a" * 200_000,
    b"GET /utils/\x00 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"GET /utils/time?a=\x00 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"GET /utils/time HTTP/1.1\r\nHost: x\r\nX: \x00\r\nConnection: close\r\n\r\n",
    b"GET /utils/%00 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    (
        b"POST /utils/hash/fast HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain; charset=utf-16\r\n"
        b"Connection: close\r\nContent-Length: 3\r\n\r\n\xff\xfe\x00"
    ),
    (
        b"POST /utils/hash/fast HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\n"
        b"Connection: close\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x00"
    ),
    b"POST /utils/script/compileCode HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    b"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n" + b"[" * 100_000,
    b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
    b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 30_000,
]


@pytest.mark.parametrize("data", HOSTILE, ids=[repr(data[:40]) for data in HOSTILE])
async def test_hostile_bytes_end_one_connection_only(server: RunningServer, data: bytes) -> None:
    answer = await aside(lambda: exchange(server, data))
    assert answer == b"" or answer.startswith(b"HTTP/1.1 ")
    assert b" 500 " not in answer.partition(b"\r\n")[0]
    assert (await aside(lambda: ask_once(server)))[0] == 200


@pytest.mark.parametrize("data", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n"])
async def test_a_head_that_never_ends_is_cut_off(server: RunningServer, data: bytes) -> None:
    started = time.monotonic()
    assert await aside(lambda: exchange(server, data)) == b""
    assert 0.2 < time.monotonic() - started < 2


async def test_stop_takes_less_than_a_second_with_a_request_under_way() -> None:
    async def never(_request: Request) -> object:
        await asyncio.Event().wait()
        return None

    never_ending = Route(
        methods=GET, path="/", handler=never, tag="t", summary="s", response={}, example=1
    )
    running = await serve(Application(make_context(), (never_ending,)), "127.0.0.1", 0)
    waiting = asyncio.create_task(
        aside(lambda: exchange(running, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
    )
    idle = socket.create_connection(("127.0.0.1", running.port))
    await asyncio.sleep(0.1)
    started = time.monotonic()
    await running.stop()
    assert time.monotonic() - started < 1.1
    assert b" 200 " not in await waiting
    idle.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", running.port))


async def test_a_port_in_use_is_said(server: RunningServer) -> None:
    with pytest.raises(EnvironmentProblem, match=f"port {server.port}"):
        await serve(build_app(make_context()), "127.0.0.1", server.port)
    with pytest.raises(EnvironmentProblem):
        await serve(build_app(make_context()), "127.0.0.1", 70_000)


async def test_too_many_connections_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LOCAL", "nobody")
    limits = ServerLimits(connections=0, reserved=1)
    running = await serve(build_app(make_context()), "127.0.0.1", 0, limits)
    request = b"GET /utils/time HTTP/1.1\r\nHost: x\r\nOrigin: http://a.b\r\n\r\n"
    refused = await aside(lambda: exchange(running, request))
    assert refused.startswith(b"HTTP/1.1 503 ") and b"\r\nretry-after: 1\r\n" in refused
    # A page of another origin may read that, too.
    assert b"\r\naccess-control-allow-origin: http://a.b\r\n" in refused
    await running.stop()


BEGINNINGS = {
    "silence": b"",
    "half of a head": b"GET / HTTP/1.1\r\nHost: x\r\nHo",
    "half of a body": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf",
    "a request that has its answer": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
}


@pytest.mark.parametrize("beginning", BEGINNINGS)
async def test_idle_connections_give_way_to_new_ones(beginning: str) -> None:
    """The one that has been idle for longest first; none that has an answer under way."""
    released = asyncio.Event()

    async def wait() -> Whole:
        await released.wait()
        return Whole(b"waited")

    def respond(request: web.Request) -> Answer:
        return Awaited(wait()) if request.path == "/wait" else Whole(b"here")

    limits = ServerLimits(connections=8, reserved=0, head_seconds=60)
    running = await serve(Simple(respond), "127.0.0.1", 0, limits)
    busy, writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
    idle = []
    for _ in range(20):
        plug = socket.create_connection(("127.0.0.1", running.port), timeout=60)
        plug.sendall(BEGINNINGS[beginning])
        idle.append(plug)
        assert (await aside(lambda: ask_once(running))) == (200, b"here")
    first = await aside(lambda: rest_of(idle[0]))
    assert first.count(b"HTTP/1.1") == (beginning == "a request that has its answer")
    assert len(running._shared.connections) <= limits.connections
    released.set()
    assert (await busy.readuntil(b"waited")).startswith(b"HTTP/1.1 200")
    for plug in idle:
        plug.close()
    writer.close()
    await running.stop()


def rest_of(plug: socket.socket) -> bytes:
    """What comes until the server closes."""
    # Bytes would be copied for each chunk: so slow a reader is cut off.
    received = bytearray()
    with contextlib.suppress(ConnectionError):
        while chunk := plug.recv(65536):
            received += chunk
    return bytes(received)


async def test_requests_of_one_packet_are_answered_in_their_order() -> None:
    async def slow(_request: Request) -> object:
        await asyncio.sleep(0.05)
        return "slow"

    def quick(_request: Request) -> object:
        return "quick"

    routes = tuple(
        Route(methods=GET, path=path, handler=handler, tag="t", summary="s", response={}, example=1)
        for path, handler in (("/slow", slow), ("/quick", quick))
    )
    running = await serve(Application(make_context(), routes), "127.0.0.1", 0)
    asked = ["quick", "slow", "quick", "quick", "slow", "slow", "quick"]
    packet = b"".join(b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % name.encode() for name in asked)
    packet += b"GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    received = await aside(lambda: exchange(running, packet))
    await running.stop()
    assert re.findall(rb'"(\w+)"', received) == [name.encode() for name in asked]
    assert received.count(b"HTTP/1.1 404 Not Found") == 1
    assert received.count(b"\r\ndate: ") == len(asked) + 1


async def test_the_first_version_of_http_gets_one_answer(server: RunningServer) -> None:
    request = b"GET /utils/seed/2000 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
    answer = await aside(lambda: exchange(server, request * 2))
    assert answer.count(b"HTTP/1.1 400") == 1
    assert b"connection: close" in answer


async def test_idle_connections_are_closed() -> None:
    limits = ServerLimits(keep_alive_seconds=0.2)
    running = await serve(build_app(make_context()), "127.0.0.1", 0, limits)
    for request in (b"GET /utils/time HTTP/1.1\r\nHost: x\r\n\r\n", b""):
        answer = await aside(partial(exchange, running, request))
        assert answer.startswith(b"HTTP/1.1 200 OK" if request else b"")
    await running.stop()


async def test_a_client_that_reads_nothing_is_cut_off() -> None:
    """Its answer would wait in memory for ever."""

    def large(_request: Request) -> object:
        return Whole(bytes(64 * 1024 * 1024))

    route = Route(
        methods=GET, path="/", handler=large, tag="t", summary="s", response={}, example=1
    )
    limits = ServerLimits(write_seconds=0.2)
    running = await serve(Application(make_context(), (route,)), "127.0.0.1", 0, limits)
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port, limit=1024)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    await asyncio.sleep(0.6)
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await reader.readexactly(64 * 1024 * 1024)
    writer.close()
    await running.stop()


async def test_a_body_that_nobody_waits_for_has_to_end(server: RunningServer) -> None:
    """The route is not there, and its answer is sent before the body has come."""
    head = b"PATCH /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n"
    pieces = [head] + [b"x"] * 20
    started = time.monotonic()

    def talk() -> bytes:
        try:
            return exchange(server, *pieces, pause=0.05)
        except ConnectionError:
            return b""

    await aside(talk)
    assert time.monotonic() - started < 3
    assert (await aside(lambda: ask_once(server)))[0] == 200


async def test_one_client_has_so_many_connections() -> None:
    limits = ServerLimits(connections_per_client=2, counts_local_clients=True)
    running = await serve(build_app(make_context()), "127.0.0.1", 0, limits)
    idle = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(2)]
    await asyncio.sleep(0.05)
    assert (await aside(lambda: ask_once(running)))[0] == 503
    idle.pop().close()
    await asyncio.sleep(0.05)
    assert (await aside(lambda: ask_once(running)))[0] == 200
    idle.pop().close()
    await running.stop()


async def test_who_is_gone_before_being_seen_is_not_served() -> None:
    """The system does not say any more whose connection it was, and nobody is not local."""
    clients: list[object] = []

    def app(request: web.Request) -> Whole:
        clients.append(request.host)
        return Whole(b"")

    running = await serve(Simple(app), "127.0.0.1", 0)
    try:
        # The server hears of it when this task waits for something.
        with socket.create_connection(("127.0.0.1", running.port)) as plug:
            plug.sendall(b"GET /utils/time HTTP/1.1\r\nHost: x\r\n\r\n")
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert (await aside(lambda: ask_once(running)))[0] == 200
    finally:
        await running.stop()
    assert clients == ["127.0.0.1"]


async def test_answers_wait_for_no_delayed_acknowledgement(server: RunningServer) -> None:
    def talk() -> float:
        connection = connect(server)
        started = time.monotonic()
        for _ in range(20):
            ask(connection, "GET", "/utils/time")
        connection.close()
        return time.monotonic() - started

    assert await aside(talk) < 20 * 0.04


async def test_parallel_requests_do_not_mix() -> None:
    def echo(request: Request) -> Whole:
        return Whole(request.body)

    body = Body(BodyKind.TEXT, "any", "x", {})
    route = Route(
        methods=POST, path="/", handler=echo, tag="t", summary="s", body=body, response={},
        example=1,
    )  # fmt: skip
    running = await serve(Application(make_context(), (route,)), "127.0.0.1", 0)
    wrong: list[bytes] = []

    def talk(name: bytes) -> None:
        connection = connect(running)
        for index in range(50):
            sent = name * (index + 1)
            if ask(connection, "POST", "/", sent) != (200, sent):
                wrong.append(sent)
        connection.close()

    threads = [threading.Thread(target=talk, args=(b"%d-" % number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    await running.stop()
    assert not wrong


async def test_an_answer_that_is_being_read_does_not_give_way_to_idle_connections() -> None:
    body = b"x" * (24 * 1024 * 1024)

    def respond(request: web.Request) -> Answer:
        return Whole(body if request.path == "/long" else b"here")

    limits = ServerLimits(connections=8, reserved=0)
    running = await serve(Simple(respond), "127.0.0.1", 0, limits)
    reader = socket.create_connection(("127.0.0.1", running.port), timeout=60)
    reader.sendall(b"GET /long HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    received = await aside(lambda: reader.recv(65536))
    idle = []
    for _ in range(2 * limits.connections):
        plug = socket.create_connection(("127.0.0.1", running.port), timeout=60)
        idle.append(plug)
        plug.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await aside(partial(plug.recv, 64))).startswith(b"HTTP/1.1 200")
    received += await aside(lambda: rest_of(reader))
    assert received.endswith(body[-65536:]) and len(received) > len(body)
    for plug in (reader, *idle):
        plug.close()
    await running.stop()
