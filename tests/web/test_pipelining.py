"""Requests behind one another on a connection, and clients that go: who else waits for them."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
from msgspec.structs import replace

from soliton import turns
from soliton.api.app import build_app
from soliton.api.application import Application
from soliton.api.http import Request
from soliton.api.routes import GET, Route
from soliton.web import connection as connections
from soliton.web import request as web
from soliton.web.answers import Answer, Awaited, Upgrade, Whole
from soliton.web.server import RunningServer, ServerLimits, serve
from soliton.web.websocket import WebSocket
from tests.api.client import KEY, make_context
from tests.web.services import Simple
from tests.web.test_server import aside, exchange


@pytest_asyncio.fixture
async def server() -> AsyncIterator[RunningServer]:
    running = await serve(build_app(make_context()), "127.0.0.1", 0, ServerLimits(head_seconds=0.3))
    yield running
    await running.stop()


def _routes(**handlers: Callable[[Request], object]) -> tuple[Route, ...]:
    return tuple(
        Route(
            methods=GET, path=f"/{name}", handler=handler, tag="t", summary="s", response={},
            example=1,
        )
        for name, handler in handlers.items()
    )  # fmt: skip


async def test_many_requests_in_one_packet_let_others_pass() -> None:
    """Requests of others are answered between them, however many a packet brings."""
    turns: list[bool] = []

    def of_one(_request: Request) -> object:
        turns.append(True)
        return "one"

    def of_other(_request: Request) -> object:
        turns.append(False)
        return "other"

    running = await serve(
        Application(make_context(), _routes(one=of_one, other=of_other)), "127.0.0.1", 0
    )
    many = 4_000
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    other_reader, other_writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(b"GET /one HTTP/1.1\r\nHost: x\r\n\r\n" * many)
    # Each is there before the loop looks at what has come.
    time.sleep(0.05)  # noqa: ASYNC251 - nobody may be served meanwhile
    other_writer.write(b"GET /other HTTP/1.1\r\nHost: x\r\n\r\n")
    await asyncio.wait_for(other_reader.readuntil(b'"other"'), 20)
    before_other = turns.index(False)
    answers = 0
    while answers < many:
        answers += (await asyncio.wait_for(reader.readuntil(b'"one"'), 20)).count(b"200 OK")
    for end in (writer, other_writer):
        end.close()
    await running.stop()
    assert answers == many == turns.count(True)
    assert before_other < many // 4


async def test_many_who_ask_much_at_once_share_each_round() -> None:
    """However many connections have thousands of requests waiting: between two rounds of the loop
    so many of them are answered as one could have had.
    """
    answered = 0

    def dear(_request: Request) -> object:
        nonlocal answered
        answered += 1
        time.sleep(0.003)
        return "dear"

    def cheap(_request: Request) -> object:
        return "cheap"

    routes = _routes(dear=dear, cheap=cheap)
    running = await serve(Application(make_context(), routes), "127.0.0.1", 0)
    plugs = [await asyncio.open_connection("127.0.0.1", running.port) for _ in range(20)]
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    for _, many in plugs:
        many.write(b"GET /dear HTTP/1.1\r\nHost: x\r\n\r\n" * 2_000)
    while answered < 200:  # noqa: ASYNC110 - as the server goes round
        await asyncio.sleep(0)
    passed = []
    for _ in range(21):
        before = answered
        writer.write(b"GET /cheap HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.wait_for(reader.readuntil(b'"cheap"'), 20)
        passed.append(answered - before)
    for _, end in (*plugs, (reader, writer)):
        end.transport.abort()
    await running.stop()
    assert sorted(passed)[10] < 20, str(passed)


async def test_what_is_asked_behind_a_slow_answer_stays_unread() -> None:
    """Each request that has been read costs memory; a client may send thousands in a packet."""
    go, seen = asyncio.Event(), 0

    async def slow(_request: Request) -> object:
        await go.wait()
        return "slow"

    def quick(_request: Request) -> object:
        nonlocal seen
        seen += 1
        return "quick"

    running = await serve(
        Application(make_context(), _routes(slow=slow, quick=quick)), "127.0.0.1", 0
    )
    many, connections = 11_000, 2
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        plugs = [
            await asyncio.open_connection("127.0.0.1", running.port) for _ in range(connections)
        ]
        for _, writer in plugs:
            writer.write(
                b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"
                + b"GET /quick HTTP/1.1\r\nHost: x\r\n\r\n" * many
            )
        await asyncio.sleep(0.5)
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    go.set()
    for reader, writer in plugs:
        for _ in range(many):
            await asyncio.wait_for(reader.readuntil(b'"quick"'), 20)
        writer.close()
    await running.stop()
    assert seen == many * connections
    assert held < connections * 2 * 1024 * 1024


async def test_many_offers_of_http2_in_one_packet_are_all_answered(server: RunningServer) -> None:
    offer = b"GET /utils/time HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"
    end = b"GET /utils/time HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answer = await aside(lambda: exchange(server, offer * 3_000 + end))
    assert answer.count(b"HTTP/1.1 200 OK") == 3_001


async def test_who_waits_is_told_that_its_client_has_gone_with_requests_behind() -> None:
    told = asyncio.Event()

    async def wait() -> Whole:
        try:
            await asyncio.sleep(60)
        finally:
            told.set()
        return Whole(b"")

    app = Simple(lambda _request: Awaited(wait(), ends_with_client=True))
    running = await serve(app, "127.0.0.1", 0)
    _, writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
    await asyncio.sleep(0.05)
    writer.transport.abort()
    await asyncio.wait_for(told.wait(), 60)
    await running.stop()


async def test_a_websocket_behind_an_answer_under_way_is_no_websocket() -> None:
    """Two would write to one connection."""

    async def slow() -> Whole:
        await asyncio.sleep(0.1)
        return Whole(b"slow")

    async def nothing(_socket: WebSocket) -> None:
        """Said at once."""

    def respond(request: web.Request) -> Answer:
        return Upgrade(nothing) if request.is_websocket else Awaited(slow())

    running = await serve(Simple(respond), "127.0.0.1", 0)
    offer = (
        b"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    alone = await aside(lambda: exchange(running, offer))
    behind = await aside(
        lambda: exchange(running, b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n" + offer)
    )
    await running.stop()
    assert b" 101 " in alone
    assert b" 101 " not in behind


async def test_work_ends_with_the_client_that_asked_for_it() -> None:
    """But for what needs the key: that changes the node."""
    begun, left, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def waits(_request: Request) -> object:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            left.set()
            raise
        return "late"

    async def changes(_request: Request) -> object:
        begun.set()
        await asyncio.sleep(0.5)
        done.set()
        return "changed"

    waiting, changing = _routes(waits=waits, changes=changes)
    routes = (waiting, replace(changing, scope="operate"))
    running = await serve(Application(make_context(), routes), "127.0.0.1", 0)
    key = f"X-API-Key: {KEY}\r\n".encode()
    for path, headers, expected in ((b"/waits", b"", left), (b"/changes", key, done)):
        begun.clear()
        _, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n")
        await asyncio.wait_for(begun.wait(), 60)
        writer.close()
        await asyncio.wait_for(expected.wait(), 60)
    await running.stop()


async def test_what_is_cut_off_at_the_end_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    begun = asyncio.Event()

    async def wait() -> Whole:
        begun.set()
        await asyncio.sleep(60)
        return Whole(b"")

    running = await serve(Simple(lambda _request: Awaited(wait())), "127.0.0.1", 0)
    _, writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    await asyncio.wait_for(begun.wait(), 60)
    await running.stop()
    writer.close()
    await asyncio.sleep(0.05)
    assert not caplog.records


def _tasks() -> int:
    return sum(isinstance(each, asyncio.Task) for each in gc.get_objects())


async def test_what_was_made_for_an_answer_is_freed_behind_it() -> None:
    """What only the collector frees is looked at by it, again and again, while everybody waits."""

    async def slow(_request: Request) -> object:
        await asyncio.sleep(0.15)
        return "slow"

    running = await serve(Application(make_context(), _routes(slow=slow)), "127.0.0.1", 0)
    gc.collect()
    gc.disable()
    try:
        before = _tasks()
        request = b"GET /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        answers = await asyncio.gather(
            *(aside(lambda: exchange(running, request)) for _ in range(20))
        )
        await asyncio.sleep(0.1)
        left = _tasks() - before
    finally:
        gc.enable()
        await running.stop()
    assert all(b"200 OK" in answer for answer in answers)
    assert left < 5


async def test_a_body_of_the_smallest_chunks_is_read_in_slices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its pieces take turns, so that the loop serves others meanwhile."""
    monkeypatch.setattr(connections, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(turns, "SLICE_SECONDS", 0.0)
    passes, bodies = 0, list[bytes]()

    async def count() -> None:
        nonlocal passes
        while True:
            passes += 1
            await asyncio.sleep(0)

    def take(request: web.Request) -> Answer:
        bodies.append(request.body)
        return Whole(b"")

    running = await serve(Simple(take), "127.0.0.1", 0)
    counting = asyncio.create_task(count())
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    chunks = 50_000
    try:
        writer.write(
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            + b"1\r\nx\r\n" * chunks
            + b"0\r\n\r\n"
        )
        async with asyncio.timeout(60):
            await reader.readuntil(b"\r\n\r\n")
    finally:
        counting.cancel()
        writer.close()
        await running.stop()
    assert bodies == [b"x" * chunks]
    assert passes > chunks * 6 // (8 * 1024)
    assert running._shared.debts._paid_at, "the client is charged for it"
