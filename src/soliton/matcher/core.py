"""The matcher as its interfaces see it.

What lives here: the protocol between the service and what is served on top of it (REST, WebSocket,
market data), so that these can be tested on their own. What does not: the service (``service``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from soliton.chain.addresses import Address
from soliton.chain.orders import Order
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.matcher.node_client import Asset, Balances, NodeClient
from soliton.matcher.quarantine import SetAside
from soliton.matcher.records import (
    AddressReport,
    Offsets,
    OrderInfo,
    Place,
    ServiceStatus,
    Trade,
    Unsettled,
)
from soliton.matcher.settings import MatcherSettings
from soliton.matching.commands import CancelSource
from soliton.matching.engine import Engine
from soliton.matching.errors import MatcherError
from soliton.matching.events import Event
from soliton.matching.pairs import AssetPair
from soliton.matching.placement import Restrictions

Rates = dict[AssetId | None, float]
"""The price of one native coin in units of each asset; that of the native coin is 1."""


class Listener(Protocol):
    """Somebody who is told of everything that happens, at once and in order. Calls must be short
    and must not raise.
    """

    def on_events(self, offset: int, timestamp: int, events: Sequence[Event]) -> None:
        """A command was applied, with these results."""

    def on_balances(self, address: Address, assets: frozenset[AssetId | None]) -> None:
        """What an account can trade, or what is reserved for its orders, has changed."""

    def on_rates(self, changed: dict[AssetId | None, float | None]) -> None:
        """Rates have changed; ``None`` stands for a rate that was deleted."""


class MatcherCore(Protocol):
    """One matcher. What clients get wrong raises ``MatcherError``."""

    settings: MatcherSettings
    node: NodeClient

    @property
    def status(self) -> ServiceStatus:
        """Whether it works already, and still."""

    @property
    def engine(self) -> Engine:
        """All order books and the rules of matching, to be read only."""

    @property
    def price_assets(self) -> tuple[AssetId | None, ...]:
        """The assets that prices are counted in by preference, the most preferred first."""

    @property
    def public_key(self) -> bytes:
        """The key that orders have to name."""

    @property
    def address(self) -> Address:
        """The account that makes exchange transactions."""

    @property
    def offsets(self) -> Offsets:
        """Where in the journal it is."""

    def now(self) -> int:
        """The time in milliseconds."""

    async def place(self, order: Order, *, market: bool, is_signed: bool | None = None) -> None:
        """Take an order; returns when the journal has it and the engine has processed it.

        ``is_signed`` is whether its ``signature_to_verify`` is valid, where somebody has looked
        already.
        """

    async def cancel(self, order_id: bytes, owner: Address, source: CancelSource) -> None:
        """Cancel an order of an account; returns when the engine has done so."""

    async def cancel_all(
        self, owner: Address, pair: AssetPair | None
    ) -> list[tuple[bytes, MatcherError | None]]:
        """Cancel all limit orders of an account (of one pair): the order ids, and what stood
        against it. Within ``batch_cancel_timeout_ms``.
        """

    async def cancel_many(
        self, owner: Address, order_ids: Sequence[bytes]
    ) -> list[tuple[bytes, MatcherError | None]]:
        """Cancel some orders of an account: the ids without repetitions, as ``cancel_all``."""

    async def cancel_all_in_book(self, pair: AssetPair) -> None:
        """Cancel all orders of a pair."""

    async def delete_book(self, pair: AssetPair) -> None:
        """Cancel all orders of a pair and forget its book."""

    def owner_of(self, order_id: bytes) -> Address | None:
        """The account of an order that is active or finalised."""

    def order_info(self, order_id: bytes) -> OrderInfo | None:
        """An order, active or finalised."""

    def history(
        self, owner: Address, pair: AssetPair | None, *, active: bool, closed: bool
    ) -> list[OrderInfo]:
        """The orders of an account: the active ones (limit orders only), then the last finalised
        ones, each with the newest first.
        """

    def transactions(self, order_id: bytes) -> list[AnyTransaction]:
        """The exchange transactions of an order, the oldest first."""

    def set_aside(self) -> list[SetAside]:
        """The commands of the journal that could not be applied, in their order."""

    def unsettled(self, limit: int) -> list[Unsettled]:
        """Executions that are neither on the chain nor in the node's pool, at most so many."""

    def unsettled_counts(self) -> tuple[int, int]:
        """How many of these wait to be settled, and how many were given up."""

    def trades(self, pair: AssetPair, limit: int, since: int | None = None) -> list[Trade]:
        """Executions of a pair, the oldest first: the last ones, or the first ones at or after a
        time in milliseconds.
        """

    def trades_after(self, pair: AssetPair, place: Place | None, limit: int) -> list[Trade]:
        """The next executions of a pair behind a place, or the first of all, the oldest first."""

    def pairs(self) -> dict[AssetPair, int]:
        """All books, with the time in milliseconds at which each came to be."""

    def check_pair(self, pair: AssetPair) -> None:
        """Raise ``MatcherError`` for a pair that is not traded here."""

    def restrictions(self, pair: AssetPair) -> Restrictions | None:
        """Bounds and steps of amounts and prices, where the operator set any for a pair."""

    async def asset(self, asset_id: AssetId | None) -> Asset:
        """An asset; raises ``MatcherError`` where there is none with this id."""

    async def order_versions(self) -> tuple[int, ...]:
        """The versions of orders that are taken now."""

    async def base_fee(self) -> int:
        """The least fee of orders with dynamic fees, in native coins."""

    async def minimum_fee(
        self, pair: AssetPair, order: Order
    ) -> tuple[tuple[AssetId | None, int], tuple[AssetId | None, int] | None]:
        """What an order of this amount and price has to offer: asset and amount of the usual fee,
        and of the fee with discount where there is one.
        """

    async def tradable(self, owner: Address, pair: AssetPair) -> Balances:
        """What an account can offer in new orders of a pair; positive amounts only."""

    async def reserved(self, owner: Address) -> Balances:
        """What is set aside for the orders of an account."""

    async def report(self, owner: Address) -> AddressReport:
        """All about an account."""

    def rates(self) -> Rates:
        """All rates, that of the native coin among them."""

    def put_rate(self, asset_id: AssetId | None, rate: float) -> float | None:
        """Set a rate: the one before. Raises ``MatcherError``."""

    def delete_rate(self, asset_id: AssetId | None) -> float:
        """Forget a rate: the one before. Raises ``MatcherError``."""

    async def save_snapshots(self) -> None:
        """Keep the state of all books, so that a start needs less of the journal. Raises
        ``JournalProblem`` or ``DatabaseProblem``.
        """

    def subscribe(self, listener: Listener) -> None:
        """Tell somebody of everything from now on."""

    def unsubscribe(self, listener: Listener) -> None:
        """Tell somebody nothing any more."""
