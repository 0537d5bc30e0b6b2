"""A signer that keeps keys, run as its page tells: every command of it, in one directory."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from soliton.crypto.keys import key_pair
from tests.blocks import blocks, typed
from tests.e2e.programs import devnet, eventually, is_mined, run, started
from tests.ports import free_port

PAGE: Final = "docs/how-to/run-a-signer.md"
SEED: Final = "soliton devnet account 7"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]


class Terminal:
    """Where the page's commands are typed, with the ports of the test."""

    def __init__(self, directory: Path, node_url: str, port: int) -> None:
        self.directory = directory
        self._node_url = node_url
        self._port = port

    def written(self, text: str) -> str:
        places = {"keys", "policy.toml", "state"}
        for place in places:
            text = text.replace(f" = {place}\n", f' = "{self.directory / place}"\n')
        text = text.replace("  signer {\n", f"  signer {{\n    port = {self._port}\n")
        text = text.replace("http://127.0.0.1:6869", self._node_url)
        return text.replace("127.0.0.1:6888", f"127.0.0.1:{self._port}")

    def type(self, text: str) -> str:
        return typed(self.written(text), self.directory)


def test_the_page(tmp_path: Path) -> None:
    commands = blocks(PAGE)
    start = commands.index("soliton signer --config signer.conf\n")
    port = free_port()
    with devnet() as chain:
        terminal = Terminal(tmp_path, chain.node_url, port)
        for block in commands[:start]:
            terminal.type(block)
        config = tmp_path / "signer.conf"
        with started("signer", "--config", config, until="signer on http://") as program:
            unlock, small, large, library, dry, reload, audit = commands[start + 1 :]
            assert "unlocked for 3600 s" in terminal.type(unlock)
            signed = json.loads(terminal.type(small))["signed"]
            assert signed["amount"] == 100_000_000 and len(signed["proofs"]) == 1
            told = terminal.type(large).splitlines()
            *_, last = told
            assert json.loads(last)["signed"]["amount"] == 5_000_000_000
            assert any("transfer (version 3) of 50 WAVES" in line for line in told)
            sent = terminal.type(small.replace("/sign ", "/sign-and-broadcast "))
            assert json.loads(sent)["signed"] == signed
            assert terminal.type(library).split()[-1] == "True"
            eventually(partial(is_mined, chain.node_url, signed["id"]), "the payment in a block")
            # The devnet has paid from this account before, to others than the rules name.
            assert "transactions would have been refused" in terminal.type(dry)
            assert "2 rules of policy.toml are in force" in terminal.type(reload)
            refused = run("signer", "--config", config)
            assert refused.returncode == 1 and "another signer uses" in refused.stderr
            output = program.output
        # An end at any moment leaves a log that is whole.
        verified, *exported = terminal.type(audit).splitlines()
        assert "lines are as they were written" in verified and "3 signatures" in verified
        assert exported[0].startswith("number,at,event") and len(exported) > 5
        log = next((tmp_path / "state").glob("audit-*.jsonl"))
        everything = output + log.read_text(encoding="utf-8") + "\n".join(exported)
        private = key_pair(SEED).private_key
        secrets = [SEED, "a long password", private.hex()]
        secrets += [(tmp_path / f"{name}.secret").read_text().strip() for name in ("bot", "alice")]
        assert [secret for secret in secrets if secret in everything] == []
        changed = log.read_text(encoding="utf-8").replace('"amount', '"Amount')
        changed = changed.replace("50 WAVES", "5 WAVES")
        log.write_text(changed, encoding="utf-8")
        damaged = run("signer", "--config", config)
        assert damaged.returncode == 1 and f"{log.name}:" in damaged.stderr
        assert run("signer", "audit", "verify", tmp_path / "state").returncode == 1
