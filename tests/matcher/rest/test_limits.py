"""How many requests a client may send."""

from __future__ import annotations

from collections.abc import Coroutine

import pytest

from soliton.matcher.rest.door import OVER_LIMIT, Door
from soliton.matcher.settings import Limits, RestApi
from soliton.web.budgets import Budgets
from soliton.web.tallies import Tallies
from soliton.web.types import Message, Receive, Scope, Send, WholeAnswer
from tests.matcher.fakes import Api, FakeCore, exchange

BURST = 2
SOMEBODY, ANOTHER, LOCAL = "10.0.0.1", "10.0.0.2", "127.0.0.1"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def limited(clock: Clock, *, local_clients: bool = False) -> Door:
    """A door where each client may send one request a second, and save up two."""
    limits = Limits(requests_per_second=1, burst=BURST, local_clients=local_clients)
    door = Api(FakeCore(rest_api=RestApi(limits=limits))).app.door
    assert door._budgets is not None
    door._budgets = Budgets(1, BURST, Tallies(), clock)
    return door


def status_of(door: Door, host: str) -> int:
    """That of an answer, 200 for one that is not there at once."""
    answer = door.answer_at_once("GET", b"/matcher", b"", {}, b"", host)
    if isinstance(answer, WholeAnswer):
        return answer.status
    assert isinstance(answer, Coroutine)
    answer.close()
    return 200


def test_who_sends_too_much_is_told_when_to_come_again() -> None:
    clock = Clock()
    door = limited(clock)
    statuses = [status_of(door, SOMEBODY) for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]
    refused = door.answer_at_once("GET", b"/matcher", b"", {}, b"", SOMEBODY)
    assert isinstance(refused, WholeAnswer)
    assert dict(refused.headers)[b"retry-after"] == b"1"
    assert dict(refused.headers)[b"access-control-allow-origin"] == b"*"
    assert [status_of(door, ANOTHER), status_of(door, LOCAL)] == [200, 200]
    clock.now += 1
    assert [status_of(door, SOMEBODY) for _ in range(2)] == [200, 429]
    assert door._tallies.sum(OVER_LIMIT) == 4


def test_clients_on_this_machine_count_where_the_operator_wants_it() -> None:
    for local_clients, last in ((False, 200), (True, 429)):
        door = limited(Clock(), local_clients=local_clients)
        assert [status_of(door, LOCAL) for _ in range(4)][-1] == last


async def test_the_same_for_requests_that_come_in_pieces() -> None:
    door = limited(Clock())
    scope: Message = {
        "type": "http",
        "method": "GET",
        "raw_path": b"/matcher",
        "path": "/matcher",
        "query_string": b"",
        "headers": [],
        "client": (SOMEBODY, 40_000),
    }
    replies = [await exchange(door, scope, b"") for _ in range(4)]
    assert [reply.status for reply in replies] == [200, 200, 200, 429]


async def test_messages_over_websockets_wait_to_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, sent = Clock(), 6
    door = limited(clock)
    coming: list[Message] = [{"type": "websocket.connect"}]
    coming += [{"type": "websocket.receive", "text": "{}"}] * sent
    coming += [{"type": "websocket.disconnect"}]
    read: list[tuple[object, float]] = []

    async def receive() -> Message:
        return coming.pop(0)

    async def sockets(_scope: Scope, receive: Receive, _send: Send) -> None:
        while not read or read[-1][0] != "websocket.disconnect":
            message = await receive()
            read.append((message["type"], clock.now))

    async def sleep(seconds: float) -> None:
        clock.now += seconds

    async def send(_message: Message) -> None:
        raise AssertionError("nothing is sent here")

    monkeypatch.setattr(door, "_sockets", sockets)
    monkeypatch.setattr("soliton.matcher.rest.door.asyncio.sleep", sleep)
    await door({"type": "websocket", "headers": [], "client": (SOMEBODY, 40_000)}, receive, send)
    assert [at for kind, at in read if kind == "websocket.receive"] == [
        100,
        100,
        100,
        101,
        102,
        103,
    ]
    assert (read[0], read[-1]) == (("websocket.connect", 100), ("websocket.disconnect", 103))
    assert status_of(door, SOMEBODY) == 429


@pytest.mark.parametrize(("per_second", "bounded"), [(0, False), (10_000, True)])
def test_none_and_the_usual_limit(per_second: int, *, bounded: bool) -> None:
    door = Api(FakeCore(rest_api=RestApi(limits=Limits(requests_per_second=per_second)))).app.door
    assert (door._budgets is not None) is bounded
    # A market maker's four seconds at 4,000 requests, in no time.
    assert {status_of(door, SOMEBODY) for _ in range(16_000)} == {200}
