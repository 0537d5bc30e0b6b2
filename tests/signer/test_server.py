"""The signer on real sockets: starts, answers, stops, and says why it cannot."""

from __future__ import annotations

import asyncio
import signal
import socket
import time

import httpx
import pytest

from soliton.errors import EnvironmentProblem
from soliton.signer.app import Signer, SignerSettings, build_app
from soliton.signer.settings import SERVER_LIMITS
from soliton.web.server import RunningServer, serve
from tests.signer.fakes import NETWORK, FakeNode, body_of, settings

SIGNER = SignerSettings("http://nobody.test", NETWORK)


async def start(app: Signer, port: int = 0) -> RunningServer:
    return await serve(app, "127.0.0.1", port, SERVER_LIMITS, close=app.close)


async def test_serving_and_stopping() -> None:
    before = signal.getsignal(signal.SIGINT)
    node = FakeNode()
    running = await start(build_app(settings(node)))
    url = f"http://{running.host}:{running.port}"
    async with node.serving(), httpx.AsyncClient() as client:
        assert (await client.post(f"{url}/data", content=body_of(1))).status_code == 200
        assert signal.getsignal(signal.SIGINT) is before
        started = time.monotonic()
        await running.stop()
        assert time.monotonic() - started < 1
        with pytest.raises(httpx.ConnectError):
            await client.get(f"{url}/health")


async def test_a_node_that_is_not_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        node_url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        app = build_app(SignerSettings(node_url, NETWORK))
        running = await start(app)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}") as client:
            response = await client.post("/data", content=body_of(1))
        await running.stop()
    assert (response.status_code, response.json()["error"]) == (502, 7013)
    assert "id" not in response.json()


async def test_long_heads_are_refused() -> None:
    running = await start(build_app(SIGNER))
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"x" * (4 * SERVER_LIMITS.head_bytes))
    assert (await reader.readline()).startswith(b"HTTP/1.1 400")
    writer.close()
    await running.stop()


async def test_a_port_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(EnvironmentProblem, match="cannot listen"):
            await start(build_app(SIGNER), taken.getsockname()[1])
