"""The matcher: all parts together, from its start to its end.

A start is a recovery: the newest snapshot, then the journal from there on, then what the node says
about the accounts and transactions that this leaves. Only then orders are taken. Losing the journal
(another master, a disk that fails) leads back to reading it.

What lives here: the life of the service, and what its interfaces may ask and do
(``core.MatcherCore``). What does not: the parts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence

import msgspec

from soliton.chain.addresses import Address, address_text, from_public_key
from soliton.chain.orders import Order
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.matcher import inquiries
from soliton.matcher.accounts import Account, Accounts
from soliton.matcher.assets import ChainKnowledge
from soliton.matcher.clock import compare_clocks, keep_time
from soliton.matcher.core import Listener
from soliton.matcher.damping import damped
from soliton.matcher.effects import Effects
from soliton.matcher.errors import DatabaseProblem, NodeUnavailable
from soliton.matcher.following import (
    follow_node,
    forget_settled,
    keep_up,
    load_accounts,
    until_answered,
)
from soliton.matcher.journal import Journal
from soliton.matcher.journal.errors import JournalProblem
from soliton.matcher.journal.snapshots import SnapshotStore
from soliton.matcher.node_client import Asset, Balances, NodeClient
from soliton.matcher.node_watch import NodeWatch
from soliton.matcher.orders_db import OrdersDatabase
from soliton.matcher.placing import Placing
from soliton.matcher.quarantine import Quarantine, SetAside
from soliton.matcher.records import (
    AddressReport,
    Offsets,
    OrderInfo,
    Place,
    ServiceStatus,
    Trade,
    Unsettled,
)
from soliton.matcher.recovery import check_ends, recover_engine, resting_assets
from soliton.matcher.renewal import window_of
from soliton.matcher.saving import Saving
from soliton.matcher.sequencer import CommandSetAside, Sequencer
from soliton.matcher.settings import MatcherSettings
from soliton.matcher.settlement import Settlement
from soliton.matcher.signing import ExchangeSigner
from soliton.matcher.turns import end_all, first_end
from soliton.matching import errors
from soliton.matching.commands import CancelAllOrders, CancelSource, Command, DeleteOrderBook
from soliton.matching.engine import Engine
from soliton.matching.errors import MatcherError
from soliton.matching.model import ActiveOrder
from soliton.matching.pairs import AssetPair
from soliton.matching.placement import Restrictions
from soliton.matching.rates import Rates
from soliton.matching.rules import MatchingSettings
from soliton.matching.validation import check_pair
from soliton.parallel.signatures import SignatureChecker

FLUSH_SECONDS = 0.5
"""How long what became of orders stays in memory only; the journal has it all the same."""
MAX_UNWRITTEN = 2_000_000
"""Changes that wait for the orders database, at most; beyond, orders are refused."""
_RETRY_SECONDS = 1.0
_EXPIRATION_SECONDS = 0.05

_log = damped(logging.getLogger(__name__))


class Matcher:
    """One matcher. ``start`` it, and ``stop`` it; use from one event loop."""

    def __init__(
        self,
        settings: MatcherSettings,
        node: NodeClient,
        journal: Journal,
        snapshots: SnapshotStore,
        *,
        durable: bool = True,
    ) -> None:
        """Raises ``DatabaseProblem``. The journal and the node client are closed with it."""
        self.settings = settings
        self.node = node
        self.status = ServiceStatus.STARTING
        self._journal = journal
        self._snapshots = snapshots
        chain_id = settings.network.chain_id
        self._address = from_public_key(settings.account.public_key, chain_id)
        self.database = OrdersDatabase(
            settings.directory / "orders",
            address_text(self._address),
            chain_id,
            settings.max_finalized_orders,
            durable=durable,
        )
        self.database.before_write = journal.confirm
        self.chain = ChainKnowledge(node, self._address)
        self._rates = Rates(self.database.rates())
        self.engine = Engine(MatchingSettings())
        self.settlement = Settlement(
            *(node, self.database, settings.settlement, window_of(settings.network)),
            *(settings.account, self),
        )
        self._signatures = SignatureChecker()
        signer = ExchangeSigner(settings.account, self._signatures, self.settlement.add)
        self.database.complete = signer.finish
        self.effects = Effects(
            *(self.engine, self.chain, self.database, signer.sign),
            *(settings.account.public_key, settings.trading.exchange_base_fee),
        )
        self.quarantine = Quarantine(settings.directory)
        self._sequencer = Sequencer(
            journal, self.engine, self.effects.apply, self._prepare, self.quarantine
        )
        self.placement = msgspec.structs.replace(
            settings.trading.placement,
            matcher_public_key=settings.account.public_key,
            max_active_orders=settings.max_active_orders,
        )
        self._placing = Placing(
            *(settings, self.placement, self.engine, node, self.chain, self.database),
            *(self._sequencer, self._rates, self._signatures),
        )
        self._watch = NodeWatch(node, settings, self.database)
        self._accounts: Accounts | None = None
        self._life: asyncio.Task[None] | None = None
        self._serving: list[asyncio.Task[None]] = []
        self._working = asyncio.Event()
        parts = self.engine, snapshots, journal, self.database
        self._saving = Saving(*parts, lambda: not self._sequencer.lost.is_set())

    # --- life -------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to live; returns at once. ``working`` tells when orders are taken."""
        self._life = asyncio.create_task(self._live())

    async def working(self) -> None:
        """Return when orders are taken; raises what ended the life before that."""
        assert self._life is not None, "not started"
        waiting = asyncio.create_task(self._working.wait())
        await asyncio.wait([waiting, self._life], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._life.done():
            self._life.result()

    async def ended(self) -> None:
        """Return when the life is over; raises what ended it."""
        assert self._life is not None, "not started"
        # Who does not want to wait any longer does not end it.
        await asyncio.shield(self._life)

    async def stop(self) -> None:
        """Finish what is under way, keep a snapshot, and let go of everything."""
        was_working = self.status is ServiceStatus.WORKING
        self.status = ServiceStatus.STOPPING
        self._working.clear()
        await self._sequencer.drain()
        await end_all([*self._serving, *([self._life] if self._life is not None else [])])
        if was_working:
            await self._saving.at_the_end()
        await self._signatures.close()
        try:
            await self.database.close()
        finally:
            await self._journal.close()
            await self.node.close()

    async def _live(self) -> None:
        known, clocks = (self.settlement, self.chain), (self.settings.clock, self.node)
        saving = self._saving.every(self.settings.snapshots_interval)
        work = (
            *(self._flush(), saving, keep_time(*clocks), keep_up(*known)),
            forget_settled(self.settlement),
        )
        jobs = [asyncio.create_task(job) for job in work]
        try:
            # What has ended a job was not foreseen: nothing says that the rest is as it should be.
            await first_end(asyncio.create_task(self._take_terms()), jobs)
        finally:
            await end_all([*self._serving, *jobs])

    async def _take_terms(self) -> None:
        """Recover and take orders, again and again."""
        await until_answered(self._watch.check_chain)
        await until_answered(self._learn_rules)
        await compare_clocks(self.settings.clock, self.node)
        self._recover_engine()
        while True:
            await until_answered(self._learn_assets)
            try:
                count = await self._sequencer.replay(self.engine.last_offset + 1)
            except CommandSetAside:
                self._recover_engine()
                continue
            _log.log(
                logging.INFO if count else logging.DEBUG,
                "%d commands replayed, up to offset %d",
                *(count, self.engine.last_offset),
            )
            check_ends(self.engine.last_offset, self.database)
            self._saving.set_aside_ahead()
            self.effects.know_resting()
            await self._serve()
            # Another master's commands may follow ours: the books have to be read anew.
            self._recover_engine()

    async def _learn_rules(self) -> None:
        trading = self.settings.trading
        await self.chain.learn(trading.tick_size_assets())
        await self.chain.refresh()
        self.engine.settings = trading.matching(self.chain.decimals)

    def _recover_engine(self) -> None:
        """Go back to what is certain."""
        self._saving.offsets = recover_engine(
            self.engine, self._snapshots, self._journal, self.database
        )

    async def _learn_assets(self) -> None:
        """The assets of all resting orders."""
        await self.chain.learn(resting_assets(self.engine))

    async def _prepare(self, command: Command) -> None:
        """Know the assets of an order that is about to be replayed."""
        order = getattr(command, "order", None)
        if isinstance(order, Order) and not self.chain.knows(order):
            wanted = (order.amount_asset, order.price_asset, order.matcher_fee_asset)
            await until_answered(lambda: self.chain.learn(wanted))

    async def _serve(self) -> None:
        """Take orders until the journal is lost."""
        accounts = Accounts(
            *(self.node, self.chain.decimals, self._tell_balances, self._cancel_uncovered),
            self.settlement.outstanding,
        )
        followed = asyncio.Event()
        self.settlement.load()
        follower = follow_node(self.node, self.settlement, self.chain, accounts, followed)
        self._serving = [asyncio.create_task(each) for each in (follower, self._watch.run())]
        try:
            await self._serve_until(followed.wait())
            await until_answered(self.settlement.reconcile)
            await until_answered(lambda: load_accounts(accounts, self.effects, self.settlement))
            self._accounts = self.effects.accounts = accounts
            tasks = (self._expire(), *self.settlement.tasks())
            self._serving += [asyncio.create_task(task) for task in tasks]
            for account in accounts.all():
                accounts.check(account)
            self.status = ServiceStatus.WORKING
            self._working.set()
            _log.debug("working")
            await self._serve_until(self._sequencer.lost.wait(), self._journal.term_ended())
        finally:
            accounts.over = True
            self._working.clear()
            if self.status is ServiceStatus.WORKING:
                self.status = ServiceStatus.STARTING
            self._accounts = self.effects.accounts = None
            self.settlement.rest()
            await end_all(self._serving)
            self._serving = []
        await self._sequencer.drain()

    async def _serve_until(self, *ends: Coroutine[None, None, object]) -> None:
        """Return when one of these does; raises what ended one of the serving tasks."""
        waits = [asyncio.create_task(end) for end in ends]
        try:
            await asyncio.wait([*waits, *self._serving], return_when=asyncio.FIRST_COMPLETED)
            for task in self._serving:
                if task.done():
                    task.result()
        finally:
            await end_all(waits)

    # --- jobs -------------------------------------------------------------------------------------

    async def _flush(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            try:
                await self.database.flush()
            except (JournalProblem, DatabaseProblem) as error:
                _log.error("%s", error)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _expire(self) -> None:
        while True:
            now = self.settings.clock()
            for active in self.effects.expirations.take_due(now):
                self._submit_cancel(active, CancelSource.EXPIRATION)
            await asyncio.sleep(_EXPIRATION_SECONDS)

    async def save_snapshots(self) -> None:
        """As ``MatcherCore.save_snapshots``; raises ``JournalProblem`` or ``DatabaseProblem``."""
        await self._saving.save()

    # --- what parts tell each other ---------------------------------------------------------------

    def _tell_balances(self, owner: Address, assets: frozenset[AssetId | None]) -> None:
        for listener in self.effects.listeners:
            listener.on_balances(owner, assets)

    def _cancel_uncovered(self, account: Account, lost: tuple[ActiveOrder, ...]) -> None:
        for active in lost:
            if active.id not in account.canceling:
                self._submit_cancel(active, CancelSource.BALANCE_TRACKING)

    def _submit_cancel(self, active: ActiveOrder, source: CancelSource) -> None:
        accounts = self._accounts
        if accounts is None:
            return
        account = accounts.peek(active.owner)
        if account is None or active.id not in account.balances.orders:
            return
        try:
            if active.id not in account.canceling:
                self._placing.submit_cancel(active, account, source)
        except MatcherError as error:
            _log.warning("an order stays for now: %s", error)
        # The journal may refuse it, as it may refuse what a client has sent before.
        loop = asyncio.get_running_loop()
        loop.call_later(_RETRY_SECONDS, self._submit_cancel, active, source)

    def given_up(self, transaction_id: bytes) -> None:
        """As ``settlement.Listener.given_up``."""
        if self._accounts is not None:
            self._accounts.give_up(transaction_id)

    def lost(self, transaction: AnyTransaction) -> None:
        """As ``settlement.Listener.lost``."""
        if self._accounts is not None:
            self._accounts.expect(transaction)

    def _require_accounts(self) -> Accounts:
        if self.status is ServiceStatus.STOPPING:
            raise MatcherError(errors.MATCHER_IS_STOPPING)
        if self._accounts is None:
            raise MatcherError(errors.MATCHER_IS_STARTING)
        return self._accounts

    # --- orders -----------------------------------------------------------------------------------

    async def place(self, order: Order, *, market: bool, is_signed: bool | None = None) -> None:
        """As ``MatcherCore.place``."""
        accounts = self._require_accounts()
        if self._watch.is_silent:
            raise MatcherError(errors.WAVES_NODE_CONNECTION_BROKEN)
        if self.database.unwritten > MAX_UNWRITTEN:
            raise MatcherError(errors.CAN_NOT_PERSIST_EVENT)
        try:
            await self._placing.place(order, accounts, market=market, is_signed=is_signed)
        except NodeUnavailable as error:
            _log.warning("an order could not be checked: %s", error)
            raise MatcherError(errors.WAVES_NODE_CONNECTION_BROKEN) from error

    async def cancel(self, order_id: bytes, owner: Address, source: CancelSource) -> None:
        """As ``MatcherCore.cancel``."""
        await self._placing.cancel(order_id, owner, source, self._require_accounts())

    async def cancel_all(
        self, owner: Address, pair: AssetPair | None
    ) -> list[tuple[bytes, MatcherError | None]]:
        """As ``MatcherCore.cancel_all``."""
        account = self._require_accounts().peek(owner)
        if account is None:
            return []
        found = [
            active.id
            for active in account.balances.orders.values()
            if not active.is_market and (pair is None or active.pair == pair)
        ]
        return await self.cancel_many(owner, found)

    async def cancel_many(
        self, owner: Address, order_ids: Sequence[bytes]
    ) -> list[tuple[bytes, MatcherError | None]]:
        """As ``MatcherCore.cancel_many``."""
        accounts = self._require_accounts()
        unique = list(dict.fromkeys(order_ids))

        async def one(order_id: bytes) -> MatcherError | None:
            try:
                await self._placing.cancel(order_id, owner, CancelSource.REQUEST, accounts)
            except MatcherError as error:
                return error
            return None

        tasks = [asyncio.create_task(one(order_id)) for order_id in unique]
        if tasks:
            _, late = await asyncio.wait(
                tasks, timeout=self.settings.batch_cancel_timeout_ms / 1000
            )
            await end_all(list(late))
        timeout = MatcherError(errors.REQUEST_TIMEOUT)
        answers = [timeout if task.cancelled() else task.result() for task in tasks]
        return list(zip(unique, answers, strict=True))

    async def cancel_all_in_book(self, pair: AssetPair) -> None:
        """As ``MatcherCore.cancel_all_in_book``."""
        await self._with_book(pair, CancelAllOrders(pair))

    async def delete_book(self, pair: AssetPair) -> None:
        """As ``MatcherCore.delete_book``."""
        await self._with_book(pair, DeleteOrderBook(pair))

    async def _with_book(self, pair: AssetPair, command: Command) -> None:
        self._require_accounts()
        if self.engine.book(pair) is None:
            raise MatcherError(errors.ORDER_BOOK_BROKEN, assetPair=pair)
        await asyncio.shield(self._sequencer.submit(command))

    # --- questions --------------------------------------------------------------------------------

    @property
    def public_key(self) -> bytes:
        """As ``MatcherCore.public_key``."""
        return self.settings.account.public_key

    @property
    def address(self) -> Address:
        """As ``MatcherCore.address``."""
        return self._address

    @property
    def price_assets(self) -> tuple[AssetId | None, ...]:
        """As ``MatcherCore.price_assets``."""
        return self.placement.price_assets

    @property
    def offsets(self) -> Offsets:
        """As ``MatcherCore.offsets``."""
        snapshots = self._saving.offsets or (-1,)
        ends = self.engine.last_offset, self._journal.last_offset
        return Offsets(*ends, snapshots[-1], snapshots[0])

    def now(self) -> int:
        """As ``MatcherCore.now``."""
        return self.settings.clock()

    def owner_of(self, order_id: bytes) -> Address | None:
        """As ``MatcherCore.owner_of``."""
        info = self.order_info(order_id)
        return None if info is None else info.owner

    def order_info(self, order_id: bytes) -> OrderInfo | None:
        """As ``MatcherCore.order_info``."""
        return inquiries.order_info(order_id, self.engine, self.database)

    def history(
        self, owner: Address, pair: AssetPair | None, *, active: bool, closed: bool
    ) -> list[OrderInfo]:
        """As ``MatcherCore.history``."""
        account = None if self._accounts is None else self._accounts.peek(owner)
        shown = account if active else None
        return inquiries.history(owner, pair, shown, self.database, closed=closed)

    def transactions(self, order_id: bytes) -> list[AnyTransaction]:
        """As ``MatcherCore.transactions``."""
        return self.database.transactions_of(order_id)

    def set_aside(self) -> list[SetAside]:
        """As ``MatcherCore.set_aside``."""
        return self.quarantine.all()

    def unsettled(self, limit: int) -> list[Unsettled]:
        """As ``MatcherCore.unsettled``."""
        return self.settlement.unsettled(limit)

    def unsettled_counts(self) -> tuple[int, int]:
        """As ``MatcherCore.unsettled_counts``."""
        return self.settlement.unsettled_counts()

    def trades(self, pair: AssetPair, limit: int, since: int | None = None) -> list[Trade]:
        """As ``MatcherCore.trades``."""
        if since is None:
            return self.database.trades(pair, limit)
        return self.database.trades_from(pair, since, limit)

    def trades_after(self, pair: AssetPair, place: Place | None, limit: int) -> list[Trade]:
        """As ``MatcherCore.trades_after``."""
        return self.database.trades_after(pair, place, limit)

    def pairs(self) -> dict[AssetPair, int]:
        """As ``MatcherCore.pairs``."""
        return dict(self.effects.books)

    def check_pair(self, pair: AssetPair) -> None:
        """As ``MatcherCore.check_pair``."""
        known = pair.amount_asset in self.chain.assets and pair.price_asset in self.chain.assets
        check_pair(pair, self.placement, self.chain.assets if known else None)

    def restrictions(self, pair: AssetPair) -> Restrictions | None:
        """As ``MatcherCore.restrictions``."""
        return self.placement.restrictions.get(pair)

    async def asset(self, asset_id: AssetId | None) -> Asset:
        """As ``MatcherCore.asset``."""
        try:
            return await self.chain.asset(asset_id)
        except NodeUnavailable as error:
            raise MatcherError(errors.WAVES_NODE_CONNECTION_BROKEN) from error

    async def order_versions(self) -> tuple[int, ...]:
        """As ``MatcherCore.order_versions``."""
        return inquiries.order_versions(self.placement, self.engine, self.chain)

    async def base_fee(self) -> int:
        """As ``MatcherCore.base_fee``."""
        return inquiries.base_fee(self.engine, self.chain)

    async def minimum_fee(
        self, pair: AssetPair, order: Order
    ) -> tuple[tuple[AssetId | None, int], tuple[AssetId | None, int] | None]:
        """As ``MatcherCore.minimum_fee``."""
        for asset_id in (pair.amount_asset, pair.price_asset):
            await self.asset(asset_id)
        return await inquiries.minimum_fees(pair, order, self.engine, self.chain, self._rates)

    async def tradable(self, owner: Address, pair: AssetPair) -> Balances:
        """As ``MatcherCore.tradable``."""
        assets = (pair.amount_asset, pair.price_asset)
        account = await self._known(owner, assets)
        found = {each: account.balances.tradable(each) for each in assets}
        return {asset_id: amount for asset_id, amount in found.items() if amount > 0}

    async def reserved(self, owner: Address) -> Balances:
        """As ``MatcherCore.reserved``."""
        account = self._require_accounts().peek(owner)
        return {} if account is None else account.balances.reserved

    async def report(self, owner: Address) -> AddressReport:
        """As ``MatcherCore.report``."""
        account = await self._known(owner, None)
        return inquiries.report(account)

    async def _known(self, owner: Address, assets: tuple[AssetId | None, ...] | None) -> Account:
        accounts = self._require_accounts()
        account = accounts.get(owner)
        try:
            await accounts.ensure(account, assets)
        except NodeUnavailable as error:
            raise MatcherError(errors.WAVES_NODE_CONNECTION_BROKEN) from error
        return account

    # --- rates and listeners ----------------------------------------------------------------------

    def rates(self) -> dict[AssetId | None, float]:
        """As ``MatcherCore.rates``."""
        return self._rates.latest()

    def put_rate(self, asset_id: AssetId | None, rate: float) -> float | None:
        """As ``MatcherCore.put_rate``."""
        before = self._rates.put(asset_id, rate)
        self._keep_rate(asset_id, rate)
        return before

    def delete_rate(self, asset_id: AssetId | None) -> float:
        """As ``MatcherCore.delete_rate``."""
        before = self._rates.delete(asset_id)
        self._keep_rate(asset_id, None)
        return before

    def _keep_rate(self, asset_id: AssetId | None, rate: float | None) -> None:
        assert asset_id is not None, "the native coin's rate is refused before"
        self.database.put_rate(asset_id, rate)
        for listener in self.effects.listeners:
            listener.on_rates({asset_id: rate})

    def subscribe(self, listener: Listener) -> None:
        """As ``MatcherCore.subscribe``."""
        self.effects.listeners = [*self.effects.listeners, listener]

    def unsubscribe(self, listener: Listener) -> None:
        """As ``MatcherCore.unsubscribe``."""
        self.effects.listeners = [each for each in self.effects.listeners if each is not listener]
