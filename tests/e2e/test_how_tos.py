"""How-tos that show commands: each is typed as it stands; only ports, places and lengths differ.

What lives here: those that need no other material than a devnet. What does not: the tour
(``test_documents``), the signer's page (``test_signer_how_to``), exports (``tests/export``).
"""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from tests.blocks import blocks, typed
from tests.e2e.programs import PROGRAM, WAIT_SECONDS, Program, call, run, started
from tests.ports import free_port
from tests.vectors import REPOSITORY

NODE = "http://127.0.0.1:6869"
SHOP = "3MMiWb5hjTXwst33rEaebQq8RnXZRFrTjuY"

pytestmark = pytest.mark.slow


def words(block: str) -> list[str]:
    """Those of a page's one command, but for the program."""
    program, *rest = shlex.split(block, comments=True)
    assert program.endswith("soliton")
    return rest


def test_scripts_are_deployed_called_and_traced(chain: Program, tmp_path: Path) -> None:
    (commands,) = blocks("docs/how-to/write-scripts.md")
    (shop,) = blocks("docs/how-to/test-a-dapp.md", "ride")
    (tmp_path / "shop.ride").write_text(shop, encoding="utf-8")
    deploying, trying, calling, tracing = commands.splitlines()
    node = f" --node {chain.node_url}"
    assert SHOP in typed(deploying + node, tmp_path)
    assert "sold" in typed(trying + node, tmp_path)
    assert call(f"{chain.node_url}/addresses/data/{SHOP}").json() == []
    called = typed(calling + node, tmp_path)
    sold = call(f"{chain.node_url}/addresses/data/{SHOP}/sold").json()
    assert sold["value"] == 7
    name = re.findall(r"\b[1-9A-HJ-NP-Za-km-z]{43,44}\b", called)[0]
    assert "buy" in typed(tracing.replace("ID", name) + node, tmp_path)


def test_editors_find_the_language_server() -> None:
    """Both start it by the same words, which are a command."""
    page = "docs/how-to/write-scripts.md"
    (neovim,), (_, vscode) = blocks(page, "lua"), blocks(page, "json")
    told = msgspec.json.decode(vscode)
    words = [told["glspc.server.command"], *told["glspc.server.commandArguments"]]
    (command,) = re.findall(r"cmd = \{ (.*?) \}", neovim)
    assert re.findall(r'"([^"]*)"', command) == words
    assert words[0] == PROGRAM.name and run(*words[1:], "--help").returncode == 0
    assert neovim.count("{") == neovim.count("}") and neovim.count("(") == neovim.count(")")


def test_a_matcher_is_run_copied_and_checked(chain: Program, tmp_path: Path) -> None:
    """And goes on from its copy."""
    making, running, copying, checking = blocks("docs/how-to/run-a-matcher.md")
    told = typed(making, tmp_path, {NODE: chain.node_url, "waves-testnet": "devnet"})
    config = tmp_path / "exchange" / "matcher" / "matcher.conf"
    assert config.is_file() and "address" in told
    text = config.read_text(encoding="utf-8")
    config.write_text(f"{text}\nsoliton.matcher.rest-api.port = 0\n", encoding="utf-8")
    *command, path = words(running)
    with started(*command, tmp_path / path, until="takes orders") as program:
        settings = call(f"{program.matcher_url}/matcher/settings").json()
        assert settings["matcherPublicKey"] in told
        typed(copying, tmp_path)
    assert "hold" in typed(checking, tmp_path)
    shutil.rmtree(tmp_path / "exchange")
    (tmp_path / "copy").rename(tmp_path / "exchange")
    assert "hold" in typed(checking, tmp_path)
    with started(*command, tmp_path / path, until="takes orders"):
        pass


def test_settings_of_several_matchers_are_right(tmp_path: Path) -> None:
    (shared,) = blocks("docs/how-to/several-matchers.md", "hocon")
    made = run("matcher", "init", "--network", "waves-mainnet", "--data-dir", tmp_path)
    assert made.returncode == 0, made.stderr
    config = tmp_path / "matcher" / "matcher.conf"
    config.write_text(config.read_text(encoding="utf-8") + "\n" + shared, encoding="utf-8")
    checked = run("config", "check", config)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    broken = config.read_text(encoding="utf-8").replace("lease = 5s", "lease = soon")
    config.write_text(broken, encoding="utf-8")
    assert run("config", "check", config).returncode == 1


def test_a_node_joins_a_network(tmp_path: Path) -> None:
    """Alone: a test talks to no public network."""
    (joining,) = blocks("docs/how-to/join-a-network.md")
    *command, place = words(joining)
    options = ("--port", 0, "--offline")
    with started(*command, tmp_path / place, *options, until="REST API on") as program:
        assert call(f"{program.node_url}/blocks/height").json() == {"height": 1}
        genesis = call(f"{program.node_url}/blocks/at/1").json()
        assert genesis["generator"] and genesis["transactionCount"] > 0


def await_port(port: int) -> None:
    """Wait until a server of another's takes connections."""
    limit = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < limit:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail(f"nobody listens on {port}")


def test_a_node_starts_from_a_snapshot(tmp_path: Path) -> None:
    taking, checking, serving, restoring, running = blocks("docs/how-to/start-from-a-snapshot.md")
    options = ("--port", 0, "--offline")
    place = {"./node": tmp_path / "node", "./snapshot": tmp_path / "snapshot"}
    command = [*words(running)[:-1], tmp_path / "node"]
    with started(*command, *options, until="REST API on"):
        assert "height 1\n" in typed(taking, tmp_path, place)
    assert "are in order" in typed(checking, tmp_path, place)
    port = free_port()
    server = serving.replace("8000", str(port)).replace("./snapshot", str(tmp_path / "snapshot"))
    with subprocess.Popen(shlex.split(server), stdout=subprocess.DEVNULL) as process:
        try:
            await_port(port)
            told = typed(restoring, tmp_path, {":8000": f":{port}", "./new": tmp_path / "new"})
        finally:
            process.kill()
    assert "restored to" in told and "are in order" in told
    # Which offers the snapshot itself.
    config = tmp_path / "node.conf"
    config.write_text(f'soliton.rest-api.snapshot-directory = "{tmp_path}/snapshot"\n')
    command = [*words(running)[:-1], tmp_path / "new", "--config", config]
    with started(*command, *options, until="REST API on") as program:
        assert call(f"{program.node_url}/blocks/height").json() == {"height": 1}
        again = run(
            *("snapshot", "restore", "--from", f"{program.node_url}/snapshot"),
            *("--data-dir", tmp_path / "another"),
        )
        assert again.returncode == 0, again.stderr


def test_networks_are_simulated(tmp_path: Path) -> None:
    """A part of the hour, and of the hundred seeds."""
    hour, many, finality = blocks("docs/how-to/simulate-a-network.md")
    told = typed(hour.replace("3600", "60"), tmp_path)
    assert "forks:" in told and (tmp_path / "timeline.svg").read_text().startswith("<svg")
    few = many.replace("--seeds 100", "--seeds 2").replace("--seconds 600", "--seconds 30")
    assert few != many
    assert "seed" in typed(few, tmp_path)
    some = finality.replace("--seeds 20", "--seeds 1").replace("--seconds 600", "--seconds 30")
    some = some.replace("--generation-period 12", "--generation-period 3")
    some = some.replace("--partition 60s", "--partition 10s").replace("--nodes 5", "--nodes 3")
    some = some.replace(",two-faced-endorsements", "")
    assert "deposits lost" in typed(some, tmp_path)


def test_commands_for_contributors_exist(tmp_path: Path) -> None:
    """What they start is looked up and not run: it is the tests themselves."""
    setting_up, loop = blocks("CONTRIBUTING.md")
    for page in ("README.md", "docs/getting-started.md"):
        setting_up += "".join(each for each in blocks(page) if each.startswith("make "))
    for line in (setting_up + loop).splitlines():
        program, *rest = shlex.split(line, comments=True)
        if program == "make":
            typed(shlex.join([program, "--dry-run", "-C", str(REPOSITORY), *rest]), tmp_path)
        else:
            assert program == ".venv/bin/python" and rest[:2] == ["-m", "pytest"], line
            assert all((REPOSITORY / each).exists() for each in rest if "/" in each)


def test_the_row_of_a_route_is_one() -> None:
    """What contributors are shown stands in a module, word for word."""
    (row,) = blocks("CONTRIBUTING.md", "python")
    shown = " ".join(row.split())
    sources = (REPOSITORY / "src/soliton/api/rest").glob("*.py")
    assert any(shown in " ".join(each.read_text().split()) for each in sources)


def test_make_starts_what_the_page_says(tmp_path: Path) -> None:
    (block,) = (each for each in blocks("docs/getting-started.md") if "ARGS" in each)
    plain, made = (line.partition("#")[0].strip() for line in block.splitlines())
    shown = typed(f"{made} --dry-run --no-print-directory -C {REPOSITORY}", tmp_path)
    assert shown.splitlines()[-1].split() == ["exec", *plain.split()]
    free = (f"--{each}port 0" for each in ("", "signer-", "matcher-"))
    command = [*words(plain.replace("./my-chain", f"{tmp_path}/chain")), *" ".join(free).split()]
    with started(*command, until="Ready.") as program:
        top = call(f"{program.node_url}/blocks/last").json()["id"]
    with started(*command, until="Ready.") as program:
        assert call(f"{program.node_url}/blocks/headers/at/2").json()["id"] == top


def test_the_library_of_ethereum_is_answered(chain: Program, tmp_path: Path) -> None:
    (block,) = (each for each in blocks("docs/getting-started.md") if "eth_chainId" in each)
    told = typed(block, tmp_path, {NODE: chain.node_url})
    assert msgspec.json.decode(told)["result"] == hex(ord("R"))


def test_a_node_without_keys_is_set_up(tmp_path: Path) -> None:
    (wallet,) = blocks("docs/reference/signer.md", "hocon")
    secret = tmp_path / "node.secret"
    secret.write_text("a key of some length", encoding="utf-8")
    secret.chmod(0o600)
    wallet = wallet.replace("node.secret", str(secret))
    config = tmp_path / "node.conf"
    config.write_text(wallet, encoding="utf-8")
    assert run("config", "check", config, "--network", "devnet").returncode == 0
    config.write_text(wallet.replace("signer =", "singer ="), encoding="utf-8")
    told = run("config", "check", config, "--network", "devnet")
    assert "singer" in told.stdout + told.stderr
