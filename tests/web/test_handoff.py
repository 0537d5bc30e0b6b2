"""WebSocket connections that a server sends to another process, which goes on with them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus

from soliton.errors import EnvironmentProblem
from soliton.web import handoff
from soliton.web.handoff import SocketReceiver
from tests.web.handoffs import (
    BOUND,
    CHUNK,
    HASTY,
    PATIENT,
    Place,
    handshake,
    hear,
    on_both_loops,
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


@on_both_loops()
async def test_the_server_behind_sees_whose_connection_it_is(place: Place) -> None:
    async with place.connect("/whose") as connection:
        assert await connection.recv() == "127.0.0.1"


@on_both_loops()
async def test_a_connection_that_was_refused_is_over(place: Place) -> None:
    """What else its client asks would be beside the limits of the server before."""
    more = b"GET /another HTTP/1.1\r\nHost: x\r\n\r\n"
    async with place.plug("/refused", more=more) as plug:
        heard = await hear(plug)
    assert heard.startswith(b"HTTP/1.1 403") and heard.count(b"HTTP/1.1") == 1
    await place.nobody_left()


@on_both_loops()
async def test_what_was_answered_before_comes_before(place: Place) -> None:
    with socket.create_connection(("127.0.0.1", place.port)) as plug:
        plug.setblocking(False)
        await say(plug, b"GET /plain HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await hear(plug, b"/plain")).startswith(b"HTTP/1.1 200")
        await say(plug, handshake("/echo") + text_frame("hello"))
        assert (await hear(plug, b"hello")).startswith(b"HTTP/1.1 101")


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
    await place.handed_off()
    await connection.close()
    assert await place.app.ends.get() == "/echo"
    assert connection.close_code == 1000
    await place.nobody_left()


@on_both_loops()
async def test_a_client_goes_without_a_word(place: Place) -> None:
    async with place.plug("/echo", more=text_frame("x")) as plug:
        await hear(plug, b"x")
        await place.handed_off()
        reset(plug)
    assert await place.app.ends.get() == "/echo"
    await place.nobody_left()


@on_both_loops()
async def test_no_descriptor_remains(place: Place) -> None:
    def open_files() -> int:
        return len(list(Path("/dev/fd").iterdir()))

    before = open_files()
    for path in ("/bye", "/refused") * 5:
        async with place.plug(path, more=b"\x88\x82\0\0\0\0\x03\xe8") as plug:
            await hear(plug)
    await place.nobody_left()
    await until(lambda: open_files() <= before)


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
        await until(lambda: place.app.sent_bytes > len(CHUNK))
        for _ in range(300):
            assert await connection.recv() == CHUNK


# --- processes that are not there, or do not do as they should ------------------------------------


@on_both_loops()
async def test_clients_stay_when_the_server_before_ends(place: Place) -> None:
    async with place.connect("/echo") as connection:
        await place.handed_off()
        await place.stop_front()
        await connection.send("still here")
        assert await connection.recv() == "still here"


@on_both_loops()
async def test_a_stop_does_not_wait_for_connections(place: Place) -> None:
    async with place.connect("/echo") as connection, place.plug("/flood", narrow=True):
        await until(lambda: place.app.sent_bytes > 0)
        async with asyncio.timeout(60):
            await place.stop_behind()
        with pytest.raises(ConnectionClosed):
            await connection.recv()
        assert {await place.app.ends.get() for _ in range(2)} == {"/echo", "/flood"}


def send_too_much(way: socket.socket) -> None:
    with socket.socket() as plug:
        socket.send_fds(way, [b"x"], [plug.fileno()])
    with contextlib.suppress(OSError):
        way.sendall(bytes(4_000))


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (lambda way: way.sendall(b"GET / HTTP/1.1"), "no descriptor came"),
        (lambda _way: None, "no descriptor came"),
        (send_too_much, "more than 1000 bytes came"),
    ],
)
async def test_what_is_no_connection(
    sent: Callable[[socket.socket], None],
    words: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handoff, "MAX_BYTES", 1_000)
    adopted: list[bytes] = []

    async def adopt(_plug: socket.socket, data: bytes) -> None:
        adopted.append(data)

    receiver = SocketReceiver(adopt)
    receiver.open(str(tmp_path / "handoff"))
    with socket.socket(socket.AF_UNIX) as way:
        way.connect(str(tmp_path / "handoff"))
        sent(way)
    await until(lambda: bool(caplog.records))
    receiver.close()
    assert [words in record.getMessage() for record in caplog.records] == [True]
    assert adopted == []


async def test_who_says_nothing_is_not_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handoff, "RECEIVE_SECONDS", 0.01)
    receiver = SocketReceiver(lambda _plug, _data: asyncio.sleep(0))
    receiver.open(str(tmp_path / "handoff"))
    with socket.socket(socket.AF_UNIX) as way:
        way.connect(str(tmp_path / "handoff"))
        await until(lambda: len(caplog.records) == 1)
        assert way.recv(1) == b""
    receiver.close()
    with pytest.raises(EnvironmentProblem, match="cannot listen"):
        SocketReceiver(lambda _plug, _data: asyncio.sleep(0)).open(str(tmp_path / "no" / "place"))
