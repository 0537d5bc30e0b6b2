"""The effects of the engine's events: on balances, the orders database, settlement and listeners.

They are applied before the next command. They are idempotent, since the journal is replayed after a
crash, and atomic: if one of a command's effects raises, none is stored.

What lives here: one function per kind of event. What does not: matching (``soliton.matching``) and
sending transactions (``settlement``).

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/actors/events/OrderEventsCoordinatorActor.scala``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from soliton.chain.addresses import Address
from soliton.chain.errors import ChainError
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.matcher.assets import ChainKnowledge
from soliton.matcher.exchanges import make_exchange
from soliton.matcher.expirations import Expirations
from soliton.matcher.orders_db import OrdersDatabase
from soliton.matcher.records import Trade, Unsettled, describe
from soliton.matcher.session import Session
from soliton.matching.account_checks import signed_name
from soliton.matching.engine import Engine
from soliton.matching.events import (
    BookDeleted,
    Event,
    ExecutionCorrected,
    OrderAdded,
    OrderCanceled,
    OrderExecuted,
)
from soliton.matching.model import ActiveOrder, OrderStatus
from soliton.matching.pairs import AssetPair

_log = logging.getLogger(__name__)


class Listener:
    """Base class of listeners, which are notified of everything immediately and in order. Calls
    must be short and must not raise.
    """

    __slots__ = ()

    def on_events(self, offset: int, timestamp: int, events: Sequence[Event]) -> None:
        """A command was applied, with these results."""

    def on_balances(self, address: Address, assets: frozenset[AssetId | None]) -> None:
        """An account's tradable or reserved balances have changed."""

    def on_rate(self, asset_id: AssetId, rate: float | None) -> None:
        """A rate was set, or deleted (``None``)."""


class Effects:
    """Use from one event loop."""

    def __init__(
        self,
        engine: Engine,
        session: Session,
        chain: ChainKnowledge,
        database: OrdersDatabase,
        *,
        settle: Callable[[AnyTransaction], None],
        corrected: Callable[[bytes, bool], None],
        sender_public_key: bytes,
        base_fee: int,
    ) -> None:
        """``settle`` receives the unsigned exchange transactions; ``corrected`` the id of the
        transaction of a corrected execution, and whether the execution stands.
        """
        self.engine = engine
        self._session = session
        self._chain = chain
        self._database = database
        self._settle = settle
        self._corrected = corrected
        self._sender = sender_public_key
        self._base_fee = base_fee
        self.books = database.books()
        self._listeners: list[Listener] = []
        self.expirations = Expirations()
        self._impossible: list[Unsettled] = []
        self._corrections: list[tuple[bytes, bool]] = []

    def subscribe(self, listener: Listener) -> None:
        """Notify a listener of everything from now on."""
        self._listeners.append(listener)

    def balances_changed(self, owner: Address, assets: frozenset[AssetId | None]) -> None:
        """Notify listeners that an account's tradable or reserved balances have changed."""
        for listener in self._listeners:
            listener.on_balances(owner, assets)

    def rate_changed(self, asset_id: AssetId, rate: float | None) -> None:
        """Store a rate that was set, or deleted (``None``), and notify listeners."""
        self._database.put_rate(asset_id, rate)
        for listener in self._listeners:
            listener.on_rate(asset_id, rate)

    def apply(self, offset: int, timestamp: int, events: list[Event]) -> None:
        """Apply the effects of a command's events. If it raises, nothing was stored, but the state
        in memory (balances) has to be rebuilt.
        """
        # In a replay, the database already has the effects of the first commands.
        if offset <= self._database.offset:
            return
        try:
            made = self._keep(events, timestamp)
        except BaseException:
            self._database.drop_step()
            self.books = self._database.books()
            raise
        self._database.mark(offset)
        for found in self._impossible:
            self._database.put_unsettled(found)
        for transaction in made:
            self._settle(transaction)
        for transaction_id, stands in self._corrections:
            self._corrected(transaction_id, stands)
        for listener in self._listeners:
            try:
                listener.on_events(offset, timestamp, events)
            except Exception:  # noqa: BLE001 - any error
                # The command is applied: a listener's failure does not undo it.
                _log.exception("a listener failed over the command at offset %d", offset)

    def _keep(self, events: list[Event], timestamp: int) -> list[AnyTransaction]:
        """Store the effects of a command; returns its exchange transactions."""
        made: list[AnyTransaction] = []
        reopened: set[bytes] = set()
        self._impossible, self._corrections = [], []
        index = 0
        for event in events:
            match event:
                case OrderExecuted():
                    transaction = self._executed(event, index)
                    if transaction is not None:
                        made.append(transaction)
                    index += 1
                case OrderAdded(order=order):
                    self._added(order, timestamp)
                    if order.id in reopened:
                        self._database.note_return(order.id)
                case OrderCanceled(order=order):
                    self._finalize(order, event.status)
                    if self._session.accounts is not None:
                        self._session.accounts.canceled(order)
                case ExecutionCorrected():
                    self._correct(event)
                    reopened |= {event.maker.id, event.taker.id}
                case BookDeleted(pair=pair):
                    self.books.pop(pair, None)
                    self._database.put_book(pair, None)
                case _:
                    pass
        return made

    def _added(self, order: ActiveOrder, timestamp: int) -> None:
        signed = order.order
        pair = AssetPair(signed.amount_asset, signed.price_asset)
        if pair not in self.books:
            self.books[pair] = timestamp
            self._database.put_book(pair, timestamp)
        self._note_signed(order)
        if not order.is_market:
            self.expirations.add(order)
        if self._session.accounts is not None:
            self._session.accounts.adopt(order)

    def note_resting(self) -> None:
        """Record the wallet-signed orders in the books, which may predate those records."""
        for book in self.engine.books():
            for order in book.orders():
                self._note_signed(order)

    def _note_signed(self, order: ActiveOrder) -> None:
        name = signed_name(order.order)
        if name is not None:
            self._database.put_signed(name, order.id)

    def _executed(self, event: OrderExecuted, index: int) -> AnyTransaction | None:
        transaction = self._make(event)
        transaction_id = None if transaction is None else transaction.id
        if self._session.accounts is not None:
            self._session.accounts.executed(event, transaction_id)
        taker, maker = event.taker, event.maker
        self._database.put_trade(
            AssetPair(taker.order.amount_asset, taker.order.price_asset),
            Trade(
                offset=event.offset,
                index=index,
                timestamp=event.timestamp,
                price=event.price,
                amount=event.amount,
                side=taker.order.side,
                taker_order_id=taker.order.id,
                maker_order_id=maker.order.id,
                transaction_id=transaction_id,
                taker_fee=event.taker_fee,
                maker_fee=event.maker_fee,
            ),
        )
        if event.taker_is_done:
            self._finalize(taker, OrderStatus.FILLED)
        if event.maker_is_done:
            self._finalize(maker, OrderStatus.FILLED)
        return transaction

    def _correct(self, event: ExecutionCorrected) -> None:
        pair, place = event.taker.pair, (event.execution_offset, event.index)
        trade = self._database.trade(pair, *place, taken_back=event.stands)
        if trade is not None:
            self._database.correct_trade(pair, trade, stands=event.stands)
            if trade.transaction_id is not None:
                self._corrections.append((trade.transaction_id, event.stands))
        for order in (event.maker, event.taker):
            if order.id not in event.resting:
                self._database.reopen(order.id)
            elif self._session.accounts is not None:
                self._session.accounts.corrected(order)

    def _make(self, event: OrderExecuted) -> AnyTransaction | None:
        """The exchange transaction; ``None``, with a log entry, if it cannot be made: the execution
        stands nevertheless.
        """
        try:
            context = self._chain.exchange_context(event.taker.order, event.maker.order)
            return make_exchange(event, self.engine.settings, context, self._sender, self._base_fee)
        except (ChainError, KeyError) as error:
            _log.error(
                "no exchange transaction for the execution at offset %d: %r", event.offset, error
            )
            self._impossible.append(_without_transaction(event, error))
            return None

    def _finalize(self, order: ActiveOrder, status: OrderStatus) -> None:
        self.expirations.remove(order.order.id)
        self._database.finalize(describe(order, status))


def _without_transaction(event: OrderExecuted, error: Exception) -> Unsettled:
    return Unsettled(
        pair=event.taker.pair,
        amount=event.amount,
        buy_order_id=event.buyer.id,
        sell_order_id=event.seller.id,
        transaction_id=None,
        timestamp=event.timestamp,
        given_up=True,
        message=f"no transaction can be made of it: {error}",
    )
