"""A node that hangs, and one of another chain: nothing is matched against either."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import msgspec
import pytest

from soliton.chain import networks, orders
from soliton.chain.orders import Side
from soliton.cli.run import start_api
from soliton.devnet.accounts import RICH_SEED
from soliton.matcher import node_watch
from soliton.matcher.errors import WrongChain
from soliton.matcher.http_client import HttpNodeClient
from soliton.matcher.node_client import ChainIdentity
from soliton.matcher.records import ServiceStatus
from soliton.matcher.rest.app import build_app
from soliton.matcher.settings import NodeAccess
from soliton.node.node import Node
from soliton.node.settings import load_settings
from soliton.node.wallet import Wallet
from soliton.parallel.signatures import SignatureChecker
from tests.matcher.fakes import Reply, exchange
from tests.matcher.kit import (
    ALICE,
    BOB,
    COIN,
    PAIR,
    FakeNode,
    eventually,
    make_matcher,
    make_order,
    running,
    settings_in,
)

PRICE = 250
NODE_DOWN = 105906177


@pytest.fixture
def node() -> FakeNode:
    node = FakeNode()
    for keys in (ALICE, BOB):
        node.fund(keys)
    return node


class Seconds:
    """A clock of its own for the watch: it goes on when the test says."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.mark.parametrize("trouble", ["hangs", "down"])
async def test_a_node_that_is_silent_for_too_long_stops_orders_until_it_is_back(
    tmp_path: Path, node: FakeNode, trouble: str
) -> None:
    """The account and its balances are known: nothing of the order needs the node."""
    time = Seconds()
    settings = settings_in(tmp_path, node=NodeAccess(max_silence_ms=1_000))
    with patch.object(node_watch, "time", SimpleNamespace(monotonic=time.monotonic)):
        async with running(settings, node) as matcher:
            app = build_app(matcher)

            async def place(side: Side) -> Reply:
                body = msgspec.json.encode(orders.to_json(make_order(ALICE, side, COIN, PRICE)))
                return await exchange(app.gate, "POST /matcher/orderbook", body)

            assert (await place(Side.SELL)).status == 200
            setattr(node, trouble, True)
            await asyncio.sleep(0.4)
            time.now += 0.9
            if trouble == "hangs":
                assert (await place(Side.SELL)).status == 200, "it may take a moment"
            time.now += 0.2
            reply = await place(Side.SELL)
            assert (reply.status, reply.json()["error"]) == (503, NODE_DOWN)
            assert int(reply.headers[b"retry-after"]) > 0
            resting = matcher.engine.book(PAIR)
            assert resting is not None
            # Cancelling needs no node.
            first = next(resting.orders())
            await matcher.canceling.cancel_all(first.owner, None)
            assert len(resting) == 0
            setattr(node, trouble, False)
            await eventually(lambda: not matcher._watch.is_silent)
            assert (await place(Side.SELL)).status == 200


async def test_a_node_of_another_chain_ends_the_matcher(tmp_path: Path, node: FakeNode) -> None:
    settings = settings_in(tmp_path)
    async with running(settings, node):
        pass
    for chain, words in (
        (ChainIdentity(ord("W"), "any"), "chain 'W'"),
        (ChainIdentity(settings.network.chain_id, "another first block"), "another first block"),
    ):
        node.chain = chain
        matcher = make_matcher(settings, node)
        await matcher.start()
        with pytest.raises(WrongChain, match=words):
            await matcher.working()
        await matcher.stop()


async def test_the_first_block_of_a_public_network_is_known(tmp_path: Path, node: FakeNode) -> None:
    testnet = networks.load("waves-testnet")
    matcher = make_matcher(settings_in(tmp_path, network=testnet), node)
    node.chain = ChainIdentity(testnet.chain_id, "a chain that only looks like it")
    await matcher.start()
    with pytest.raises(WrongChain, match="waves-testnet"):
        await matcher.working()
    await matcher.stop()


async def test_a_node_that_comes_back_with_another_chain_ends_the_matcher(
    tmp_path: Path, node: FakeNode
) -> None:
    settings = settings_in(tmp_path, node=NodeAccess(max_silence_ms=1_000))
    async with running(settings, node) as matcher:
        assert matcher.status is ServiceStatus.WORKING
        node.down = True
        await asyncio.sleep(0.3)
        node.chain = ChainIdentity(settings.network.chain_id, "a new private chain")
        node.down = False
        with pytest.raises(WrongChain, match="a new private chain"):
            await asyncio.wait_for(matcher.ended(), 60)
        assert matcher.status is not ServiceStatus.WORKING


async def test_matcher_run_says_that_the_node_is_of_another_chain(tmp_path: Path) -> None:
    """The real program against a real node, over the routes that every node has."""
    told = load_settings(
        network="devnet", data_dir=tmp_path / "chain", overrides={"rest-api.port": 0}
    )
    node = Node(told, Wallet.open(None, None, RICH_SEED.encode()), durable=False)
    server = await start_api(node, SignatureChecker(beside=False))
    url = f"http://127.0.0.1:{server.port}"
    soliton = str(Path(sys.executable).with_name("soliton"))

    async def call(*arguments: str) -> tuple[int | None, str]:
        program = await asyncio.create_subprocess_exec(
            soliton,
            *("matcher", *arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await asyncio.wait_for(program.communicate(), 60)
        return program.returncode, output.decode()

    try:
        client = HttpNodeClient(NodeAccess(url), told.network.chain_id)
        found = await client.identity()
        assert found.chain_id == told.network.chain_id
        await client.close()
        config = tmp_path / "matcher.conf"
        where = ("--network", "waves-testnet", "--data-dir", str(tmp_path))
        code, output = await call("init", *where, "--config", str(config), "--node-url", url)
        assert code == 0, output
        config.write_text(config.read_text().replace("port = 6886", "port = 0"))
        code, output = await call("run", "--config", str(config))
        assert code not in (0, None)
        assert "the node is one of the chain 'R'" in output
        assert "Traceback" not in output
    finally:
        await server.stop()
        node.close()
