"""Orders on an external matcher, which is not reverted with the chain.

What lives here: recording placed orders, and cancelling their rest. What does not: a matcher in
this process (``matching``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from soliton.client.account import Account
from soliton.client.errors import NodeRefused
from soliton.client.matcher import Matcher
from soliton.client.order import Order


class NotingMatcher(Matcher):
    """The library's ``Matcher``, which records the orders that it places."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.placed: list[Order] = []

    def place(self, order: Order, *, market: bool = False) -> str:
        """As ``Matcher.place``."""
        self.placed.append(order)
        return super().place(order, market=market)

    def take_back(self, count: int, accounts: Mapping[str, Account]) -> None:
        """Cancel the orders after the first ``count``, if ``accounts`` has their signers by public
        key.
        """
        for order in self.placed[count:]:
            account = accounts.get(order.sender_public_key)
            if account is not None:
                # Most are filled or cancelled already.
                with contextlib.suppress(NodeRefused):
                    self.cancel(account, order)
        del self.placed[count:]
