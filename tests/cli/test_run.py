"""``soliton run``: ports of the networks, warnings and refusals about settings, help texts."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from soliton import __version__
from soliton.cli.main import cli
from tests.e2e.programs import call, height, is_free, run, started

UP = "REST API on"
NO_WALLET = 'wallet { file = "", seed = "4vJ9" }'
"""A seed that is in no file: an encrypted one costs half a second."""
COMMANDS = tuple(sorted(cli.commands))


@pytest.mark.parametrize(("network", "port"), [("zbs-testnet", 7431), ("zbs-mainnet", 7441)])
def test_zbs_networks_are_served_on_their_ports(network: str, port: int, tmp_path: Path) -> None:
    if not is_free(port):
        pytest.skip(f"port {port} is in use on this machine")
    options = ("run", "--network", network, "--data-dir", tmp_path)
    with started(*options, until=UP) as program:
        assert program.node_url == f"http://127.0.0.1:{port}"
        assert height(program.node_url) == 1
        genesis = call(f"{program.node_url}/blocks/first").json()
        assert genesis["height"] == 1
        program.send(signal.SIGINT)
        assert program.wait() == 0
        assert "stopped at height 1" in program.output


def write(directory: Path, text: str) -> Path:
    path = directory / "node.conf"
    path.write_text(text)
    return path


def test_unknown_settings_stop_the_start(tmp_path: Path) -> None:
    config = write(
        tmp_path,
        f"""soliton {{
          directory = "{tmp_path}/node"
          rest-api {{ port = 0, prot = 7431 }}
        }}""",
    )
    ended = run("run", "--config", config)
    assert ended.returncode == 1
    assert ended.stderr == (
        f"soliton: {config}:3: unknown setting soliton.rest-api.prot "
        "(did you mean soliton.rest-api.port?)\n"
    )
    assert not (tmp_path / "node").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("soliton.rest-api.port = seven", "soliton.rest-api.port"),
        ("soliton.rest-api.port = 70000", "soliton.rest-api.port"),
        ("zbs.rest-api.enable = perhaps", "zbs.rest-api.enable"),
        ("waves.rest-api.bind-address = [1]", "waves.rest-api.bind-address"),
        ("waves.blockchain.type = MOON", "waves.blockchain.type"),
        ("soliton { rest-api {", "line "),
    ],
)
def test_wrong_values_are_refused_with_file_and_key(text: str, words: str, tmp_path: Path) -> None:
    config = write(tmp_path, text)
    ended = run("run", "--config", config, "--data-dir", tmp_path / "node")
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"soliton: {config}:1: ")
    assert words in line
    assert not (tmp_path / "node").exists()


def test_seed_is_in_no_refusal(tmp_path: Path) -> None:
    config = write(tmp_path, 'soliton.wallet.seed = "my secret seed 0OIl"')
    ended = run("run", "--config", config)
    assert ended.returncode == 1
    assert "soliton.wallet.seed" in ended.stderr
    assert "secret" not in ended.stdout + ended.stderr


def test_interface_can_be_switched_off(tmp_path: Path) -> None:
    config = write(
        tmp_path, f'soliton {{ directory = "{tmp_path}", rest-api.enable = no, {NO_WALLET} }}'
    )
    with started("run", "--config", config, until="at height 1") as program:
        program.send(signal.SIGTERM)
        assert program.wait() == 0
        assert UP not in program.output


def test_without_peers_nothing_is_mined_and_it_says_so(tmp_path: Path) -> None:
    config = write(
        tmp_path, f'soliton {{ directory = "{tmp_path}", rest-api.port = 0, {NO_WALLET} }}'
    )
    with started("run", "--config", config, until="no mining") as program:
        assert "miner.quorum asks for 1 peers, there are none" in program.output


def test_data_directory_of_another_network_is_told(tmp_path: Path) -> None:
    place = ("--data-dir", tmp_path)
    config = write(tmp_path, f"soliton {{ rest-api.port = 0, {NO_WALLET} }}")
    with started("run", "--config", config, "--network", "zbs-testnet", *place, until=UP):
        pass
    ended = run("run", "--config", config, "--network", "zbs-mainnet", *place)
    assert ended.returncode == 1
    assert "holds the chain zbs-testnet, not zbs-mainnet" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_version() -> None:
    # With the commit, where it is known.
    assert run("--version", anew=True).stdout.startswith(f"soliton, version {__version__}")


def test_help_names_all_commands() -> None:
    text = run("--help").stdout
    assert {"import", "rollback", "state-hash", "run", "devnet", "signer"} <= set(COMMANDS)
    for name in COMMANDS:
        assert f"\n  {name} " in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_explained(name: str) -> None:
    ended = run(name, "--help")
    assert ended.returncode == 0
    assert ended.stdout.startswith(f"Usage: soliton {name} [OPTIONS]")
    command = cli.commands[name]
    assert command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.opts[0] in ended.stdout
            assert parameter.help, f"{name} {parameter.opts[0]} has no help"


@pytest.mark.parametrize("words", [(), ("matcher",), ("ride",), ("config",)])
def test_summaries_are_whole(words: tuple[str, ...]) -> None:
    ended = run(*words, "-h")
    assert ended.returncode == 0
    assert "..." not in ended.stdout.replace("[ARGS]...", "")
    assert ended.stdout == run(*words, "--help").stdout


def test_a_port_in_use_is_told_with_who_has_it_and_a_way_out(tmp_path: Path) -> None:
    with started(
        "run",
        "--port",
        0,
        "--network",
        "zbs-testnet",
        until=UP,
        environment={"HOME": str(tmp_path)},
        anew=True,
    ) as program:
        port = program.node_url.rpartition(":")[2]
        for command in ("run", "signer"):
            ended = run(command, "--port", port, environment={"HOME": str(tmp_path / command)})
            assert ended.returncode == 1
            assert ended.stderr.splitlines()[-1] == (
                f"soliton: cannot listen on 127.0.0.1 port {port}: Address already in use by "
                f"process {program.process.pid} "
                "(soliton run --port 0 --network zbs-testnet --offline); --port 0 takes a free one"
            )


def test_a_default_that_conflicts_is_named(tmp_path: Path) -> None:
    place = ("--data-dir", tmp_path, "--port", 0)
    with started("run", "--network", "waves-testnet", *place, until=UP):
        pass
    ended = run("run", *place)
    assert ended.returncode == 1
    assert ended.stderr == (
        f"soliton: {tmp_path}/data holds the chain waves-testnet; without --network and --config "
        "it would be zbs-testnet, the default: give --network waves-testnet, or its --config\n"
    )
    with started("run", "--data-dir", tmp_path / "b", "--port", 0, until=UP) as program:
        assert "no --network and no --config: zbs-testnet" in program.output


@pytest.mark.parametrize(
    ("module", "others"),
    [
        ("soliton.cli.main", "rich asyncio soliton.cli.devnet soliton.chain soliton.node.node"),
        ("soliton.devnet.main", "rich soliton.p2p soliton.client soliton.grpc_api cryptography"),
        ("soliton.api.app", "multiprocessing websockets cryptography"),
        ("soliton.devnet.matcher", "multiprocessing websockets cryptography"),
        ("soliton.signer.app", "soliton.signer.key_service soliton.signer.pkcs11 cryptography"),
    ],
)
def test_a_start_imports_only_what_it_needs(module: str, others: str) -> None:
    program = f"import sys, {module}; print(*(n for n in {others.split()} if n in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout.strip(), done.stderr) == ("", "")
