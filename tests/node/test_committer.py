"""The miner commits to each generation period by itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from soliton.chain.addresses import address_text
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto.keys import KeyPair
from soliton.ledger import generators
from soliton.node.committer import commitments_of
from soliton.node.node import Node
from soliton.node.remote_keys import RemoteKey
from soliton.node.settings import load_settings
from soliton.node.wallet import Wallet
from tests.node.chains import FEE, address_of, forge, now, person, transfer
from tests.node.committing import ACTIVATION, ANN, BOB, PERIOD, commit, finality_network, grow

Opening = Callable[..., Node]
POOR = person("poor")
COIN = 10**8


@pytest.fixture(name="opened")
def open_nodes(tmp_path: Path) -> Iterator[Opening]:
    """Opens a node of ann's, one after the other on one chain."""
    nodes: list[Node] = []

    def opened(*accounts: KeyPair, **overrides: object) -> Node:
        for each in nodes:
            each.close()
        nodes.clear()
        keys = {"miner.commit-to-generation": True, "miner.quorum": 0}
        settings = load_settings(network="devnet", data_dir=tmp_path, overrides=keys | overrides)
        miner = msgspec.structs.replace(settings.miner, accounts=accounts or (ANN,))
        settings = msgspec.structs.replace(settings, network=finality_network(), miner=miner)
        node = Node(settings, Wallet.in_memory(b"nothing"), durable=False)
        node.clock = lambda: now(node.chain)
        node.pool._clock = node.clock
        nodes.append(node)
        return node

    yield opened
    for each in nodes:
        each.close()


def follow(node: Node) -> list[bytes]:
    """Let the node commit; return the ids of the commitments in its pool."""
    node.chain.flush()
    node.follow_chain()
    node.pool.settle()
    node.committer.follow()
    return [each.id for each in node.pool.transactions() if each.type_id == 19]


def next_generators(node: Node) -> list[bytes]:
    period = node.chain.rules.period_at(node.chain.height + 1)
    assert period is not None
    chain = node.chain
    found = generators.committed_to(chain.state, period.next, chain.network.chain_id)
    return [each.address for each in found]


def mine(node: Node, count: int = 1, account: KeyPair = ANN) -> None:
    for _ in range(count):
        node.committer.follow()
        node.chain.append(forge(node.chain, node.pool.transactions(), account))
        follow(node)


def test_a_miner_commits_to_every_period(opened: Opening, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    node = opened()
    grow(node.chain, ACTIVATION - 2)
    assert follow(node) == []
    mine(node, 4 * PERIOD)
    chain = node.chain
    period = chain.rules.period_at(chain.height + 1)
    while period is not None and period.start > ACTIVATION:
        assert len(generators.committed_to(chain.state, period, chain.network.chain_id)) == 1
        period = chain.rules.period_at(period.start - 1)
    own = commitments_of(chain, address_of(ANN))
    assert own is not None and own.committed_until is not None
    # By itself it has two thirds.
    assert chain.voted_height == chain.height - 2
    sent = [each for each in caplog.messages if "commits to generation in blocks 10 to 15" in each]
    assert len(sent) == 1
    assert "its present commitment ends at block 15" in caplog.text
    assert not [each for each in caplog.records if each.levelno > logging.INFO]


def test_a_restart_makes_the_same_transaction(opened: Opening) -> None:
    node = opened()
    grow(node.chain, ACTIVATION)
    (first,) = follow(node)
    assert follow(node) == [first]
    node = opened()
    assert follow(node) == [first]


def test_one_that_is_rolled_back_is_made_again(opened: Opening) -> None:
    node = opened()
    grow(node.chain, ACTIVATION)
    assert len(follow(node)) == 1
    mine(node, 2)
    assert next_generators(node) == [address_of(ANN)]
    assert follow(node) == []
    node._roll_back(ACTIVATION, keep=False)
    assert len(follow(node)) == 1


def test_a_commitment_by_hand_is_enough(opened: Opening, caplog: pytest.LogCaptureFixture) -> None:
    node = opened()
    grow(node.chain, ACTIVATION)
    by_hand = commit(node.chain, ANN, fee=20_000_000)
    node.chain.flush()
    node.follow_chain()
    assert node.broadcast(by_hand)
    assert follow(node) == [by_hand.id]
    mine(node)
    assert next_generators(node) == [address_of(ANN)]
    assert not caplog.records


def test_who_has_too_little_for_the_deposit_is_warned_once(
    opened: Opening, caplog: pytest.LogCaptureFixture
) -> None:
    node = opened(BOB)
    grow(node.chain, ACTIVATION)
    has = node.chain.balance(address_of(BOB))
    left = 1_050 * COIN
    grow(node.chain, ACTIVATION + 1, first=(transfer(node.chain, BOB, ANN, has - left - FEE),))
    for _ in range(3):
        assert follow(node) == []
        mine(node)
    warnings = [each for each in caplog.messages if address_text(address_of(BOB)) in each]
    assert len(warnings) == 1
    assert "10010000000 for deposit and fee" in warnings[0]


def test_who_does_not_generate_is_not_warned(
    opened: Opening, caplog: pytest.LogCaptureFixture
) -> None:
    node = opened(POOR)
    grow(node.chain, ACTIVATION)
    assert follow(node) == []
    assert not caplog.records


def test_a_key_in_a_signing_service_is_named(
    opened: Opening, caplog: pytest.LogCaptureFixture
) -> None:
    node = opened()
    remote = RemoteKey(ANN.public_key, None)  # type: ignore[arg-type]
    node.committer.accounts = lambda: [remote]
    grow(node.chain, ACTIVATION)
    mine(node, 2)
    assert len([each for each in caplog.messages if "signing service" in each]) == 1


def test_another_owner_of_the_key_is_named_and_the_tries_are_few(
    opened: Opening, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = opened()
    grow(node.chain, ACTIVATION)
    payload = commit(node.chain, ANN).payload
    taken = commit(node.chain, BOB, payload=payload)
    grow(node.chain, ACTIVATION + 1, first=(taken,))
    tries: list[object] = []
    broadcast = node.broadcast

    def counted(transaction: AnyTransaction) -> bool:
        tries.append(transaction)
        return broadcast(transaction)

    monkeypatch.setattr(node, "broadcast", counted)
    for _ in range(50):
        assert follow(node) == []
    assert len(tries) == 1
    assert caplog.text.count("is already committed, try another key") == 1


def test_without_the_setting_a_miner_is_warned_before_its_commitment_ends(
    opened: Opening, caplog: pytest.LogCaptureFixture
) -> None:
    node = opened(**{"miner.commit-to-generation": False})
    grow(node.chain, ACTIVATION)
    assert follow(node) == []
    grow(node.chain, ACTIVATION + 1, first=(commit(node.chain, ANN),))
    mine(node, 2 * PERIOD)
    assert [each for each in caplog.messages if "ends at block 15" in each]
    assert next_generators(node) == []
