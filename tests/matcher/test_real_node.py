"""The matcher with the real node of a private chain in the same process: what is matched is settled
on the chain, to the last unit.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import AsyncMock, patch

import msgspec
import pytest
import pytest_asyncio

from soliton.chain.orders import Order, Side
from soliton.chain.transactions import codec
from soliton.chain.transactions.commit_to_generation import TYPE as COMMIT
from soliton.chain.transactions.commit_to_generation import commitment
from soliton.chain.transactions.data import TYPE as DATA
from soliton.chain.transactions.data import Data
from soliton.chain.transactions.issue import TYPE as ISSUE
from soliton.chain.transactions.issue import Issue
from soliton.chain.transactions.model import AnyTransaction, TransactionType
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT
from soliton.chain.transactions.set_script import SetScript
from soliton.chain.transactions.transfer import TYPE as TRANSFER
from soliton.chain.transactions.transfer import Transfer
from soliton.chain.values import DataEntry
from soliton.cli.run import start_api
from soliton.crypto import base58
from soliton.crypto.keys import KeyPair, key_pair
from soliton.devnet.accounts import RICH_SEED
from soliton.devnet.matcher_node import LocalNode
from soliton.ledger.state import ASSET_BALANCES, WAVES
from soliton.matcher.http_client import HttpNodeClient
from soliton.matcher.node_client import BroadcastAnswer, NodeClient
from soliton.matcher.records import Trade
from soliton.matcher.renewal import order_ids
from soliton.matcher.service import Matcher
from soliton.matcher.settings import NodeAccess
from soliton.matcher.trading_settings import TradingSettings
from soliton.matching import errors
from soliton.matching.errors import MatcherError
from soliton.matching.pairs import AssetPair
from soliton.matching.placement import PlacementSettings
from soliton.node.mining import mine_on_demand
from soliton.node.node import Node
from soliton.node.settings import load_settings
from soliton.node.wallet import Wallet
from soliton.parallel.signatures import SignatureChecker
from soliton.ride.compiler import compile_source
from soliton.web.clock import wall_clock
from tests.matcher.kit import (
    ALICE,
    BOB,
    COIN,
    FEE,
    MATCHER,
    address_of,
    eventually,
    eventually_equal,
    make_order,
    running,
    settings_in,
)
from tests.node import forging

RICH = key_pair(RICH_SEED)
PRICE = 250
START = 1_000 * COIN
HERE = SignatureChecker(beside=False)


@dataclass
class Exchange:
    """A node that mines, an asset on its chain, and a matcher on top."""

    node: Node
    usd: bytes
    matcher: Matcher
    mining: asyncio.Task[None]
    issued: dict[tuple[bytes, bytes | None], int] = field(default_factory=dict)

    @property
    def pair(self) -> AssetPair:
        return AssetPair(None, self.usd)

    def order(self, keys: KeyPair, side: Side, amount: int, price: int, version: int = 3) -> Order:
        return make_order(keys, side, amount, price, pair=self.pair, version=version)

    def balance(self, keys: KeyPair, asset: bytes | None) -> int:
        address = address_of(keys)
        if asset is None:
            return self.node.store.get(WAVES, address)
        return self.node.store.get(ASSET_BALANCES, (address, asset))

    async def settled(self) -> None:
        # An exchange that still waits for its signature is not in the settlement.
        self.matcher.database.complete()
        await eventually(
            lambda: len(self.matcher.settlement.off_chain) == 0 and not len(self.node.pool)
        )


def transaction(
    kind: TransactionType, payload: object, fee: int, version: int = 2
) -> AnyTransaction:
    return codec.sign(
        codec.build(
            kind,
            payload,
            version=version,
            chain_id=address_of(RICH)[1],
            sender_public_key=RICH.public_key,
            fee=fee,
            timestamp=wall_clock(),
        ),
        RICH.private_key,
    )


async def prepare(node: Node) -> bytes:
    issue = transaction(
        ISSUE, Issue(b"Dollar", b"of the tests", 10**12, 2, reissuable=False, script=None), COIN
    )
    node.broadcast(issue)
    node.mine(RICH)
    for keys in (ALICE, BOB, MATCHER):
        node.broadcast(transaction(TRANSFER, Transfer(address_of(keys), None, START, b""), 100_000))
        node.broadcast(
            transaction(TRANSFER, Transfer(address_of(keys), issue.id, 10**9, b""), 100_000)
        )
    node.mine(RICH)
    return issue.id


@asynccontextmanager
async def reached(node: Node, way: str) -> AsyncIterator[NodeClient]:
    """The node in the same process, over HTTP with its events, or over HTTP by polling."""
    if way == "local":
        yield LocalNode(node, HERE)
        return
    server = await start_api(node, HERE)
    access = NodeAccess(f"http://127.0.0.1:{server.port}", poll_interval_ms=20)
    client = HttpNodeClient(access, node.network.chain_id)
    if way == "polling":
        has_stream = AsyncMock(return_value=False)
        with patch("soliton.matcher.event_stream.EventStream.is_there", has_stream):
            yield client
    else:
        yield client
    await server.stop()


@pytest_asyncio.fixture(params=["local", "events", "polling"])
async def exchange(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Exchange]:
    settings = load_settings(
        network="devnet", data_dir=tmp_path / "chain", overrides={"rest-api.port": 0}
    )
    node = Node(settings, Wallet.open(None, None, RICH_SEED.encode()), durable=False)
    node.mine(RICH)
    usd = await prepare(node)
    trading = TradingSettings(placement=PlacementSettings(b"", price_assets=(usd,)))
    mining = asyncio.create_task(mine_on_demand(node, RICH))
    matcher_settings = settings_in(tmp_path / "matcher", network=settings.network, trading=trading)
    async with (
        reached(node, request.param) as client,
        running(matcher_settings, client) as matcher,
    ):
        yield Exchange(node, usd, matcher, mining)
    mining.cancel()
    node.close()


async def test_every_version_is_settled_to_the_last_unit(exchange: Exchange) -> None:
    matcher, usd = exchange.matcher, exchange.usd
    for version in (1, 2, 3, 4):
        sell = exchange.order(ALICE, Side.SELL, 10 * COIN, PRICE, version)
        buy = exchange.order(BOB, Side.BUY, 10 * COIN, PRICE + 1, version)
        await matcher.placing.place(sell, market=False)
        await matcher.placing.place(buy, market=False)
    await exchange.settled()
    sold, cost = 40 * COIN, 40 * PRICE
    assert exchange.balance(ALICE, None) == START - sold - 4 * FEE
    assert exchange.balance(ALICE, usd) == 10**9 + cost
    assert exchange.balance(BOB, None) == START + sold - 4 * FEE
    assert exchange.balance(BOB, usd) == 10**9 - cost
    assert exchange.balance(MATCHER, None) == START + 8 * FEE - 4 * 300_000
    assert matcher.settlement.unsettled_counts()[1] == 0


async def test_the_free_balance_is_that_of_the_chain_when_all_is_settled(
    exchange: Exchange,
) -> None:
    matcher, usd = exchange.matcher, exchange.usd
    await matcher.placing.place(exchange.order(ALICE, Side.SELL, 7 * COIN, PRICE), market=False)
    for amount in (COIN, 2 * COIN, 3 * COIN):
        await matcher.placing.place(exchange.order(BOB, Side.BUY, amount, PRICE), market=False)
        free = await matcher.queries.tradable(address_of(BOB), exchange.pair)
        assert free[usd] <= exchange.balance(BOB, usd)
    await exchange.settled()
    both = {None: exchange.balance(BOB, None), usd: exchange.balance(BOB, usd)}
    await eventually_equal(lambda: matcher.queries.tradable(address_of(BOB), exchange.pair), both)
    held = matcher.queries.reserved(address_of(ALICE))
    free = await matcher.queries.tradable(address_of(ALICE), exchange.pair)
    assert free[None] + held[None] == exchange.balance(ALICE, None)


@pytest.mark.parametrize("way", ["local", "events", "polling"])
async def test_an_exchange_is_settled_once_votes_make_its_block_final(
    tmp_path: Path, way: str
) -> None:
    settings = load_settings(
        network="devnet", data_dir=tmp_path / "chain", overrides={"rest-api.port": 0}
    )
    rules = msgspec.structs.replace(
        settings.network.functionality,
        pre_activated_features={**settings.network.functionality.pre_activated_features, 25: 3},
        generation_period_length=10,
    )
    network = msgspec.structs.replace(settings.network, functionality=rules)
    settings = msgspec.structs.replace(settings, network=network)
    node = Node(settings, Wallet.open(None, None, RICH_SEED.encode()), durable=False)
    node.mine(RICH)
    usd = await prepare(node)
    for start in (14, 24):
        own = commitment(RICH.private_key, start)
        node.broadcast(transaction(COMMIT, own, 10_000_000, version=1))
        while node.chain.height < start:
            node.mine(RICH)
    trading = TradingSettings(placement=PlacementSettings(b"", price_assets=(usd,)))
    matcher_settings = settings_in(tmp_path / "matcher", network=network, trading=trading)
    async with reached(node, way) as client, running(matcher_settings, client) as matcher:
        for keys, side in ((ALICE, Side.SELL), (BOB, Side.BUY)):
            order = make_order(keys, side, COIN, PRICE, pair=AssetPair(None, usd))
            await matcher.placing.place(order, market=False)
        await eventually(lambda: len(node.pool) == 1)
        node.mine(RICH)
        block = node.chain.height
        for final in (block - 2, block - 1):
            await eventually(lambda final=final: matcher.settlement.final == final)  # type: ignore[misc]
            assert len(matcher.settlement.pending) == 1
            node.mine(RICH)
        await eventually(lambda: not matcher.settlement.pending)
        assert (matcher.settlement.final, node.chain.height) == (block, block + 2)
        await eventually(lambda: min(matcher._watch._anchors) == block)
    node.close()


async def test_settlements_survive_a_rollback_of_fifty_blocks(exchange: Exchange) -> None:
    matcher, node = exchange.matcher, exchange.node
    height = node.chain.height
    for _ in range(5):
        await matcher.placing.place(exchange.order(ALICE, Side.SELL, COIN, PRICE), market=False)
        await matcher.placing.place(exchange.order(BOB, Side.BUY, COIN, PRICE), market=False)
    await exchange.settled()
    for _ in range(50):
        node.mine(RICH)
    for keep in (False, True):
        forging.roll_back(node, height, keep=keep)
        await asyncio.sleep(0)
        await exchange.settled()
        await eventually(lambda: exchange.balance(BOB, None) == START + 5 * COIN - 5 * FEE)
        both = {asset: exchange.balance(BOB, asset) for asset in (None, exchange.usd)}
        await eventually_equal(
            lambda: matcher.queries.tradable(address_of(BOB), exchange.pair), both
        )
    assert matcher.settlement.rollbacks > 0
    assert matcher.settlement.unsettled_counts()[1] == 0


async def test_orders_go_when_their_owner_spends_elsewhere(exchange: Exchange) -> None:
    matcher, node = exchange.matcher, exchange.node
    order = exchange.order(ALICE, Side.SELL, 900 * COIN, PRICE)
    small = exchange.order(ALICE, Side.SELL, 10 * COIN, PRICE)
    await matcher.placing.place(order, market=False)
    await matcher.placing.place(small, market=False)
    spend = codec.build(
        TRANSFER,
        Transfer(address_of(BOB), None, 500 * COIN, b""),
        version=2,
        chain_id=order.chain_id,
        sender_public_key=ALICE.public_key,
        fee=100_000,
        timestamp=wall_clock(),
    )
    node.broadcast(codec.sign(spend, ALICE.private_key))
    book = matcher.engine.book(exchange.pair)
    assert book is not None
    await eventually(lambda: [*book.index] == [small.id])
    await exchange.settled()
    assert matcher.queries.reserved(address_of(ALICE)) == {None: 10 * COIN + FEE}


async def test_a_matcher_that_was_away_settles_what_it_owes(exchange: Exchange) -> None:
    """The exchange is made while the node takes nothing; a new life of the matcher sends it."""
    matcher, node = exchange.matcher, exchange.node
    await exchange.settled()
    settings = msgspec.structs.replace(
        matcher.settings, directory=matcher.settings.directory.parent / "second"
    )

    class Deaf(LocalNode):
        async def broadcast(self, _transaction: AnyTransaction) -> BroadcastAnswer:
            await asyncio.Event().wait()
            raise AssertionError("it never hears")

    async with running(settings, Deaf(node, HERE)) as first:
        await first.placing.place(exchange.order(ALICE, Side.SELL, 3 * COIN, PRICE), market=False)
        await first.placing.place(exchange.order(BOB, Side.BUY, 2 * COIN, PRICE), market=False)
        held = await first.queries.tradable(address_of(BOB), exchange.pair)
    async with running(settings, Deaf(node, HERE)) as second:
        # What the exchange will take is not free, though the chain does not have it.
        assert await second.queries.tradable(address_of(BOB), exchange.pair) == held
    async with running(settings, LocalNode(node, HERE)) as third:
        await eventually(lambda: exchange.balance(BOB, None) == START + 2 * COIN - FEE)
        await exchange.settled()
        book = third.engine.book(exchange.pair)
        assert book is not None
        assert [each.amount for each in book.orders()] == [COIN]


ONLY_SALES = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE EXPRESSION #-}
{-# SCRIPT_TYPE ACCOUNT #-}
match tx {
  case o: Order => o.orderType == Sell && sigVerify(o.bodyBytes, o.proofs[0], o.senderPublicKey)
  case _ => true
}
"""


async def test_the_script_of_an_account_decides(exchange: Exchange) -> None:
    matcher, node = exchange.matcher, exchange.node
    script = compile_source(ONLY_SALES).script
    own = codec.build(
        SET_SCRIPT,
        SetScript(script.source),
        version=2,
        chain_id=address_of(BOB)[1],
        sender_public_key=BOB.public_key,
        fee=1_000_000,
        timestamp=wall_clock(),
    )
    # The matcher knows the account already, as one without a script.
    await matcher.placing.place(exchange.order(BOB, Side.BUY, COIN, PRICE - 1), market=False)
    node.broadcast(codec.sign(own, BOB.private_key))
    await exchange.settled()
    await matcher.placing.place(exchange.order(ALICE, Side.BUY, 2 * COIN, PRICE), market=False)

    async def refused() -> object:
        try:
            await matcher.placing.place(
                exchange.order(BOB, Side.BUY, COIN, PRICE - 2), market=False
            )
        except MatcherError as error:
            return error.kind
        return None

    await eventually_equal(refused, errors.ACCOUNT_SCRIPT_DENIED_ORDER)
    await matcher.placing.place(exchange.order(BOB, Side.SELL, 2 * COIN, PRICE), market=False)
    await exchange.settled()
    await eventually(lambda: exchange.balance(ALICE, None) == START + 2 * COIN - FEE)
    assert matcher.settlement.unsettled_counts()[1] == 0


_CHECK = "(!sigVerify(base58'{}', base58'11111111111111111111111111111111', base58'11'))"
OPEN_OR_NOT = f"""{{-# STDLIB_VERSION 5 #-}}
{{-# CONTENT_TYPE EXPRESSION #-}}
{{-# SCRIPT_TYPE ASSET #-}}
match tx {{
  case _: ExchangeTransaction =>
    {" && ".join(_CHECK.format("1" * number) for number in range(1, 9))}
    && !isDefined(getBoolean(Address(base58'%s'), "closed"))
  case _ => true
}}
"""
"""Too complex to be refused by a block: it fails there."""


async def test_an_exchange_that_the_chain_did_not_execute_is_not_settled(
    exchange: Exchange,
) -> None:
    """The script of the asset thinks otherwise between the pool and the block."""
    matcher, node = exchange.matcher, exchange.node
    issuer = base58.encode(address_of(RICH))
    script = compile_source(OPEN_OR_NOT % issuer).script.source
    issue = transaction(ISSUE, Issue(b"Smart", b"", 10**10, 2, False, script), COIN)
    node.broadcast(issue)
    # The matcher's account is the other side of the exchange that the script is tried with.
    for keys in (ALICE, MATCHER):
        give = Transfer(address_of(keys), issue.id, 10**6, b"")
        node.broadcast(transaction(TRANSFER, give, 500_000))
    await exchange.settled()
    exchange.mining.cancel()
    pair = AssetPair(issue.id, exchange.usd)
    fee = FEE + 400_000
    usd = exchange.balance(BOB, exchange.usd)
    for keys, side in ((ALICE, Side.SELL), (BOB, Side.BUY)):
        order = make_order(keys, side, 1_000, 100 * COIN, pair=pair, fee=fee)
        await matcher.placing.place(order, market=False)
    await eventually(lambda: len(node.pool) == 1)
    node.broadcast(transaction(DATA, Data((DataEntry("closed", True),)), COIN))
    node.mine(RICH)
    failure = "script_execution_failed"
    await eventually(
        lambda: any(failure in each.message for each in matcher.settlement.unsettled(9))
    )
    [found] = matcher.settlement.unsettled(9)
    assert matcher.settlement.unsettled_counts() == (1, 0)
    assert exchange.balance(BOB, exchange.usd) == usd
    sent = found.transaction_id or b""
    client = matcher.node
    assert (await client.inclusions([sent]))[sent].failure == failure
    [exchanged] = matcher.database.transactions_of(found.sell_order_id)
    pair_of_orders = order_ids(exchanged)
    searched = await client.find_exchanges(address_of(MATCHER), [pair_of_orders], 0)
    assert searched[pair_of_orders].inclusion.failure == failure


ROLLBACKS = 10


@pytest.mark.slow
async def test_random_rollbacks_under_load_leave_every_trade_settled_once(
    exchange: Exchange,
) -> None:
    matcher, node, chance = exchange.matcher, exchange.node, random.Random(7)
    floor = node.chain.height
    for _ in range(ROLLBACKS):
        for _ in range(15):
            order = exchange.order(
                chance.choice((ALICE, BOB)),
                chance.choice((Side.BUY, Side.SELL)),
                chance.randint(1, 5) * COIN,
                chance.randint(PRICE - 5, PRICE + 5),
                chance.choice((1, 2, 3, 4)),
            )
            with contextlib.suppress(MatcherError):
                await matcher.placing.place(order, market=chance.random() < 0.2)
        for _ in range(chance.randint(0, 20)):
            node.mine(RICH)
        depth = chance.randint(1, 50)
        forging.roll_back(node, max(floor, node.chain.height - depth), keep=chance.random() < 0.5)
        await asyncio.sleep(0.01)
    await exchange.settled()
    trades = matcher.database.trades(exchange.pair, 10_000)
    assert len(trades) > ROLLBACKS
    await eventually(
        lambda: all(node.store.transaction_height(each.transaction_id or b"") for each in trades)
    )
    for keys in (ALICE, BOB):
        for asset, start in ((None, START), (exchange.usd, 10**9)):
            moved = sum(_moved(matcher, each, address_of(keys), asset) for each in trades)
            assert exchange.balance(keys, asset) == start + moved
    assert matcher.settlement.unsettled_counts()[1] == 0


def _moved(matcher: Matcher, trade: Trade, owner: bytes, asset: bytes | None) -> int:
    """What a trade brought an account of an asset, its fees taken off."""
    total = 0
    sides = (
        (trade.taker_order_id, trade.side, trade.taker_fee),
        (trade.maker_order_id, Side(1 - trade.side), trade.maker_fee),
    )
    for order_id, side, fee in sides:
        if (info := matcher.queries.order_info(order_id)) and info.owner == owner:
            sign = 1 if side is Side.BUY else -1
            if asset is None:
                total += sign * trade.amount - fee
            else:
                total -= sign * (trade.amount * trade.price // COIN)
    return total
