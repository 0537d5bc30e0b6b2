"""A server that is asked by pages through a door which leaves out or makes up some of its answers.

What lives here: that. What does not: the servers, any check.
"""

from __future__ import annotations

import contextlib
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase

WAIT_SECONDS = 60.0
_SKIPPED = {"connection", "transfer-encoding", "content-length", "date", "server"}

Stream = Callable[[BufferedIOBase], None]
"""Writes server-sent events, until the client has gone."""


class Gate:
    """Answers with ``cut`` come in two pieces: what begins with it when ``opened`` is set."""

    def __init__(self, cut: bytes) -> None:
        self.cut = cut
        self.opened = threading.Event()


class _Handler(BaseHTTPRequestHandler):
    target: str
    made_up: Mapping[str, Stream | int | None]
    gate: Gate | None

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Say nothing."""

    def log_error(self, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path not in self.made_up:
            self._hand_on(None)
            return
        stream = self.made_up[path]
        if stream is None or isinstance(stream, int):
            self.send_error(stream or 404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        with contextlib.suppress(OSError):
            stream(self.wfile)

    def do_POST(self) -> None:
        self._hand_on(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def _hand_on(self, body: bytes | None) -> None:
        # A compressed page has no place to cut.
        skipped = {"host", *_SKIPPED, *(() if self.gate is None else ("accept-encoding",))}
        headers = {
            name: value for name, value in self.headers.items() if name.lower() not in skipped
        }
        request = urllib.request.Request(self.target + self.path, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as answer:
                self._answer(answer.status, answer.headers.items(), answer.read())
        except urllib.error.HTTPError as error:
            with error:
                self._answer(error.code, error.headers.items(), error.read())
        except OSError:
            self.send_error(502)

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in _SKIPPED:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.gate is not None and self.gate.cut in body:
            at = body.index(self.gate.cut)
            self.wfile.write(body[:at])
            self.gate.opened.wait(WAIT_SECONDS)
            body = body[at:]
        self.wfile.write(body)


@contextlib.contextmanager
def proxy(
    target: str, made_up: Mapping[str, Stream | int | None], gate: Gate | None = None
) -> Iterator[str]:
    """A server like ``target``, but for some paths: ``None`` is not found, a number is a status, a
    function writes a stream; and but for answers that a ``gate`` holds back in part. Gives its
    address.
    """
    handler = type("Handler", (_Handler,), {"target": target, "made_up": made_up, "gate": gate})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def events(*told: tuple[str, object]) -> bytes:
    """The text of server-sent events."""
    return b"".join(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode() for name, data in told)
