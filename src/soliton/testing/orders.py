"""Orders on a matcher that runs elsewhere, and does not go back with the chain.

What lives here: noting what was placed, and cancelling what is left of it. What does not: a matcher
in this process (``matching``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from soliton.client.account import Account
from soliton.client.errors import NodeRefused
from soliton.client.matcher import Matcher
from soliton.client.order import Order


class NotingMatcher(Matcher):
    """The library's ``Matcher``, which notes what was placed through it."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.placed: list[Order] = []

    def place(self, order: Order, *, market: bool = False) -> str:
        """As ``Matcher.place``."""
        self.placed.append(order)
        return super().place(order, market=market)

    def take_back(self, count: int, accounts: Mapping[str, Account]) -> None:
        """Cancel what is left of the orders behind the first ones, as far as the accounts that
        signed them are known, by their public keys.
        """
        for order in self.placed[count:]:
            account = accounts.get(order.sender_public_key)
            if account is not None:
                # Most of them are filled or cancelled.
                with contextlib.suppress(NodeRefused):
                    self.cancel(account, order)
        del self.placed[count:]
