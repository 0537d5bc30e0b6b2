"""What an account has, what is set aside for its orders, and what it can still offer.

    node      = regular - leased out (native coin) + unconfirmed + not observed
    tradable  = max(0, node - reserved)
    audit     = node + not created

*Unconfirmed* are the negative parts of all transactions in the node's pool. *Not observed* are
executions whose transaction the node has not shown yet: what they took is no longer reserved, and
would look free until then. *Not created* are transactions that the node showed before this matcher
came to the execution that makes them; they took from the balance what is still reserved here.

What lives here: this arithmetic for one account, and which orders to cancel when it has lost
something. What does not: where the balances come from (``soliton.matcher``).

Sources: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/actors/address/{AddressBalance,AddressActor}.scala``,
``docs/order-auto-canceling.md``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from soliton.errors import InvariantBroken
from soliton.matching.model import ActiveOrder
from soliton.matching.pairs import Asset

MAX_NOT_CREATED: Final = 60_000
"""So many transactions that nobody here made are remembered for an account; then the oldest is
forgotten.
"""

Amounts = Mapping[Asset, int]


class BalanceChanges(msgspec.Struct, frozen=True):
    """What a step changed: the assets whose tradable balance may differ now, and the transactions
    (with the orders in them) that began or ceased to be waited for.
    """

    assets: frozenset[Asset] = frozenset()
    added_not_observed: Mapping[bytes, tuple[bytes, ...]] = msgspec.field(default_factory=dict)
    removed_not_observed: frozenset[bytes] = frozenset()
    added_not_created: Mapping[bytes, tuple[bytes, ...]] = msgspec.field(default_factory=dict)
    removed_not_created: frozenset[bytes] = frozenset()


_NO_CHANGES: Final = BalanceChanges()


class _Waiting(msgspec.Struct, frozen=True, gc=False):
    order_ids: tuple[bytes, ...]
    amounts: dict[Asset, int]


class AccountBalances:
    """One account: its active orders and its balances. Amounts are in the smallest units."""

    __slots__ = (
        *("_not_created", "_not_created_sum", "_not_observed", "_not_observed_sum", "_reserved"),
        *("leased_out", "orders", "regular", "unconfirmed"),
    )

    def __init__(self) -> None:
        self.orders: dict[bytes, ActiveOrder] = {}
        self.regular: dict[Asset, int] = {}
        self.leased_out: int | None = None
        self.unconfirmed: dict[Asset, int] = {}
        self._reserved: dict[Asset, int] = {}
        self._not_observed: dict[bytes, _Waiting] = {}
        self._not_observed_sum: dict[Asset, int] = {}
        self._not_created: dict[bytes, _Waiting] = {}
        self._not_created_sum: dict[Asset, int] = {}

    # --- reading ----------------------------------------------------------------------------------

    @property
    def reserved(self) -> dict[Asset, int]:
        """What is set aside for active orders; no zeros."""
        return dict(self._reserved)

    @property
    def not_observed(self) -> dict[bytes, tuple[bytes, ...]]:
        """Transactions that the node has not shown yet, with the account's orders in them."""
        return {key: waiting.order_ids for key, waiting in self._not_observed.items()}

    @property
    def waits_for_transactions(self) -> bool:
        """Whether the node has not shown an execution's transaction yet."""
        return bool(self._not_observed)

    @property
    def not_created(self) -> dict[bytes, tuple[bytes, ...]]:
        """Transactions that were not made here yet, with the account's orders in them."""
        return {key: waiting.order_ids for key, waiting in self._not_created.items()}

    def node_balance(self, asset: Asset) -> int:
        """What the account has, executions that the node will learn of included."""
        balance = (
            self.regular.get(asset, 0)
            + self.unconfirmed.get(asset, 0)
            - self._not_observed_sum.get(asset, 0)
        )
        return balance - (self.leased_out or 0) if asset is None else balance

    def tradable(self, asset: Asset) -> int:
        """What new orders may offer."""
        return max(0, self.node_balance(asset) - self._reserved.get(asset, 0))

    def audit(self, asset: Asset) -> int:
        """What active orders are held against."""
        return self.node_balance(asset) + self._not_created_sum.get(asset, 0)

    def all_tradable(self) -> dict[Asset, int]:
        """What new orders may offer of every asset that is known."""
        return {asset: self.tradable(asset) for asset in self.regular}

    def uncovered(self) -> tuple[ActiveOrder, ...]:
        """The limit orders that the audit balances do not cover, to be cancelled."""
        held = {asset: max(0, self.audit(asset)) for asset in self._reserved}
        return uncovered(self.orders.values(), held)

    # --- what the node says -----------------------------------------------------------------------

    def initialize(self, regular: Amounts, leased_out: int, unconfirmed: Amounts) -> None:
        """Balances that were asked for: news that came meanwhile are fresher and stay."""
        self.regular = {**regular, **self.regular}
        self.unconfirmed = {**unconfirmed, **self.unconfirmed}
        if self.leased_out is None:
            self.leased_out = leased_out

    def update(
        self,
        regular: Amounts | None = None,
        leased_out: int | None = None,
        unconfirmed: Amounts | None = None,
    ) -> tuple[ActiveOrder, ...]:
        """Balances that changed (new values, zero and below for ``unconfirmed``). Gives back the
        limit orders that are no longer covered, to be cancelled.

        Transactions that made the change are ``observed`` before: they would count twice meanwhile.
        """
        changed = {*(regular or ()), *(unconfirmed or ())}
        if leased_out is not None:
            changed.add(None)
        before = {asset: self.audit(asset) for asset in changed}
        self.regular.update(regular or {})
        self.unconfirmed.update(unconfirmed or {})
        if leased_out is not None:
            self.leased_out = leased_out
        fallen = {
            asset: max(0, now)
            for asset, then in before.items()
            if (now := self.audit(asset)) < then
        }
        return uncovered(self.orders.values(), fallen) if fallen else ()

    # --- what the engine says ---------------------------------------------------------------------

    def place(self, order: ActiveOrder) -> BalanceChanges:
        """Set aside what an order needs. Placing one that is active already changes nothing."""
        order_id = order.order.id
        if order_id in self.orders:
            return _NO_CHANGES
        self.orders[order_id] = order
        reserve = order.reservable_balance()
        _add(self._reserved, reserve)
        return BalanceChanges(frozenset(reserve))

    def release(self, order_id: bytes) -> BalanceChanges:
        """An order is out: what was set aside for it is free."""
        order = self.orders.pop(order_id, None)
        if order is None:
            return _NO_CHANGES
        reserve = order.reservable_balance()
        _subtract(self._reserved, reserve)
        return BalanceChanges(frozenset(reserve))

    def executed(
        self, transaction_id: bytes | None, states: Collection[tuple[ActiveOrder, bool]]
    ) -> BalanceChanges:
        """An execution: the account's orders in it (two, if it traded with itself) as they are now,
        each with whether it is done. ``transaction_id`` is ``None`` where there is none to wait
        for. Raises ``InvariantBroken`` for a transaction that was executed already.
        """
        released: dict[Asset, int] = {}
        for state, is_done in states:
            order_id = state.order.id
            before = self.orders.pop(order_id, None)
            if before is None:
                continue
            _add(released, before.reservable_balance())
            if not is_done:
                self.orders[order_id] = state
                _subtract(released, state.reservable_balance())
        _subtract(self._reserved, released)
        order_ids = tuple([state.order.id for state, _ in states])
        if transaction_id is None:
            return BalanceChanges(frozenset(released))
        if transaction_id in self._not_observed:
            raise InvariantBroken(f"{transaction_id.hex()} was executed twice")
        waiting = self._not_created.pop(transaction_id, None)
        if waiting is not None:
            _subtract(self._not_created_sum, waiting.amounts)
            return BalanceChanges(
                frozenset(released), removed_not_created=frozenset((transaction_id,))
            )
        self._not_observed[transaction_id] = _Waiting(order_ids, released)
        _add(self._not_observed_sum, released)
        return BalanceChanges(added_not_observed={transaction_id: order_ids})

    def expect(
        self, transaction_id: bytes, order_ids: tuple[bytes, ...], spent: Amounts
    ) -> BalanceChanges:
        """An exchange whose executions are already in the state of the orders, and which the node
        does not show (any more): what it takes (positive) is not free until it does.
        """
        if transaction_id in self._not_observed:
            return _NO_CHANGES
        self._not_observed[transaction_id] = _Waiting(order_ids, dict(spent))
        _add(self._not_observed_sum, spent)
        return BalanceChanges(frozenset(spent), {transaction_id: order_ids})

    def observed(
        self, transaction_id: bytes, order_ids: tuple[bytes, ...], spent: Amounts
    ) -> BalanceChanges:
        """The node showed an exchange transaction for the first time: the account's orders in it,
        and (positive) what it takes from the account. Also for one that will never be shown,
        because the node refused it for good.
        """
        waiting = self._not_observed.pop(transaction_id, None)
        if waiting is not None:
            _subtract(self._not_observed_sum, waiting.amounts)
            return BalanceChanges(
                frozenset(waiting.amounts), removed_not_observed=frozenset((transaction_id,))
            )
        if transaction_id in self._not_created:
            return _NO_CHANGES
        self._not_created[transaction_id] = _Waiting(order_ids, dict(spent))
        _add(self._not_created_sum, spent)
        forgotten: frozenset[bytes] = frozenset()
        if len(self._not_created) > MAX_NOT_CREATED:
            oldest = next(iter(self._not_created))
            _subtract(self._not_created_sum, self._not_created.pop(oldest).amounts)
            forgotten = frozenset((oldest,))
        return BalanceChanges(
            added_not_created={transaction_id: order_ids}, removed_not_created=forgotten
        )

    def forget_not_created(self, transaction_id: bytes) -> BalanceChanges:
        """A transaction that was not made here is gone, after a rollback or from the pool."""
        waiting = self._not_created.pop(transaction_id, None)
        if waiting is None:
            return _NO_CHANGES
        _subtract(self._not_created_sum, waiting.amounts)
        return BalanceChanges(removed_not_created=frozenset((transaction_id,)))


def uncovered(orders: Iterable[ActiveOrder], balance: Amounts) -> tuple[ActiveOrder, ...]:
    """Which limit orders a balance does not cover, of the assets in it. The oldest are served
    first; one that does not fit is passed over, so that a younger, smaller one may stay.
    """
    rest = dict(balance)
    out = []
    limit_orders = (order for order in orders if not order.is_market)
    for order in sorted(limit_orders, key=_age):
        required = {
            asset: amount for asset, amount in order.required_balance().items() if asset in rest
        }
        if any(rest[asset] < amount for asset, amount in required.items()):
            out.append(order)
        else:
            for asset, amount in required.items():
                rest[asset] -= amount
    return tuple(out)


def _age(order: ActiveOrder) -> tuple[int, bytes]:
    return order.order.timestamp, order.order.id


def _add(total: dict[Asset, int], amounts: Amounts) -> None:
    for asset, amount in amounts.items():
        value = total.get(asset, 0) + amount
        if value:
            total[asset] = value
        else:
            total.pop(asset, None)


def _subtract(total: dict[Asset, int], amounts: Amounts) -> None:
    for asset, amount in amounts.items():
        value = total.get(asset, 0) - amount
        if value:
            total[asset] = value
        else:
            total.pop(asset, None)
