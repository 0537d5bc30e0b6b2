"""Every question of ``Node`` on a chain in this process, beside what the routes themselves say."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from soliton import Account, Node, NodeRefused, NotFound
from soliton.client.steps import Request
from soliton.crypto import base58
from soliton.testing import Chain
from soliton.testing.kit import Kit
from tests.client.test_node import DAPP

ELSEWHERE = {
    *("send", "broadcast", "wait", "wait_for_height", "events", "payments", "close", "chain_id"),
    *("dry_run", "get_json", "post_json"),
}
"""What ``test_node``, ``test_events``, ``test_payments`` and the commands' tests are about."""


@pytest.fixture(scope="module")
def node(soliton_kit: Kit) -> Node:
    return soliton_kit.node


@pytest.fixture(scope="module")
def accounts(soliton_kit: Kit) -> Sequence[Account]:
    return soliton_kit.accounts


@pytest.fixture(scope="module")
def asked(node: Node) -> Node:
    """Under this name the last test finds what was asked."""
    return node


@pytest.fixture(scope="module")
def told(node: Node) -> Node:
    """Its routes are asked without the library's questions."""
    return node


@pytest.fixture(scope="module")
def asset(node: Node, accounts: Sequence[Account], chain: Chain) -> str:
    alice, dapp = accounts[0], accounts[2]
    node.send(dapp.set_script(node.compile(DAPP).script)).wait()
    for number in range(5):
        node.send(alice.issue(f"Only {number}", 1)).wait()
    issued = node.send(alice.issue("Some", 1_000, 2, reissuable=True)).wait().asset_id
    assert issued is not None
    amounts = [(each, 10) for each in accounts[1:6]]
    node.send(alice.mass_transfer(amounts, issued)).wait()
    chain.travel(1)  # some questions are about blocks that have another one on top
    return issued


def get(told: Node, path: str) -> Any:
    answer = told._exchange(Request("GET", path))
    assert answer.status == 200, answer.body
    return msgspec.json.decode(answer.body)


def test_accounts(asked: Node, told: Node, asset: str, accounts: Sequence[Account]) -> None:
    alice, bob, dapp = accounts[:3]
    address = alice.address
    assert asked.addresses() == get(told, "/addresses")
    assert asked.address_of_public_key(alice.public_key) == address
    assert asked.is_address(address) and not asked.is_address("no address")
    details = get(told, f"/addresses/balance/details/{address}")
    assert asked.balance(alice) == details["regular"] == asked.balance_details(alice).regular
    assert asked.effective_balance(address) == details["effective"]
    assert asked.balances([alice, bob]) == {
        each.address: asked.balance(each) for each in (alice, bob)
    }
    assert asked.balances([bob], asset, asked.height()) == {bob.address: 10}
    assert asked.confirmed_balance(alice, 0) == asked.balance(alice)
    assert asked.balance_history(alice)[0].height <= asked.height()
    assert {each.asset_id: each.balance for each in asked.asset_balances(alice)}[asset] == 950
    (row,) = asked.asset_balances(alice, [asset])
    assert (row.balance, row.quantity, row.reissuable) == (950, 1_000, True)
    nfts = list(asked.nfts(alice, limit=2))
    assert {each.name for each in nfts} == {f"Only {number}" for number in range(5)}
    asked.send(dapp.data({"a/b c": 1, "b": "x", "c": True, "d": b"\xff"})).wait()
    assert asked.data(dapp) == {"a/b c": 1, "b": "x", "c": True, "d": b"\xff"}
    assert asked.data(dapp, matches="[bc]") == {"b": "x", "c": True}
    assert asked.data(dapp, keys=["d"]) == {"d": b"\xff"}
    assert asked.data_entry(dapp, "a/b c") == 1 and asked.data_entry(dapp, "nothing") is None
    script = asked.script(dapp)
    assert script.callable_complexities.keys() >= {"withdraw", "mint"} and script.version == 6
    assert asked.script(alice).script is None
    assert asked.functions(dapp)["withdraw"] == [{"name": "n", "type": "Int"}]
    assert asked.functions(alice) == {}


def test_aliases_and_leases(asked: Node, accounts: Sequence[Account]) -> None:
    alice, bob = accounts[:2]
    asked.send(alice.alias("some-alias")).wait()
    assert asked.aliases(alice) == ["alias:R:some-alias"]
    assert asked.address_by_alias("alias:R:some-alias") == alice.address
    with pytest.raises(NotFound) as missing:
        asked.address_by_alias("nobody-here")
    assert missing.value.code == 302
    asked.send(bob.transfer("alias:R:some-alias", 1)).wait()
    lease_id = asked.send(alice.lease(bob, "5")).wait().id
    assert asked.active_leases(bob)[0].id == lease_id
    assert asked.lease(lease_id).amount == 500_000_000
    asked.send(alice.cancel_lease(lease_id)).wait()
    (lease,) = asked.leases([lease_id])
    assert lease.status == "canceled" and lease.cancel_height is not None


def test_assets(asked: Node, told: Node, asset: str, accounts: Sequence[Account]) -> None:
    details = asked.asset(asset)
    shown = get(told, f"/assets/details/{asset}")
    assert (details.name, details.decimals) == ("Some", 2)
    assert details.issuer_public_key == shown["issuerPublicKey"]
    assert [each.name for each in asked.assets([asset])] == ["Some"]
    with pytest.raises(NotFound) as missing:
        asked.asset(accounts[0].public_key)
    assert missing.value.code == 313
    rows = dict(asked.asset_distribution(asset, asked.height() - 1, limit=2))
    assert rows[accounts[1].address] == 10 and sum(rows.values()) == 1_000
    known = get(told, f"/eth/assets?id={ethereum_id(asset)}")
    assert [each.asset_id for each in asked.assets_of_ethereum([ethereum_id(asset)])] == [
        known[0]["assetId"]
    ]
    names = {each["name"] for each in asked.ethereum_abi(accounts[2])}
    assert "withdraw" in names


def ethereum_id(asset: str) -> str:
    """An asset as Ethereum knows it: the first 20 bytes of its id."""
    return "0x" + base58.decode(asset)[:20].hex()


def test_blocks(asked: Node, told: Node, asset: str) -> None:
    height = asked.height()
    last = asked.last_block()
    assert last.header.height >= height and asked.last_header().height >= height
    at = asked.block_at(height - 1)
    shown = get(told, f"/blocks/at/{height - 1}")
    assert at.header.id == shown["id"] and at.header.vrf == shown["VRF"]
    assert [each.json for each in at.transactions] == shown["transactions"]
    assert asked.block(at.header.id) == at
    assert asked.header(at.header.id) == asked.header_at(height - 1) == at.header
    assert at.header.consensus.base_target == shown["nxt-consensus"]["base-target"]
    assert [each.header.height for each in asked.blocks(2, height)] == list(range(2, height + 1))
    assert [each.height for each in asked.headers(2, height)] == list(range(2, height + 1))
    mine = list(asked.blocks_by(at.header.generator, 1, height))
    assert len(mine) == height - 1  # the first one is nobody's
    assert asked.height_of(at.header.id) == height - 1
    assert asked.height_at(at.header.timestamp) == height - 1
    assert asked.block_delay(at.header.id, 1) >= 0
    with pytest.raises(NotFound):
        asked.block_at(10**7)


def test_transactions(asked: Node, told: Node, asset: str, accounts: Sequence[Account]) -> None:
    alice, bob = accounts[:2]
    payment = alice.transfer(bob, "1.25", asked.asset(asset))
    mined = asked.send(payment).wait()
    info = asked.transaction(payment.id)
    assert info.json == get(told, f"/transactions/info/{payment.id}")
    assert (info.height, info.application_status, info.fee) == (mined.height, "succeeded", 100_000)
    assert info.transaction("R") == payment
    assert [each.id for each in asked.transactions([payment.id])] == [payment.id]
    assert asked.status(payment.id).status == "confirmed"
    gone = alice.transfer(bob, 1)
    assert [each.status for each in asked.statuses([payment.id, gone.id])] == [
        "confirmed",
        "not_found",
    ]
    everything = list(asked.history(alice, limit=3))
    assert everything[0].id == payment.id
    assert len(everything) == len(get(told, f"/transactions/address/{alice.address}/limit/1000")[0])
    assert asked.unconfirmed() == [] and asked.unconfirmed_size() == 0
    with pytest.raises(NotFound):
        asked.unconfirmed_transaction(gone.id)
    (proof,) = asked.merkle_proofs([payment.id])
    assert proof.id == payment.id and proof.merkle_proof
    assert asked.snapshot(payment.id)["applicationStatus"] == "succeeded"
    assert asked.least_fee(gone).fee_amount == 100_000
    assert asked.validate(gone).valid
    assert not asked.validate(alice.transfer(bob, 10**18)).valid
    assert asked.simulate(gone).valid
    shared = Account.from_public_key(alice.public_key, "R")
    tried = asked.simulate(shared.transfer(bob, 1, timestamp=asked.time()))
    assert tried.valid and not tried.signed
    with pytest.raises(NodeRefused):
        asked.least_fee({"type": 4})


def test_scripts(asked: Node, asset: str, accounts: Sequence[Account]) -> None:
    dapp = accounts[2]
    compiled = asked.compile(DAPP)
    assert compiled.script.startswith("base64:") and compiled.callable_complexities["withdraw"] > 0
    assert "withdraw" in asked.decompile(compiled.script)
    assert asked.estimate(compiled.script).complexity == compiled.complexity
    assert asked.compile(DAPP, compact=True).script != compiled.script
    library = "{-# STDLIB_VERSION 6 #-}\n{-# CONTENT_TYPE LIBRARY #-}\nfunc three() = 3"
    user = (
        "{-# STDLIB_VERSION 6 #-}\n{-# CONTENT_TYPE EXPRESSION #-}\n{-# SCRIPT_TYPE ACCOUNT #-}\n"
        "{-# IMPORT lib.ride #-}\nthree() == 3"
    )
    assert asked.compile(user, imports={"lib.ride": library}).script
    with pytest.raises(NodeRefused) as refused:
        asked.compile("{-# STDLIB_VERSION 6 #-}\ntru")
    assert refused.value.code == 305 and "tru" in refused.value.message
    assert asked.evaluate(dapp, "half(10)").value == 5
    found = asked.evaluate(dapp, "(1, \"a\", [base58'StV1DL6CwTryKyV'], toBigInt(4), unit)")
    assert found.value == (1, "a", [b"hello world"], 4, None)
    called = asked.evaluate_call(dapp, "withdraw", 3, sender=accounts[0])
    assert called.state_changes["data"] == [{"key": "n", "type": "integer", "value": 3}]
    with pytest.raises(NodeRefused, match="too much"):
        asked.evaluate_call(dapp, "withdraw", 4)
    with pytest.raises(NodeRefused):
        asked.evaluate(accounts[0], "1")


def test_the_node(asked: Node, told: Node) -> None:
    assert asked.is_soliton()
    assert asked.node_version() == get(told, "/node/version")["version"]
    assert asked.node_status().blockchain_height <= asked.height()
    assert abs(asked.time() - get(told, "/utils/time")["NTP"]) < 3_600_000
    assert {each.id for each in asked.features()} >= set(range(1, 17))
    assert asked.reward().current_reward > 0 and asked.reward(2).height == 2
    assert asked.peers() == []
    assert asked.state_hash()["stateHash"]
    assert asked.readiness() is not None
    assert asked.voting() is not None
    assert asked.finalized_height() <= asked.height()


def test_no_question_was_left_out() -> None:
    """That a question is asked above is enough: its test may run in another process."""
    questions = {
        name
        for name, value in inspect.getmembers_static(Node, inspect.isfunction)
        if not name.startswith("_")
    }
    used = set(re.findall(r"\basked\.(\w+)", Path(__file__).read_text(encoding="utf-8")))
    assert questions - used - ELSEWHERE == set()
