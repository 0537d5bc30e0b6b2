"""What is right over HTTP/2 however odd it looks, calls that are odd, and windows."""

from __future__ import annotations

import gzip
import os
import random
import struct

import pytest

from tests.grpc_api.door import BLOCK, LONG, LONG_BYTES, LONG_ENTRIES, REFLECTION, WATCH, Door
from tests.grpc_api.picky import (
    ACK,
    AWAY,
    COMPRESSION_ERROR,
    DATA,
    END_HEADERS,
    END_STREAM,
    FLOW_CONTROL_ERROR,
    FRAME_SIZE,
    HEADERS,
    HEIGHT,
    HEIGHT_BYTES,
    INITIAL_WINDOW,
    LARGEST_WINDOW,
    MORE,
    NO_ERROR,
    OWN,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    PUSH,
    TABLE_SIZE,
    USUAL_FRAME,
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

LAST = 2**31 - 1
SEEDS = 500 if os.environ.get("SOLITON_TESTS") == "long" else 15
WINDOWS = (0, 1, 9, 1_000, USUAL_FRAME, 65_535, 1_000_000)
RESERVED = 1 << 31
OPEN = opened(1)
FIVE = bytes(4) + b"\x10"
UNKNOWN_KIND, UNKNOWN_SETTING = 0x42, 0x99


# --- what is right --------------------------------------------------------------------------------

PATH_IN_HUFFMAN = bytes.fromhex("41 8c f1e3c2e5f23a6ba0ab90f4ff")
""":authority www.example.com (RFC 7541, appendix C.4.1)."""
RIGHT: dict[str, bytes] = {
    "as always": whole(1),
    "padded data": OPEN + frame(DATA, END_STREAM | PADDED, 1, b"\3" + message() + bytes(3)),
    "data padded with nothing": OPEN + frame(DATA, END_STREAM | PADDED, 1, b"\0" + message()),
    "padded headers": headers(b"\5" + head() + bytes(5), 1, END_HEADERS | PADDED)
    + frame(DATA, END_STREAM, 1, message()),
    "padded headers with a priority": headers(
        b"\5" + FIVE + head() + bytes(5), 1, END_HEADERS | PADDED | WITH_PRIORITY)
    + frame(DATA, END_STREAM, 1, message()),
    "data byte by byte": OPEN
    + b"".join(frame(DATA, 0, 1, bytes(1)) for _ in range(5)) + frame(DATA, END_STREAM, 1),
    "empty data": OPEN + frame(DATA, 0, 1) * 20 + frame(DATA, END_STREAM, 1, message()),
    "trailers": OPEN + frame(DATA, 0, 1, message()) + headers(block((("a", "b"),))),
    "announced data": opened(1, more=(("content-length", "5"),))
    + frame(DATA, END_STREAM, 1, message()),
    "data announced twice": opened(1, more=(("content-length", "5"),) * 2)
    + frame(DATA, END_STREAM, 1, message()),
    "a header block in pieces": frame(HEADERS, 0, 1, head()[:7]) + frame(MORE, 0, 1, head()[7:8])
    + frame(MORE, 0, 1) + frame(MORE, END_HEADERS, 1, head()[8:])
    + frame(DATA, END_STREAM, 1, message()),
    "all of a header block in its continuation": frame(HEADERS, 0, 1)
    + frame(MORE, END_HEADERS, 1, head()) + frame(DATA, END_STREAM, 1, message()),
    "a priority before": frame(PRIORITY, 0, 1, FIVE) + whole(1),
    "a priority of another stream": frame(PRIORITY, 0, 101, FIVE) + whole(1),
    "unknown frames": frame(UNKNOWN_KIND, 0xFF, 0, b"x") + OPEN
    + frame(UNKNOWN_KIND, 0xFF, 1, bytes(USUAL_FRAME)) + frame(DATA, END_STREAM, 1, message()),
    "unknown flags": frame(HEADERS, END_HEADERS | 0xD2, 1, head())
    + frame(DATA, END_STREAM | 0xF6, 1, message()),
    "unknown settings": settings((UNKNOWN_SETTING, 2**32 - 1), (0, 1)) + whole(1),
    "settings at their limits": settings(
        (PUSH, 1), (FRAME_SIZE, 2**24 - 1), (INITIAL_WINDOW, LARGEST_WINDOW)) + whole(1),
    "a ping": frame(PING, 0x0E, 0, b"whatever") + whole(1),
    "an answer to no ping": frame(PING, ACK, 0, b"whatever") + whole(1),
    "a farewell": frame(AWAY, 0, 0, bytes(8) + b"bye") + whole(1),
    "the reserved bit": frame(HEADERS, END_HEADERS, RESERVED | 1, head())
    + frame(DATA, END_STREAM, RESERVED | 1, message()) + update(RESERVED, 1),
    "the widest window": update(0, LARGEST_WINDOW - 65_535) + whole(1),
    "the widest window of a stream": OPEN + update(1, LARGEST_WINDOW - 65_535)
    + frame(DATA, END_STREAM, 1, message()),
    "compressed texts": headers(block(pseudo()[:3]) + PATH_IN_HUFFMAN + block(OWN), 1, END_HEADERS)
    + frame(DATA, END_STREAM, 1, message()),
    "a text that is compressed to nothing": headers(head() + b"\0\1a\x80", 1, END_HEADERS)
    + frame(DATA, END_STREAM, 1, message()),
    "a table without room": headers(b"\x20" + head(), 1, END_HEADERS)
    + frame(DATA, END_STREAM, 1, message()),
    "a table that is made smaller and larger": headers(
        b"\x20" + number(4_096, 5, 0x20) + head(), 1, END_HEADERS)
    + frame(DATA, END_STREAM, 1, message()),
    "headers that are never kept": headers(head() + literal("a", "b", 0x10), 1, END_HEADERS)
    + frame(DATA, END_STREAM, 1, message()),
    "known indices": headers(
        b"\x83\x86" + b"\x04" + text(HEIGHT) + block(OWN) + b"\x90", 1, END_HEADERS)
    + frame(DATA, END_STREAM, 1, message()),
    "a number longer than it needs to be": headers(
        head() + b"\0\1a\x7f\x80\x80\0" + b"b" * 127, 1, END_HEADERS)
    + frame(DATA, END_STREAM, 1, message()),
    "a value of more than ASCII": headers(head() + literal(b"a", b"\xc3\xa4\xff"), 1, END_HEADERS)
    + frame(DATA, END_STREAM, 1, message()),
    "the last stream": whole(LAST),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_served(door: Door, name: str) -> None:
    stream = LAST if name == "the last stream" else 1
    with Picky(door.port) as client:
        client.send(RIGHT[name])
        answer = client.answer(stream)
        assert (bytes(answer.data), answer.status, answer.reset) == (HEIGHT_BYTES, "0", None)
        assert (answer.headers[":status"], answer.headers["content-type"]) == (
            "200",
            "application/grpc",
        )
        if name != "the last stream":
            client.check(3)


@pytest.mark.parametrize("name", ["padded headers with a priority", "a header block in pieces"])
def test_byte_by_byte(door: Door, name: str) -> None:
    with Picky(door.port, first=b"") as client:
        client._asked.append(())
        for each in PREFACE + settings() + RIGHT[name] + whole(3):
            client.send(bytes((each,)))
        assert client.answer(1).status == "0" and client.answer(3).status == "0"


def test_a_table_that_is_used(door: Door) -> None:
    """Entries come and go as RFC 7541 says: the oldest ones leave first."""
    with Picky(door.port) as client:
        # Each counts 32 bytes beside its name and value: 40 of these fill the table.
        for each in range(50):
            client.send(
                headers(head() + literal(f"x{each:04}", "y" * 65, 0x40), 2 * each + 1, END_HEADERS),
                frame(DATA, END_STREAM, 2 * each + 1, message()),
            )
            assert client.answer(2 * each + 1).status == "0"
        oldest = 61 + 4_096 // (5 + 65 + 32)
        client.send(
            headers(head() + number(oldest, 7, 0x80), 201, END_HEADERS),
            frame(DATA, END_STREAM, 201, message()),
        )
        assert client.answer(201).status == "0"
        client.send(headers(head() + number(oldest + 1, 7, 0x80), 203))
        assert client.end() == COMPRESSION_ERROR


def test_a_client_without_a_table(door: Door) -> None:
    """It may take a block that does not say so for an error (RFC 9113, section 4.3.1)."""
    with Picky(door.port, (TABLE_SIZE, 0)) as client:
        client.check(1)
        client.check(3)
    with Picky(door.port) as client:
        client.check(1)
        client.want((TABLE_SIZE, 100))
        assert client.read(lambda: client.acknowledged == 2)
        client.check(3)
        client.want((TABLE_SIZE, 8_192))
        client.want((TABLE_SIZE, 50), (TABLE_SIZE, 4_096))
        client.check(5)


# --- calls ----------------------------------------------------------------------------------------

# Eight times what a message may have.
BOMB = gzip.compress(bytes(32 * 1024 * 1024), 9, mtime=0)
EMPTY = gzip.compress(b"", mtime=0)
GZIP = (("grpc-encoding", "gzip"),)
# The numbers of statuses are those of gRPC.
CALLS: dict[str, tuple[Pairs, bytes, tuple[str, ...]]] = {
    "a message of 4 GiB": ((), b"\0\xff\xff\xff\xff", ("8",)),
    "a message one byte too long": ((), b"\0" + struct.pack(">I", 4 * 1024 * 1024 + 1), ("8",)),
    "a bomb": (GZIP, b"\1" + struct.pack(">I", len(BOMB)) + BOMB, ("8",)),
    "a packed message": (
        GZIP, b"\1" + struct.pack(">I", len(EMPTY)) + EMPTY, ("0",)),
    "a message that is not packed": (GZIP, message(), ("0",)),
    "a packed message that is cut off": (
        GZIP, b"\1" + struct.pack(">I", 12) + EMPTY[:12], ("13",)),
    "a packed message that is none": (GZIP, b"\1" + struct.pack(">I", 5) + b"hello", ("13",)),
    "packed without a word": ((), b"\1" + struct.pack(">I", 5) + b"hello", ("13",)),
    "packed in an unknown way": ((("grpc-encoding", "zstd"),), message(), ("12",)),
    "an unknown flag": ((), b"\2" + struct.pack(">I", 0), ("13",)),
    "no message": ((), b"", ("12", "13")),
    "half a prefix": ((), b"\0\0\0", ("12", "13")),
    "half a message": ((), b"\0\0\0\0\5ab", ("12", "13")),
    "two messages": ((), message() * 2, ("12", "13")),
    "bytes behind a message": ((), message() + b"x", ("12", "13")),
    "no protobuf": ((), message(b"\xff"), ("2", "13")),
    "a time that is none": ((("grpc-timeout", "soon"),), message(), ("13", "3")),
    "a time of too many digits": ((("grpc-timeout", "123456789S"),), message(), ("13", "3")),
    "a time below 0": ((("grpc-timeout", "-1S"),), message(), ("13", "3")),
    "a time without a unit": ((("grpc-timeout", "1"),), message(), ("13", "3")),
    "the longest time": ((("grpc-timeout", "99999999H"),), message(), ("0",)),
    "no time": ((("grpc-timeout", "0n"),), message(), ("0", "4")),
    "headers of 20,000 bytes": ((("a", "b" * 20_000),), message(), ("8",)),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_calls_that_are_odd(door: Door, name: str) -> None:
    more, data, statuses = CALLS[name]
    door.most_memory()
    before = door.most_memory()
    with Picky(door.port) as client:
        made = head(more=more)
        client.send(frame(HEADERS, 0, 1, made[:USUAL_FRAME]))
        client.send(frame(MORE, END_HEADERS, 1, made[USUAL_FRAME:]))
        for start in range(0, len(data), USUAL_FRAME):
            client.send(frame(DATA, 0, 1, data[start : start + USUAL_FRAME]))
            # The windows of the server are wider than what comes within one of its answers.
            client.settle()
        client.send(frame(DATA, END_STREAM, 1))
        answer = client.answer(1)
        assert answer.status in statuses and answer.reset in (None, NO_ERROR)
        client.check(3)
    assert door.most_memory() - before < 32 * 1024 * 1024


@pytest.mark.parametrize("timeout", ["0n", "1u", "200m"])
@pytest.mark.parametrize("path", [WATCH, REFLECTION])
def test_a_call_ends_when_its_time_is_over(door: Door, timeout: str, path: str) -> None:
    with Picky(door.port) as client:
        # The one has asked, the other may still ask.
        client.send(
            (whole if path == WATCH else opened)(1, path, more=(("grpc-timeout", timeout),))
        )
        assert client.answer(1).status == "4"
        client.check(3)


def test_a_call_that_has_more_time_than_anybody(door: Door) -> None:
    with Picky(door.port) as client:
        client.send(whole(1, WATCH, more=(("grpc-timeout", "99999999H"),)))
        assert client.read(lambda: bool(client.on(1).data))
        client.check(3)
        assert not client.on(1).is_over


def test_more_questions_than_answers_are_read(door: Door) -> None:
    """What is asked in one call waits for its answers, and no more comes than there is room for."""
    question = message(b"\x22\x80\x08" + b"x" * 1_024)
    with Picky(door.port, (INITIAL_WINDOW, 0)) as client:
        client.send(opened(1, REFLECTION))
        assert client.read(lambda: client.said.get(INITIAL_WINDOW) is not None)
        count = client.said[INITIAL_WINDOW] // len(question)
        for _ in range(count):
            client.send(frame(DATA, 0, 1, question))
        client.settle()
        assert not client.on(1).is_over and client.gone is None
        for _ in range(16):
            client.send(frame(DATA, 0, 1, question))
        assert client.read(lambda: client.on(1).reset is not None or client.gone is not None)
        assert FLOW_CONTROL_ERROR in (client.on(1).reset, client.gone)


@pytest.mark.parametrize(
    ("pairs", "status"),
    [
        (((":method", "GET"), *pseudo()[1:], *OWN), "405"),
        ((*pseudo(), ("content-type", "text/html")), "415"),
        (pseudo(), "415"),
        ((*pseudo(), ("content-type", "application/grpcx")), "415"),
    ],
)
def test_what_is_no_call(door: Door, pairs: Pairs, status: str) -> None:
    with Picky(door.port) as client:
        client.send(headers(block(pairs)))
        assert client.answer(1).headers[":status"] == status
        client.check(3)


@pytest.mark.parametrize("letter", ["a", "ä", "%", "\U0001f30a"])
def test_a_long_name_of_no_call(door: Door, letter: str) -> None:
    """What is told of it fits a frame, and what a header may have."""
    with Picky(door.port) as client:
        client.send(whole(1, "/" + letter * (12_000 // len(letter.encode()))))
        assert client.answer(1).status == "12"
        client.check(3)


# --- windows --------------------------------------------------------------------------------------


def check_long(client: Picky, stream: int) -> None:
    """The whole of a long answer has come."""
    answer = client.answer(stream)
    assert answer.status == "0" and answer.data[0] == 0
    assert len(answer.data) == 5 + int.from_bytes(answer.data[1:5], "big")
    assert len(answer.data) > LONG_BYTES * LONG_ENTRIES


def test_windows_that_widen_byte_by_byte(door: Door) -> None:
    with Picky(door.port, (INITIAL_WINDOW, 0)) as client:
        client.widens = False
        client.send(whole(1))
        assert client.read(lambda: bool(client.on(1).headers))
        for count in range(len(HEIGHT_BYTES)):
            client.settle()
            assert len(client.on(1).data) == count and not client.on(1).ended
            client.widen(1, 1)
        assert client.answer(1).data == HEIGHT_BYTES


def test_the_window_of_new_streams_changes_while_others_wait(door: Door) -> None:
    with Picky(door.port, (INITIAL_WINDOW, 100)) as client:
        client.widens = False
        client.send(whole(1, BLOCK, LONG), whole(3, BLOCK, LONG))
        assert client.read(lambda: all(len(client.on(each).data) == 100 for each in (1, 3)))
        # To 0: what was sent counts, so these are 100 bytes below nothing.
        client.want((INITIAL_WINDOW, 0))
        client.widen(1, 100)
        client.settle()
        assert len(client.on(1).data) == 100
        client.widen(1, 1)
        client.settle()
        assert (len(client.on(1).data), len(client.on(3).data)) == (101, 100)
        # And back, and to the largest one: the connection's window is what is left.
        client.want((INITIAL_WINDOW, 100))
        client.settle()
        assert (len(client.on(1).data), len(client.on(3).data)) == (201, 100)
        client.want((INITIAL_WINDOW, LARGEST_WINDOW - 101))
        assert client.read(lambda: client._window == 0)
        client.settle()
        # None of the two waits for the other one's end.
        client.widen(0, 4 * USUAL_FRAME)
        client.settle()
        assert min(len(client.on(each).data) for each in (1, 3)) > USUAL_FRAME
        client.widens = True
        client.widen(0, 300_000)
        check_long(client, 1)
        check_long(client, 3)


def test_a_narrow_window_of_the_connection(door: Door) -> None:
    """Short answers wait for it as well; what needs no window does not."""
    with Picky(door.port) as client:
        client.widens = False
        client.send(whole(1, BLOCK, LONG))
        assert client.read(lambda: client._window == 0 or len(client.on(1).data) >= 65_535)
        client.send(whole(3), whole(5, "/nothing/at-all"))
        assert client.answer(5).status == "12"
        client.settle()
        assert not client.on(3).data
        client.widens = True
        client.widen(1, 65_535)
        client.widen(0, 65_535)
        check_long(client, 1)
        assert client.answer(3).status == "0"


def test_streams_have_turns(door: Door) -> None:
    """A long answer does not keep a short one waiting that came later."""
    with Picky(door.port, (INITIAL_WINDOW, LARGEST_WINDOW)) as client:
        client.widens = False
        for stream in range(1, 21, 2):
            client.send(whole(stream, BLOCK, LONG))
        assert client.read(lambda: client._window == 0)
        client.send(whole(21))
        client.settle()
        assert not client.on(21).data
        client.widen(0, 11 * USUAL_FRAME)
        assert client.read(lambda: client.on(21).ended)
        client.widens = True
        client.widen(0, 10 * LONG_BYTES * (LONG_ENTRIES + 1))
        for stream in range(1, 21, 2):
            check_long(client, stream)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_windows_at_random(door: Door, seed: int) -> None:
    """Long and short answers, windows of all kinds, and streams that are left: no window is ever
    overrun, and whatever is still wanted comes.
    """
    chance = random.Random(seed)
    wide = chance.choice(WINDOWS)
    with Picky(door.port, (INITIAL_WINDOW, wide)) as client:
        client.widens = False
        calls: dict[int, bool] = {}
        for step in range(60):
            stream = chance.choice(list(calls) or [0])
            match chance.randrange(6):
                case 0 | 1:
                    is_long = chance.random() < 0.5
                    calls[2 * step + 1] = is_long
                    client.send(whole(2 * step + 1, *((BLOCK, LONG) if is_long else ())))
                case 2 if stream and chance.random() < 0.3:
                    del calls[stream]
                    client.leave(stream)
                case 3:
                    client.want((INITIAL_WINDOW, chance.choice(WINDOWS)))
                case 4 if stream:
                    client.widen(stream, chance.choice((1, 100, 20_000)))
                case _:
                    client.widen(0, chance.choice((1, 1_000, 70_000)))
            client.read(lambda: client.is_closed, chance.choice((0, 0.001, 0.01)))
        client.settle()
        client.widen(0, LARGEST_WINDOW // 4)
        for stream in calls:
            if not client.on(stream).is_over:
                client.widen(stream, LARGEST_WINDOW // 4)
        for stream, is_long in calls.items():
            if is_long:
                check_long(client, stream)
            else:
                assert client.answer(stream).data == HEIGHT_BYTES
        assert client.gone is None
