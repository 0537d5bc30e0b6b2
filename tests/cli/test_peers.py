"""``soliton peers`` against a running node, which has a peer."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from soliton.node.settings import api_key_hash_text
from tests.e2e.programs import API_KEY, run, started

KEY_HASH = api_key_hash_text(API_KEY)
CONFIGURATION = """
waves {{
  blockchain.type = STAGENET
  directory = "{directory}"
  wallet {{ file = "", seed = "4vJ9" }}
  network {{ bind-address = "{address}", port = {port}, known-peers = [], node-name = "{name}" }}
  miner.enable = no
  rest-api {{ port = 0, api-key-hash = "{key}" }}
}}
"""


def configuration(directory: Path, name: str, address: str) -> Path:
    directory.mkdir()
    path = directory / "node.conf"
    text = CONFIGURATION.format(
        directory=directory, address=address, port=0, name=name, key=KEY_HASH
    )
    path.write_text(text)
    return path


def test_list_connect_ban_and_clear(tmp_path: Path) -> None:
    first = configuration(tmp_path / "first", "the first", "127.3.0.1")
    second = configuration(tmp_path / "second", "the second", "127.3.0.2")
    online = ("--peer-port", 0)
    with (
        started("run", "--config", first, *online, until="REST API on") as one,
        started("run", "--config", second, *online, until="REST API on") as other,
    ):
        port = other.output.partition("peers on 127.3.0.2:")[2].split()[0]
        node, key = ("--node", one.node_url), ("--api-key", API_KEY)
        assert "connected: none" in run("peers", "list", *node).stdout
        assert run("peers", "connect", f"127.3.0.2:{port}", *node, *key).returncode == 0
        one.wait_for("the first peer")
        listed = run("peers", "list", *node).stdout
        assert "connected: 1" in listed and "the second" in listed
        assert run("peers", "ban", "127.3.0.2", *node, *key).returncode == 0
        listed = run("peers", "list", *node).stdout
        assert "connected: none" in listed and "banned: 1" in listed
        assert run("peers", "clear", *node, *key).returncode == 0
        assert "banned: none" in run("peers", "list", *node).stdout
        refused = run("peers", "clear", *node, "--api-key", "wrong")
        assert refused.returncode == 1 and "403" in refused.stderr


class _Answers(BaseHTTPRequestHandler):
    """A node whose peer has chosen its name."""

    answers: ClassVar[dict[str, object]] = {}

    def do_GET(self) -> None:
        body = self.answers.get(self.path, "<html>")
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_name_does_not_command_the_terminal(url: str) -> None:
    peer = {
        "address": "1.2.3.4:5",
        "declaredAddress": "N/A",
        "peerName": "\x1b]0;x\x07\nknown: \x9b2J",
        "applicationVersion": "1.5.0",
    }
    _Answers.answers = {
        "/peers/connected": {"peers": [peer]},
        "/peers/all": {"peers": []},
        "/peers/blacklisted": [],
        "/peers/suspended": [],
    }
    done = run("peers", "list", "--node", url)
    assert done.returncode == 0, done.stderr
    assert "\ufffd]0;x\ufffd\ufffdknown: \ufffd2J" in done.stdout
    assert not {"\x1b", "\x07", "\x9b"} & set(done.stdout)


def test_what_is_no_node(url: str) -> None:
    _Answers.answers = {}
    for node in (url, "http://127.0.0.1:x"):
        done = run("peers", "list", "--node", node)
        assert done.returncode == 1
        assert done.stderr.startswith("soliton: ") and len(done.stderr.splitlines()) == 1
