"""What unwanted clients send, drawn by chance: the kinds of a mixed attack.

What lives here: requests to node, matcher and signer that cost much, break rules or are left half
way. What does not: floods of frames (``_floods``), sending, and judging what becomes of all these
(``attack``).
"""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

import _floods
import msgspec

NODE, MATCHER, SIGNER, GRPC, PEER = "node", "matcher", "signer", "gRPC", "peer"
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
MAX_SOURCE = 900_000
"""Just below the largest body that the services take."""

DAPP_SOURCE = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}
func step(a: Int, b: Int) = if (sigVerify(base58'', base58'', base58'')) then a else a + b
@Callable(i)
func heavy(n: Int) = [IntegerEntry("n", FOLD<100>([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], n, step))]
@Callable(i)
func grow(n: Int) = {
  let a = "0123456789012345678901234567890123456789"
  let b = a + a + a + a + a + a + a + a + a + a
  [StringEntry("s", b + b + b + b + b + b + b + b)]
}
@Callable(i)
func light(n: Int) = [IntegerEntry("n", n)]
"""
DAPP_FUNCTIONS = ("heavy", "grow", "light", "nothing")


class Manner(Enum):
    """How a client behaves once it has sent its request."""

    READ = auto()
    LEAVE = auto()
    """Goes before the answer."""
    BREAK_OFF = auto()
    """Sends half of the request and goes."""
    LISTEN = auto()
    """Reads a stream for a while, and vanishes without a word."""
    DEAF = auto()
    """Asks, reads nothing for a while, and vanishes."""


@dataclass(frozen=True)
class Attempt:
    """One request: which service gets it, its bytes, and what its client does afterwards."""

    kind: str
    service: str
    data: bytes
    manner: Manner = Manner.READ


@dataclass(frozen=True)
class Scene:
    """What the attackers know: the dApp and the accounts of the chain, orders signed before."""

    dapp: str
    public_keys: tuple[str, ...]
    addresses: tuple[str, ...]
    orders: tuple[bytes, ...]


Chance = random.Random
Maker = Callable[[Chance, Scene], Attempt]


def post(path: str, body: bytes, content_type: str = "application/json") -> bytes:
    """A request with a body, after which the connection is closed."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nOrigin: http://x\r\n"
        f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("latin-1") + body


def get(path: str, *headers: str) -> bytes:
    """A request without a body, after which the connection is closed."""
    lines = (f"GET {path} HTTP/1.1", "Host: x", "Connection: close", *headers)
    return "\r\n".join((*lines, "", "")).encode("latin-1")


def _json(value: object) -> bytes:
    return msgspec.json.encode(value)


def _size(chance: Chance) -> int:
    """Mostly small, sometimes as large as is allowed."""
    return int(10 ** chance.uniform(0.5, 5.9))


def _junk(chance: Chance, length: int) -> bytes:
    return chance.randbytes(length)


def _base58(chance: Chance, length: int) -> str:
    return "".join(chance.choices(BASE58, k=length))


# --- scripts --------------------------------------------------------------------------------------

_HEADS = (
    "{-# STDLIB_VERSION 6 #-}\n",
    "{-# STDLIB_VERSION 5 #-}\n{-# CONTENT_TYPE DAPP #-}\n{-# SCRIPT_TYPE ACCOUNT #-}\n",
    "{-# STDLIB_VERSION 4 #-}\n{-# SCRIPT_TYPE ASSET #-}\n",
    "{-# STDLIB_VERSION 3 #-}\n{-# CONTENT_TYPE EXPRESSION #-}\n",
    "",
)


def _source(chance: Chance) -> str:
    size = _size(chance)
    head = chance.choice(_HEADS)
    bodies: tuple[Callable[[], str], ...] = (
        lambda: "{-#" + " " * size + "STDLIB_VERSION" + " " * size,
        lambda: "{-# STDLIB_VERSION 6 #-}" * (size // 24 + 1),
        lambda: "{-# IMPORT " + "a," * (size // 2) + "a #-}\ntrue",
        lambda: "{-# IMPORT " + "a/" * (size // 2) + "\ntrue",
        lambda: head + "a" * size,
        lambda: head + "".join(f"let a{i} = {i}\n" for i in range(min(size // 12, 5_000))) + "b1",
        lambda: head + f"FOLD<{size}>([1], 0, f)",
        lambda: head + "func f(a: Int, b: Int) = a + b\n" + "FOLD<99>([1], 0, f) + " * 400 + "1",
        lambda: head + "(" * size + "1" + ")" * size,
        lambda: head + "1 == 1" + " || true" * (size // 8),
        lambda: head + "1" + "+1" * (size // 2),
        lambda: head + '"' + "\\u0041" * (size // 6) + '"',
        lambda: head + "base58'" + _base58(chance, size) + "'",
        lambda: head + "base64'" + "A" * size + "'",
        lambda: head + "[" + "1," * (size // 2) + "1]",
        lambda: head + "if (true) then " * (size // 15) + "1",
        lambda: head + "match 1 {" + " case x: Int => 1" * (size // 17) + "}",
        lambda: head + "# " + "c" * size + "\ntrue",
        lambda: head + "let x = " * (size // 8),
        lambda: head + "9" * size,
        lambda: head + "a." * (size // 2) + "b",
        lambda: head + "1 <" * (size // 3),
        lambda: head + "sigVerify(tx.bodyBytes, tx.proofs[0], tx.senderPublicKey)",
        lambda: _junk(chance, min(size, 60_000)).decode("latin-1"),
        lambda: DAPP_SOURCE,
    )
    return chance.choice(bodies)()[:MAX_SOURCE]


def _compile(chance: Chance, _: Scene) -> Attempt:
    source = _source(chance)
    path = chance.choice(
        ("/utils/script/compileCode", "/utils/script/compileCode?compact=true",
         "/utils/script/compile", "/utils/script/estimate")
    )  # fmt: skip
    return Attempt("compile", NODE, post(path, source.encode(), "text/plain"))


def _compile_with_imports(chance: Chance, _: Scene) -> Attempt:
    size = min(_size(chance), 200_000)
    names = [f"l{i}" for i in range(chance.randint(1, 200))]
    lists = {name: "{-# IMPORT " + ",".join(names) + " #-}\n" for name in names}
    source = "{-# IMPORT " + ",".join(names) + " #-}\n" + " " * size + "true"
    body = {"script": source, "imports": lists}
    return Attempt("compile", NODE, post("/utils/script/compileWithImports", _json(body)))


def _decompile(chance: Chance, _: Scene) -> Attempt:
    size = min(_size(chance), 600_000)
    raw = chance.choice(
        (
            lambda: _junk(chance, size),
            lambda: b"\x06" + b"\x03" * size,
            lambda: b"\x05\x09\x00\x00\x00\x00\x02" * (size // 7 + 1),
            lambda: b"\x00\x02\x03" + _junk(chance, size),
            lambda: b"\x06" + b"\x04\x00\x00\x00\x01a\x06" * (size // 7 + 1),
        )
    )()
    text = "base64:" * chance.randint(0, 1) + base64.b64encode(raw).decode()
    path = chance.choice(("/utils/script/decompile", "/utils/script/estimate"))
    return Attempt("decompile", NODE, post(path, text.encode(), "text/plain"))


# --- running --------------------------------------------------------------------------------------


def _call(chance: Chance) -> dict[str, object]:
    args = [{"type": "integer", "value": chance.choice((1, 10**6, 2**63 - 1, -1))}]
    return {"function": chance.choice(DAPP_FUNCTIONS), "args": args}


def _evaluate(chance: Chance, scene: Scene) -> Attempt:
    size = min(_size(chance), 400_000)
    expressions: tuple[Callable[[], dict[str, object]], ...] = (
        lambda: {"expr": "1 + 1"},
        lambda: {"expr": "FOLD<100>([1,2,3,4,5,6,7,8,9], 1, step)"},
        lambda: {"expr": "1" + "+1" * (size // 2)},
        lambda: {"expr": "(" * size},
        lambda: {"expr": '"' + "a" * size + '".split("")'},
        lambda: {"expr": 'parseBigInt("' + "9" * min(size, 30_000) + '")'},
        lambda: {"expr": "base64:" + base64.b64encode(_junk(chance, size)).decode()},
        lambda: {"expr": _source(chance)},
        lambda: {"call": _call(chance)},
        lambda: {"call": _call(chance), "sender": chance.choice(scene.addresses)},
        lambda: {"call": {"function": "x" * size, "args": []}},
        lambda: {
            "call": _call(chance),
            "state": {
                "accounts": {a: {"regularBalance": 2**63 - 1} for a in scene.addresses} | {"x": {}}
            },
        },
    )
    path = f"/utils/script/evaluate/{scene.dapp}" + chance.choice(("", "?trace=true"))
    body = _json(chance.choice(expressions)())
    manner = chance.choice((Manner.READ, Manner.READ, Manner.LEAVE))
    return Attempt("evaluate", NODE, post(path, body), manner)


def _simulate(chance: Chance, scene: Scene) -> Attempt:
    key = chance.choice(scene.public_keys)
    entries = [{"recipient": a, "amount": 1} for a in scene.addresses * chance.randint(1, 9)]
    bodies: tuple[dict[str, object], ...] = (
        {"type": 16, "version": 2, "dApp": scene.dapp, "call": _call(chance), "payment": []},
        {"type": 4, "version": 3, "recipient": scene.addresses[0], "amount": 1},
        {"type": 11, "version": 2, "transfers": entries},
        {"type": 12, "version": 2, "data": [
            {"key": "k" * 100, "type": "string", "value": "v" * min(_size(chance), 200_000)}]},
        {"type": 13, "version": 2, "script": "base64:" + base64.b64encode(
            _junk(chance, min(_size(chance), 40_000))).decode()},
        {"type": chance.randint(-1, 300), "version": chance.randint(-1, 300)},
    )  # fmt: skip
    body = {"senderPublicKey": key, **chance.choice(bodies)}
    manner = chance.choice((Manner.READ, Manner.READ, Manner.LEAVE))
    return Attempt("simulate", NODE, post("/transactions/simulate", _json(body)), manner)


# --- texts ----------------------------------------------------------------------------------------

_CHARSETS = [
    "punycode",
    "utf-7",
    "idna",
    "utf-16",
    "utf-32",
    "unicode_escape",
    "rot13",
    "hz",
    "bz2",
    "zlib",
    "hex",
    "latin-1",
    "cp037",
    "undefined",
    "mbcs",
    "UTF-8",
    "'",
    "é",
]


def _charset(chance: Chance, _: Scene) -> Attempt:
    charset = chance.choice((*_CHARSETS, _base58(chance, 12)))
    service, path = chance.choice(
        (
            (NODE, "/transactions/broadcast"),
            (NODE, "/utils/script/compileCode"),
            (NODE, "/utils/hash/fast"),
            (MATCHER, "/matcher/orderbook"),
            (SIGNER, "/data"),
        )
    )
    kind = chance.choice(("application/json", "text/plain"))
    body = chance.choice((b"a-", b"\x00", b"+AGE-", b"xn--", b"\xff")) * (_size(chance) // 4 + 1)
    data = post(path, body[:MAX_SOURCE], f"{kind}; charset={charset}")
    return Attempt("charset", service, data)


def _hard_json(chance: Chance, scene: Scene) -> Attempt:
    size = _size(chance)
    text = chance.choice(
        (
            lambda: '{"a":' * (size // 5),
            lambda: "[" * size,
            lambda: ":" * size,
            lambda: '{"a"' + ":" * size + "}",
            lambda: '{"type":' + "9" * size + "}",
            lambda: '{"fee":1' + "0" * size + ".5e-9999999}",
            lambda: '{"a":1' + ',"a":1' * (size // 6) + "}",
            lambda: '"' + "\\" * size,
            lambda: '{"type":4,"recipient":"' + _base58(chance, min(size, 100_000)) + '"}',
            lambda: '{"proofs":[' + '"1",' * (size // 4) + '"1"]}',
            lambda: "\ufeff" * (size // 3),
            lambda: _junk(chance, min(size, 100_000)).decode("latin-1"),
        )
    )()
    service, path = chance.choice(
        (
            (NODE, "/transactions/broadcast"),
            (NODE, "/transactions/calculateFee"),
            (NODE, "/transactions/status"),
            (NODE, "/blocks/id"),
            (NODE, f"/addresses/data/{scene.dapp}"),
            (NODE, "/eth"),
            (NODE, "/utils/transactionSerialize"),
            (MATCHER, "/matcher/orderbook"),
            (MATCHER, "/matcher/orderbook/cancel"),
            (SIGNER, "/data"),
        )
    )
    return Attempt("json", service, post(path, text.encode()[:MAX_SOURCE]))


def _paths(chance: Chance, scene: Scene) -> Attempt:
    size = min(_size(chance), 60_000)
    path = chance.choice(
        (
            lambda: f"/addresses/data/{scene.dapp}?matches=" + "(a*)*" * min(size // 5, 4_000),
            lambda: f"/addresses/data/{scene.dapp}?matches=" + "%5B" * min(size // 3, 4_000),
            lambda: "/addresses/balance/" + _base58(chance, size),
            lambda: "/transactions/info/" + _base58(chance, size),
            lambda: "/alias/by-alias/" + "%C0%AF" * (size // 6),
            lambda: "/blocks/at/" + "9" * size,
            lambda: f"/blocks/seq/1/{'9' * min(size, 30)}",
            lambda: f"/transactions/address/{scene.dapp}/limit/1000",
            lambda: f"/debug/stateChanges/address/{scene.dapp}/limit/1000",
            lambda: "/assets/details?" + "id=" + "&id=".join(["1"] * (size // 5)),
            lambda: f"/addresses/data/{scene.dapp}/" + "%2F" * (size // 3),
            lambda: "/api-docs/openapi.json",
            lambda: "/metrics",
        )
    )()
    manner = chance.choice((Manner.READ, Manner.READ, Manner.DEAF))
    return Attempt("path", NODE, get(path), manner)


# --- matcher --------------------------------------------------------------------------------------


def _order(chance: Chance, scene: Scene) -> Attempt:
    order = chance.choice(scene.orders)
    if chance.random() < 0.8:
        fields = msgspec.json.decode(order)
        name = chance.choice(list(fields))
        fields[name] = chance.choice(
            (0, -1, 2**63 - 1, 2**64, 1.5, "", "x" * 1_000, None, [], {}, [[]] * 50, True,
             fields[name], {"a": {"b": {}}})
        )  # fmt: skip
        order = _json(fields)
    manner = chance.choice((Manner.READ, Manner.READ, Manner.LEAVE, Manner.BREAK_OFF))
    path = chance.choice(("/matcher/orderbook", "/matcher/orderbook/market"))
    return Attempt("order", MATCHER, post(path, order), manner)


def _matcher_get(chance: Chance, scene: Scene) -> Attempt:
    key = chance.choice(scene.public_keys)
    path = chance.choice(
        (
            f"/matcher/orderbook/{key}",
            f"/matcher/orderbook/{_base58(chance, 44)}/WAVES",
            f"/matcher/orderbook/{_base58(chance, min(_size(chance), 30_000))}/WAVES",
            "/matcher/orderbook",
            "/matcher/settings",
            f"/matcher/balance/reserved/{key}",
            "/metrics",
        )
    )
    junk = _base58(chance, 88)
    return Attempt("matcher", MATCHER, get(path, f"Timestamp: {10**12}", f"Signature: {junk}"))


# --- streams and connections ----------------------------------------------------------------------


def _stream(chance: Chance, scene: Scene) -> Attempt:
    query = chance.choice(
        (
            "?events=block,microblock,transaction,unconfirmed",
            f"?address={chance.choice(scene.addresses)}",
            "?from=1",
            "?events=nothing",
        )
    )
    manner = chance.choice((Manner.LISTEN, Manner.DEAF, Manner.LEAVE))
    return Attempt("stream", NODE, get("/events" + query), manner)


def _web_socket(chance: Chance, _: Scene) -> Attempt:
    key = base64.b64encode(_junk(chance, 16)).decode()
    head = get(
        "/ws/v0", "Upgrade: websocket", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"
    ).replace(b"Connection: close", b"Connection: Upgrade")
    text = _json({"T": chance.choice(("obs", "aus", "x")), "S": "WAVES-x", "d": 2**31})
    frames = (
        b"",
        b"\x81" + bytes((0x80 | len(text),)) + bytes(4) + text,
        _junk(chance, chance.randint(1, 200)),
        b"\x81\xff\x7f" + b"\xff" * 7 + bytes(4),
    )
    manner = chance.choice((Manner.LISTEN, Manner.LEAVE, Manner.DEAF))
    return Attempt("web socket", MATCHER, head + chance.choice(frames), manner)


def _wait(chance: Chance, _: Scene) -> Attempt:
    path = f"/transactions/wait/{_base58(chance, 44)}"
    return Attempt("wait", NODE, get(path), chance.choice((Manner.LISTEN, Manner.LEAVE)))


def _pipelined(chance: Chance, scene: Scene) -> Attempt:
    """A packet of requests, maybe behind one whose answer takes long."""
    path = chance.choice(("/x", "/metrics", "/utils/seed/1000", f"/addresses/balance/{scene.dapp}"))
    offer = chance.choice(("", "Connection: upgrade\r\nUpgrade: h2c\r\n"))
    one = f"GET {path} HTTP/1.1\r\nHost: x\r\n{offer}\r\n".encode()
    many = one * max(1, min(_size(chance), 200_000) // len(one))
    if chance.random() < 0.5:
        return Attempt("pipelined", NODE, many + get("/x"))
    first = chance.choice((b"/events", b"/blocks/wait/999999999"))
    manner = chance.choice((Manner.LEAVE, Manner.LISTEN, Manner.DEAF))
    return Attempt(
        "pipelined", NODE, b"GET " + first + b" HTTP/1.1\r\nHost: x\r\n\r\n" + many, manner
    )


def _broken(chance: Chance, _: Scene) -> Attempt:
    service = chance.choice((NODE, MATCHER, SIGNER))
    data = chance.choice(
        (
            _junk(chance, min(_size(chance), 50_000)),
            b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * min(_size(chance) // 6, 20_000),
            post("/data", b"{" * min(_size(chance), 100_000)),
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFF\r\n",
        )
    )
    return Attempt("broken", service, data, chance.choice((Manner.READ, Manner.BREAK_OFF)))


def _sign(chance: Chance, _: Scene) -> Attempt:
    entries = [{"key": "k", "value": chance.choice((1, "x", True, 2**64, None, {"a": 1}))}]
    body = {
        "seed": "s" * min(_size(chance), 100_000),
        "data": entries * chance.randint(0, 120),
    }
    return Attempt("sign", SIGNER, post("/data", _json(body)))


def _frame_flood(chance: Chance, _: Scene) -> Attempt:
    service, path = chance.choice(((NODE, "/events"), (MATCHER, "/ws/v0")))
    manner = chance.choice((Manner.LISTEN, Manner.LEAVE, Manner.DEAF))
    return Attempt("frames", service, _floods.websocket(chance, path), manner)


def _http2_flood(chance: Chance, _: Scene) -> Attempt:
    manner = chance.choice((Manner.LISTEN, Manner.LEAVE, Manner.DEAF))
    return Attempt("HTTP/2", GRPC, _floods.http2(chance), manner)


def _peer_flood(chance: Chance, _: Scene) -> Attempt:
    """A peer that is soon back, as another one."""
    manner = chance.choice((Manner.LEAVE, Manner.LEAVE, Manner.LISTEN, Manner.DEAF))
    return Attempt("peer", PEER, _floods.peer(chance), manner)


def _slow_reader(chance: Chance, _: Scene) -> Attempt:
    """Large answers that nobody reads."""
    many = get("/api-docs/openapi.json").replace(b"Connection: close\r\n", b"")
    return Attempt("unread", NODE, many * chance.randint(1, 100), Manner.DEAF)


MAKERS: tuple[Maker, ...] = (
    _frame_flood,
    _frame_flood,
    _http2_flood,
    _peer_flood,
    _slow_reader,
    _compile,
    _compile,
    _compile_with_imports,
    _decompile,
    _evaluate,
    _evaluate,
    _simulate,
    _simulate,
    _charset,
    _hard_json,
    _paths,
    _order,
    _order,
    _matcher_get,
    _stream,
    _web_socket,
    _wait,
    _pipelined,
    _broken,
    _sign,
)


def draw(chance: Chance, scene: Scene) -> Attempt:
    """Something that an attacker does next."""
    return chance.choice(MAKERS)(chance, scene)
