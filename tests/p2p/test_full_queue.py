"""What strangers have checked never stops a node, nor what follows a block of a peer."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path

import pytest

from soliton.chain.function_calls import FunctionCall
from soliton.chain.transactions import codec
from soliton.chain.transactions.invoke_script import InvokeScript
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.set_script import SetScript
from soliton.node import turns
from soliton.node.node import system_clock
from soliton.p2p import checks
from soliton.ride.compiler import compile_source
from soliton.wire.messages import ProtobufTransaction
from tests.node.chains import address_of, signed
from tests.p2p.world import OWNERS, Peer, agree, join, peers, until

SUMS = " + ".join(f"sums({number})" for number in range(10))
SOURCE = f"""{{-# STDLIB_VERSION 6 #-}}
{{-# CONTENT_TYPE DAPP #-}}
{{-# SCRIPT_TYPE ACCOUNT #-}}
func sums(x: Int) = {"+".join(["x"] * 400)}
@Callable(i)
func count(number: Int) = {{
  strict spent = {SUMS} + height
  [IntegerEntry("spent", spent)]
}}
"""


def call(number: int) -> AnyTransaction:
    """A dear call, whose result depends on the height."""
    payload = InvokeScript(address_of(OWNERS[0]), FunctionCall("count", (number,)), ())
    return signed(OWNERS[3], 16, payload, version=2, timestamp=system_clock(), fee=500_000)


async def with_dapp(nodes: list[Peer]) -> None:
    """The first node has a dApp on the chain, and the second one follows it."""
    miner = nodes[0]
    join(miner, nodes[1])
    await until(lambda: nodes[1].service.connections == 1, "a connection")
    script = SetScript(compile_source(SOURCE).script.source)
    fee = 100_000_000
    miner.mine(signed(OWNERS[0], 13, script, version=2, timestamp=system_clock(), fee=fee))
    miner.node.mine(miner.owner, empty=True)
    await until(lambda: agree(*nodes), "one chain")


@pytest.mark.parametrize("made_here", [False, True])
async def test_a_block_comes_while_the_queue_of_checks_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_here: bool
) -> None:
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.0)
    monkeypatch.setattr(turns, "MAX_WAITING", 4)
    async with peers(tmp_path, 2) as nodes:
        await with_dapp(nodes)
        node, queue = nodes[1].node, nodes[1].node.turns
        # It is rechecked after each block, and does not end in its first turn.
        node.broadcast(call(0))
        await node.settled()
        others = [queue.begin(partial(node.broadcast, call(number))) for number in range(1, 7)]
        assert len(queue) == turns.MAX_WAITING
        if made_here:
            await node.mine_in_steps(nodes[1].owner, empty=True)
        else:
            nodes[0].node.mine(nodes[0].owner, empty=True)
        await until(lambda: agree(*nodes), "one chain")
        await until(lambda: all(each.is_done for each in others), "the checks")
        await node.settled()
        assert node.pool.is_settled
        assert not node.is_stopping
        assert len(node.pool) == 1 + turns.MAX_WAITING


async def test_a_stop_ends_the_check_of_a_peers_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(checks, "CHECK_SECONDS", 1e-6)
    async with peers(tmp_path, 2) as nodes:
        await with_dapp(nodes)
        sender, jobs = nodes[0].service, nodes[1].service.jobs
        jobs.set_ready()
        message = ProtobufTransaction(codec.encode_protobuf(call(0)))
        sender.carry_out(sender.core.announce(message, sender.now()))
        await until(lambda: jobs._checks._running is not None, "a check")
        with caplog.at_level(logging.ERROR):
            await nodes[1].service.stop()
            assert jobs.waiting == 0
            assert not caplog.records
