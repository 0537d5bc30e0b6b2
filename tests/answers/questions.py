"""Some two thousand requests about the history: every operation of the documents, used well and
badly.

What lives here: how a request is varied. What does not: asking (``asking``), the values that a
history has (``values``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from tests.answers.values import BAD, bodies_of, good_values
from tests.e2e.programs import API_KEY, call

ETAG_BEFORE = "(the ETag of the answer before)"
LARGE = "application/json;large-significand-format=string"
ORIGIN = ("Origin", "http://elsewhere.example")
KEY = ("X-API-Key", API_KEY)
JSON = ("Content-Type", "application/json")
DOCUMENTS = {"node": "/api-docs/openapi.json", "matcher": "/api-docs/openapi.json"}
SIGNER_DOCUMENT = "/openapi.json"
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS")
PREFLIGHT = (
    ORIGIN,
    ("Access-Control-Request-Method", "POST"),
    ("Access-Control-Request-Headers", "content-type, x-api-key"),
)
NEVER_WITH_KEY = {("node", "POST", "/node/stop")}
STREAMS = {("node", "/events")}
LAST = ("/debug/rollback", "/matcher/orderbook/{amount}/{price}/delete")
"""What takes away what others ask for comes last."""
ALWAYS = ("timeout", "until")
"""Without these an answer waits, or depends on the time."""
BAD_BODIES = ("", "{}", "[]", "null", '"text"', "7", "{", '{"a":1}', '[{"a":[]}]', "\x00", "id=1")
PLACES = (
    *(
        "/",
        "/index.html",
        "/favicon.ico",
        "/robots.txt",
        "/nowhere",
        "//blocks/height",
        "/api-docs",
    ),
    *("/api-docs/index.html", "/api-docs/swagger-ui.css", "/api-docs/nothing.js", "/blocks/../x"),
    *("/%", "/%zz", "/%C3%A4", "/blocks/height/", "/BLOCKS/HEIGHT", "/blocks/height?x=1"),
    *("/blocks/height#part", "/blocks//height", "/matcher/", "/ws/v0", "/ws", "/health", "/ready"),
    *(
        "/assets",
        "/static/x",
        "/pages/style.css",
        "/pages/exchange.js",
        "/page.css",
        "/docs",
        "/swagger",
    ),
    *("/events?from=abc", "/events?events=nothing", "/events?address=abc", "/events?type=abc"),
    *("/consensus/algo", "/consensus/basetarget", "/blocks/first", "/debug/portfolios/x"),
    "/" + "long/" * 400,
)


class Question(NamedTuple):
    """One request; the headers are pairs, in the order in which they are sent."""

    service: str
    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""


def documents_of(urls: Mapping[str, str]) -> dict[str, Any]:
    """What each service says about itself."""
    return {
        service: call(url + DOCUMENTS.get(service, SIGNER_DOCUMENT)).json()
        for service, url in urls.items()
    }


def make_questions(documents: Mapping[str, Any], names: Mapping[str, Any]) -> list[Question]:
    """Reading first, then what sends bodies, then what changes what is there."""
    found: dict[Question, None] = {}
    late: dict[Question, None] = {}
    for service, document in documents.items():
        for place in PLACES:
            found[Question(service, "GET", place)] = None
        found[Question(service, "OPTIONS", "*")] = None
        for path, operations in document["paths"].items():
            into = late if path in LAST else found
            into.update(dict.fromkeys(questions_of(service, path, operations, names)))
    for question in bodies(names):
        found[question] = None
    changing = [each for each in found if each.method in {"DELETE", "PUT"} and KEY in each.headers]
    resting = [each for each in found if each not in set(changing)]
    return [*resting, *changing, *late]


def questions_of(
    service: str, path: str, operations: Mapping[str, Any], names: Mapping[str, Any]
) -> Iterator[Question]:
    """All requests of one path."""
    stream = (service, path) in STREAMS
    used = {method.upper(): operation for method, operation in operations.items()}
    for method, operation in used.items():
        pathed, queried = parameters_of(operation)
        good = {name: good_values(service, path, name, names) for name in (*pathed, *queried)}
        first = {name: values[0] for name, values in good.items()}
        if not stream:
            yield from used_well(service, method, path, operation, pathed, queried, good, names)
        for name in () if stream else (*pathed, *queried):
            for value in BAD:
                target = target_of(path, {**first, name: value}, pathed, (name,))
                yield Question(service, method, target, *usual(service, method, path, operation))
    for method in METHODS:
        if method not in used and (service, method, path) not in NEVER_WITH_KEY and not stream:
            operation = next(iter(used.values()))
            pathed, _ = parameters_of(operation)
            first = {name: good_values(service, path, name, names)[0] for name in pathed}
            headers = PREFLIGHT if method == "OPTIONS" else ()
            yield Question(service, method, target_of(path, first, pathed, ()), headers)


def used_well(
    service: str,
    method: str,
    path: str,
    operation: Mapping[str, Any],
    pathed: list[str],
    queried: list[str],
    good: Mapping[str, list[str]],
    names: Mapping[str, Any],
) -> Iterator[Question]:
    """As it is meant to be used, with each good value, and with headers that matter."""
    first = {name: values[0] for name, values in good.items()}
    plain = target_of(path, first, pathed, ())
    headers, body = usual(service, method, path, operation)
    yield Question(service, method, plain, headers, body)
    if method == "GET":
        yield Question(service, method, plain, (*headers, ("If-None-Match", ETAG_BEFORE)), body)
        yield Question(service, method, plain, (*headers, ("If-None-Match", '"other"')), body)
        yield Question(service, method, plain + "/", headers, body)
    yield Question(service, method, plain, (*headers, ("Accept", LARGE)), body)
    yield Question(service, method, plain, (*headers, ("Accept", "text/html")), body)
    yield Question(service, method, plain, (*headers, ORIGIN), body)
    yield Question(service, method, plain, (("X-API-Key", "wrong"),), body)
    if "security" in operation:
        without = tuple(each for each in headers if each != KEY)
        yield Question(service, method, plain, without, body)
    for name, values in good.items():
        asked = (name,) if name in queried else ()
        for value in values:
            yield Question(
                service,
                method,
                target_of(path, {**first, name: value}, pathed, asked),
                headers,
                body,
            )
    if queried:
        yield Question(service, method, target_of(path, first, pathed, queried), headers, body)
    if "requestBody" in operation:
        for text in BAD_BODIES:
            yield Question(service, method, plain, headers, text)
        yield Question(service, method, plain, (("Content-Type", "text/xml"),), body)
        yield Question(service, method, plain, (), body)
        for content, text in bodies_of(path, names):
            yield Question(service, method, plain, with_key(operation, content), text)


def usual(
    service: str, method: str, path: str, operation: Mapping[str, Any]
) -> tuple[tuple[tuple[str, str], ...], str]:
    """The headers and the body of the documented example."""
    content: Mapping[str, Any] = operation.get("requestBody", {}).get("content", {})
    if not content:
        keyed = "security" in operation and (service, method, path) not in NEVER_WITH_KEY
        return ((KEY,) if keyed else (), "")
    kind, media = next(iter(content.items()))
    example = media.get("example")
    if example is None:
        named: Mapping[str, Any] = media.get("examples", {})
        example = next((each["value"] for each in named.values()), "")
    body = example if isinstance(example, str) else json.dumps(example)
    return with_key(operation, kind), body


def with_key(operation: Mapping[str, Any], kind: str) -> tuple[tuple[str, str], ...]:
    """The type of the content, and the key where one is asked for."""
    return (("Content-Type", kind), *((KEY,) if "security" in operation else ()))


def parameters_of(operation: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The names of those in the path and those in the query."""
    places: dict[str, list[str]] = {"path": [], "query": []}
    for parameter in operation.get("parameters", ()):
        places.setdefault(parameter["in"], []).append(parameter["name"])
    return places["path"], places["query"]


def target_of(
    path: str, values: Mapping[str, str], pathed: list[str], queried: tuple[str, ...] | list[str]
) -> str:
    """Path and query as they are sent."""
    for name in pathed:
        path = path.replace(f"{{{name}}}", quote(values[name], safe=":"))
    queried = (*queried, *(each for each in ALWAYS if each in values and each not in queried))
    pairs = "&".join(f"{name}={quote(values[name], safe=':')}" for name in queried)
    return f"{path}?{pairs}" if pairs else path


def bodies(names: Mapping[str, Any]) -> Iterator[Question]:
    """What is sent in the end: transactions and orders, good and refused."""
    for name, item in names["signed"].items():
        if "orderType" in item:
            yield from order_bodies(item, spoil=name == "new order")
        else:
            yield from transaction_bodies(item, names["rich"], spoil=name.startswith("new "))
    for target in ("/transactions/unconfirmed", "/transactions/unconfirmed/size"):
        yield Question("node", "GET", target, (("Accept", "application/json"),))
    for owner in (names["public key"], names["other public key"]):
        for target in (f"/matcher/orderbook/{owner}", f"/api/v1/balances/{owner}"):
            yield Question("matcher", "GET", target, (KEY, ("Accept", "*/*")))


def transaction_bodies(item: Mapping[str, Any], signer: str, *, spoil: bool) -> Iterator[Question]:
    """A transaction wherever one is taken, and sent last; without members where it is spoilt."""
    text = json.dumps(item)
    for target in (
        *("/debug/validate", "/transactions/calculateFee", "/transactions/simulate"),
        *("/utils/transactionSerialize", "/transactions/sign", f"/transactions/sign/{signer}"),
    ):
        yield Question("node", "POST", target, (JSON, KEY), text)
    for missing in ("fee", "type", "senderPublicKey", "proofs", "timestamp") if spoil else ():
        yield Question("node", "POST", "/transactions/broadcast", (JSON,), without(item, missing))
    for target in ("/transactions/broadcast", "/transactions/broadcast?trace=true"):
        yield Question("node", "POST", target, (JSON,), text)


def order_bodies(item: Mapping[str, Any], *, spoil: bool) -> Iterator[Question]:
    """An order with faults, and as it is."""
    for missing in (
        ("amount", "assetPair", "proofs", "version", "matcherPublicKey") if spoil else ()
    ):
        yield Question("matcher", "POST", "/matcher/orderbook", (JSON,), without(item, missing))
    for change in ({"amount": 0}, {"price": -1}, {"matcherFee": 1}, {"expiration": 1}):
        text = json.dumps({**item, **change})
        yield Question("matcher", "POST", "/matcher/orderbook", (JSON,), text)
    for target in ("/matcher/orderbook/market", "/matcher/orderbook"):
        yield Question("matcher", "POST", target, (JSON,), json.dumps(item))


def without(item: Mapping[str, Any], missing: str) -> str:
    """The JSON of an object without one of its members."""
    return json.dumps({key: value for key, value in item.items() if key != missing})
