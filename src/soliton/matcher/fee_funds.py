"""The native coins that the matcher's account needs for the fees of exchanges.

An execution whose exchange cannot be paid is filled for its traders, and nothing happens on the
chain. So coins for all exchanges that an order may cause are a precondition of matching it.

What lives here: what an order may cost, and what is left. What does not: the fee of one exchange
(``exchanges``), and which exchanges are outstanding (``settlement``, ``signing``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import islice
from typing import Final

from soliton.chain.addresses import address_text
from soliton.chain.orders import Order, Side
from soliton.matcher.accounts import Accounts
from soliton.matcher.exchanges import transaction_fee
from soliton.matcher.log_throttle import throttled
from soliton.matcher.replica import Replica
from soliton.matching import errors
from soliton.matching.errors import MatcherError, param_text
from soliton.matching.model import ActiveOrder
from soliton.matching.pairs import pair_of
from soliton.matching.placement import balance_param

MAX_COUNTED: Final = 10_000
"""The number of counter orders up to which the cost of an order is added up."""
LOW_EXCHANGES: Final = 100
"""With coins for fewer exchanges, the node is asked for the balance before each order."""

_log = throttled(logging.getLogger(__name__))


class FeeFunds:
    """Use from one event loop."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._base_fee = replica.settings.trading.exchange_base_fee
        self._promised = 0
        # Whether the last order that would have been matched was rejected.
        self._is_short = False

    async def refresh(self, accounts: Accounts) -> None:
        """Ask the node for the balance if it may be too low: the news of a payment may be on their
        way. Raises ``NodeUnavailable``.
        """
        if self._left(accounts) < LOW_EXCHANGES * self._base_fee:
            await accounts.reload(accounts.get(self._replica.address), (None,))

    def _left(self, accounts: Accounts) -> int:
        replica = self._replica
        owed = replica.settlement.owed + replica.signer.fees + self._promised
        return accounts.get(replica.address).balances.tradable(None) - owed

    def promise(self, order: Order, accounts: Accounts) -> int:
        """Set coins aside for the exchanges that an order may cause, until ``release``; returns
        their amount. Raises ``MatcherError`` if there are too few.
        """
        needed = self._cost(order)
        if needed:
            self._check(needed, accounts)
        self._promised += needed
        return needed

    def release(self, amount: int) -> None:
        """The order was matched, or will not be."""
        self._promised -= amount

    def _check(self, needed: int, accounts: Accounts) -> None:
        replica, left = self._replica, self._left(accounts)
        if left >= needed:
            if self._is_short:
                self._is_short = False
                _log.info("the matcher's account can pay for exchanges again")
            return
        self._is_short = True
        address, assets = address_text(replica.address), replica.chain.assets
        has, wants = (balance_param({None: each}, assets) for each in (max(0, left), needed))
        _log.error(
            "orders are rejected: the matcher's account %s has %s left for the fees of exchanges, "
            "%s are needed: send coins to it",
            *(address, param_text(has), param_text(wants)),
        )
        raise MatcherError(
            errors.MATCHER_BALANCE_NOT_ENOUGH, address=address, actual=has, required=wants
        )

    def _cost(self, order: Order) -> int:
        chain = self._replica.chain
        return sum(
            transaction_fee(chain.exchange_context(order, counter.order), self._base_fee)
            for counter in islice(self._counters(order), MAX_COUNTED)
        )

    def _counters(self, order: Order) -> Iterator[ActiveOrder]:
        """The orders in the book that an order may be executed with."""
        book = self._replica.engine.book(pair_of(order))
        if book is None:
            return
        buys, amount = order.side is Side.BUY, order.amount
        for counter in (book.asks if buys else book.bids).orders():
            price = counter.order.price
            if amount <= 0 or (price > order.price if buys else price < order.price):
                return
            yield counter
            amount -= counter.amount
