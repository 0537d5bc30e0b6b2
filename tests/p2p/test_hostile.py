"""Peers that mean harm: what they send costs them, and nobody else waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import random
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from soliton import turns
from soliton.chain import microblocks
from soliton.chain.proto import block_pb2
from soliton.chain.transactions import codec, issue
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.transfer import Transfer
from soliton.crypto.hashes import blake2b256
from soliton.crypto.keys import key_pair
from soliton.node.node import system_clock
from soliton.p2p.receiving import Verdict
from soliton.p2p.sockets import PeerSocket
from soliton.wire import frames, handshake, messages
from soliton.wire.handshake import Handshake
from soliton.wire.kinds import KINDS
from soliton.wire.versions import ANNOUNCED
from tests.node.chains import address_of, signed
from tests.p2p.world import OWNERS, Peer, agree, done, join, make, network, peers, until

PATIENCE = 60
GREETING = Handshake("wavesR", ANNOUNCED["waves"], "harm", 666, None, 1)


@asynccontextmanager
async def stranger(to: Peer) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Somebody who has introduced himself as he should."""
    where = to.where
    reader, writer = await asyncio.open_connection(
        where.host, where.port, local_addr=("127.9.9.9", 0)
    )
    writer.write(handshake.encode(GREETING))
    try:
        async with asyncio.timeout(PATIENCE):
            await reader.readexactly(1)
        yield reader, writer
    finally:
        writer.close()


def wrap(code: int, payload: bytes) -> bytes:
    """A frame with a true header and checksum."""
    behind = blake2b256(payload)[:4] + payload if payload else b""
    head = struct.pack(">iBi", 0x12345678, code, len(payload))
    return struct.pack(">i", len(head) + len(behind)) + head + behind


def noise(chance: random.Random) -> bytes:
    return chance.randbytes(4_000)


def frames_of_noise(chance: random.Random) -> bytes:
    """Frames with true headers around random payloads."""
    parts = []
    for _ in range(50):
        kind = chance.choice(KINDS)
        payload = chance.randbytes(chance.randrange(1, min(kind.limit, 2_000) + 2))
        parts.append(wrap(kind.code, payload))
    return b"".join(parts)


def a_list_without_end(chance: random.Random) -> bytes:
    return wrap(32, (200).to_bytes(4, "big") + b"\x20" + chance.randbytes(32))


def announcements_with_wrong_signatures(chance: random.Random) -> bytes:
    parts = []
    for _ in range(50):
        inv = messages.MicroblockInv(
            chance.randbytes(32), chance.randbytes(32), chance.randbytes(32), chance.randbytes(64)
        )
        parts.append(frames.encode(inv))
    return b"".join(parts)


@pytest.mark.parametrize("extension", [False, True])
def test_a_header_behind_the_transactions_changes_no_block(tmp_path: Path, extension: bool) -> None:
    """Protobuf merges a repeated header into the first one, whose signature is valid. The reference
    merges it before it verifies the signature.
    """
    more = block_pb2.Block(signature=bytes(64) if extension else b"")
    more.header.reward_vote = 7
    more.header.feature_votes.append(99)

    async def world() -> None:
        chain = network()
        async with peers(tmp_path / "peers", 1, chain) as (one,):
            maker = make(tmp_path / "maker", 1, chain)
            maker.mine()
            good = maker.node.chain.last_block
            forged = good.data + more.SerializeToString()
            receiver = one.service.jobs.receiver
            if extension:
                assert done(receiver.extension([forged], 100)).verdict is Verdict.INVALID
            async with stranger(one) as (_, writer):
                writer.write(frames.encode(messages.ProtobufBlock(forged)))
                writer.write(frames.encode(messages.ProtobufBlock(good.data)))
                await until(lambda: one.node.chain.last_block.id == good.id, "the block")
            maker.service.jobs.stop()
            maker.node.close()

    asyncio.run(world())


def test_a_forged_microblock_is_blamed_whatever_it_builds_on(tmp_path: Path) -> None:
    """As in the reference, which looks at its signature first: it has taken the place of another
    one that was announced.
    """
    forger = key_pair("a forger")
    forged = microblocks.assemble(
        version=5,
        reference=bytes(32),
        total_signature=bytes(64),
        generator=forger.public_key,
        transactions=(),
        signature=bytes(64),
        total_block_id=b"!" * 32,
        state_hash=None,
    )

    async def world() -> None:
        async with peers(tmp_path, 1) as (one,):
            one.mine(one.transfer())
            inv = messages.announce(
                one.owner.private_key,
                one.owner.public_key,
                forged.total_block_id,
                one.node.chain.last_block.id,
                ord("R"),
            )
            answer = messages.ProtobufMicroblock(microblocks.encode(forged))
            async with stranger(one) as (_, writer):
                writer.write(frames.encode(inv) + frames.encode(answer))
                await until(lambda: bool(one.service.blacklisted()), "the blame")

    asyncio.run(world())


@pytest.mark.parametrize(
    "harm", [noise, frames_of_noise, a_list_without_end, announcements_with_wrong_signatures]
)
def test_who_breaks_the_rules_is_refused_from_then_on(
    tmp_path: Path, harm: Callable[[random.Random], bytes]
) -> None:
    async def world() -> None:
        async with peers(tmp_path, 2) as (one, friend):
            join(friend, one)
            chance = random.Random(harm.__name__)
            async with stranger(one) as (reader, writer):
                for _ in range(20):
                    if reader.at_eof():
                        break
                    writer.write(harm(chance))
                    await asyncio.sleep(0)
                with contextlib.suppress(ConnectionError):
                    async with asyncio.timeout(PATIENCE):
                        while await reader.read(1 << 16):
                            pass
            assert [str(ip) for ip in one.service.blacklisted()] == ["127.9.9.9"]
            one.mine(one.transfer())
            await until(lambda: agree(one, friend), "what honest peers say")

    asyncio.run(world())


def test_questions_without_end_are_answered_in_their_turn(tmp_path: Path) -> None:
    """Who asks for everything at once and reads nothing holds neither memory nor the others."""

    async def world() -> None:
        async with peers(tmp_path, 2) as (one, friend):
            for _ in range(30):
                one.mine(*(one.transfer(amount) for amount in range(1, 20)))
            ids = [one.node.chain.meta(height).id for height in range(2, 31)]
            requests = b"".join(frames.encode(messages.GetBlock(each)) for each in ids) * 400
            async with stranger(one) as (_, writer):
                writer.write(requests)
                join(friend, one)
                await until(lambda: agree(one, friend), "the chain for somebody else")
                links = one.service._links.values()
                assert sum(link.transport.get_write_buffer_size() for link in links) < 40_000_000
                assert max(len(link._requests) for link in links) < 2_000

    asyncio.run(world())


def test_what_breaks_rules_without_state_is_not_taken_from_a_peer(tmp_path: Path) -> None:
    """The reference reads no such transaction, and blacklists who relays it; a block with one is
    refused.
    """

    def made(kind: int, payload: object, **envelope: object) -> AnyTransaction:
        now = system_clock()
        return signed(OWNERS[0], kind, payload, timestamp=now, version=3, **envelope)

    asset = issue.Issue(b"Gold", b"", 100, 9, True)
    pays = Transfer(address_of(OWNERS[1]), None, 7, b"")
    good = made(4, pays)
    wrong = (
        made(3, asset, fee=10**8),
        made(3, msgspec.structs.replace(asset, decimals=256), fee=10**8),
        made(4, msgspec.structs.replace(pays, amount=-7)),
        made(4, msgspec.structs.replace(pays, attachment=bytes(141))),
        msgspec.structs.replace(made(4, pays, fee=100_001), proofs=(*good.proofs, bytes(64)) * 5),
    )

    async def world() -> None:
        async with peers(tmp_path, 1) as (one,):
            one.mine()
            async with stranger(one) as (_, writer):
                one.service.jobs.set_ready()
                for each in (*wrong, good):
                    writer.write(wrap(31, codec.encode_protobuf(each)))
                await until(lambda: good.id in one.node.pool, "the good one")
            assert one.node.pool.transactions() == [good]

    asyncio.run(world())


def test_transactions_without_end_of_a_peer_have_a_limit(tmp_path: Path) -> None:
    async def world() -> None:
        async with peers(tmp_path, 1) as (one,):
            one.mine()
            junk = [wrap(31, random.Random(number).randbytes(200)) for number in range(5_000)]
            async with stranger(one) as (_, writer):
                one.service.jobs.set_ready()
                writer.write(b"".join(junk))
                await until(
                    lambda: (
                        one.service.core.traffic.messages_in["ProtobufTransaction"]
                        + one.service.core.traffic.dropped["ProtobufTransaction"]
                        >= 5_000
                    ),
                    "all of it",
                )
                assert one.service.core.relay.waiting <= 1_000
            await until(lambda: one.service.core.relay.waiting == 0, "the end of the checks")
            assert len(one.node.pool) == 0

    asyncio.run(world())


def test_the_debt_of_an_address_outlives_its_connections(tmp_path: Path) -> None:
    """Who comes back waits until the time is made up for that others of its address have taken."""

    async def world() -> None:
        async with peers(tmp_path, 2) as (one, friend):
            debts = one.service.debts
            async with stranger(one) as (_, writer):
                writer.write(wrap(1, b"") * 2_000)
                await until(lambda: bool(debts._paid_at.get("127.9.9.9")), "an account")
            debts.charge("127.9.9.9", 10_000)
            reader, writer = await asyncio.open_connection(
                one.where.host, one.where.port, local_addr=("127.9.9.9", 0)
            )
            writer.write(handshake.encode(GREETING))
            join(friend, one)
            await until(lambda: one.service.core.connected == 1, "somebody else")
            links = one.service._links.values()
            assert [link._intake.is_resting for link in links if link._inbound] == [True, False]
            assert not reader.at_eof() and one.service.core.connected == 1
            writer.close()

    asyncio.run(world())


def test_a_packet_of_a_peer_is_processed_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(turns, "ARRIVAL_SECONDS", 0.0)
    monkeypatch.setattr(turns, "DEBT_SECONDS", 1_000.0)
    count = 4_000

    async def world() -> None:
        async with peers(tmp_path, 1) as (one,):
            lengths: list[int] = []
            received = one.service.received

            def note(link: PeerSocket, data: bytes) -> None:
                lengths.append(len(data))
                received(link, data)

            vars(one.service)["received"] = note
            async with stranger(one) as (_, writer):
                writer.write(wrap(1, b"") * count)
                heard = one.service.core.traffic.messages_in
                await until(lambda: heard["GetPeers"] == count, "all of it")
            assert max(lengths) <= turns.PIECE_BYTES

    asyncio.run(world())


def test_a_long_message_is_copied_in_long_pieces(tmp_path: Path) -> None:
    async def world() -> None:
        async with peers(tmp_path, 1) as (one,):
            lengths: list[int] = []
            received = one.service.received

            def note(link: PeerSocket, data: bytes) -> None:
                lengths.append(len(data))
                received(link, data)

            vars(one.service)["received"] = note
            async with stranger(one) as (_, writer):
                writer.write(wrap(23, bytes(1_000_000)))
                await until(lambda: bool(one.service.blacklisted()), "the end of the message")
            assert sum(lengths) > 1_000_000 and len(lengths) < 1_000_000 // turns.PIECE_BYTES

    asyncio.run(world())
