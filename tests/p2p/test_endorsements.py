"""Generators on several nodes make blocks final, over real connections."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pytest

from soliton.chain.finalization import BlockEndorsement, encode_endorsement, sign_endorsement
from soliton.chain.networks import Network
from soliton.chain.transactions.commit_to_generation import commitment
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import bls
from soliton.node.node import system_clock
from soliton.node.pool import UtxPool
from soliton.p2p.receiving import Verdict
from soliton.steps import Steps
from soliton.sync.endorsements import MAX_EARLY_OF_PEER
from soliton.wire import frames, handshake
from soliton.wire.handshake import Handshake, PeerAddress
from soliton.wire.messages import EndorseBlock
from soliton.wire.versions import ANNOUNCED
from tests.node.chains import forge, now, signed
from tests.node.committing import COMMITMENT_FEE, add_micro, endorse, grow, voting_of
from tests.node.forging import mine_micro
from tests.p2p.world import OWNERS, Peer, agree, done, join, make, network, peers, until

ACTIVATION, PERIOD = 3, 6
FIRST = ACTIVATION + PERIOD + 1
"""The first height of the first period that anybody can commit to."""


def finality_network() -> Network:
    chain = network()
    features = {**chain.functionality.pre_activated_features, 24: 0, 25: ACTIVATION}
    functionality = msgspec.structs.replace(
        chain.functionality,
        pre_activated_features=features,
        generation_period_length=PERIOD,
        max_valid_endorsers=8,
    )
    return msgspec.structs.replace(chain, functionality=functionality)


def commit_to(number: int, start: int) -> AnyTransaction:
    pair = OWNERS[number]
    payload = commitment(pair.private_key, start)
    timestamp = system_clock()
    return signed(pair, 19, payload, version=1, timestamp=timestamp, fee=COMMITMENT_FEE)


async def reach(height: int, nodes: list[Peer], first: Iterable[AnyTransaction] = ()) -> None:
    """The first node mines until the chain has a height on all nodes."""
    content = list(first)
    while nodes[0].node.chain.height < height:
        nodes[0].mine(*content)
        content = []
        await until(lambda: agree(*nodes), "one chain")


async def committed(nodes: list[Peer], *numbers: int) -> None:
    """Bring the nodes to the end of the period before that of the owners' commitments."""
    for each in nodes[1:]:
        join(nodes[0], each)
    await until(lambda: nodes[0].service.connections == len(nodes) - 1, "connections")
    await reach(ACTIVATION, nodes)
    await reach(FIRST - 1, nodes, [commit_to(number, FIRST) for number in numbers])


async def block_with_votes(nodes: list[Peer], miner: Peer, endorsers: int) -> None:
    """One node makes a key block, others endorse its parent, a microblock publishes that."""
    miner.node.mine(miner.owner, empty=True)
    miner.node.endorser.follow()
    collected = miner.node.endorser.endorsements
    await until(lambda: collected.count == endorsers, "endorsements")
    miner.node.broadcast(miner.transfer())
    await miner.node.mine_micro_in_steps(miner.owner)
    await until(lambda: agree(*nodes), "one chain")


def test_endorsements_of_other_nodes_make_blocks_final(tmp_path: Path) -> None:
    async def main() -> None:
        async with peers(tmp_path, 3, finality_network()) as nodes:
            await committed(nodes, 0, 1, 2)
            for turn in range(4):
                await block_with_votes(nodes, nodes[turn % 3], 2)
                voting = nodes[0].node.chain.last_block.header.finalization_voting
                assert voting is not None
                assert len(voting.endorser_indexes) in (1, 2)
            # A block of the next height shows what is final now.
            nodes[0].node.mine(OWNERS[0], empty=True)
            await until(lambda: agree(*nodes), "one chain")
            chain = nodes[0].node.chain
            assert {each.node.chain.finalized_height for each in nodes} == {chain.height - 2}

    asyncio.run(main())


async def test_endorsements_that_come_while_a_microblock_is_made_are_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with peers(tmp_path, 1, finality_network()) as (miner,):
        await committed([miner], 0, 1, 2)
        node = miner.node
        node.mine(miner.owner, empty=True)
        node.endorser.follow()
        mining_order = UtxPool.mining_order

        def while_they_come(pool: UtxPool, height: int) -> Steps[Iterator[AnyTransaction]]:
            found = yield from mining_order(pool, height)

            def candidates() -> Iterator[AnyTransaction]:
                yield from found
                for index in (1, 2):
                    node.endorser.endorsements.add_own(endorse(node.chain, OWNERS[index], index))

            return candidates()

        monkeypatch.setattr(UtxPool, "mining_order", while_they_come)
        node.broadcast(miner.transfer())
        assert mine_micro(node, miner.owner) == 1
        assert node.chain.last_block.header.finalization_voting is not None


def test_a_node_that_endorses_another_final_block_loses_its_deposit(tmp_path: Path) -> None:
    async def main() -> None:
        async with peers(tmp_path, 3, finality_network()) as nodes:
            await committed(nodes, 0, 1, 2)
            await block_with_votes(nodes, nodes[0], 2)
            miner, chain = nodes[0], nodes[0].node.chain
            miner.node.mine(miner.owner, empty=True)
            secret = bls.generate_key(OWNERS[1].private_key)
            final = chain.finalized_height
            false = sign_endorsement(secret, 1, b"x" * 32, final, chain.last_block.header.reference)
            message = EndorseBlock(encode_endorsement(false))
            sender = nodes[1].service
            sender.carry_out(sender.core.announce(message, sender.now()))
            collected = miner.node.endorser.endorsements
            await until(lambda: 1 in collected.conflicting, "the conflict")
            miner.node.broadcast(miner.transfer())
            await miner.node.mine_micro_in_steps(miner.owner)
            await until(lambda: agree(*nodes), "one chain")
            generators = nodes[2].node.chain.generators_at(chain.height)
            assert generators is not None
            assert [each.index for each in generators.members] == [0, 2]
            before = nodes[2].node.chain.last_block.header.finalization_voting
            assert before is not None
            assert before.conflicts == (false,)

    asyncio.run(main())


def test_a_flood_of_false_endorsements_costs_a_bounded_number_of_verifications(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with peers(tmp_path, 2, finality_network()) as nodes:
            await committed(nodes, 0, 1)
            victim, sender = nodes[0], nodes[1].service
            victim.node.mine(victim.owner, empty=True)
            reference = victim.node.chain.last_block.header.reference
            for number in range(2_000):
                forged = sign_endorsement(
                    bls.generate_key(number.to_bytes(4, "big")), 1, b"y" * 32, 1, reference
                )
                message = EndorseBlock(encode_endorsement(forged))
                sender.carry_out(sender.core.announce(message, sender.now()))
                if number % 100 == 0:
                    await asyncio.sleep(0)
            collected = victim.node.endorser.endorsements
            await until(lambda: collected.dropped > 0, "dropped endorsements")
            assert victim.service.connections == 1

    asyncio.run(main())


async def test_a_generator_endorses_on_after_a_fork_that_lacks_the_votes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its chain still has the block that it has named as final, but the votes were in blocks that
    another chain does not have.
    """
    caplog.set_level(logging.WARNING)
    plain = finality_network()
    functionality = msgspec.structs.replace(plain.functionality, generation_period_length=40)
    peer = make(tmp_path, 1, msgspec.structs.replace(plain, functionality=functionality))
    node, chain, endorser = peer.node, peer.node.chain, peer.node.endorser
    endorser._clock = lambda: now(chain)

    def follow() -> int:
        chain.flush()
        node.follow_chain()
        endorser.follow()
        return len(endorser.take_outgoing())

    first = ACTIVATION + 40 + 1
    try:
        grow(chain, ACTIVATION, OWNERS[0])
        grow(chain, ACTIVATION + 1, OWNERS[0], [commit_to(number, first) for number in range(3)])
        grow(chain, first + 1, OWNERS[0])
        assert follow() == 1
        without_votes, branch = chain.last_block, chain.branch(chain.height)
        others = [forge(branch, (), OWNERS[2], at=now(chain) + 500)]
        branch.append(others[0])
        others.append(forge(branch, (), OWNERS[0]))
        votes = [endorse(chain, OWNERS[number], number) for number in (1, 2)]
        add_micro(chain, voting_of(votes), OWNERS[0], OWNERS[3])
        chain.append(forge(chain, (), OWNERS[0], at=now(chain) + 5_000))
        assert chain.finalized_height == first
        assert follow() == 1
        data = [each.data for each in (without_votes, *others)]
        outcome = done(peer.service.jobs.receiver.extension(data, 100))
        assert outcome.verdict is Verdict.APPLIED and outcome.depth == 2
        assert chain.finalized_height < first
        assert follow() == 1
        chain.append(forge(chain, (), OWNERS[0]))
        assert follow() == 1
        assert not caplog.records
        # Without that block its endorsement would conflict with the earlier one.
        chain.rollback(first - 1)
        grow(chain, first + 3, OWNERS[2])
        assert follow() == 0
        assert "it has endorsed another final block" in caplog.text
    finally:
        peer.service.jobs.stop()
        node.close()


async def test_the_generator_of_a_replaced_block_endorses_as_the_others(tmp_path: Path) -> None:
    peer = make(tmp_path, 1, finality_network())
    node, chain, endorser = peer.node, peer.node.chain, peer.node.endorser
    endorser._clock = lambda: now(chain)
    try:
        grow(chain, ACTIVATION, OWNERS[0])
        grow(chain, ACTIVATION + 1, OWNERS[0], [commit_to(number, FIRST) for number in range(3)])
        grow(chain, FIRST, OWNERS[0])
        branch = chain.branch(chain.height)
        older = forge(branch, (), OWNERS[2], at=now(chain))
        chain.append(forge(chain, (), OWNERS[1], at=now(chain) + 500))
        chain.flush()
        node.follow_chain()
        endorser.follow()
        assert endorser.take_outgoing() == []
        outcome = done(peer.service.jobs.receiver.block(older.data))
        assert outcome.verdict is Verdict.APPLIED
        endorser.follow()
        (own,) = endorser.take_outgoing()
        assert (own.endorser_index, own.endorsed_id) == (1, older.header.reference)
    finally:
        peer.service.jobs.stop()
        node.close()


def test_all_addresses_of_a_network_share_what_they_may_cost(tmp_path: Path) -> None:
    """Whoever has one address of IPv6 has 2^64 of them."""
    peer = make(tmp_path, 0, finality_network())
    core = peer.service.core
    pool = core.endorsements
    greeting = handshake.encode(Handshake("wavesR", ANNOUNCED["waves"], "one of many", 7, None, 1))
    try:
        for number in range(1, 4):
            address = PeerAddress(ipaddress.ip_address(f"2001:db8::{number}"), 7)
            core.opened(number, address, inbound=True, now=1)
            core.received(number, greeting, 1)
            for more in range(MAX_EARLY_OF_PEER):
                each = BlockEndorsement(0, bytes(32), 1_000 * number + more, bytes(32), bytes(96))
                data = frames.encode(EndorseBlock(encode_endorsement(each)))
                core.received(number, data, 1)
        assert core.connected == 3
        assert pool.dropped == 2 * MAX_EARLY_OF_PEER
    finally:
        peer.service.jobs.stop()
        peer.node.close()
