"""The commands in the documents, run as they are written; only ports and places are replaced."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from soliton.node.settings import api_key_hash_text
from tests.e2e.programs import PROGRAM, Program, devnet, eventually, free_port, is_mined, started
from tests.vectors import REPOSITORY

# Long: a rollback waits for the disk after each of its thousands of blocks.
TIMEOUT_SECONDS = 300
DOCUMENTS = ("README.md", "docs/getting-started.md")
BLOCK = re.compile(r"^```\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OTHER_BLOCK = re.compile(r"^```\w+\n.*?^```$", re.DOTALL | re.MULTILINE)
"""One that says of what language it is: no commands."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]


def blocks_of(document: str, *words: str) -> list[str]:
    """The document's blocks of commands that have all of these words."""
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    found = BLOCK.findall(OTHER_BLOCK.sub("", text))
    chosen = [block for block in found if all(word in block for word in words)]
    assert chosen, f"{document} shows nothing with {words}"
    return chosen


def run_script(script: str, directory: Path) -> str:
    done = subprocess.run(
        ["sh", "-e", "-c", script],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def chain() -> Iterator[Program]:
    with devnet() as program:
        yield program


@pytest.mark.parametrize("document", DOCUMENTS)
def test_transactions_of_the_tour_are_mined(document: str, chain: Program, tmp_path: Path) -> None:
    for block in [
        *blocks_of(document, "/transactions/sign", "/transactions/broadcast"),
        *blocks_of(document, "curl", ":6888/data"),
    ]:
        script = block.replace("http://127.0.0.1:6869", chain.node_url)
        script = script.replace("http://127.0.0.1:6888", chain.signer_url)
        name = json.loads(run_script(script, tmp_path))["id"]
        eventually(partial(is_mined, chain.node_url, name), "the transaction in a block")


def test_trying_sending_and_waiting(chain: Program, tmp_path: Path) -> None:
    document = "docs/how-to/try-and-wait.md"
    ((trying,), (waiting,)) = (blocks_of(document, word) for word in ("/simulate", "/wait/"))
    tried = json.loads(
        run_script(trying.replace("http://127.0.0.1:6869", chain.node_url), tmp_path)
    )
    assert tried["valid"] and not tried["signed"] and tried["fee"]["amount"] == 100_000
    script = waiting.replace("http://127.0.0.1:6869", chain.node_url)
    found = json.loads(run_script(script, tmp_path))
    assert found["status"] == "confirmed" and is_mined(chain.node_url, found["id"])


def test_a_devnet_is_controlled(tmp_path: Path) -> None:
    """All commands of the page, one after the other; what they say is no error."""
    with devnet() as chain:
        for block in blocks_of("docs/how-to/control-a-devnet.md", "curl"):
            script = block.replace("http://127.0.0.1:6869", chain.node_url)
            for command in re.split(r"^(?=curl )", script, flags=re.MULTILINE)[1:]:
                told = run_script(command, tmp_path)
                if ">" not in command:
                    answers = json.loads(told)
                    for answer in answers if isinstance(answers, list) else [answers]:
                        assert "error" not in answer, (command, told)
        assert httpx.get(f"{chain.node_url}/blocks/height").json()["height"] > 1_000
        assert "changedByHand" in httpx.get(f"{chain.node_url}/node/status").json()


def test_the_program_that_follows_the_chain(chain: Program, tmp_path: Path) -> None:
    """It prints a payment that is made while it listens, and stops with its reader."""
    text = (REPOSITORY / "docs/how-to/follow-the-chain.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    source = source.replace("http://127.0.0.1:6869", chain.node_url)
    listening = httpx.get(f"{chain.node_url}/metrics").text
    assert "soliton_event_streams 0" in listening
    command = [sys.executable, "-u", "-c", source]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as program:
        try:
            eventually(partial(_listens, chain.node_url), "a client of /events")
            (block,) = blocks_of("README.md", "/transactions/sign", "/transactions/broadcast")
            script = block.replace("http://127.0.0.1:6869", chain.node_url)
            name = json.loads(run_script(script, tmp_path))["id"]
            assert program.stdout is not None
            assert name in program.stdout.readline()
        finally:
            program.kill()


def _listens(node_url: str) -> bool:
    return "soliton_event_streams 1" in httpx.get(f"{node_url}/metrics").text


@pytest.mark.parametrize("document", DOCUMENTS)
def test_imports_of_the_tour_work(document: str, shared: Path, tmp_path: Path) -> None:
    (block,) = blocks_of(document, "soliton import FILE")
    blocks = shared / "data" / "waves-mainnet-blocks-2-10000.bin"
    script = block.replace(".venv/bin/soliton", str(PROGRAM)).replace("FILE", str(blocks))
    output = run_script(script, tmp_path)
    assert '"height": 5000' in output
    assert "\nheight 4000\n" in output


def test_key_of_the_tour_opens_the_node(tmp_path: Path) -> None:
    (config,) = blocks_of("docs/getting-started.md", "api-key-hash")
    (asking,) = blocks_of("docs/getting-started.md", "/utils/hash/secure")
    port = free_port()
    path = tmp_path / "node.conf"
    path.write_text(config.replace("7431", str(port)))
    options = ("--network", "zbs-testnet", "--data-dir", tmp_path / "node")
    with started("run", "--config", path, *options, until="REST API on") as program:
        assert "unknown setting" not in program.output
        answer = json.loads(run_script(asking.replace("7431", str(port)), tmp_path))
    assert answer["hash"] == api_key_hash_text(answer["message"])
    assert "put the hash here" in config
