"""The last block while microblocks come: it grows, shrinks, and equals the block made at once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton.chain import blocks, networks
from soliton.chain.addresses import from_public_key
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.transfer import TYPE, Transfer
from soliton.crypto.keys import key_pair
from soliton.ledger.errors import BlockRejected
from soliton.ledger.state import WAVES
from soliton.node import miner
from soliton.node.chain_writer import ChainWriter
from soliton.node.events import BlockAppended, BlockExtended, RolledBack
from soliton.storage import indexes
from soliton.storage.store import Store, _Step
from tests.node import forging

RICH = key_pair("waves private node seed with waves tokens")
FRIEND = from_public_key(key_pair("soliton devnet account 1").public_key, ord("R"))


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[ChainWriter]:
    yield from _chain(tmp_path / "one")


def _chain(directory: Path) -> Iterator[ChainWriter]:
    network = networks.load("devnet")
    store = Store(directory, network.name, durable=False)
    yield ChainWriter(network, store)
    store.close()


def _transfer(chain: ChainWriter, amount: int) -> AnyTransaction:
    unsigned = codec.build(
        TYPE,
        Transfer(FRIEND, None, amount, b""),
        version=3,
        chain_id=chain.network.chain_id,
        sender_public_key=RICH.public_key,
        fee=100_000,
        timestamp=chain.last_block.header.timestamp,
    )
    return codec.sign(unsigned, RICH.private_key)


def _key_block(chain: ChainWriter) -> None:
    now = chain.last_block.header.timestamp + 1_000
    forged = forging.forge(chain, miner.next_slot(chain, RICH), (), now)
    chain.append(forged.block)
    chain.store.flush()


def _micro(chain: ChainWriter, *transactions: AnyTransaction) -> bytes:
    forged = forging.forge_micro(chain, RICH, transactions, 255)
    assert forged is not None
    assert forged.invalid == {}
    added = forged.block.transactions[len(chain.last_block.transactions) :]
    chain.extend(added, forged.block.header.state_hash, forged.block.signature)
    assert chain.last_block == forged.block
    return chain.last_block.id


def _state(chain: ChainWriter) -> tuple[bytes, bytes, int, int]:
    meta = chain.meta(chain.height)
    return meta.state_hash, meta.snapshot_hash, chain.store.get(WAVES, FRIEND), meta.total_fee


def test_a_block_grown_by_microblocks_equals_the_same_block_at_once(
    chain: ChainWriter, tmp_path: Path
) -> None:
    _key_block(chain)
    _key_block(chain)
    for first in (1, 11, 21):
        _micro(chain, *(_transfer(chain, amount) for amount in range(first, first + 10)))
    total = chain.last_block
    assert len(total.transactions) == 30
    assert blocks.signature_is_valid(total)

    other = next(_chain(tmp_path / "two"))
    other.append(chain.block_at(2))
    other.append(total)
    other.store.flush()
    assert _state(other) == _state(chain)
    assert other.meta(3) == chain.meta(3)
    for transaction in total.transactions:
        found = chain.transaction(transaction.id)
        assert found is not None
        assert (found.transaction, found.height) == (transaction, 3)
    *listed, from_genesis = (
        entry[2] for entry in indexes.address_transactions(chain.store, FRIEND)
    )
    assert listed == [transaction.id for transaction in reversed(total.transactions)]
    assert len(from_genesis) == 64


def test_shortening_takes_the_microblocks_back(chain: ChainWriter) -> None:
    _key_block(chain)
    before = _state(chain)
    key_id = chain.last_block.id
    first = _micro(chain, _transfer(chain, 1))
    after_first = _state(chain)
    dropped = _transfer(chain, 2)
    _micro(chain, dropped)

    assert chain.shorten(first) == (dropped,)
    assert _state(chain) == after_first
    assert chain.transaction(dropped.id) is None
    chain.shorten(key_id)
    assert _state(chain) == before
    with pytest.raises(KeyError):
        chain.shorten(first)


def test_names_of_earlier_forms_end_with_the_block(chain: ChainWriter) -> None:
    _key_block(chain)
    key_id = chain.last_block.id
    first = _micro(chain, _transfer(chain, 1))
    second = _micro(chain, _transfer(chain, 2))
    assert {chain.height_of(name) for name in (key_id, first, second)} == {2}
    chain.shorten(first)
    assert [chain.height_of(name) for name in (key_id, first, second)] == [2, 2, None]
    _key_block(chain)
    assert [chain.height_of(name) for name in (key_id, first)] == [None, 2]
    chain.rollback(1)
    assert chain.height_of(first) is None


def _told(chain: ChainWriter) -> list[tuple[type, int, int]]:
    """What the chain tells from now on: what, the height, and how many transactions are there."""
    told: list[tuple[type, int, int]] = []
    chain.on_change = lambda event: told.append(
        (type(event), event.height, len(event.block.transactions))
    )
    return told


def test_a_key_block_may_stand_on_an_earlier_microblock(chain: ChainWriter) -> None:
    _key_block(chain)
    _micro(chain, _transfer(chain, 1))
    next_block = forging.forge(
        chain, miner.next_slot(chain, RICH), (), chain.last_block.header.timestamp + 1_000
    ).block
    _micro(chain, _transfer(chain, 2))
    told = _told(chain)
    chain.append(next_block)
    chain.store.flush()
    assert told == [(RolledBack, 2, 1), (BlockAppended, 3, 0)]
    assert chain.height == 3
    assert len(chain.block_at(2).transactions) == 1


def test_a_refused_key_block_leaves_the_microblocks_in_place(chain: ChainWriter) -> None:
    _key_block(chain)
    _micro(chain, _transfer(chain, 1))
    good = forging.forge(
        chain, miner.next_slot(chain, RICH), (), chain.last_block.header.timestamp + 1_000
    ).block
    _micro(chain, _transfer(chain, 2))
    _micro(chain, _transfer(chain, 3))
    state, top = _state(chain), chain.last_block
    bad = blocks.assemble(good.header, good.transactions, bytes(64))
    told = _told(chain)
    with pytest.raises(BlockRejected, match="invalid signature"):
        chain.append(bad)
    assert (chain.last_block, _state(chain)) == (top, state)
    # Whoever listens has seen them go and come again.
    assert told == [(RolledBack, 2, 1), (BlockExtended, 2, 2), (BlockExtended, 2, 3)]
    chain.shorten(good.header.reference)
    assert len(chain.last_block.transactions) == 1


def test_rolling_back_removes_the_liquid_block_whole(chain: ChainWriter) -> None:
    _key_block(chain)
    before = _state(chain)
    _key_block(chain)
    _micro(chain, _transfer(chain, 1))
    chain.rollback(2)
    assert _state(chain) == before


def test_what_does_not_hold_is_refused_and_changes_nothing(chain: ChainWriter) -> None:
    _key_block(chain)
    transaction = _transfer(chain, 1)
    forged = forging.forge_micro(chain, RICH, [transaction], 255)
    assert forged is not None
    state = _state(chain)
    state_hash, signature = forged.block.header.state_hash, forged.block.signature

    with pytest.raises(BlockRejected, match="invalid signature of the total block"):
        chain.extend((transaction,), state_hash, bytes(64))
    wrong = bytes(32)
    unsigned = blocks.extended(chain.last_block, (transaction,), wrong, bytes(64))
    signed = blocks.sign(unsigned.header, unsigned.transactions, RICH.private_key)
    with pytest.raises(BlockRejected, match="state hash"):
        chain.extend((transaction,), wrong, signed.signature)
    assert _state(chain) == state
    chain.extend((transaction,), state_hash, signature)
    assert _state(chain) != state


def test_after_a_restart_the_last_block_is_closed(tmp_path: Path) -> None:
    network = networks.load("devnet")
    store = Store(tmp_path, network.name, durable=False)
    chain = ChainWriter(network, store)
    _key_block(chain)
    _micro(chain, _transfer(chain, 1))
    store.close()
    chain = ChainWriter(network, Store(tmp_path, network.name, durable=False))
    assert forging.forge_micro(chain, RICH, [_transfer(chain, 2)], 255) is None
    _key_block(chain)
    assert chain.height == 3
    chain.store.close()


def test_forms_are_kept_as_differences(chain: ChainWriter) -> None:
    """What is kept of a microblock does not grow with the block."""
    _key_block(chain)
    forms = [chain.last_block]
    for amount in range(1, 121):
        _micro(chain, _transfer(chain, amount))
        forms.append(chain.last_block)
    assert chain.liquid_ids() == tuple(each.id for each in forms)
    kept = [_kept_bytes(each) for each in chain.store._steps]
    assert max(kept[100:]) < 1.2 * max(kept[:20])
    for number in (0, 1, 60, 120):
        assert chain.liquid_form(forms[number].id) == forms[number]


def _kept_bytes(step: _Step) -> int:
    values = (each for pair in step.values.items() for each in pair if each is not None)
    return sum(map(len, (*values, step.block.head, step.block.tail)))


@pytest.mark.parametrize("seed", range(5))
def test_a_block_that_grows_and_shrinks_equals_the_same_block_at_once(
    chain: ChainWriter, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    _key_block(chain)
    _key_block(chain)
    for amount in range(1, 40):
        _micro(
            chain, *(_transfer(chain, amount * 10 + each) for each in range(chance.randrange(1, 4)))
        )
        if chance.random() < 0.4:
            chain.shorten(chance.choice(chain.liquid_ids()[-4:]))
    other = next(_chain(tmp_path / "two"))
    other.append(chain.block_at(2))
    other.append(chain.last_block)
    other.store.flush()
    assert _state(other) == _state(chain)
    assert other.meta(3) == chain.meta(3)
    assert other.store.block_data(3) == chain.store.block_data(3)
    progress, expected = chain.liquid_progress(), other.liquid_progress()
    assert progress is not None and expected is not None
    assert progress.overlay.changes == expected.overlay.changes
    assert progress._originals == expected._originals
    for each in (chain, other):
        each.rollback(2)
    assert _state(other) == _state(chain)
    other.store.close()
