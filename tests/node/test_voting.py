"""Votes for features and rewards in block headers, and blocks that challenge others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from soliton.chain import blocks, networks
from soliton.chain.addresses import from_public_key
from soliton.chain.blocks import Block, ChallengedHeader
from soliton.chain.features import Feature
from soliton.chain.networks.model import Network
from soliton.chain.transactions import codec
from soliton.chain.transactions.transfer import TYPE, Transfer
from soliton.crypto import vrf
from soliton.crypto.keys import KeyPair, key_pair
from soliton.ledger import headers
from soliton.ledger.environment import approved_features
from soliton.ledger.errors import BlockRejected
from soliton.ledger.rules_at import RuleBook
from soliton.ledger.state import Status
from soliton.node import miner
from soliton.node.chain_writer import ChainWriter
from soliton.storage.store import Store
from tests.node import forging

RICH = key_pair("waves private node seed with waves tokens")
OTHER = key_pair("soliton devnet account 1")
GENERATOR = key_pair("soliton devnet account 2")
BOOST = int(Feature.BOOST_BLOCK_REWARD)
COIN = 100_000_000

OpenChain = Callable[[Network], ChainWriter]


@pytest.fixture
def open_chain(tmp_path: Path) -> Iterator[OpenChain]:
    opened: list[ChainWriter] = []

    def make(network: Network) -> ChainWriter:
        directory = tmp_path / str(len(opened))
        opened.append(ChainWriter(network, Store(directory, network.name, durable=False)))
        return opened[-1]

    yield make
    for chain in opened:
        chain.store.close()


def _voting_network(**changes: object) -> Network:
    """The devnet, where features from 23 on are still to be voted for: 4 votes in windows of 5
    blocks.
    """
    devnet = networks.load("devnet")
    usual = devnet.functionality.pre_activated_features
    features = {number: at for number, at in usual.items() if number < BOOST}
    functionality = msgspec.structs.replace(
        devnet.functionality,
        pre_activated_features=features,
        feature_check_blocks_period=5,
        blocks_for_feature_activation=4,
    )
    return msgspec.structs.replace(devnet, functionality=functionality, **changes)


def _mine(
    chain: ChainWriter, votes: tuple[int, ...] = (), reward_vote: int = -1, account: KeyPair = RICH
) -> Block:
    now = chain.last_block.header.timestamp + 1_000
    slot = miner.next_slot(chain, account)
    block = forging.forge(chain, slot, (), now, reward_vote, votes).block
    chain.append(block)
    chain.store.flush()
    return block


@pytest.mark.parametrize(
    ("voting_heights", "activation"),
    [
        ({2, 3, 4, 5}, 10),  # the votes of the block that ends the window count
        ({1, 2, 3, 4}, None),  # the genesis block cannot vote: one short
        ({2, 3, 4}, None),
        ({4, 5, 6, 7}, None),  # the votes of two windows do not add up
        ({6, 7, 8, 9}, 15),
        ({2, 3, 4, 5, 6, 7, 8, 9, 10}, 10),  # later votes change nothing
    ],
)
def test_a_feature_is_active_one_window_after_its_approval(
    open_chain: OpenChain, voting_heights: set[int], activation: int | None
) -> None:
    chain = open_chain(_voting_network())
    while chain.height < 12:
        _mine(chain, (BOOST,) if chain.height + 1 in voting_heights else ())
    assert chain.rules.activation_height(Feature.BOOST_BLOCK_REWARD) == activation


def test_blocks_with_many_votes_are_not_cached(open_chain: OpenChain) -> None:
    """As in the reference, a block of version 5 may have any number: caches do not grow with it."""
    chain = open_chain(_voting_network())
    many = (BOOST,) * 1_000
    for votes in (many, many, many, many, ()):
        _mine(chain, votes)
    found = {height: chain.feature_votes(height) for height in range(1, 7)}
    assert found == {height: chain.meta(height).feature_votes for height in range(1, 7)}
    assert found[2] == found[5] == many and found[6] == ()
    assert {*chain._metas} == {*chain._votes} == {1, 6}
    # They count nevertheless.
    assert chain.rules.activation_height(Feature.BOOST_BLOCK_REWARD) == 10


@pytest.mark.parametrize(
    ("votes", "approved"),
    [
        ({9: (23,)}, (23,)),
        ({10: (23,)}, ()),  # alone in the last block
        ({6: (0, 2**32 - 1, 24, 24)}, (24,)),
    ],
)
def test_one_vote_is_enough(votes: dict[int, tuple[int, ...]], approved: tuple[int, ...]) -> None:
    """Source: wavesplatform/Waves
    ``node/src/main/scala/com/wavesplatform/database/RocksDBWriter.scala``
    (``newlyApprovedFeatures``).
    """
    network = _voting_network()
    functionality = msgspec.structs.replace(network.functionality, blocks_for_feature_activation=1)
    network = msgspec.structs.replace(network, functionality=functionality)
    found = approved_features(network, RuleBook(network), 10, lambda at: votes.get(at, ()))
    assert found == approved


def test_an_active_feature_changes_the_rules_and_a_rollback_takes_it_back(
    open_chain: OpenChain,
) -> None:
    chain = open_chain(_voting_network())
    while chain.height < 12:
        _mine(chain, (BOOST,))
    minted = [
        chain.meta(height).total_waves - chain.meta(height - 1).total_waves
        for height in range(2, 13)
    ]
    assert minted == [6 * COIN] * 8 + [60 * COIN] * 3
    reopened = ChainWriter(chain.network, chain.store)
    assert reopened.rules.activation_height(Feature.BOOST_BLOCK_REWARD) == 10
    chain.rollback(4)
    assert chain.rules.activation_height(Feature.BOOST_BLOCK_REWARD) is None


def test_votes_are_those_of_the_blocks_that_are_on_the_chain(open_chain: OpenChain) -> None:
    chain = open_chain(_voting_network())
    while chain.height < 4:
        _mine(chain, (BOOST,))
    chain.rollback(1)
    while chain.height < 5:
        _mine(chain)
    assert chain.rules.activation_height(Feature.BOOST_BLOCK_REWARD) is None
    while chain.height < 8:
        _mine(chain, (BOOST,))
    reopened = ChainWriter(chain.network, chain.store)
    while reopened.height < 10:
        _mine(reopened, (BOOST,))
    assert reopened.rules.activation_height(Feature.BOOST_BLOCK_REWARD) == 15


def test_a_feature_that_nobody_here_knows_ends_the_chain_when_it_is_active(
    open_chain: OpenChain,
) -> None:
    chain = open_chain(_voting_network())
    while chain.height < 9:
        _mine(chain, (99,))
    with pytest.raises(BlockRejected, match="a newer version is needed"):
        _mine(chain)


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ((-1, -1, -1), 600),
        ((700, 700, 700), 650),
        ((700, 700, -1), 650),
        ((700, -1, -1), 600),
        ((500, 500, -1), 550),
        ((500, 700, 600), 600),
        ((600, 600, 600), 600),
        ((0, 0, 0), 550),
    ],
)
def test_reward_votes_decide_at_the_end_of_a_term(
    open_chain: OpenChain, votes: tuple[int, ...], expected: int
) -> None:
    # Terms of 6 blocks from height 1 on, votes count in the last 3 of each: heights 4 to 6.
    network = _voting_network()
    features = dict(network.functionality.pre_activated_features)
    del features[int(Feature.CAPPED_REWARDS)]
    functionality = msgspec.structs.replace(network.functionality, pre_activated_features=features)
    chain = open_chain(msgspec.structs.replace(network, functionality=functionality))
    unit = COIN // 100
    while chain.height < 3:
        _mine(chain, reward_vote=9_000 * unit)
    for vote in votes:
        _mine(chain, reward_vote=vote if vote < 0 else vote * unit)
    _mine(chain)
    assert [chain.meta(height).reward for height in (6, 7)] == [600 * unit, expected * unit]


def _honest_block(chain: ChainWriter) -> Block:
    """A block with one transfer by an account that is not the challenger."""
    unsigned = codec.build(
        TYPE,
        Transfer(from_public_key(RICH.public_key, 82), None, COIN, b""),
        version=3,
        chain_id=82,
        sender_public_key=OTHER.public_key,
        fee=100_000,
        timestamp=chain.last_block.header.timestamp,
    )
    transfer = codec.sign(unsigned, OTHER.private_key)
    now = chain.last_block.header.timestamp + 5_000
    return forging.forge(chain, miner.next_slot(chain, GENERATOR), (transfer,), now).block


def _wrong_block(chain: ChainWriter) -> Block:
    """The same block with a state hash that nothing leads to."""
    honest = _honest_block(chain)
    header = msgspec.structs.replace(honest.header, state_hash=bytes(32))
    return blocks.sign(header, honest.transactions, GENERATOR.private_key)


def _challenge(chain: ChainWriter, wrong: Block) -> Block:
    header = wrong.header
    challenged = ChallengedHeader(
        base_target=header.base_target,
        generation_signature=header.generation_signature,
        feature_votes=header.feature_votes,
        timestamp=header.timestamp,
        generator=header.generator,
        reward_vote=header.reward_vote,
        state_hash=header.state_hash,
        header_signature=wrong.signature,
    )
    now = chain.last_block.header.timestamp + 1_000
    own = forging.forge(chain, miner.next_slot(chain, RICH), wrong.transactions, now).block
    mine = msgspec.structs.replace(own.header, challenged=challenged)
    return blocks.sign(mine, wrong.transactions, RICH.private_key)


def test_a_wrong_state_hash_can_be_challenged_and_bans_its_generator(
    open_chain: OpenChain,
) -> None:
    chain = open_chain(networks.load("devnet"))
    _mine(chain)
    wrong = _wrong_block(chain)
    with pytest.raises(BlockRejected, match="state hash"):
        chain.append(wrong)
    chain.append(_challenge(chain, wrong))
    chain.store.flush()
    assert chain.height == 3
    found = chain.transaction(wrong.transactions[0].id)
    assert found is not None
    assert found.status == Status.SUCCEEDED
    banned = from_public_key(wrong.header.generator, 82)
    assert chain.generating_balance(banned) == 0
    assert chain.generating_balance(banned, 2) > 0
    chain.rollback(2)
    assert chain.generating_balance(banned) > 0


def test_a_challenge_of_a_right_block_is_refused(open_chain: OpenChain) -> None:
    chain = open_chain(networks.load("devnet"))
    _mine(chain)
    honest = _honest_block(chain)
    with pytest.raises(BlockRejected, match="the state hash was right"):
        chain.append(_challenge(chain, honest))
    assert chain.height == 2


def test_who_challenges_must_be_able_to_mine_without_what_the_other_has(
    open_chain: OpenChain,
) -> None:
    """The reference adds the challenged balance to the delay's only: the own one must suffice."""
    chain = open_chain(networks.load("devnet"))
    _mine(chain)
    challenge = _challenge(chain, _wrong_block(chain))
    poor = key_pair("nobody")
    header = msgspec.structs.replace(
        challenge.header,
        generator=poor.public_key,
        generation_signature=vrf.prove(poor.private_key, headers.hit_source(chain)),
    )
    with pytest.raises(BlockRejected, match="generating balance 0 is below"):
        chain.append(blocks.sign(header, challenge.transactions, poor.private_key))


def _first_features(count: int) -> Network:
    devnet = networks.load("devnet")
    functionality = msgspec.structs.replace(
        devnet.functionality, pre_activated_features=dict.fromkeys(range(1, count + 1), 0)
    )
    return msgspec.structs.replace(devnet, functionality=functionality)


@pytest.mark.parametrize(("features", "coins"), [(17, 6), (18, 0)])
def test_the_first_block_has_a_reward_before_feature_18(
    open_chain: OpenChain, features: int, coins: int
) -> None:
    """Source: wavesplatform/Waves
    ``node/src/main/scala/com/wavesplatform/state/BlockchainUpdaterImpl.scala``
    (``computeNextReward``) and ``state/diffs/BlockDiffer.scala`` (``computeInitialStateHash``).
    """
    chain = open_chain(_first_features(features))
    generator = from_public_key(chain.last_block.header.generator, chain.network.chain_id)
    assert chain.balance(generator) == coins * COIN
    first = chain.meta(1)
    assert first.total_waves == chain.network.genesis.initial_balance + coins * COIN
    assert first.snapshot_hash == open_chain(networks.load("devnet")).meta(1).snapshot_hash
    _mine(chain)
    assert chain.meta(2).total_waves == first.total_waves + 6 * COIN


@pytest.mark.parametrize(("features", "gained"), [(16, 6), (17, 0)])
def test_the_third_block_has_the_balances_of_the_second_before_feature_17(
    open_chain: OpenChain, features: int, gained: int
) -> None:
    """Source: wavesplatform/Waves
    ``node/src/main/scala/com/wavesplatform/state/SnapshotBlockchain.scala`` (``height2Fix``).
    """
    chain = open_chain(_first_features(features))
    address = from_public_key(RICH.public_key, chain.network.chain_id)
    before = chain.balance(address)
    _mine(chain)
    assert headers.generating_balance(chain, address, 2) == before + gained * COIN
    _mine(chain)
    assert headers.generating_balance(chain, address, 3) == before
