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
from soliton.matcher.node_client import Broadcast, BroadcastAnswer, ChainIdentity
from soliton.matcher.records import ServiceStatus
from soliton.matcher.rest.app import build_app
from soliton.matcher.service import Matcher
from soliton.matcher.settings import NodeAccess
from soliton.matching import errors
from soliton.matching.errors import MatcherError
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


def another_chain(node: FakeNode, height: int) -> None:
    """The node has another chain with the same first block, on which nobody owns anything."""
    node.blocks = {each: b"x%31d" % each for each in range(2, height + 1)}
    node.height = height
    node.balances = {}


def the_chain(node: FakeNode, height: int) -> None:
    """The node has the first chain again."""
    node.blocks, node.height = {}, height
    for keys in (ALICE, BOB):
        node.fund(keys)


async def grow(node: FakeNode, matcher: Matcher, height: int) -> None:
    """The chain grows, block by block."""
    while node.height < height:
        node.mine()
        await eventually(lambda: node.height - 1 in matcher._watch._anchors)


@pytest.mark.parametrize("height", [3, 29, 30, 31, 200])
async def test_nothing_happens_on_the_word_of_another_chain(
    tmp_path: Path, node: FakeNode, height: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It has the same first block, and is shorter, as long or longer."""
    node.height = 20
    settings = settings_in(tmp_path, node=NodeAccess(max_silence_ms=1_000))
    async with running(settings, node) as matcher:
        await grow(node, matcher, 30)
        for side in (Side.SELL, Side.BUY):
            price = PRICE + 1 if side is Side.SELL else PRICE
            await matcher.placing.place(make_order(ALICE, side, COIN, price), market=False)
        another_chain(node, height)
        node.update(resumed=True, changed=None, rolled_back_to=1)
        await eventually(lambda: matcher._watch.is_silent)
        with pytest.raises(MatcherError) as raised:
            await matcher.placing.place(make_order(BOB, Side.BUY, COIN, PRICE + 1), market=False)
        assert raised.value.kind is errors.WAVES_NODE_CONNECTION_BROKEN
        assert "nothing is cancelled" in caplog.text and "node.url" in caplog.text
        # However much it goes on.
        for _ in range(5):
            node.mine()
        await asyncio.sleep(0.05)
        book = matcher.engine.book(PAIR)
        assert book is not None and len(book) == 2
        the_chain(node, 32)
        node.update(resumed=True, changed=None)
        await eventually(lambda: not matcher._watch.is_silent)
        assert len(book) == 2
        await matcher.placing.place(make_order(BOB, Side.BUY, COIN, PRICE + 1), market=False)
        assert len(book) == 1
        await eventually(lambda: len(node.sent) >= 1)


async def test_no_exchange_is_sent_to_a_node_of_another_chain(
    tmp_path: Path, node: FakeNode
) -> None:
    node.height = 30
    settings = settings_in(tmp_path, node=NodeAccess(max_silence_ms=1_000))
    async with running(settings, node) as matcher:
        node.answer = BroadcastAnswer(Broadcast.LATER, "busy")
        for side in (Side.SELL, Side.BUY):
            await matcher.placing.place(make_order(ALICE, side, COIN, PRICE), market=False)
        await eventually(lambda: len(node.sent) >= 1)
        another_chain(node, 3)
        await eventually(lambda: matcher._watch.is_silent)
        # One may be on its way.
        await asyncio.sleep(0.1)
        count = len(node.sent)
        await asyncio.sleep(0.2)
        assert len(node.sent) == count
        the_chain(node, 30)
        await eventually(lambda: len(node.sent) > count)


async def test_the_blocks_that_were_seen_are_known_to_the_next_run(
    tmp_path: Path, node: FakeNode
) -> None:
    node.height = 150
    async with running(settings_in(tmp_path), node) as matcher:
        await grow(node, matcher, 152)
        await matcher.placing.place(make_order(ALICE, Side.SELL, COIN, PRICE), market=False)
    another_chain(node, 400)
    second = make_matcher(settings_in(tmp_path), node)
    await second.start()
    try:
        await eventually(lambda: second._watch.is_silent)
        with pytest.raises(MatcherError):
            await second.placing.place(make_order(BOB, Side.BUY, COIN, PRICE), market=False)
        the_chain(node, 152)
        await asyncio.wait_for(second.working(), 60)
        book = second.engine.book(PAIR)
        assert book is not None and len(book) == 1
    finally:
        await second.stop()


@pytest.mark.parametrize(("lost", "is_right"), [(1, True), (10, True), (11, False)])
async def test_a_node_may_have_lost_its_newest_blocks(
    tmp_path: Path, node: FakeNode, lost: int, is_right: bool
) -> None:
    node.height = 60
    async with running(settings_in(tmp_path), node) as matcher:
        node.height -= lost
        node.update(resumed=True, changed=None, rolled_back_to=node.height)
        if is_right:
            await eventually(lambda: matcher.settlement.height == node.height)
            await matcher.placing.place(make_order(ALICE, Side.SELL, COIN, PRICE), market=False)
        else:
            await eventually(lambda: matcher._watch.is_silent)


@pytest.mark.parametrize(("fork", "is_right"), [(60, True), (100, True), (102, False)])
async def test_a_fork_is_followed_as_deep_as_forks_can_be(
    tmp_path: Path, node: FakeNode, fork: int, is_right: bool
) -> None:
    node.height = 200
    async with running(settings_in(tmp_path), node) as matcher:
        node.blocks = {each: b"y%31d" % each for each in range(201 - fork, 202)}
        node.height = 201
        node.update(resumed=True, changed=None, rolled_back_to=200 - fork)
        if is_right:
            await eventually(lambda: matcher.settlement.height == node.height)
            assert not matcher._watch.is_silent
        else:
            await eventually(lambda: matcher._watch.is_silent)


@pytest.mark.parametrize("how", ["resumed", "live"])
@pytest.mark.parametrize(("stays", "is_right"), [(190, True), (195, True), (194, False)])
async def test_a_fork_is_followed_down_to_the_final_block(
    tmp_path: Path,
    node: FakeNode,
    stays: int,
    is_right: bool,
    how: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    node.height = 199
    node.finalized = 190 if stays == 190 else 195
    async with running(settings_in(tmp_path), node) as matcher:
        await matcher.placing.place(make_order(ALICE, Side.SELL, COIN, PRICE), market=False)
        await grow(node, matcher, 202)
        node.blocks = {each: b"y%31d" % each for each in range(stays + 1, 204)}
        node.height, balances, node.balances = 203, node.balances, {}
        node.update(resumed=how == "resumed", changed=None, rolled_back_to=stays)
        if is_right:
            await eventually(lambda: matcher.settlement.height == node.height)
            assert not matcher._watch.is_silent
            return
        # However many blocks follow, and whatever this node reports as final.
        await eventually(lambda: matcher._watch.is_silent)
        node.finalized = 201
        node.mine()
        await asyncio.sleep(0.05)
        book = matcher.engine.book(PAIR)
        assert book is not None and len(book) == 1
        assert "node.url" in caplog.text
        node.blocks, node.height, node.balances = {}, 204, balances
        node.update(resumed=True, changed=None)
        await eventually(lambda: not matcher._watch.is_silent)
        assert len(book) == 1


async def test_a_node_that_lacks_the_final_block_is_waited_for(
    tmp_path: Path, node: FakeNode, caplog: pytest.LogCaptureFixture
) -> None:
    node.height, node.finalized = 60, 57
    async with running(settings_in(tmp_path), node) as matcher:
        await grow(node, matcher, 62)
        node.height = 55
        node.update(resumed=True, changed=None, rolled_back_to=node.height)
        await eventually(lambda: matcher._watch.is_silent)
        assert "ends at block 55, and lacks block" in caplog.text
        node.height = 62
        await eventually(lambda: not matcher._watch.is_silent)


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
