"""How many requests a client may send."""

from __future__ import annotations

from typing import cast

import pytest

from soliton.matcher.rest.http_gate import OVER_LIMIT, HttpGate, Pay
from soliton.matcher.settings import Limits, RestApi
from soliton.web.answers import Answer, Awaited, Upgrade, Whole
from soliton.web.budgets import Budgets
from soliton.web.request import Request
from soliton.web.shared_counters import SharedCounters
from soliton.web.websocket import WebSocket
from tests.matcher.fakes import Api, FakeCore, exchange

BURST = 2
SOMEBODY, ANOTHER, LOCAL = "10.0.0.1", "10.0.0.2", "127.0.0.1"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def limited(clock: Clock, *, local_clients: bool = False) -> HttpGate:
    """A door where each client may send one request a second, and save up two."""
    limits = Limits(requests_per_second=1, burst=BURST, local_clients=local_clients)
    door = Api(FakeCore(rest_api=RestApi(limits=limits))).app.gate
    assert door._budgets is not None
    door._budgets = Budgets(1, BURST, SharedCounters(), clock)
    return door


def asked(door: HttpGate, host: str) -> Answer:
    return door.respond(Request("GET", "/matcher", host=host))


def status_of(door: HttpGate, host: str) -> int:
    """That of an answer, 200 for one that is not there at once."""
    answer = asked(door, host)
    if isinstance(answer, Whole):
        return answer.status
    assert isinstance(answer, Awaited)
    answer.work.close()
    return 200


def test_who_sends_too_much_is_told_when_to_come_again() -> None:
    clock = Clock()
    door = limited(clock)
    statuses = [status_of(door, SOMEBODY) for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]
    refused = asked(door, SOMEBODY)
    assert isinstance(refused, Whole)
    assert dict(refused.headers)[b"retry-after"] == b"1"
    assert dict(refused.headers)[b"access-control-allow-origin"] == b"*"
    assert [status_of(door, ANOTHER), status_of(door, LOCAL)] == [200, 200]
    clock.now += 1
    assert [status_of(door, SOMEBODY) for _ in range(2)] == [200, 429]
    assert door._counters.sum(OVER_LIMIT) == 4


def test_clients_on_this_machine_count_where_the_operator_wants_it() -> None:
    for local_clients, last in ((False, 200), (True, 429)):
        door = limited(Clock(), local_clients=local_clients)
        assert [status_of(door, LOCAL) for _ in range(4)][-1] == last


async def test_the_same_for_requests_that_come_in_pieces() -> None:
    door = limited(Clock())
    replies = [await exchange(door, "GET /matcher", b"", host=SOMEBODY) for _ in range(4)]
    assert [reply.status for reply in replies] == [200, 200, 200, 429]


async def test_messages_over_websockets_wait_to_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, sent = Clock(), 6
    door = limited(clock)
    read: list[float] = []

    class Sockets:
        def respond(self, _request: Request, pay: Pay) -> Upgrade:
            async def run(_socket: WebSocket) -> None:
                for _ in range(sent):
                    await pay()
                    read.append(clock.now)

            return Upgrade(run)

    async def sleep(seconds: float) -> None:
        clock.now += seconds

    monkeypatch.setattr(door, "_sockets", Sockets())
    monkeypatch.setattr("soliton.matcher.rest.http_gate.asyncio.sleep", sleep)
    request = Request("GET", "/ws/v0", host=SOMEBODY)
    request.is_websocket = True
    answer = door.respond(request)
    assert isinstance(answer, Upgrade)
    await answer.run(cast("WebSocket", None))
    assert read == [100, 100, 100, 101, 102, 103]
    assert status_of(door, SOMEBODY) == 429


@pytest.mark.parametrize(("per_second", "bounded"), [(0, False), (10_000, True)])
def test_none_and_the_usual_limit(per_second: int, *, bounded: bool) -> None:
    door = Api(FakeCore(rest_api=RestApi(limits=Limits(requests_per_second=per_second)))).app.gate
    assert (door._budgets is not None) is bounded
    # A market maker's four seconds at 4,000 requests, in no time.
    assert {status_of(door, SOMEBODY) for _ in range(16_000)} == {200}
