"""A node that the tests hold in their hands, and a signer in front of it.

What lives here: helpers of the tests beside this module. What does not: a real node, which the
tests of clients and of the devnet have.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx

from soliton.chain import networks
from soliton.signer.app import Limits, SignerSettings, build_app
from tests.web.memory import MemoryHttp

SEED = "orbit velvet cactus seven marble"
NOW = 1_700_000_000_000
NETWORK = networks.load("zbs-testnet")

Answer = bytes | Callable[[bytes, asyncio.StreamWriter], Awaitable[bytes]]
"""What a node sends, whole; or what says so, with the body that it got. Nothing hangs up."""


def answer(status: int, *, content: bytes = b"", json_: object = None) -> bytes:
    """An answer as a node sends it."""
    body = content or json.dumps(json_).encode()
    return b"HTTP/1.1 %d x\r\ncontent-length: %d\r\n\r\n%b" % (status, len(body), body)


class FakeNode:
    """Records what is broadcast, and answers as a node does or as it is told."""

    def __init__(self, says: Answer | None = None) -> None:
        self.broadcast: list[dict[str, object]] = []
        self.seen: list[bytes] = []
        self.says = says
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Be there."""
        server = await asyncio.start_server(self._serve, sock=self._listener)
        try:
            yield
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await _head(reader):
                if not (said := await self._answer(head, reader, writer)):
                    break
                writer.write(said)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def _answer(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes:
        _, _, length = head.lower().partition(b"content-length: ")
        body = await reader.readexactly(int(length.partition(b"\r\n")[0] or 0))
        self.seen.append(head + body)
        if head.startswith(b"POST /transactions/broadcast "):
            self.broadcast.append(json.loads(body))
        if callable(self.says):
            return await self.says(body, writer)
        if self.says is not None:
            return self.says
        if head.startswith(b"GET /blocks/height "):
            return answer(200, json_={"height": 77})
        return answer(200, content=body)


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""


def settings(node: FakeNode, *, limits: Limits | None = None, cors: bool = True) -> SignerSettings:
    """Settings of a signer whose node is the fake one and whose clock stands still."""
    return SignerSettings(node.url, NETWORK, limits or Limits(), cors=cors, clock=lambda: NOW)


@asynccontextmanager
async def signer(
    node: FakeNode, *, limits: Limits | None = None, cors: bool = True
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a signer with this node, without any socket but the node's."""
    app = build_app(settings(node, limits=limits, cors=cors))
    transport = MemoryHttp(app)
    async with (
        node.serving(),
        httpx.AsyncClient(transport=transport, base_url="http://signer.test") as client,
    ):
        yield client


def body_of(*values: object, seed: str = SEED) -> bytes:
    """A request with one entry for each value."""
    data = [{"key": f"k{index}", "value": value} for index, value in enumerate(values)]
    return json.dumps({"seed": seed, "data": data}).encode()
