"""HTTP/1.1 as a machine: the same requests however their bytes are cut."""

from __future__ import annotations

import pytest

from soliton.web import http1
from soliton.web.answers import BodyLimits, Stream, Unread, Whole
from soliton.web.http1 import Continue, Invalid, Refused, RequestParser, State
from soliton.web.request import Request
from tests.web.services import Simple

HEAD_BYTES = 200
BODY_BYTES = 10


class Service(Simple):
    body_limits = BodyLimits(BODY_BYTES)


def parser() -> RequestParser[Request]:
    return RequestParser(Service(lambda _request: Whole(b"")), HEAD_BYTES, "192.0.2.1")


def short(event: object) -> str:
    """An event in a few words."""
    match event:
        case Request():
            body = f" {event.body.decode()}" if event.body else ""
            query = f"?{event.query_string.decode()}" if event.query_string else ""
            last = "" if event.keep_alive else " last"
            socket = " websocket" if event.is_websocket else ""
            return f"{event.method} {event.path}{query}{body}{last}{socket}"
        case Refused():
            return f"refused {event.request.path} {event.reason.value}"
        case Invalid():
            return event.name
        case Continue():
            return "continue"
    raise AssertionError(event)


WEBSOCKET = "Connection: Upgrade\r\nUpgrade: websocket\r\n"
HTTP2 = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"
CHUNKED = "Transfer-Encoding: chunked\r\n"
NEXT = "GET /b HTTP/1.1\r\n\r\n"
MANY = "a: b\r\n" * 257

# What is sent, and what comes of it.
CASES: dict[str, tuple[str, list[str]]] = {
    "one": ("GET /a HTTP/1.1\r\n\r\n", ["GET /a"]),
    "query": ("GET /a?b=c HTTP/1.1\r\n\r\n", ["GET /a?b=c"]),
    "absolute": ("GET http://x/a?b HTTP/1.1\r\n\r\n", ["GET /a?b"]),
    "nothing before": ("\r\n\r\nGET /a HTTP/1.1\r\n\r\n", ["GET /a"]),
    "two": ("GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n", ["GET /a", "GET /b"]),
    "body": ("POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\n\r\n",
             ["POST /a abc", "GET /b"]),
    "chunks": (f"POST /a HTTP/1.1\r\n{CHUNKED}\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
               ["POST /a abc"]),
    "old": ("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", ["GET /a last"]),
    "last": ("GET /a HTTP/1.1\r\nConnection: close\r\n\r\n", ["GET /a last"]),
    "longest body": ("POST /a HTTP/1.1\r\nContent-Length: 10\r\n\r\n0123456789",
                     ["POST /a 0123456789"]),
    "declared too long": (
        "POST /a HTTP/1.1\r\nContent-Length: 11\r\n\r\n0123456789aGET /b HTTP/1.1\r\n\r\n",
        ["refused /a too long", "GET /b"]),
    "chunks too long": (
        f"POST /a HTTP/1.1\r\n{CHUNKED}\r\n8\r\n01234567\r\n3\r\n89a\r\n0\r\n\r\n{NEXT}",
        ["refused /a too long", "GET /b"]),
    "expects": ("POST /a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
                ["continue", "POST /a x"]),
    "expects too much": (
        "POST /a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 99\r\n\r\n",
        ["refused /a too long"]),
    "http2": (f"POST /a HTTP/1.1\r\n{HTTP2}Content-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\n\r\n",
              ["POST /a abc", "GET /b"]),
    "websocket with a body": (
        f"GET /a HTTP/1.1\r\n{WEBSOCKET}Content-Length: 1\r\n\r\nx", ["GET /a x"]),
    "no request": ("nonsense\r\n\r\n", ["REQUEST"]),
    "no more after it": ("GET /a HTTP/1.1\r\n\r\nnonsense\r\n\r\n", ["GET /a", "REQUEST"]),
    "tunnel": ("CONNECT a:1 HTTP/1.1\r\n\r\n", ["REQUEST"]),
    "no place": ("GET http://[ HTTP/1.1\r\n\r\n", ["REQUEST"]),
    "two lengths": ("POST /a HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                    ["REQUEST"]),
    "long head": (f"GET /a HTTP/1.1\r\nx: {'y' * HEAD_BYTES}", ["LONG_HEAD"]),
}  # fmt: skip


@pytest.mark.parametrize("step", [1, 2, 3, 7, 100_000])
@pytest.mark.parametrize("case", CASES)
def test_however_the_bytes_are_cut(case: str, step: int) -> None:
    sent, expected = CASES[case]
    data, made, found = sent.encode(), parser(), list[str]()
    for start in range(0, len(data), step):
        found += map(short, made.feed(data[start : start + step]))
        if found and found[-1].isupper():
            break
    assert found == expected


@pytest.mark.parametrize("step", [1, 5, 100_000])
def test_a_head_is_too_long_by_its_bytes_or_its_lines(step: int) -> None:
    """What its last piece brings besides does not count."""
    just = f"GET /a HTTP/1.1\r\nx: {'y' * (HEAD_BYTES - 10)}\r\nContent-Length: 10\r\n\r\n".encode()
    many = f"GET /a HTTP/1.1\r\n{MANY}\r\n".encode()
    for data, wide in ((just, HEAD_BYTES), (many, 100_000)):
        made = RequestParser(Service(lambda _request: Whole(b"")), wide, "")
        found: list[object] = []
        for start in range(0, len(data), step):
            found += made.feed(data[start : start + step])
            if found:
                break
        assert isinstance(found[0], Invalid)


def test_a_websocket_leaves_what_follows() -> None:
    made = parser()
    (request,) = made.feed(f"GET /a HTTP/1.1\r\n{WEBSOCKET}\r\n".encode() + b"\x81\x00")
    assert short(request) == "GET /a websocket"
    assert made.unparsed == b"\x81\x00"
    # It was not taken: what follows is the next request.
    assert [short(each) for each in made.feed(b"GET /b HTTP/1.1\r\n\r\n")] == ["GET /b"]


def test_where_the_bytes_end() -> None:
    made = parser()
    assert made.state is State.BETWEEN
    for data, state in (
        (b"POST /a HTTP", State.HEAD),
        (b"/1.1\r\nContent-Length: 2\r\n\r\n", State.BODY),
        (b"a", State.BODY),
        (b"b", State.BETWEEN),
        (b"POST /a HTTP/1.1\r\nContent-Length: 99\r\n\r\n", State.UNREAD_BODY),
        (b"x" * 99, State.BETWEEN),
    ):
        made.feed(data)
        assert made.state is state


DATE = b"date: now\r\n"


def test_answers_as_bytes() -> None:
    answer = Whole(b"abc", b"text/plain", 404, ((b"x", b"y"),))
    head = b"HTTP/1.1 404 Not Found\r\n" + DATE
    head += b"content-type: text/plain\r\ncontent-length: 3\r\nx: y\r\n"
    assert http1.whole_bytes(answer, DATE, has_body=True, keep_alive=True) == head + b"\r\nabc"
    last = http1.whole_bytes(answer, DATE, has_body=False, keep_alive=False)
    assert last == head + b"connection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("method", "status", "headers", "chunked"),
    [
        ("GET", 200, (), True),
        ("GET", 200, ((b"content-length", b"1"),), False),
        ("HEAD", 200, (), False),
        ("GET", 204, (), False),
        ("GET", 304, (), False),
    ],
)
def test_which_streams_are_sent_in_chunks(
    method: str, status: int, headers: tuple[tuple[bytes, bytes], ...], *, chunked: bool
) -> None:
    stream = Stream(None, headers, status)  # type: ignore[arg-type]
    assert http1.is_chunked(stream, Request(method, "/")) is chunked
    head = http1.stream_head(stream, DATE, chunked=chunked, keep_alive=True)
    assert (b"transfer-encoding: chunked\r\n" in head) is chunked
    assert http1.chunk_bytes(b"x" * 17) == b"11\r\n" + b"x" * 17 + b"\r\n"


def test_a_refused_body_says_why() -> None:
    (refused,) = parser().feed(b"POST /a HTTP/1.1\r\nContent-Length: 11\r\n\r\n")
    assert isinstance(refused, Refused) and refused.reason is Unread.TOO_LONG
    assert refused.request.host == "192.0.2.1"
