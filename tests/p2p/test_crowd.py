"""A crowd at the port for peers: limits by address and in all hold, and nobody honest waits.

Thousands of connections with ``SOLITON_TESTS=long``; ``benchmarks/crowd.py`` makes ten thousand at
a node in a process of its own, and measures.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from soliton.chain import protobuf, snapshots
from soliton.crypto.keys import key_pair
from soliton.p2p.history import ChainRequest
from soliton.steps import Steps
from soliton.sync import microblocks
from soliton.sync.peers import RESERVED
from soliton.wire import frames, handshake, messages
from soliton.wire.handshake import Handshake
from soliton.wire.messages import Message
from soliton.wire.versions import ANNOUNCED, Version
from tests.amounts import times
from tests.p2p.test_hostile import stranger
from tests.p2p.test_light import full_and_light
from tests.p2p.world import Peer, agree, join, peers, until

CONNECTIONS = times(400, 5_000)
OF_HOST = 10
AT_ONCE = 100
GREETING = handshake.encode(Handshake("wavesR", ANNOUNCED["waves"], "one of many", 7, None, 1))

REMEMBERED: dict[str, Any] = {"network__suspension_residence_time": "10m"}
"""A busy machine may take its time until it looks who was suspended."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def address(number: int) -> str:
    """``OF_HOST`` of them share one."""
    host = number // OF_HOST
    return f"127.8.{host // 200}.{host % 200 + 1}"


@asynccontextmanager
async def crowd(to: Peer, count: int, begins: bytes = b"") -> AsyncIterator[list[Streams]]:
    """So many connections, each of which sends the same."""
    gate = asyncio.Semaphore(AT_ONCE)
    found: list[Streams] = []

    async def connect(number: int) -> None:
        async with gate:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection(
                    to.where.host, to.where.port, local_addr=(address(number), 0)
                )
                found.append((reader, writer))
                writer.write(begins)

    try:
        await asyncio.gather(*map(connect, range(count)))
        yield found
    finally:
        for _, writer in found:
            writer.transport.abort()


def inbound(peer: Peer) -> Counter[str]:
    """Connections of others by their addresses."""
    found = peer.service.core.book.connections.values()
    return Counter(str(each.address.ip) for each in found if each.inbound)


def held(peer: Peer) -> int:
    """Bytes of peers that are no message yet."""
    return sum(peer.service.core.buffered(each) for each in peer.service.core.book.connections)


def test_limits_hold_for_each_address_and_for_all(tmp_path: Path) -> None:
    async def world() -> None:
        async with peers(tmp_path, 2) as (one, friend):
            join(one, friend)
            await until(lambda: one.service.core.connected == 1, "the friend")
            most: Counter[str] = Counter()
            opened = one.service.opened

            def look(*arguments: object, **options: object) -> None:
                opened(*arguments, **options)  # type: ignore[arg-type]
                there = inbound(one)
                most["in all"] = max(most["in all"], there.total())
                most["of one"] = max(most["of one"], *there.values(), 0)

            vars(one.service)["opened"] = look
            async with crowd(one, CONNECTIONS, GREETING[:-1]) as found:
                assert len(found) > CONNECTIONS // 2
                limits = one.service.core.book.settings
                room = limits.max_inbound + RESERVED
                await until(lambda: most["in all"] == room, "a full house")
                one.mine(one.transfer())
                await until(lambda: agree(one, friend), "what the friend is told")
                assert most == {"in all": room, "of one": limits.max_of_host}
                assert held(one) <= room * handshake.MAX_BYTES
                # None of the crowd introduces itself, so they give way.
                async with stranger(one):
                    await until(lambda: one.service.core.connected == 2, "somebody who does")
            await until(lambda: not inbound(one), "the end of the crowd")
            async with stranger(one):
                await until(lambda: inbound(one).total() == 1, "somebody new")

    asyncio.run(world())


def test_who_says_hello_letter_by_letter_has_to_go(tmp_path: Path) -> None:
    async def world() -> None:
        async with peers(tmp_path, 1, network__handshake_timeout="1s", **REMEMBERED) as (one,):
            async with crowd(one, 150) as found:
                for at in range(len(GREETING) - 1):
                    for _, writer in found:
                        writer.write(GREETING[at : at + 1])
                    await asyncio.sleep(0.05)
                    if at > 10 and not inbound(one):
                        break
                await until(lambda: not inbound(one), "the end of their time")
            reasons = {each.reason for each in one.service.suspended().values()}
            assert reasons == {"there was no handshake"}
            async with stranger(one):
                await until(lambda: one.service.core.connected == 1, "somebody with a handshake")

    asyncio.run(world())


def announcements(count: int) -> bytes:
    """Rightly signed, of microblocks that nobody will ever see."""
    made = []
    for number in range(count):
        total, before = (bytes((kind,)) * 24 + number.to_bytes(8, "big") for kind in b"tr")
        pair = key_pair("flood")
        made.append(
            messages.announce(pair.private_key, pair.public_key, total, before, ord("R"), bytes(64))
        )
    return b"".join(map(frames.encode, made))


def test_announcements_without_end_suspend(tmp_path: Path) -> None:
    async def world() -> None:
        async with peers(tmp_path, 2, **REMEMBERED) as (one, friend):
            join(one, friend)
            flood = announcements(microblocks.MAX_ANNOUNCED_OF_PEER + 1)
            async with stranger(one) as (reader, writer):
                writer.write(flood)
                with contextlib.suppress(ConnectionError):
                    while await reader.read(1 << 16):
                        pass
            reasons = {str(ip): each.reason for ip, each in one.service.suspended().items()}
            assert "too many microblocks" in reasons["127.9.9.9"]
            # Whom only one had announced, nobody remembers.
            assert not one.service.core.microblocks._announced
            one.mine(one.transfer())
            await until(lambda: agree(one, friend), "what honest peers say")

    asyncio.run(world())


def test_ids_without_end_cost_their_sender_and_nobody_else(tmp_path: Path) -> None:
    """Answers that nobody asked for, and questions about blocks that there are not."""

    async def world() -> None:
        async with peers(tmp_path, 2) as (one, friend):
            join(one, friend)
            ids = tuple(number.to_bytes(32, "big") for number in range(100))
            flood = frames.encode(messages.BlockIds(ids)) + frames.encode(messages.GetBlockIds(ids))
            async with stranger(one) as (_, writer):
                for _ in range(20):
                    writer.write(flood * 100)
                one.mine(one.transfer())
                await until(lambda: agree(one, friend), "what honest peers say")
                links = one.service._links.values()
                assert max(len(link._requests) for link in links) < 2_000
                assert one.service.core.loader.busy_with is None

    asyncio.run(world())


MANY_EMPTY = protobuf.delimited(2, b"") * 8_000_000
ONE_OF_EMPTY = protobuf.delimited(2, b"\x0a\x00" * 8_000_000)


@pytest.mark.parametrize(
    ("bomb", "reason"),
    [(MANY_EMPTY, "more than 65535 transactions"), (ONE_OF_EMPTY, "16000000 bytes")],
    ids=["many", "one"],
)
def test_bombs_of_snapshots_take_no_memory(tmp_path: Path, bomb: bytes, reason: str) -> None:
    async def world() -> None:
        async with full_and_light(tmp_path) as (full, light):
            full.mine(light.transfer())
            honest = full.service.history.answering

            def lie(request: ChainRequest, version: Version) -> Steps[Message | None]:
                answer = yield from honest(request, version)
                if isinstance(answer, messages.BlockSnapshot):
                    head = protobuf.delimited(1, snapshots.peek_id(answer.data))
                    return messages.BlockSnapshot(head + bomb)
                return answer

            vars(full.service.history)["answering"] = lie
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            join(light, full)
            await until(lambda: bool(light.service.blacklisted()), "the blame")
            (kept,) = light.service.blacklisted().values()
            assert reason in kept.reason
            # It comes through this process, in both directions; read, it takes a gigabyte.
            more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            assert more < 500_000
            assert light.node.chain.height == 1

    asyncio.run(world())
