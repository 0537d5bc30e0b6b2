"""State hashes, which are the same on all nodes with the same state.

There are two kinds. The *legacy* hash of a block covers nine sections of changed entries and the
previous hash; with deterministic finality also the commitments of the block and the balances of its
generators. The *snapshot* hash is chained from transaction to transaction; since feature 22 it
is part of block headers.

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
    ACCOUNT_SCRIPTS,
    ALIASES,
    APPROVALS,
    ASSET_BALANCES,
    ASSET_NAMES,
    ASSET_SCRIPTS,
    ASSET_VOLUMES,
    ASSETS,
    BANS,
    COMMITMENTS,
    CONFLICTS,
    DATA,
    DEPOSITS,
    ERC20,
    GENERATORS,
    LEASE_INFO,
    LEASE_STATES,
    LEASES,
    ORDER_FILLS,
    SPONSORSHIPS,
    WAVES,
    AccountScript,
    AssetInfo,
    AssetName,
    AssetScript,
    AssetVolume,
    Changes,
    Commitment,
    LeaseBalance,
    LeaseInfo,
    LeaseState,
    OrderFill,
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
    "nextCommittedGeneratorsHash",
    "committedGeneratorBalancesHash",
)
_COMMITMENTS: Final = 9
_GENERATORS: Final = 10
SECTIONS_BEFORE_FINALITY: Final = 9
"""The last two sections exist from the activation of deterministic finality on."""


class StateHash(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The legacy hash of a block: ``total`` and the hashes of the ``SECTIONS``, of which the last
    two are missing before deterministic finality.
    """

    total: bytes
    sections: tuple[bytes, ...]


class _Hashing(msgspec.Struct, frozen=True):
    """How a table is hashed.

    The legacy hash uses ``section``, ``key`` (the sort key of an entry) and ``legacy`` (its bytes),
    the snapshot hash ``snapshot``. With ``only_differences`` the legacy hash omits values that are
    the same as before the block.
    """

    section: int | None
    key: Callable[[Any], bytes] | None
    legacy: Callable[[Any, Any], bytes] | None
    snapshot: Callable[[Any, Any], Iterable[bytes]]
    only_differences: bool = False


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


def _itself(key: bytes) -> bytes:
    return key


def _volume_entry(asset_id: AssetId, volume: AssetVolume) -> bytes:
    quantity = volume.quantity
    # As the JVM encodes a BigInteger: two's complement of minimal length, at least one byte.
    size = (quantity if quantity >= 0 else ~quantity).bit_length() // 8 + 1
    return asset_id + bytes((volume.reissuable,)) + quantity.to_bytes(size, "big", signed=True)


def _name_entry(asset_id: AssetId, name: AssetName) -> bytes:
    return asset_id + name.name + name.description + name.height.to_bytes(4, "big")


def _asset_script_section(asset_id: AssetId, script: AssetScript | None) -> bytes:
    return asset_id + (b"" if script is None else script.script)


def _asset_script_entries(asset_id: AssetId, script: AssetScript | None) -> tuple[bytes, ...]:
    # Only the legacy hash has an entry for a new asset without a script.
    return () if script is None else (asset_id + script.script,)


def _account_script_entries(_address: Address, script: AccountScript) -> tuple[bytes, ...]:
    if not script.script:
        return (script.public_key,)
    return (script.public_key + script.script + _i64(script.verifier_complexity),)


def _lease_entries(lease_id: bytes, lease: LeaseInfo) -> tuple[bytes, ...]:
    details = lease_id + lease.sender + lease.recipient + _i64(lease.amount)
    return lease_id + b"\1", details


def _lease_state_entries(lease_id: bytes, state: LeaseState) -> tuple[bytes, ...]:
    return () if state.active else (lease_id + b"\0",)


def _commitment_entry(_key: tuple[int, int], commitment: Commitment) -> bytes:
    return commitment.public_key + commitment.endorser_key


def _fill_entry(order_id: bytes, fill: OrderFill) -> bytes:
    return order_id + _i64(fill.volume) + _i64(fill.fee)


def _one(entry: Callable[[Any, Any], bytes]) -> Callable[[Any, Any], Iterable[bytes]]:
    return lambda key, value: (entry(key, value),)


def _none(_key: object, _value: object) -> tuple[bytes, ...]:
    return ()


_NOWHERE: Final = _Hashing(None, None, None, _none)

_TABLES: Final[dict[Table[Any, Any], _Hashing]] = {
    WAVES: _Hashing(0, _itself, _waves_entry, _one(_waves_entry), only_differences=True),
    ASSET_BALANCES: _Hashing(
        1, lambda key: key[0] + key[1], _asset_entry, _one(_asset_entry), only_differences=True
    ),
    DATA: _Hashing(2, _data_key, _data_entry, _one(_data_entry)),
    ACCOUNT_SCRIPTS: _Hashing(
        3, _itself, lambda address, script: address + script.script, _account_script_entries
    ),
    ASSET_SCRIPTS: _Hashing(4, _itself, _asset_script_section, _asset_script_entries),
    LEASES: _Hashing(5, _itself, _lease_entry, _one(_lease_entry), only_differences=True),
    LEASE_STATES: _Hashing(
        6, _itself, lambda lease_id, state: lease_id + bytes((state.active,)), _lease_state_entries
    ),
    SPONSORSHIPS: _Hashing(7, _itself, _sponsorship_entry, _one(_sponsorship_entry)),
    # Sorted by the hashed bytes, which begin with the address.
    ALIASES: _Hashing(8, lambda _name: b"", _alias_entry, _one(_alias_entry)),
    ASSETS: _Hashing(None, None, None, _one(_asset_info_entry)),
    ASSET_VOLUMES: _Hashing(None, None, None, _one(_volume_entry)),
    ASSET_NAMES: _Hashing(None, None, None, _one(_name_entry)),
    LEASE_INFO: _Hashing(None, None, None, _lease_entries),
    ORDER_FILLS: _Hashing(None, None, None, _one(_fill_entry)),
    # Sorted by the hashed bytes, which begin with the public key.
    COMMITMENTS: _Hashing(
        _COMMITMENTS, lambda _key: b"", _commitment_entry, _one(_commitment_entry)
    ),
    GENERATORS: _NOWHERE,
    CONFLICTS: _NOWHERE,
    DEPOSITS: _NOWHERE,
    ERC20: _NOWHERE,
    APPROVALS: _NOWHERE,
    BANS: _NOWHERE,
}

_NOTHING: Final = object()
NO_SECTIONS: Final = (EMPTY_HASH,) * SECTIONS_BEFORE_FINALITY
_NO_SECTIONS_BYTES: Final = b"".join(NO_SECTIONS)


def skips_unchanged(table: Table[Any, Any]) -> bool:
    """Whether the legacy hash omits values that are the same as before the block."""
    return _TABLES[table].only_differences


def legacy_hash(
    previous_total: bytes,
    originals: Changes,
    changes: Changes,
    generator_balances: Iterable[int] | None = None,
) -> StateHash:
    """Return the legacy hash of a block with these changes.

    ``previous_total`` is empty at height 1. ``originals`` holds the values before the block, for
    the tables whose unchanged values are omitted. ``generator_balances`` are those of the block's
    generators in the order of their indexes, ``None`` before deterministic finality.
    """
    if not changes and generator_balances is None:
        return StateHash(blake2b256(previous_total + _NO_SECTIONS_BYTES), NO_SECTIONS)
    sections = list(NO_SECTIONS)
    if generator_balances is not None:
        sections += EMPTY_HASH, blake2b256(b"".join(map(_i64, generator_balances)))
    for table, written in changes.items():
        hashing = _TABLES[table]
        if hashing.section is None or hashing.key is None or hashing.legacy is None:
            continue
        before = originals.get(table, {}) if hashing.only_differences else {}
        entries = [
            (hashing.key(key), hashing.legacy(key, value))
            for key, value in written.items()
            if before.get(key, _NOTHING) != value
        ]
        if entries:
            entries.sort()
            sections[hashing.section] = blake2b256(b"".join(entry for _, entry in entries))
    return StateHash(blake2b256(previous_total + b"".join(sections)), tuple(sections))


def snapshot_entries(changes: Changes) -> set[bytes]:
    """Return the entries of the snapshot hash for these changes."""
    return {
        entry
        for table, written in changes.items()
        for key, value in written.items()
        for entry in _TABLES[table].snapshot(key, value)
    }


def next_snapshot_hash(previous: bytes, changes: Changes, status: bytes = b"") -> bytes:
    """Return the snapshot hash after these changes; ``status`` is the entry of a failed or elided
    transaction.
    """
    entries = snapshot_entries(changes)
    if status:
        entries.add(status)
    return blake2b256(previous + blake2b256(b"".join(sorted(entries))))
