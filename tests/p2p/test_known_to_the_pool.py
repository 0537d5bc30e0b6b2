"""What peers send, and what waits in the pool: nothing is checked twice.

Signatures of a microblock's transactions that wait are not verified again, and what waits is not
checked again by reason of a block that has nothing to do with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from soliton.chain import blocks, microblocks
from soliton.chain.addresses import from_public_key
from soliton.chain.blocks import Block
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import curve25519
from soliton.crypto.keys import KeyPair
from soliton.ledger.state import WAVES
from soliton.ledger.transactions import apply_transaction
from soliton.node import node as node_module
from soliton.node import pool
from soliton.p2p.jobs import own_microblock
from soliton.p2p.receiving import Receiver, Verdict
from soliton.wire.messages import ProtobufMicroblock
from tests.node import forging
from tests.node.chains import FEE
from tests.p2p.world import Peer, done, make, network

COUNT = 5


def bytes_of(total: Block, reference: bytes, added: int, owner: KeyPair) -> bytes:
    message = own_microblock(total, reference, added, owner.private_key)
    assert isinstance(message, ProtobufMicroblock)
    return message.data


class Pair:
    """One makes microblocks, the other one gets them."""

    def __init__(self, maker: Peer, taker: Peer) -> None:
        self.maker, self.taker = maker, taker
        self.receiver: Receiver = taker.service.jobs.receiver
        maker.node.mine(maker.owner, empty=True)
        assert done(self.receiver.block(maker.node.chain.last_block.data)).verdict is APPLIED

    def grow(self, *transactions: AnyTransaction) -> bytes:
        """What brings these transactions to the taker."""
        node, owner = self.maker.node, self.maker.owner
        reference = node.chain.last_block.id
        for each in transactions:
            node.broadcast(each)
        added = forging.mine_micro(node, owner)
        assert added == len(transactions)
        return bytes_of(node.chain.last_block, reference, added, owner)

    def transfers(self) -> list[AnyTransaction]:
        return [self.maker.transfer(amount) for amount in range(1, COUNT + 1)]


APPLIED = Verdict.APPLIED


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    # The pool follows at once, however slow the machine is: there is no event loop here.
    monkeypatch.setattr(node_module, "SETTLING_SECONDS", math.inf)
    chain = network()
    found = make(tmp_path / "maker", 0, chain), make(tmp_path / "taker", 1, chain)
    yield Pair(*found)
    for each in found:
        each.service.jobs.stop()
        each.node.close()


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The signatures that are verified by the rules of transactions."""
    found: list[bytes] = []
    check = curve25519.verify

    def verify(key: bytes, message: bytes, signature: bytes) -> bool:
        found.append(signature)
        return check(key, message, signature)

    monkeypatch.setattr(curve25519, "verify", verify)
    return found


@pytest.mark.parametrize("known", [0, 3, COUNT])
def test_what_the_pool_has_is_not_verified_again(
    pair: Pair, verified: list[bytes], known: int
) -> None:
    sent = pair.transfers()
    data = pair.grow(*sent)
    for each in sent[:known]:
        pair.taker.node.broadcast(each)
    verified.clear()
    _, outcome = done(pair.receiver.microblock(data))
    assert outcome.verdict is APPLIED
    assert pair.taker.tip() == pair.maker.tip()
    assert verified == [each.proofs[0] for each in sent[known:]]


def test_a_microblock_is_applied_in_steps(pair: Pair) -> None:
    """Between them other work is done; a key block that comes meanwhile takes its place."""
    taker = pair.taker
    data = pair.grow(*(pair.maker.transfer(amount) for amount in range(1, 201)))
    steps = pair.receiver.microblock(data)
    assert sum(1 for _ in zip(range(20), steps, strict=False)) == 20
    assert not taker.node.chain.last_block.transactions
    taker.node.mine(taker.owner, empty=True)
    micro, outcome = done(steps)
    assert (micro is not None, outcome.verdict) == (True, Verdict.MOVED)
    assert taker.node.chain.height == 3


def test_another_signature_than_that_in_the_pool_is_verified(pair: Pair) -> None:
    good, *others = pair.transfers()
    reference = pair.maker.node.chain.last_block
    pair.grow(good, *others)
    for each in (good, *others):
        pair.taker.node.broadcast(each)
    wrong = codec.with_proofs(good, (bytes(64),))
    assert wrong.id == good.id
    last, owner = pair.maker.node.chain.last_block, pair.maker.owner
    inside = (wrong, *others)
    total = blocks.extended(reference, inside, last.header.state_hash, b"")
    total = blocks.sign(total.header, inside, owner.private_key)
    data = bytes_of(total, reference.id, len(inside), owner)
    micro = microblocks.decode(data, pair.taker.node.network.chain_id)
    assert microblocks.signature_is_valid(micro)
    before = pair.taker.tip()
    _, outcome = done(pair.receiver.microblock(data))
    assert outcome.verdict is Verdict.INVALID
    assert "Proof doesn't validate" in outcome.reason or "signature" in outcome.reason
    assert pair.taker.tip() == before


@pytest.fixture
def applied(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The ids of those that the pools apply."""
    found: list[bytes] = []

    def noted(transaction: AnyTransaction, *others: Any, **more: Any) -> Any:
        found.append(transaction.id)
        return apply_transaction(transaction, *others, **more)

    monkeypatch.setattr(pool, "apply_transaction", noted)
    return found


def test_what_a_block_does_not_touch_is_not_checked_again(pair: Pair, applied: list[bytes]) -> None:
    waiting = [pair.taker.transfer(amount) for amount in range(1, COUNT + 1)]
    for each in waiting:
        pair.taker.node.broadcast(each)
    sent = pair.transfers()
    micro = pair.grow(*sent)
    applied.clear()
    assert done(pair.receiver.microblock(micro))[1].verdict is APPLIED
    pair.maker.node.mine(pair.maker.owner, empty=True)
    key_block = pair.maker.node.chain.last_block
    assert done(pair.receiver.block(key_block.data)).verdict is APPLIED
    assert pair.taker.tip() == pair.maker.tip()
    assert pair.taker.node.pool.is_settled
    assert not applied
    assert pair.taker.node.pool.transactions() == waiting


def test_what_a_block_takes_the_coins_of_falls_out(pair: Pair) -> None:
    """The same with one who has spent elsewhere what it was about to spend."""
    maker, taker = pair.maker, pair.taker
    chain_id = taker.node.network.chain_id
    owner = from_public_key(taker.owner.public_key, chain_id)
    left = taker.node.chain.state.get(WAVES, owner)
    waiting, rival = taker.transfer(left - 2 * FEE), taker.transfer(left - 2 * FEE - 1)
    taker.node.broadcast(waiting)
    micro = pair.grow(rival)
    assert done(pair.receiver.microblock(micro))[1].verdict is APPLIED
    assert taker.node.pool.is_settled
    assert taker.node.pool.transactions() == []
    assert maker.tip() == taker.tip()
