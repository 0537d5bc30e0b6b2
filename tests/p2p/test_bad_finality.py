"""Blocks and endorsements of strangers that break the rules of finality: verdicts, blame, and work.

What a voting may contain is tested with the ledger (``tests/node/test_finality.py``); here it comes
from a peer, as the message of a block, a chain, or a microblock.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from soliton.chain import blocks, microblocks
from soliton.chain.blocks import Block
from soliton.chain.finalization import (
    BlockEndorsement,
    FinalizationVoting,
    encode_endorsement,
    sign_endorsement,
)
from soliton.crypto import bls, curve25519
from soliton.node.miner import microblock_of
from soliton.p2p.history import block_message
from soliton.p2p.receiving import Outcome, Verdict
from soliton.sync.endorsements import MAX_WAITING_OF_PEER, MAX_WASTED_OF_PEER
from soliton.wire.messages import EndorseBlock
from tests.node.chains import forge, now, transfer
from tests.node.committing import (
    ACTIVATION,
    ANN,
    BOB,
    CARL,
    OWNERS,
    PERIOD,
    commit,
    finality_network,
    grow,
    with_voting,
)
from tests.node.test_finality import REFUSALS, Change
from tests.p2p import test_endorsements as generators
from tests.p2p.world import OWNERS as GENERATORS
from tests.p2p.world import Peer, done, make, peers, until

FIRST = ACTIVATION + PERIOD + 1
WRONG = [(change, words) for _, change, words in REFUSALS if words]


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Peer]:
    """A node whose last block is the first of a period to which three have committed."""
    peer = make(tmp_path, 0, finality_network())
    chain = peer.node.chain
    grow(chain, ACTIVATION)
    grow(chain, ACTIVATION + 1, first=[commit(chain, each) for each in OWNERS])
    grow(chain, FIRST)
    yield peer
    peer.service.jobs.stop()
    peer.node.close()


def is_refused(outcome: Outcome, words: str) -> None:
    """What blames the sender, with the reference's words; a signature has ours, which of a whole
    block are verified together.
    """
    assert outcome.verdict is Verdict.INVALID
    assert words.removesuffix(": ").removesuffix(" of an endorsement") in outcome.reason


@pytest.mark.parametrize(("change", "words"), WRONG, ids=lambda _: "")
def test_key_blocks_and_chains_of_peers(victim: Peer, change: Change, words: str) -> None:
    chain, receiver = victim.node.chain, victim.service.jobs.receiver
    before = victim.tip()
    bad = with_voting(forge(chain, (), ANN), change(chain))
    is_refused(done(receiver.block(bad.data)), words)
    assert victim.tip() == before
    branch = chain.branch(chain.height)
    good = forge(branch, (), ANN, at=now(chain) + 1)
    branch.append(good)
    longer = with_voting(forge(branch, (), ANN), change(branch))
    outcome = done(receiver.extension([good.data, longer.data], 100))
    is_refused(outcome, words)
    # The good one is kept.
    assert outcome.height == chain.height + 1
    assert chain.last_block.id == good.id
    assert victim.node.chain.finalized_height == 1


@pytest.mark.parametrize(("change", "words"), WRONG, ids=lambda _: "")
def test_microblocks_of_peers(victim: Peer, change: Change, words: str) -> None:
    chain = victim.node.chain
    voting = change(chain)
    grow(chain, chain.height + 1)
    before = victim.tip()
    _, outcome = done(victim.service.jobs.receiver.microblock(microblock(victim, voting)))
    is_refused(outcome, words)
    assert victim.tip() == before
    _, outcome = done(victim.service.jobs.receiver.microblock(microblock(victim, None)))
    assert outcome.verdict is Verdict.APPLIED


def microblock(peer: Peer, voting: FinalizationVoting | None) -> bytes:
    """A microblock of the last block's generator, with one transfer and a voting."""
    chain = peer.node.chain
    last = chain.last_block
    content = (transfer(chain, BOB, CARL, 1),)
    progress = chain.liquid_progress()
    assert progress is not None
    progress.add(content[0])
    draft = blocks.extended(last, content, progress.snapshot_hash, bytes(64), voting=voting)
    signature = curve25519.sign(ANN.private_key, draft.signed)
    total = blocks.extended(last, content, progress.snapshot_hash, signature, voting=voting)
    micro = microblock_of(total, last.id, 1, b"", voting)
    return microblocks.encode(microblocks.sign(micro, ANN.private_key))


def test_a_voting_before_the_activation(tmp_path: Path) -> None:
    peer = make(tmp_path, 0, finality_network())
    try:
        block = forge(peer.node.chain, (), ANN)
        bad = with_voting(block, FinalizationVoting((0,), 1, bytes(96)))
        outcome = done(peer.service.jobs.receiver.block(bad.data))
        is_refused(
            outcome,
            "Finalization voting is not allowed before Deterministic Finality feature activation",
        )
    finally:
        peer.service.jobs.stop()
        peer.node.close()


def test_a_key_block_with_a_false_voting_is_refused_and_its_sender_charged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It may be its generator's fault alone, so the reference blames nobody for a single block."""
    caplog.set_level(logging.INFO)

    async def main() -> None:
        async with peers(tmp_path, 2, generators.finality_network()) as nodes:
            victim, sender = nodes
            await generators.committed(nodes, 0, 1)
            chain, charged = sender.node.chain, []
            victim.service.jobs._charge = lambda *work: charged.append(work)
            aggregate = bls.sign(bls.generate_key(b"x" * 32), b"?")
            bad = with_voting(
                forge(chain, (), GENERATORS[0]),
                FinalizationVoting((1,), 1, aggregate),
                GENERATORS[0],
            )
            say(sender, bad)
            await until(lambda: "is refused" in caplog.text, "the verdict")
            assert "invalid signature" in caplog.text
            await until(lambda: bool(charged), "the charge")
            assert not victim.service.blacklisted()
            assert victim.service.connections == 1
            assert chain.height == victim.node.chain.height

    asyncio.run(main())


def say(peer: Peer, block: Block) -> None:
    """Send a block that is not on the node's own chain."""
    service = peer.service
    service.carry_out(service.core.announce(block_message(block), service.now()))


def endorse_as(peer: Peer, data: bytes) -> None:
    """Send an endorsement, whatever it is made of."""
    service = peer.service
    service.carry_out(service.core.announce(EndorseBlock(data), service.now()))


@pytest.mark.parametrize(
    "data",
    [
        b"\x00",
        b"\xff" * 40,
        encode_endorsement(BlockEndorsement(0, bytes(32), 1, bytes(32), bytes(95))),
        encode_endorsement(BlockEndorsement(0, bytes(32), 1, bytes(32), b"")),
    ],
    ids=["field 0", "junk", "a short signature", "no signature"],
)
def test_what_is_no_endorsement_ends_the_connection(tmp_path: Path, data: bytes) -> None:
    async def main() -> None:
        async with peers(tmp_path, 2, generators.finality_network()) as nodes:
            victim, sender = nodes
            await generators.committed(nodes, 0, 1)
            endorse_as(sender, data)
            await until(lambda: victim.service.connections == 0, "the end")
            assert not victim.service.blacklisted()
            assert victim.node.endorser.endorsements.count == 0

    asyncio.run(main())


def test_useless_endorsements_blame_nobody_and_cost_little(tmp_path: Path) -> None:
    """Forged, repeated, reordered, of the past and the future, of others, of the miner."""

    async def main() -> None:
        async with peers(tmp_path, 3, generators.finality_network()) as nodes:
            await generators.committed(nodes, 0, 1, 2)
            victim, sender = nodes[0], nodes[1]
            victim.node.mine(victim.owner, empty=True)
            await until(lambda: len({each.tip() for each in nodes}) == 1, "a key block")
            chain, pool = victim.node.chain, victim.node.endorser.endorsements
            await until(lambda: pool.count == 2, "the true ones")
            parent, final = chain.last_block.header.reference, chain.finalized_height
            own = chain.meta(final).id
            one, two = (bls.generate_key(each.private_key) for each in GENERATORS[1:3])
            good = sign_endorsement(one, 1, own, final, parent)
            other = sign_endorsement(two, 2, own, final, parent)
            useless = [
                other, good, good, other,
                msgspec.structs.replace(good, endorser_index=2),
                msgspec.structs.replace(good, endorser_index=0),
                msgspec.structs.replace(good, endorser_index=3),
                msgspec.structs.replace(good, endorser_index=-1),
                msgspec.structs.replace(good, endorser_index=2**31 - 1),
                msgspec.structs.replace(good, endorsed_id=bytes(32)),
                msgspec.structs.replace(good, signature=other.signature),
                sign_endorsement(one, 1, own, final, chain.meta(chain.height - 2).id),
                sign_endorsement(one, 1, own, final + 1, parent),
                sign_endorsement(one, 1, own, 0, parent),
                sign_endorsement(one, 1, bytes(32), 2**31 - 1, parent),
                # A conflict that somebody else has signed, who wants the deposit lost.
                sign_endorsement(two, 1, bytes(32), final, parent),
                sign_endorsement(one, 2, bytes(32), final, parent),
            ]  # fmt: skip
            checks = count_checks(victim)
            for each in useless * 20:
                endorse_as(sender, encode_endorsement(each))
            mark = sign_endorsement(one, 1, b"m" * 32, final, parent)
            endorse_as(sender, encode_endorsement(mark))
            await until(lambda: 1 in pool.conflicting or pool.dropped > 0, "the last one")
            assert 2 not in pool.conflicting
            assert len(checks) <= MAX_WASTED_OF_PEER + MAX_WAITING_OF_PEER
            assert not victim.service.blacklisted()
            assert victim.service.connections == 2

    asyncio.run(main())


def count_checks(peer: Peer) -> list[object]:
    """The verifications that a node begins from now on."""
    found: list[object] = []
    checks = peer.service.jobs._endorsements
    add = checks.add

    def noting(check: object) -> None:
        found.append(check)
        add(check)  # type: ignore[arg-type]

    checks.add = noting  # type: ignore[method-assign]
    return found
