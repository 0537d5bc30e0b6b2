"""The features of a private chain: chosen by number, or by a version of the reference node."""

from __future__ import annotations

from pathlib import Path

import pytest

from soliton import Account, Node
from soliton.chain.networks.presets import load
from soliton.devnet.features import UNTIL, Chosen, FeaturesRefused, network_of, read_features
from soliton.devnet.options import API_KEY
from soliton.ride.compiler import compile_source
from tests.e2e.programs import Program, call, devnet, run

FREE = ("--port", 0, "--signer-port", 0, "--matcher-port", 0)
OF_VERSION_3 = "{-# STDLIB_VERSION 3 #-} sigVerify(tx.bodyBytes, tx.proofs[0], tx.senderPublicKey)"


def active(program: Program) -> list[int]:
    found = call(f"{program.node_url}/activation/status").json()["features"]
    return sorted(each["id"] for each in found if each["blockchainStatus"] == "ACTIVATED")


def test_scripts_of_old_versions_can_be_set_until_1_5() -> None:
    with devnet("--until", "1.5") as program:
        assert active(program) == list(range(1, 21))
        node = Node(program.node_url, api_key=API_KEY)
        alice = Account.from_seed("soliton devnet account 1", node.chain_id)
        script = compile_source(OF_VERSION_3).script.source
        node.send(alice.set_script(script)).wait()
        assert node.send(alice.transfer(alice.address, 1, fee=500_000)).wait().height == 4


def test_by_default_a_chain_has_the_newest_features() -> None:
    with devnet() as program:
        assert active(program) == list(range(1, 26))
    # Those of the image of the reference node (docker/private/waves.custom.conf of 1.6).
    assert UNTIL["1.6"] == (*range(1, 21), 22, 24, 25)


def test_a_chain_keeps_its_features(tmp_path: Path) -> None:
    with devnet("--features", "1-16", "--data-dir", tmp_path) as program:
        assert active(program) == list(range(1, 17))
    for options in (
        ("--features", "1-15"),
        ("--until", "1.5"),
        ("--until", "1.3", "--generation-period", "7"),
    ):
        ended = run("devnet", *FREE, "--data-dir", tmp_path, *options)
        assert ended.returncode == 1
        assert "begun with --features 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16 " in ended.stderr
    for kept in ((), ("--until", "1.3")):
        with devnet(*kept, "--data-dir", tmp_path) as program:
            assert active(program) == list(range(1, 17))


def test_a_chain_that_was_begun_before_goes_on_as_it_was(tmp_path: Path) -> None:
    """Without a note of its features, a directory is of a version whose newest was 23."""
    with devnet("--features", "1-23", "--data-dir", tmp_path) as program:
        call(f"{program.node_url}/devnet/mine", {})
    (tmp_path / "features.json").unlink()
    with devnet("--data-dir", tmp_path) as program:
        assert active(program) == list(range(1, 24))
        call(f"{program.node_url}/devnet/mine", {})
    (tmp_path / "features.json").write_text("[1,2,14]")
    ended = run("devnet", *FREE, "--data-dir", tmp_path, "--until", "1.5")
    assert "begun with --features 1,2,14 " in ended.stderr


def test_a_file_keeps_its_features(tmp_path: Path) -> None:
    state = tmp_path / "state.gz"
    with devnet("--features", "1-16", "--state", state) as program:
        call(f"{program.node_url}/devnet/mine", {})
    with devnet("--state", state) as program:
        assert active(program) == list(range(1, 17))
    ended = run("devnet", *FREE, "--state", state, "--until", "1.6")
    assert ended.returncode == 1 and f"{state} holds a chain that was begun" in ended.stderr
    with devnet() as program:
        loading = {"method": "anvil_loadState", "params": [f"0x{state.read_bytes().hex()}"]}
        refused = call(f"{program.node_url}/eth", {"jsonrpc": "2.0", "id": 1, **loading})
        assert "with the features 1,2,3,4" in refused.body.decode()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'' is no feature"),
        ("1,x", "'x' is no feature: expected a list such as 1-14,16"),
        ("5-3", "5-3: there is no such feature"),
        ("1-99", "1-99: there is no such feature here, only 1 to"),
        ("0", "0: there is no such feature"),
        ("1," * 1000 + "1", "no feature"),
    ],
)
def test_what_is_no_list_of_features(text: str, words: str) -> None:
    with pytest.raises(FeaturesRefused, match=words):
        read_features(text)


def test_lists_of_features() -> None:
    assert read_features("3, 1-2,2") == (1, 2, 3)
    assert UNTIL["1.2"] == tuple(range(1, 16))
    chosen = network_of(load("devnet"), Chosen((7, 14), 9)).functionality
    assert chosen.pre_activated_features == {7: -5, 14: 1}
    assert chosen.generation_period_length == 9


def test_options_that_conflict() -> None:
    ended = run("devnet", *FREE, "--features", "1", "--until", "1.5")
    assert ended.returncode == 2 and "give one of them" in ended.stderr
    ended = run("devnet", *FREE, "--features", "1-99")
    assert ended.returncode == 1 and "1-99: there is no such feature here" in ended.stderr
    ended = run("devnet", *FREE, "--features", "1-5", "--fork", "http://127.0.0.1:1")
    assert ended.returncode == 1 and "--fork and --features" in ended.stderr
