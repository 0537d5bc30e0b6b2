"""A receiver of notices: a web server that may fail, hang or be away, and what it holds then.

What lives here: the server, its check of signatures, folding notices. What does not: any chain.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

Members = dict[str, Any]


class Got(NamedTuple):
    """A notice with its name."""

    name: str
    notice: Members


def folded(got: list[Got]) -> dict[str, Members]:
    """What counts of all that came, by name: nothing that came twice, or was undone."""
    found: dict[str, Members] = {}
    for name, notice in dict(got).items():
        if notice["event"] == "rollback":
            for gone in notice["undone"]:
                del found[gone]
        else:
            found[name] = notice
    return found


def is_signed(headers: Any, body: bytes, secret: str) -> bool:
    """The check that the standard's page describes."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    mac = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return f"v1,{mac}" in headers["webhook-signature"].split()


class Receiver:
    """A server on a port of its own; ``behave`` says what to do with a request: a status, or
    ``None`` to hang until the end.
    """

    def __init__(self, secret: str, port: int = 0) -> None:
        self.secret = secret
        self.got: list[Got] = []
        self.behave: Callable[[Members], int | None] = lambda _notice: 204
        self.wrong: list[str] = []
        self.attempts = 0
        self._ends = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/hook?for=test"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                # Connections that are open outlive the server: from its end on they are broken.
                gone = receiver.is_closed()
                status = None if gone else receiver.take(self.path, self.headers, body)
                if status is None:
                    receiver.hang()
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing is printed."""

        return Handler

    def take(self, path: str, headers: Any, body: bytes) -> int | None:
        self.attempts += 1
        if path != "/hook?for=test" or not is_signed(headers, body, self.secret):
            self.wrong.append(path)
            return 401
        notice = json.loads(body)
        status = self.behave(notice)
        if status is not None and 200 <= status < 300:
            self.got.append(Got(headers["webhook-id"], notice))
        return status

    def is_closed(self) -> bool:
        return self._ends.is_set()

    def hang(self) -> None:
        self._ends.wait()

    def close(self) -> None:
        self._ends.set()
        self._server.shutdown()
        self._server.server_close()


@contextlib.contextmanager
def receiving(secret: str) -> Iterator[Receiver]:
    receiver = Receiver(secret)
    try:
        yield receiver
    finally:
        receiver.close()
