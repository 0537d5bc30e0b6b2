"""A stranger's blocks cost next to nothing until their generator's signature and header are right.

Counted is what was read and what was executed, not how long it took.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from soliton.chain import blocks
from soliton.chain.blocks import Block, BlockHeader, ChallengedHeader
from soliton.chain.transactions import codec
from soliton.crypto import vrf
from soliton.crypto.keys import KeyPair
from soliton.ledger import apply, headers, transactions
from soliton.wire import messages
from soliton.wire.connection import Connection, MessageReceived
from soliton.wire.handshake import Handshake
from soliton.wire.messages import Message
from soliton.wire.versions import ANNOUNCED, application_name
from tests.node import forging
from tests.node.chains import person
from tests.p2p.world import OWNERS, Peer, agree, done, make, network, peers, until

FULL = 60
"""Transactions of a block that is full enough to be counted."""


class Work:
    """What a node did with the transactions of others."""

    def __init__(self) -> None:
        self.read = 0
        self.executed = 0


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    counted = Work()
    execute, read = transactions.apply_transaction, codec.from_message

    def executing(*args: object, **named: object) -> object:
        counted.executed += 1
        return execute(*args, **named)  # type: ignore[arg-type]

    def reading(*args: object) -> object:
        counted.read += 1
        return read(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(apply, "apply_transaction", executing)
    monkeypatch.setattr(codec, "from_message", reading)
    return counted


class Stranger:
    """Somebody at the other end of a socket, who gives the blocks that he is told to give."""

    def __init__(self, to: Peer) -> None:
        chain = to.node.network
        name = application_name(chain.family, chain.chain_id)
        own = Handshake(name, ANNOUNCED[chain.family], "stranger", 666, None, 1)
        self._to = to
        self._connection = Connection(own, chain.family, chain.chain_id)
        self._writer: asyncio.StreamWriter | None = None
        self.ids: tuple[bytes, ...] = ()
        self.blocks: dict[bytes, bytes] = {}
        self.asked: list[bytes] = []

    def say(self, message: Message) -> None:
        assert self._writer is not None
        self._writer.write(self._connection.send(message))

    def claim(self, found: list[Block]) -> None:
        """Say that there is a far better chain with these blocks, from a common one on."""
        self.ids = tuple(each.id for each in found)
        self.blocks = {each.id: each.data for each in found}
        self.say(messages.Score(2**100))

    @asynccontextmanager
    async def talking(self) -> AsyncIterator[None]:
        where = self._to.where
        reader, self._writer = await asyncio.open_connection(
            where.host, where.port, local_addr=("127.9.9.9", 0)
        )
        self._writer.write(self._connection.introduce())
        listening = asyncio.create_task(self._listen(reader))
        try:
            # Both ends know each other: nothing can be said before.
            await until(
                lambda: self._to.service.core.connected == 1 and self._connection.peer is not None,
                "an introduction",
            )
            yield
        finally:
            listening.cancel()
            self._writer.close()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                for event in self._connection.receive(data):
                    if isinstance(event, MessageReceived):
                        self._answer(event.message)

    def _answer(self, message: Message) -> None:
        match message:
            case messages.GetBlockIds():
                self.say(messages.BlockIds(self.ids))
            case messages.GetBlock(block_id=block_id):
                self.asked.append(block_id)
                self.say(messages.ProtobufBlock(self.blocks[block_id]))
            case _:
                pass


def full_block(maker: Peer) -> Block:
    maker.mine(*(maker.transfer(amount) for amount in range(1, FULL + 1)))
    return maker.node.chain.last_block


def wrong_signature(block: Block) -> Block:
    signature = bytes((block.signature[0] ^ 1,)) + block.signature[1:]
    return blocks.assemble(block.header, block.transactions, signature)


def by_nobody(maker: Peer, block: Block) -> Block:
    """The same by somebody who may not mine: everything is right but his balance."""
    pair = person("nobody")
    chain = maker.node.chain.branch(maker.node.chain.height - 1)
    proof = vrf.prove(pair.private_key, headers.hit_source(chain))
    header = msgspec.structs.replace(
        block.header, generator=pair.public_key, generation_signature=proof
    )
    return blocks.sign(header, block.transactions, pair.private_key)


def challenging_a_forgery(maker: Peer, block: Block) -> Block:
    """A challenge of a block that its generator never made."""
    challenger, victim = OWNERS[1], OWNERS[2]
    chain = maker.node.chain.branch(maker.node.chain.height - 1)
    header = block.header

    def made_by(pair: KeyPair) -> BlockHeader:
        return msgspec.structs.replace(
            header,
            generator=pair.public_key,
            generation_signature=vrf.prove(pair.private_key, headers.hit_source(chain)),
        )

    original = made_by(victim)
    challenged = ChallengedHeader(
        original.base_target,
        original.generation_signature,
        original.feature_votes,
        original.timestamp,
        original.generator,
        original.reward_vote,
        bytes(32),
        bytes(64),
    )
    mine = msgspec.structs.replace(made_by(challenger), challenged=challenged)
    return blocks.sign(mine, block.transactions, challenger.private_key)


FORGED: dict[str, Callable[[Peer, Block], Block]] = {
    "a wrong signature": lambda _, block: wrong_signature(block),
    "a generator without balance": by_nobody,
    "a challenge of what was never made": challenging_a_forgery,
}


@asynccontextmanager
async def two_of_a_chain(directory: Path) -> AsyncIterator[tuple[Peer, Peer]]:
    """A node with a socket and one without, both at the same second block."""
    chain = network()
    async with peers(directory, 1, chain) as (victim,):
        maker = make(directory / "maker", 3, chain)
        try:
            victim.node.mine(victim.owner, empty=True)
            done(maker.service.jobs.receiver.block(victim.node.chain.last_block.data))
            yield victim, maker
        finally:
            maker.service.jobs.stop()
            maker.node.close()


@pytest.mark.parametrize("kind", FORGED)
@pytest.mark.parametrize("asked", [True, False], ids=["extension", "unasked"])
@pytest.mark.parametrize("place", ["on top", "in place of the last", "on an earlier form"])
def test_nothing_of_a_forged_block_is_read_or_executed(
    tmp_path: Path, work: Work, kind: str, asked: bool, place: str
) -> None:
    async def world() -> None:
        async with two_of_a_chain(tmp_path) as (victim, maker):
            common = maker.node.chain.last_block
            bad = FORGED[kind](maker, full_block(maker))
            after = msgspec.structs.replace(bad.header, reference=bad.id, transactions_root=b"")
            if place == "in place of the last":
                victim.mine()
            elif place == "on an earlier form":
                victim.node.broadcast(victim.transfer())
                forging.mine_micro(victim.node, victim.owner)
            tip = victim.tip()
            stranger = Stranger(victim)
            async with stranger.talking():
                work.read = work.executed = 0
                if asked:
                    stranger.claim([common, bad, blocks.sign(after, (), maker.owner.private_key)])
                    await until(lambda: bool(victim.service.blacklisted()), "the blame")
                    assert bad.id in stranger.asked
                else:
                    stranger.say(messages.ProtobufBlock(bad.data))
                    traffic = victim.service.core.traffic.messages_in
                    await until(lambda: traffic["ProtobufBlock"] == 1, "what was sent")
                    await until(lambda: not victim.service.jobs.is_working, "the end of the work")
                assert (work.read, work.executed) == (0, 0)
                assert victim.tip() == tip

    asyncio.run(world())


@pytest.mark.parametrize("place", ["on top", "in place of the last", "on an earlier form"])
def test_a_good_block_is_taken_and_counted(tmp_path: Path, work: Work, place: str) -> None:
    """What is counted is what an honest block costs."""

    async def world() -> None:
        async with two_of_a_chain(tmp_path) as (victim, maker):
            block = full_block(maker)
            if place == "in place of the last":
                victim.mine()
            elif place == "on an earlier form":
                victim.node.broadcast(victim.transfer())
                forging.mine_micro(victim.node, victim.owner)
            stranger = Stranger(victim)
            async with stranger.talking():
                work.read = work.executed = 0
                stranger.say(messages.ProtobufBlock(block.data))
                await until(lambda: agree(maker, victim), "the block")
                # One transaction goes back to the pool.
                returned = 1 if place == "on an earlier form" else 0
                assert (work.read, work.executed) == (FULL + returned, FULL)

    asyncio.run(world())


@pytest.mark.parametrize("base_target", [0, -1])
def test_a_fork_without_base_targets_has_no_score(tmp_path: Path, base_target: int) -> None:
    """The scores of a fork are compared before its signatures: 2^64 divided by the base target."""

    async def main() -> None:
        async with peers(tmp_path, 1) as (node,):
            node.mine()
            first, last = (node.node.chain.block_at(height) for height in (1, 2))
            header = msgspec.structs.replace(last.header, base_target=base_target)
            block = blocks.assemble(header, (), bytes(64))
            stranger = Stranger(node)
            async with stranger.talking():
                stranger.claim([first, block])
                await until(lambda: bool(node.service.blacklisted()), "the blame")
            assert not node.node.is_stopping
            assert node.node.chain.last_block.id == last.id

    asyncio.run(main())
