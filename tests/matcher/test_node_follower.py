"""Following a node: by its events, and by asking, whatever happens to its chain meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.crypto.hashes import blake2b256
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.event_stream import EventStream
from soliton.matcher.http_client import HttpNodeClient, refusal
from soliton.matcher.node_client import Broadcast, ChainStatus, NodeUpdate
from soliton.matcher.polling import Poller
from soliton.matcher.settings import NodeAccess
from soliton.web.client import HttpClient
from tests.matcher.kit import ALICE, CHAIN_ID, address_of, eventually
from tests.matcher.test_settlement import transaction

ADDRESS = base58.encode(address_of(ALICE))
FIRST, SECOND = transaction(1), transaction(2)
FAILED = "script_execution_failed"


def name_of(height: int, fork: str = "") -> bytes:
    return blake2b256(f"block {height} {fork}".encode())


def status(height: int, fork: str = "") -> ChainStatus:
    return ChainStatus(height, name_of(height, fork))


# --- polling --------------------------------------------------------------------------------------


class Chain:
    """A node's answers: blocks by height as (fork, transactions), and a pool."""

    def __init__(self) -> None:
        self.blocks: dict[int, tuple[str, list[AnyTransaction]]] = {
            height: ("", []) for height in range(1, 6)
        }
        self.statuses: dict[bytes, str] = {}
        self.pool: list[AnyTransaction] = []
        self.final: tuple[int, str] | None = None
        self.down = False
        self.broken: list[str] = []

    def _block(self, height: int) -> dict[str, Any]:
        fork, transactions = self.blocks[height]
        return {
            "height": height,
            "id": base58.encode(name_of(height, fork)),
            "reference": base58.encode(name_of(height - 1, self._fork(height - 1))),
            "transactions": [
                codec.to_json(each)
                | (
                    {"applicationStatus": self.statuses[each.id]}
                    if each.id in self.statuses
                    else {}
                )
                for each in transactions
            ],
        }

    def _fork(self, height: int) -> str:
        return self.blocks[height][0] if height in self.blocks else ""

    async def get(self, path: str) -> Any:
        if self.down or any(part in path for part in self.broken):
            raise NodeUnavailable("down")
        match path.strip("/").split("/"):
            case ["blocks", "headers", "last"]:
                return self._block(max(self.blocks))
            case ["blocks", "headers", "finalized"]:
                if self.final is None:
                    raise NodeUnavailable("the node answers 400: invalid block id")
                height, fork = self.final
                return {"height": height, "id": base58.encode(name_of(height, fork))}
            case ["blocks", "at", height]:
                return self._block(int(height))
            case ["blocks", "headers", "seq", first, last]:
                return [self._block(height) for height in range(int(first), int(last) + 1)]
            case _:
                return [codec.to_json(each) for each in self.pool]


@asynccontextmanager
async def polled(chain: Chain) -> AsyncIterator[Callable[[], Any]]:
    updates = Poller(chain.get, 0.001, CHAIN_ID).updates()

    async def next_update() -> NodeUpdate:
        return await asyncio.wait_for(anext(updates), 60)

    yield next_update
    await updates.aclose()


async def test_polling_sees_blocks_the_pool_and_forks() -> None:
    chain = Chain()
    chain.pool = [FIRST]
    async with polled(chain) as following:
        update = await following()
        assert update == NodeUpdate(status(5), appeared=(FIRST,), changed=None, resumed=True)
        chain.blocks[6], chain.pool = ("", [FIRST]), [SECOND]
        assert await following() == NodeUpdate(
            status(6),
            confirmed=((FIRST.id, 6),),
            appeared=(SECOND,),
            vanished=(FIRST.id,),
            changed=None,
        )
        # The last block grows by a microblock: it has another name, but nothing was lost.
        chain.blocks[6], chain.pool = ("grown", [FIRST, SECOND]), []
        update = await following()
        assert (update.rolled_back_to, update.status) == (None, status(6, "grown"))
        assert set(update.confirmed) == {(FIRST.id, 6), (SECOND.id, 6)}
        assert update.vanished == (SECOND.id,)
        # Two blocks are replaced, and one of the transactions is in none of them.
        chain.blocks[5], chain.blocks[6] = ("b", []), ("b", [SECOND])
        update = await following()
        assert (update.rolled_back_to, update.confirmed) == (4, ((SECOND.id, 6),))


async def test_polling_tells_the_final_block_of_the_chain_that_it_has_read() -> None:
    chain = Chain()
    chain.final = (3, "")
    async with polled(chain) as following:
        assert (await following()).finalized == 3
        # Another chain has taken over since the last block was read.
        chain.blocks[6], chain.final = ("", []), (4, "fork")
        assert (await following()).finalized == 0
        chain.blocks[7], chain.final = ("", []), (5, "")
        assert (await following()).finalized == 5
        # A node that knows of no finality, or has none.
        chain.blocks[8], chain.final = ("", []), None
        assert (await following()).finalized == 0


async def test_polling_tells_what_was_not_executed() -> None:
    chain = Chain()
    async with polled(chain) as following:
        await following()
        chain.statuses = {FIRST.id: FAILED, SECOND.id: "succeeded"}
        chain.blocks[6] = ("", [FIRST, SECOND])
        update = await following()
        assert update.confirmed == ((FIRST.id, 6), (SECOND.id, 6))
        assert update.failures == {FIRST.id: FAILED}
        # In a fork it is executed.
        chain.statuses = {}
        chain.blocks[6] = ("b", [FIRST])
        update = await following()
        assert (update.confirmed, update.failures) == (((FIRST.id, 6),), {})


async def test_polling_sees_a_rollback_below_its_start() -> None:
    """Blocks from before the start may go as others may."""
    chain = Chain()
    async with polled(chain) as following:
        await following()
        del chain.blocks[5], chain.blocks[4]
        update = await following()
        assert (update.rolled_back_to, update.status) == (3, status(3))
        # The transactions of block 3 were never read: it may have lost one.
        chain.blocks[3] = ("b", [])
        assert (await following()).rolled_back_to == 2


async def test_polling_says_when_it_cannot_know_what_happened() -> None:
    chain = Chain()
    async with polled(chain) as following:
        assert not (await following()).missed
        for height in range(1, 6):
            chain.blocks[height] = ("another chain", [])
        update = await following()
        assert update.missed and update.changed is None
        chain.blocks |= {height: ("", []) for height in range(6, 300)}
        assert (await following()).missed
        chain.blocks[300] = ("", [FIRST])
        update = await following()
        assert (update.missed, update.confirmed) == (False, ((FIRST.id, 300),))


@pytest.mark.parametrize("broken", ["/blocks/at/5", "/blocks/at/6", "/blocks/headers/seq"])
async def test_what_polling_could_not_read_is_told_later(broken: str) -> None:
    """A fork whose blocks come only at the second attempt is a fork all the same."""
    chain = Chain()
    chain.blocks[5] = ("", [FIRST])
    async with polled(chain) as following:
        await following()
        chain.broken = [broken]
        chain.blocks[4], chain.blocks[5], chain.blocks[6] = ("b", []), ("b", []), ("b", [SECOND])
        waiting = asyncio.create_task(following())
        await asyncio.sleep(0.02)
        assert not waiting.done()
        chain.broken = []
        update = await waiting
        assert (update.rolled_back_to, update.confirmed) == (3, ((SECOND.id, 6),))


async def test_blocks_of_two_chains_are_not_taken_for_one() -> None:
    """The chain may become another one between two answers."""

    class Turning(Chain):
        async def get(self, path: str) -> Any:
            answer = await super().get(path)
            if path == "/blocks/at/6" and self.blocks[6][0] == "":
                self.blocks[6], self.blocks[7] = ("b", []), ("b", [SECOND])
            return answer

    chain = Turning()
    async with polled(chain) as following:
        await following()
        chain.blocks[6], chain.blocks[7] = ("", [FIRST]), ("", [])
        update = await following()
        assert update.status == status(7, "b")
        assert update.confirmed == ((SECOND.id, 7),)


async def test_polling_goes_on_after_an_interruption() -> None:
    chain = Chain()
    async with polled(chain) as following:
        await following()
        chain.down = True
        waiting = asyncio.create_task(following())
        await asyncio.sleep(0.02)
        assert not waiting.done()
        chain.down = False
        assert (await waiting).changed is None


@pytest.mark.parametrize("header", [{}, {"height": 1}, {"height": "x", "id": "y"}, None, {"id": 5}])
async def test_senseless_blocks_are_no_answer(header: Any) -> None:
    class Senseless(Chain):
        async def get(self, path: str) -> Any:
            return header

    with pytest.raises(NodeUnavailable):
        await Poller(Senseless().get, 0.001, CHAIN_ID)._poll(interrupted=True)


# --- events ---------------------------------------------------------------------------------------


def event(name: str, data: dict[str, Any], place: str = "") -> bytes:
    head = f"id: {place}\n" if place else ""
    return f"{head}event: {name}\ndata: {json.dumps(data)}\n\n".encode()


def tip(height: int, count: int, fork: str = "") -> dict[str, Any]:
    name = base58.encode(name_of(height, fork))
    return {"height": height, "id": name, "transactionCount": count}


def block(height: int, fork: str = "") -> bytes:
    header = tip(height, 0, fork) | {"generator": ADDRESS}
    return event("block", header, f"b{height}{fork}")


def mined(height: int, index: int, each: AnyTransaction, status: str | None = None) -> bytes:
    balances = [{"address": ADDRESS, "asset": None, "balance": 1}]
    outcome = {} if status is None else {"applicationStatus": status}
    shown = {"height": height, "index": index, "transaction": codec.to_json(each) | outcome}
    return event("transaction", shown | {"balances": balances}, f"t{height}.{index}")


class Node:
    """A server of events: one script of bytes for each connection, with what it was asked."""

    def __init__(self, *scripts: bytes) -> None:
        self.scripts = list(scripts)
        self.asked: list[str] = []
        self.handling = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.handling += 1
        try:
            await self._answer(reader, writer)
        finally:
            writer.close()
            self.handling -= 1

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(head.split(b" ", 2)[1].decode())
        script = self.scripts.pop(0) if self.scripts else b""
        if script.startswith(b"HTTP"):
            writer.write(script)
        else:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + script)
            if not self.scripts:
                await reader.read()


@asynccontextmanager
async def streamed(node: Node, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EventStream]:
    monkeypatch.setattr("soliton.matcher.event_stream._RETRY_SECONDS", 0.01)
    server = await asyncio.start_server(node.handle, "127.0.0.1", 0)
    http = HttpClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")

    async def now() -> ChainStatus:
        return status(1)

    yield EventStream(http, now, CHAIN_ID)
    http.close()
    server.close()
    await eventually(lambda: not node.handling)


async def all_of(stream: EventStream, enough: Callable[[list[NodeUpdate]], bool]) -> NodeUpdate:
    """Everything that a stream tells until it is enough, as one update."""
    found: list[NodeUpdate] = []
    async with asyncio.timeout(60), aclosing(stream.updates()) as updates:
        async for update in updates:
            found.append(update)
            if enough(found):
                break
    back = [each.rolled_back_to for each in found if each.rolled_back_to is not None]
    return NodeUpdate(
        status=found[-1].status,
        rolled_back_to=min(back, default=None),
        confirmed=tuple(pair for each in found for pair in each.confirmed),
        appeared=tuple(one for each in found for one in each.appeared),
        vanished=tuple(one for each in found for one in each.vanished),
        changed=None,
        failures=found[-1].failures,
    )


async def test_events_tell_what_was_not_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of what stays of a block that lost a microblock, and no more once it is executed."""
    start = event("synced", tip(5, 0), "s5") + block(6) + mined(6, 0, FIRST, FAILED)
    cut = event("rollback", tip(6, 1, "cut"), "r6")
    node = Node(start + mined(6, 1, SECOND, "elided"))
    async with streamed(node, monkeypatch) as stream:
        told = await all_of(stream, lambda found: (SECOND.id, 6) in found[-1].confirmed)
    assert told.failures == {FIRST.id: FAILED, SECOND.id: "elided"}
    node = Node(start + mined(6, 1, SECOND, "succeeded") + cut)
    async with streamed(node, monkeypatch) as stream:
        told = await all_of(stream, lambda found: found[-1].status == status(6, "cut"))
    assert (told.confirmed[-1], told.failures) == ((FIRST.id, 6), {FIRST.id: FAILED})
    again = event("rollback", tip(5, 0), "r5") + block(6, "b") + mined(6, 0, FIRST, "succeeded")
    node = Node(start + again)
    async with streamed(node, monkeypatch) as stream:
        told = await all_of(stream, lambda found: found[-1].status == status(6, "b"))
    assert (told.confirmed[-1], told.failures) == ((FIRST.id, 6), {})


async def test_events_become_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = {"transaction": codec.to_json(FIRST), "balances": []}
    node = Node(
        event("unconfirmed", waiting)
        + event("synced", tip(5, 0), "s5")
        + b": a comment\n\n"
        + block(6)
        + mined(6, 0, FIRST)
        + event("left", {"id": base58.encode(FIRST.id), "why": "mined", "balances": []})
        + event("microblock", tip(6, 2, "grown") | {"added": 1})
        + mined(6, 1, SECOND)
    )
    async with streamed(node, monkeypatch) as stream:
        told = await all_of(stream, lambda found: (SECOND.id, 6) in found[-1].confirmed)
    assert told.status == status(6, "grown")
    assert told.confirmed == ((FIRST.id, 6), (SECOND.id, 6))
    assert {each.id for each in told.appeared} <= {FIRST.id}


async def test_events_tell_the_final_block_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the node reports as final is final on the chain that the update describes."""
    start = event("synced", tip(5, 0) | {"finalizedHeight": 2}, "s5")
    more = event("finalized", tip(4, 0), "f4") + block(6)
    back = event("rollback", tip(3, 0), "r3")
    resumed = event("synced", tip(3, 0), "s3") + block(4, "b")
    node = Node(start)
    async with streamed(node, monkeypatch) as stream, aclosing(stream.updates()) as updates:
        assert (await asyncio.wait_for(anext(updates), 60)).finalized == 2
    for script, height, final in ((start + more, 6, 4), (start + more + back, 3, 3)):
        node = Node(script)
        async with streamed(node, monkeypatch) as stream, aclosing(stream.updates()) as updates:
            async with asyncio.timeout(60):
                async for update in updates:
                    if (update.status.height, update.finalized) == (height, final):
                        break
    # An older node does not tell it.
    node = Node(start + more, resumed)
    async with streamed(node, monkeypatch) as stream, aclosing(stream.updates()) as updates:
        async with asyncio.timeout(60):
            async for update in updates:
                if (update.status, update.finalized) == (status(4, "b"), 0):
                    break


async def test_an_event_that_was_cut_off_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its id stood before its data, and does not mean that they came."""
    whole = mined(6, 0, FIRST)
    for cut in (whole.index(b"event:"), whole.index(b"data:"), len(whole) - 40, len(whole) - 1):
        node = Node(
            event("synced", tip(5, 0), "s5") + block(6) + whole[:cut],
            event("synced", tip(6, 0), "s6") + whole,
        )
        async with streamed(node, monkeypatch) as stream:
            told = await all_of(stream, lambda found: (FIRST.id, 6) in found[-1].confirmed)
        assert told.confirmed == ((FIRST.id, 6),)
        assert [each.partition("lastEventId=")[2] for each in node.asked] == ["", "b6"]


async def test_one_that_comes_again_and_leaves_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a break the pool is sent anew; what then leaves it at once was known before."""
    waiting = {"transaction": codec.to_json(FIRST), "balances": []}
    left = event("left", {"id": base58.encode(FIRST.id), "why": "invalid", "balances": []})
    node = Node(
        event("unconfirmed", waiting) + event("synced", tip(5, 0), "s5"),
        event("unconfirmed", waiting) + left + event("synced", tip(5, 0), "s5"),
    )
    async with streamed(node, monkeypatch) as stream:
        told = await all_of(stream, lambda found: bool(found[-1].vanished))
    assert told.vanished == (FIRST.id,)


async def test_one_that_cannot_be_read_is_left_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    strange = {"transaction": codec.to_json(FIRST) | {"type": 99}, "balances": []}
    node = Node(event("unconfirmed", strange) + event("synced", tip(5, 0), "s5") + block(6))
    async with streamed(node, monkeypatch) as stream:
        told = await all_of(stream, lambda found: found[-1].status.height == 6)
    assert told.appeared == ()
    assert len(node.asked) == 1


async def test_a_rollback_into_a_block_from_before_the_stream_has_to_be_asked_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = Node(
        event("synced", tip(5, 3), "s5")
        + mined(5, 3, FIRST)
        + event("rollback", tip(5, 3, "cut"), "r")
    )
    missed: list[bool] = []

    def enough(found: list[NodeUpdate]) -> bool:
        missed.append(found[-1].missed)
        return found[-1].rolled_back_to is not None

    async with streamed(node, monkeypatch) as stream:
        told = await all_of(stream, enough)
    assert (told.rolled_back_to, missed[-1]) == (4, True)


async def test_a_rollback_may_cut_the_last_block(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(
        event("synced", tip(5, 0), "s5")
        + block(6)
        + mined(6, 0, FIRST)
        + mined(6, 1, SECOND)
        + event("rollback", tip(6, 1, "cut"), "r")
    )
    async with streamed(node, monkeypatch) as stream:
        told = await all_of(stream, lambda found: found[-1].rolled_back_to is not None)
    assert (told.status, told.rolled_back_to) == (status(6, "cut"), 5)
    assert told.confirmed[-1] == (FIRST.id, 6)


async def test_a_broken_stream_goes_on_behind_its_last_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting = {"transaction": codec.to_json(FIRST), "balances": []}
    node = Node(
        event("unconfirmed", waiting) + event("synced", tip(5, 0), "s5") + block(6),
        b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
        event("synced", tip(7, 0), "s7") + block(8),
    )
    async with streamed(node, monkeypatch) as stream:
        told = await all_of(stream, lambda found: found[-1].status.height == 8)
    # It is not among those that the node sent again, so it has left the pool.
    assert FIRST.id in told.vanished or FIRST not in told.appeared
    assert [each.partition("lastEventId=")[2] for each in node.asked] == ["", "b6", "b6"]


async def test_a_place_that_is_too_old_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = b'HTTP/1.1 410 Gone\r\nContent-Length: 14\r\n\r\n{"error":4100}'
    node = Node(
        event("synced", tip(5, 0), "s5"),
        gone,
        event("synced", tip(70, 0), "s70"),
    )
    missed: list[bool] = []

    def enough(found: list[NodeUpdate]) -> bool:
        missed.append(found[-1].missed)
        return found[-1].status.height == 70

    async with streamed(node, monkeypatch) as stream:
        told = await all_of(stream, enough)
    assert told.changed is None
    assert any(missed)
    assert [each.partition("lastEventId=")[2] for each in node.asked] == ["", "s5", ""]


@pytest.mark.parametrize(
    ("answer", "there"),
    [
        (b"", True),
        (b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", True),
    ],
)
async def test_whether_a_node_has_events(
    answer: bytes, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with streamed(Node(answer, b""), monkeypatch) as stream:
        assert await stream.is_there() is there


@pytest.mark.parametrize(
    "data", ["x", "[]", "{}", '{"height": 1}', '{"height": 1, "id": "0"}', "[" * 100_000]
)
async def test_events_that_are_none_end_the_stream(
    data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = f"event: block\ndata: {data}\n\n".encode()
    node = Node(
        event("synced", tip(5, 0), "s5") + bad + block(99), event("synced", tip(6, 0), "s6")
    )
    async with streamed(node, monkeypatch) as stream:
        told = await all_of(stream, lambda found: found[-1].status.height == 6)
    assert told.status == status(6)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "result"),
    [
        ("Transaction x is already in the state on a height of 5", Broadcast.CONFIRMED),
        ("Transaction pool size limit is reached", Broadcast.LATER),
        ("Not enough connections with peers (1) to accept transaction", Broadcast.LATER),
        (
            "Transaction timestamp 9 is more than 5400000ms in the future relative to block 5",
            Broadcast.LATER,
        ),
        (
            "Transaction timestamp 5 is more than 7200000ms in the past relative to block 9",
            Broadcast.TOO_LATE,
        ),
        ("Too much buy. Already filled volume for the order: 5", Broadcast.NOT_YET),
        ("State check failed. Reason: negative asset balance: …", Broadcast.NOT_YET),
        ("words that nobody here has read before", Broadcast.NOT_YET),
        ("Transaction is not allowed by account-script", Broadcast.FINAL),
    ],
)
def test_what_refusals_mean(words: str, result: Broadcast) -> None:
    assert refusal(words).result is result


@pytest.mark.parametrize(
    ("status", "body", "result"),
    [
        (200, b"{}", Broadcast.UNCONFIRMED),
        (400, b'{"error": 112, "message": "not allowed by script"}', Broadcast.FINAL),
        (400, b"<html>Bad Request</html>", Broadcast.OPERATOR),
        (301, b"", Broadcast.OPERATOR),
        (401, b"", Broadcast.OPERATOR),
        (403, b"<html>Forbidden</html>", Broadcast.OPERATOR),
        (404, b'{"message": "not allowed by the proxy"}', Broadcast.OPERATOR),
        (413, b"Request Entity Too Large", Broadcast.OPERATOR),
        (429, b"", Broadcast.LATER),
        (502, b"<html>Bad Gateway</html>", Broadcast.LATER),
        (503, b"", Broadcast.LATER),
    ],
)
async def test_only_the_node_itself_refuses_for_good(
    status: int, body: bytes, result: Broadcast
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    client = HttpNodeClient(NodeAccess(url=url), CHAIN_ID)
    assert (await client.broadcast(FIRST)).result is result
    await client.close()
    server.close()
