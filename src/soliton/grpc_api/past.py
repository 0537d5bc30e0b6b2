"""The state before a block, from the store's records of the past.

Balances and leases have histories; assets and leases know their heights; the previous values of
data, scripts and assets are in the block's record of what it replaced.

What lives here: reading those. What does not: the changes of a block (``block_updates``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar, cast

from soliton.chain.addresses import Address
from soliton.chain.values import AssetId
from soliton.grpc_api.errors import Code, Refused
from soliton.ledger.state import (
    ALIASES,
    ASSET_BALANCES,
    ASSET_NAMES,
    ASSETS,
    ERC20,
    LEASE_INFO,
    LEASES,
    NO_LEASES,
    WAVES,
    AssetName,
    Changes,
    LeaseBalance,
    Table,
)
from soliton.storage import layout
from soliton.storage.reader import StoreReader

K = TypeVar("K")
V = TypeVar("V")

MAX_CACHED: Final = 100_000
"""Limit on the balances that the cache holds."""


class BalanceCache:
    """A cache of balances for a reader of successive blocks, and the id of its last block, if the
    reader has noted it.
    """

    __slots__ = ("balances", "block_id", "height", "leases")

    def __init__(self) -> None:
        self.height = 0
        self.block_id = b""
        self.balances: dict[object, int] = {}
        self.leases: dict[Address, LeaseBalance] = {}

    def advance(self, height: int) -> None:
        """Note that the cache is of the state after the block at a height."""
        self.height = height
        if len(self.balances) + len(self.leases) > MAX_CACHED:
            self.clear()

    def clear(self) -> None:
        """Clear the cache."""
        self.balances.clear()
        self.leases.clear()


class PastState:
    """The state before the block at a height."""

    __slots__ = ("_before", "_cache", "_height", "_store", "count", "initial")

    def __init__(self, store: StoreReader, height: int, cache: BalanceCache | None = None) -> None:
        """``cache`` is a cache of the block below. Raises ``Refused`` if too little was stored."""
        record = store.replaced(height)
        if record is None:
            raise Refused(
                Code.FAILED_PRECONDITION,
                f"what block {height} replaced was not kept: an earlier version has stored it; "
                "import the chain again to have it",
            )
        self._store = store
        self._height = height
        self._cache = BalanceCache() if cache is None else cache
        if self._cache.height != height - 1:
            self._cache.clear()
        self._before = layout.pairs(record.before)
        self.count = record.count
        """The number of the block's transactions before any microblock."""
        self.initial: Changes = layout.decode_changes(record.initial)

    def get(self, table: Table[K, V], key: K) -> V:
        """Return the value of a key."""
        if table is WAVES:
            return cast("V", self._balance(cast("Address", key)))
        if table is LEASES:
            return cast("V", self._leasing(cast("Address", key)))
        if table is ASSET_BALANCES:
            return cast("V", self._asset_balance(cast("tuple[Address, AssetId]", key)))
        if table is ASSETS or table is LEASE_INFO:
            info: Any = self._store.get(table, key)
            return (
                cast("V", info)
                if info is not None and info.height < self._height
                else cast("V", None)
            )
        if table is ALIASES or table is ERC20:
            # They never change, and the names in a block existed before it.
            return self._store.get(table, key)
        row = layout.ROWS[table]
        raw_key = row.prefix + row.key(key)
        if raw_key not in self._before and table is ASSET_NAMES:
            return cast("V", self._name(cast("AssetId", key)))
        raw = self._before.get(raw_key)
        return table.default if raw is None else cast("V", row.decode(raw))

    def _balance(self, address: Address) -> int:
        found = self._cache.balances.get(address)
        if found is None:
            found = self._history(address)[0]
            self._cache.balances[address] = found
        return found

    def _leasing(self, address: Address) -> LeaseBalance:
        found = self._cache.leases.get(address)
        if found is None:
            found = self._cache.leases[address] = self._history(address)[1]
        return found

    def _history(self, address: Address) -> tuple[int, LeaseBalance]:
        before = self._height.to_bytes(4, "big")
        for _, raw in self._store.scan_back(layout.HISTORY + address, before):
            balance, leases, _ = layout.decode_history(raw)
            return balance, leases
        return 0, NO_LEASES

    def _asset_balance(self, key: tuple[Address, AssetId]) -> int:
        found = self._cache.balances.get(key)
        if found is None:
            address, asset_id = key
            before = self._height.to_bytes(4, "big")
            found = 0
            for _, raw in self._store.scan_back(layout.ASSET_HISTORY + asset_id + address, before):
                found = int.from_bytes(raw, "big", signed=True)
                break
            self._cache.balances[key] = found
        return found

    def _name(self, asset_id: AssetId) -> AssetName | None:
        """Return the name of an asset that the block did not change, going back by changes."""
        name = self._store.get(ASSET_NAMES, asset_id)
        row = layout.ROWS[ASSET_NAMES]
        key = row.prefix + row.key(asset_id)
        while name is not None and name.height >= self._height:
            record = self._store.replaced(name.height)
            before = {} if record is None else layout.pairs(record.before)
            raw = before.get(key)
            name = None if raw is None else row.decode(raw)
        return name

    def behind(self, changes: Changes) -> None:
        """Update the cache with the changes of this block."""
        cache = self._cache
        cache.balances.update(cast("Mapping[object, int]", changes.get(WAVES, {})))
        cache.balances.update(cast("Mapping[object, int]", changes.get(ASSET_BALANCES, {})))
        cache.leases.update(cast("Mapping[Address, LeaseBalance]", changes.get(LEASES, {})))
        cache.advance(self._height)

    def transaction_height(self, transaction_id: bytes) -> int | None:
        """Not used for the past; required by ``State``."""
        return self._store.transaction_height(transaction_id)
