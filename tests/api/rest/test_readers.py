"""What a process that only reads says is what the node itself says."""

from __future__ import annotations

import asyncio
import inspect
import re
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from soliton.api import readers
from soliton.api.app import all_routes, build_app
from soliton.api.asgi import Application
from soliton.api.readers import HANDOVER_PATH, Handed, only_reads, reader_routes, writer_routes
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.node.pool import PoolFull, UtxPool
from soliton.node.signatures import verified_messages
from soliton.web.server import serve_locally
from soliton.web.upstream import Upstream
from tests.api.chain import RICH_ADDRESS, PrivateChain, context_of
from tests.api.client import KEY, call

JSON = {"Content-Type": "application/json"}
OF_THE_NODE = re.compile(
    r"\b(pool|wallet|events|broadcast|broadcast_signed|minimum_fee|roll_back)\b"
)


@pytest_asyncio.fixture
async def reader(chain: PrivateChain, tmp_path: Path) -> AsyncIterator[Application]:
    """The application of a worker, with the chain's own node behind it."""
    path = str(tmp_path / "socket")
    running = await serve_locally(build_app(context_of(chain.node), writer_routes), path)
    upstream = Upstream(path)
    yield build_app(context_of(chain.node), partial(reader_routes, upstream=upstream))
    upstream.close()
    await running.stop()


def test_what_only_the_node_has_is_not_read_here() -> None:
    routes = [route for route in all_routes() if only_reads(route)]
    assert len(routes) > 80
    assert not any(route.key for route in routes)
    for route in routes:
        module = route.handler.__module__
        is_whole = module.rsplit(".", 1)[-1] in readers._READ_MODULES
        source = inspect.getsource(sys.modules[module] if is_whole else route.handler)
        found = [line for line in source.splitlines() if re.search(r"\bnode\.", line)]
        assert not any(OF_THE_NODE.search(line) for line in found), route.path


def test_every_name_in_the_list_is_a_handler() -> None:
    names = {
        f"{route.handler.__module__.rsplit('.', 1)[-1]}.{route.handler.__name__}"
        for route in all_routes()
    }
    assert names >= readers._READ_HANDLERS


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
POST {HANDOVER_PATH}
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


@pytest.mark.parametrize(("lot", "lot_bytes"), [(7, 1 << 20), (64, 1_000), (64, 1)])
async def test_what_comes_together_goes_together(
    chain: PrivateChain, reader: Application, monkeypatch: pytest.MonkeyPatch, lot: int,
    lot_bytes: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(readers, "MAX_LOT", lot)
    monkeypatch.setattr(readers, "MAX_LOT_BYTES", lot_bytes)
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
    chain: PrivateChain, reader: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "MAX_WAITING", 5)
    monkeypatch.setattr(readers, "MAX_LOT", 1)
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


async def test_bytes_that_are_no_transaction_spoil_nothing_else(chain: PrivateChain) -> None:
    chain.mine()
    good = chain.transfer()
    lot = [Handed(1, b"nonsense"), Handed(3, codec.encode(good)), Handed(2, b"\xff")]
    app = build_app(context_of(chain.node), writer_routes)
    answer = await call(app, f"POST {HANDOVER_PATH}", readers.encode_lot(lot))
    assert [item.status for item in readers.decode_outcomes(answer.body)] == [400, 200, 400]
    assert chain.node.pool.transactions() == [good]


async def test_a_fault_at_one_transaction_spoils_nothing_else(
    chain: PrivateChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.mine()
    sent = [chain.transfer(amount=number + 1) for number in range(5)]
    add = UtxPool.add

    def faulty(pool: UtxPool, transaction: AnyTransaction, **options: object) -> bool:
        if transaction.id == sent[2].id:
            raise RuntimeError("a fault of ours")
        return add(pool, transaction, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(UtxPool, "add", faulty)
    app = build_app(context_of(chain.node), writer_routes)
    lot = readers.encode_lot([Handed(3, codec.encode(item)) for item in sent])
    answer = await call(app, f"POST {HANDOVER_PATH}", lot)
    outcomes = readers.decode_outcomes(answer.body)
    assert [item.status for item in outcomes] == [200, 200, 500, 200, 200]
    assert msgspec.json.decode(outcomes[2].text)["message"] == "Error is unknown"
    assert chain.node.pool.transactions() == sent[:2] + sent[3:]


@pytest.mark.parametrize("count", [0, 2])
async def test_an_answer_with_too_few_outcomes_leaves_nobody_waiting(
    chain: PrivateChain, reader: Application, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    chain.mine()
    outcomes = readers.encode_outcomes([readers.Outcome(200)] * count)
    monkeypatch.setattr(readers, "encode_outcomes", lambda _outcomes: outcomes)
    body = msgspec.json.encode(codec.to_json(chain.transfer()))
    async with asyncio.timeout(5):
        answer = await call(reader, "POST /transactions/broadcast", body, JSON)
    assert answer.status == 503


def test_what_is_verified_before_its_turn(chain: PrivateChain) -> None:
    good = chain.transfer()
    assert verified_messages(good)
    assert not verified_messages(codec.with_proofs(good, (bytes(64),)))
    assert not verified_messages(codec.with_proofs(good, ()))
    assert not verified_messages(codec.with_proofs(good, (good.proofs[0], good.proofs[0])))


async def test_without_the_node_it_says_so(chain: PrivateChain, tmp_path: Path) -> None:
    upstream = Upstream(str(tmp_path / "nobody"))
    alone = build_app(context_of(chain.node), partial(reader_routes, upstream=upstream))
    answer = await call(alone, "GET /transactions/unconfirmed/size")
    assert (answer.status, answer.headers[b"retry-after"]) == (503, b"1")
    assert (await call(alone, "GET /blocks/height")).status == 200


async def test_before_each_request_it_looks(chain: PrivateChain) -> None:
    looked: list[int] = []
    app = build_app(replace(context_of(chain.node), look=lambda: looked.append(1)))
    await call(app, "GET /blocks/height")
    await call(app, "GET /blocks/height")
    assert len(looked) == 2
