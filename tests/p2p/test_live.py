"""Nodes over real sockets: they sync, relay, follow microblocks, and agree after a fork."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from pathlib import Path

import pytest

from soliton.chain import blocks
from soliton.chain.blocks import Block
from soliton.node.node import Node
from soliton.storage.errors import StorageProblem
from soliton.wire.handshake import MAX_BYTES
from tests.node import forging
from tests.p2p.world import Peer, agree, done, join, make, network, peers, until


def test_a_new_node_gets_the_whole_chain(tmp_path: Path) -> None:
    async def world() -> None:
        async with peers(tmp_path, 2) as (old, new):
            for _ in range(130):
                old.mine(old.transfer())
            join(new, old)
            await until(lambda: agree(old, new), "the chain of 130 blocks")
            assert new.node.chain.height == 131
            assert new.service.jobs.forks == {}
            assert [each.name for each in old.service.connected()] == ["node 1"]

    asyncio.run(world())


def test_blocks_microblocks_and_transactions_go_round(tmp_path: Path) -> None:
    async def world() -> None:
        async with peers(tmp_path, 3) as (one, middle, three):
            join(middle, one)
            join(three, middle)
            await until(lambda: middle.service.core.connected == 2)
            one.mine()
            await until(lambda: agree(one, middle, three), "a key block")
            transaction = three.transfer()
            three.node.broadcast(transaction)
            await until(lambda: transaction.id in one.node.pool, "a transaction")
            assert transaction.id in middle.node.pool
            forging.mine_micro(one.node, one.owner)
            await until(lambda: agree(one, middle, three), "a microblock")
            assert all(transaction.id not in each.node.pool for each in (one, middle, three))
            assert three.node.chain.transaction(transaction.id) is not None
            # The next one builds on the microblock.
            three.mine(three.transfer())
            await until(lambda: agree(one, middle, three), "the next block")
            assert three.node.chain.height == 3

    asyncio.run(world())


def test_the_better_fork_wins_and_what_was_dropped_comes_back(tmp_path: Path) -> None:
    async def world() -> None:
        async with peers(tmp_path, 2) as (one, two):
            one.mine()
            join(two, one)
            await until(lambda: agree(one, two))
            await part(one, two)
            lost = [two.transfer(amount) for amount in (1, 2, 3)]
            for each in lost:
                two.mine(each)
            for _ in range(5):
                one.mine(one.transfer())
            join(two, one)
            await until(lambda: agree(one, two), "one chain")
            assert one.node.chain.height == 7
            assert two.service.jobs.forks == {3: 1}
            await until(lambda: all(each.id in two.node.pool for each in lost), "what was dropped")
            two.mine()
            await until(lambda: agree(one, two))
            assert all(one.node.chain.transaction(each.id) is not None for each in lost)

    asyncio.run(world())


async def part(*all_peers: Peer) -> None:
    """Close all connections."""
    for each in all_peers:
        for link in list(each.service._links.values()):
            link.transport.abort()
    await until(lambda: not any(each.service.core.connected for each in all_peers))


def test_a_bad_block_of_a_better_fork_leaves_everything_as_it_was(tmp_path: Path) -> None:
    async def world() -> None:
        async with peers(tmp_path, 2) as (good, liar):
            good.mine(good.transfer())
            join(liar, good)
            await until(lambda: agree(good, liar))
            await part(good, liar)
            good.mine(good.transfer())
            good.node.broadcast(good.transfer(7))
            forging.mine_micro(good.node, good.owner)
            before = good.tip(), good.node.chain.liquid_ids()
            for _ in range(4):
                liar.mine(liar.transfer())
            spoil(liar.node, height=4)
            join(good, liar)
            await until(lambda: bool(good.service.blacklisted()), "the blame")
            assert (good.tip(), good.node.chain.liquid_ids()) == before
            (alarm,) = good.service.faulty_forks.values()
            assert (alarm.height, "signature" in alarm.reason) == (4, True)
            # It goes on growing.
            good.node.broadcast(good.transfer(8))
            assert forging.mine_micro(good.node, good.owner) == 1

    asyncio.run(world())


async def test_nobody_is_blamed_when_our_chain_moves_while_blocks_come(tmp_path: Path) -> None:
    async with peers(tmp_path, 2) as (better, other):
        better.mine()
        join(other, better)
        await until(lambda: agree(better, other))
        await part(better, other)
        better.mine()
        better.mine()
        read, parted = better.node.store.block_data, False

        def block_data(height: int) -> bytes | None:
            nonlocal parted
            if height == 3 and not parted:
                parted = True
                forging.roll_back(other.node, 1, keep=False)
                other.mine(other.transfer())
            return read(height)

        vars(better.node.store)["block_data"] = block_data
        join(other, better)
        await until(lambda: parted and agree(better, other), "one chain")
        assert other.service.faulty_forks == {}
        assert not other.service.blacklisted()


def spoil(node: Node, height: int) -> None:
    """Let a node serve a block whose signature is wrong."""
    bad = bytearray(node.store.block_data(height) or b"")
    bad[bytes(bad).index(node.chain.block_at(height).signature)] ^= 1
    serve(node, height, bytes(bad))


def serve(node: Node, height: int, data: bytes) -> None:
    """Let a node serve something else in place of a block."""
    read = node.store.block_data

    def block_data(at: int) -> bytes | None:
        return data if at == height else read(at)

    vars(node.store)["block_data"] = block_data


def test_a_disk_that_refuses_is_no_fault_of_the_peer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def world() -> None:
        async with peers(tmp_path, 2) as (full, honest):
            for _ in range(3):
                honest.mine(honest.transfer())
            attempts = []

            def refuse(_branch: object) -> None:
                attempts.append(1)
                raise StorageProblem("no space left on the disk")

            with monkeypatch.context() as patched:
                patched.setattr(full.node.store, "adopt", refuse)
                join(full, honest)
                # It is tried again as the disk's pauses say, not each time the peer says something.
                await until(lambda: len(attempts) == 2, "blocks that cannot be written")
                honest.mine(honest.transfer())
                assert full.node.disk.failures_total <= len(attempts)
                assert full.service.core.connected == 1
                assert (full.service.suspended(), full.service.blacklisted()) == ({}, {})
            # Nobody has to say anything for that.
            await until(lambda: agree(full, honest), "the chain, once it can be written")

    asyncio.run(world())


def test_another_body_below_the_id_of_a_good_block_harms_its_sender_alone(tmp_path: Path) -> None:
    async def world() -> None:
        async with peers(tmp_path, 3) as (new, liar, honest):
            for _ in range(5):
                honest.mine(honest.transfer())
            join(liar, honest)
            await until(lambda: agree(liar, honest))
            block = liar.node.chain.block_at(4)
            serve(liar.node, 4, blocks.assemble(block.header, (), block.signature).data)
            join(new, liar)
            await until(lambda: bool(new.service.blacklisted()), "the blame")
            assert new.node.chain.height == 3
            join(new, honest)
            await until(lambda: agree(new, honest), "the good block")
            assert list(map(str, new.service.blacklisted())) == ["127.1.1.1"]

    asyncio.run(world())


def test_of_two_blocks_for_one_place_the_older_wins(tmp_path: Path) -> None:
    async def world() -> None:
        async with peers(tmp_path, 2) as (early, late):
            early.mine()
            join(late, early)
            await until(lambda: agree(early, late))
            await part(early, late)
            early.node.mine(early.owner, empty=True)
            late.node.mine(late.owner, empty=True)
            late.node.broadcast(late.transfer())
            assert forging.mine_micro(late.node, late.owner) == 1
            block: Block = early.node.chain.last_block
            times = block.header.timestamp, late.node.chain.last_block.header.timestamp
            theirs = late.node.chain.last_block.data
            outcome = done(late.service.jobs.receiver.block(block.data))
            other = done(early.service.jobs.receiver.block(theirs))
            if times[0] < times[1]:
                assert (outcome.verdict.name, other.verdict.name) == ("APPLIED", "KNOWN")
                assert len(late.node.pool) == 1
            else:
                assert outcome.verdict.name == "KNOWN"

    asyncio.run(world())


@pytest.mark.parametrize(
    "data",
    [
        b"\x00" * MAX_BYTES,
        b"\x06wavesR" + b"\xff" * 64,
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x06wavesX\x00\x00\x00\x01\x00\x00\x00\x05\x00\x00\x00\x07\x02n1" + b"\0" * 20,
    ],
)
def test_strangers_who_say_nonsense_are_sent_away(tmp_path: Path, data: bytes) -> None:
    async def world() -> None:
        # Some could still become a handshake: they get the time for it.
        async with peers(tmp_path, 1, network__handshake_timeout="1s") as (one,):
            where = one.where
            reader, writer = await asyncio.open_connection(where.host, where.port)
            writer.write(data)
            async with asyncio.timeout(30):
                assert await reader.read() == b""
            writer.close()
            assert one.service.core.connected == 0
            assert one.service._links == {}

    asyncio.run(world())


def test_no_more_connections_of_one_address_than_the_limit(tmp_path: Path) -> None:
    async def world() -> None:
        async with peers(tmp_path, 1) as (one,):
            where = (one.where.host, one.where.port)
            sockets = [socket.create_connection(where) for _ in range(8)]
            try:
                await until(lambda: len(one.service._links) == 3)
                await asyncio.sleep(0.2)
                assert len(one.service._links) == 3
            finally:
                for each in sockets:
                    each.close()
            await until(lambda: not one.service._links)

    asyncio.run(world())


def test_nodes_that_know_one_and_the_same_find_each_other(tmp_path: Path) -> None:
    async def world() -> None:
        chain = network()
        options = {"network__bind_address": "127.0.0.1", "network__min_connections": 2}
        async with contextlib.AsyncExitStack() as stack:
            found = list[Peer]()
            for number in range(3):
                with socket.create_server(("127.0.0.1", 0)) as free:
                    port = free.getsockname()[1]
                peer = make(
                    tmp_path / str(number), number, chain, **options,
                    network__port=port, network__declared_address=f"127.0.0.1:{port}",
                )  # fmt: skip
                stack.callback(peer.node.close)
                await peer.service.start()
                stack.push_async_callback(peer.service.stop)
                if found:
                    join(peer, found[0])
                    await until(lambda one=peer: one.service.core.connected > 0)  # type: ignore[misc]
                found.append(peer)
            await until(lambda: all(each.service.core.connected == 2 for each in found))

    asyncio.run(world())


def test_who_is_known_is_known_after_a_restart(tmp_path: Path) -> None:
    """Known is who says where it can be dialled, and is dialled there."""
    with socket.create_server(("127.1.1.1", 0)) as free:
        port = free.getsockname()[1]
    place = f"127.1.1.1:{port}"

    async def world() -> None:
        chain = network()
        options = {"network__port": port, "network__declared_address": place}
        two = make(tmp_path / "two", 1, chain, **options)
        async with peers(tmp_path, 1, chain) as (one,):
            await two.service.start()
            join(one, two)
            await until(lambda: one.service.core.connected == 1)
            await one.service.stop()
            file = one.node.settings.peers.file
            assert file is not None
            assert json.loads(file.read_text()) == [place]
            again = make(tmp_path / "again", 2, chain, network__file=str(file))
            try:
                await again.service.start()
                await until(lambda: again.service.core.connected == 1, "who was known")
                assert {str(each): 0 for each in again.service.known()} == {place: 0}
                await again.service.stop()
            finally:
                again.node.close()
            await two.service.stop()
        two.node.close()

    asyncio.run(world())
