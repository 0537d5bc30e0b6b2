"""WebSocket connections through a server that passes their bytes on to another one."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import struct
import weakref
from collections.abc import Callable, Iterator
from typing import cast

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus

from soliton.web import tunnel
from soliton.web.tunnel import TunnelledWebSocket, _FarEnd
from tests.web.tunnels import (
    BOUND,
    CHUNK,
    HASTY,
    PATIENT,
    Place,
    far_end,
    handshake,
    hear,
    on_both_loops,
    open_to,
    reset,
    say,
    text_frame,
    until,
)

# --- messages -------------------------------------------------------------------------------------


@on_both_loops()
async def test_messages_go_both_ways(place: Place) -> None:
    async with place.connect("/echo") as connection:
        for message in ("text", b"binary", "", b"", "ü" * 100):
            await connection.send(message)
            assert await connection.recv() == message


@on_both_loops()
async def test_large_messages_and_many(place: Place) -> None:
    lengths = [*range(200), *(60_000 + number for number in range(60))]
    messages = [
        "x" * length if length % 2 else bytes([length % 256]) * length for length in lengths
    ]
    async with place.connect("/echo") as connection:

        async def send_all() -> None:
            for message in messages:
                await connection.send(message)

        async def receive_all() -> list[object]:
            return [await connection.recv() for _ in messages]

        _, received = await asyncio.gather(send_all(), receive_all())
    assert received == messages


@on_both_loops()
async def test_what_came_in_the_packet_of_the_handshake_is_not_lost(place: Place) -> None:
    early = text_frame("early") + text_frame("later")
    async with place.plug("/echo", more=early) as plug:
        heard = await hear(plug, b"later")
    assert heard.startswith(b"HTTP/1.1 101")
    assert heard.endswith(b"\r\n\r\n\x81\x05early\x81\x05later")


@on_both_loops()
async def test_one_byte_at_a_time(place: Place) -> None:
    with socket.create_connection(("127.0.0.1", place.port)) as plug:
        plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plug.setblocking(False)
        for byte in handshake("/echo") + text_frame("first") + text_frame("second"):
            await say(plug, bytes([byte]))
            await asyncio.sleep(0)
        heard = await hear(plug, b"second")
    assert heard.startswith(b"HTTP/1.1 101")
    assert heard.endswith(b"\r\n\r\n\x81\x05first\x81\x06second")


@on_both_loops()
async def test_a_message_that_is_too_long_is_refused_behind(place: Place) -> None:
    announced = b"\x82\xff" + struct.pack("!Q", PATIENT.websocket_message_bytes + 1) + bytes(4)
    async with place.plug("/echo", more=announced) as plug:
        heard = await hear(plug)
    assert heard.startswith(b"HTTP/1.1 101") and struct.pack("!H", 1009) in heard
    await place.nobody_left()


@on_both_loops()
async def test_a_client_that_still_speaks_hears_why_it_is_refused(place: Place) -> None:
    async with place.connect("/echo") as connection:
        with contextlib.suppress(ConnectionClosed):
            await connection.send(bytes(1024 * 1024))
            await connection.recv()
    assert connection.close_code == 1009
    await place.nobody_left()


@on_both_loops()
async def test_plain_requests_are_answered_beside(place: Place) -> None:
    async with place.connect("/echo") as connection:
        with socket.create_connection(("127.0.0.1", place.port)) as plug:
            plug.setblocking(False)
            for path in (b"/one", b"/two"):
                await say(plug, b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path)
                assert (await hear(plug, path)).startswith(b"HTTP/1.1 200")
        await connection.send("still here")
        assert await connection.recv() == "still here"


# --- handshakes -----------------------------------------------------------------------------------


@on_both_loops()
async def test_a_refusal_reaches_the_client(place: Place) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await place.connect("/refused")
    assert refused.value.response.status_code == 403
    assert refused.value.response.body == b"not you"
    await place.nobody_left()


@on_both_loops()
async def test_nobody_behind(place: Place) -> None:
    await place.stop_behind()
    with pytest.raises(InvalidStatus) as refused:
        await place.connect("/echo")
    assert refused.value.response.status_code == 503
    async with place.plug("/echo", more=text_frame("early")) as plug:
        assert (await hear(plug)).startswith(b"HTTP/1.1 503 ")
    await place.nobody_left()


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of this machine has no name of its own; here it has."""
    monkeypatch.setattr(tunnel, "client_key", lambda host: f"the one at {host}")


@pytest.mark.usefixtures("named")
@on_both_loops()
async def test_the_server_behind_hears_whose_connection_it_is(place: Place) -> None:
    async with place.connect("/whose") as connection:
        assert await connection.recv() == "the one at 127.0.0.1"


@on_both_loops()
async def test_a_client_on_this_machine_has_no_name(place: Place) -> None:
    async with place.connect("/whose") as connection:
        assert await connection.recv() == ""


# What a client puts between the lines of its handshake, and what becomes of it: ``own`` if the
# server behind hears of the client's address only, else the status of the answer.
SMUGGLED = """
x-soliton-client: 9.9.9.9                                            own
X-Soliton-Client: 9.9.9.9                                            own
X-SOLITON-CLIENT:9.9.9.9                                             own
x-soliton-client:\\t9.9.9.9                                          own
x-soliton-client:                                                    own
X-Soliton-Client: 9.9.9.9\\r\\nx-soliton-client: 8.8.8.8             own
Cookie: a\\r\\nX-Soliton-Client: 9.9.9.9\\r\\nCookie: b              own
Cookie: x-soliton-client: 9.9.9.9                                    own
x_soliton_client: 9.9.9.9                                            own
x-soliton-clients: 9.9.9.9                                           own
x-soliton-client : 9.9.9.9                                           400
x-soliton-client\\t: 9.9.9.9                                         400
x-soliton-client\\0: 9.9.9.9                                         400
Cookie: a\\r\\n x-soliton-client: 9.9.9.9                            400
Cookie: a\\r\\n\\tx-soliton-client: 9.9.9.9                          400
x-soliton-client: 9.9.9.9\\r\\n 8.8.8.8                              400
Cookie: a\\nx-soliton-client: 9.9.9.9                                400
Cookie: a\\rx-soliton-client: 9.9.9.9                                400
Cookie: a\\0\\r\\nx-soliton-client: 9.9.9.9                          400
: a\\r\\nx-soliton-client: 9.9.9.9                                   400
"""


def smuggled() -> Iterator[tuple[str, str]]:
    for line in SMUGGLED.strip().splitlines():
        header, _, outcome = line.rpartition("   ")
        yield header.strip().encode("ascii").decode("unicode_escape"), outcome.strip()


@pytest.mark.usefixtures("named")
@on_both_loops()
async def test_what_a_client_says_of_itself_does_not_count(place: Place) -> None:
    outcomes: list[tuple[str, str]] = []
    for header, _ in smuggled():
        with socket.create_connection(("127.0.0.1", place.port)) as plug:
            plug.setblocking(False)
            await say(plug, handshake("/whose", header))
            heard = await hear(plug, b"the one at 127.0.0.1")
        status, _, body = heard.removeprefix(b"HTTP/1.1 ").partition(b" ")
        is_own = status == b"101" and body.endswith(b"\r\n\r\n\x81\x14the one at 127.0.0.1")
        outcomes.append((header, "own" if is_own else status.decode()))
    assert outcomes == list(smuggled())


# --- ends -----------------------------------------------------------------------------------------


@on_both_loops()
async def test_the_server_behind_ends_first(place: Place) -> None:
    async with place.connect("/bye") as connection:
        assert await connection.recv() == "last"
        with pytest.raises(ConnectionClosed) as closed:
            await connection.recv()
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4001, "enough")
    await place.nobody_left()


@on_both_loops()
async def test_the_server_behind_stops(place: Place) -> None:
    async with place.connect("/echo") as connection:
        await place.stop_behind()
        with pytest.raises(ConnectionClosed) as closed:
            await connection.recv()
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1012
    await place.nobody_left()


@on_both_loops()
async def test_a_client_says_goodbye(place: Place) -> None:
    connection: ClientConnection = await place.connect("/echo")
    assert place.count() == 1
    await connection.close()
    assert await place.app.ends.get() == "/echo"
    assert connection.close_code == 1000
    await place.nobody_left()


@on_both_loops()
async def test_a_client_goes_without_a_word(place: Place) -> None:
    async with place.plug("/echo", more=text_frame("x")) as plug:
        await hear(plug, b"x")
        assert place.count() == 1
        reset(plug)
    assert await place.app.ends.get() == "/echo"
    await place.nobody_left()


@on_both_loops()
async def test_nothing_remains_of_a_tunnel(place: Place) -> None:
    def is_gone(remains: list[weakref.ref[object]]) -> bool:
        gc.collect()
        return not any(each() for each in remains)

    async with place.plug("/echo", more=text_frame("x")) as plug:
        await hear(plug, b"x")
        remains = place.remains()
        reset(plug)
    await place.nobody_left()
    await until(lambda: is_gone(remains))
    async with place.plug("/bye") as plug:
        await hear(plug, b"enough")
        others = place.remains()
        await say(plug, b"\x88\x82\0\0\0\0\x03\xe8")
        assert await hear(plug) == b""
    await place.nobody_left()
    await until(lambda: is_gone(others))
    assert (len(remains), len(others)) == (3, 3)


@on_both_loops()
async def test_what_a_client_said_before_it_went_still_counts(place: Place) -> None:
    async with place.plug("/listen", more=text_frame("before")) as plug:
        await hear(plug, b"\r\n\r\n")
        await say(plug, text_frame("last"))
        plug.shutdown(socket.SHUT_WR)
        assert await place.app.ends.get() == "/listen"
        assert await hear(plug) == b""
    assert place.app.messages == ["before", "last"]
    await place.nobody_left()


# --- who does not read ----------------------------------------------------------------------------


@on_both_loops(HASTY)
async def test_a_client_that_reads_nothing_is_dropped(place: Place) -> None:
    async with place.plug("/flood", narrow=True):
        assert await place.app.ends.get() == "/flood"
        await place.nobody_left()
    assert len(CHUNK) < place.app.sent_bytes < BOUND


@on_both_loops(HASTY)
async def test_a_client_that_says_goodbye_and_reads_nothing_is_dropped(place: Place) -> None:
    async with place.plug("/flood", narrow=True) as plug:
        plug.shutdown(socket.SHUT_WR)
        assert await place.app.ends.get() == "/flood"
        await place.nobody_left()
    assert place.app.sent_bytes < BOUND


@on_both_loops()
async def test_a_client_that_reads_at_last_gets_all(place: Place) -> None:
    async with place.connect("/flood") as connection:
        await until(lambda: place.near_end().get_write_buffer_size() > len(CHUNK))
        for _ in range(300):
            assert await connection.recv() == CHUNK


@on_both_loops()
async def test_a_server_behind_that_reads_nothing_holds_its_client_up(place: Place) -> None:
    frame = text_frame("m" * 100)
    flow, sent = memoryview(frame * (BOUND // len(frame))), 0
    async with place.plug("/deaf") as plug:
        await hear(plug, b"\r\n\r\n")
        while sent < len(flow):
            try:
                sent += plug.send(flow[sent:])
            except BlockingIOError:
                if not place.near_end().is_reading():
                    break
                await asyncio.sleep(0.01)
        assert sent < len(flow)
        place.app.hears.set()
        await say(plug, bytes(flow[sent : sent + 10 * len(frame) - sent % len(frame)]))
        plug.shutdown(socket.SHUT_WR)
        assert await place.app.ends.get() == "/deaf"
    assert len(place.app.messages) == sent // len(frame) + 10


# --- ends that are not there, or stuck ------------------------------------------------------------


def on_made(
    monkeypatch: pytest.MonkeyPatch,
    protocol: type[asyncio.Protocol],
    prepare: Callable[[asyncio.Transport], None],
) -> None:
    usual: Callable[..., None] = protocol.connection_made

    def connection_made(made: asyncio.Protocol, transport: asyncio.Transport) -> None:
        prepare(transport)
        usual(made, transport)

    monkeypatch.setattr(protocol, "connection_made", connection_made)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system keeps little of what is sent to either end."""

    def keep_little(transport: asyncio.Transport) -> None:
        plug = cast("socket.socket", transport.get_extra_info("socket"))
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)

    on_made(monkeypatch, _FarEnd, keep_little)
    on_made(monkeypatch, TunnelledWebSocket, keep_little)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little may wait for the server behind."""
    on_made(monkeypatch, _FarEnd, lambda transport: transport.set_write_buffer_limits(high=4096))


@on_both_loops()
async def test_bytes_pass_as_they_are(place: Place) -> None:
    every = bytes(range(256)) * 100
    async with far_end(place) as door, place.plug("/path?query", more=every) as plug:
        with await open_to(door) as far:
            there = await hear(far, every)
            assert there.startswith(
                b"GET /path?query HTTP/1.1\r\nx-soliton-client: \r\nhost: x\r\n"
            )
            assert there.count(b"\r\n\r\n", 0, -len(every)) == 1
            await say(far, every)
            assert await hear(plug, every) == every
    await place.nobody_left()


@on_both_loops()
async def test_the_server_behind_goes_without_a_word(place: Place) -> None:
    async with far_end(place) as door, place.plug("/") as plug:
        with await open_to(door) as far:
            await say(far, b"HTTP/1.1 101 and a ha")
        assert await hear(plug) == b"HTTP/1.1 101 and a ha"
    await place.nobody_left()


@pytest.mark.usefixtures("narrow")
@on_both_loops(HASTY)
async def test_who_does_not_read_the_end_is_dropped(place: Place) -> None:
    async with far_end(place) as door, place.plug("/", narrow=True):
        with await open_to(door) as far:
            await say(far, bytes(50_000))
        await place.nobody_left()


@pytest.mark.usefixtures("narrow")
@on_both_loops(HASTY)
async def test_who_says_goodbye_and_does_not_read_the_rest_is_dropped(place: Place) -> None:
    async with far_end(place) as door, place.plug("/", narrow=True) as plug:
        with await open_to(door) as far:
            await say(far, bytes(50_000))
            near = place.near_end()
            await until(lambda: near.get_write_buffer_size() > 0)
            plug.shutdown(socket.SHUT_WR)
            await place.nobody_left()


@pytest.mark.usefixtures("narrow")
@on_both_loops(HASTY)
async def test_who_says_goodbye_and_reads_almost_all_is_dropped(place: Place) -> None:
    async with far_end(place) as door, place.plug("/", narrow=True) as plug:
        with await open_to(door) as far:
            await say(far, bytes(150_000))
            near = place.near_end()
            await until(lambda: near.get_write_buffer_size() > len(CHUNK))
            plug.shutdown(socket.SHUT_WR)
            await until(near.is_closing)
            while near.get_write_buffer_size() > len(CHUNK) // 4:
                await asyncio.get_running_loop().sock_recv(plug, 1024)
            assert near.get_write_buffer_size()
            await place.nobody_left()


@pytest.mark.usefixtures("narrow")
@on_both_loops(HASTY)
async def test_what_a_client_left_behind_does_not_wait_for_ever(place: Place) -> None:
    async with far_end(place), place.plug("/", more=bytes(30_000)) as plug:
        await until(place.waits_for_far_end)
        reset(plug)
        await place.nobody_left()
        await place.far_end_lost.wait()


@pytest.mark.usefixtures("narrow", "impatient")
@on_both_loops()
async def test_what_came_with_the_handshake_may_be_too_much_at_once(place: Place) -> None:
    flow, sent = memoryview(bytes(BOUND)), 0
    async with far_end(place), place.plug("/", more=bytes(32 * 1024)) as plug:
        await until(place.waits_for_far_end)
        while sent < len(flow):
            try:
                sent += plug.send(flow[sent:])
            except BlockingIOError:
                if not place.near_end().is_reading():
                    break
                await asyncio.sleep(0.01)
    assert sent < len(flow)


@pytest.fixture(params=["__init__", "connection_made"])
def cut(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The client is lost while the connection behind is being made."""
    usual = getattr(_FarEnd, request.param)

    def and_cut(end: _FarEnd, *arguments: object) -> None:
        usual(end, *arguments)
        end._near.shutdown()

    monkeypatch.setattr(_FarEnd, request.param, and_cut)


@pytest.mark.usefixtures("cut")
@on_both_loops()
async def test_a_client_that_is_lost_at_once_leaves_nothing(place: Place) -> None:
    async with place.plug("/echo") as plug:
        assert await hear(plug) == b""
    await place.nobody_left()
    await until(lambda: not place.connections_behind())


@on_both_loops()
async def test_a_stop_does_not_wait_for_tunnels(place: Place) -> None:
    async with place.connect("/echo") as connection, place.plug("/flood", narrow=True):
        await until(lambda: place.app.sent_bytes > 0)
        async with asyncio.timeout(2):
            await place.stop_front()
        with pytest.raises(ConnectionClosed):
            await connection.recv()
        assert {await place.app.ends.get() for _ in range(2)} == {"/echo", "/flood"}
        await place.nobody_left()
