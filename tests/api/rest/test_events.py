"""Event streams: order, filters, resuming wherever a client left, forks, slow clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from soliton.api import event_stream
from soliton.api.event_ids import BlockBytes, Place, UnknownPlace, find_place
from soliton.chain.addresses import address_text
from soliton.crypto import base58
from tests.api.chain import AMOUNT, FEE, OTHER, OTHER_ADDRESS, RICH, RICH_ADDRESS, PrivateChain
from tests.api.streams import Event, Stream, short
from tests.node import forging
from tests.node.pools import refresh

Open = Callable[..., Awaitable[Stream]]
ALL = "/events?events=block,microblock,transaction,unconfirmed"


@pytest.fixture
async def opened(chain: PrivateChain) -> AsyncIterator[Open]:
    streams: list[Stream] = []

    async def make(target: str = ALL, **headers: str) -> Stream:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        stream = Stream(chain.app, target, named)
        streams.append(stream)
        await asyncio.sleep(0)
        return stream

    yield make
    for stream in streams:
        stream.reads.set()
        await stream.close()


async def test_a_transaction_from_the_pool_to_the_chain(chain: PrivateChain, opened: Open) -> None:
    stream = await opened()
    (synced,) = await stream.until("synced")
    assert stream.status == 200
    assert stream.headers[b"content-type"] == b"text/event-stream"
    assert stream.headers[b"cache-control"] == b"no-cache"
    assert synced.data["id"] == base58.encode(chain.node.chain.last_block.id)
    sent = chain.send(chain.transfer())
    waiting = await stream.event()
    assert waiting is not None and waiting.name == "unconfirmed" and waiting.id is None
    assert waiting.data["transaction"]["id"] == base58.encode(sent.id)
    balances = {row["address"]: row["balance"] for row in waiting.data["balances"]}
    assert balances[OTHER_ADDRESS] == AMOUNT
    chain.mine()
    block, transaction, left = [await stream.event() for _ in range(3)]
    assert block is not None and transaction is not None and left is not None
    assert [short(event) for event in (block, transaction, left)] == [
        "block 2 1",
        "transaction 2 0",
        "left mined",
    ]
    assert block.data == (await chain.get("/blocks/headers/last")).json()
    shown = await chain.get(f"/transactions/info/{waiting.data['transaction']['id']}")
    assert transaction.data["transaction"] == shown.json()
    snapshot: object = (await chain.get(f"/transactions/snapshot/{left.data['id']}")).json()
    assert isinstance(snapshot, dict) and transaction.data["balances"] == snapshot["balances"]


async def test_the_pool_of_a_newcomer(chain: PrivateChain, opened: Open) -> None:
    for _ in range(3):
        chain.send(chain.transfer())
    stream = await opened()
    assert await stream.names(4) == ["unconfirmed"] * 3 + ["synced 1 11"]


async def test_history_and_present_are_one(chain: PrivateChain, opened: Open) -> None:
    chain.send(chain.transfer())
    chain.mine()
    stream = await opened("/events?from=2")
    assert await stream.names(3) == ["block 2 1", "transaction 2 0", "synced 2 1"]
    chain.send(chain.transfer())
    chain.mine()
    assert await stream.names(2) == ["block 3 1", "transaction 3 0"]


async def test_many_who_read_what_has_been_take_turns(chain: PrivateChain, opened: Open) -> None:
    """Else everybody would wait for a piece of each of their streams, in every round."""
    for _ in range(70):
        chain.send(chain.transfer())
        chain.mine()
    readers = [
        asyncio.create_task((await opened("/events?from=1")).until("synced")) for _ in range(10)
    ]
    rounds = 0
    while not all(reader.done() for reader in readers):
        await asyncio.sleep(0)
        rounds += 1
    told = {len(reader.result()) for reader in readers}
    assert len(told) == 1 and told.pop() > 2 * 64
    # Three pieces each.
    assert rounds >= 2 * len(readers), rounds


async def test_many_who_hear_of_a_block_take_turns(chain: PrivateChain, opened: Open) -> None:
    """It wakes all of them in the same round of the event loop; what each wants takes its time."""
    streams = [await opened("/events?events=transaction") for _ in range(12)]
    for stream in streams:
        await stream.until("synced")
    for _ in range(5):
        chain.send(chain.transfer())
    chain.mine()
    readers = [asyncio.create_task(stream.names(5)) for stream in streams]
    rounds = 0
    while not all(reader.done() for reader in readers):
        await asyncio.sleep(0)
        rounds += 1
    assert {tuple(reader.result()) for reader in readers} == {
        tuple(f"transaction 2 {index}" for index in range(5))
    }
    assert rounds >= len(readers), rounds


async def test_microblocks(chain: PrivateChain, opened: Open) -> None:
    stream = await opened("/events")
    await stream.until("synced")
    chain.mine()
    assert await stream.names(1) == ["block 2 0"]
    chain.send(chain.transfer())
    forging.mine_micro(chain.node, RICH)
    found = await stream.event()
    assert found is not None and short(found) == "microblock 2 1 1"
    assert found.data["id"] == base58.encode(chain.node.chain.last_block.id)
    assert await stream.names(1) == ["transaction 2 0"]
    chain.send(chain.transfer())
    forging.mine_micro(chain.node, RICH)
    chain.mine()
    assert await stream.names(3) == ["microblock 2 2 1", "transaction 2 1", "block 3 0"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("events=transaction&type=12", ["transaction 2 2", "synced 2 3"]),
        ("events=transaction&type=12&type=4", [
            "transaction 2 0", "transaction 2 1", "transaction 2 2", "synced 2 3"]),
        (f"events=transaction&address={OTHER_ADDRESS}", [
            "transaction 2 0", "transaction 2 1", "synced 2 3"]),
        (f"events=transaction&type=12&address={OTHER_ADDRESS}", ["synced 2 3"]),
        (f"events=transaction&type=12&address={OTHER_ADDRESS}&address={RICH_ADDRESS}", [
            "transaction 2 2", "synced 2 3"]),
        ("events=block", ["block 2 3", "synced 2 3"]),
        ("events=microblock", ["synced 2 3"]),
        ("events=unconfirmed", ["synced 2 3"]),
    ],
)  # fmt: skip
async def test_filters(chain: PrivateChain, opened: Open, query: str, expected: list[str]) -> None:
    for transaction in (chain.transfer(), chain.transfer(), chain.data(a=1)):
        chain.send(transaction)
    chain.mine()
    stream = await opened(f"/events?{query}&from=2")
    assert await stream.names(len(expected)) == expected


async def test_filters_of_the_pool(chain: PrivateChain, opened: Open) -> None:
    stream = await opened(f"/events?events=unconfirmed&address={OTHER_ADDRESS}&type=4")
    await stream.until("synced")
    chain.send(chain.data(a=1))
    mine = chain.send(chain.transfer())
    found = await stream.event()
    assert found is not None and found.data["transaction"]["id"] == base58.encode(mine.id)
    chain.mine()
    assert await stream.names(1) == ["left mined"]


async def test_a_transaction_that_falls(chain: PrivateChain, opened: Open) -> None:
    chain.send(chain.transfer())
    chain.mine()
    chain.send(chain.transfer(keys=OTHER, to=RICH_ADDRESS, amount=AMOUNT - FEE))
    stream = await opened()
    await stream.until("synced")
    forging.roll_back(chain.node, 1, keep=False)
    back, left = await stream.event(), await stream.event()
    assert back is not None and short(back) == "rollback 1 11"
    assert left is not None and short(left) == "left invalid" and "transfer" in left.data["reason"]


async def every_place(chain: PrivateChain, opened: Open) -> list[Event]:
    """A chain of full and growing blocks, and all its events."""
    for count in (2, 0, 1):
        for _ in range(count):
            chain.send(chain.transfer())
        chain.mine()
    chain.send(chain.transfer())
    forging.mine_micro(chain.node, RICH)
    stream = await opened("/events?from=1")
    return await stream.until("synced")


async def test_resuming_after_every_event(chain: PrivateChain, opened: Open) -> None:
    events = await every_place(chain, opened)
    told = [event for event in events if event.name == "transaction"]
    assert len(told) == 11 + 4
    for number, event in enumerate(events):
        assert event.id is not None
        stream = await opened("/events", last_event_id=event.id)
        later = events[number + 1 :] or [events[-1]]
        assert await stream.until("synced") == later
        also = await opened(f"/events?lastEventId={event.id}")
        assert [each.data for each in await also.until("synced")][-1] == events[-1].data


async def test_resuming_after_a_restart_and_a_rollback(
    chain: PrivateChain, opened: Open, tmp_path: Path
) -> None:
    events = await every_place(chain, opened)
    last, second = events[-1].id, next(e.id for e in events if short(e) == "transaction 2 0")
    assert last is not None and second is not None
    forging.roll_back(chain.node, 2, keep=False)
    chain.send(chain.data(other=1))
    chain.mine()
    stream = await opened("/events", last_event_id=last)
    assert await stream.names(4) == [
        "rollback 2 2", "block 3 1", "transaction 3 0", "synced 3 1"]  # fmt: skip
    untouched = await opened("/events", last_event_id=second)
    assert await untouched.names(4) == [
        "transaction 2 1", "block 3 1", "transaction 3 0", "synced 3 1"]  # fmt: skip
    chain.node.close()
    again = PrivateChain(tmp_path)
    chain.node = again.node
    restarted = Stream(again.app, "/events", {"last-event-id": last})
    assert (await restarted.names(1)) == ["rollback 2 2"]
    await restarted.close()


async def test_final_blocks(chain: PrivateChain, opened: Open) -> None:
    """A block is final two below the last one; each is reported once, before the block."""
    chain.node.chain.max_rollback = 2
    for _ in range(3):
        chain.mine()

    def final(event: Event) -> str:
        return f"final {event.data['height']}" if event.name == "finalized" else short(event)

    stream = await opened("/events?events=block,finalized&from=3")
    events = await stream.until("synced")
    assert [final(event) for event in events] == [
        "block 3 0", "final 2", "block 4 0", "synced 4 0"]  # fmt: skip
    second = base58.encode(chain.node.chain.meta(2).id)
    assert events[1].data == {"height": 2, "id": second}
    assert events[-1].data["finalizedHeight"] == 2
    # A client may leave after any event, and misses none.
    for number, event in enumerate(events[:-1]):
        assert event.id is not None
        again = await opened("/events?events=block,finalized", last_event_id=event.id)
        found = [final(each) for each in await again.until("synced")]
        later = [final(each) for each in events[number + 1 :]]
        assert found == (["final 2", *later] if event.name == "finalized" else later)
    forging.roll_back(chain.node, 3, keep=False)
    chain.mine()
    chain.mine()
    found = [final(event) for event in [await stream.event() for _ in range(4)] if event]
    # Block 2 was final before the rollback and is still there.
    assert found == ["rollback 3 0", "block 4 0", "final 3", "block 5 0"]
    only = await opened("/events?events=finalized&from=4")
    assert [final(each) for each in await only.until("synced")] == [
        "final 2", "final 3", "synced 5 0"]  # fmt: skip
    forging.roll_back(chain.node, 1, keep=False)
    chain.mine()
    chain.mine()
    chain.mine()
    names = [final(event) for event in [await stream.event() for _ in range(5)] if event]
    assert names == ["rollback 1 11", "block 2 0", "block 3 0", "final 2", "block 4 0"]
    assert "finalized" not in [each.name for each in await (await opened()).until("synced")]


async def test_rollbacks_while_listening(chain: PrivateChain, opened: Open) -> None:
    stream = await opened("/events")
    await stream.until("synced")
    for _ in range(3):
        chain.send(chain.transfer())
        chain.mine()
    assert len(await stream.names(6)) == 6
    # Two rollbacks and a new block before the client looks: it hears of the deepest.
    forging.roll_back(chain.node, 3, keep=False)
    forging.roll_back(chain.node, 2, keep=False)
    chain.send(chain.data(a=1))
    chain.mine()
    assert await stream.names(3) == ["rollback 2 1", "block 3 1", "transaction 3 0"]


async def test_a_microblock_that_is_taken_off(chain: PrivateChain, opened: Open) -> None:
    stream = await opened("/events")
    await stream.until("synced")
    chain.mine()
    assert await stream.names(1) == ["block 2 0"]
    key_block = chain.node.chain.last_block
    for _ in range(2):
        chain.send(chain.transfer())
        forging.mine_micro(chain.node, RICH)
    assert await stream.names(3) == ["microblock 2 2 2", "transaction 2 0", "transaction 2 1"]
    place = chain.node.chain.last_block
    chain.node.chain.shorten(key_block.id)
    assert place is not chain.node.chain.last_block
    refresh(chain.node.pool)
    chain.mine()
    assert await stream.names(2) == ["rollback 2 0", "block 3 0"]


async def test_a_fork_below_all_that_an_id_names(chain: PrivateChain, opened: Open) -> None:
    for _ in range(4):
        chain.mine()
    block = BlockBytes(chain.node.chain, 5)
    height, count, told, digest, below = block.event_id(0, 0).split(".")
    forging.roll_back(chain.node, 1, keep=False)
    chain.mine()
    # Of the blocks that it names (4, 3, 1) only the genesis block is left.
    assert find_place(chain.node.chain, block.event_id(0, 0)) == (Place(1, 11), 11, True)
    wrong = f"{height}.{count}.{told}.{digest}.{'A' * len(below)}"
    answer = await chain.get("/events", **{"last-event-id": wrong})
    assert answer.status == 410
    assert answer.json() == {
        "error": 4100,
        "message": "cannot go on from there: the event belongs to no block of this chain, nor do "
        "those below it",
    }


async def test_too_old(chain: PrivateChain, monkeypatch: pytest.MonkeyPatch) -> None:
    old = BlockBytes(chain.node.chain, 1).event_id(11, 11)
    assert find_place(chain.node.chain, old) == (Place(1, 11), 11, False)
    for _ in range(4):
        chain.mine()
    monkeypatch.setattr("soliton.api.event_ids.MAX_HISTORY_BLOCKS", 2)
    answer = await chain.get("/events", **{"last-event-id": old})
    assert answer.status == 410
    assert b"too old: events go back to height 3" in answer.body
    for first in (2, 7):
        answer = await chain.get(f"/events?from={first}")
        assert answer.status == 410 and b"from can be 3 to 6 now" in answer.body


@pytest.mark.parametrize(
    "text",
    ["", "x", "1.2.3", "1.2.2.AAAA.AAAA.A", "a.0.0.AAAA.AAAA", "1.-1.0.AAAA.AAAA",
     "1.0.0.AAAAA.AAAA", "1.0.0.AAAA.AAAA", "1.0.0.A.", "9" * 11 + ".0.0.AAAA.", "1.0.0.é.é",
     "٣.0.0.AAAA.", "1." * 90],
)  # fmt: skip
async def test_what_is_no_id(chain: PrivateChain, text: str) -> None:
    with pytest.raises(UnknownPlace):
        find_place(chain.node.chain, text)


@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        ("events=blocks", 400, b"no such event: blocks"),
        ("address=abc", 400, b"invalid address"),
        ("&".join([f"address={RICH_ADDRESS}"] * 101), 400, b"max limit is 100"),
        ("type=x", 400, b"the parameter type is 'x': expected a whole number from 0 to 2147483647"),
        ("typ=4", 400, b"no parameter is called typ: there are events, address, type, from, last"),
        ("lastEventId=1", 410, b"no id of an event"),
        ("from=0", 410, b"from can be 1 to 2 now"),
    ],
)
async def test_refusals(chain: PrivateChain, query: str, status: int, text: bytes) -> None:
    answer = await chain.get(f"/events?{query}")
    assert answer.status == status and text in answer.body


async def test_a_slow_client_is_dropped_and_comes_back(
    chain: PrivateChain, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "MAX_WAITING", 5)
    stream = await opened()
    (synced,) = await stream.until("synced")
    stream.reads.clear()
    for _ in range(8):
        chain.send(chain.transfer())
        await asyncio.sleep(0)
    chain.mine()
    stream.reads.set()
    events = await stream.until("closed")
    assert "too slow" in events[-1].data["reason"]
    assert await stream.event() is None
    assert (
        chain.app.context.event_streams.dropped == 1 and chain.app.context.event_streams.open == 0
    )
    again = await opened(last_event_id=synced.id or "")
    assert [event.name for event in await again.until("synced")] == [
        "block", *["transaction"] * 8, "synced"]  # fmt: skip


async def test_slow_clients_of_the_chain_alone_keep_their_place(
    chain: PrivateChain, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "MAX_WAITING", 1)
    stream = await opened("/events?events=block")
    await stream.until("synced")
    stream.reads.clear()
    for _ in range(100):
        chain.mine()
        await asyncio.sleep(0)
    stream.reads.set()
    assert await stream.names(100) == [f"block {height} 0" for height in range(2, 102)]


async def test_a_quiet_stream_beats(
    chain: PrivateChain, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "HEARTBEAT_SECONDS", 0.01)
    stream = await opened("/events")
    assert await stream.line() == b"retry: 2000"
    assert (await stream.line() or b"").startswith(b"id: 1.11.")
    assert [await stream.line() for _ in range(2)] == [b": heartbeat"] * 2


async def test_the_end_of_the_node(chain: PrivateChain, opened: Open) -> None:
    stream = await opened("/events")
    await stream.until("synced")
    chain.node.request_stop()
    (closed,) = await stream.until("closed")
    assert closed.data == {"reason": "the node stops"}
    assert chain.app.context.event_streams.dropped == 0


async def test_a_limit_on_clients(
    chain: PrivateChain, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "MAX_STREAMS", 1)
    # Both are asked for before the first has begun.
    stream, late = await opened("/events"), await opened("/events")
    await stream.until("synced")
    assert (await late.body())["error"] == 5032 and late.status == 503
    refused = await chain.get("/events")
    assert (refused.status, refused.headers[b"retry-after"]) == (503, b"5")
    await stream.close()
    assert chain.app.context.event_streams.open == 0
    await (await opened("/events")).until("synced")


async def test_accounts_are_those_of_the_address_index(chain: PrivateChain) -> None:
    sent = chain.send(chain.transfer())
    moved = chain.node.pool.moved(sent.id)
    assert [address_text(account) for account in moved.accounts] == [RICH_ADDRESS, OTHER_ADDRESS]
