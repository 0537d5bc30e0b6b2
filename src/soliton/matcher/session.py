"""The state of the service: its status, and the accounts it follows while it accepts orders.

What lives here: the state that all parts share. What does not: its transitions (``serving``).
"""

from __future__ import annotations

import asyncio

from soliton.chain.transactions.model import AnyTransaction
from soliton.matcher.accounts import Accounts
from soliton.matcher.records import ServiceStatus
from soliton.matching import errors
from soliton.matching.errors import MatcherError


class Session:
    """The state of one matcher. Use from one event loop."""

    def __init__(self) -> None:
        self.status = ServiceStatus.STARTING
        self.working = asyncio.Event()
        """Set while orders are accepted."""
        self.trusted = asyncio.Event()
        """Set while the node has the blocks that were seen before; unless it is, nothing is sent to
        it, and nothing that it reports has an effect.
        """
        self.trusted.set()
        self.accounts: Accounts | None = None
        """Set while the matcher serves; until then no balances are followed."""

    def require_accounts(self) -> Accounts:
        """The accounts; raises ``MatcherError`` if the matcher is starting or stopping."""
        if self.status is ServiceStatus.STOPPING:
            raise MatcherError(errors.MATCHER_IS_STOPPING)
        if self.accounts is None:
            raise MatcherError(errors.MATCHER_IS_STARTING)
        return self.accounts

    def given_up(self, transaction_id: bytes) -> None:
        """A transaction of the settlement will not be mined."""
        if self.accounts is not None:
            self.accounts.give_up(transaction_id)

    def lost(self, transaction: AnyTransaction) -> None:
        """A transaction was rolled back, or replaces one that was given up."""
        if self.accounts is not None:
            self.accounts.expect(transaction)
