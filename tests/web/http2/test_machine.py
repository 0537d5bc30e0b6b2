"""The machine of a connection: frames in any pieces, windows, the lives of streams, its limits."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import hpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.web.http2 import frames, limits
from soliton.web.http2.limits import CONNECTION_WINDOW, STREAM_WINDOW, Http2Limits
from soliton.web.http2.requests import Head
from tests.web.http2.client import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    PUSH_PROMISE,
    REQUEST,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    WITH_PRIORITY,
    Wire,
    frame,
    frames_in,
    number,
    request,
    settings,
)

INITIAL_WINDOW, MAX_FRAME, PUSH = 4, 5, 2


def data(stream: int, body: bytes = b"", *, ended: bool = True) -> bytes:
    return frame(DATA, END_STREAM if ended else 0, stream, body)


def widened(stream: int, count: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream, number(count))


def test_it_says_what_it_wants_before_anything_has_come() -> None:
    wire = Wire(begins=False, limits=Http2Limits(streams=7))
    first, second = wire.sent()
    assert first.kind == SETTINGS
    pairs = {first.body[at + 1]: first.body[at + 2 : at + 6] for at in range(0, 18, 6)}
    assert pairs == {3: number(7), 4: number(STREAM_WINDOW), 6: number(16_384)}
    assert second == (WINDOW_UPDATE, 0, 0, number(CONNECTION_WINDOW - 65_535))
    wire.feed(PREFACE + settings())
    assert wire.sent() == [(SETTINGS, ACK, 0, b"")]


# --- a conversation, in any pieces ----------------------------------------------------------------


def conversation() -> bytes:
    """All kinds of frames, with header blocks that fill the table, padding and continuations."""
    encoder = hpack.Encoder()
    made = PREFACE + settings((INITIAL_WINDOW, 20), (99, 1)) + frame(SETTINGS, ACK)
    for stream in range(1, 21, 2):
        more = (("x-number", str(stream)), ("te", "trailers"))
        block = encoder.encode((*REQUEST, *more), huffman=stream % 4 == 1)
        flags, head = 0, block
        if stream % 3 == 1:
            flags, head = PADDED | WITH_PRIORITY, b"\x05" + bytes(5) + block + bytes(5)
            made += frame(HEADERS, flags | END_HEADERS, stream, head)
        else:
            made += frame(HEADERS, flags, stream, head[:3]) + frame(
                CONTINUATION, 0, stream, head[3:9]
            )
            made += frame(CONTINUATION, END_HEADERS, stream, head[9:])
        made += frame(77, 255, stream, b"unknown") + frame(PRIORITY, 0, stream, bytes(5))
        made += data(stream, b"a" * stream, ended=False) + frame(PING, 0, 0, b"pingping")
        made += frame(DATA, PADDED | END_STREAM, stream, b"\x03" + b"b" * 9 + bytes(3))
        made += widened(stream, 30) + widened(0, 50)
    return made + frame(GOAWAY, 0, 0, number(0) + number(0) + b"bye")


def heard(pieces: list[bytes]) -> tuple[list[tuple[object, ...]], bytes]:
    wire = Wire(b"x" * 40, begins=False)
    wire.feed(*pieces)
    assert not wire.machine.is_over
    return wire.told, wire.machine.out.take()


WHOLE = conversation()
TOLD, SENT = heard([WHOLE])


def test_a_conversation() -> None:
    bodies = {each[1]: each[2] for each in TOLD if each[0] == "body"}
    assert bodies == {stream: b"a" * stream + b"b" * 9 for stream in range(1, 21, 2)}
    fields = {each[1]: each[3] for each in TOLD if each[0] == "request"}
    assert fields[5] == ((b"x-number", b"5"), (b"te", b"trailers"))
    assert [each for each in TOLD if each[0] == "closed"] == [
        ("closed", stream) for stream in range(1, 21, 2)
    ]
    sent = frames_in(SENT)
    for stream in range(1, 21, 2):
        answer = [each for each in sent if each.stream == stream]
        assert b"".join(each.body for each in answer if each.kind == DATA) == b"x" * 40
        assert [each.flags for each in answer if each.kind == HEADERS] == [4, 5]
    assert [each.body for each in sent if each.kind == PING] == [b"pingping"] * 10


def test_a_byte_at_a_time() -> None:
    assert heard([WHOLE[at : at + 1] for at in range(len(WHOLE))]) == (TOLD, SENT)


@given(st.lists(st.integers(0, len(WHOLE)), max_size=60))
def test_in_any_pieces(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(WHOLE)]
    pieces = [WHOLE[a:b] for a, b in pairwise(places)]
    assert heard(pieces) == (TOLD, SENT)


@given(st.randoms(use_true_random=False), st.integers(1, 8))
def test_what_is_damaged_ends_with_a_code_or_goes_on(chance: random.Random, count: int) -> None:
    damaged = bytearray(WHOLE)
    for _ in range(count):
        damaged[chance.randrange(len(PREFACE), len(WHOLE))] = chance.randrange(256)
    wire = Wire(b"x" * 40, begins=False)
    wire.feed(bytes(damaged))
    sent = wire.sent()
    assert wire.machine.is_over == (sent[-1].kind == GOAWAY)
    opened = {each[1] for each in wire.told if each[0] == "request"}
    closed = [each[1] for each in wire.told if each[0] == "closed"]
    assert set(closed) == opened - wire.machine.streams.keys() and len(closed) == len(set(closed))


@given(st.binary(max_size=300))
def test_any_bytes_behind_the_settings(garbage: bytes) -> None:
    wire = Wire(b"x")
    wire.feed(garbage)
    wire.sent()


# --- faults ---------------------------------------------------------------------------------------

CALM, CLOSED, SIZE, FLOW, PROTOCOL, COMPRESSION = 11, 5, 6, 3, 1, 9
OPEN = request(1)
ENDED = request(1, ended=True)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (data(0, b"x"), PROTOCOL),
        (data(3, b"x"), PROTOCOL),
        (OPEN + frame(DATA, PADDED, 1, b"\x01"), PROTOCOL),
        (OPEN + frame(DATA, PADDED, 1, b""), SIZE),
        (OPEN + data(1, bytes(16_385)), SIZE),
        (request(2), PROTOCOL),
        (request(0), PROTOCOL),
        (request(5) + request(3), PROTOCOL),
        (frame(HEADERS, END_HEADERS, 1, b"\x80"), COMPRESSION),
        (frame(HEADERS, END_HEADERS | PADDED, 1, b"\x09abc"), PROTOCOL),
        (frame(HEADERS, END_HEADERS | WITH_PRIORITY, 1, b"abc"), SIZE),
        (frame(HEADERS, 0, 1, b"\x82") + data(1), PROTOCOL),
        (frame(HEADERS, 0, 1, b"\x82") + frame(CONTINUATION, 4, 3, b""), PROTOCOL),
        (frame(HEADERS, 0, 1, b"\x82") + frame(PING, 0, 0, bytes(8)), PROTOCOL),
        (frame(CONTINUATION, END_HEADERS, 1, b"\x82"), PROTOCOL),
        (frame(PRIORITY, 0, 0, bytes(5)), PROTOCOL),
        (frame(PRIORITY, 0, 1, bytes(4)), SIZE),
        (frame(RST_STREAM, 0, 0, number(8)), PROTOCOL),
        (frame(RST_STREAM, 0, 1, number(8)), PROTOCOL),
        (OPEN + frame(RST_STREAM, 0, 1, b"123"), SIZE),
        (frame(SETTINGS, 0, 1), PROTOCOL),
        (frame(SETTINGS, 0, 0, b"12345"), SIZE),
        (frame(SETTINGS, ACK, 0, bytes(6)), SIZE),
        (settings((PUSH, 2)), PROTOCOL),
        (settings((INITIAL_WINDOW, 2**31)), FLOW),
        (settings((MAX_FRAME, 16_383)), PROTOCOL),
        (settings((MAX_FRAME, 2**24)), PROTOCOL),
        (frame(PUSH_PROMISE, 4, 1, bytes(4)), PROTOCOL),
        (frame(PING, 0, 1, bytes(8)), PROTOCOL),
        (frame(PING, 0, 0, bytes(7)), SIZE),
        (frame(GOAWAY, 0, 1, bytes(8)), PROTOCOL),
        (frame(GOAWAY, 0, 0, bytes(7)), SIZE),
        (widened(0, 0), PROTOCOL),
        (widened(0, 2**31 - 1), FLOW),
        (widened(1, 1), PROTOCOL),
        (frame(WINDOW_UPDATE, 0, 0, b"123"), SIZE),
        (OPEN + widened(1, 2**31 - 1 - 65_535) + settings((INITIAL_WINDOW, 65_536)), FLOW),
    ],
)
def test_what_ends_a_connection(sent: bytes, code: int) -> None:
    wire = Wire().feed(sent)
    assert wire.machine.is_over
    assert wire.codes(GOAWAY) == [code]
    # Nothing else is looked at.
    assert wire.feed(request(9)).sent() == [] and wire.machine.is_over


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (ENDED + data(1), CLOSED),
        (ENDED + request(1, ended=True), CLOSED),
        (OPEN + request(1, ended=True), PROTOCOL),
        (OPEN + frame(HEADERS, END_HEADERS, 1, b"\x00\x01a\x01b"), PROTOCOL),
        (OPEN + widened(1, 0), PROTOCOL),
        (OPEN + widened(1, 2**31 - 1), FLOW),
        (request(1, more=(("content-length", "3"),)) + data(1, b"ab"), PROTOCOL),
        (request(1, more=(("content-length", "3"),)) + data(1, b"abcd"), PROTOCOL),
        (request(1, ended=True, more=(("content-length", "1"),)), PROTOCOL),
        (request(1, more=(("content-length", "x"),)), PROTOCOL),
        (request(1, more=(("host", "there"),)), PROTOCOL),
        (request(1, more=(("host", "here"), ("host", "here"))), PROTOCOL),
        (request(1, more=(("x-api-key", "a"), ("b", "c"), ("x-api-key", "a"))), PROTOCOL),
        (request(1, more=((":authority", "here"),)), PROTOCOL),
        (request(1, more=((":path", "/b"),)), PROTOCOL),
        (request(1, more=((":status", "200"),)), PROTOCOL),
        (request(1, more=(("a", "b"), (":x", "c"))), PROTOCOL),
        (request(1, more=(("Upper", "b"),)), PROTOCOL),
        (request(1, more=(("connection", "close"),)), PROTOCOL),
        (request(1, more=(("te", "gzip"),)), PROTOCOL),
        (request(1, more=(("a", "b\r\nc"),)), PROTOCOL),
        (request(1, more=(("a", " b"),)), PROTOCOL),
        (frame(HEADERS, END_HEADERS, 1, b"\x83\x86"), PROTOCOL),
    ],
)
def test_what_ends_a_stream(sent: bytes, code: int) -> None:
    wire = Wire().feed(sent)
    assert not wire.machine.is_over and not wire.machine.streams
    found = [each for each in wire.sent() if each.kind in (RST_STREAM, GOAWAY)]
    assert found == [(RST_STREAM, 0, 1, number(code))]
    # What was on its way does not matter, others go on.
    wire.feed(data(1, b"late"), frame(RST_STREAM, 0, 1, number(8)), widened(1, 1), request(3))
    assert wire.told[-1][:2] == ("request", 3) and wire.sent() == []


@pytest.mark.parametrize(
    ("authority", "hosts", "is_good"),
    [
        (None, (), True),
        (None, ("here:1",), True),
        (None, ("here", "here"), False),
        (None, ("he/re",), False),
        ("here", ("HERE",), True),
        ("[::1]:1", (), True),
        ("user@here", (), False),
        ("here, there", (), False),
        ("here:x", (), False),
    ],
)
def test_the_host_of_a_request(
    authority: str | None, hosts: tuple[str, ...], *, is_good: bool
) -> None:
    pseudo = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/a")]
    if authority is not None:
        pseudo.append((b":authority", authority.encode()))
    head = Head([*pseudo, *[(b"host", each.encode()) for each in hosts]], 100)
    assert head.is_bad is not is_good


def test_trailers_of_a_request() -> None:
    wire = Wire().feed(OPEN, data(1, b"abc", ended=False))
    wire.feed(frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x00\x01a\x01b"))
    assert wire.told[-1] == ("body", 1, b"abc")


def test_frames_on_streams_that_have_ended() -> None:
    for late, code in ((data(1, b"x"), CLOSED), (request(1), CLOSED)):
        wire = Wire(b"answer").feed(ENDED)
        assert wire.told[-1] == ("closed", 1)
        wire.sent()
        # Those that clients may send before they know of the end.
        wire.feed(
            widened(1, 5), frame(PRIORITY, 0, 1, bytes(5)), frame(RST_STREAM, 0, 1, number(0))
        )
        assert wire.sent() == []
        assert wire.feed(late).codes(GOAWAY) == [code]


def test_a_stream_that_its_client_has_reset() -> None:
    wire = Wire().feed(OPEN, frame(RST_STREAM, 0, 1, number(8)))
    assert wire.told[-1] == ("closed", 1)
    assert wire.feed(data(1, b"x")).codes(RST_STREAM) == [CLOSED]


def test_an_answer_before_the_request_has_ended() -> None:
    """The client is told to send no more of it, and what it has sent does not matter."""
    wire = Wire().feed(OPEN)
    wire.machine.out.answer(wire.handler.streams[1], b"\x88", b"early", b"\x88")
    assert [each.kind for each in wire.sent()] == [HEADERS, DATA, HEADERS, RST_STREAM]
    wire.feed(*(data(1, bytes(16_384), ended=False) for _ in range(100)))
    assert not wire.machine.is_over
    given = [each for each in wire.sent() if each.kind == WINDOW_UPDATE]
    assert given and all(each.stream == 0 for each in given)


# --- windows --------------------------------------------------------------------------------------


def test_data_waits_for_both_windows() -> None:
    wire = Wire(b"x" * 100, begins=False)
    wire.feed(PREFACE + settings((INITIAL_WINDOW, 10)), ENDED)
    stream = wire.handler.streams[1]
    sizes = [len(each.body) for each in wire.sent() if each.kind == DATA]
    assert sizes == [10] and stream.size == 90
    wire.feed(widened(1, 30))
    assert [len(each.body) for each in wire.sent() if each.kind == DATA] == [30]
    # What was sent counts when the client takes some of the window back.
    wire.feed(settings((INITIAL_WINDOW, 5)))
    assert stream.window == -5
    wire.feed(widened(1, 5))
    assert [each.kind for each in wire.sent()] == [SETTINGS]
    wire.feed(settings((INITIAL_WINDOW, 1_000)))
    found = [each for each in wire.sent() if each.stream == 1]
    assert [(each.kind, len(each.body)) for each in found] == [(DATA, 60), (HEADERS, 1)]
    assert found[-1].flags == END_STREAM | END_HEADERS
    assert wire.told[-2:] == [("closed", 1), ("sent", 1)]


def test_streams_share_the_connection_in_turns() -> None:
    wire = Wire(b"x" * 60_000, begins=False)
    wire.feed(PREFACE + settings((INITIAL_WINDOW, 2**31 - 1)))
    wire.feed(*(request(each, ended=True) for each in (1, 3, 5)))
    assert sum(len(each.body) for each in wire.sent() if each.kind == DATA) == 65_535
    for _ in range(8):
        wire.feed(widened(0, 16_384))
    found = [each.stream for each in wire.sent() if each.kind == DATA]
    assert {found.count(each) for each in (3, 5)} <= {4, 5}
    assert wire.machine.out.window == 65_535 + 8 * 16_384 - 180_000


def test_a_system_that_takes_no_more() -> None:
    """All that a client allows is not put into memory at once."""
    wire = Wire(begins=False)
    wire.feed(PREFACE + settings((INITIAL_WINDOW, 2**31 - 1)), widened(0, 2**30), OPEN)
    wire.sent()
    stream, out = wire.handler.streams[1], wire.machine.out
    out.begin(stream, b"\x88")
    assert not out.send(stream, bytes(1_000_000))
    assert limits.OUTPUT_BYTES <= out.size < limits.OUTPUT_BYTES + 16_500
    assert out.waits
    sizes = 0
    for _ in range(5):
        sizes += sum(len(each.body) for each in wire.sent() if each.kind == DATA)
        out.is_paused = not out.is_paused
        before = out.size
        out.pump()
        assert out.is_paused == (out.size == before)
    assert sizes + stream.size + sum(len(each.body) for each in wire.sent()) == 1_000_000


def test_a_stream_that_is_held_gets_no_more_room() -> None:
    wire = Wire().feed(OPEN)
    stream = wire.handler.streams[1]
    stream.is_held = True
    for _ in range(STREAM_WINDOW // 16_384):
        wire.feed(data(1, bytes(16_384), ended=False))
    assert all(each.stream == 0 for each in wire.sent())
    wire.machine.take_more(stream)
    assert wire.sent() == [(WINDOW_UPDATE, 0, 1, number(STREAM_WINDOW))]
    stream.is_held = True
    wire.feed(*(data(1, bytes(16_384), ended=False) for _ in range(STREAM_WINDOW // 16_384)))
    wire.sent()
    assert wire.feed(data(1, b"x", ended=False)).codes(RST_STREAM) == [FLOW]


# --- limits ---------------------------------------------------------------------------------------


def test_streams_at_a_time() -> None:
    wire = Wire(limits=Http2Limits(streams=2)).feed(*map(request, (1, 3, 5)))
    assert len(wire.machine.streams) == 2
    assert wire.codes(RST_STREAM) == [frames.REFUSED_STREAM]
    wire.feed(frame(RST_STREAM, 0, 1, number(8)), request(7))
    assert set(wire.machine.streams) == {3, 7}


def reset(n: int) -> bytes:
    return request(2 * n + 1) + frame(RST_STREAM, 0, 2 * n + 1, number(8))


def faulty(n: int) -> bytes:
    return request(2 * n + 1) + widened(2 * n + 1, 0)


def empty(n: int) -> bytes:
    return (b"" if n else OPEN) + data(1, ended=False)


@pytest.mark.parametrize(
    ("made", "most", "words"),
    [
        (reset, limits.MAX_RESETS, b"too_many_resets"),
        (faulty, limits.MAX_RESETS, b"too_many_resets"),
        (lambda _: settings(), limits.MAX_SETTINGS - 1, b"too_many_settings"),
        (lambda _: frame(PRIORITY, 0, 1, bytes(5)), limits.MAX_EMPTY, b"too_many_frames"),
        (lambda _: frame(200), limits.MAX_EMPTY, b"too_many_frames"),
        (lambda _: frame(PING, ACK, 0, bytes(8)), limits.MAX_EMPTY, b"too_many_frames"),
        (empty, limits.MAX_EMPTY, b"too_many_frames"),
        (lambda _: widened(0, 1), limits.MAX_WINDOW_UPDATES, b"too_many_window_updates"),
        (lambda _: frame(PING, 0, 0, bytes(8)), limits.PING_STRIKES + 1, b"too_many_pings"),
    ],
)
def test_floods(made: Callable[[int], bytes], most: int, words: bytes) -> None:
    wire = Wire()
    wire.feed(b"".join(map(made, range(most))))
    assert not wire.machine.is_over
    wire.sent()
    [last] = [each for each in wire.feed(made(most)).sent() if each.kind == GOAWAY]
    assert last.body[4:] == number(CALM) + words
    # As many in a longer time are none.
    wire = Wire()
    for at in range(4):
        wire.now = at * 1_000.0
        wire.feed(b"".join(map(made, range(at * most // 2, (at + 1) * most // 2))))
        wire.sent()
    assert not wire.machine.is_over


def test_window_updates_for_what_is_sent() -> None:
    """Clients widen windows as often as they are sent something."""
    wire = Wire(b"x")
    for stream in range(1, 60_001, 2):
        wire.feed(request(stream, ended=True), widened(0, 1) + widened(stream, 1))
        wire.machine.out.take()
    assert not wire.machine.is_over


def test_pings_that_come_with_answers() -> None:
    wire = Wire(b"x")
    for stream in range(1, 200, 2):
        wire.feed(request(stream, ended=True), frame(PING, 0, 0, bytes(8)))
    assert not wire.machine.is_over


def test_header_blocks_have_limits() -> None:
    wire = Wire().feed(frame(HEADERS, 0, 1, b"\x83"))
    for _ in range(limits.CONTINUATIONS):
        wire.feed(frame(CONTINUATION, 0, 1, b""))
    assert not wire.machine.is_over
    assert wire.feed(frame(CONTINUATION, 0, 1, b"")).codes(GOAWAY) == [CALM]
    wire = Wire().feed(
        frame(HEADERS, 0, 1, bytes(16_384)), frame(CONTINUATION, 0, 1, bytes(16_384))
    )
    assert not wire.machine.is_over
    assert wire.feed(frame(CONTINUATION, 0, 1, b"x")).codes(GOAWAY) == [CALM]


def test_long_headers_are_refused_and_very_long_ones_end_the_connection() -> None:
    entry = b"\x40\x01a\x7f\xa1\x1e" + b"b" * 4_000
    wire = Wire()
    for stream, count, outcome in ((1, 4, False), (3, 5, True)):
        block = request(stream)[9:] + entry + b"\xbe" * (count - 1)
        wire.feed(frame(HEADERS, END_HEADERS | END_STREAM, stream, block))
        assert wire.told[-1][:2] == ("request", stream)
        fields = wire.told[-1][3]
        assert isinstance(fields, tuple) and (len(fields) < count) == outcome
    block = request(5)[9:] + entry + b"\xbe" * 20
    assert wire.feed(frame(HEADERS, END_HEADERS, 5, block)).codes(GOAWAY) == [CALM]


def test_blocks_that_are_known_are_read_anew_when_the_table_has_changed() -> None:
    keeps = bytes.fromhex("400161") + b"\x01"
    plain = request(1)[9:]
    wire = Wire().feed(frame(HEADERS, 5, 1, plain + keeps + b"b"))
    wire.feed(*(frame(HEADERS, 5, each, plain + b"\xbe") for each in (3, 5)))
    wire.feed(frame(HEADERS, 5, 7, plain + keeps + b"c"), frame(HEADERS, 5, 9, plain + b"\xbe"))
    found = [each[3] for each in wire.told if each[0] == "request"]
    assert found == [((b"a", value),) for value in (b"b", b"b", b"b", b"c", b"c")]
    kept = wire.machine._blocks._known
    for each in range(200):
        wire.feed(request(11 + 2 * each, ended=True, more=(("n", str(each)),)))
    assert len(kept) <= limits.BLOCKS_KEPT


def test_what_a_short_block_means_is_not_kept_where_it_is_long() -> None:
    """A byte may mean a header of kilobytes; the client chooses how many blocks it sends."""
    wire = Wire().feed(frame(HEADERS, 5, 1, request(1)[9:] + b"\x40\x01a\x7f\x01" + b"b" * 128))
    for each in range(3, 63, 2):
        wire.feed(frame(HEADERS, 5, each, request(each)[9:] + b"\xbe" * each))
    kept = wire.machine._blocks._known.values()
    most = limits.KEPT_LIST_BYTES
    assert 0 < max(sum(32 + len(n) + len(v) for n, v in each.fields) for each in kept) <= most


def test_goaway_never_names_a_later_stream() -> None:
    """RFC 9113, section 6.8: what was ignored after the first one is not said to be taken."""
    wire = Wire().feed(request(1))
    wire.machine.leave()
    wire.feed(request(3), request(5), data(0, b"x"))
    assert [each.body[:4] for each in wire.sent() if each.kind == GOAWAY] == [number(1)] * 2


def test_after_goaway_nothing_begins() -> None:
    wire = Wire().feed(request(1))
    wire.machine.leave()
    assert wire.sent()[-1] == (GOAWAY, 0, 0, number(1) + number(0))
    wire.feed(request(3), data(3, b"x"), data(1, b"rest"))
    assert wire.told[-1] == ("body", 1, b"rest") and set(wire.machine.streams) == {1}
    assert wire.sent() == []


@pytest.mark.parametrize("first", [b"GET / HTTP/1.1\r\n", frame(SETTINGS), PREFACE[:-1] + b"\r"])
def test_what_is_no_preface(first: bytes) -> None:
    assert Wire(begins=False).feed(first).codes(GOAWAY) == [PROTOCOL]


@pytest.mark.parametrize("first", [frame(PING, 0, 0, bytes(8)), frame(SETTINGS, ACK), request(1)])
def test_settings_come_first(first: bytes) -> None:
    assert Wire(begins=False).feed(PREFACE + first).codes(GOAWAY) == [PROTOCOL]
