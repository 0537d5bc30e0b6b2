"""State hashes: one figure per block (or transaction) that is the same on every node with the same
state.

Two kinds. The *legacy* hash of a block covers nine sections of changed entries and the previous
hash. The *snapshot* hash goes on from transaction to transaction; from feature 22 on it is part of
block headers.

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/StateHashBuilder.scala``
and ``TxStateSnapshotHashBuilder.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from soliton.chain.addresses import Address
from soliton.chain.values import AssetId, DataValue, value_bytes
from soliton.crypto.hashes import blake2b256
from soliton.ledger.state import (
    ALIASES,
    ASSET_BALANCES,
    ASSETS,
    DATA,
    LEASES,
    SPONSORSHIPS,
    WAVES,
    AssetInfo,
    Changes,
    LeaseBalance,
    State,
    Table,
)

EMPTY_HASH: Final = blake2b256(b"")

SECTIONS: Final = (
    "wavesBalanceHash",
    "assetBalanceHash",
    "dataEntryHash",
    "accountScriptHash",
    "assetScriptHash",
    "leaseBalanceHash",
    "leaseStatusHash",
    "sponsorshipHash",
    "aliasHash",
)


class StateHash(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The legacy hash of a block: ``total`` and the hashes of the nine ``SECTIONS``."""

    total: bytes
    sections: tuple[bytes, ...]


class _Hashing(msgspec.Struct, frozen=True):
    """How a table takes part: its section, its entries, and whether unchanged values are left out.

    ``key`` is the sort key of a section's entries; ``legacy`` and ``snapshot`` give what is hashed.
    """

    section: int | None
    key: Callable[[Any], bytes]
    legacy: Callable[[Any, Any], bytes]
    snapshot: Callable[[Any, Any], Iterable[bytes]]
    only_differences: bool


def _i64(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)


def _waves_entry(address: Address, balance: int) -> bytes:
    return address + _i64(balance)


def _asset_entry(key: tuple[Address, AssetId], balance: int) -> bytes:
    return key[0] + key[1] + _i64(balance)


def _lease_entry(address: Address, leases: LeaseBalance) -> bytes:
    return address + _i64(leases.lease_in) + _i64(leases.lease_out)


def _data_key(key: tuple[Address, str]) -> bytes:
    return key[0] + key[1].encode()


def _data_entry(key: tuple[Address, str], value: DataValue) -> bytes:
    return _data_key(key) + value_bytes(value)


def _asset_info_entry(asset_id: AssetId, info: AssetInfo) -> bytes:
    return asset_id + info.issuer + bytes((info.decimals, info.nft))


def _sponsorship_entry(asset_id: AssetId, fee: int) -> bytes:
    return asset_id + _i64(fee)


def _alias_entry(name: str, address: Address) -> bytes:
    return address + name.encode()


def _balances(
    section: int, key: Callable[[Any], bytes], entry: Callable[[Any, Any], bytes]
) -> _Hashing:
    return _Hashing(section, key, entry, lambda k, v: (entry(k, v),), only_differences=True)


def _written(
    section: int | None, key: Callable[[Any], bytes], entry: Callable[[Any, Any], bytes]
) -> _Hashing:
    return _Hashing(section, key, entry, lambda k, v: (entry(k, v),), only_differences=False)


def _itself(key: bytes) -> bytes:
    return key


_TABLES: Final[dict[Table[Any, Any], _Hashing]] = {
    WAVES: _balances(0, _itself, _waves_entry),
    ASSET_BALANCES: _balances(1, lambda key: key[0] + key[1], _asset_entry),
    DATA: _written(2, _data_key, _data_entry),
    LEASES: _balances(5, _itself, _lease_entry),
    SPONSORSHIPS: _written(7, _itself, _sponsorship_entry),
    ALIASES: _written(8, lambda name: name.encode(), _alias_entry),
    ASSETS: _written(None, _itself, _asset_info_entry),
}

_NO_CHANGES: Final = (EMPTY_HASH,) * len(SECTIONS)


def legacy_hash(previous_total: bytes, before: State, changes: Changes) -> StateHash:
    """The legacy hash of a block with these changes above the state ``before``.

    ``previous_total`` is empty at height 1. Balances that end as they began are left out.
    """
    sections = list(_NO_CHANGES)
    for table, written in changes.items():
        hashing = _TABLES[table]
        if hashing.section is None:
            continue
        entries = [
            (hashing.key(key), hashing.legacy(key, value))
            for key, value in written.items()
            if not (hashing.only_differences and before.get(table, key) == value)
        ]
        if entries:
            entries.sort()
            sections[hashing.section] = blake2b256(b"".join(entry for _, entry in entries))
    return StateHash(blake2b256(previous_total + b"".join(sections)), tuple(sections))


def snapshot_entries(changes: Changes) -> set[bytes]:
    """What is hashed of these changes."""
    entries: set[bytes] = set()
    for table, written in changes.items():
        snapshot = _TABLES[table].snapshot
        for key, value in written.items():
            entries.update(snapshot(key, value))
    return entries


def next_snapshot_hash(previous: bytes, changes: Changes, status: bytes = b"") -> bytes:
    """The snapshot hash after these changes; ``status`` is the entry of a failed or elided
    transaction.
    """
    entries = snapshot_entries(changes)
    if status:
        entries.add(status)
    return blake2b256(previous + blake2b256(b"".join(sorted(entries))))
