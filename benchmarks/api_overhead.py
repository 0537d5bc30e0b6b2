"""What one request costs inside the REST application, without sockets.

Prints microseconds of CPU a request, the minimum of several rounds. 200 further routes fill the
trie, as in the whole API. `--rounds N` for steadier figures.
"""

from __future__ import annotations

import argparse
import time

from soliton.api.application import Application
from soliton.api.context import ApiContext
from soliton.api.http import Request
from soliton.api.routes import GET, POST, Body, BodyKind, Route
from soliton.web.parameters import NATURAL, TEXT, Parameter

REQUESTS = 5_000
BUDGET_MICROSECONDS = 15.0

HEADERS = [
    (b"host", b"127.0.0.1:6869"),
    (b"user-agent", b"benchmark"),
    (b"accept", b"*/*"),
    (b"accept-encoding", b"gzip"),
    (b"content-type", b"application/json"),
]
TRANSFER = (
    b'{"type":4,"version":2,"senderPublicKey":"EENPV1mRhUD9gSKbcWt84cqnfSGQP5LkCu5gMBfAanYH",'
    b'"recipient":"3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF","assetId":null,"feeAssetId":null,'
    b'"amount":1000000,"fee":100000,"timestamp":1700000000000,"attachment":"",'
    b'"proofs":["2wpuqxmSyn7v7bmHRSSvEhcH3SyZzhLhBUxP9kRzPEGCBjkUYEQjBcJCSPkMbQW1fkvVBP4MqcJbYDW"]}'
)


def _route(methods: tuple[str, ...], path: str, body: Body | None = None) -> Route:
    def handler(request: Request) -> object:
        if body is not None:
            return {"id": request.json()["type"]}
        return {"height": 1, **request.arguments}

    kinds = {"height": NATURAL}
    return Route(
        methods=methods,
        path=path,
        handler=handler,
        tag="benchmark",
        summary="",
        response={},
        example=1,
        body=body,
        parameters=tuple(
            Parameter(part[1:-1], kinds.get(part[1:-1], TEXT), "", 1)
            for part in path.split("/")
            if part.startswith("{")
        ),
    )


def make_app() -> Application:
    """The measured routes among 200 others."""
    json = Body(BodyKind.JSON, "", {}, {})
    routes = [
        _route(GET, "/blocks/height"),
        _route(GET, "/blocks/at/{height}"),
        _route(GET, "/addresses/data/{address}/{key}"),
        _route(POST, "/transactions/broadcast", json),
    ]
    routes += [_route(GET, f"/group{index % 20}/route{index}/{{id}}") for index in range(200)]
    return Application(ApiContext(title="benchmark", version="1"), routes)


def measure(app: Application, method: str, path: str, body: bytes, rounds: int) -> float:
    """Microseconds of CPU a request."""
    best = float("inf")
    for _ in range(rounds):
        started = time.process_time_ns()
        for _ in range(REQUESTS):
            app.respond(Request(method, path, b"", dict(HEADERS), body))
        best = min(best, (time.process_time_ns() - started) / REQUESTS / 1000)
    return best


def main(rounds: int) -> None:
    """Print the table."""
    app = make_app()
    cases = (
        ("GET", "/blocks/height", b""),
        ("GET", "/blocks/at/1234", b""),
        ("GET", "/addresses/data/3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF/key", b""),
        ("POST", "/transactions/broadcast", TRANSFER),
        ("GET", "/no/such/route", b""),
    )
    for method, path, body in cases:
        cost = measure(app, method, path, body, rounds)
        remark = (
            "" if cost <= BUDGET_MICROSECONDS else f"  over the budget of {BUDGET_MICROSECONDS}"
        )
        print(f"{method + ' ' + path[:38]:44} {cost:6.2f} us{remark}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    main(parser.parse_args().rounds)
