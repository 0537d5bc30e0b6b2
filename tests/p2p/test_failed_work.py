"""Blocks of peers that fail late: who pays for the work, and what does not wait for it."""

from __future__ import annotations

import asyncio
import ipaddress
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from soliton.chain import blocks
from soliton.chain.blocks import Block
from soliton.node.key_blocks import mine_key_block
from soliton.node.miner import header_of, next_slot
from soliton.owners import owner_of
from soliton.p2p import jobs as jobs_module
from soliton.p2p.core import ApplyBlock
from soliton.p2p.history import block_message
from soliton.p2p.receiving import Verdict
from soliton.sync.extensions import BlockReceived
from soliton.sync.model import PeerId
from tests.p2p.test_hostile import stranger
from tests.p2p.world import Peer, done, make, network, peers, until

TOO_MUCH = 2**62
PEER, OTHER = 1, 2


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Peer, Peer]]:
    chain = network()
    one, other = (make(tmp_path / str(number), number, chain) for number in range(2))
    yield one, other
    for each in (one, other):
        each.service.jobs.stop()
        each.node.close()


def block_of(maker: Peer, *amounts: int, later: int = 0) -> Block:
    """A block with transfers, whose header is valid; ``later`` (ms) is one of its many times."""
    chain = maker.node.chain
    transactions = tuple(map(maker.transfer, amounts))
    slot = next_slot(chain, maker.owner)
    header = header_of(chain, slot, slot.earliest + later)
    root = blocks.transactions_root(transactions)
    header = msgspec.structs.replace(header, transactions_root=root, state_hash=bytes(32))
    return blocks.sign(header, transactions, maker.owner.private_key)


def steps_of(work: Iterator[object]) -> int:
    """How many steps work takes."""
    return sum(1 for _ in work)


def test_of_one_generator_in_one_place_one_invalid_block_is_applied(
    pair: tuple[Peer, Peer],
) -> None:
    """It can sign any number of them, each with another time."""
    liar, honest = pair
    receiver = honest.service.jobs.receiver
    dear = [block_of(liar, *range(1, 101), TOO_MUCH, later=each) for each in range(3)]
    outcome = done(receiver.block(dear[0].data))
    assert outcome.verdict is Verdict.INVALID
    assert outcome.block_id == dear[0].id
    for each in dear[1:]:
        assert done(receiver.block(each.data)).verdict is Verdict.KNOWN
        assert steps_of(receiver.block(each.data)) == 0
    # Others may make a block there, and it in other places.
    honest.node.mine(honest.owner, empty=True)
    liar.node.chain.append(honest.node.chain.last_block)
    liar.node.chain.flush()
    good = block_of(liar)
    assert done(receiver.block(good.data)).verdict is not Verdict.KNOWN


def test_mining_does_not_wait_for_a_block_of_a_peer(pair: tuple[Peer, Peer]) -> None:
    liar, honest = pair
    service = honest.service
    work = service.jobs.receiver.block(block_of(liar, *range(1, 201), TOO_MUCH).data)
    for _ in range(10):
        next(work)
    assert service.jobs.receiver.is_busy
    assert service.is_at_rest
    block = mine_key_block(honest.node, honest.owner)
    assert honest.node.chain.last_block.id == block.id
    # Whatever it would have read is another chain now.
    assert done(work).verdict is Verdict.MOVED


class Turns:
    """The turns of an event loop, one after the other, and a timer that goes with them."""

    def __init__(self, peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waiting: deque[Callable[[], None]] = deque()
        self.jobs = peer.service.jobs
        self.seconds = 0.0
        self.charged: list[tuple[PeerId, float]] = []
        monkeypatch.setattr(self.jobs, "_call_soon", self.waiting.append)
        monkeypatch.setattr(self.jobs, "_timer", self.timer)
        monkeypatch.setattr(
            self.jobs, "_charge", lambda peer, seconds: self.charged.append((peer, seconds))
        )

    def timer(self) -> float:
        self.seconds += 0.006
        return self.seconds

    def add(self, block: Block, peer: PeerId) -> None:
        received = BlockReceived(peer, block.id, block.header.reference, block_message(block))
        self.jobs.add(ApplyBlock(received))

    async def run(self) -> None:
        while self.waiting:
            self.waiting.popleft()()
            await asyncio.sleep(0)


def test_a_long_job_lets_others_begin_and_its_peer_pays(
    pair: tuple[Peer, Peer], monkeypatch: pytest.MonkeyPatch
) -> None:
    liar, honest = pair
    dear = block_of(liar, *range(1, 1_001), TOO_MUCH)
    honest.node.mine(honest.owner, empty=True)
    good = honest.node.chain.last_block
    honest.node.chain.rollback(1)

    async def world() -> None:
        turns = Turns(honest, monkeypatch)
        turns.add(dear, PEER)
        turns.add(good, OTHER)
        while honest.node.chain.height == 1:
            turns.waiting.popleft()()
        # It need not wait for the end of the other one.
        assert not turns.charged
        assert honest.node.chain.last_block.id == good.id
        await turns.run()

    asyncio.run(world())


def test_who_sends_a_block_that_fails_is_charged_for_its_time(
    pair: tuple[Peer, Peer], monkeypatch: pytest.MonkeyPatch
) -> None:
    liar, honest = pair

    async def world() -> None:
        turns = Turns(honest, monkeypatch)
        turns.add(block_of(liar, *range(1, 101), TOO_MUCH), PEER)
        await turns.run()
        [(peer, seconds)] = turns.charged
        assert peer == PEER
        assert seconds > 2 * jobs_module.STEP_SECONDS
        assert not honest.service.jobs.is_working

    asyncio.run(world())


def test_who_has_gone_pays_when_it_comes_back(tmp_path: Path) -> None:
    async def world() -> None:
        async with peers(tmp_path, 1) as (one,):
            async with stranger(one):
                await until(lambda: bool(one.service.core.book.connections), "the stranger")
                [peer] = one.service.core.book.connections
            await until(lambda: not one.service.core.book.connections, "its end")
            one.service.jobs._charge(peer, 10.0)
            assert one.service.debts.rest(owner_of(ipaddress.IPv4Address("127.9.9.9"))) > 0

    asyncio.run(world())
