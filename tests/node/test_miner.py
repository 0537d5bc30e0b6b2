"""Making blocks: whose turn it is, what goes in, what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from soliton.chain import blocks
from soliton.ledger import rules_at
from soliton.node import miner
from soliton.node.chain_writer import ChainWriter
from soliton.node.miner import CannotMine
from tests.node import forging
from tests.node.chains import (
    DEVNET,
    FEE,
    RICH,
    forge,
    mine,
    now,
    old_network,
    open_chain,
    payment,
    person,
    transfer,
)

COIN = 10**8
ANN, BOB = person("ann"), person("bob")


def test_devnet_never_waits(chain: ChainWriter) -> None:
    for _ in range(20):
        assert miner.next_slot(chain, RICH).earliest == chain.last_block.header.timestamp
        mine(chain)


def test_the_wait_of_other_chains_is_kept(tmp_path: Path) -> None:
    chain = open_chain(tmp_path, old_network([1, 2, 8, 14, 15], min_block_time_ms=15_000))
    mine(chain)
    slot = miner.next_slot(chain, RICH)
    assert slot.earliest >= chain.last_block.header.timestamp + 15_000
    early = forging.forge(chain, slot, (), 0).block
    assert early.header.timestamp == slot.earliest
    late = forging.forge(chain, slot, (), slot.earliest + 5).block
    assert late.header.timestamp == slot.earliest + 5
    chain.append(late)
    chain.store.close()


def test_nobody_without_balance(chain: ChainWriter) -> None:
    with pytest.raises(CannotMine):
        miner.next_slot(chain, ANN)


def test_candidates_that_do_not_apply_are_named(chain: ChainWriter) -> None:
    good = transfer(chain, RICH, ANN, COIN)
    poor = transfer(chain, BOB, ANN, COIN)
    late = transfer(chain, ANN, BOB, COIN - FEE)
    forged = forging.forge(
        chain, miner.next_slot(chain, RICH), [good, poor, good, late], now(chain)
    )
    assert forged.block.transactions == (good, late)
    assert set(forged.invalid) == {poor.id, good.id}
    chain.append(forged.block)


def test_a_block_is_valid_in_every_part(chain: ChainWriter) -> None:
    candidates = [transfer(chain, RICH, ANN, COIN, version=version) for version in (1, 2, 3)]
    candidates.insert(1, transfer(chain, BOB, ANN, COIN))
    block = forge(chain, candidates)
    assert len(block.transactions) == 3, "Bob has nothing to send"
    assert block.header.version == blocks.PROTOBUF_VERSION
    assert block.header.reference == chain.last_block.id
    assert block.header.transactions_root == blocks.transactions_root(block.transactions)
    assert blocks.signature_is_valid(block)
    assert blocks.decode(block.data, DEVNET.chain_id) == block
    chain.append(block, now=now(chain))


def test_votes_go_where_a_version_has_them(tmp_path: Path) -> None:
    cases: list[tuple[tuple[int, ...], int]] = [((), 2), ((14,), 4), ((8, 14, 15), 5)]
    for number, (features, version) in enumerate(cases):
        chain = open_chain(tmp_path / str(number), old_network(features))
        slot = miner.next_slot(chain, RICH)
        block = forging.forge(chain, slot, (), now(chain), 7, (3, 4)).block
        assert block.header.version == version
        assert block.header.reward_vote == (7 if version > 3 else -1)
        assert block.header.feature_votes == ((3, 4) if version > 2 else ())
        chain.append(block)
        chain.store.close()


def test_full_by_count(tmp_path: Path) -> None:
    """Before NG a block has a hundred transactions; the rest waits and is not invalid."""
    chain = open_chain(tmp_path, old_network())
    candidates = [payment(chain, RICH, ANN, number) for number in range(1, 103)]
    forged = forging.forge(chain, miner.next_slot(chain, RICH), candidates, now(chain))
    assert len(forged.block.transactions) == rules_at.MAX_TRANSACTIONS_BEFORE_NG
    assert forged.invalid == {}
    chain.append(forged.block)
    chain.store.close()


def test_full_by_bytes(chain: ChainWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules_at, "MAX_TRANSACTION_BYTES_IN_BLOCK", 1_000)
    chain.rules = rules_at.RuleBook(DEVNET)
    candidates = [transfer(chain, RICH, ANN, number) for number in range(1, 20)]
    forged = forging.forge(chain, miner.next_slot(chain, RICH), candidates, now(chain))
    assert 0 < len(forged.block.transactions) < 10
    assert forged.invalid == {}
    chain.append(forged.block)
    # One more than fits is refused by everybody else as well.
    assert chain.height == 2
