"""A matcher behind workers and one without, both served and asked over sockets, byte for byte.

What lives here: serving both, and a client that leaves nothing of an answer out. What does not:
what is asked (``test_front``), real processes (``tests/cli/test_matcher_workers``).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from soliton.matcher.rest.app import build_app
from soliton.matcher.rest.application import Application
from soliton.matcher.rest.order_channel import ORDERS, OrderChannel, order_server
from soliton.matcher.rest.order_worker import OrderWorker
from soliton.matcher.service import Matcher
from soliton.web.channel import connect
from soliton.web.handoff import SocketHandoff, SocketReceiver
from soliton.web.server import RunningServer, serve, serve_locally
from soliton.web.shared_counters import SharedCounters, join, share
from soliton.web.traffic import Traffic
from soliton.web.upstream import Upstream
from tests.matcher.fakes import FakeCore, as_matcher

Headers = list[tuple[bytes, bytes]]


class Reply(msgspec.Struct):
    """What came back; of the headers all but the date."""

    status: int
    headers: Headers
    body: bytes
    is_last: bool
    """Whether the server has closed the connection behind it."""

    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    def header(self, name: bytes) -> bytes | None:
        return dict(self.headers).get(name)


def request(line: str, headers: dict[str, str] | None = None, body: bytes = b"") -> bytes:
    """A whole request; ``METHOD /path?query``."""
    given = {"host": "matcher", **(headers or {})}
    if body and not {"content-length", "transfer-encoding"} & given.keys():
        given["content-length"] = str(len(body))
    lines = [f"{line} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


async def ask(port: int, sent: bytes, rest: bytes = b"") -> Reply:
    """One request over a connection of its own; its ``rest`` when the server asks for it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(20):
            writer.write(sent)
            if rest:
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
                writer.write(rest)
            return await _reply(reader, has_body=not sent.startswith(b"HEAD "))
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def _reply(reader: asyncio.StreamReader, *, has_body: bool) -> Reply:
    head = (await reader.readuntil(b"\r\n\r\n"))[:-4]
    first, *lines = head.split(b"\r\n")
    headers = [
        (name.lower(), value) for name, _, value in (each.partition(b": ") for each in lines)
    ]
    length = int(dict(headers)[b"content-length"]) if has_body else 0
    body = await reader.readexactly(length)
    is_last = (b"connection", b"close") in headers
    kept = [item for item in headers if item[0] != b"date"]
    return Reply(int(first.split(b" ")[1]), kept, body, is_last)


class Worker:
    """What a worker serves, in this process."""

    def __init__(
        self, front: OrderWorker, channel: OrderChannel, upstream: Upstream, server: RunningServer
    ) -> None:
        self.front = front
        self.channel = channel
        self.upstream = upstream
        self.server = server
        self.port = server.port

    def pass_on_to(self, path: str) -> None:
        """Another server takes the matcher's place, but for orders."""
        self.upstream.close()
        self.front._upstream = self.upstream = Upstream(path)


class Behind:
    """A matcher behind workers; ``socket`` is where it listens."""

    def __init__(self, core: FakeCore | Matcher, directory: Path, workers: int) -> None:
        self.core = core
        self.socket = str(directory / "service")
        self._orders = str(directory / "orders")
        self._handoff = str(directory / "handoff")
        self._counters = directory / "counters"
        self._slots = workers + 1
        self.counters = share(self._counters, self._slots)
        self.app: Application = build_app(as_matcher(core), self.counters, behind=True)
        self.gate = order_server(self.app.place)
        self.server: RunningServer | None = None
        self.workers: list[Worker] = []

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        self.server = await serve_locally(self.app.gate, self.socket)
        await self.gate.open(self._orders)
        receiver = SocketReceiver(self.server.adopt)
        receiver.open(self._handoff)
        try:
            for slot in range(1, self._slots):
                self.workers.append(await self._worker(slot))
            yield
        finally:
            # All at once: each takes a moment.
            servers = self.server, *(worker.server for worker in self.workers)
            await asyncio.gather(*(server.stop() for server in servers))
            for worker in self.workers:
                worker.channel.close()
                await asyncio.wait_for(worker.channel.lost.wait(), 60)
                worker.upstream.close()
            self.gate.close()
            receiver.close()

    async def _worker(self, slot: int) -> Worker:
        settings = self.core.settings
        upstream, counters = Upstream(self.socket), join(self._counters, self._slots, slot)
        channel = await connect(ORDERS, self._orders)
        chain_id = settings.network.chain_id
        handoff = SocketHandoff(self._handoff)
        front = OrderWorker(
            settings.rest_api, settings.id, chain_id, upstream, channel, Traffic(counters), handoff
        )
        server = await serve(front.gate, "127.0.0.1", 0, counters=counters)
        return Worker(front, channel, upstream, server)


class Pair:
    """Two matchers in the same state, one of them behind a worker."""

    def __init__(self, direct: Application, port: int, behind: Behind) -> None:
        self.direct = direct
        self.port = port
        self.behind = behind

    @property
    def worker(self) -> Worker:
        return self.behind.workers[0]

    async def same(self, sent: bytes, rest: bytes = b"") -> Reply:
        """What both say to a request, after a check that it is the same."""
        direct = await ask(self.port, sent, rest)
        there = await ask(self.worker.port, sent, rest)
        assert there == direct, sent[:100]
        return there


@contextlib.asynccontextmanager
async def pair(
    direct: FakeCore | Matcher, fronted: FakeCore | Matcher, directory: Path, workers: int = 1
) -> AsyncIterator[Pair]:
    """Both, served."""
    app = build_app(as_matcher(direct), SharedCounters())
    server = await serve(app.gate, "127.0.0.1", 0)
    behind = Behind(fronted, directory, workers)
    try:
        async with behind.serving():
            yield Pair(app, server.port, behind)
    finally:
        await server.stop()
