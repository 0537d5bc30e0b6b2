"""Generators on several nodes make blocks final, over real connections."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import msgspec

from soliton.chain.finalization import encode_endorsement, sign_endorsement
from soliton.chain.networks import Network
from soliton.chain.transactions.commit_to_generation import commitment
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import bls
from soliton.node.node import system_clock
from soliton.wire.messages import EndorseBlock
from tests.node.chains import signed
from tests.node.committing import COMMITMENT_FEE
from tests.p2p.world import OWNERS, Peer, agree, join, network, peers, until

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


def commit(number: int, start: int) -> AnyTransaction:
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
    await reach(FIRST - 1, nodes, [commit(number, FIRST) for number in numbers])


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
