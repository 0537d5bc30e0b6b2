"""Each rule of HTTP/2 that a client may break, one at a time: the connection or the stream ends
with the error that RFC 9113 names, and others are served.

A connection may end where only a stream has to (RFC 9113, section 5.4).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from tests.grpc_api.door import WATCH, Door
from tests.grpc_api.picky import (
    ACK,
    AWAY,
    CALM,
    CANCEL,
    COMPRESSION_ERROR,
    DATA,
    END_HEADERS,
    END_STREAM,
    FLOW_CONTROL_ERROR,
    FRAME_SIZE,
    FRAME_SIZE_ERROR,
    HEIGHT,
    INITIAL_WINDOW,
    LARGEST_WINDOW,
    MORE,
    OWN,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    PROMISE,
    PROTOCOL_ERROR,
    PUSH,
    RESET,
    SETTINGS,
    STREAM_CLOSED,
    USUAL_FRAME,
    WINDOW,
    WITH_PRIORITY,
    Pairs,
    Picky,
    block,
    frame,
    head,
    headers,
    literal,
    message,
    number,
    opened,
    pseudo,
    settings,
    text,
    update,
    whole,
)

PROTOCOL = (PROTOCOL_ERROR,)
SIZE = (FRAME_SIZE_ERROR,)
PROTOCOL_OR_SIZE = (PROTOCOL_ERROR, FRAME_SIZE_ERROR)
UNKNOWN_KIND = 0x42
UNKNOWN_SETTING = 0x99
RESERVED = 1 << 31
LAST = 2**31 - 1
WHOLE = END_STREAM | END_HEADERS
FIVE = bytes(4) + b"\x10"
"""A priority: behind no stream, of weight 17."""


@pytest.fixture(autouse=True)
def is_served(door: Door) -> Iterator[None]:
    """Whatever was sent, the next one is."""
    yield
    with Picky(door.port) as client:
        client.check(1)


def coded(field: bytes) -> bytes:
    """A request with this behind its header block."""
    return headers(head() + field)


# --- what ends the connection ---------------------------------------------------------------------

OPEN = opened(1)
FAULTS: dict[str, tuple[bytes, tuple[int, ...]]] = {
    # DATA
    "data on the connection": (frame(DATA, 0, 0, b"x"), PROTOCOL),
    "data on an idle stream": (frame(DATA, 0, 1, b"x"), PROTOCOL),
    "data on a stream of the server's": (opened(3) + frame(DATA, 0, 2, b"x"), PROTOCOL),
    "data padded with all of it": (OPEN + frame(DATA, PADDED, 1, b"\5abcd"), PROTOCOL),
    "data without the length of its padding": (OPEN + frame(DATA, PADDED, 1), PROTOCOL_OR_SIZE),
    "data longer than a frame": (OPEN + frame(DATA, 0, 1, bytes(USUAL_FRAME + 1)), SIZE),
    "data of a frame of 16 MiB": (OPEN + b"\xff\xff\xff\0\0\0\0\0\1", SIZE),
    # HEADERS
    "headers on the connection": (headers(head(), 0), PROTOCOL),
    "headers on an even stream": (headers(head(), 2), PROTOCOL),
    "headers on a lower stream": (opened(5) + headers(head(), 3), PROTOCOL),
    "headers padded with more": (headers(b"\xff" + head(), 1, WHOLE | PADDED), PROTOCOL),
    "headers without the length of their padding": (
        headers(b"", 1, WHOLE | PADDED), PROTOCOL_OR_SIZE),
    "headers with half a priority": (
        headers(b"\0\0\0\0", 1, WHOLE | WITH_PRIORITY), PROTOCOL_OR_SIZE),
    "headers longer than a frame": (headers(bytes(USUAL_FRAME + 1)), SIZE),
    # CONTINUATION
    "a continuation of nothing": (frame(MORE, END_HEADERS, 1, head()), PROTOCOL),
    "a continuation of what has ended": (OPEN + frame(MORE, END_HEADERS, 1), PROTOCOL),
    "a continuation on the connection": (
        headers(head(), 1, 0) + frame(MORE, END_HEADERS, 0), PROTOCOL),
    "a continuation on another stream": (
        headers(head(), 1, 0) + frame(MORE, END_HEADERS, 3), PROTOCOL),
    "data within a header block": (headers(head(), 1, 0) + frame(DATA, 0, 1), PROTOCOL),
    "headers within a header block": (headers(head(), 1, 0) + headers(head(), 3), PROTOCOL),
    "a ping within a header block": (headers(head(), 1, 0) + frame(PING, 0, 0, bytes(8)), PROTOCOL),
    "settings within a header block": (headers(head(), 1, 0) + settings(), PROTOCOL),
    "a window within a header block": (headers(head(), 1, 0) + update(0, 1), PROTOCOL),
    "a priority within a header block": (
        headers(head(), 1, 0) + frame(PRIORITY, 0, 3, FIVE), PROTOCOL),
    "an unknown frame within a header block": (
        headers(head(), 1, 0) + frame(UNKNOWN_KIND, 0, 1), PROTOCOL),
    # PRIORITY
    "a priority on the connection": (frame(PRIORITY, 0, 0, FIVE), PROTOCOL),
    # RST_STREAM
    "a reset of the connection": (frame(RESET, 0, 0, bytes(4)), PROTOCOL),
    "a reset of an idle stream": (frame(RESET, 0, 1, bytes(4)), PROTOCOL),
    "a reset of a stream of the server's": (opened(3) + frame(RESET, 0, 2, bytes(4)), PROTOCOL),
    "a reset of three bytes": (OPEN + frame(RESET, 0, 1, bytes(3)), SIZE),
    "a reset of five bytes": (OPEN + frame(RESET, 0, 1, bytes(5)), SIZE),
    # SETTINGS
    "settings of a stream": (frame(SETTINGS, 0, 1), PROTOCOL),
    "half a setting": (frame(SETTINGS, 0, 0, bytes(5)), SIZE),
    "settings acknowledged with some": (frame(SETTINGS, ACK, 0, bytes(6)), SIZE),
    "settings that push twice": (settings((PUSH, 2)), PROTOCOL),
    "settings with too large a window": (settings((INITIAL_WINDOW, 2**31)), (FLOW_CONTROL_ERROR,)),
    "settings with the largest number": (
        settings((INITIAL_WINDOW, 2**32 - 1)), (FLOW_CONTROL_ERROR,)),
    "settings with too short frames": (settings((FRAME_SIZE, USUAL_FRAME - 1)), PROTOCOL),
    "settings with too long frames": (settings((FRAME_SIZE, 2**24)), PROTOCOL),
    "settings of which only the last is wrong": (
        settings((PUSH, 0), (INITIAL_WINDOW, 1), (FRAME_SIZE, 0)), PROTOCOL),
    # PUSH_PROMISE
    "a promise": (OPEN + frame(PROMISE, END_HEADERS, 1, struct.pack(">I", 2) + head()), PROTOCOL),
    # PING
    "a ping of a stream": (frame(PING, 0, 1, bytes(8)), PROTOCOL),
    "a ping of seven bytes": (frame(PING, 0, 0, bytes(7)), SIZE),
    "a ping of nine bytes": (frame(PING, 0, 0, bytes(9)), SIZE),
    # GOAWAY
    "a farewell to a stream": (frame(AWAY, 0, 1, bytes(8)), PROTOCOL),
    "half a farewell": (frame(AWAY, 0, 0, bytes(7)), SIZE),
    # WINDOW_UPDATE
    "a window of three bytes": (frame(WINDOW, 0, 0, bytes(3)), SIZE),
    "a window of five bytes": (frame(WINDOW, 0, 0, bytes(5)), SIZE),
    "a window of nothing": (update(0, 0), PROTOCOL),
    "a window of nothing but the reserved bit": (update(0, RESERVED), PROTOCOL),
    "a window of an idle stream": (update(1, 1), PROTOCOL),
    "a window of a stream of the server's": (opened(3) + update(2, 1), PROTOCOL),
    "a window that is too wide": (update(0, LARGEST_WINDOW), (FLOW_CONTROL_ERROR,)),
    "a window that settings make too wide": (
        OPEN + update(1, LARGEST_WINDOW - 65_535) + settings((INITIAL_WINDOW, 65_536)),
        (FLOW_CONTROL_ERROR,)),
    "an unknown frame that is too long": (frame(UNKNOWN_KIND, 0, 0, bytes(USUAL_FRAME + 1)), SIZE),
    # HPACK
    "index 0": (coded(b"\x80"), (COMPRESSION_ERROR,)),
    "an index beyond the table": (coded(number(62, 7, 0x80)), (COMPRESSION_ERROR,)),
    "a name beyond the table": (coded(number(62, 4) + text("x")), (COMPRESSION_ERROR,)),
    "an index of 2^32": (coded(number(2**32, 7, 0x80)), (COMPRESSION_ERROR,)),
    "an index without an end": (coded(b"\xff" + b"\x80" * 100), (COMPRESSION_ERROR,)),
    "an index of zeros without an end": (
        coded(b"\xff" + b"\x80" * 9 + b"\0"), (COMPRESSION_ERROR,)),
    "an index that is cut off": (coded(b"\xff"), (COMPRESSION_ERROR,)),
    "a name that is cut off": (coded(b"\0\5abc"), (COMPRESSION_ERROR,)),
    "a value that is cut off": (coded(b"\0\1a\5abc"), (COMPRESSION_ERROR,)),
    "a header without a value": (coded(b"\0\1a"), (COMPRESSION_ERROR,)),
    "a text of 2^31 bytes": (coded(b"\0" + number(2**31, 7)), (COMPRESSION_ERROR,)),
    "the end of a text in a text": (coded(b"\0\1a\x84\xff\xff\xff\xff"), (COMPRESSION_ERROR,)),
    "padding of zeros": (coded(b"\0\1a\x81\x18"), (COMPRESSION_ERROR,)),
    "padding of a whole byte": (coded(b"\0\1a\x82\x1f\xff"), (COMPRESSION_ERROR,)),
    "a table that is too large": (headers(number(4_097, 5, 0x20) + head()), (COMPRESSION_ERROR,)),
    "a table of another size within a block": (coded(b"\x20"), (COMPRESSION_ERROR,)),
    "an index that has left the table": (
        headers(literal("a", "b", 0x40) + b"\x20" + head()), (COMPRESSION_ERROR,)),
    "an entry of a table without room": (
        headers(b"\x20" + literal("a", "b", 0x40) + b"\xbe"), (COMPRESSION_ERROR,)),
    "headers of 80,000 bytes together": (
        coded(literal("a", "b" * 4_000, 0x40) + b"\xbe" * 20), (CALM, PROTOCOL_ERROR)),
    # Streams that have ended
    "data behind the end": (whole(1) + frame(DATA, 0, 1, b"x"), (STREAM_CLOSED,)),
    "headers behind the end": (whole(1) + headers(head()), (STREAM_CLOSED,)),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faults_that_end_the_connection(door: Door, name: str) -> None:
    sent, codes = FAULTS[name]
    with Picky(door.port) as client:
        client.settle()
        client.send(sent)
        assert client.end() in codes, (client.gone, client.text)


FIRST: dict[str, bytes] = {
    "another preface": b"PRI * HTTP/3.0\r\n\r\nSM\r\n\r\n" + settings(),
    "a preface with another end": PREFACE[:-1] + b"\r" + settings(),
    "a request of HTTP/1.1": b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
    "an upgrade": b"POST / HTTP/1.1\r\nHost: here\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    "a hello of TLS": bytes.fromhex("16030100f8010000f40303") + bytes(240),
    "zeros": bytes(1_000),
    "no preface": settings() + whole(1),
    "a ping in place of settings": PREFACE + frame(PING, 0, 0, bytes(8)),
    "a call in place of settings": PREFACE + whole(1),
    "a window in place of settings": PREFACE + update(0, 1),
    "settings acknowledged that nobody sent": PREFACE + frame(SETTINGS, ACK, 0),
    "an unknown frame in place of settings": PREFACE + frame(UNKNOWN_KIND, 0, 0),
}


@pytest.mark.parametrize("name", FIRST)
def test_what_begins_otherwise_ends(door: Door, name: str) -> None:
    with Picky(door.port, first=FIRST[name]) as client:
        # Who speaks another protocol cannot read why.
        assert client.end() in (PROTOCOL_ERROR, None)
        assert 1 not in client.answers


# --- what ends a stream ---------------------------------------------------------------------------


def request(more: Pairs = (), *, less: str = "", path: str = HEIGHT) -> bytes:
    """A header block with something more, or without something."""
    pairs = [each for each in (*pseudo(path), *OWN) if each[0] != less]
    return headers(block((*pairs, *more)), 1, END_HEADERS)


MALFORMED: dict[str, bytes] = {
    "an uppercase name": request((("Content", "x"),)),
    "a name with a space": request((("a b", "x"),)),
    "a name with a colon": request((("a:b", "x"),)),
    "an empty name": request((("", "x"),)),
    "a name of more than ASCII": headers(head() + literal(b"\xc3\xa4", b"x"), 1, END_HEADERS),
    "a value with an end of line": request((("a", "x\r\ny: z"),)),
    "a value with a zero": request((("a", "x\0"),)),
    "a value that begins with a space": request((("a", " x"),)),
    "a value that ends with a tab": request((("a", "x\t"),)),
    "no method": request(less=":method"),
    "no scheme": request(less=":scheme"),
    "no path": request(less=":path"),
    "an empty path": request(path=""),
    "two paths": headers(block(((":path", "/"), *pseudo(), *OWN)), 1, END_HEADERS),
    "a method behind a header": headers(
        block((*pseudo()[1:], *OWN, pseudo()[0])), 1, END_HEADERS),
    "what only responses begin with": headers(
        block((*pseudo(), (":status", "200"), *OWN)), 1, END_HEADERS),
    "what no request begins with": headers(
        block((*pseudo(), (":nothing", "x"), *OWN)), 1, END_HEADERS),
    "a header of connections": request((("connection", "close"),)),
    "a header of kept connections": request((("keep-alive", "1"),)),
    "a header of proxies": request((("proxy-connection", "close"),)),
    "chunks": request((("transfer-encoding", "chunked"),)),
    "an upgrade": request((("upgrade", "h2c"),)),
    "trailers of another kind": request((("te", "gzip"),)),
    "a length that is no number": request((("content-length", "x"),)),
    "a length below 0": request((("content-length", "-1"),)),
    "two lengths": request((("content-length", "5"), ("content-length", "6"))),
    "less data than announced": request((("content-length", "6"),))
    + frame(DATA, END_STREAM, 1, message()),
    "more data than announced": request((("content-length", "4"),))
    + frame(DATA, END_STREAM, 1, message()),
    "no data where some was announced": headers(head(more=(("content-length", "5"),))),
    "less data than announced, and trailers": request((("content-length", "6"),))
    + frame(DATA, 0, 1, message()) + headers(block((("a", "b"),))),
    "headers twice": OPEN + headers(head(), 1, END_HEADERS),
    "a request twice": OPEN + headers(head()),
    "trailers that do not end": OPEN + frame(DATA, 0, 1, message())
    + headers(block((("a", "b"),)), 1, END_HEADERS),
    "trailers with a path": OPEN + frame(DATA, 0, 1, message()) + headers(block(((":path", "/"),))),
    "trailers with a scheme": OPEN + frame(DATA, 0, 1, message())
    + headers(block(((":scheme", "http"),))),
    "trailers with an uppercase name": OPEN + frame(DATA, 0, 1, message())
    + headers(block((("Content", "x"),))),
    "trailers with a header of connections": OPEN + frame(DATA, 0, 1, message())
    + headers(block((("connection", "close"),))),
    "a window of nothing": OPEN + update(1, 0),
}  # fmt: skip
WATCHED = whole(1, WATCH)
STREAM_FAULTS: dict[str, tuple[bytes, tuple[int, ...]]] = {
    **{name: (sent, PROTOCOL) for name, sent in MALFORMED.items()},
    "data behind what the client ended": (WATCHED + frame(DATA, 0, 1, b"x"), (STREAM_CLOSED,)),
    "headers behind what the client ended": (WATCHED + headers(head()), (STREAM_CLOSED,)),
    "a priority of four bytes": (OPEN + frame(PRIORITY, 0, 1, bytes(4)), SIZE),
    "a window that is too wide": (OPEN + update(1, LARGEST_WINDOW), (FLOW_CONTROL_ERROR,)),
    "two windows that are too wide": (
        OPEN + update(1, 2**30) + update(1, 2**30), (FLOW_CONTROL_ERROR,)),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAM_FAULTS)
def test_faults_that_end_a_stream(door: Door, name: str) -> None:
    sent, codes = STREAM_FAULTS[name]
    with Picky(door.port) as client:
        client.send(sent)
        assert client.read(lambda: client.on(1).reset is not None or client.gone is not None)
        if client.gone is not None:
            assert client.gone in codes
            return
        assert client.on(1).reset in codes
        # The tables of header blocks are still the same on both sides.
        client.send(
            headers(head(more=()) + literal("kept", "here", 0x40), 3, END_HEADERS),
            frame(DATA, END_STREAM, 3, message()),
        )
        assert client.answer(3).status == "0"
        client.send(headers(head() + b"\xbe", 5, END_HEADERS))
        client.send(frame(DATA, END_STREAM, 5, message()))
        assert client.answer(5).status == "0"


def test_frames_on_a_stream_that_the_client_has_reset(door: Door) -> None:
    with Picky(door.port) as client:
        client.send(whole(1, WATCH))
        assert client.read(lambda: bool(client.on(1).data))
        client.send(frame(RESET, 0, 1, struct.pack(">I", CANCEL)))
        client.send(frame(DATA, 0, 1, b"x"))
        assert client.read(lambda: client.on(1).reset is not None or client.gone is not None)
        assert STREAM_CLOSED in (client.on(1).reset, client.gone)


def test_what_was_on_its_way_is_no_fault(door: Door) -> None:
    """Of streams that the server has reset more may come, and windows of streams that ended."""
    with Picky(door.port) as client:
        client.send(OPEN, update(1, 0))
        assert client.answer(1).reset == PROTOCOL_ERROR
        client.send(
            frame(DATA, END_STREAM, 1, message()),
            update(1, 5),
            frame(RESET, 0, 1, bytes(4)),
            frame(PRIORITY, 0, 1, FIVE),
        )
        client.check(3)
        client.send(update(3, 5), frame(RESET, 0, 3, bytes(4)), frame(PRIORITY, 0, 3, FIVE))
        client.check(5)
        assert client.gone is None
