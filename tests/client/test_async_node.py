"""``AsyncNode`` has the methods of ``Node``, and they do the same."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from soliton import Account, AsyncNode, Node, NodeUnreachable, ScriptRefused, StillWaiting
from tests.client.test_node import DAPP
from tests.e2e.programs import Program
from tests.ports import free_port

ONLY_BLOCKING = {"__enter__", "__exit__"}
ONLY_ASYNC = {"__aenter__", "__aexit__"}


def public(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


def test_both_have_the_same_methods() -> None:
    assert public(Node) == public(AsyncNode)
    for name in public(Node):
        one, other = inspect.getattr_static(Node, name), inspect.getattr_static(AsyncNode, name)
        assert type(one) is type(other), name
        if inspect.isfunction(one):
            mine, its = inspect.signature(one), inspect.signature(other)
            assert list(mine.parameters.values()) == list(its.parameters.values()), name
            awaits = inspect.iscoroutinefunction(other) or inspect.isasyncgenfunction(other)
            assert awaits or name == "close", name
            assert one.__doc__ and other.__doc__, name


@pytest.mark.slow
async def test_a_devnet(program: Program) -> None:
    async with AsyncNode(program.node_url) as node:
        alice = Account.from_seed("soliton devnet account 1", await node.chain_id)
        bob = Account.from_seed("soliton devnet account 2", await node.chain_id)
        sent = await node.send(alice.issue("Gold", 1_000, decimals=2))
        assert (await sent.wait()).asset_id == sent.asset_id
        gold = await node.asset(str(sent.asset_id))
        payments = [node.send(alice.transfer(bob, "0.01", gold)) for _ in range(100)]
        last = (await asyncio.gather(*payments))[-1]
        await last.wait()
        await asyncio.gather(*(each.wait() for each in await asyncio.gather(node.send(
            alice.transfer(bob, "0.01", gold)
        ))))  # fmt: skip
        assert await node.balance(bob, gold) == 101
        found = [each async for each in node.history(alice, limit=30)]
        assert len(found) >= 102 and len({each.id for each in found}) == len(found)
        heights = [each.height async for each in node.headers(1, await node.height())]
        assert heights == list(range(1, len(heights) + 1))
        with pytest.raises(StillWaiting):
            await last.wait(timeout=0.1, confirmations=10**4)
        await (await node.send(bob.set_script((await node.compile(DAPP)).script))).wait()
        with pytest.raises(ScriptRefused, match="too much"):
            await node.send(alice.invoke(bob, "withdraw", 4))


async def test_nobody_there() -> None:
    async with AsyncNode(f"http://127.0.0.1:{free_port()}", retries=0) as node:
        with pytest.raises(NodeUnreachable):
            await node.height()
