"""Fair limits: a bucket of working time for each client, places for long answers."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from soliton.api.application import PIECE_BYTES, Application
from soliton.api.errors import TOO_MANY_WAITING, ApiError
from soliton.api.fair_limits import UNCOUNTED, FairLimits
from soliton.api.http import Request
from soliton.api.routes import GET, Handler, Route
from soliton.node.rest_settings import ApiLimits
from soliton.web.answers import Whole
from soliton.web.clients import LOCAL
from soliton.web.shared_counters import LONG, ClientCounts, SharedCounters, join, share
from tests.api.client import call, call_at_once, make_context

LIMITS = ApiLimits(
    client_percent=10, client_burst_ms=2_000, long_answers=3, long_answers_per_client=2
)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def wait_of(limits: FairLimits, client: str) -> int | None:
    try:
        limits.admit(client)
    except ApiError as error:
        return error.retry_after
    return None


BUCKET = """
# seconds later | working time taken | refused, come again after
0               | 1.0                | -
0               | 0.9                | -
0               | 0.2                | -
0               | 0                  | 1
0               | 1.0                | 1
0               | 0                  | 11
10              | 0                  | 1
1               | 0                  | -
0               | 0.5                | -
0               | 0                  | 5
1000            | 2.0                | -
0               | 0.1                | -
0               | 0                  | 1
"""


def test_the_bucket_empties_and_fills() -> None:
    clock = Clock()
    limits = FairLimits(LIMITS, SharedCounters(), clock)
    for line in BUCKET.strip().splitlines()[1:]:
        later, taken, refused = (cell.strip() for cell in line.split("|"))
        clock.now += float(later)
        assert str(wait_of(limits, "10.0.0.1") or "-") == refused, line
        limits.charge("10.0.0.1", float(taken))
        assert wait_of(limits, "10.0.0.2") is None


def test_local_clients_have_no_limit_unless_that_is_wished() -> None:
    for wished in (False, True):
        given = msgspec.structs.replace(LIMITS, local_clients=wished)
        limits = FairLimits(given, SharedCounters(), Clock())
        limits.charge(LOCAL, 1_000)
        assert (wait_of(limits, LOCAL) is not None) is wished
    unlimited = FairLimits(
        msgspec.structs.replace(LIMITS, client_percent=0), SharedCounters(), Clock()
    )
    unlimited.charge("10.0.0.1", 1_000)
    assert wait_of(unlimited, "10.0.0.1") is None


def test_places_for_long_answers() -> None:
    limits = FairLimits(LIMITS, SharedCounters(), Clock())

    def refused(client: str) -> int | None:
        try:
            limits.enter(client)
        except ApiError as error:
            return error.kind.status
        return None

    assert [refused(name) for name in ("a", "a", "a", "b", "c")] == [None, None, 429, None, 503]
    limits.leave("a")
    limits.leave("b")
    assert [refused(name) for name in ("", "", "")] == [None, None, 503]


def test_those_who_wait_take_no_place_of_the_busy() -> None:
    limits = FairLimits(LIMITS, SharedCounters(), Clock())
    for name in ("a", "a", "b", "c", "", "", ""):
        limits.enter(name, idle=True)
    with pytest.raises(ApiError) as refusal:
        limits.enter("a", idle=True)
    assert refusal.value.kind.status == 429
    limits.enter("a")
    limits.leave("a", idle=True)
    limits.enter("a", idle=True)


def of_two_processes(tmp_path: Path) -> tuple[FairLimits, FairLimits, SharedCounters]:
    clock, first = Clock(), share(tmp_path / "counters", 2)
    second = join(tmp_path / "counters", 2, 1)
    return FairLimits(LIMITS, first, clock), FairLimits(LIMITS, second, clock), first


def test_a_client_has_one_bucket_whoever_it_asks(tmp_path: Path) -> None:
    one, other, _ = of_two_processes(tmp_path)
    one.charge("10.0.0.1", 1.5)
    other.charge("10.0.0.1", 0.6)
    assert [wait_of(each, "10.0.0.1") for each in (one, other)] == [1, 1]
    assert [wait_of(each, "10.0.0.2") for each in (one, other)] == [None, None]


def test_the_places_are_those_of_all_processes(tmp_path: Path) -> None:
    one, other, counters = of_two_processes(tmp_path)
    one.enter("a")
    other.enter("a")
    for each in (one, other):
        with pytest.raises(ApiError) as refusal:
            each.enter("a")
        assert refusal.value.kind.status == 429
    one.enter("b")
    with pytest.raises(ApiError) as refusal:
        other.enter("c")
    assert refusal.value.kind.status == 503
    # The other process has ended, and with it what it had open.
    counters.reset_slot(1, ())
    one.enter("a")


@pytest.mark.parametrize(
    ("begun", "last", "another"), [("a", "a", "a"), ("ab", "c", "d")], ids=["client", "all"]
)
def test_the_last_place_is_not_taken_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: str, last: str, another: str
) -> None:
    """Another process begins an answer while one compares its count with the limit."""
    one, other, counters = of_two_processes(tmp_path)
    for client in begun:
        one.enter(client)
    meanwhile = [other]

    def beginning(read: Callable[..., int]) -> Callable[..., int]:
        def reading(*given: object) -> int:
            found = read(*given)
            if meanwhile:
                with contextlib.suppress(ApiError):
                    meanwhile.pop().enter(another)
            return found

        return reading

    name = "of" if last in begun else "total"
    monkeypatch.setattr(ClientCounts, name, beginning(getattr(ClientCounts, name)))
    with contextlib.suppress(ApiError):
        one.enter(last)
    monkeypatch.undo()
    assert not meanwhile
    assert counters.counts(LONG).total() == len(begun) + 1


def test_what_has_been_counted_before_takes_nothing() -> None:
    limits = FairLimits(
        msgspec.structs.replace(LIMITS, local_clients=True), SharedCounters(), Clock()
    )
    limits.charge(UNCOUNTED, 1_000)
    assert wait_of(limits, UNCOUNTED) is None and not limits.counts(UNCOUNTED)


def app_with(handler: Handler, limits: ApiLimits) -> Application:
    one = Route(
        methods=GET, path="/", handler=handler, tag="test", summary="", response={}, example=1
    )
    return Application(make_context(limits=limits), (one,))


async def test_a_client_that_asks_for_too_much_is_told_when_to_come_again() -> None:
    limits = ApiLimits(client_percent=1, client_burst_ms=1)

    def dear(_request: Request) -> object:
        time.sleep(0.005)
        return "x"

    for ask in (call, call_at_once):
        app = app_with(dear, limits)
        assert (await ask(app, "GET /", host="10.9.8.7")).status == 200
        answer = await ask(app, "GET /", host="10.9.8.7")
        assert answer.status == 429
        # What it took counts, however slow the machine is.
        assert int(answer.headers[b"retry-after"]) >= 1
        assert answer.json()["error"] == 4290  # type: ignore[index]
        assert (await ask(app, "GET /", host="10.9.8.6")).status == 200
        assert (await ask(app, "GET /")).status == 200


async def test_long_answers_are_counted_until_they_end() -> None:
    release = asyncio.Event()

    async def long(_request: Request) -> object:
        await release.wait()
        return "done"

    app = app_with(long, ApiLimits(long_answers=3, long_answers_per_client=2))
    tasks = [asyncio.create_task(call(app, "GET /", host="10.0.0.1")) for _ in range(2)]
    await asyncio.sleep(0)
    assert (await call(app, "GET /", host="10.0.0.1")).status == 429
    tasks.append(asyncio.create_task(call(app, "GET /")))
    await asyncio.sleep(0)
    busy = await call(app, "GET /", host="10.0.0.2")
    assert (busy.status, busy.headers[b"retry-after"]) == (503, b"1")
    tasks.pop().cancel()
    await asyncio.sleep(0.01)
    again = asyncio.create_task(call(app, "GET /", host="10.0.0.2"))
    release.set()
    assert [answer.status for answer in await asyncio.gather(*tasks, again)] == [200, 200, 200]


async def test_a_long_body_counts_by_its_length() -> None:
    text = bytes(10 * PIECE_BYTES)
    app = app_with(lambda _request: Whole(text), ApiLimits(client_percent=1, client_burst_ms=10))
    first = await call_at_once(app, "GET /", host="10.0.0.1")
    assert (first.status, len(first.body)) == (200, len(text))
    second = await call_at_once(app, "GET /", host="10.0.0.1")
    assert second.status == 429
    assert int(second.headers[b"retry-after"]) >= 1


def test_those_that_wait_for_events_leave_connections_for_requests() -> None:
    """Each of many clients keeps to its own limit."""
    limits = msgspec.structs.replace(LIMITS, connections=8)
    fair = FairLimits(limits, SharedCounters())
    for number in range(3):
        for _ in range(2):
            fair.enter(f"client {number}", idle=True)
    with pytest.raises(ApiError) as refused:
        fair.enter("another", idle=True)
    assert refused.value.kind is TOO_MANY_WAITING
    # This machine has a reserve, and so have answers that are under way.
    fair.enter(LOCAL, idle=True)
    fair.enter("another")
    fair.leave(LOCAL, idle=True)
    fair.leave("client 0", idle=True)
    fair.enter("another", idle=True)
