"""``soliton peers`` against a running node, which has a peer."""

from __future__ import annotations

from pathlib import Path

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
