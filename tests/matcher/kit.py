"""A matcher for tests: accounts, orders, a node that does what it is told, and the real parts."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from soliton.chain import networks, orders
from soliton.chain.addresses import Address, from_public_key
from soliton.chain.features import Feature
from soliton.chain.orders import Order, PriceMode, Side
from soliton.chain.transactions import codec
from soliton.chain.transactions.exchange import TYPE as EXCHANGE
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.transfer import TYPE, Transfer
from soliton.chain.values import AssetId
from soliton.crypto.hashes import blake2b256
from soliton.crypto.keys import KeyPair, key_pair
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.journal.embedded import EmbeddedJournal, EmbeddedSettings, Sync
from soliton.matcher.journal.snapshots import SnapshotStore
from soliton.matcher.node_client import (
    AccountState,
    Asset,
    Balances,
    Broadcast,
    BroadcastAnswer,
    ChainIdentity,
    ChainStatus,
    FoundExchange,
    Inclusion,
    NodeUpdate,
    OrderPair,
    ScriptAnswer,
)
from soliton.matcher.recovery import identity_of
from soliton.matcher.renewal import order_ids
from soliton.matcher.service import Matcher
from soliton.matcher.settings import MatcherSettings
from soliton.matcher.settings import Settlement as SettlementSettings
from soliton.matcher.trading_settings import TradingSettings
from soliton.matching.pairs import AssetPair
from soliton.matching.placement import PlacementSettings
from soliton.web.clock import wall_clock

NETWORK = networks.load("devnet")
CHAIN_ID = NETWORK.chain_id
MATCHER = key_pair("matcher of the tests")
ALICE, BOB, CAROL = (key_pair(f"trader {name}") for name in ("alice", "bob", "carol"))
USD = blake2b256(b"a price asset")
PAIR = AssetPair(None, USD)
FEE = 300_000
COIN = 10**8
LIFETIME_MS = 24 * 60 * 60 * 1_000
PATIENCE_SECONDS = 60.0
"""So long a test waits for what has to come, on however busy a machine."""


def address_of(keys: KeyPair) -> Address:
    """The address of an account."""
    return from_public_key(keys.public_key, CHAIN_ID)


def _growing_times() -> Iterator[int]:
    """The time in milliseconds, each a later one."""
    last = 0
    while True:
        last = max(last + 1, wall_clock())
        yield last


_times = _growing_times()


def make_order(
    keys: KeyPair,
    side: Side,
    amount: int,
    price: int,
    *,
    pair: AssetPair = PAIR,
    version: int = 3,
    fee: int = FEE,
    fee_asset: AssetId | None = None,
    timestamp: int | None = None,
    lifetime_ms: int = LIFETIME_MS,
    matcher: KeyPair = MATCHER,
) -> Order:
    """A signed order of now, or a little later: two of one millisecond may be the same order."""
    now = next(_times) if timestamp is None else timestamp
    order = orders.build(
        Order(
            version=version,
            chain_id=CHAIN_ID,
            sender_public_key=keys.public_key,
            matcher_public_key=matcher.public_key,
            amount_asset=pair.amount_asset,
            price_asset=pair.price_asset,
            side=side,
            amount=amount,
            price=price,
            timestamp=now,
            expiration=now + lifetime_ms,
            matcher_fee=fee,
            matcher_fee_asset=fee_asset,
            price_mode=PriceMode.ASSET_DECIMALS if version >= 4 else PriceMode.DEFAULT,
        )
    )
    return orders.sign(order, keys.private_key)


def unsigned_transfer(number: int, timestamp: int = 1) -> AnyTransaction:
    """One of the matcher's account; each number gives another one."""
    return codec.build(
        TYPE,
        Transfer(address_of(ALICE), None, number + 1, b""),
        version=2,
        chain_id=CHAIN_ID,
        sender_public_key=MATCHER.public_key,
        fee=100_000,
        timestamp=timestamp,
    )


def exchange_of(
    number: int, timestamp: int, *, account: KeyPair = MATCHER, lifetime_ms: int = LIFETIME_MS
) -> AnyTransaction:
    """A signed exchange of Alice's and Bob's; each number gives another one."""
    sell, buy = (
        make_order(
            *(keys, side, COIN + number, 250),
            timestamp=timestamp - 1_000,
            lifetime_ms=lifetime_ms,
            matcher=account,
        )
        for keys, side in ((ALICE, Side.SELL), (BOB, Side.BUY))
    )
    draft = codec.build(
        EXCHANGE,
        Exchange(buy, sell, COIN + number, 250, FEE, FEE),
        version=2,
        chain_id=CHAIN_ID,
        sender_public_key=account.public_key,
        fee=FEE,
        timestamp=timestamp,
    )
    return codec.sign(draft, account.private_key)


class FakeNode:
    """A ``NodeClient`` that holds what the test says, and keeps what it was sent."""

    parallel_requests = 1
    parallel_broadcasts = 1

    def __init__(self) -> None:
        self.balances: dict[Address, Balances] = {address_of(MATCHER): {None: 1_000 * COIN}}
        self.leased: dict[Address, int] = {}
        self.assets: dict[AssetId, Asset] = {USD: Asset("US dollar", 2, scripted=False)}
        self.scripted: set[Address] = set()
        self.script_answer = ScriptAnswer()
        self.executed: set[bytes] = set()
        self.features = set(Feature)
        self.sent: list[AnyTransaction] = []
        self.answer = BroadcastAnswer(Broadcast.UNCONFIRMED)
        self.pool: list[AnyTransaction] = []
        self.mined: dict[bytes, int] = {}
        self.failures: dict[bytes, str] = {}
        self.blocks: dict[int, bytes] = {}
        self.block_times: dict[int, int] = {}
        self.ahead_ms = 0
        self.height = 1
        self.finalized = 0
        self.down = False
        self.hangs = False
        self.chain = ChainIdentity(CHAIN_ID, "the first block of the tests")
        self._news: list[asyncio.Queue[NodeUpdate]] = []

    def fund(self, keys: KeyPair, **_: int) -> None:
        """Much of everything."""
        self.balances[address_of(keys)] = {None: 10**6 * COIN, USD: 10**12}

    def tell(self, update: NodeUpdate) -> None:
        """Let the matcher know."""
        for queue in self._news:
            queue.put_nowait(update)

    def update(self, **parts: object) -> None:
        """Let the matcher know of some change on the last block."""
        present = NodeUpdate(self._status(), finalized=self.finalized)
        self.tell(msgspec.structs.replace(present, **parts))

    def mine(self, *transactions: AnyTransaction) -> None:
        """A block with transactions; balances change as the test has set them before."""
        self.height += 1
        for transaction in transactions:
            self.mined[transaction.id] = self.height
        self.update(
            confirmed=tuple((each.id, self.height) for each in transactions),
            failures={each.id: why for each in transactions if (why := self.failures.get(each.id))},
            vanished=tuple(each.id for each in transactions),
            changed=None,
        )

    def roll_back(self, height: int) -> None:
        """Blocks above a height are gone, with their transactions."""
        self.height = height
        self.mined = {each: at for each, at in self.mined.items() if at <= height}
        self.update(rolled_back_to=height, changed=None)

    def _status(self) -> ChainStatus:
        return ChainStatus(self.height, self.height.to_bytes(32, "big"))

    def _answer(self) -> None:
        if self.down:
            raise NodeUnavailable("the node of the test is down")

    async def identity(self) -> ChainIdentity:
        self._answer()
        await self.hanging()
        return self.chain

    async def hanging(self) -> None:
        if self.hangs:
            await asyncio.Event().wait()

    async def status(self) -> ChainStatus:
        self._answer()
        await self.hanging()
        return self._status()

    async def block_id(self, height: int) -> bytes | None:
        self._answer()
        if not 1 <= height <= self.height:
            return None
        return self.blocks.get(height, height.to_bytes(32, "big"))

    async def feature_active(self, feature: int) -> bool:
        self._answer()
        return feature in self.features

    async def asset(self, asset_id: AssetId) -> Asset | None:
        self._answer()
        return self.assets.get(asset_id)

    async def has_script(self, address: Address) -> bool:
        self._answer()
        return address in self.scripted

    async def account(
        self, address: Address, assets: Collection[AssetId | None] | None
    ) -> AccountState:
        self._answer()
        own = self.balances.get(address, {})
        wanted = own if assets is None else assets
        found = {asset: own.get(asset, 0) for asset in wanted}
        return AccountState(found, self.leased.get(address, 0))

    async def was_executed(self, order_id: bytes) -> bool:
        self._answer()
        return order_id in self.executed

    async def run_scripts(
        self,
        trials: Iterable[AnyTransaction],
        order: Order,
        assets: Collection[AssetId],
        *,
        blind: bool,
    ) -> ScriptAnswer:
        self._answer()
        del trials, order, assets, blind
        return self.script_answer

    async def broadcast(self, transaction: AnyTransaction) -> BroadcastAnswer:
        self._answer()
        self.sent.append(transaction)
        if self.answer.result is Broadcast.UNCONFIRMED:
            self.update(appeared=(transaction,))
        return self.answer

    def inclusion(self, transaction_id: bytes) -> Inclusion:
        return Inclusion(self.mined[transaction_id], self.failures.get(transaction_id, ""))

    async def inclusions(self, transaction_ids: Sequence[bytes]) -> dict[bytes, Inclusion]:
        self._answer()
        return {each: self.inclusion(each) for each in transaction_ids if each in self.mined}

    async def now(self) -> int:
        self._answer()
        return wall_clock() + self.ahead_ms

    async def block_time(self, height: int) -> int:
        self._answer()
        return self.block_times.get(height, 0)

    async def find_exchanges(
        self, account: Address, wanted: Collection[OrderPair], since: int
    ) -> dict[OrderPair, FoundExchange]:
        self._answer()
        del account, since
        return {
            order_ids(each): FoundExchange(each, self.inclusion(each.id))
            for each in self.sent
            if order_ids(each) in wanted and each.id in self.mined
        }

    async def updates(self) -> AsyncGenerator[NodeUpdate, None]:
        queue: asyncio.Queue[NodeUpdate] = asyncio.Queue()
        self._news.append(queue)
        yield NodeUpdate(self._status(), appeared=tuple(self.pool), changed=None)
        while True:
            yield await queue.get()

    async def close(self) -> None:
        """Nothing to end."""


def settings_in(directory: Path, **changes: object) -> MatcherSettings:
    """The settings of a matcher with its data in a directory."""
    settings = MatcherSettings(
        network=NETWORK,
        directory=directory,
        account=MATCHER,
        settlement=SettlementSettings(interval_ms=50),
        trading=TradingSettings(placement=PlacementSettings(b"", price_assets=(USD,))),
    )
    return msgspec.structs.replace(settings, **changes)


def make_matcher(settings: MatcherSettings, node: object) -> Matcher:
    """A matcher with an embedded journal that does not wait for the disk."""
    identity = identity_of(settings)
    return Matcher(
        settings,
        node,  # type: ignore[arg-type]  # a fake, or the real one
        EmbeddedJournal(
            settings.directory / "journal",
            identity,
            settings.clock,
            EmbeddedSettings(sync=Sync.NEVER),
        ),
        SnapshotStore(settings.directory / "snapshots", identity),
        durable=False,
    )


@asynccontextmanager
async def running(settings: MatcherSettings, node: object) -> AsyncIterator[Matcher]:
    """A matcher that takes orders."""
    matcher = make_matcher(settings, node)
    await matcher.start()
    try:
        await asyncio.wait_for(matcher.working(), PATIENCE_SECONDS)
        yield matcher
    finally:
        await matcher.stop()


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until something is so; fails when it does not come to be."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110 - whatever it is that changes
            await asyncio.sleep(0.005)


async def eventually_equal(question: Callable[[], Awaitable[object]], expected: object) -> None:
    """Ask until the answer is as expected; fails with the last answer."""
    answer: object = None
    for _ in range(500):
        answer = await question()
        if answer == expected:
            return
        await asyncio.sleep(0.01)
    assert answer == expected
