"""A node on a chain that activates a feature which this version does not implement."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from soliton.chain.features import IMPLEMENTED
from soliton.chain.networks.model import Network
from soliton.crypto.keys import key_pair
from soliton.ledger.errors import UnknownFeatures
from soliton.node import known_features, miner
from soliton.node.mining import next_turn
from soliton.node.node import Node
from soliton.node.settings import load_settings
from soliton.node.wallet import Wallet
from soliton.wire import messages
from tests.e2e.programs import run
from tests.node import forging
from tests.p2p.test_signed_first import Stranger
from tests.p2p.world import make, network, peers, until

UNKNOWN = 99
SEED = "waves private node seed with waves tokens"
RICH = key_pair(SEED)
ACTIVE = 10
"""Votes of blocks 2 to 5 approve the feature, which is active one window later."""


def voting(chain: Network) -> Network:
    """The network with votes in windows of 5 blocks, 4 of which approve a feature."""
    functionality = msgspec.structs.replace(
        chain.functionality, feature_check_blocks_period=5, blocks_for_feature_activation=4
    )
    return msgspec.structs.replace(chain, functionality=functionality)


def open_node(directory: Path, **overrides: object) -> Node:
    settings = load_settings(network="devnet", data_dir=directory, overrides=overrides)
    settings = msgspec.structs.replace(settings, network=voting(settings.network))
    return Node(settings, Wallet.in_memory(b"nothing", [SEED.encode()]), durable=False)


@pytest.fixture(autouse=True)
def votes_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that are made here vote as a later version does."""
    monkeypatch.setattr(miner, "IMPLEMENTED", IMPLEMENTED | {UNKNOWN})


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = open_node(tmp_path, **{"features.supported": [UNKNOWN]})
    yield made
    made.close()


def test_the_node_warns_at_the_approval_and_stops_before_the_activation(
    node: Node, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    while node.chain.height < ACTIVE - 1:
        assert not node.is_stopping
        assert ("approved" in caplog.text) is (node.chain.height >= 5)
        node.mine(RICH)
    assert node.is_stopping
    assert node.feature_watch.has_stopped
    assert caplog.text.count("feature 99 (unknown) is approved and active from height 10") == 1
    assert caplog.text.count("features 99 (unknown) are active in the next block") == 1
    node.chain.store.close()
    again = open_node(tmp_path)
    try:
        assert again.chain.height == ACTIVE - 1
        again.feature_watch.check()
        assert again.is_stopping
    finally:
        again.close()


def test_the_node_warns_of_votes_before_the_approval(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    """Two windows ahead, with how many votes there are, and when the feature would be active."""
    while node.chain.height < 3:
        assert "feature 99 (" not in caplog.text
        node.mine(RICH)
    said = [each.getMessage() for each in caplog.records if "feature 99 (" in each.getMessage()]
    assert len(said) == 1
    assert "(unknown), which this version does not implement: 50 % of 2 blocks since" in said[0]
    assert "80 % approve it; should it reach that by height 5" in said[0]
    assert "active from height 10 on, about 2" in said[0]
    while node.chain.height < 5:
        node.mine(RICH)
    assert caplog.text.count("feature 99 (unknown), which") == 1
    forging.roll_back(node, 2, keep=False)
    node.mine(RICH)
    assert caplog.text.count("feature 99 (unknown), which") == 1


def test_votes_that_suffice_are_said_once_more(
    node: Node, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window is longer than what is counted at once: nothing is said of a part too small."""
    monkeypatch.setattr(known_features, "BLOCKS_PER_CHECK", 1)
    functionality = msgspec.structs.replace(
        node.network.functionality, feature_check_blocks_period=20, blocks_for_feature_activation=18
    )
    chain = node.chain
    monkeypatch.setattr(
        chain, "network", msgspec.structs.replace(chain.network, functionality=functionality)
    )
    while chain.height < 12:
        node.mine(RICH)
    texts = [each.getMessage() for each in caplog.records if "feature 99 (" in each.getMessage()]
    assert ["should it reach" in each for each in texts] == [True, False]
    assert "90 % of 10 blocks since height 1 vote for it, 90 % approve it; at this" in texts[1]


def test_the_feature_after_finality_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(miner, "IMPLEMENTED", IMPLEMENTED | {27})
    node = open_node(tmp_path, **{"features.supported": [27]})
    while not node.is_stopping:
        node.mine(RICH)
    assert node.chain.height == ACTIVE - 1
    assert "feature 27 (Finality Improvements) is approved" in caplog.text
    assert "features 27 (Finality Improvements) are active in the next block" in caplog.text
    node.close()


def test_a_rollback_below_the_approval_takes_the_warning_back(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    for expected in (1, 2):
        while node.chain.height < 6:
            node.mine(RICH)
        assert caplog.text.count("is approved") == expected
        forging.roll_back(node, 4, keep=False)
    assert not node.is_stopping


def test_a_node_that_may_not_stop_stays_at_that_height(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    node = open_node(
        tmp_path,
        **{
            "features.supported": [UNKNOWN],
            "features.auto-shutdown-on-unsupported-feature": "no",
        },
    )
    try:
        while node.chain.height < ACTIVE - 1:
            assert next_turn(node) is not None
            node.mine(RICH)
        with pytest.raises(UnknownFeatures):
            node.mine(RICH)
        assert next_turn(node) is None
        assert not node.is_stopping
        assert caplog.text.count("the node stays at this height") == 1
    finally:
        node.close()


def test_peers_with_a_newer_version_are_not_blamed(tmp_path: Path) -> None:
    async def main() -> None:
        # To the peer the feature means nothing: it is active for the others from height 2 on.
        known = network()
        active = {**known.functionality.pre_activated_features, UNKNOWN: 2}
        functionality = msgspec.structs.replace(known.functionality, pre_activated_features=active)
        chain = msgspec.structs.replace(known, functionality=functionality)
        options = {"features__auto_shutdown_on_unsupported_feature": "no"}
        async with peers(tmp_path, 1, chain, **options) as (node,):
            maker = make(tmp_path / "maker", 3, known)
            try:
                maker.node.mine(maker.owner, empty=True)
                block = maker.node.chain.last_block
                stranger = Stranger(node)
                async with stranger.talking():
                    for _ in range(3):
                        stranger.say(messages.ProtobufBlock(block.data))
                    stranger.claim([maker.node.chain.block_at(1), block])
                    await until(lambda: stranger.asked == [block.id])
                    await until(lambda: not node.service.jobs.is_working)
                    assert node.node.chain.height == 1
                    assert not node.service.blacklisted()
                    assert not node.service.suspended()
                    assert node.service.connections == 1
            finally:
                maker.service.jobs.stop()
                maker.node.close()

    asyncio.run(main())


def test_the_program_ends_with_the_exit_code_of_the_reference(tmp_path: Path) -> None:
    config = tmp_path / "node.conf"
    config.write_text(
        f"""waves {{
          directory = "{tmp_path}/node"
          blockchain {{
            type = CUSTOM
            custom {{
              address-scheme-character = "Q"
              functionality.pre-activated-features = {{ 2 = 0, {UNKNOWN} = 2 }}
              genesis {{
                timestamp = 1, block-timestamp = 1, initial-balance = 0, initial-base-target = 100
                average-block-delay = 1m, transactions = []
              }}
            }}
          }}
          network.port = 0
          rest-api.port = 0
          miner.quorum = 0
        }}"""
    )
    ended = run("run", "--config", config)
    assert ended.returncode == 38, ended.stderr
    assert "features 99 (unknown) are active in the next block" in ended.stderr
