"""Whether orders are taken, and the accounts that are followed while they are.

What lives here: what all parts have to know of the service's state. What does not: how it comes
and goes (``serving``).
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
        """Set while orders are taken."""
        self.accounts: Accounts | None = None
        """Set while the matcher serves; before, nobody's balance is followed."""

    def require_accounts(self) -> Accounts:
        """The accounts; raises ``MatcherError`` while there are none."""
        if self.status is ServiceStatus.STOPPING:
            raise MatcherError(errors.MATCHER_IS_STOPPING)
        if self.accounts is None:
            raise MatcherError(errors.MATCHER_IS_STARTING)
        return self.accounts

    def given_up(self, transaction_id: bytes) -> None:
        """A transaction of the settlement will not come onto the chain."""
        if self.accounts is not None:
            self.accounts.give_up(transaction_id)

    def lost(self, transaction: AnyTransaction) -> None:
        """A transaction is not on the chain any more, or takes the place of one given up."""
        if self.accounts is not None:
            self.accounts.expect(transaction)
