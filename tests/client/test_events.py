"""Events: what the reader makes of bytes, and a stream of a devnet that is broken and goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from soliton import Account, AsyncNode, Event, Node, NodeBroken, NodeRefused, NotFound
from soliton.client.events import EventStream
from soliton.client.steps import Answer
from tests.client.breaking import BreakingProxy
from tests.e2e.programs import Program

# What a node sends: a comment, a block, a transaction, an event without a place, the end.
BYTES = (
    b": nothing else\n\n"
    b'event: block\nid: 5-a\ndata: {"height":5,"version":5,"timestamp":1,"reference":"r",'
    b'"generator":"g","signature":"s","nxt-consensus":{"base-target":1,"generation-signature":"x"}}\n\n'
    b'event: transaction\nid: 5-a-1\ndata: {"height":5,"index":0,"transaction":{"type":4,"id":"x",'
    b'"timestamp":2,"fee":3},"balances":[]}\n\n'
    b'event: left\ndata: {"id":"x","why":"mined","balances":[]}\n\n'
    b'event: closed\ndata: {"reason":"the node stops"}\n\n'
)


@pytest.mark.parametrize("size", [1, 7, 64, len(BYTES)])
def test_the_reader_takes_bytes_as_they_come(size: int) -> None:
    stream = EventStream()
    found: list[Event] = []
    for start in range(0, len(BYTES), size):
        found += stream.received(BYTES[start : start + size])
    assert [(each.kind, each.id) for each in found] == [
        ("block", "5-a"),
        ("transaction", "5-a-1"),
        ("left", None),
    ]
    block, transaction, left = found
    assert block.header is not None and block.header.height == block.height == 5
    assert transaction.transaction is not None and transaction.transaction.fee == 3
    assert left.transaction is None and left.header is None
    again = stream.request()
    assert ("Last-Event-ID", "5-a-1") in again.headers


def test_what_is_asked_for() -> None:
    stream = EventStream(("transaction",), addresses=["a", "b"], types=[4], since=7)
    assert stream.request().path == "/events?events=transaction&address=a&address=b&type=4&from=7"
    stream.received(b"event: synced\nid: place\ndata: {}\n\n")
    assert "from" not in stream.request().path
    pauses = [stream.lost() for _ in range(10)]
    assert pauses == sorted(pauses) and pauses[-1] == 10


def test_refusals() -> None:
    stream = EventStream()
    with pytest.raises(NotFound):
        stream.opened(Answer(404, b""))
    assert stream.opened(Answer(503, b"", {b"retry-after": b"2"})) == 2
    for nonsense in (b"-5", b"nan", b"x"):
        assert stream.opened(Answer(503, b"", {b"retry-after": nonsense})) == 0
    assert stream.opened(Answer(200, b"")) is None
    for bad in (b"event: x\ndata: [\n\n", b"event: x\ndata: 5\n\n"):
        with pytest.raises(NodeBroken):
            EventStream().received(bad)


@pytest.fixture
def breaking(program: Program) -> Iterator[BreakingProxy]:
    """Between client and node, with connections that break when a test says so."""
    with BreakingProxy(program.node_url) as proxy:
        yield proxy


async def test_a_stream_that_is_refused_says_why(program: Program) -> None:
    words = "no such event: rollback"
    with pytest.raises(NodeRefused, match=words):
        next(iter(Node(program.node_url).events("rollback")))
    async with AsyncNode(program.node_url) as node:
        with pytest.raises(NodeRefused, match=words):
            await anext(aiter(node.events("rollback")))


@pytest.mark.slow
def test_nothing_is_missed(breaking: BreakingProxy, alice: Account, bob: Account) -> None:
    node = Node(breaking.url)
    start = node.height()
    seen: list[str] = []
    ready = threading.Event()
    ids = [alice.transfer(bob, 1) for _ in range(30)]

    def follow() -> None:
        for event in Node(breaking.url).events("transaction", addresses=[bob], since=start):
            if event.kind == "synced":
                ready.set()
            if event.transaction is not None:
                seen.append(event.transaction.id)
            if seen and seen[-1] == ids[-1].id:
                return

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    assert ready.wait(60)
    for number, each in enumerate(ids):
        node.send(each)
        if number % 10 == 5:
            breaking.break_all()
    follower.join(60)
    assert not follower.is_alive()
    assert [each for each in seen if each in {one.id for one in ids}] == [each.id for each in ids]
    assert breaking.broken >= 3


@pytest.mark.slow
async def test_awaiting_goes_on_behind_a_place(
    program: Program, breaking: BreakingProxy, alice: Account, bob: Account
) -> None:
    async with AsyncNode(program.node_url) as node, AsyncNode(breaking.url) as through:
        place = None
        async with asyncio.timeout(60):
            async for event in through.events("block"):
                if event.kind == "synced":
                    place = event.id
                    break
            first = await node.send(alice.transfer(bob, 5))
            await first.wait()
            seen: list[str] = []
            second = first
            async for event in through.events("transaction", types=[4], after=place):
                if event.transaction is not None:
                    seen.append(event.transaction.id)
                    if len(seen) == 1:
                        breaking.break_all()
                        second = await node.send(alice.transfer(bob, 6))
                    else:
                        assert seen == [first.id, second.id]
                        return
