"""Microblocks of transactions that wait in the pool: their signatures are not verified again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton.chain import blocks, microblocks
from soliton.chain.blocks import Block
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import curve25519
from soliton.crypto.keys import KeyPair
from soliton.p2p.jobs import own_microblock
from soliton.p2p.receiving import Receiver, Verdict
from soliton.wire.messages import ProtobufMicroblock
from tests.node import forging
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
def pair(tmp_path: Path) -> Iterator[Pair]:
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
    _, outcome = pair.receiver.microblock(data)
    assert outcome.verdict is APPLIED
    assert pair.taker.tip() == pair.maker.tip()
    assert verified == [each.proofs[0] for each in sent[known:]]


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
    _, outcome = pair.receiver.microblock(data)
    assert outcome.verdict is Verdict.INVALID
    assert "Proof doesn't validate" in outcome.reason or "signature" in outcome.reason
    assert pair.taker.tip() == before
