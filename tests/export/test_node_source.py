"""A node that is asked over HTTP gives the same database as its store."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from soliton.export.errors import SourceAway, WrongChain
from soliton.export.node_source import NodeSource
from tests.cli.here import run_here
from tests.clients.scripts import NODE
from tests.e2e.programs import devnet
from tests.export.following import dump, run_once
from tests.export.postgres import Server
from tests.ports import free_port

pytestmark = pytest.mark.slow


def test_both_ways_lead_to_the_same(postgres: Server, tmp_path: Path) -> None:
    """A chain with the types that a library makes without scripts."""
    from tests.clients.scripts import HERE, run_script

    if NODE is None or not (HERE / "node_modules" / "@waves").is_dir():
        pytest.skip("tests/clients/node_modules is missing (`make clients` installs it)")
    over_http, by_store = postgres.database(), postgres.database()
    with devnet("--data-dir", tmp_path) as program:
        run_script("every_type.js", program.node_url)
        source = NodeSource(program.node_url)
        run_once(source, over_http)
        source.close()
        done = run_here("export", "postgres", "--dsn", by_store, "--data-dir", tmp_path, "--once")
        assert done.returncode == 0, done.stderr
        done = run_here("verify", "postgres", "--dsn", over_http, "--from-node", program.node_url)
        assert done.returncode == 0, done.stdout + done.stderr
    found, expected = dump(over_http), dump(by_store)
    assert len(found["txs_4"]) > 3 and found["asset_updates"]
    for table, content in expected.items():
        assert found[table] == content, table


def test_a_node_that_is_not_there() -> None:
    with pytest.raises(SourceAway):
        NodeSource(f"http://127.0.0.1:{free_port()}")
    gc.collect()  # What it had left open would be told now.


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"[]", SourceAway),
        (b"{}", SourceAway),
        (b"7", SourceAway),
        (b'{"generator": null}', SourceAway),
        (b"[" * 100_000, SourceAway),
        (b'{"generator": ""}', WrongChain),
        (b'{"generator": "0OIl"}', WrongChain),
        (b'{"generator": "3"}', WrongChain),
    ],
)
def test_who_answers_is_no_node(answer: bytes, error: type[Exception]) -> None:
    with answering(answer) as url, pytest.raises(error):
        NodeSource(url)
    gc.collect()


@pytest.mark.parametrize("answer", [b'{"height": "9", "id": "A"}', b'{"height": 9}', b"null"])
def test_a_node_that_answers_something_else_later(answer: bytes) -> None:
    generator = b'{"generator": "3PAWwWa6GbwcJaFzwqXQN5KQm7H96Y7SHTQ"}'
    with answering(generator, answer) as url:
        source = NodeSource(url)
        with pytest.raises(SourceAway):
            source.refresh()
        source.close()


@contextmanager
def answering(*answers: bytes | tuple[int, bytes]) -> Iterator[str]:
    """A web server that gives these in turn, with status 200 or another, and the last one from then
    on.
    """
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = left.pop(0) if len(left) > 1 else left[0]
            status, body = (200, answer) if isinstance(answer, bytes) else answer
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
