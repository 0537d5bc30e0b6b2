"""Nodes that a test has written down, served over HTTP.

What lives here: their answers. What does not: any check.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GENERATOR = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"
BLOCK_MS = 60_000


@dataclass
class FakeNode:
    """A chain by the ids of its blocks, from height 1 on, and by state hashes."""

    ids: list[str]
    states: Mapping[int, str] = field(default_factory=dict)
    keys: Mapping[int, int] = field(default_factory=dict)
    """The base target of blocks that are other forms of one block."""
    answers: Mapping[str, object] = field(default_factory=dict)
    """Further answers by path; a number is a status without a body."""
    asked: list[str] = field(default_factory=list)

    def answer(self, path: str) -> object:
        self.asked.append(path)
        if path in self.answers:
            return self.answers[path]
        name, _, last = path.rpartition("/")
        if path == "/blocks/height":
            return {"height": len(self.ids)}
        if path == "/blocks/headers/last":
            return self.header(len(self.ids))
        if name == "/blocks/headers/at" and 1 <= int(last) <= len(self.ids):
            return self.header(int(last))
        if name == "/debug/stateHash" and int(last) in self.states:
            return {"stateHash": self.states[int(last)]}
        return 404

    def header(self, height: int) -> dict[str, object]:
        name = self.ids[height - 1]
        return {
            "version": 5,
            "timestamp": height * BLOCK_MS,
            "reference": self.ids[height - 2] if height > 1 else "",
            "generator": GENERATOR,
            "signature": name,
            "id": name,
            "height": height,
            "nxt-consensus": {
                "base-target": 1,
                "generation-signature": str(self.keys.get(height, name)),
            },
        }


@contextmanager
def served(node: FakeNode) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found = node.answer(self.path)
            status = found if isinstance(found, int) else 200
            body = b"" if isinstance(found, int) else json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
