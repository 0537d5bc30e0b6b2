"""What a process that only reads says is what the node itself says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from soliton.api.app import all_routes, build_app
from soliton.api.application import Application
from soliton.api.http import Request
from soliton.api.readers import (
    TRANSACTIONS,
    SubmittedTransaction,
    TransactionChannel,
    reader_routes,
    transaction_server,
)
from soliton.api.rest import transactions
from soliton.api.routes import Reads, Route
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.node.node import Node
from soliton.node.pool import PoolFull, UtxPool
from soliton.node.signatures import verified_messages
from soliton.web.channel import connect
from soliton.web.server import serve_locally
from soliton.web.upstream import Upstream
from tests.api.chain import RICH_ADDRESS, PrivateChain, context_of
from tests.api.client import KEY, call
from tests.api.test_route_examples import FAMILIES, Documented

JSON = {"Content-Type": "application/json"}


@pytest_asyncio.fixture
async def channel(chain: PrivateChain, tmp_path: Path) -> AsyncIterator[TransactionChannel]:
    """The way of a worker's transactions to the chain's own node."""
    server = transaction_server(chain.node)
    await server.open(str(tmp_path / "channel"))
    made = await connect(TRANSACTIONS, str(tmp_path / "channel"))
    yield made
    made.close()
    server.close()


@pytest_asyncio.fixture
async def reader(
    chain: PrivateChain, tmp_path: Path, channel: TransactionChannel
) -> AsyncIterator[Application]:
    """The application of a worker, with the chain's own node behind it."""
    path = str(tmp_path / "socket")
    running = await serve_locally(build_app(context_of(chain.node)), path)
    upstream = Upstream(path)
    adapt = partial(reader_routes, upstream=upstream, channel=channel)
    yield build_app(context_of(chain.node), adapt)
    upstream.close()
    await running.stop()


class OnlyChain:
    """What every process has of a node; of what only the node itself has it knows the names."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.asked: set[str] = set()

    def __getattr__(self, name: str) -> object:
        if name not in ("agent", "chain", "clock", "network", "settings", "store", "writes"):
            self.asked.add(name)
            raise AttributeError(name)
        return name != "writes" and getattr(self._node, name)


READ = [route for route in all_routes() if route.reads is not Reads.NODE]
UNKNOWN = (
    "4dyZVjLXkjakf9b6FYyGbptGj3wPPA6Xvthb4MBfP5d6",
    "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxG",
    "9",
)


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Documented]]:
    """A chain for each generation of the interface."""
    made = {name: Documented(tmp_path_factory.mktemp(name), name) for name in FAMILIES}
    yield made
    for each in made.values():
        each.chain.node.close()


@pytest.mark.parametrize("route", READ, ids=lambda route: f"{route.methods[0]} {route.path}")
@pytest.mark.parametrize("family", FAMILIES)
async def test_what_only_the_node_has_is_not_read(
    documented: dict[str, Documented], route: Route, family: str
) -> None:
    """Routes that say so are answered without the node, whether what they name exists or not."""
    if not route.is_of(family):
        return
    chain = documented[family]
    alone = OnlyChain(chain.chain.node)
    context = replace(context_of(chain.chain.node), node=alone)
    app = Application(context, (route,))
    body = b"" if route.body is None else chain.body(route.body, {})
    for instead in (None, *UNKNOWN, chain.waiting, chain.block):
        line = f"{route.methods[0]} {chain.target(route, instead)}"
        answer = await call(app, line, body, JSON)
        assert not alone.asked, (line, alone.asked)
        assert answer.status != 500, line


def test_a_route_that_asks_the_node_is_found_out(chain: PrivateChain) -> None:
    alone = OnlyChain(chain.node)
    request = Request("GET", "/transactions/unconfirmed/size")
    request.context = context_of(alone)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        transactions.unconfirmed_size(request)
    assert alone.asked == {"pool"}


ASKED = f"""
GET /blocks/height
GET /blocks/at/2
GET /addresses/balance/{RICH_ADDRESS}
GET /addresses
GET /wallet/seed
GET /transactions/unconfirmed
GET /transactions/unconfirmed/size
GET /transactions/status?id=4dyZVjLXkjakf9b6FYyGbptGj3wPPA6Xvthb4MBfP5d6
GET /peers/all
GET /debug/info
GET /debug/nothing
GET /nowhere
POST /blocks/height
GET /transactions/broadcast
DELETE /transactions/status/x
GET /addresses/data/{RICH_ADDRESS}/%FF
"""


@pytest.mark.parametrize("line", ASKED.strip().splitlines())
@pytest.mark.parametrize("key", ["", KEY])
async def test_the_same_answers(
    chain: PrivateChain, reader: Application, line: str, key: str
) -> None:
    chain.mine()
    chain.send(chain.transfer())
    headers = {"X-API-Key": key} if key else {}
    direct, there = (
        await call(chain.app, line, b"", headers),
        await call(reader, line, b"", headers),
    )
    assert (there.status, there.body) == (direct.status, direct.body)
    assert there.content_type == direct.content_type


async def test_transactions_are_checked_here_and_kept_there(
    chain: PrivateChain, reader: Application
) -> None:
    chain.mine()
    sent = [chain.transfer(amount=1), chain.data(a=1, b="x", c=True)]
    for transaction in sent:
        body = msgspec.json.encode(codec.to_json(transaction))
        answer = await call(reader, "POST /transactions/broadcast", body, JSON)
        assert answer.status == 200
        assert answer.json() == codec.to_json(transaction)
        again = await call(reader, "POST /transactions/broadcast", body, JSON)
        assert again.status == 200
    assert chain.node.pool.transactions() == sent
    traced = msgspec.json.encode(codec.to_json(chain.transfer(amount=7)))
    answer = await call(reader, "POST /transactions/broadcast?trace=true", traced, JSON)
    assert answer.status == 200 and answer.json()["trace"] == []  # type: ignore[index]


async def test_what_is_refused_is_refused_in_the_same_words(
    chain: PrivateChain, reader: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.mine()
    good = chain.transfer(amount=1)
    bad_signature = codec.with_proofs(good, (bytes(64),))
    poor = chain.transfer(amount=10**17)
    mined = chain.send(chain.transfer(amount=3))
    chain.mine()
    bodies = [msgspec.json.encode(codec.to_json(item)) for item in (bad_signature, poor, mined)]
    bodies += [b"{}", b"{", b"[]", b'{"type":4}', bodies[0].replace(b'"amount":1', b'"amount":-1')]
    for body in bodies:
        answers = [
            await call(app, "POST /transactions/broadcast", body, JSON)
            for app in (chain.app, reader)
        ]
        assert answers[0].status == answers[1].status == 400
        assert answers[0].body == answers[1].body
    assert len(chain.node.pool) == 0

    def full(*_arguments: object, **_more: object) -> None:
        raise PoolFull("Transaction pool size limit is reached")

    monkeypatch.setattr(UtxPool, "add", full)
    body = msgspec.json.encode(codec.to_json(good))
    direct = await call(chain.app, "POST /transactions/broadcast", body, JSON)
    there = await call(reader, "POST /transactions/broadcast", body, JSON)
    assert (there.status, there.body) == (direct.status, direct.body)


@pytest.mark.parametrize(("group", "group_bytes"), [(7, 1 << 20), (64, 1_000), (64, 1)])
async def test_what_comes_together_goes_together(
    chain: PrivateChain, reader: Application, channel: TransactionChannel, group: int,
    group_bytes: int,
) -> None:  # fmt: skip
    channel._spec = replace(TRANSACTIONS, group=group, group_bytes=group_bytes)
    chain.mine()
    sent = [chain.transfer(amount=number + 1) for number in range(40)]
    sent.insert(20, codec.with_proofs(sent[0], (bytes(64),)))
    bodies = [msgspec.json.encode(codec.to_json(item)) for item in sent]
    answers = await asyncio.gather(
        *(call(reader, "POST /transactions/broadcast", body, JSON) for body in bodies)
    )
    # The same transaction with another proof is one that the pool has.
    assert [answer.status for answer in answers] == [200] * 41
    assert chain.node.pool.transactions() == sent[:20] + sent[21:]
    wish = {**JSON, "Accept": "application/json;large-significand-format=string"}
    poor = msgspec.json.encode(codec.to_json(chain.transfer(amount=10**17)))
    direct = await call(chain.app, "POST /transactions/broadcast", poor, wish)
    there = await call(reader, "POST /transactions/broadcast", poor, wish)
    assert (there.status, there.body) == (direct.status, direct.body)
    assert there.content_type == direct.content_type


async def test_more_than_may_wait_are_told_so(
    chain: PrivateChain, reader: Application, channel: TransactionChannel
) -> None:
    channel._spec = replace(TRANSACTIONS, max_waiting=5, group=1)
    chain.mine()
    bodies = [
        msgspec.json.encode(codec.to_json(chain.transfer(amount=number + 1)))
        for number in range(12)
    ]
    answers = await asyncio.gather(
        *(call(reader, "POST /transactions/broadcast", body, JSON) for body in bodies)
    )
    refused = [answer for answer in answers if answer.status == 503]
    assert refused and all(answer.headers[b"retry-after"] == b"1" for answer in refused)
    assert len(chain.node.pool) == 12 - len(refused)


async def test_bytes_that_are_no_transaction_spoil_nothing_else(
    chain: PrivateChain, channel: TransactionChannel
) -> None:
    chain.mine()
    good = chain.transfer()
    sent = [(1, b"nonsense"), (3, codec.encode(good)), (2, b"\xff")]
    outcomes = await asyncio.gather(*(channel.ask(SubmittedTransaction(*each)) for each in sent))
    assert [item.status for item in outcomes] == [400, 200, 400]
    assert chain.node.pool.transactions() == [good]


async def test_a_fault_at_one_transaction_spoils_nothing_else(
    chain: PrivateChain, channel: TransactionChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.mine()
    sent = [chain.transfer(amount=number + 1) for number in range(5)]
    add = UtxPool.add

    def faulty(pool: UtxPool, transaction: AnyTransaction, **options: object) -> bool:
        if transaction.id == sent[2].id:
            raise RuntimeError("a fault of ours")
        return add(pool, transaction, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(UtxPool, "add", faulty)
    asked = (channel.ask(SubmittedTransaction(3, codec.encode(item))) for item in sent)
    outcomes = await asyncio.gather(*asked)
    assert [item.status for item in outcomes] == [200, 200, 500, 200, 200]
    assert msgspec.json.decode(outcomes[2].text)["message"] == "Error is unknown"
    assert chain.node.pool.transactions() == sent[:2] + sent[3:]


async def test_a_node_that_takes_no_more_leaves_nobody_waiting(
    chain: PrivateChain, reader: Application, channel: TransactionChannel
) -> None:
    chain.mine()
    channel.abort()
    body = msgspec.json.encode(codec.to_json(chain.transfer()))
    for _ in range(2):
        async with asyncio.timeout(60):
            answer = await call(reader, "POST /transactions/broadcast", body, JSON)
        assert (answer.status, answer.headers[b"retry-after"]) == (503, b"1")


def test_what_is_verified_before_its_turn(chain: PrivateChain) -> None:
    good = chain.transfer()
    assert verified_messages(good)
    assert not verified_messages(codec.with_proofs(good, (bytes(64),)))
    assert not verified_messages(codec.with_proofs(good, ()))
    assert not verified_messages(codec.with_proofs(good, (good.proofs[0], good.proofs[0])))


async def test_without_the_node_it_says_so(
    chain: PrivateChain, channel: TransactionChannel, tmp_path: Path
) -> None:
    upstream = Upstream(str(tmp_path / "nobody"))
    adapt = partial(reader_routes, upstream=upstream, channel=channel)
    alone = build_app(context_of(chain.node), adapt)
    answer = await call(alone, "GET /transactions/unconfirmed/size")
    assert (answer.status, answer.headers[b"retry-after"]) == (503, b"1")
    assert (await call(alone, "GET /blocks/height")).status == 200


async def test_before_each_request_it_looks(chain: PrivateChain) -> None:
    looked: list[int] = []
    app = build_app(replace(context_of(chain.node), refresh=lambda: looked.append(1)))
    await call(app, "GET /blocks/height")
    await call(app, "GET /blocks/height")
    assert len(looked) == 2
