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


def with_hosts(heads: str) -> bytes:
    return heads.replace("HTTP/1.1\r\n", "HTTP/1.1\r\nHost: x\r\n").encode()


@pytest.mark.parametrize("step", [1, 2, 3, 7, 100_000])
@pytest.mark.parametrize("case", CASES)
def test_however_the_bytes_are_cut(case: str, step: int) -> None:
    sent, expected = CASES[case]
    data, made, found = with_hosts(sent), parser(), list[str]()
    for start in range(0, len(data), step):
        found += map(short, made.feed(data[start : start + step]))
        if found and found[-1].isupper():
            break
    assert found == expected


CODING = "POST /a HTTP/1.1\r\nHost: x\r\n%s\r\n1\r\nx\r\n0\r\n\r\n"

# Heads that two programs may understand in two ways.
HEADS: dict[str, tuple[str, str]] = {
    "no host": ("GET /a HTTP/1.1\r\n\r\n", "NO_HOST"),
    "no host in HTTP/1.0": ("GET /a HTTP/1.0\r\n\r\n", "GET /a last"),
    "an empty host": ("GET /a HTTP/1.1\r\nHost:\r\n\r\n", "GET /a"),
    "space around a host": ("GET /a HTTP/1.1\r\nHost: \tx \t\r\n\r\n", "GET /a"),
    "an address": ("GET /a HTTP/1.1\r\nHost: [::1]:6869\r\n\r\n", "GET /a"),
    "a zone": ("GET /a HTTP/1.1\r\nHost: [fe80::1%25eth0]\r\n\r\n", "GET /a"),
    "two hosts in a header": ("GET /a HTTP/1.1\r\nHost: x, y\r\n\r\n", "BAD_HOST"),
    "a user in a host": ("GET /a HTTP/1.1\r\nHost: a@x\r\n\r\n", "BAD_HOST"),
    "a path in a host": ("GET /a HTTP/1.1\r\nHost: x/y\r\n\r\n", "BAD_HOST"),
    "a name as port": ("GET /a HTTP/1.1\r\nHost: x:y\r\n\r\n", "BAD_HOST"),
    "no ASCII": ("GET /a HTTP/1.1\r\nHost: \xe4\r\n\r\n", "BAD_HOST"),
    "two hosts": ("GET /a HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "TWICE"),
    "a host twice": ("GET /a HTTP/1.1\r\nHost: x\r\nhost: x\r\n\r\n", "TWICE"),
    "two in HTTP/1.0": ("GET /a HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n", "TWICE"),
    "two behind others": ("GET /a HTTP/1.1\r\nHost: x\r\nA: b\r\nA: c\r\nHOST: x\r\n\r\n", "TWICE"),
    "gzip": (CODING % "Transfer-Encoding: gzip, chunked\r\n", "CODING"),
    "identity": (CODING % "Transfer-Encoding: identity\r\n", "CODING"),
    "a longer name": (CODING % "Transfer-Encoding: xchunked\r\n", "CODING"),
    "gzip in HTTP/1.0": ("POST /a HTTP/1.0\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "CODING"),
    "two codings": (CODING % "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", "CODING"),
    "chunked twice": (CODING % "Transfer-Encoding: chunked, chunked\r\n", "REQUEST"),
    "chunked first": (CODING % "Transfer-Encoding: chunked, gzip\r\n", "REQUEST"),
    "chunked": (CODING % "Transfer-Encoding: Chunked\r\n", "POST /a x"),
    "HTTP/2 as text": ("GET /a HTTP/2.0\r\nHost: x\r\n\r\n", "VERSION"),
    "HTTP/0.9": ("GET /a HTTP/0.9\r\nHost: x\r\n\r\n", "VERSION"),
    "old websocket": (f"GET /a HTTP/1.0\r\nHost: x\r\n{WEBSOCKET}\r\n", "GET /a last"),
    "websocket without a host": (f"GET /a HTTP/1.1\r\n{WEBSOCKET}\r\n", "NO_HOST"),
    "an offer by who leaves": (
        "GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n",
        "GET /a last"),
}  # fmt: skip
SINGLE_HEADERS = (
    "Origin", "Content-Type", "Authorization", "X-API-Key", "api_key", "Timestamp", "Signature",
    "X-User-Public-Key", "Sec-WebSocket-Key", "Sec-WebSocket-Version",
)  # fmt: skip


@pytest.mark.parametrize("step", [1, 100_000])
@pytest.mark.parametrize("case", HEADS)
def test_what_two_programs_may_understand_in_two_ways(case: str, step: int) -> None:
    sent, expected = HEADS[case]
    data, made, found = sent.encode(), parser(), list[str]()
    for start in range(0, len(data), step):
        found += map(short, made.feed(data[start : start + step]))
        if found:
            break
    assert found == [expected]


@pytest.mark.parametrize("name", SINGLE_HEADERS)
def test_a_header_that_may_occur_once_is_not_repeated(name: str) -> None:
    head = f"GET /a HTTP/1.1\r\nHost: x\r\n{name}: a\r\n{name.upper()}: a\r\n\r\n"
    assert parser().feed(head.encode()) == [Invalid.TWICE]


def test_values_of_a_repeated_header_are_one_list() -> None:
    (request,) = parser().feed(
        b"GET /a HTTP/1.1\r\nHost: x\r\nAccept: a \r\nCookie: b\r\nACCEPT: c\r\nCookie: d\r\n\r\n"
    )
    assert isinstance(request, Request)
    assert request.headers == {b"host": b"x", b"accept": b"a, c", b"cookie": b"b; d"}


@pytest.mark.parametrize("body", ["1;%s\r\nx\r\n0\r\n\r\n", "1\r\nx\r\n0\r\nT: %s\r\n\r\n"])
def test_the_frame_of_a_body_has_a_limit_too(body: str) -> None:
    made, sent = parser(), body % ("y" * (2 * HEAD_BYTES))
    data = with_hosts(f"POST /a HTTP/1.1\r\n{CHUNKED}\r\n{sent}")
    found: list[object] = []
    for start in range(0, len(data), 10):
        found += made.feed(data[start : start + 10])
        if found:
            break
    assert found == [Invalid.LONG_FRAME]


@pytest.mark.parametrize("step", [1, 5, 100_000])
def test_a_head_is_too_long_by_its_bytes_or_its_lines(step: int) -> None:
    """What its last piece brings besides does not count."""
    long = f"x: {'y' * (HEAD_BYTES - 10)}\r\nContent-Length: 10\r\n"
    just = with_hosts(f"GET /a HTTP/1.1\r\n{long}\r\n")
    many = with_hosts(f"GET /a HTTP/1.1\r\n{MANY}\r\n")
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
    (request,) = made.feed(with_hosts(f"GET /a HTTP/1.1\r\n{WEBSOCKET}\r\n") + b"\x81\x00")
    assert short(request) == "GET /a websocket"
    assert made.unparsed == b"\x81\x00"
    # It was not taken: what follows is the next request.
    assert [short(each) for each in made.feed(with_hosts(NEXT))] == ["GET /b"]


def test_where_the_bytes_end() -> None:
    made = parser()
    assert made.state is State.BETWEEN
    for data, state in (
        (b"POST /a HTTP", State.HEAD),
        (b"/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n", State.BODY),
        (b"a", State.BODY),
        (b"b", State.BETWEEN),
        (b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n", State.UNREAD_BODY),
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
    (refused,) = parser().feed(b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n")
    assert isinstance(refused, Refused) and refused.reason is Unread.TOO_LONG
    assert refused.request.host == "192.0.2.1"
