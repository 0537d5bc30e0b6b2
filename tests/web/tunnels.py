"""Two real servers, one before the other, and clients: for tests of what leads through both.

Everything is done on both event loops: programs run on uvloop, and what transports do at their ends
is not the same everywhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import struct
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Final, cast

import pytest
import uvloop
from websockets.asyncio.client import connect

from soliton.web.clients import LOCAL
from soliton.web.server import RunningServer, ServerLimits, serve, serve_locally
from soliton.web.tallies import CONNECTIONS, Tallies
from soliton.web.tunnel import Tunnel, TunnelledWebSocket, _FarEnd
from soliton.web.types import Receive, Scope, Send

LOOPS: Final = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
HEADER: Final = b"x-soliton-client"
PATIENT: Final = ServerLimits(connections_per_client=100, counts_local_clients=True)
HASTY: Final = ServerLimits(
    connections_per_client=100, counts_local_clients=True, write_seconds=0.3
)
BOUND: Final = 32 * 1024 * 1024
"""More than all buffers on the way together, those of the system included; less than would pass
through in the time of a test.
"""
CHUNK: Final = bytes(64 * 1024)


class Behind:
    """The application behind: what it does depends on the path."""

    def __init__(self) -> None:
        self.ends: asyncio.Queue[str] = asyncio.Queue()
        self.hears = asyncio.Event()
        self.messages: list[object] = []
        self.sent_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = cast("str", scope["path"])
        assert scope["type"] == "websocket" and (await receive())["type"] == "websocket.connect"
        try:
            await self._talk(path, scope, receive, send)
        finally:
            self.ends.put_nowait(path)

    async def _talk(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        if path == "/refused":
            await send({"type": "websocket.http.response.start", "status": 403, "headers": []})
            await send({"type": "websocket.http.response.body", "body": b"not you"})
            return
        await send({"type": "websocket.accept"})
        if path == "/flood":
            while True:
                await send({"type": "websocket.send", "bytes": CHUNK})
                self.sent_bytes += len(CHUNK)
                # What is sent to a connection that has just broken does not wait for anything.
                await asyncio.sleep(0)
        if path == "/whose":
            headers = cast("list[tuple[bytes, bytes]]", scope["headers"])
            said = [value.decode() for name, value in headers if name.lower() == HEADER]
            await send({"type": "websocket.send", "text": " and ".join(said)})
        if path == "/bye":
            await send({"type": "websocket.send", "text": "last"})
            await send({"type": "websocket.close", "code": 4001, "reason": "enough"})
        if path == "/deaf":
            await self.hears.wait()
        while (message := await receive())["type"] == "websocket.receive":
            self.messages.append(message.get("text") or message.get("bytes"))
            if path == "/echo":
                await send({**message, "type": "websocket.send"})


async def plain(scope: Scope, _receive: Receive, send: Send) -> None:
    """The application of the server before: it gets what is no WebSocket."""
    path = cast("bytes", scope["raw_path"])
    length = [(b"content-length", b"%d" % len(path))]
    await send({"type": "http.response.start", "status": 200, "headers": length})
    await send({"type": "http.response.body", "body": path})


class Place:
    """Both servers, and what the one before counts."""

    def __init__(self, directory: Path, limits: ServerLimits) -> None:
        self.path = str(directory / "behind")
        self.app = Behind()
        self.tallies = Tallies()
        self.limits = limits
        self.behind: RunningServer | None = None
        self.front: RunningServer | None = None
        self.far_end_lost = asyncio.Event()

    @property
    def port(self) -> int:
        assert self.front is not None
        return self.front.port

    async def open(self) -> None:
        self.behind = await serve_locally(self.app, self.path, websocket=True)
        way = Tunnel(self.path, HEADER)
        self.front = await serve(
            plain, "127.0.0.1", 0, self.limits, websocket=way, tallies=self.tallies
        )

    async def stop_behind(self) -> None:
        """No server listens there any more."""
        if self.behind is not None:
            await self.behind.stop()
            self.behind = None
            remove(self.path)

    async def stop_front(self) -> None:
        if self.front is not None:
            await self.front.stop()
            self.front = None

    def connect(self, path: str) -> connect:
        return connect(f"ws://127.0.0.1:{self.port}{path}", proxy=None, compression=None)

    def connections_behind(self) -> set[object]:
        assert self.behind is not None
        return cast("set[object]", self.behind._server.server_state.connections)

    def near_end(self) -> asyncio.Transport:
        """The transport of the only tunnel, to its client."""
        transport = self._tunnels()[0].transport
        assert transport is not None
        return transport

    def remains(self) -> list[weakref.ref[object]]:
        """What the only tunnel is made of, to see whether it goes."""
        (made,) = self._tunnels()
        return [weakref.ref(each) for each in (made, made.transport, made._far) if each is not None]

    def waits_for_far_end(self) -> bool:
        """Whether the only tunnel has more for the server behind than the system takes."""
        ends = [each._far for each in self._tunnels()]
        return [end.get_write_buffer_size() > 0 for end in ends if end is not None] == [True]

    def _tunnels(self) -> list[TunnelledWebSocket]:
        assert self.front is not None
        there = cast("set[object]", self.front._server.server_state.connections)
        return [each for each in there if isinstance(each, TunnelledWebSocket)]

    def count(self) -> int:
        """The connections that clients on this machine have."""
        return self.tallies.counts(CONNECTIONS).of(LOCAL)

    async def nobody_left(self) -> None:
        """Until no client is connected."""
        await until(lambda: self.count() == 0)
        assert self.front is None or not self._tunnels()

    @contextlib.asynccontextmanager
    async def plug(self, path: str, *, more: bytes = b"", narrow: bool = False) -> AsyncPlug:
        """A connection whose client does nothing by itself; its handshake is sent.

        One that is ``narrow`` has the system keep little of what it does not read.
        """
        plug = socket.socket()
        if narrow:
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with plug:
            plug.setblocking(False)
            await asyncio.get_running_loop().sock_connect(plug, ("127.0.0.1", self.port))
            await say(plug, handshake(path) + more)
            yield plug


AsyncPlug = AsyncIterator[socket.socket]
Story = Callable[[Place], Coroutine[None, None, None]]


def on_both_loops(limits: ServerLimits = PATIENT) -> Callable[[Story], Callable[..., None]]:
    """A test of a place that is open. That nothing was logged is a part of each."""

    def decorate(story: Story) -> Callable[..., None]:
        async def run(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
            place = Place(directory, limits)
            tell_when_lost(monkeypatch, place.far_end_lost)
            await place.open()
            try:
                async with asyncio.timeout(20):
                    await story(place)
            finally:
                await asyncio.gather(place.stop_front(), place.stop_behind())

        @pytest.mark.parametrize("loop", LOOPS)
        def test(
            loop: str,
            tmp_path: Path,
            caplog: pytest.LogCaptureFixture,
            monkeypatch: pytest.MonkeyPatch,
        ) -> None:
            with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
                runner.run(run(tmp_path, monkeypatch))
            gc.collect()
            assert [record.getMessage() for record in caplog.records] == []

        test.__doc__ = story.__doc__
        return test

    return decorate


def tell_when_lost(monkeypatch: pytest.MonkeyPatch, told: asyncio.Event) -> None:
    """Set an event when a connection behind has ended."""
    usual = _FarEnd.connection_lost

    def connection_lost(end: _FarEnd, exc: Exception | None) -> None:
        usual(end, exc)
        told.set()

    monkeypatch.setattr(_FarEnd, "connection_lost", connection_lost)


def remove(path: str) -> None:
    Path(path).unlink()


async def until(condition: Callable[[], bool]) -> None:
    """Until something is so that nobody is told about."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.01)


def handshake(path: str, *headers: str) -> bytes:
    lines = [
        f"GET {path} HTTP/1.1",
        "Host: x",
        *headers,
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def text_frame(text: str) -> bytes:
    """A short message as a client sends it."""
    return b"\x81" + bytes([0x80 | len(text)]) + bytes(4) + text.encode("ascii")


async def say(plug: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(plug, data)


async def hear(plug: socket.socket, wanted: bytes | None = None) -> bytes:
    """What comes until its end is as ``wanted``, or until there is no more."""
    loop, heard = asyncio.get_running_loop(), b""
    async with asyncio.timeout(5):
        while wanted is None or not heard.endswith(wanted):
            chunk = await loop.sock_recv(plug, 65536)
            if not chunk:
                break
            heard += chunk
    return heard


def reset(plug: socket.socket) -> None:
    """End a connection without a word."""
    plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    plug.close()


@contextlib.asynccontextmanager
async def far_end(place: Place) -> AsyncPlug:
    """A door in place of the server behind; what comes stands before it until it is opened."""
    await place.stop_behind()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(place.path)
        door.listen()
        door.setblocking(False)
        yield door
    remove(place.path)


async def open_to(door: socket.socket) -> socket.socket:
    return (await asyncio.get_running_loop().sock_accept(door))[0]
