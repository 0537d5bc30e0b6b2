"""The first request to a signer costs what the next ones do: everything is loaded at the start."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REQUESTS = ("POST /data", "GET /ready", "GET /", "GET /health", "GET /openapi.json")
BODY = json.dumps({"seed": "orbit velvet", "data": [{"key": "k", "value": 1}]}).encode()


def test_requests_load_no_modules() -> None:
    # In a process of its own: here everything has been loaded by other tests.
    asked = subprocess.run(
        [sys.executable, "-m", "tests.signer.test_first_request"],
        capture_output=True,
        timeout=60,
        check=True,
    )
    loaded = json.loads(asked.stdout)
    assert [*loaded] == [f"{request} 200" for request in REQUESTS]
    assert {request: names for request, names in loaded.items() if names} == {}


class _Node(BaseHTTPRequestHandler):
    """Takes every transaction, and has one height."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["content-length"])))

    def do_GET(self) -> None:
        self._answer(b'{"height":7}')

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's
        pass


async def _loaded(node_url: str) -> dict[str, list[str]]:
    """The modules that each request has loaded, with its status."""
    from soliton.chain import networks
    from soliton.signer.app import SignerSettings, build_app
    from soliton.signer.settings import SERVER_LIMITS
    from soliton.web.server import serve

    app = build_app(SignerSettings(node_url, networks.load("zbs-testnet")))
    running = await serve(app, "127.0.0.1", 0, SERVER_LIMITS, close=app.close)
    found = {}
    for request in REQUESTS:
        before = set(sys.modules)
        status = await _ask(running.port, request)
        found[f"{request} {status}"] = sorted(set(sys.modules) - before)
    await running.stop()
    return found


async def _ask(port: int, request: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"{request} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {len(BODY)}"
    writer.write(head.encode() + b"\r\n\r\n" + BODY)
    status = int((await reader.readline()).split()[1])
    await reader.read()
    writer.close()
    return status


def _main() -> None:
    node = ThreadingHTTPServer(("127.0.0.1", 0), _Node)
    threading.Thread(target=node.serve_forever, daemon=True).start()
    loaded = asyncio.run(_loaded(f"http://127.0.0.1:{node.server_port}"))
    node.shutdown()
    print(json.dumps(loaded))


if __name__ == "__main__":
    _main()
