"""An account's balances: what it has, what its orders reserve, and what it can still offer.

    node      = regular - leased out (native coin) + unconfirmed - not observed
    tradable  = max(0, node - reserved)

*Unconfirmed* are the negative balance changes of all transactions in the node's pool. *Not
observed* are executions whose transaction the node has not reported yet: what they spent is no
longer reserved, and would look free until then.

What lives here: this arithmetic for one account, and which orders to cancel when a balance falls.
What does not: where the balances come from (``soliton.matcher``).

Sources: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/actors/address/{AddressBalance,AddressActor}.scala``,
``docs/order-auto-canceling.md``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from soliton.errors import InvariantBroken
from soliton.matching.model import ActiveOrder
from soliton.matching.pairs import Asset

Amounts = Mapping[Asset, int]
Touched = frozenset[Asset]
"""The assets whose tradable balance may have changed."""

_NOTHING: Final[Touched] = frozenset()


class AccountBalances:
    """One account: its active orders and its balances. Amounts are in the smallest units."""

    __slots__ = (
        *("_not_observed", "_not_observed_sum", "_reserved"),
        *("leased_out", "orders", "regular", "unconfirmed"),
    )

    def __init__(self) -> None:
        self.orders: dict[bytes, ActiveOrder] = {}
        self.regular: dict[Asset, int] = {}
        self.leased_out: int | None = None
        self.unconfirmed: dict[Asset, int] = {}
        self._reserved: dict[Asset, int] = {}
        self._not_observed: dict[bytes, dict[Asset, int]] = {}
        self._not_observed_sum: dict[Asset, int] = {}

    # --- reading ----------------------------------------------------------------------------------

    @property
    def reserved(self) -> dict[Asset, int]:
        """The amounts reserved for active orders; no zeros."""
        return dict(self._reserved)

    @property
    def not_observed(self) -> int:
        """The number of executions whose transaction the node has not reported yet."""
        return len(self._not_observed)

    def node_balance(self, asset: Asset) -> int:
        """The account's balance, including executions that the node does not know yet."""
        balance = (
            self.regular.get(asset, 0)
            + self.unconfirmed.get(asset, 0)
            - self._not_observed_sum.get(asset, 0)
        )
        return balance - (self.leased_out or 0) if asset is None else balance

    def tradable(self, asset: Asset) -> int:
        """What new orders may offer."""
        return max(0, self.node_balance(asset) - self._reserved.get(asset, 0))

    def all_tradable(self) -> dict[Asset, int]:
        """What new orders may offer of every known asset."""
        return {asset: self.tradable(asset) for asset in self.regular}

    def uncovered(self, leaving: Collection[bytes] = ()) -> tuple[ActiveOrder, ...]:
        """The limit orders that the balances do not cover, which should be cancelled. Those that
        are ``leaving`` need nothing any more.
        """
        held = {asset: max(0, self.node_balance(asset)) for asset in self._reserved}
        orders = self.orders.items()
        return uncovered((order for each, order in orders if each not in leaving), held)

    # --- the node's updates -----------------------------------------------------------------------

    def update(
        self,
        regular: Amounts | None = None,
        leased_out: int | None = None,
        unconfirmed: Amounts | None = None,
    ) -> tuple[ActiveOrder, ...]:
        """Set changed balances (new values; ``unconfirmed`` are zero or negative). Returns the
        limit orders that are no longer covered, which should be cancelled.

        Call ``observed`` for the transactions behind the change first: otherwise they count twice.
        """
        changed = {*(regular or ()), *(unconfirmed or ())}
        if leased_out is not None:
            changed.add(None)
        before = {asset: self.node_balance(asset) for asset in changed}
        self.regular.update(regular or {})
        self.unconfirmed.update(unconfirmed or {})
        if leased_out is not None:
            self.leased_out = leased_out
        fallen = {
            asset: max(0, now)
            for asset, then in before.items()
            if (now := self.node_balance(asset)) < then
        }
        return uncovered(self.orders.values(), fallen) if fallen else ()

    # --- the engine's events ----------------------------------------------------------------------

    def place(self, order: ActiveOrder) -> Touched:
        """Reserve what an order needs. Idempotent for an order that is active already."""
        order_id = order.order.id
        if order_id in self.orders:
            return _NOTHING
        self.orders[order_id] = order
        reserve = order.reservable_balance()
        _add(self._reserved, reserve)
        return frozenset(reserve)

    def release(self, order_id: bytes) -> Touched:
        """Remove an order and release its reserve."""
        order = self.orders.pop(order_id, None)
        if order is None:
            return _NOTHING
        reserve = order.reservable_balance()
        _subtract(self._reserved, reserve)
        return frozenset(reserve)

    def correct(self, order: ActiveOrder) -> Touched:
        """Replace the state of an active order, and its reserve."""
        return self.release(order.order.id) | self.place(order)

    def executed(
        self, transaction_id: bytes | None, states: Collection[tuple[ActiveOrder, bool]]
    ) -> None:
        """Record an execution. ``states`` are the account's orders in it (two, if it traded with
        itself) after the execution, each with whether it is done. ``transaction_id`` is ``None`` if
        there is no transaction to wait for. Raises ``InvariantBroken`` for a repeated transaction.
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
        if transaction_id is not None:
            if transaction_id in self._not_observed:
                raise InvariantBroken(f"{transaction_id.hex()} was executed twice")
            self._not_observed[transaction_id] = released
            _add(self._not_observed_sum, released)

    def expect(self, transaction_id: bytes, spent: Amounts) -> Touched:
        """Wait for an exchange that the node does not report (any more), and whose execution is
        already in the state of the orders: what it spends (positive) is not free until it does.
        """
        if transaction_id in self._not_observed:
            return _NOTHING
        self._not_observed[transaction_id] = dict(spent)
        _add(self._not_observed_sum, spent)
        return frozenset(spent)

    def observed(self, transaction_id: bytes) -> Touched:
        """The node reported the transaction of an execution for the first time, or rejected it for
        good.
        """
        spent = self._not_observed.pop(transaction_id, None)
        if spent is None:
            return _NOTHING
        _subtract(self._not_observed_sum, spent)
        return frozenset(spent)


def uncovered(orders: Iterable[ActiveOrder], balance: Amounts) -> tuple[ActiveOrder, ...]:
    """The limit orders that a balance does not cover, checking only its assets. The oldest are
    served first; one that does not fit is skipped, so that a later, smaller one may stay.
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


def _add(total: dict[Asset, int], amounts: Amounts, sign: int = 1) -> None:
    for asset, amount in amounts.items():
        value = total.get(asset, 0) + sign * amount
        if value:
            total[asset] = value
        else:
            total.pop(asset, None)


def _subtract(total: dict[Asset, int], amounts: Amounts) -> None:
    _add(total, amounts, -1)
