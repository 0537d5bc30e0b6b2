"""What clients of a worker may take, who they are, and what they hear when nobody answers it."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace
from websockets.asyncio.client import connect as connect_websocket

from soliton.chain import orders
from soliton.crypto import base58
from soliton.matcher.rest.answers import FAULT, Answer
from soliton.matcher.rest.http_gate import FAILURES, OVER_LIMIT, REQUESTS, HttpGate
from soliton.matcher.rest.order_channel import UNKNOWN
from soliton.matcher.rest.order_worker import AWAY, BUSY
from soliton.matcher.settings import Limits, RestApi
from soliton.web import upstream
from soliton.web.answers import Awaited, Deferred, Upgrade, Whole
from soliton.web.budgets import Budgets
from soliton.web.clients import LOCAL
from soliton.web.request import Request
from soliton.web.shared_counters import SharedCounters
from soliton.web.upstream import CLIENT_HEADER
from soliton.web.websocket import WebSocket, WebSocketClosed
from tests.matcher.fakes import ALICE, GOLD, KEY, Api, FakeCore, buy
from tests.matcher.rest.fronts import Behind, ask, request
from tests.matcher.rest.test_limits import ANOTHER, BURST, SOMEBODY, Clock

BOOK = f"/matcher/orderbook/{base58.encode(GOLD)}/WAVES"
JSON = {b"content-type": b"application/json"}
PLACE = "POST /matcher/orderbook"
WORKERS = 2


@contextlib.asynccontextmanager
async def served(directory: Path, api: RestApi | None = None) -> AsyncIterator[Behind]:
    """A matcher behind two workers."""
    behind = Behind(FakeCore(**({} if api is None else {"rest_api": api})), directory, WORKERS)
    async with behind.serving():
        yield behind


@pytest_asyncio.fixture
async def behind(tmp_path: Path) -> AsyncIterator[Behind]:
    async with served(tmp_path) as made:
        yield made


@pytest_asyncio.fixture
async def limited(tmp_path: Path) -> AsyncIterator[Behind]:
    """Each client, also one on this machine, may send one request a second, and save up two."""
    limits = Limits(requests_per_second=1, burst=BURST, local_clients=True)
    async with served(tmp_path, RestApi(limits=limits)) as made:
        yield made


def budgets_of(behind: Behind, clock: Clock) -> Budgets:
    """What clients have, on a clock of the test's; the same for all doors."""
    budgets = Budgets(1, BURST, behind.counters, clock)
    for door in (behind.app.gate, *(worker.front.gate for worker in behind.workers)):
        assert door._budgets is not None
        door._budgets = budgets
    return budgets


def spent_by(client: str, budgets: Budgets) -> float:
    """What a client has taken; the clock stands still."""
    return max(budgets.wait(client) + BURST, 0)


async def answer_of(door: HttpGate, line: str, body: bytes = b"", host: str = SOMEBODY) -> Whole:
    """The answer to a request in one packet, of a client anywhere."""
    method, target = line.split(" ", 1)
    path, _, query = target.partition("?")
    given = door.respond(Request(method, path, query.encode(), JSON, body, host))
    if isinstance(given, Awaited):
        given = await given.work
    if isinstance(given, Deferred):
        outcome: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        given.ask(outcome.set_result)
        given = given.then(await outcome)
    assert isinstance(given, Whole)
    return given


def order_body(number: int = 0) -> bytes:
    return msgspec.json.encode(orders.to_json(buy(ALICE, 10**8, 10**8 + number)))


# --- requests -------------------------------------------------------------------------------------


async def test_a_request_counts_once_wherever_it_is_answered(limited: Behind) -> None:
    clock = Clock()
    budgets_of(limited, clock)
    first, second = (worker.front.gate for worker in limited.workers)
    told = [
        await answer_of(first, "GET /matcher"),
        await answer_of(second, PLACE, order_body()),
        await answer_of(first, f"GET {BOOK}"),
        await answer_of(second, PLACE, order_body(1)),
    ]
    assert [answer.status for answer in told] == [200, 200, 200, 429]
    assert (b"retry-after", b"1") in told[-1].headers
    assert (await answer_of(first, "GET /matcher", host=ANOTHER)).status == 200
    clock.now += 1
    again = [await answer_of(door, "OPTIONS /matcher") for door in (second, first)]
    assert [answer.status for answer in again] == [200, 429]
    core = cast("FakeCore", limited.core)
    assert len(core.placed) == 1
    assert limited.counters.sum(REQUESTS) == 5 and limited.counters.sum(OVER_LIMIT) == 2


async def test_the_refusal_is_the_one_that_the_matcher_itself_gives(limited: Behind) -> None:
    budgets_of(limited, Clock())
    direct = Api(FakeCore(rest_api=limited.core.settings.rest_api)).app.gate
    direct._budgets = Budgets(1, BURST, SharedCounters(), Clock())
    door = limited.workers[0].front.gate
    told = [(await answer_of(door, "GET /x"), await answer_of(direct, "GET /x")) for _ in range(4)]
    (last, expected), statuses = told[-1], [answer.status for answer, _ in told]
    assert last == expected and statuses == [404, 404, 404, 429]


async def test_all_processes_count_together(behind: Behind) -> None:
    async def figures(port: int) -> dict[str, int]:
        body = (await ask(port, request("GET /metrics"))).body.decode()
        return {
            name: int(value)
            for name, value in re.findall(r"(?m)^soliton_matcher_(\w+)_total (\d+)$", body)
        }

    place = request(PLACE, {"content-type": "application/json"}, order_body())
    for worker in behind.workers:
        for sent in (request("GET /matcher"), place, request("HEAD /nowhere")):
            await ask(worker.port, sent)
    cast("FakeCore", behind.core).fail_with = RuntimeError("a bug")
    await ask(behind.workers[0].port, place)
    for number, worker in enumerate(behind.workers, 1):
        told = await figures(worker.port)
        assert told == {"requests": 7 + number, "failures": 1, "limited": 0, "executions": 0}


# --- who a client is ------------------------------------------------------------------------------


class Listening:
    """In the place of the matcher: keeps what it is sent, and answers nothing of interest."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                self.heads.append(await reader.readuntil(b"\r\n\r\n"))
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    def clients(self) -> list[list[bytes]]:
        """Whom each request was said to be from."""
        name = CLIENT_HEADER + b": "
        return [
            [line.removeprefix(name) for line in head.split(b"\r\n") if line.startswith(name)]
            for head in self.heads
        ]


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("203.0.113.9", b"203.0.113.9"),
        ("127.0.0.1", b""),
        ("", b""),
        ("2001:db8::1:2:3:4", b"2001:db8::"),
        ("::ffff:203.0.113.9", b"203.0.113.9"),
    ],
)
async def test_a_worker_says_who_its_client_is(
    tmp_path: Path, behind: Behind, host: str, told: bytes
) -> None:
    matcher, worker = Listening(), behind.workers[0]
    server = await asyncio.start_unix_server(matcher, str(tmp_path / "listening"))
    worker.pass_on_to(str(tmp_path / "listening"))
    headers = {CLIENT_HEADER: b"198.51.100.1", b"x-forwarded-for": b"198.51.100.1"}
    for method in ("GET", "POST"):
        given = worker.front.gate.respond(Request(method, "/matcher", b"", headers, b"", host))
        assert isinstance(given, Awaited)
        answer = await given.work
        assert isinstance(answer, Whole) and answer.status == 200
    line = {CLIENT_HEADER.decode(): "198.51.100.1", CLIENT_HEADER.decode().upper(): SOMEBODY}
    await ask(worker.port, request("GET /matcher", line))
    assert matcher.clients() == [[told], [told], [b""]]
    worker.upstream.close()
    server.close()


async def over_websocket(door: HttpGate, said: str, peer: str, messages: int) -> None:
    """So many messages over one connection."""
    headers = {CLIENT_HEADER: said.encode()}
    request = Request("GET", "/ws/v0", b"", headers, b"", peer)
    request.is_websocket = True
    answer = door.respond(request)
    assert isinstance(answer, Upgrade)
    coming = ["{}"] * messages

    class Socket:
        """Nobody listens to it."""

        async def receive(self) -> str:
            if not coming:
                raise WebSocketClosed
            return coming.pop()

        async def send(self, _text: bytes) -> None:
            """Nothing."""

        def close(self, _code: int = 1000) -> None:
            """Nothing."""

    async with asyncio.timeout(60):
        await answer.run(cast("WebSocket", Socket()))


@pytest.mark.parametrize("is_behind", [False, True])
async def test_messages_are_charged_to_who_connects(limited: Behind, *, is_behind: bool) -> None:
    """Whatever is said about it: behind workers the connection is the client's own, too."""
    budgets = budgets_of(limited, Clock())
    door = limited.app.gate
    if not is_behind:
        door = Api(FakeCore(rest_api=limited.core.settings.rest_api)).app.gate
        door._budgets = budgets
    await over_websocket(door, ANOTHER, SOMEBODY, 2)
    await over_websocket(door, "", "192.0.2.1", 1)
    spent = [spent_by(host, budgets) for host in (ANOTHER, SOMEBODY, "192.0.2.1", LOCAL)]
    assert spent == [0, 2, 1, 0]


async def test_a_client_of_a_websocket_cannot_choose_its_name(limited: Behind) -> None:
    budgets = budgets_of(limited, Clock())
    chosen = {CLIENT_HEADER.decode(): SOMEBODY, "X-Soliton-Client": ANOTHER}
    url = f"ws://127.0.0.1:{limited.workers[0].port}/ws/v0"
    async with connect_websocket(url, additional_headers=chosen, proxy=None) as connection:
        await connection.recv()
        await connection.send("{}")
        await connection.recv()
    # It is on this machine; its message counts as a request over HTTP would.
    assert [spent_by(host, budgets) for host in (SOMEBODY, ANOTHER, LOCAL)] == [0, 0, 1]


async def test_both_ways_of_a_client_have_one_budget(limited: Behind) -> None:
    budgets_of(limited, Clock())
    await over_websocket(limited.app.gate, "", SOMEBODY, BURST + 1)
    assert (await answer_of(limited.workers[1].front.gate, "GET /matcher")).status == 429


# --- nobody answers -------------------------------------------------------------------------------


async def says(door: HttpGate, line: str, answer: Answer, body: bytes = b"") -> bool:
    """Whether this is the answer to a request, with all of its headers."""
    return await answer_of(door, line, body) == door.whole(answer, line.partition(" ")[0])


async def test_more_than_there_may_be_under_way(
    behind: Behind, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, door = behind.workers[0], behind.workers[0].front.gate
    monkeypatch.setattr(upstream, "MAX_CONNECTIONS", 0)
    worker.pass_on_to("/nowhere")
    for line in ("GET /matcher", "POST /matcher/orderbook/market", f"DELETE {BOOK}"):
        assert await says(door, line, BUSY)
    assert BUSY.status == 503 and (b"retry-after", b"1") in BUSY.headers
    # Orders have a way of their own, and a limit of their own.
    worker.channel._spec = replace(worker.channel._spec, max_waiting=2)
    sent = [answer_of(door, PLACE, order_body(step)) for step in range(3)]
    statuses = [reply.status for reply in await asyncio.gather(*sent)]
    assert statuses == [200, 200, 503]
    assert not worker.channel.is_full
    assert (await answer_of(door, PLACE, order_body(2))).status == 200


async def test_a_matcher_that_is_gone(behind: Behind) -> None:
    door = behind.workers[0].front.gate
    assert (await answer_of(door, "GET /matcher")).status == 200
    assert behind.server is not None
    await behind.server.stop()
    behind.gate.close()
    await behind.workers[0].channel.lost.wait()
    for line, answer in (
        ("GET /matcher", AWAY),
        ("OPTIONS /matcher", AWAY),
        ("POST /matcher/orderbook/market", UNKNOWN),
        (f"DELETE {BOOK}", UNKNOWN),
        ("PUT /matcher/settings/rates/WAVES", UNKNOWN),
    ):
        assert await says(door, line, answer), line
    assert await says(door, PLACE, UNKNOWN, order_body())
    # What is wrong with an order can be told without it.
    assert (await answer_of(door, PLACE, b"{")).status == 400


async def test_a_matcher_that_goes_in_the_middle_of_an_answer(
    tmp_path: Path, behind: Behind
) -> None:
    async def breaks_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")
        writer.close()

    server = await asyncio.start_unix_server(breaks_off, str(tmp_path / "breaking"))
    worker, door = behind.workers[0], behind.workers[0].front.gate
    worker.pass_on_to(str(tmp_path / "breaking"))
    assert await says(door, "GET /matcher", AWAY)
    assert await says(door, "POST /matcher/orderbook/cancel", UNKNOWN)
    server.close()


async def test_a_fault_of_the_worker_is_told_logged_and_counted(
    behind: Behind, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("soliton.matcher.rest.order_worker.posted_order", broken)
    worker = behind.workers[0]
    assert await says(worker.front.gate, PLACE, FAULT, order_body())
    assert behind.counters.sum(FAILURES) == 1
    assert [record.message for record in caplog.records] == ["an order could not be read"]
    monkeypatch.undo()
    headers = {"content-type": "application/json", "x-api-key": KEY}
    reply = await ask(worker.port, request(PLACE, headers, order_body()))
    assert reply.status == 200
