"""The expiration queue of orders.

What lives here: the queue. What does not: cancelling expired orders (``canceling``).
"""

from __future__ import annotations

import heapq
from typing import Final

from soliton.matching.model import ActiveOrder

_SPARE: Final = 1_024
"""Stale entries are tolerated up to the number of live ones plus this."""


class Expirations:
    """The resting orders by expiration time in milliseconds."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, bytes]] = []
        self._orders: dict[bytes, ActiveOrder] = {}

    def add(self, order: ActiveOrder) -> None:
        """Add a resting order, or its new state."""
        signed = order.order
        order_id = signed.id
        if order_id not in self._orders:
            heapq.heappush(self._heap, (signed.expiration, order_id))
        self._orders[order_id] = order

    def remove(self, order_id: bytes) -> None:
        """Remove an order."""
        self._orders.pop(order_id, None)
        if len(self._heap) > 2 * len(self._orders) + _SPARE:
            self._heap = [(each.order.expiration, key) for key, each in self._orders.items()]
            heapq.heapify(self._heap)

    def take_due(self, now: int) -> list[ActiveOrder]:
        """Remove and return the orders that have expired."""
        due = []
        while self._heap and self._heap[0][0] <= now:
            order = self._orders.pop(heapq.heappop(self._heap)[1], None)
            if order is not None:
                due.append(order)
        return due
