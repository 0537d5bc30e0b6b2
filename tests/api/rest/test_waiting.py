"""Requests that wait: answered when it happens, when it cannot happen any more, or in the end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from soliton.api.errors import BLOCK_DOES_NOT_EXIST
from soliton.crypto import base58
from soliton.web.server import serve
from tests.api.chain import AMOUNT, FEE, OTHER, RICH, RICH_ADDRESS, PrivateChain
from tests.api.client import Answer
from tests.node import forging

NOBODY = base58.encode(bytes(32))


async def asked(chain: PrivateChain, target: str) -> asyncio.Task[Answer]:
    """A request that is under way, and waits unless it has an answer."""
    task = asyncio.create_task(chain.get(target))
    for _ in range(5):
        await asyncio.sleep(0)
    return task


async def test_a_transaction_in_a_block(chain: PrivateChain) -> None:
    sent = chain.send(chain.transfer())
    name = base58.encode(sent.id)
    task = await asked(chain, f"/transactions/wait/{name}")
    assert not task.done()
    chain.mine()
    answer = await task
    assert answer.status == 200
    assert answer.json() == (await chain.get(f"/transactions/status/{name}")).json()
    again: Any = (await chain.get(f"/transactions/wait/{name}")).json()
    assert again["status"] == "confirmed" and again["height"] == 2


async def test_a_transaction_that_comes_later_and_in_a_microblock(chain: PrivateChain) -> None:
    chain.mine()
    transfer = chain.transfer()
    task = await asked(chain, f"/transactions/wait/{base58.encode(transfer.id)}")
    chain.send(transfer)
    await asyncio.sleep(0)
    assert not task.done()
    forging.mine_micro(chain.node, RICH)
    found: Any = (await task).json()
    assert (found["status"], found["height"]) == ("confirmed", 2)


async def test_confirmations(chain: PrivateChain) -> None:
    name = base58.encode(chain.send(chain.transfer()).id)
    task = await asked(chain, f"/transactions/wait/{name}?confirmations=2")
    for _ in range(3):
        assert not task.done()
        chain.mine()
        for _ in range(5):
            await asyncio.sleep(0)
    found: Any = (await task).json()
    assert (found["height"], found["confirmations"]) == (2, 2)


async def test_a_rollback_while_confirmations_come(chain: PrivateChain) -> None:
    name = base58.encode(chain.send(chain.transfer()).id)
    chain.mine()
    task = await asked(chain, f"/transactions/wait/{name}?confirmations=1")
    forging.roll_back(chain.node, 1, keep=True)
    for _ in range(3):
        await asyncio.sleep(0)
    assert not task.done()
    chain.mine()
    await asyncio.sleep(0)
    chain.mine()
    found: Any = (await task).json()
    assert (found["height"], found["confirmations"]) == (2, 1)


async def test_a_transaction_that_falls(chain: PrivateChain) -> None:
    chain.send(chain.transfer())
    chain.mine()
    falls = chain.send(chain.transfer(keys=OTHER, to=RICH_ADDRESS, amount=AMOUNT - FEE))
    task = await asked(chain, f"/transactions/wait/{base58.encode(falls.id)}")
    forging.roll_back(chain.node, 1, keep=False)
    found: Any = (await task).json()
    assert found["status"] == "not_found" and "unavailable funds" in found["reason"]


async def test_a_transaction_that_falls_with_its_block(chain: PrivateChain) -> None:
    name = base58.encode(chain.send(chain.transfer()).id)
    chain.mine()
    task = await asked(chain, f"/transactions/wait/{name}?confirmations=5")
    forging.roll_back(chain.node, 1, keep=False)
    assert (await task).json() == {"status": "not_found", "id": name}


@pytest.mark.parametrize("seconds", [0, 1])
async def test_the_time_is_up(chain: PrivateChain, seconds: int) -> None:
    name = base58.encode(chain.send(chain.transfer()).id)
    answer = await chain.get(f"/transactions/wait/{name}?timeout={seconds}")
    assert (answer.status, answer.json()) == (200, {"status": "unconfirmed", "id": name})
    answer = await chain.get(f"/transactions/wait/{NOBODY}?timeout=0")
    assert answer.json() == {"status": "not_found", "id": NOBODY}
    answer = await chain.get(f"/blocks/wait/9?timeout={seconds}")
    assert (answer.status, answer.json()) == (404, BLOCK_DOES_NOT_EXIST.error().body())


async def test_a_height(chain: PrivateChain) -> None:
    genesis = await chain.get("/blocks/wait/1")
    assert genesis.json() == (await chain.get("/blocks/headers/at/1")).json()
    task = await asked(chain, "/blocks/wait/3")
    chain.mine()
    await asyncio.sleep(0)
    assert not task.done()
    chain.mine()
    assert (await task).json() == (await chain.get("/blocks/headers/at/3")).json()
    assert (await chain.get("/blocks/wait/0")).status == 404


async def test_the_node_stops(chain: PrivateChain) -> None:
    tasks = [
        await asked(chain, f"/transactions/wait/{NOBODY}"),
        await asked(chain, "/blocks/wait/9"),
    ]
    chain.node.request_stop()
    assert [(await task).status for task in tasks] == [200, 404]


async def test_a_limit_on_those_who_wait(
    chain: PrivateChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("soliton.api.waiting.MAX_WAITING", 1)
    task = await asked(chain, "/blocks/wait/2")
    refused = await chain.get("/blocks/wait/3")
    assert (refused.status, refused.headers[b"retry-after"]) == (503, b"5")
    chain.mine()
    assert (await task).status == 200
    assert chain.app.context.waiting.count == 0


@pytest.mark.parametrize("target", ["/transactions/wait/0", "/transactions/wait/abc"])
async def test_what_is_no_id(chain: PrivateChain, target: str) -> None:
    answer = await chain.get(target)
    assert (answer.status, b"4001" in answer.body) == (400, True)


async def counted(chain: PrivateChain, count: int) -> bool:
    """Whether so many requests wait, at once or soon."""
    for _ in range(1_000):
        if chain.app.context.waiting.count == count:
            return True
        await asyncio.sleep(0.01)
    return False


async def test_who_goes_waits_no_longer(chain: PrivateChain) -> None:
    """Else a few clients without a connection would hold all the places there are."""
    running = await serve(chain.app, "127.0.0.1", 0)
    ends = [await asyncio.open_connection("127.0.0.1", running.port) for _ in range(20)]
    for _, writer in ends:
        writer.write(b"GET /blocks/wait/9?timeout=60 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await counted(chain, len(ends))
    for _, writer in ends:
        writer.close()
    assert await counted(chain, 0)
    await running.stop()


async def test_a_woken_request_that_waits_again_is_not_forgotten(chain: PrivateChain) -> None:
    """Two requests for a height are woken by a rollback; both wait again, and both are answered."""
    chain.mine()
    tasks = [await asked(chain, "/blocks/wait/3?timeout=60") for _ in range(2)]
    forging.roll_back(chain.node, 1, keep=True)
    for _ in range(5):
        await asyncio.sleep(0)
    assert chain.app.context.waiting.count == 2
    chain.mine()
    chain.mine()
    async with asyncio.timeout(30):
        answers = await asyncio.gather(*tasks)
    assert [answer.status for answer in answers] == [200, 200]


async def test_a_final_block(chain: PrivateChain) -> None:
    """Without votes a block is final so many blocks below the last one."""
    chain.node.chain.max_rollback = 2
    name = base58.encode(chain.send(chain.transfer()).id)
    task = await asked(chain, f"/transactions/wait/{name}?confirmations=finalized")
    for _ in range(3):
        assert not task.done()
        chain.mine()
        for _ in range(5):
            await asyncio.sleep(0)
    found: Any = (await task).json()
    assert (found["status"], found["height"], found["finalized"]) == ("confirmed", 2, True)
    again: Any = (await chain.get(f"/transactions/wait/{name}?confirmations=finalized")).json()
    assert again["confirmations"] == 2
    last = base58.encode(chain.send(chain.transfer()).id)
    chain.mine()
    target = f"/transactions/wait/{last}?confirmations=finalized&timeout=0"
    late: Any = (await chain.get(target)).json()
    assert (late["status"], late["finalized"]) == ("confirmed", False)


@pytest.mark.parametrize("text", ["final", "Finalized", "finalized%20", "-1", "1.5", "1e3", ""])
async def test_confirmations_that_are_none(chain: PrivateChain, text: str) -> None:
    answer = await chain.get(f"/transactions/wait/{NOBODY}?confirmations={text}&timeout=0")
    assert answer.status == 400, answer.body
    assert "or finalized" in answer.body.decode()
