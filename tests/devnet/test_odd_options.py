"""Options of a devnet that cannot be used: what is said, and that nothing is lost."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.programs import PROGRAM, call, run, started

FREE = ("--port", 0, "--signer-port", 0, "--matcher-port", 0)


@pytest.mark.parametrize("more", [(), ("--nodes", 2)])
def test_a_directory_that_cannot_be_made(tmp_path: Path, more: tuple[object, ...]) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    ended = run("devnet", *FREE, "--data-dir", in_the_way / "data", *more)
    assert ended.returncode == 1
    assert ended.stderr == f"soliton: cannot make {in_the_way / 'data'}: Not a directory\n"


def test_a_state_that_could_not_be_saved_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "nothing" / "state"
    ended = run("devnet", *FREE, "--state", path)
    assert ended.returncode == 1
    assert f"soliton: cannot write {path}: No such file or directory\n" in ended.stderr


@pytest.mark.parametrize("option", ["--block-time", "--heartbeat"])
def test_seconds_that_are_no_number(option: str) -> None:
    ended = run("devnet", *FREE, option, "nan")
    assert ended.returncode == 2
    assert f"Invalid value for '{option}'" in ended.stderr


def has_ipv6() -> bool:
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize("more", [(), ("--nodes", 2, "--block-time", 1)])
def test_an_address_of_ipv6(more: tuple[object, ...]) -> None:
    with started("devnet", *FREE, "--host", "::1", *more, until="Ready.") as program:
        url = next(word for word in program.output.split() if word.startswith("http://[::1]:"))
        assert call(f"{url}/blocks/height").status == 200


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this device")
@pytest.mark.parametrize("arguments", [("--help",), ("devnet", *FREE), ("devnet", "--nodes", "0")])
def test_an_output_that_is_full_for_errors_too(arguments: tuple[object, ...]) -> None:
    """The exit code is all that is left to say it with."""
    command = [str(each) for each in (PROGRAM, *arguments)]
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(command, stdout=full, stderr=full, check=False)
    assert ended.returncode in (1, 2)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this device")
@pytest.mark.parametrize("arguments", [("--help",), ("devnet", *FREE)])
def test_an_output_that_is_full(arguments: tuple[object, ...]) -> None:
    command = [str(each) for each in (PROGRAM, *arguments)]
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 1
    assert b"soliton: No space left on device\n" in ended.stderr
    assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("begun", "words"),
    [
        (b"", "begin.json is damaged: "),
        (b'{"nodes":2,"blockTime":1.0}', "begin.json is damaged: "),
        (
            b'{"begin":1,"nodes":3,"blockTime":1.5}',
            "holds a network that was begun with --nodes 3 --block-time 1.5",
        ),
    ],
)
def test_the_directory_of_another_network(tmp_path: Path, begun: bytes, words: str) -> None:
    (tmp_path / "begin.json").write_bytes(begun)
    ended = run("devnet", *FREE, "--nodes", 2, "--block-time", 1, "--data-dir", tmp_path)
    assert ended.returncode == 1
    assert ended.stderr.startswith("soliton: ") and words in ended.stderr


def test_a_node_leaves_no_wallet_in_the_directory_of_another(tmp_path: Path) -> None:
    place = ("--data-dir", tmp_path, "--port", 0)
    with started("devnet", *FREE, "--data-dir", tmp_path, until="Ready."):
        busy = run("run", "--network", "devnet", "--offline", *place)
    other = run("run", "--network", "waves-testnet", "--offline", *place)
    assert (busy.returncode, other.returncode) == (1, 1)
    assert "another process writes to the chain" in busy.stderr
    assert "holds the chain devnet, not waves-testnet" in other.stderr
    assert not (tmp_path / "wallet").exists()
