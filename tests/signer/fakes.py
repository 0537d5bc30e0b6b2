"""A node that the tests hold in their hands, and a signer in front of it.

What lives here: helpers of the tests beside this module. What does not: a real node, which the
tests of clients and of the devnet have.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx

from soliton.chain import networks
from soliton.signer.app import Limits, SignerSettings, build_app

SEED = "orbit velvet cactus seven marble"
NOW = 1_700_000_000_000

Answer = httpx.Response | Exception | Callable[[httpx.Request], Awaitable[httpx.Response]]


class FakeNode(httpx.AsyncBaseTransport):
    """Records what is broadcast, and answers as a node does or as it is told."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.broadcast: list[dict[str, object]] = []
        self.seen: list[bytes] = []
        self.answer = answer

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        self.seen.append(str(request.url).encode() + repr(request.headers).encode() + body)
        if request.url.path == "/transactions/broadcast":
            self.broadcast.append(json.loads(body))
        match self.answer:
            case None if request.url.path == "/blocks/height":
                return httpx.Response(200, json={"height": 77})
            case None:
                return httpx.Response(200, content=body)
            case httpx.Response():
                return self.answer
            case Exception():
                raise self.answer
            case _:
                return await self.answer(request)


def settings(
    node: FakeNode,
    *,
    network: str = "zbs-testnet",
    limits: Limits | None = None,
    cors: bool = True,
    now: int = NOW,
) -> SignerSettings:
    """Settings of a signer whose node is the fake one and whose clock stands still."""
    return SignerSettings(
        "http://node.test:6869",
        networks.load(network),
        limits or Limits(),
        cors=cors,
        clock=lambda: now,
        transport=node,
    )


@asynccontextmanager
async def signer(given: SignerSettings) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a signer with these settings, without any socket."""
    transport = httpx.ASGITransport(build_app(given), raise_app_exceptions=True)
    async with httpx.AsyncClient(transport=transport, base_url="http://signer.test") as client:
        yield client


def body_of(*values: object, seed: str = SEED) -> bytes:
    """A request with one entry for each value."""
    data = [{"key": f"k{index}", "value": value} for index, value in enumerate(values)]
    return json.dumps({"seed": seed, "data": data}).encode()
