"""When orders expire: a queue by time.

What lives here: the queue. What does not: cancelling what is due (``canceling``).
"""

from __future__ import annotations

import heapq
from typing import Final

from soliton.matching.model import ActiveOrder

_SPARE: Final = 1_024
"""Entries of orders that are gone are tolerated up to twice the number of those that are not."""


class Expirations:
    """The resting orders by the time in ms at which each has to go."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, bytes]] = []
        self._orders: dict[bytes, ActiveOrder] = {}

    def add(self, order: ActiveOrder) -> None:
        """An order that rests from now on."""
        signed = order.order
        order_id = signed.id
        if order_id not in self._orders:
            heapq.heappush(self._heap, (signed.expiration, order_id))
        self._orders[order_id] = order

    def remove(self, order_id: bytes) -> None:
        """An order that is out."""
        self._orders.pop(order_id, None)
        if len(self._heap) > 2 * len(self._orders) + _SPARE:
            self._heap = [(each.order.expiration, key) for key, each in self._orders.items()]
            heapq.heapify(self._heap)

    def next_time(self) -> int | None:
        """When the next order may have to go, if there is any."""
        return self._heap[0][0] if self._heap else None

    def take_due(self, now: int) -> list[ActiveOrder]:
        """The orders whose time has come; they are forgotten here."""
        due = []
        while self._heap and self._heap[0][0] <= now:
            order = self._orders.pop(heapq.heappop(self._heap)[1], None)
            if order is not None:
                due.append(order)
        return due
