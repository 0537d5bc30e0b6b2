"""The chain on devnet's and older rules: blocks go on, come off, and wrong ones stay outside."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from soliton.chain import blocks
from soliton.chain.addresses import Address
from soliton.chain.blocks import Block, ChallengedHeader
from soliton.chain.networks import Network
from soliton.chain.transactions import codec
from soliton.crypto import vrf
from soliton.crypto.keys import KeyPair
from soliton.ledger import headers
from soliton.ledger.errors import BlockRejected
from soliton.ledger.state import WAVES
from soliton.node import miner
from soliton.node.chain_writer import ChainWriter
from soliton.node.miner import CannotMine, next_slot
from soliton.storage.errors import RollbackTooDeep, WrongStore
from soliton.storage.store import Store
from tests.node import forging
from tests.node.chains import (
    DEVNET,
    FEE,
    RICH,
    address_of,
    data,
    forge,
    mine,
    now,
    old_network,
    open_chain,
    payment,
    person,
    shared_network,
    transfer,
)

COIN = 10**8
ANN, BOB = person("ann"), person("bob")
ALL_BUT_V5 = list(range(1, 15))
NETWORKS = {
    "nxt": old_network(),
    "nxt ng": old_network([1, 2]),
    "fair 1": old_network([1, 2, 3, 4, 5, 6, 8]),
    "rewards": old_network(ALL_BUT_V5),
    "fair 2, vrf": old_network([*ALL_BUT_V5, 15, 16, 17, 18], min_block_time_ms=15_000),
    "devnet": DEVNET,
}
VERSIONS = {"nxt": 2, "nxt ng": 2, "fair 1": 2, "rewards": 4, "fair 2, vrf": 5, "devnet": 5}


def all_waves(chain: ChainWriter) -> int:
    """Everything that accounts have, and what waits for the next generator."""
    chain.store.flush()
    accounts = sum(int.from_bytes(raw, "big") for _, raw in chain.store.scan(b"W", b"W"))
    carry = dict(chain.meta(chain.height).carry).get(None, 0)
    return accounts + carry


@pytest.mark.parametrize("name", NETWORKS)
def test_every_kind_of_chain_grows_and_shrinks(name: str, tmp_path: Path) -> None:
    network = NETWORKS[name]
    chain = open_chain(tmp_path, network)
    before = [chain.meta(1)]
    for height in range(2, 106 if name != "devnet" else 12):
        batch = []
        if height % 4 == 0:
            send = payment if VERSIONS[name] == 2 else transfer
            batch = [send(chain, RICH, to, height * COIN) for to in (ANN, BOB)]
        block = mine(chain, batch)
        assert block.header.version == VERSIONS[name]
        assert chain.height == height
        assert all_waves(chain) == chain.meta(height).total_waves
        before.append(chain.meta(height))
    reopened = chain.last_block
    chain.store.close()
    chain = open_chain(tmp_path, network)
    assert chain.last_block == reopened
    top = chain.height
    removed: list[Block] = []
    chain.rollback(5, removed.append)
    assert chain.height == 5 and all_waves(chain) == chain.meta(5).total_waves
    for block in reversed(removed):
        chain.append(block)
    chain.store.flush()
    assert [chain.meta(height) for height in range(1, top + 1)] == before
    chain.store.close()


def test_empty_block(chain: ChainWriter) -> None:
    rich = chain.balance(address_of(RICH))
    block = mine(chain)
    assert block.transactions == ()
    assert block.header.state_hash == chain.meta(2).snapshot_hash
    assert block.header.transactions_root == blocks.transactions_root(())
    # Features 19 to 23 are active, but devnet has neither DAO nor buy-back: all goes to the miner.
    assert chain.balance(address_of(RICH)) == rich + 10 * 6 * COIN
    assert chain.meta(2).reward == 6 * COIN
    assert chain.meta(2).total_waves == chain.meta(1).total_waves + 10 * 6 * COIN


def test_fee_goes_to_two_generators(tmp_path: Path) -> None:
    chain = open_chain(tmp_path, shared_network(RICH, ANN))
    mine(chain, [transfer(chain, RICH, ANN, 2_000 * COIN)])
    before = {pair: chain.balance(address_of(pair)) for pair in (RICH, ANN)}
    fee = 100_003
    mine(chain, [transfer(chain, RICH, BOB, COIN, fee=fee)], ANN)
    reward = 10 * chain.meta(3).reward
    now_share = fee // 5 * 2
    first_carry = FEE - FEE // 5 * 2
    assert chain.balance(address_of(ANN)) == before[ANN] + reward + now_share + first_carry
    assert chain.balance(address_of(RICH)) == before[RICH] - COIN - fee
    assert chain.meta(3).carry == ((None, fee - now_share),)
    mine(chain, [], ANN)
    carried = chain.balance(address_of(ANN)) - before[ANN] - reward - now_share - first_carry
    assert carried == 10 * chain.meta(4).reward + fee - now_share
    assert chain.meta(4).carry == ()
    chain.store.close()


def test_before_ng_a_block_pays_its_own_generator(tmp_path: Path) -> None:
    chain = open_chain(tmp_path, NETWORKS["nxt"])
    before = chain.balance(address_of(RICH))
    mine(chain, [payment(chain, RICH, ANN, COIN)])
    assert chain.balance(address_of(RICH)) == before - COIN
    assert chain.meta(2).carry == ()
    chain.store.close()


def test_reward_votes(tmp_path: Path) -> None:
    """On devnet three votes decide; they can bring the reward to nothing, and it stays there."""
    rewards = msgspec.structs.replace(DEVNET.rewards, initial=COIN, min_increment=COIN)
    chain = open_chain(tmp_path, msgspec.structs.replace(DEVNET, rewards=rewards))
    seen = []
    for _ in range(14):
        slot_block = forge_with_vote(chain, 0)
        chain.append(slot_block)
        chain.store.flush()
        seen.append(chain.meta(chain.height).reward // COIN)
        assert all_waves(chain) == chain.meta(chain.height).total_waves
    assert seen[0] == 1
    assert seen[-1] == 0
    assert seen == sorted(seen, reverse=True)
    chain.store.close()


def forge_with_vote(chain: ChainWriter, vote: int) -> Block:
    slot = miner.next_slot(chain, RICH)
    return forging.forge(chain, slot, (), now(chain), reward_vote=vote).block


def test_boost_ends(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(DEVNET.functionality, block_reward_boost_period=4)
    chain = open_chain(tmp_path, msgspec.structs.replace(DEVNET, functionality=settings))
    minted = []
    for _ in range(4):
        mine(chain)
        top = chain.height
        minted.append(chain.meta(top).total_waves - chain.meta(top - 1).total_waves)
    assert minted == [60 * COIN, 60 * COIN, 6 * COIN, 6 * COIN]
    chain.store.close()


# --- wrong blocks ---------------------------------------------------------------------------------

HASH = b"h" * 32
CHALLENGE = ChallengedHeader(1, bytes(96), (), 0, RICH.public_key, -1, HASH, bytes(64))

# Field, its value, why the block is refused. Every block is signed anew by its generator.
TAMPERED: dict[str, tuple[dict[str, Any], str | None]] = {
    "version 4": ({"version": 4}, "block version 4, 5 expected"),
    "version 6": ({"version": 6}, "block version 6, 5 expected"),
    "reference": ({"reference": HASH}, "its reference is not the last block"),
    "later": ({"timestamp": 10**15}, "timestamp 1000000000000000 is from the future"),
    "earlier": ({"timestamp": 1}, "timestamp 1 is before the earliest one"),
    "base target": ({"base_target": 77}, "base target 77 is not the expected"),
    "no proof": ({"generation_signature": bytes(32)}, "generation signature of 32 bytes, 96 exp"),
    "short proof": (
        {"generation_signature": bytes(95)},
        "generation signature of 95 bytes, 96 exp",
    ),
    "proof": ({"generation_signature": bytes(96)}, "the generation signature is no valid VRF"),
    "generator": ({"generator": ANN.public_key}, "the generation signature is no valid VRF"),
    "many votes": ({"feature_votes": tuple(range(65))}, None),
    "votes twice": ({"feature_votes": (5, 5)}, None),
    "votes unsorted": ({"feature_votes": (6, 5)}, None),
    "root": ({"transactions_root": HASH}, "transactions root is not"),
    "state hash": ({"state_hash": HASH}, "is not the computed"),
    "no state hash": ({"state_hash": None}, "the header must hold a state hash"),
    "challenges itself": ({"challenged": CHALLENGE}, "a generator cannot challenge itself"),
    "another vote": ({"reward_vote": 5}, None),
    "a feature": ({"feature_votes": (5, 6)}, None),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_tampered_headers(name: str, chain: ChainWriter) -> None:
    change, words = TAMPERED[name]
    mine(chain)
    good = forge(chain, [transfer(chain, RICH, ANN, COIN)])
    header = msgspec.structs.replace(good.header, **change)
    if header.version < 5:
        bad = msgspec.structs.replace(good, header=header)
    else:
        bad = blocks.sign(header, good.transactions, RICH.private_key)
    before = chain.meta(2)
    if words is None:
        chain.append(bad, now=now(chain))
        return
    check_refused(chain, bad, words)
    assert (chain.height, chain.meta(2)) == (2, before)
    # Nothing of it stays: the good one still fits.
    chain.append(good, now=now(chain))


def check_refused(chain: ChainWriter, block: Block, words: str, *, history: bool = False) -> None:
    height = chain.height
    with pytest.raises(BlockRejected) as caught:
        chain.append(block, now=None if history else now(chain))
    assert words in caught.value.reason
    assert caught.value.height == height + 1
    assert chain.height == height


def test_signature_of_somebody_else(chain: ChainWriter) -> None:
    good = forge(chain)
    bad = blocks.sign(good.header, (), ANN.private_key)
    check_refused(chain, bad, "invalid signature of the generator")


def test_bytes_after_the_proof_of_a_generation_signature(chain: ChainWriter) -> None:
    """The reference node's native library reads 96 bytes, and its messages are not measured
    (wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/protobuf/block/PBBlocks.scala``).
    """
    good = forge(chain)
    header = good.header
    longer = msgspec.structs.replace(
        header, generation_signature=header.generation_signature + b"more"
    )
    block = blocks.sign(longer, (), RICH.private_key)
    chain.append(blocks.decode(block.data, chain.network.chain_id), now=now(chain))
    assert chain.meta(2).id == block.id


@pytest.mark.parametrize("ahead", [98, 99, 100])
def test_a_little_in_the_future(chain: ChainWriter, ahead: int) -> None:
    """Source: wavesplatform/Waves
    ``node/src/main/scala/com/wavesplatform/state/appender/package.scala`` (``MaxTimeDrift``).
    """
    time = now(chain)
    block = forge(chain, at=time + ahead)
    if ahead < 100:
        chain.append(block, now=time)
    else:
        with pytest.raises(BlockRejected, match="is from the future"):
            chain.append(block, now=time)


def with_transactions(chain: ChainWriter, block: Block, *content: Any) -> Block:
    header = msgspec.structs.replace(
        block.header, transactions_root=blocks.transactions_root(content)
    )
    return blocks.sign(header, content, RICH.private_key)


def test_blocks_with_wrong_transactions(chain: ChainWriter) -> None:
    good = transfer(chain, RICH, ANN, COIN)
    unsigned = codec.with_proofs(good, (bytes(64),))
    block = forge(chain, [good])
    for content, words in (
        ((good, good), "is already in the state on a height of 2"),
        ((unsigned,), "Proof doesn't validate"),
        ((transfer(chain, ANN, BOB, COIN),), "unavailable funds"),
        ((transfer(chain, RICH, ANN, 0),), "non-positive amount"),
        ((), "is not the computed"),
    ):
        check_refused(chain, with_transactions(chain, block, *content), words)
    chain.append(block)


@pytest.mark.parametrize("name", ["nxt", "fair 1"])
def test_tampered_headers_of_old_blocks(name: str, tmp_path: Path) -> None:
    chain = open_chain(tmp_path, NETWORKS[name])
    for _ in range(3):
        mine(chain)
    good = forge(chain, [payment(chain, RICH, ANN, COIN)])
    for change, words in (
        ({"version": 3}, "block version 3, 2 expected"),
        ({"timestamp": chain.last_block.header.timestamp}, "base target"),
        ({"base_target": 1}, "base target 1 is not the expected"),
        ({"generation_signature": bytes(32)}, "generation signature"),
        ({"generator": ANN.public_key}, "generation signature"),
        ({"reference": bytes(64)}, "its reference is not the last block"),
    ):
        header = msgspec.structs.replace(good.header, **change)
        bad = blocks.sign(header, good.transactions, RICH.private_key)
        if change.keys() == {"timestamp"}:
            # The same time as the parent's is too early, whatever its base target would be.
            with pytest.raises(BlockRejected):
                chain.append(bad)
            continue
        check_refused(chain, bad, words, history=True)
    chain.append(good)
    chain.store.close()


def test_votes_before_ng(tmp_path: Path) -> None:
    chain = open_chain(tmp_path, NETWORKS["nxt"])
    good = forge(chain)
    header = msgspec.structs.replace(good.header, feature_votes=(1,))
    bad = msgspec.structs.replace(good, header=header)
    check_refused(chain, bad, "block version 2 cannot vote for features")
    chain.store.close()


# --- balances -------------------------------------------------------------------------------------


def test_generating_balance_is_the_least_of_a_thousand_blocks(chain: ChainWriter) -> None:
    mine(chain, [transfer(chain, RICH, ANN, 3_000 * COIN)])
    assert chain.generating_balance(address_of(ANN)) == 0
    with pytest.raises(CannotMine, match="generating balance 0 is below 100000000000"):
        next_slot(chain, ANN)
    assert chain.generating_balance(address_of(RICH), 1) == 10**16
    spent = 10**16 - chain.generating_balance(address_of(RICH))
    assert 0 < spent < 3_001 * COIN


def test_a_poor_generator_is_refused(chain: ChainWriter) -> None:
    good = forge(chain)
    header = msgspec.structs.replace(good.header, generator=ANN.public_key)
    proof = vrf.prove(ANN.private_key, headers.hit_source(chain))
    header = msgspec.structs.replace(header, generation_signature=proof)
    bad = blocks.sign(header, (), ANN.private_key)
    check_refused(chain, bad, "generating balance 0 is below 100000000000")


def test_nothing_is_lost_or_made(tmp_path: Path) -> None:
    """Random transfers between ten people, mined by different ones of them."""
    dice = random.Random(20260801)
    people = [person(str(number)) for number in range(10)]
    chain = open_chain(tmp_path, shared_network(*people))
    for _ in range(12):
        batch = []
        funds: dict[KeyPair, int] = {}
        for _ in range(dice.randrange(8)):
            sender, to = dice.sample(people, 2)
            funds.setdefault(sender, chain.balance(address_of(sender)))
            amount = dice.randrange(1, 100 * COIN)
            fee = dice.randrange(FEE, 5 * FEE)
            if funds[sender] > amount + fee:
                funds[sender] -= amount + fee
                batch.append(
                    transfer(chain, sender, to, amount, fee=fee, version=dice.choice((1, 2, 3)))
                )
        mine(chain, batch, dice.choice(people))
        assert all_waves(chain) == chain.meta(chain.height).total_waves
        chain.rollback(chain.height - 1)
        assert all_waves(chain) == chain.meta(chain.height).total_waves
        mine(chain, batch, dice.choice(people))
        assert all_waves(chain) == chain.meta(chain.height).total_waves
    chain.store.close()


# --- looking up -----------------------------------------------------------------------------------


def test_transactions_are_found_again(chain: ChainWriter) -> None:
    batch = [
        transfer(chain, RICH, ANN, COIN, version=1),
        transfer(chain, RICH, ANN, COIN, version=2),
        transfer(chain, RICH, BOB, COIN, version=3),
        data(chain, RICH, key="value", number=5),
    ]
    mine(chain, batch)
    for transaction in batch:
        found = chain.transaction(transaction.id)
        assert found is not None
        assert (found.transaction, found.height, found.status) == (transaction, 2, 0)
    chain.rollback(1)
    assert all(chain.transaction(transaction.id) is None for transaction in batch)
    assert chain.transaction(bytes(32)) is None


def test_heights_that_are_not_there(chain: ChainWriter) -> None:
    for height in (0, -1, 2):
        with pytest.raises(KeyError):
            chain.block_at(height)
        with pytest.raises(KeyError):
            chain.meta(height)
        with pytest.raises(KeyError):
            chain.state_hash(height)


def test_discard_pending(chain: ChainWriter) -> None:
    mine(chain)
    chain.append(forge(chain))
    chain.append(forge(chain))
    assert chain.height == 4
    chain.discard_pending()
    assert (chain.height, chain.last_block) == (2, chain.block_at(2))
    mine(chain)
    assert chain.height == 3


def test_rollback_below_the_first_block(chain: ChainWriter) -> None:
    mine(chain)
    with pytest.raises(RollbackTooDeep):
        chain.rollback(0)
    assert chain.height == 2
    chain.rollback(1)
    assert chain.height == 1


def test_directory_of_another_network(tmp_path: Path) -> None:
    open_chain(tmp_path).store.close()
    with pytest.raises(WrongStore):
        open_chain(tmp_path, NETWORKS["nxt"])


def test_same_first_block_everywhere(tmp_path: Path) -> None:
    chains = [open_chain(tmp_path / name) for name in ("one", "other")]
    assert chains[0].last_block == chains[1].last_block
    for chain in chains:
        chain.store.close()


def test_unused_tables_stay_empty(chain: ChainWriter) -> None:
    assert chain.store.get(WAVES, Address(bytes(26))) == 0
    assert isinstance(chain.store, Store)
    assert isinstance(chain.network, Network)
