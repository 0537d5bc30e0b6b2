"""Cancelling orders: for clients, for the operator, on expiration or for lack of balance.

What lives here: which orders to cancel, and their commands. What does not: placing (``placing``),
and the effects of a cancellation (``effects``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Final

from soliton.chain.addresses import Address
from soliton.crypto import base58
from soliton.matcher.accounts import Account
from soliton.matcher.log_throttle import throttled
from soliton.matcher.replica import Replica
from soliton.matcher.time_slices import end_all, in_slices
from soliton.matching import errors
from soliton.matching.book import OrderBook
from soliton.matching.commands import (
    CancelOrder,
    CancelSource,
    DeleteOrderBook,
)
from soliton.matching.errors import MatcherError
from soliton.matching.events import Event, OrderCanceled
from soliton.matching.model import ActiveOrder, OrderStatus
from soliton.matching.pairs import AssetPair

PORTION: Final = 200
"""The number of orders of a book that are cancelled at a time."""
_RETRY_SECONDS: Final = 1.0
_EXPIRATION_SECONDS: Final = 0.05

CancelResult = tuple[bytes, MatcherError | None]
"""The id of an order, and the error if it was not cancelled."""

_log = throttled(logging.getLogger(__name__))


class Canceling:
    """Use from one event loop. Client errors raise ``MatcherError``."""

    def __init__(self, replica: Replica) -> None:
        self._clock = replica.settings.clock
        self._batch_seconds = replica.settings.batch_cancel_timeout_ms / 1000
        self._session = replica.session
        self._sequencer = replica.sequencer
        self._engine = replica.engine
        self._expirations = replica.effects.expirations
        self._database = replica.database
        self._background: set[asyncio.Task[None]] = set()

    # --- for clients ------------------------------------------------------------------------------

    async def cancel(self, order_id: bytes, owner: Address, source: CancelSource) -> None:
        """Cancel an order of an account; returns once the engine has cancelled it."""
        account = self._session.require_accounts().peek(owner)
        active = None if account is None else account.balances.orders.get(order_id)
        if account is not None and (order_id in account.queued or order_id in account.placing):
            raise MatcherError(errors.ORDER_IS_PLACING, id=base58.encode(order_id))
        if account is None or active is None:
            raise self._not_active(order_id, owner)
        if active.is_market:
            raise MatcherError(errors.MARKET_ORDER_CANCEL, id=base58.encode(order_id))
        if order_id in account.canceling:
            raise MatcherError(errors.ORDER_CANCELED, id=base58.encode(order_id))
        events = await asyncio.shield(self._submit(active, account, source))
        if not any(isinstance(event, OrderCanceled) for event in events):
            raise self._not_active(order_id, owner)

    async def cancel_all(self, owner: Address, pair: AssetPair | None) -> list[CancelResult]:
        """Cancel all limit orders of an account (in one pair), as ``cancel_many``."""
        account = self._session.require_accounts().peek(owner)
        if account is None:
            return []
        found = [
            active.id
            for active in account.balances.orders.values()
            if not active.is_market and (pair is None or active.pair == pair)
        ]
        return await self.cancel_many(owner, found)

    async def cancel_many(self, owner: Address, order_ids: Sequence[bytes]) -> list[CancelResult]:
        """Cancel some orders of an account, each once, within ``batch_cancel_timeout_ms``."""
        self._session.require_accounts()
        unique = list(dict.fromkeys(order_ids))

        async def one(order_id: bytes) -> MatcherError | None:
            try:
                await self.cancel(order_id, owner, CancelSource.REQUEST)
            except MatcherError as error:
                return error
            return None

        tasks = [asyncio.create_task(one(order_id)) for order_id in unique]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=self._batch_seconds)
            await end_all(late)
        timeout = MatcherError(errors.REQUEST_TIMEOUT)
        results = [timeout if task.cancelled() else task.result() for task in tasks]
        return list(zip(unique, results, strict=True))

    # --- for the operator -------------------------------------------------------------------------

    async def cancel_all_in_book(self, pair: AssetPair) -> None:
        """Cancel all orders that a pair has now, in portions: others are served meanwhile. It goes
        on if the caller does not wait for its end.
        """
        await asyncio.shield(self._in_background(self._empty(self._book(pair))))

    async def delete_book(self, pair: AssetPair) -> None:
        """Cancel all orders of a pair and delete its book, as ``cancel_all_in_book``."""
        await asyncio.shield(self._in_background(self._delete(self._book(pair))))

    def _book(self, pair: AssetPair) -> OrderBook:
        self._session.require_accounts()
        book = self._engine.book(pair)
        if book is None:
            raise MatcherError(errors.ORDER_BOOK_BROKEN, assetPair=pair)
        return book

    def _in_background(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def _empty(self, book: OrderBook) -> None:
        """Cancel the orders of a book. One command for all of them would take seconds for many, and
        nothing else can happen during a command.
        """
        order_ids = list(book.index)
        for start in range(0, len(order_ids), PORTION):
            commands = [
                CancelOrder(book.pair, order_id, CancelSource.REQUEST)
                for order_id in order_ids[start : start + PORTION]
            ]
            await asyncio.gather(*map(self._sequencer.submit, commands))

    async def _delete(self, book: OrderBook) -> None:
        await self._empty(book)
        await self._sequencer.submit(DeleteOrderBook(book.pair))

    # --- because of time or balances --------------------------------------------------------------

    async def expire(self) -> None:
        """Cancel expired orders, forever."""
        while True:
            async for active in in_slices(list(self._expirations.take_due(self._clock()))):
                self._cancel_certainly(active, CancelSource.EXPIRATION)
            await asyncio.sleep(_EXPIRATION_SECONDS)

    def cancel_uncovered(self, account: Account, lost: Sequence[ActiveOrder]) -> None:
        """Cancel orders that the account's balances no longer cover."""
        for active in lost:
            if active.id not in account.canceling:
                self._cancel_certainly(active, CancelSource.BALANCE_TRACKING)

    def _cancel_certainly(self, active: ActiveOrder, source: CancelSource) -> None:
        """Cancel an order, with retries until it is cancelled."""
        accounts = self._session.accounts
        account = None if accounts is None else accounts.peek(active.owner)
        if account is None or active.id not in account.balances.orders:
            return
        try:
            if active.id not in account.canceling:
                self._submit(active, account, source)
        except MatcherError as error:
            _log.warning("an order stays for now: %s", error)
        # The journal may still reject it, or a cancellation that a client has sent before.
        loop = asyncio.get_running_loop()
        loop.call_later(_RETRY_SECONDS, self._cancel_certainly, active, source)

    # --- the command ------------------------------------------------------------------------------

    def _submit(
        self, active: ActiveOrder, account: Account, source: CancelSource
    ) -> asyncio.Future[list[Event]]:
        """Submit a cancellation; raises ``MatcherError`` directly or through the future."""
        order_id = active.id

        def done(applied: asyncio.Future[list[Event]]) -> None:
            account.canceling.discard(order_id)
            if applied.cancelled() or applied.exception() is None:
                return
            # The exception counts as retrieved: waiters receive it, expired orders are retried.
            accounts = self._session.accounts
            if source is CancelSource.REQUEST and accounts is not None:
                # The order stays, and others may have been spared because it was to go.
                accounts.check(account)

        command = CancelOrder(active.pair, order_id, source, account.address)
        applied = self._sequencer.submit(command)
        account.canceling.add(order_id)
        applied.add_done_callback(done)
        return applied

    def _not_active(self, order_id: bytes, owner: Address) -> MatcherError:
        """Why an order that is not active cannot be cancelled."""
        info = self._database.order(order_id)
        kind = errors.ORDER_NOT_FOUND
        if info is not None and info.owner == owner:
            filled = info.status is OrderStatus.FILLED
            kind = errors.ORDER_FULL if filled else errors.ORDER_CANCELED
        return MatcherError(kind, id=base58.encode(order_id))
