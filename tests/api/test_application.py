"""Which requests a route takes, and what the others get: one line a case."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from soliton.api.application import METHOD_NOT_ALLOWED, NOT_FOUND, PIECE_BYTES, Application
from soliton.api.errors import INVALID_BLOCK_ID, ApiError, RejectionError
from soliton.api.http import Request, big_number, json_answer, parse_query
from soliton.api.routes import ANY_METHOD, GET, POST, Body, BodyKind, Handler, Route
from soliton.api.streaming import json_stream
from soliton.errors import InvariantBroken
from soliton.node.rest_settings import ApiLimits
from soliton.web.answers import Stream, Whole
from soliton.web.cors import CLOSED, Cors
from soliton.web.parameters import BOOLEAN, INTEGER, NATURAL, TEXT, Kind, Parameter, Place
from soliton.web.request import MAX_FIELDS
from tests.api.client import KEY, call, call_at_once, make_context


def route(
    methods: tuple[str, ...],
    path: str,
    handler: Handler,
    *parameters: Parameter,
    body: Body | None = None,
    scope: str = "",
) -> Route:
    return Route(
        methods=methods,
        path=path,
        handler=handler,
        tag="test",
        summary="",
        parameters=parameters,
        body=body,
        scope=scope,
        response={},
        example=None,
    )


def body_of(kind: BodyKind, *, get_is_405: bool = False) -> Body:
    return Body(kind, "", {}, {}, get_is_405)


def of_query(name: str, kind: Kind, example: object, *, required: bool = False) -> Parameter:
    return Parameter(name, kind, "", example, Place.QUERY, required)


def named(name: str) -> Handler:
    def handler(request: Request) -> object:
        return {"route": name, **request.arguments}

    return handler


def block_id(text: str) -> object:
    if len(text) not in (32, 64):
        raise INVALID_BLOCK_ID.error(message=f"{text} has invalid length {len(text)}")
    return text


def refusing(_request: Request) -> object:
    raise RejectionError("not me")


def failing(_request: Request) -> object:
    raise ZeroDivisionError("a bug")


def bottomless(request: Request) -> object:
    return bottomless(request)


async def coroutine(request: Request) -> object:
    await asyncio.sleep(0)
    return request.text("key")


async def items(count: int, broken: bool = False) -> AsyncIterator[object]:
    for index in range(count):
        await asyncio.sleep(0)
        yield {"amount": index}
    if broken:
        raise INVALID_BLOCK_ID.error(message="broken")


async def pieces() -> AsyncIterator[bytes]:
    yield b"one"
    await asyncio.sleep(0)
    yield b"two"


MAX_BODY_BYTES = ApiLimits().body_bytes
NUMBER = Parameter("height", NATURAL, "", 1)
ID = Parameter("id", Kind("block_id", {"type": "string"}, block_id), "", "x")
WORD = Parameter("word", TEXT, "", "x")

APP = Application(
    make_context(),
    (
        route(GET, "/blocks/{id}", named("id"), ID),
        route(GET, "/blocks/at/{height}", named("at"), NUMBER),
        route(GET, "/blocks/last", named("last")),
        route(GET, "/blocks/seq/{from}/{to}", named("seq"), *(
            Parameter(name, NATURAL, "", 1) for name in ("from", "to")
        )),
        route(GET, "/data/{word}", named("all"), WORD),
        route(GET, "/data/{word}/{key}", coroutine, WORD, Parameter("key", TEXT, "", "k")),
        route(GET, "/query", named("query"), of_query("after", TEXT, "x"),
              of_query("limit", INTEGER, 1, required=True),
              of_query("full", BOOLEAN, True)),
        route(GET, "/ids", lambda request: request.listed("id", "ids")),
        route(POST, "/ids", lambda request: request.listed("id", "ids"),
              body=body_of(BodyKind.FORM_OR_JSON)),
        route(ANY_METHOD, "/any", named("any")),
        route(POST, "/echo", lambda request: request.json(),
              body=body_of(BodyKind.JSON, get_is_405=True)),
        route(POST, "/lenient", lambda request: request.json(),
              body=body_of(BodyKind.JSON_OR_REJECT)),
        route(POST, "/text", lambda request: request.body_text(), body=body_of(BodyKind.TEXT)),
        route(POST, "/secret", named("secret"), scope="operate", body=body_of(BodyKind.JSON,
              get_is_405=True)),
        route(POST, "/debug/open", named("open")),
        route(GET, "/twice", refusing), route(GET, "/twice", named("second")),
        route(POST, "/again", refusing, body=body_of(BodyKind.TEXT)),
        route(POST, "/again", lambda request: request.body_text(), body=body_of(BodyKind.TEXT)),
        route(GET, "/fails", failing), route(GET, "/deep", bottomless),
        route(GET, "/unwritable", lambda _request: object()),
        route(GET, "/created", lambda _request: json_answer({"made": True}, status=201)),
        route(GET, "/raw", lambda _request: Whole(b"\0", b"application/octet-stream", 202)),
        route(GET, "/numbers", lambda _request: {
            "fee": 1, "height": 2, "rewardShares": {"3P": 3}, "data": [{"value": -(2**63)}],
            "score": big_number(2**70), "value": 1.5, "in": [1], "reward": True}),
        route(GET, "/stream/{height}",
              lambda request: json_stream(request, items(request.integer("height"))), NUMBER),
        route(GET, "/broken", lambda request: json_stream(request, items(0, broken=True))),
        route(GET, "/pieces", lambda _request: Stream(pieces(), ())),
    ),
    guarded=("/debug",),
)  # fmt: skip

LIVE = """
GET /blocks/last                   | 200 | {"route":"last"}
GET /blocks/at/7                   | 200 | {"route":"at","height":7}
GET /blocks/at/007                 | 200 | {"route":"at","height":7}
GET /blocks/at/2147483647          | 200 | {"route":"at","height":2147483647}
GET /blocks/at/2147483648          | 404 |
GET /blocks/at/-1                  | 404 |
GET /blocks/at/+1                  | 404 |
GET /blocks/at/abc                 | 404 |
GET /blocks/at/٣                   | 404 |
GET /blocks/at                     | 400 | {"error":4002,"message":"at has invalid length 2"}
GET /blocks/seq/1/2                | 200 | {"route":"seq","from":1,"to":2}
GET /blocks/seq/a/b                | 404 |
GET /blocks/last/                  | 404 |
GET //blocks/last                  | 404 |
GET /blocks/                       | 404 |
GET /                              | 404 |
GET /a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t | 404 |
POST /blocks/last                  | 404 |
HEAD /blocks/last                  | 404 |
BREW /blocks/last                  | 404 |
GET /data/x/a%2Fb%20c              | 200 | "a/b c"
GET /data/x/a+b                    | 200 | "a+b"
GET /data/x/%FF                    | 404 |
GET /data/x/%zz                    | 200 | "%zz"
GET /data/x                        | 200 | {"route":"all","word":"x"}
GET /query?limit=5                 | 200 | {"route":"query","limit":5}
GET /query?limit=-5&full=yes       | 200 | {"route":"query","limit":-5,"full":true}
GET /query?limit=5&after=a%2Bb+c   | 200 | {"route":"query","after":"a+b c","limit":5}
GET /query?limit=x                 | 404 |
GET /query?limit=99999999999999999999999 | 404 |
GET /query?limit=1&full=2          | 404 |
GET /query?limit=1&full=           | 200 | {"route":"query","limit":1}
GET /query?limit=&full=1           | 404 |
GET /query                         | 404 |
GET /query?limit=1&after=%ff       | 404 |
GET /ids?id=a&id=b&x&&=            | 200 | ["a","b"]
PUT /any                           | 200 | {"route":"any"}
GET /twice                         | 200 | {"route":"second"}
GET /created                       | 201 | {"made":true}
GET /stream/3                      | 200 | [{"amount":0},{"amount":1},{"amount":2}]
GET /stream/0                      | 200 | []
GET /broken                        | 400 | {"error":4002,"message":"broken"}
GET /debugger                      | 404 |
POST /debug/open                   | 200 | {"route":"open"}
OPTIONS /nowhere                   | 200 | OK
"""


def rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


@pytest.mark.parametrize(("line", "status", "body"), rows(LIVE))
async def test_table(line: str, status: str, body: str) -> None:
    expected = NOT_FOUND.body.decode() if status == "404" else body
    for answer in (await call(APP, line), await call_at_once(APP, line)):
        assert (answer.status, answer.body.decode()) == (int(status), expected)


@pytest.mark.parametrize("line", ["GET /debug/unknown", "GET /debug"])
async def test_what_is_missing_for_the_key(line: str) -> None:
    for headers, words in (
        ({}, "wants the API key in the header X-API-Key"),
        ({"X-API-Key": "wrong"}, "POST /utils/hash/secure with a key as the body tells its hash"),
        ({"api_key": "wrong"}, "rest-api.api-key-hash"),
    ):
        answer = await call(APP, line, headers=headers)
        assert (answer.status, answer.content_type) == (403, "application/json")
        found = answer.json()
        assert isinstance(found, dict) and words in found.pop("hint")
        assert found == {"error": 2, "message": "Provided API key is not correct"}


JSON = {"Content-Type": "application/json"}
BODIES: list[tuple[str, bytes | list[bytes], dict[str, str], int, str]] = [
    ("POST /echo", b'{"a":1}', JSON, 200, '{"a":1}'),
    ("POST /echo", [b'{"a"', b":1", b"}"], JSON, 200, '{"a":1}'),
    ("POST /echo", b'{"a":1}', {"Content-Type": "Application/JSON; charset=x"}, 200, '{"a":1}'),
    ("POST /echo", b'{"a":1}', {}, 404, ""),
    ("POST /echo", b'{"a":1}', {"Content-Type": "text/plain"}, 404, ""),
    ("POST /echo", b"", JSON, 404, ""),
    ("POST /echo", b'{"a":"%s"}' % (b"x" * (MAX_BODY_BYTES - 8)), JSON, 200, "{"),
    ("POST /echo", b'{"a":"%s"}' % (b"x" * (MAX_BODY_BYTES - 7)), JSON, 413, "The"),
    ("POST /echo", [b"x" * 700_000, b"x" * 700_000, b"x"], JSON, 413, "The"),
    ("POST /echo", b"{}", {**JSON, "Content-Length": "1048577"}, 413, "The"),
    ("POST /echo", b"{", JSON, 400, '{"error":1,"message":"failed to parse json message"'),
    ("POST /echo", b"[]", JSON, 400, '{"error":1,"message":"failed to parse json message"'),
    ("POST /lenient", b"{", JSON, 404, ""),
    ("POST /lenient", b"{}", JSON, 200, "{}"),
    ("POST /text", b"", {}, 200, '""'),
    ("POST /text", b"\xff", JSON, 200, '"\ufffd"'),
    ("POST /text", b"\xe9", {"Content-Type": "text/plain; charset=ISO-8859-1"}, 200, '"é"'),
    ("POST /text", b"x", {"Content-Type": "text/plain; charset=klingon"}, 404, ""),
    ("POST /text", b"x", {"Content-Type": "text/plain; charset=hex"}, 404, ""),
    # Python knows these as well: some take quadratic time, and it keeps every name it is asked for.
    ("POST /text", b"x" * 200_000, {"Content-Type": "text/plain; charset=punycode"}, 404, ""),
    ("POST /text", b"+AAAA", {"Content-Type": "text/plain; charset=utf-7"}, 404, ""),
    ("POST /text", b"x", {"Content-Type": "text/plain; charset=idna"}, 404, ""),
    ("POST /text", b"x", {"Content-Type": f"text/plain; charset={'x' * 4_000}"}, 404, ""),
    ("POST /text", b"\xe9", {"Content-Type": 'text/plain; charset="US-ASCII"'}, 200, '"\ufffd"'),
    ("POST /text", b"\x00\xe9", {"Content-Type": "text/plain; charset=utf-16"}, 200, '"é"'),
    ("POST /text", b"\xff\xfe\xe9\x00", {"Content-Type": "text/plain; charset=utf-16"}, 200, '"é"'),
    ("POST /text", b"\xe9\x00", {"Content-Type": "text/plain; charset=UTF-16LE"}, 200, '"é"'),
    ("POST /again", b"abc", {}, 200, '"abc"'),
    ("POST /ids", b'{"ids":["a"]}', JSON, 200, '["a"]'),
    ("POST /ids", b"id=a&id=%20", {"Content-Type": "application/x-www-form-urlencoded"}, 200,
     '["a"," "]'),
    ("POST /ids", b"{}", JSON, 400, '{"error":1,"message":"json data validation error'),
    ("POST /ids", b'{"ids":[1]}', JSON, 400, '{"error":1,"message":"json data validation error'),
    ("POST /ids", b"{", JSON, 404, ""),
    ("GET /echo", b"", {}, 405, METHOD_NOT_ALLOWED.body.decode()),
    ("PUT /echo", b"", {}, 404, ""),
    ("GET /lenient", b"", {}, 404, ""),
    ("GET /secret", b"", {}, 403, '{"error":2'),
    ("GET /secret", b"", {"X-API-Key": KEY}, 405, METHOD_NOT_ALLOWED.body.decode()),
    ("PUT /secret", b"", {}, 404, ""),
    ("POST /secret", b"", {}, 403, '{"error":2'),
    ("POST /secret", b"{}", {**JSON, "X-API-Key": "wrong"}, 403, '{"error":2'),
    ("POST /secret", b"{}", {**JSON, "X-API-Key": KEY}, 200, '{"route":"secret"}'),
    ("POST /secret", b"{}", {**JSON, "api_key": KEY}, 200, '{"route":"secret"}'),
    ("POST /secret", b"{}", {**JSON, "X-API-Key": "wrong", "api_key": KEY}, 200, '{"route"'),
    ("GET /debug/unknown", b"", {"X-API-Key": KEY}, 404, ""),
    ("GET /any", b"", {"Accept": "text/html"}, 404, ""),
    ("GET /any", b"", {"Accept": "application/json;q=0"}, 404, ""),
    ("GET /any", b"", {"Accept": "text/html, */*;q=0.8"}, 200, '{"route"'),
    ("GET /any", b"", {"Accept": "application/*"}, 200, '{"route"'),
]  # fmt: skip


@pytest.mark.parametrize(("line", "body", "headers", "status", "start"), BODIES)
async def test_bodies_keys_and_headers(
    line: str, body: bytes | list[bytes], headers: dict[str, str], status: int, start: str
) -> None:
    answers = [await call(APP, line, body, headers)]
    if isinstance(body, bytes) and len(body) < MAX_BODY_BYTES and "Content-Length" not in headers:
        answers.append(await call_at_once(APP, line, body, headers))
    for answer in answers:
        assert answer.status == status
        assert answer.body.decode().startswith(NOT_FOUND.body.decode() if status == 404 else start)


async def test_a_long_answer_comes_in_pieces() -> None:
    for size in (0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES):
        text = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
        app = Application(make_context(), (route(GET, "/", lambda _request: Whole(text)),))  # noqa: B023
        for answer in (await call(app, "GET /"), await call_at_once(app, "GET /")):
            assert answer.body == text
            assert answer.headers[b"content-length"] == b"%d" % size
            assert len(answer.chunks) == max(1, -(-size // PIECE_BYTES))


async def test_after_a_coroutine_that_rejects_the_next_route_may_try() -> None:
    async def rejecting(_request: Request) -> object:
        await asyncio.sleep(0)
        raise RejectionError("not me")

    first, second = route(GET, "/", rejecting), route(GET, "/", named("second"))
    for routes, status in (((first, second), 200), ((first, first), 404)):
        app = Application(make_context(), routes)
        for answer in (await call(app, "GET /"), await call_at_once(app, "GET /")):
            assert answer.status == status


@pytest.mark.parametrize("path", ["/fails", "/deep", "/unwritable"])
async def test_a_bug_is_logged_and_answered(path: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "soliton.api"):
        answer = await call(APP, f"GET {path}")
    assert (answer.status, answer.json()) == (500, {"error": 0, "message": "Error is unknown"})
    assert caplog.records[0].exc_info
    assert (await call(APP, "GET /blocks/last")).status == 200


async def test_large_numbers_as_strings() -> None:
    wish = {"Accept": "application/json;large-significand-format=string"}
    answer = await call(APP, "GET /numbers", headers=wish)
    assert answer.content_type == "application/json; large-significand-format=string"
    assert answer.body.decode() == (
        '{"fee":"1","height":2,"rewardShares":{"3P":"3"},"data":[{"value":"-9223372036854775808"}],'
        '"score":1180591620717411303424,"value":"1.5","in":["1"],"reward":true}'
    )
    streamed = await call(APP, "GET /stream/2", headers=wish)
    assert streamed.body == b'[{"amount":"0"},{"amount":"1"}]'
    assert (await call(APP, "GET /numbers")).content_type == "application/json"


async def test_cors_only_for_browsers_and_only_when_on() -> None:
    origin = {"Origin": "https://wallet.example"}
    plain = (await call(APP, "GET /any")).headers
    assert b"access-control-allow-origin" not in plain
    # A cache must not give this answer to a page.
    assert plain[b"vary"] == b"Origin"
    preflight = await call(APP, "OPTIONS /any", headers=origin)
    assert (preflight.status, preflight.body) == (200, b"OK")
    assert preflight.headers[b"access-control-allow-headers"] == (
        b"Authorization, Content-Type, X-Requested-With, Timestamp, Signature"
    )
    assert preflight.headers[b"access-control-allow-methods"] == b"OPTIONS, POST, PUT, GET, DELETE"
    closed = Application(make_context(cors=CLOSED), ())
    answer = await call(closed, "OPTIONS /any", headers=origin)
    assert answer.status == 200
    assert not any(name.startswith(b"access-control") for name in answer.headers)


@pytest.mark.parametrize("line", ["GET /any", "GET /x", "OPTIONS /any", "GET /stream/9", "POST /"])
async def test_an_origin_is_echoed(line: str) -> None:
    """Clients of the ecosystem send credentials: browsers then take no ``*``."""
    for origin in ("https://wallet.example", "http://localhost:3000", "chrome-extension://abc"):
        found = (await call(APP, line, headers={"Origin": origin})).headers
        assert found[b"access-control-allow-origin"] == origin.encode()
        assert found[b"access-control-allow-credentials"] == b"true"
        assert found[b"vary"] == b"Origin"
        assert b"Retry-After" in found[b"access-control-expose-headers"]
    for origin in ("null", "", "wallet", "://x", "https://\u00e9", "https://" + "a" * 600):
        found = (await call(APP, line, headers={"Origin": origin})).headers
        assert b"access-control-allow-origin" not in found and found[b"vary"] == b"Origin"


async def test_an_origin_that_the_settings_name() -> None:
    app = Application(make_context(cors=Cors(origin="https://w.example", credentials=False)), ())
    found = (await call(app, "GET /", headers={"Origin": "https://other.example"})).headers
    assert found[b"access-control-allow-origin"] == b"https://w.example"
    assert b"access-control-allow-credentials" not in found


async def test_streams_come_in_chunks() -> None:
    answer = await call(APP, "GET /stream/10000")
    assert len(answer.chunks) > 3
    assert answer.chunks[-1] == b""
    assert b"content-length" not in answer.headers
    pieces_answer = await call(APP, "GET /pieces")
    assert pieces_answer.chunks[0] == b"one"


async def test_a_client_that_leaves_ends_the_stream() -> None:
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        try:
            yield b"first"
            await asyncio.Event().wait()
        finally:
            closed.set()

    app = Application(make_context(), (route(GET, "/", lambda _request: Stream(endless(), ())),))
    async with asyncio.timeout(60):
        answer = await call(app, "GET /", [], leaves=True)
        assert answer.chunks == [b"first"]
        await closed.wait()


@pytest.mark.parametrize("pieces", [[b"1"], [b"1", b"2"], []])
async def test_a_body_that_breaks_off_is_nobodys_wish(pieces: list[bytes]) -> None:
    """What has come of it may mean something else than the whole."""
    heard: list[bytes] = []

    def hear(request: Request) -> object:
        heard.append(request.body)
        return 1

    declared = route(POST, "/", hear, body=Body(BodyKind.TEXT, "", "", {}))
    app = Application(make_context(), (declared,))
    assert (await call(app, "POST /", b"12")).status == 200
    async with asyncio.timeout(60):
        await call(app, "POST /", list(pieces), leaves=True)
    assert heard == [b"12"]


async def test_a_slow_handler_is_503(monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(_request: Request) -> object:
        await asyncio.Event().wait()
        return None

    monkeypatch.setattr("soliton.api.application.REQUEST_SECONDS", 0.01)
    app = Application(make_context(), (route(GET, "/", slow),))
    assert (await call(app, "GET /")).status == 503


def test_a_wrong_declaration_does_not_build() -> None:
    with pytest.raises(InvariantBroken, match="path parameters"):
        Application(make_context(), (route(GET, "/a/{b}", named("x")),))


async def test_the_fields_of_a_form_are_bounded() -> None:
    """A megabyte of short escaped fields held everybody up for nearly a second."""
    for count, refused in ((MAX_FIELDS, False), (MAX_FIELDS + 1, True)):
        query = b"&".join([b"a=%41"] * count)
        if refused:
            with pytest.raises(ApiError) as caught:
                parse_query(query)
            assert caught.value.body()["error"] == 10
        else:
            assert parse_query(query) == {"a": ["A"] * count}
