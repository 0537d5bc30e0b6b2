"""The commands in the documents, run as they are written; only ports and places are replaced."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from functools import partial
from itertools import islice
from pathlib import Path

import httpx
import pytest

from soliton.node.settings import api_key_hash_text
from tests.blocks import blocks, typed
from tests.e2e.programs import Program, devnet, eventually, is_mined, started
from tests.ports import free_port

DOCUMENTS = ("README.md", "docs/getting-started.md")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]


def blocks_of(document: str, *words: str, language: str = "") -> list[str]:
    """The document's blocks of commands that have all of these words."""
    found = blocks(document, language)
    chosen = [block for block in found if all(word in block for word in words)]
    assert chosen, f"{document} shows nothing with {words}"
    return chosen


@pytest.mark.parametrize("document", DOCUMENTS)
def test_transactions_of_the_tour_are_mined(document: str, chain: Program, tmp_path: Path) -> None:
    for block in [
        *blocks_of(document, "/transactions/sign", "/transactions/broadcast"),
        *blocks_of(document, "curl", ":6888/data"),
    ]:
        script = block.replace("http://127.0.0.1:6869", chain.node_url)
        script = script.replace("http://127.0.0.1:6888", chain.signer_url)
        name = json.loads(typed(script, tmp_path))["id"]
        eventually(partial(is_mined, chain.node_url, name), "the transaction in a block")


def test_trying_sending_and_waiting(chain: Program, tmp_path: Path) -> None:
    document = "docs/how-to/try-and-wait.md"
    ((trying,), (waiting,)) = (blocks_of(document, word) for word in ("/simulate", "/wait/"))
    tried = json.loads(typed(trying.replace("http://127.0.0.1:6869", chain.node_url), tmp_path))
    assert tried["valid"] and not tried["signed"] and tried["fee"]["amount"] == 100_000
    script = waiting.replace("http://127.0.0.1:6869", chain.node_url)
    found = json.loads(typed(script, tmp_path))
    assert found["status"] == "confirmed" and is_mined(chain.node_url, found["id"])


def test_a_devnet_is_controlled(tmp_path: Path) -> None:
    """All commands of the page, one after the other; what they say is no error."""
    with devnet() as chain:
        for block in blocks_of("docs/how-to/control-a-devnet.md", "curl"):
            script = block.replace("http://127.0.0.1:6869", chain.node_url)
            for command in re.split(r"^(?=curl )", script, flags=re.MULTILINE)[1:]:
                told = typed(command, tmp_path)
                if ">" not in command:
                    answers = json.loads(told)
                    for answer in answers if isinstance(answers, list) else [answers]:
                        assert "error" not in answer, (command, told)
        assert httpx.get(f"{chain.node_url}/blocks/height").json()["height"] > 1_000
        assert "changedByHand" in httpx.get(f"{chain.node_url}/node/status").json()


def test_the_program_that_follows_the_chain(chain: Program, tmp_path: Path) -> None:
    """It prints a payment that is made while it listens, and stops with its reader."""
    page = "docs/how-to/follow-the-chain.md"
    (source,), (watching,) = blocks(page, "python"), blocks(page)
    mining = f"(sleep 1; curl -s -X POST '{chain.node_url}/devnet/mine?blocks=1' >/dev/null) &"
    watched = f"{mining} curl -sN --max-time 5"
    places = {"http://127.0.0.1:6869": chain.node_url, "curl -N": watched}
    assert "event: block" in typed(watching, tmp_path, places, code=28)
    source = source.replace("http://127.0.0.1:6869", chain.node_url)
    listening = httpx.get(f"{chain.node_url}/metrics").text
    assert "soliton_event_streams 0" in listening
    command = [sys.executable, "-u", "-c", source]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as program:
        try:
            eventually(partial(_listens, chain.node_url), "a client of /events")
            (block,) = blocks_of("README.md", "/transactions/sign", "/transactions/broadcast")
            script = block.replace("http://127.0.0.1:6869", chain.node_url)
            name = json.loads(typed(script, tmp_path))["id"]
            assert program.stdout is not None
            assert name in program.stdout.readline()
        finally:
            program.kill()


def _listens(node_url: str) -> bool:
    return "soliton_event_streams 1" in httpx.get(f"{node_url}/metrics").text


@pytest.mark.parametrize("document", DOCUMENTS)
def test_imports_of_the_tour_work(document: str, shared: Path, tmp_path: Path) -> None:
    (block,) = blocks_of(document, "soliton import FILE")
    blocks = tmp_path / "blocks.bin"
    with (shared / "data" / "waves-mainnet-blocks-2-10000.bin").open("rb") as all_of_them:
        # Some more than the commands speak of. A block has its size in front.
        sizes = iter(partial(all_of_them.read, 4), b"")
        some = [size + all_of_them.read(int.from_bytes(size)) for size in islice(sizes, 5_100)]
    blocks.write_bytes(b"".join(some))
    output = typed(block, tmp_path, {"FILE": blocks})
    assert '"height": 5000' in output
    assert "\nheight 4000\n" in output


def test_key_of_the_tour_opens_the_node(tmp_path: Path) -> None:
    (config,) = blocks("docs/getting-started.md", "hocon")
    (asking,) = blocks_of("docs/getting-started.md", "/utils/hash/secure")
    port = free_port()
    path = tmp_path / "node.conf"
    path.write_text(config.replace("7431", str(port)))
    (running,) = blocks_of("docs/getting-started.md", "soliton run")
    (looking,) = blocks_of("docs/getting-started.md", "config check")
    assert f"{port}" in typed(looking, tmp_path)
    command = running.replace("node.conf", str(path)).split()[1:]
    with started(*command, "--data-dir", tmp_path / "node", until="REST API on") as program:
        assert "unknown setting" not in program.output
        answer = json.loads(typed(asking.replace("7431", str(port)), tmp_path))
    assert answer["hash"] == api_key_hash_text(answer["message"])
    assert "put the hash here" in config
