"""The page about reverse proxies: its settings are right, and nginx names its clients with them."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from soliton.node.settings import load_settings
from soliton.proxies import TrustedProxies
from soliton.web.answers import Answer, Upgrade, Whole
from soliton.web.limits import ServerLimits
from soliton.web.request import Request
from soliton.web.server import serve
from soliton.web.websocket import WebSocket
from tests.blocks import blocks
from tests.web.services import Simple

PAGE = "docs/how-to/run-behind-a-proxy.md"
NGINX = os.environ.get("SOLITON_NGINX") or shutil.which("nginx")
CONFIG = """
daemon off; master_process off; error_log stderr; pid {directory}/pid;
events {{ }}
http {{
  access_log off;
  client_body_temp_path {directory}/a; proxy_temp_path {directory}/b;
  fastcgi_temp_path {directory}/c; uwsgi_temp_path {directory}/d; scgi_temp_path {directory}/e;
  {map}
  server {{ listen unix:{directory}/http; {http} }}
  server {{ listen unix:{directory}/grpc http2; {grpc} }}
}}
"""


def test_its_settings_trust_the_proxy(tmp_path: Path) -> None:
    (text,) = blocks(PAGE, "hocon")
    (tmp_path / "node.conf").write_text(text, encoding="utf-8")
    api = load_settings(tmp_path / "node.conf", None).rest_api
    assert api.bind_address == "127.0.0.1"
    assert api.proxies == TrustedProxies((ip_network("127.0.0.1"),))


@asynccontextmanager
async def behind_nginx(directory: Path, port: int) -> AsyncIterator[Path]:
    """The socket of nginx in front of a port, with what the page has about it."""
    assert NGINX is not None
    http, names, grpc = blocks(PAGE, "nginx")
    text = CONFIG.format(directory=directory, map=names, http=http, grpc=grpc)
    (directory / "conf").write_text(text.replace("127.0.0.1:6869", f"127.0.0.1:{port}"))
    program = await asyncio.create_subprocess_exec(NGINX, "-c", directory / "conf", "-p", directory)
    try:
        async with asyncio.timeout(60):
            while not (directory / "grpc").exists():
                assert program.returncode is None
                await asyncio.sleep(0.01)
        yield directory / "http"
    finally:
        if program.returncode is None:
            program.terminate()
        await program.wait()


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed, nor is SOLITON_NGINX set")
async def test_nginx_names_its_clients(tmp_path: Path) -> None:
    def respond(request: Request) -> Answer:
        async def greet(connection: WebSocket) -> None:
            await connection.send(request.host.encode())

        return Upgrade(greet) if request.is_websocket else Whole(request.host.encode())

    limits = ServerLimits(proxies=TrustedProxies((ip_network("127.0.0.1"),)))
    running = await serve(Simple(respond), "127.0.0.1", 0, limits)
    try:
        async with asyncio.timeout(60), behind_nginx(tmp_path, running.port) as way:
            # nginx has no address of a client on a unix socket, and writes "unix:" behind the list.
            reader, writer = await asyncio.open_unix_connection(way)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 127.0.0.1\r\n")
            writer.write(b"Connection: close\r\n\r\n")
            answer = await reader.read()
            writer.close()
            assert answer.startswith(b"HTTP/1.1 200 ") and b"unknown" in answer
            plug = await asyncio.open_unix_connection(way)
            async with connect("ws://x/", sock=plug[1].get_extra_info("socket").dup()) as websocket:
                assert await websocket.recv() == "unknown"
            plug[1].close()
    finally:
        await running.stop()
