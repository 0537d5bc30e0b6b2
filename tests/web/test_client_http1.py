"""The machine that reads responses: the same events however the bytes come."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.web.client_http1 import (
    MAX_HEAD_BYTES,
    Data,
    End,
    Event,
    Head,
    ProtocolError,
    ResponseReader,
    header_lines,
    request_bytes,
)

LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A:  b\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nT: 1\r\n\r\n"
)
EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No\r\nX: 1\r\n\r\n"
CLOSING = b"HTTP/1.1 400 Bad\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello"
OLD = b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello"
UNTIL_THE_END = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nhello"

# What is sent, and what it says: the head, the body, whether the connection takes another request.
RESPONSES: list[tuple[bytes, Head, bytes, bool]] = [
    (LENGTH, Head(200, ((b"content-length", b"5"), (b"x-a", b"b"))), b"hello", True),
    (CHUNKED, Head(404, ((b"transfer-encoding", b"chunked"),)), b"hello", True),
    (EARLY, Head(204, ((b"x", b"1"),)), b"", True),
    (CLOSING, Head(400, ((b"connection", b"close"), (b"content-length", b"5"))), b"hello", False),
    (OLD, Head(200, ((b"content-length", b"5"),)), b"hello", False),
]


def machine_for(*, has_body: bool = True) -> ResponseReader:
    machine = ResponseReader()
    machine.expect(has_body=has_body)
    return machine


def read(pieces: list[bytes], reader: ResponseReader | None = None) -> list[Event]:
    machine = reader or machine_for()
    return [event for piece in pieces for event in machine.receive(piece)]


def said(events: list[Event]) -> tuple[Head, bytes, bool]:
    head, *pieces, end = events
    assert isinstance(head, Head) and isinstance(end, End)
    found = [piece.data for piece in pieces if isinstance(piece, Data)]
    assert len(found) == len(pieces)
    return head, b"".join(found), end.keeps_alive


@pytest.mark.parametrize(("sent", "head", "body", "keeps_alive"), RESPONSES)
def test_a_byte_at_a_time_and_at_once(
    sent: bytes, head: Head, body: bytes, keeps_alive: bool
) -> None:
    for pieces in ([sent], [bytes([byte]) for byte in sent]):
        assert said(read(pieces)) == (head, body, keeps_alive)


def test_one_response_after_the_other() -> None:
    machine = ResponseReader()
    for sent, *wanted in RESPONSES[:3] * 2:
        machine.expect()
        assert said(read([sent[:40], sent[40:]], machine)) == tuple(wanted)
    with pytest.raises(ProtocolError):
        machine.receive(LENGTH)


@given(st.sampled_from(RESPONSES), st.sets(st.integers(1, 80)))
def test_any_pieces(response: tuple[bytes, Head, bytes, bool], cuts: set[int]) -> None:
    sent, *wanted = response
    places = [0, *sorted(cut for cut in cuts if cut < len(sent)), len(sent)]
    assert said(read([sent[start:end] for start, end in pairwise(places)])) == tuple(wanted)


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    machine = machine_for()
    events = read([bytes([byte]) for byte in UNTIL_THE_END], machine)
    assert events[0] == Head(200, ((b"content-type", b"text/event-stream"),))
    assert events[1:] == [Data(bytes([byte])) for byte in b"hello"]
    assert machine.ends_here()


@pytest.mark.parametrize("sent", [LENGTH, CHUNKED])
def test_a_body_with_a_length_does_not(sent: bytes) -> None:
    machine = machine_for()
    read([sent[:-2]], machine)
    assert not machine.ends_here()
    assert not machine_for().ends_here()


def test_the_answer_to_head_has_no_body() -> None:
    head, *_ = LENGTH.partition(b"hello")
    events = read([head], machine_for(has_body=False))
    assert [type(event) for event in events] == [Head, End]
    assert events[-1] == End(keeps_alive=False)


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        LENGTH + LENGTH,
        b"HTTP/1.1 200 OK\r\nx: " + b"x" * MAX_HEAD_BYTES,
    ],
)
def test_what_is_no_response(sent: bytes) -> None:
    for pieces in ([sent], [bytes([byte]) for byte in sent]):
        with pytest.raises(ProtocolError):
            read(pieces)


def test_requests() -> None:
    headers = header_lines(((b"host", b"x"), (b"x-api-key", b"k")))
    assert request_bytes("POST", "/a?b=c", headers, b"12") == (
        b"POST /a?b=c HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\ncontent-length: 2\r\n\r\n12"
    )
    assert request_bytes("GET", "/", b"", b"") == b"GET / HTTP/1.1\r\n\r\n"
    assert request_bytes("DELETE", "/", b"", b"").endswith(b"\r\ncontent-length: 0\r\n\r\n")
