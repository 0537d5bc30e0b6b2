"""The accounts that trade here, kept up to date with the node.

An account is watched from its first use on. Its balances are requested once, and again when the
node reports that they may have changed; its outflows in unconfirmed transactions are tracked
separately.

What lives here: the watched accounts, and updating them. What does not: the arithmetic of one
account (``soliton.matching.balances``), and cancelling orders that are no longer covered (the
callback ``on_uncovered``).

Sources: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/actors/address/AddressActor.scala``,
``docs/waves-node-interaction.md``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Final

from soliton.chain.addresses import Address
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.matcher.node_client import AccountState, NodeClient, NodeUpdate
from soliton.matcher.pending_outflows import Decimals, Outflows, outflows_of
from soliton.matcher.time_slices import in_slices
from soliton.matching.balances import AccountBalances, Touched
from soliton.matching.events import OrderExecuted
from soliton.matching.model import ActiveOrder

MAX_WATCHED: Final = 100_000
"""The maximum number of watched accounts; beyond it, idle ones are evicted, the oldest first."""

Amounts = dict[AssetId | None, int]


class Account:
    """One account. ``lock`` serializes its placements. ``queued`` are orders whose placement has
    not finished, ``placing`` those being written to the journal (and the ``signed_name`` of
    wallet-signed ones), ``canceling`` those being cancelled. An account with any of the first two
    is not evicted.
    """

    __slots__ = (
        *("address", "balances", "canceling", "complete", "lock", "placing", "queued"),
        *("scripted", "stale", "suspect"),
    )

    def __init__(self, address: Address) -> None:
        self.address = address
        self.balances = AccountBalances()
        self.lock = asyncio.Lock()
        self.queued: set[bytes] = set()
        self.placing: set[bytes] = set()
        self.canceling: set[bytes] = set()
        self.complete = False
        self.stale = 0
        self.suspect = False
        self.scripted: bool | None = None

    @property
    def idle(self) -> bool:
        """Whether it can be evicted and reloaded without loss."""
        balances = self.balances
        held = balances.orders or self.queued or self.placing or balances.not_observed
        return not held


class Accounts:
    """All watched accounts. Use from one event loop."""

    def __init__(
        self,
        node: NodeClient,
        decimals: Decimals,
        on_changed: Callable[[Address, frozenset[AssetId | None]], None],
        on_uncovered: Callable[[Account, tuple[ActiveOrder, ...]], None],
        outstanding: Callable[[bytes], AnyTransaction | None] = lambda _: None,
        own: Address | None = None,
    ) -> None:
        """``outstanding`` returns a transaction that should be on the chain, but is not. ``own`` is
        the matcher's account, which is always watched.
        """
        self._own = own
        self._node = node
        self._outstanding = outstanding
        self._decimals = decimals
        self._on_changed = on_changed
        self._on_uncovered = on_uncovered
        self._watched: dict[Address, Account] = {}
        self._pool: dict[bytes, Outflows] = {}
        # Sums over the pool: an account may have thousands of transactions there.
        self._spent: dict[Address, Amounts] = {}
        self._unobserved: dict[bytes, list[Address]] = {}
        # Accounts whose unconfirmed transactions changed, until their balances are updated.
        self._touched: dict[Address, set[AssetId | None]] = {}
        self.stopped = False
        """Set when the accounts are no longer kept up to date."""

    def __len__(self) -> int:
        return len(self._watched)

    def all(self) -> list[Account]:
        """All watched accounts."""
        return list(self._watched.values())

    def peek(self, address: Address) -> Account | None:
        """An account, if it is watched."""
        return self._watched.get(address)

    def get(self, address: Address) -> Account:
        """An account, watched from now on."""
        account = self._watched.get(address)
        if account is None:
            if len(self._watched) >= MAX_WATCHED:
                self._evict()
            account = self._watched[address] = Account(address)
            account.balances.unconfirmed = self.unconfirmed(address)
        return account

    def _evict(self) -> None:
        idle = (
            address
            for address, account in self._watched.items()
            if account.idle and address != self._own
        )
        for address in [found for _, found in zip(range(MAX_WATCHED // 10), idle, strict=False)]:
            del self._watched[address]

    def unconfirmed(
        self, address: Address, assets: Iterable[AssetId | None] | None = None
    ) -> Amounts:
        """The outflows of an account in unconfirmed transactions (of some assets), as negative
        amounts.
        """
        spent = self._spent.get(address, {})
        return {
            asset_id: -spent.get(asset_id, 0) for asset_id in (spent if assets is None else assets)
        }

    # --- the node's state -------------------------------------------------------------------------

    async def ensure(self, account: Account, assets: Collection[AssetId | None] | None) -> None:
        """Load the account's balances of some assets, or of all; raises ``NodeUnavailable``."""
        if account.complete:
            return
        known = account.balances.regular
        missing = None if assets is None else [each for each in assets if each not in known]
        if missing == []:
            return
        if missing is not None and account.balances.leased_out is None and None not in missing:
            missing.append(None)
        await self._read(account, missing)
        if assets is None:
            account.complete = True

    async def reload(self, account: Account, assets: Collection[AssetId | None]) -> None:
        """Load some balances again, though no change was reported; raises ``NodeUnavailable``."""
        await self._read(account, assets)

    async def _read(self, account: Account, assets: Collection[AssetId | None] | None) -> None:
        """Request balances, and again if they may have changed meanwhile."""
        while True:
            stale = account.stale
            state = await self._node.account(account.address, assets)
            if stale == account.stale:
                break
        leased_out = state.leased_out if assets is None or None in assets else None
        account.balances.update(state.balances, leased_out)

    async def has_script(self, account: Account) -> bool:
        """Whether the account has a script; raises ``NodeUnavailable``."""
        if account.scripted is None:
            account.scripted = await self._node.has_script(account.address)
        return account.scripted

    # --- the engine's events ----------------------------------------------------------------------

    def adopt(self, order: ActiveOrder) -> Account:
        """Add an order that is in a book."""
        account = self.get(order.owner)
        account.balances.place(order)
        return account

    def executed(self, event: OrderExecuted, transaction_id: bytes | None) -> None:
        """Record an execution; ``transaction_id`` is that of its exchange, if there is one."""
        taker_owner, maker_owner = event.taker.owner, event.maker.owner
        states = ((event.taker, event.taker_is_done), (event.maker, event.maker_is_done))
        if taker_owner == maker_owner:
            self._executed(taker_owner, transaction_id, states)
        else:
            self._executed(taker_owner, transaction_id, states[:1])
            self._executed(maker_owner, transaction_id, states[1:])

    def _executed(
        self,
        owner: Address,
        transaction_id: bytes | None,
        states: tuple[tuple[ActiveOrder, bool], ...],
    ) -> None:
        account = self.get(owner)
        account.balances.executed(transaction_id, states)
        if transaction_id is not None:
            self._unobserved.setdefault(transaction_id, []).append(owner)
        self._on_changed(owner, _assets_of(states))

    def canceled(self, order: ActiveOrder) -> None:
        """Remove a cancelled order."""
        owner = order.owner
        account = self._watched.get(owner)
        if account is not None:
            account.canceling.discard(order.id)
            self._notify(owner, account.balances.release(order.id))

    def corrected(self, order: ActiveOrder) -> None:
        """Reserve what a resting order needs after a correction of an execution."""
        owner = order.owner
        self._notify(owner, self.get(owner).balances.correct(order))

    def expect(self, transaction: AnyTransaction) -> None:
        """Hold back what an exchange spends whose execution is recorded, but which the node does
        not have (any more).
        """
        if transaction.id in self._pool:
            return
        for owner, amounts in outflows_of(transaction, self._decimals).items():
            waiting = self._unobserved.setdefault(transaction.id, [])
            if owner not in waiting:
                waiting.append(owner)
                self._notify(owner, self.get(owner).balances.expect(transaction.id, amounts))

    def waiting_for(self, transaction_ids: Iterable[bytes]) -> frozenset[Address]:
        """The accounts with amounts held back until these transactions are observed."""
        return frozenset(
            owner for each in transaction_ids for owner in self._unobserved.get(each, ())
        )

    def give_up(self, transaction_id: bytes) -> None:
        """Release the amounts of an exchange that will never be on the chain."""
        for owner in self._unobserved.pop(transaction_id, ()):
            account = self._watched.get(owner)
            if account is not None:
                self._notify(owner, account.balances.observed(transaction_id))

    def _notify(self, owner: Address, touched: Touched) -> None:
        if touched:
            self._on_changed(owner, touched)

    # --- the node's updates -----------------------------------------------------------------------

    async def follow(self, update: NodeUpdate) -> None:
        """Update all watched accounts; raises ``NodeUnavailable``, and then must be called again
        with ``changed=None``.
        """
        await self._follow_pool(update)
        states = await self._read_changed(update.changed)
        certain = not states or await self._node.status() == update.status
        # Transactions become observed together with the balances that they changed: in between,
        # the amounts they spend would look free.
        seen: dict[Address, list[bytes]] = {}
        reported = (*(each.id for each in update.appeared), *(each for each, _ in update.confirmed))
        for transaction_id in reported:
            for owner in self._unobserved.pop(transaction_id, ()):
                seen.setdefault(owner, []).append(transaction_id)
        async for address in in_slices(self._touched.keys() | states.keys() | seen.keys()):
            assets = self._touched.pop(address, set())
            account = self._watched.get(address)
            if account is not None:
                for transaction_id in seen.get(address, ()):
                    assets |= account.balances.observed(transaction_id)
                self._update(account, assets, states.get(address), certain=certain)

    async def _follow_pool(self, update: NodeUpdate) -> None:
        async for transaction in in_slices(update.appeared):
            if transaction.id not in self._pool:
                outflows = outflows_of(transaction, self._decimals)
                self._pool[transaction.id] = outflows
                for address, amounts in outflows.items():
                    self._spend(address, amounts, 1)
        async for transaction_id in in_slices(update.vanished):
            for address, amounts in self._pool.pop(transaction_id, {}).items():
                self._spend(address, amounts, -1)
            # One of ours that has left the pool without being mined is sent again.
            ours = self._outstanding(transaction_id)
            if ours is not None:
                self.expect(ours)

    def _spend(self, address: Address, amounts: Amounts, sign: int) -> None:
        self._touched.setdefault(address, set()).update(amounts)
        spent = self._spent.setdefault(address, {})
        for asset_id, amount in amounts.items():
            total = spent.get(asset_id, 0) + sign * amount
            if total:
                spent[asset_id] = total
            else:
                spent.pop(asset_id, None)
        if not spent:
            del self._spent[address]

    async def _read_changed(
        self, changed: frozenset[Address] | None
    ) -> dict[Address, AccountState]:
        if changed is None:
            accounts = list(self._watched.values())
        else:
            found = (self._watched.get(address) for address in changed)
            accounts = [account for account in found if account is not None]
        accounts = [account for account in accounts if not self._evict_if_idle(account)]
        for account in accounts:
            account.stale += 1
            account.scripted = None
        states: dict[Address, AccountState] = {}
        queue = iter(accounts)

        async def read() -> None:
            for account in queue:
                assets = None if account.complete else tuple(account.balances.regular)
                if assets != ():
                    states[account.address] = await self._node.account(account.address, assets)

        parallel = min(self._node.parallel_requests, len(accounts))
        if parallel <= 1:
            # Without a pause, so that a node in this process cannot change meanwhile.
            await read()
        else:
            await asyncio.gather(*(read() for _ in range(parallel)))
        return states

    def _evict_if_idle(self, account: Account) -> bool:
        """Evict an idle account instead of requesting its balances each time; the next use reloads
        it.
        """
        if not account.idle or account.address == self._own:
            return False
        del self._watched[account.address]
        account.stale += 1
        self._on_changed(account.address, frozenset(account.balances.regular))
        return True

    def _update(
        self,
        account: Account,
        assets: set[AssetId | None],
        state: AccountState | None,
        *,
        certain: bool,
    ) -> None:
        balances = account.balances
        lost = balances.update(
            None if state is None else state.balances,
            None if state is None else state.leased_out,
            self.unconfirmed(account.address, assets),
        )
        if lost or account.suspect:
            account.suspect = not certain
            if certain:
                self.check(account)
        moved = assets if state is None else {*assets, *state.balances}
        if moved:
            self._on_changed(account.address, frozenset(moved))

    def check(self, account: Account) -> None:
        """Report orders that the balances do not cover, besides those that are being cancelled."""
        lost = account.balances.uncovered(account.canceling)
        if lost:
            self._on_uncovered(account, lost)


def _assets_of(states: tuple[tuple[ActiveOrder, bool], ...]) -> frozenset[AssetId | None]:
    assets: set[AssetId | None] = set()
    for state, _ in states:
        order = state.order
        assets.update((order.amount_asset, order.price_asset, order.matcher_fee_asset))
    return frozenset(assets)
