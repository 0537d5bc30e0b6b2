"""``/events`` as a WebSocket, through a real server and a real client: what the stream tells."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from soliton.api.event_stream_registry import MAX_STREAMS
from soliton.web.cors import CLOSED, Cors
from soliton.web.server import RunningServer, ServerLimits, serve
from tests.api.chain import PrivateChain
from tests.api.streams import Stream
from tests.node import forging

Members = dict[str, Any]
ALL = "/events?events=block,microblock,transaction,unconfirmed"


@pytest_asyncio.fixture
async def server(chain: PrivateChain) -> AsyncIterator[RunningServer]:
    running = await serve(chain.app, "127.0.0.1", 0, ServerLimits(write_seconds=60.0))
    yield running
    await running.stop()


def opened(server: RunningServer, target: str = "/events", **headers: str) -> connect:
    return connect(
        f"ws://127.0.0.1:{server.port}{target}",
        proxy=None,
        additional_headers=headers,
        max_size=None,
    )


async def until(client: ClientConnection, name: str) -> list[Members]:
    found: list[Members] = []
    while not found or found[-1]["event"] != name:
        found.append(json.loads(await client.recv()))
    return found


async def refusal(server: RunningServer, target: str = "/events", **headers: str) -> Any:
    with pytest.raises(InvalidStatus) as refused:
        await opened(server, target, **headers)
    return refused.value.response


async def test_the_same_events_as_the_stream(chain: PrivateChain, server: RunningServer) -> None:
    stream = Stream(chain.app, ALL, {})
    told: list[str] = []

    async def both(name: str) -> None:
        """Up to an event both tell the same, member by member."""
        for each in await until(client, name):
            event = await stream.event()
            assert event is not None
            where = {} if event.id is None else {"id": event.id}
            assert each == {"event": event.name, **where, "data": event.data}
            told.append(event.name)

    async with opened(server, ALL) as client:
        await both("synced")
        for _ in range(2):
            chain.send(chain.transfer())
            await both("unconfirmed")
            chain.mine()
            await both("left")
        forging.roll_back(chain.node, 2, keep=False)
        await both("rollback")
        chain.send(chain.data(a=1))
        chain.mine()
        await both("left")
    await stream.close()
    assert told[:5] == ["synced", "unconfirmed", "block", "transaction", "left"]
    assert "rollback" in told


async def test_it_goes_on_behind_an_event(chain: PrivateChain, server: RunningServer) -> None:
    async with opened(server) as client:
        await until(client, "synced")
        chain.send(chain.transfer())
        chain.mine()
        (block,) = await until(client, "block")
        await until(client, "transaction")
    chain.mine()
    async with opened(server, f"/events?lastEventId={block['id']}") as client:
        found = await until(client, "synced")
    assert [each["event"] for each in found] == ["transaction", "block", "synced"]


async def test_what_is_wrong_is_refused_before_it_begins(
    chain: PrivateChain, server: RunningServer
) -> None:
    assert (await refusal(server, "/events?events=blocks")).status_code == 400
    gone = await refusal(server, "/events?lastEventId=1")
    assert gone.status_code == 410
    assert json.loads(gone.body)["error"] == 4100
    assert (await refusal(server, "/nothing")).status_code == 404
    # Other routes answer as always: no WebSocket, but what was asked for.
    assert (await refusal(server, "/blocks/height")).status_code == 200
    assert chain.app.context.event_streams.open == 0


async def test_pages_of_other_origins(chain: PrivateChain, server: RunningServer) -> None:
    """Browsers let any page open one and name its origin: the server says whose may."""
    own = f"http://127.0.0.1:{server.port}"
    cases = (
        (Cors(), (own, "https://elsewhere.example"), ("null", "nonsense")),
        (CLOSED, (own,), ("https://elsewhere.example", "null")),
        (
            Cors(origin="https://one.example"),
            (own, "https://one.example"),
            ("https://two.example",),
        ),
    )
    for cors, admitted, refused in cases:
        chain.app.cors = cors
        for origin in admitted:
            async with opened(server, Origin=origin) as client:
                await until(client, "synced")
        for origin in refused:
            assert (await refusal(server, Origin=origin)).status_code == 403
    assert chain.app.context.event_streams.open == 0


async def test_the_limit_is_that_of_all_streams(chain: PrivateChain, server: RunningServer) -> None:
    streams = chain.app.context.event_streams
    streams.open = MAX_STREAMS
    answer = await refusal(server)
    assert answer.status_code == 503 and "retry-after" in answer.headers
    streams.open = 0


async def test_who_goes_is_let_go_and_who_talks_is_sent_away(
    chain: PrivateChain, server: RunningServer
) -> None:
    streams = chain.app.context.event_streams
    async with opened(server) as client:
        await until(client, "synced")
        assert streams.open == 1
        await client.send("hello")
        with pytest.raises(ConnectionClosed) as closed:
            await until(client, "never")
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008
    async with opened(server) as client:
        await until(client, "synced")
        client.transport.abort()
    async with asyncio.timeout(60):
        while streams.open:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)


async def test_who_does_not_read_loses_nothing(chain: PrivateChain, server: RunningServer) -> None:
    plug = socket.socket()
    # So that little of what is sent is on its way.
    plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
    plug.setblocking(False)
    await asyncio.get_running_loop().sock_connect(plug, ("127.0.0.1", server.port))
    async with connect("ws://node/events?events=block", sock=plug, proxy=None) as client:
        await until(client, "synced")
        client.transport.pause_reading()
        for _ in range(400):
            chain.mine()
            await asyncio.sleep(0)
        client.transport.resume_reading()
        heights: list[int] = []
        while not heights or heights[-1] < chain.node.chain.height:
            message = json.loads(await client.recv())
            assert message["event"] == "block"
            heights.append(message["data"]["height"])
    assert heights == list(range(2, 402))


async def test_the_end_of_the_node_is_told(chain: PrivateChain, server: RunningServer) -> None:
    async with opened(server) as client:
        await until(client, "synced")
        stopping = asyncio.ensure_future(server.stop())
        with pytest.raises(ConnectionClosed) as closed:
            await until(client, "never")
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1012
        await stopping
