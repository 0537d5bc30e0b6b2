"""What stands between a matcher and its node, and does what networks and proxies do.

What lives here: passing bytes on, late, in part or not at all. What does not: when.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import Callable
from typing import Final

_CHUNK: Final = 65_536
_BROADCAST: Final = b"POST /transactions/broadcast"
_EVENTS: Final = b"GET /events"
_CUT_SECONDS: Final = 0.3
"""A connection on which nothing comes is cut after this time."""


class Proxy:
    """A server in a thread of its own. ``refusing`` is a status that broadcasts are answered with
    instead of the node; without ``events`` there is no such route; whatever passes is up to
    ``jitter`` seconds late, each way on its own.
    """

    def __init__(self, upstream: int) -> None:
        self._upstream = upstream
        self._links: set[_Link] = set()
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self.port = 0
        self.refusing: int | None = None
        self.refused = 0
        self.events = True
        self.jitter = 0.0
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        ready.wait(30)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", 0)
        )
        self.port = self._server.sockets[0].getsockname()[1]
        ready.set()
        self._loop.run_forever()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._upstream)
        except OSError:
            writer.transport.abort()
            return
        link = _Link(self, writer, back)
        self._links.add(link)
        try:
            await asyncio.gather(link.ask(reader), link.answer(there))
        finally:
            link.abort()
            self._links.discard(link)

    def cut(self) -> None:
        """Cut all connections, in the middle of what comes next on them."""

        def all_of_them() -> None:
            for link in list(self._links):
                link.cutting = True
                self._loop.call_later(_CUT_SECONDS, link.abort)

        self._call(all_of_them)

    def _call(self, action: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(action)

    def close(self) -> None:
        def stop() -> None:
            if self._server is not None:
                self._server.close()
            for link in list(self._links):
                link.abort()
            self._loop.call_later(0.1, self._loop.stop)

        self._call(stop)
        self._thread.join(10)


class _Link:
    """One connection."""

    def __init__(
        self, proxy: Proxy, client: asyncio.StreamWriter, node: asyncio.StreamWriter
    ) -> None:
        self._proxy = proxy
        self._client = client
        self._node = node
        self.cutting = False

    def abort(self) -> None:
        for writer in (self._client, self._node):
            writer.transport.abort()

    async def _late(self) -> None:
        if self._proxy.jitter:
            await asyncio.sleep(random.random() * self._proxy.jitter)

    async def ask(self, reader: asyncio.StreamReader) -> None:
        """From the matcher to the node. A request begins with a chunk: one goes at a time."""
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                status = self._proxy.refusing if data.startswith(_BROADCAST) else None
                if data.startswith(_EVENTS) and not self._proxy.events:
                    status = 404
                if status is not None:
                    self._proxy.refused += 1
                    self._say(status)
                    return
                await self._late()
                self._node.write(data)
                await self._node.drain()
        self.abort()

    def _say(self, status: int) -> None:
        body = b"<html>this is not the node</html>"
        head = f"HTTP/1.1 {status} No\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        self._client.write(head.encode() + body)
        self._client.close()
        self._node.transport.abort()

    async def answer(self, reader: asyncio.StreamReader) -> None:
        """From the node to the matcher."""
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                await self._late()
                if self.cutting:
                    self._client.write(data[: random.randrange(len(data))])
                    with contextlib.suppress(OSError):
                        await self._client.drain()
                    break
                self._client.write(data)
                await self._client.drain()
        if not self._client.is_closing():
            self.abort()
