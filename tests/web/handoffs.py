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
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Final, cast

import pytest
import uvloop
from websockets.asyncio.client import connect

from soliton.web.answers import Answer, HandOver, Upgrade, Whole
from soliton.web.handoff import SocketHandoff, SocketReceiver
from soliton.web.request import Request
from soliton.web.server import RunningServer, ServerLimits, serve, serve_locally
from soliton.web.websocket import WebSocket
from tests.web.services import Simple

LOOPS: Final = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
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

    def respond(self, request: Request) -> Answer:
        if request.path == "/refused":
            self.ends.put_nowait(request.path)
            return Whole(b"not you", status=403)
        return Upgrade(partial(self._talk, request))

    async def _talk(self, request: Request, socket: WebSocket) -> None:
        path = request.path
        try:
            await self._talk_on(path, request.host, socket)
        finally:
            self.ends.put_nowait(path)

    async def _talk_on(self, path: str, host: str, socket: WebSocket) -> None:
        if path == "/flood":
            while True:
                await socket.send(CHUNK, is_text=False)
                self.sent_bytes += len(CHUNK)
                # What is sent to a connection that has just broken does not wait for anything.
                await asyncio.sleep(0)
        if path == "/whose":
            await socket.send(host.encode())
        if path == "/bye":
            await socket.send(b"last")
            socket.close(4001, "enough")
        if path == "/deaf":
            await self.hears.wait()
        while True:
            message = await socket.receive()
            self.messages.append(message)
            if path == "/echo" and isinstance(message, str):
                await socket.send(message.encode())
            elif path == "/echo" and isinstance(message, bytes):
                await socket.send(message, is_text=False)


class Place:
    """Both servers, and the way of connections from one to the other."""

    def __init__(self, directory: Path, limits: ServerLimits) -> None:
        self.path = str(directory / "handoff")
        self._behind_path = str(directory / "behind")
        self.app = Behind()
        self.limits = limits
        self.behind: RunningServer | None = None
        self.front: RunningServer | None = None
        self._receiver: SocketReceiver | None = None

    @property
    def port(self) -> int:
        assert self.front is not None
        return self.front.port

    async def open(self) -> None:
        self.behind = await serve_locally(Simple(self.app.respond), self._behind_path, self.limits)
        self._receiver = SocketReceiver(self.behind.adopt)
        self._receiver.open(self.path)
        way = HandOver(SocketHandoff(self.path).take)

        def front(request: Request) -> Answer:
            return way if request.is_websocket else Whole(request.path.encode())

        self.front = await serve(Simple(front), "127.0.0.1", 0, self.limits)

    async def stop_behind(self) -> None:
        """No server listens there any more."""
        if self.behind is not None and self._receiver is not None:
            self._receiver.close()
            await self.behind.stop()
            self.behind = None
            remove(self.path)

    async def stop_front(self) -> None:
        if self.front is not None:
            await self.front.stop()
            self.front = None

    def connect(self, path: str) -> connect:
        return connect(f"ws://127.0.0.1:{self.port}{path}", proxy=None, compression=None)

    def connections(self, server: RunningServer | None) -> set[object]:
        """Those that a server has, if it is there."""
        return set() if server is None else cast("set[object]", server._shared.connections)

    async def nobody_left(self) -> None:
        """Until no client is connected."""
        await until(lambda: not self.connections(self.behind) | self.connections(self.front))

    async def handed_off(self, count: int = 1) -> None:
        """Until so many connections are those of the server behind alone."""
        await until(lambda: len(self.connections(self.behind)) == count)
        await until(lambda: not self.connections(self.front))

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
        async def run(directory: Path) -> None:
            place = Place(directory, limits)
            await place.open()
            try:
                async with asyncio.timeout(20):
                    await story(place)
            finally:
                await asyncio.gather(place.stop_front(), place.stop_behind())

        @pytest.mark.parametrize("loop", LOOPS)
        def test(loop: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
            with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
                runner.run(run(tmp_path))
            gc.collect()
            assert [record.getMessage() for record in caplog.records] == []

        test.__doc__ = story.__doc__
        return test

    return decorate


def remove(path: str) -> None:
    Path(path).unlink()


async def until(condition: Callable[[], bool]) -> None:
    """Until something is so that nobody is told about."""
    async with asyncio.timeout(60):
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
    async with asyncio.timeout(60):
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
