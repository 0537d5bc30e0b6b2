"""The limits of a client, and the figures, are the same whichever process answers it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from soliton.api.app import build_app
from soliton.api.fair_limits import FairLimits
from soliton.api.readers import TRANSACTIONS, TransactionChannel, reader_routes, transaction_server
from soliton.chain.transactions import codec
from soliton.node.rest_settings import ApiLimits
from soliton.web.channel import connect
from soliton.web.server import serve_locally
from soliton.web.shared_counters import join, share
from soliton.web.traffic import Traffic
from soliton.web.upstream import CLIENT_HEADER, Upstream
from tests.api.chain import PrivateChain, context_of
from tests.api.client import Answer, call

JSON = {"Content-Type": "application/json"}
ABUSER, OTHER = "10.1.1.1", "10.2.2.2"


class Processes:
    """Two workers and the node, in one process but with counts as if they were three."""

    def __init__(
        self, chain: PrivateChain, directory: Path, limits: ApiLimits, channel: TransactionChannel
    ) -> None:
        self.socket_path = str(directory / "socket")
        self.upstream = Upstream(self.socket_path)
        path = directory / "counters"
        of_node = Traffic(share(path, 3), counts_calls=False)
        context = replace(context_of(chain.node), limits=limits)
        believing = replace(context, client_header=CLIENT_HEADER, traffic=of_node)
        self.node = build_app(believing)
        adapt = partial(reader_routes, upstream=self.upstream, channel=channel)
        self.workers = [
            build_app(replace(context, traffic=Traffic(join(path, 3, slot))), adapt)
            for slot in (1, 2)
        ]


@pytest_asyncio.fixture
async def processes(
    chain: PrivateChain, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Processes]:
    server = transaction_server(chain.node)
    await server.open(str(tmp_path / "channel"))
    channel = await connect(TRANSACTIONS, str(tmp_path / "channel"))
    made = Processes(chain, tmp_path, request.param, channel)
    running = await serve_locally(made.node, made.socket_path)
    yield made
    channel.close()
    server.close()
    made.upstream.close()
    await running.stop()


def limited(limits: ApiLimits) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("processes", [limits], indirect=True)


async def wait_for_block(
    processes: Processes, number: int, host: str, headers: dict[str, str] | None = None
) -> asyncio.Task[Answer]:
    """A request of a worker that waits for a block in the node, or has been answered."""
    app, waiting = processes.workers[number], processes.node.context.waiting
    before = waiting.count
    task = asyncio.create_task(call(app, "GET /blocks/wait/2", b"", headers, host=host))
    while waiting.count == before and not task.done():
        await asyncio.wait((task,), timeout=0.01)
    return task


@limited(ApiLimits(client_percent=0, long_answers_per_client=2))
async def test_a_client_has_its_places_once(chain: PrivateChain, processes: Processes) -> None:
    waiting = [await wait_for_block(processes, number, ABUSER) for number in (0, 1)]
    assert not any(task.done() for task in waiting)
    for number in (0, 1):
        assert (await (await wait_for_block(processes, number, ABUSER))).status == 429
        # Who says to be somebody else is believed on the node's own socket only.
        said = {CLIENT_HEADER.decode(): "10.3.3.3"}
        assert (await (await wait_for_block(processes, number, ABUSER, said))).status == 429
    others = [await wait_for_block(processes, 0, host) for host in (OTHER, "127.0.0.1")]
    assert not any(task.done() for task in others)
    chain.mine()
    assert [answer.status for answer in await asyncio.gather(*waiting, *others)] == [200] * 4


@limited(ApiLimits(client_percent=0, long_answers=0, long_answers_per_client=0))
async def test_what_is_short_takes_no_place_on_its_way(
    chain: PrivateChain, processes: Processes
) -> None:
    chain.mine()
    bodies = [
        msgspec.json.encode(codec.to_json(chain.transfer(amount=number + 1)))
        for number in range(10)
    ]
    answers = await asyncio.gather(
        *(
            call(processes.workers[0], "POST /transactions/broadcast", body, JSON, host=ABUSER)
            for body in bodies
        ),
        *(
            call(processes.workers[1], "GET /transactions/unconfirmed/size", host=ABUSER)
            for _ in range(10)
        ),
    )
    assert [answer.status for answer in answers] == [200] * 20
    assert len(chain.node.pool) == 10


@limited(ApiLimits(client_percent=1, client_burst_ms=1))
async def test_a_client_has_one_bucket(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for app in (processes.node, *processes.workers):
        # A bucket that is empty stays so.
        context = app.context
        frozen = FairLimits(context.limits, context.traffic.counters, lambda: 1_000.0)
        monkeypatch.setattr(app, "_fair", frozen)
    answer = Answer()
    for _ in range(60):
        answer = await call(processes.workers[0], "GET /transactions/unconfirmed/size", host=ABUSER)
    assert answer.status == 429
    for number, app in enumerate(processes.workers):
        assert (await call(app, "GET /blocks/height", host=ABUSER)).status == 429
        # Each other client asks once: however long that takes, it pays afterwards.
        assert (await call(app, "GET /blocks/height", host=f"10.4.4.{number}")).status == 200


@limited(ApiLimits(client_percent=1, client_burst_ms=10, local_clients=True))
async def test_broadcasts_are_no_work_of_local_clients(
    chain: PrivateChain, processes: Processes
) -> None:
    chain.mine()
    for number in range(30):
        body = msgspec.json.encode(codec.to_json(chain.transfer(amount=number + 1)))
        host = f"10.0.0.{number}"
        answer = await call(
            processes.workers[0], "POST /transactions/broadcast", body, JSON, host=host
        )
        assert answer.status == 200
    for app in processes.workers:
        assert (await call(app, "GET /blocks/height")).status == 200


@limited(ApiLimits(client_percent=0))
async def test_figures_are_of_all_processes_and_count_once(
    chain: PrivateChain, processes: Processes
) -> None:
    chain.mine()
    nobody = "4dyZVjLXkjakf9b6FYyGbptGj3wPPA6Xvthb4MBfP5d6"
    poor = msgspec.json.encode(codec.to_json(chain.transfer(amount=10**17)))
    for app in (*processes.workers, processes.workers[0]):
        await call(app, "GET /blocks/height")
        await call(app, "GET /blocks/at/99")
        await call(app, f"GET /transactions/unconfirmed/info/{nobody}")
        assert (await call(app, "POST /transactions/broadcast", poor, JSON)).status == 400
    for number, app in enumerate(processes.workers, 1):
        shown = (await call(app, "GET /metrics")).body.decode()
        lines = dict(line.rpartition(" ")[::2] for line in shown.splitlines())
        for method, path, count in (
            ("GET", "/blocks/height", 3),
            ("GET", "/transactions/unconfirmed/info/{id}", 3),
            ("POST", "/transactions/broadcast", 3),
            ("GET", "/metrics", number),
        ):
            name = f'soliton_http_requests_total{{methods="{method}",route="{path}"}}'
            assert lines[name] == str(count), name
        assert lines['soliton_http_errors_total{status="404"}'] == "6"
        assert lines['soliton_http_errors_total{status="400"}'] == "3"
