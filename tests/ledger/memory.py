"""A state in memory, for tests that need no disk, and the accounts that tests use."""

from __future__ import annotations

from typing import TypeVar

from soliton.ledger.state import Changes, Table

K = TypeVar("K")
V = TypeVar("V")


class MemoryState:
    """All tables as dictionaries, and the heights of transactions."""

    def __init__(self) -> None:
        self.tables: Changes = {}
        self.transactions: dict[bytes, int] = {}

    def get(self, table: Table[K, V], key: K) -> V:
        value: V = self.tables.get(table, {}).get(key, table.default)
        return value

    def transaction_height(self, transaction_id: bytes) -> int | None:
        return self.transactions.get(transaction_id)

    def put(self, table: Table[K, V], key: K, value: V) -> None:
        self.tables.setdefault(table, {})[key] = value

    def take(self, changes: Changes) -> None:
        """Make the changes of a block part of the state."""
        for table, written in changes.items():
            self.tables.setdefault(table, {}).update(written)
