"""Workers of a matcher: real processes before a real matcher."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_websocket
from websockets.exceptions import ConnectionClosed

from soliton.chain import orders
from soliton.chain.orders import Order, Side
from soliton.cli import matcher_workers
from soliton.cli.matcher_run import listening
from soliton.crypto import base58
from soliton.crypto.keys import key_pair
from soliton.devnet.accounts import RICH_SEED
from soliton.errors import EnvironmentProblem
from soliton.matcher import run
from soliton.matcher.rest.answers import status_of
from soliton.matcher.rest.application import Application
from soliton.matcher.run import RunningMatcher, start_matcher
from soliton.matcher.service import Matcher
from soliton.matcher.settings import MatcherSettings, RestApi
from soliton.matching import errors
from soliton.parallel.threads import cores
from soliton.web.clock import wall_clock
from soliton.web.worker_processes import WorkerContext
from soliton.web.worker_service import WorkerService
from tests.e2e import programs
from tests.e2e.programs import Program, devnet
from tests.matcher.devnet import FEE, fund, issue_silver
from tests.matcher.kit import (
    ALICE,
    BOB,
    COIN,
    MATCHER,
    PAIR,
    USD,
    FakeNode,
    eventually,
    make_order,
    running,
    settings_in,
)
from tests.matcher.rest.fronts import Reply, ask, request

WORKERS = 2
PRICE = 250
SECONDS = 60.0


def is_running(process_id: int) -> bool:
    """Whether there is a process with this id."""
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


def command_of(process_id: int) -> str:
    """What a process runs."""
    return Path(f"/proc/{process_id}/cmdline").read_bytes().replace(b"\0", b" ").decode()


@dataclass
class Service:
    """A matcher with its workers. Each request has a connection of its own, so all are asked."""

    whole: RunningMatcher
    workers: WorkerService
    accepted: list[bytes] = field(default_factory=list)
    refused: set[int] = field(default_factory=set)
    trades: bool = True
    count: int = 0

    async def get(self, path: str) -> Any:
        reply = await ask(self.whole.port, request(f"GET {path}"))
        assert reply.status == 200, reply.body
        return reply.json()

    async def place(self, order: Order) -> Reply:
        body = msgspec.json.encode(orders.to_json(order))
        sent = request("POST /matcher/orderbook", {"content-type": "application/json"}, body)
        return await ask(self.whole.port, sent)

    async def trade(self) -> None:
        """Offer what nobody buys, without end, whatever happens to those who are asked."""
        while self.trades:
            self.count += 1
            order = make_order(ALICE, Side.SELL, COIN, PRICE + self.count)
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                reply = await self.place(order)
                if reply.status == 200:
                    self.accepted.append(order.id)
                else:
                    self.refused.add(reply.status)

    async def progress(self, count: int = 20) -> None:
        """Wait until more orders were accepted."""
        goal = len(self.accepted) + count
        await eventually(lambda: len(self.accepted) >= goal)

    def lost(self, matcher: Matcher) -> set[bytes]:
        """What was accepted and is not in a matcher's book."""
        book = matcher.engine.book(PAIR)
        assert book is not None
        return {*self.accepted} - {active.id for active in book.orders()}


@pytest.fixture
def settings(tmp_path: Path) -> MatcherSettings:
    api = RestApi(port=0, workers=WORKERS)
    return settings_in(tmp_path, rest_api=api, max_active_orders=100_000)


@pytest.fixture
def node() -> FakeNode:
    made = FakeNode()
    for keys in (ALICE, BOB):
        made.fund(keys)
    return made


async def start(settings: MatcherSettings, node: FakeNode) -> Service:
    """A matcher that takes orders; it is to be stopped."""
    made: list[WorkerService] = []

    async def listen(matcher: Matcher) -> tuple[Application, WorkerService]:
        interface, workers = await matcher_workers.listen(matcher)
        made.append(workers)
        return interface, workers

    whole = await start_matcher(settings, node, listen)
    await asyncio.wait_for(whole.matcher.working(), SECONDS)
    return Service(whole, made[0])


@contextlib.asynccontextmanager
async def serving(settings: MatcherSettings, node: FakeNode) -> AsyncIterator[Service]:
    service = await start(settings, node)
    try:
        yield service
    finally:
        await service.whole.stop()


async def drain(stream: ClientConnection) -> None:
    """Read until the end."""
    while True:
        await stream.recv()


def test_where_there_are_none(settings: MatcherSettings) -> None:
    alone = msgspec.structs.replace(settings, rest_api=RestApi(workers=0))
    assert listening(alone) is run.listen
    assert listening(settings) is matcher_workers.listen


async def test_orders_are_matched_and_told_through_workers(
    settings: MatcherSettings, node: FakeNode
) -> None:
    book, name = f"/matcher/orderbook/WAVES/{base58.encode(USD)}", f"WAVES-{base58.encode(USD)}"
    async with contextlib.AsyncExitStack() as stack:
        async with serving(settings, node) as service:
            processes = service.workers.process_ids()
            assert len(processes) == WORKERS and all(map(is_running, processes))
            url = f"ws://127.0.0.1:{service.whole.port}/ws/v0"
            stream = await stack.enter_async_context(connect_websocket(url, proxy=None))

            async def told() -> Any:
                return msgspec.json.decode(await asyncio.wait_for(stream.recv(), SECONDS))

            assert (await told())["T"] == "i"
            await stream.send(msgspec.json.encode({"T": "obs", "S": name, "d": 5}).decode())
            await told()
            first, second = (make_order(keys, side, COIN, PRICE) for keys, side in (
                (ALICE, Side.SELL), (BOB, Side.BUY),
            ))  # fmt: skip
            assert (await service.place(first)).json()["message"]["id"] == base58.encode(first.id)
            assert (await told())["a"] == [["2.5", "1.0"]]
            assert (await service.place(second)).status == 200
            assert (await told())["t"] == ["2.5", "1.0", "buy"]
            for order in (first, second):
                found = await service.get(f"{book}/{base58.encode(order.id)}")
                assert found["status"] == "Filled"
            assert (await service.place(second)).json()["error"] == errors.ORDER_DUPLICATE.code
            forged = msgspec.structs.replace(
                make_order(BOB, Side.BUY, COIN, PRICE), proofs=first.proofs
            )
            kind = errors.ORDER_INVALID_SIGNATURE
            assert (await service.place(forged)).json()["error"] == kind.code
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(drain(stream), SECONDS)
    assert not any(map(is_running, processes))
    with pytest.raises(ConnectionError):
        await ask(service.whole.port, request("GET /matcher"))


async def test_a_killed_worker_is_replaced_and_nothing_accepted_is_lost(
    settings: MatcherSettings, node: FakeNode
) -> None:
    async with serving(settings, node) as service:
        before = service.workers.process_ids()
        lanes = [asyncio.create_task(service.trade()) for _ in range(4)]
        for process_id in before:
            await service.progress()
            os.kill(process_id, signal.SIGKILL)
            await eventually(
                lambda killed=process_id: killed not in service.workers.process_ids(),  # type: ignore[misc]
            )
        await service.progress()
        after = service.workers.process_ids()
        assert len(after) == WORKERS and not {*before} & {*after}
    # They went on until nobody answered any more: orders were under way at the end.
    service.trades = False
    await asyncio.gather(*lanes)
    late, stopping = errors.REQUEST_TIMEOUT, errors.MATCHER_IS_STOPPING
    assert service.refused <= {status_of(late), status_of(stopping)}
    assert service.lost(service.whole.matcher) == set()
    assert not any(map(is_running, (*before, *after)))
    async with running(settings, node) as again:
        assert service.lost(again) == set()


async def test_without_a_port_nothing_begins(settings: MatcherSettings, node: FakeNode) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        api = RestApi(port=taken.getsockname()[1], workers=1)
        with pytest.raises(EnvironmentProblem, match="cannot listen"):
            await start(msgspec.structs.replace(settings, rest_api=api), node)
    # Everything was let go of.
    async with running(settings, node):
        pass


async def test_a_worker_that_cannot_start_ends_all(
    settings: MatcherSettings, node: FakeNode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # The processes look where they always do, and nobody is there.
    away = property(lambda _worker: str(tmp_path / "away"))
    monkeypatch.setattr(WorkerContext, "channel_path", away)
    with pytest.raises(EnvironmentProblem, match="a worker could not start"):
        await start(settings, node)
    assert multiprocessing.active_children() == []
    monkeypatch.undo()
    async with serving(settings, node) as service:
        assert await service.get("/matcher") == base58.encode(MATCHER.public_key)


# --- programs -------------------------------------------------------------------------------------


def descendants(process_id: int) -> set[int]:
    """All processes below one."""
    try:
        text = Path(f"/proc/{process_id}/task/{process_id}/children").read_text()
    except FileNotFoundError:
        return set()
    children = {int(each) for each in text.split()}
    return children.union(*map(descendants, children))


def order_of(asset: str, matcher: str, side: Side, step: int) -> dict[str, Any]:
    """An order of the rich account for ten of an asset."""
    keys, now = key_pair(RICH_SEED), wall_clock()
    draft = Order(
        version=3,
        chain_id=ord("R"),
        sender_public_key=keys.public_key,
        matcher_public_key=base58.decode(matcher),
        amount_asset=base58.decode(asset),
        price_asset=None,
        side=side,
        amount=1_000,
        price=(25 + step) * 10**13,
        timestamp=now,
        expiration=now + 3_600_000,
        matcher_fee=FEE,
    )
    return orders.to_json(orders.sign(orders.build(draft), keys.private_key))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
def test_a_matcher_as_init_makes_it(tmp_path: Path) -> None:
    config = tmp_path / "matcher.conf"
    with devnet() as chain:
        asset = issue_silver(chain)
        made = programs.run(
            *("matcher", "init", "--config", config, "--data-dir", tmp_path / "data"),
            *("--node-url", chain.node_url),
        )
        assert made.returncode == 0, made.stderr
        assert f"workers = {int(cores() > 1)}\n" in config.read_text()

        def start() -> Program:
            options = ("--config", config, "--port", 0, "--workers", 1)
            program = Program(["matcher", "run", *options], {})
            program.wait_for("the matcher takes orders")
            return program

        accepted: list[str] = []
        for end in (signal.SIGKILL, signal.SIGTERM):
            program = start()
            try:
                url = program.matcher_url
                matcher = programs.call(f"{url}/matcher").json()
                fund(chain, matcher)
                for side in (Side.SELL, Side.BUY):
                    order = order_of(asset, matcher, side, -len(accepted))
                    answer = programs.call(f"{url}/matcher/orderbook", order)
                    assert answer.status == 200, answer.body
                    accepted.append(order["id"])
                for order_id in accepted:
                    path = f"/matcher/orderbook/{asset}/WAVES/{order_id}"
                    assert programs.call(url + path).json()["status"] != "NotFound"
                below = descendants(program.process.pid)
                assert any("multiprocessing" in command_of(each) for each in below)
                program.send(end)
                assert program.wait() == (-end if end is signal.SIGKILL else 0)
                programs.eventually(lambda: not any(map(is_running, below)), "the end of all")  # noqa: B023
            finally:
                program.close()
