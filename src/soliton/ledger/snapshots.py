"""Snapshots: the state changes of a transaction, as light nodes receive them.

What lives here: converting changes of the state to records of ``soliton.chain.snapshots``. What
does not: their bytes, and which blocks peers may request.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/protobuf/PBSnapshots.scala``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from soliton.chain.addresses import Address
from soliton.chain.snapshots import (
    AccountData,
    AccountScript,
    AssetName,
    AssetScript,
    AssetVolume,
    Balance,
    GenerationCommitment,
    LeaseBalance,
    NewAlias,
    NewAsset,
    NewLease,
    OrderFill,
    Snapshot,
    Sponsorship,
    Status,
)
from soliton.chain.values import DataEntry, DataValue
from soliton.ledger.state import (
    ACCOUNT_SCRIPTS,
    ALIASES,
    ASSET_BALANCES,
    ASSET_NAMES,
    ASSET_SCRIPTS,
    ASSET_VOLUMES,
    ASSETS,
    COMMITMENTS,
    DATA,
    LEASE_INFO,
    LEASE_STATES,
    LEASES,
    ORDER_FILLS,
    SPONSORSHIPS,
    WAVES,
    Changes,
    Table,
)

K = TypeVar("K")


def snapshot_of(changes: Changes, status: int) -> Snapshot:
    """Return the snapshot of a transaction from its changes; all values are those after it."""
    assets = _written(changes, ASSETS)
    # Only this order determines their sequence numbers in the block.
    new_assets = sorted(assets.items(), key=lambda item: item[1].sequence)
    scripts = [each for each in _written(changes, ASSET_SCRIPTS).items() if each[1] is not None]
    return Snapshot(
        balances=(
            *(Balance(owner, None, value) for owner, value in _written(changes, WAVES).items()),
            *(
                Balance(owner, asset_id, value)
                for (owner, asset_id), value in _written(changes, ASSET_BALANCES).items()
            ),
        ),
        lease_balances=tuple(
            LeaseBalance(owner, *value) for owner, value in _written(changes, LEASES).items()
        ),
        new_leases=tuple(
            NewLease(lease_id, lease.sender, lease.recipient, lease.amount)
            for lease_id, lease in _written(changes, LEASE_INFO).items()
        ),
        cancelled_leases=tuple(
            lease_id
            for lease_id, state in _written(changes, LEASE_STATES).items()
            if not state.active
        ),
        new_assets=tuple(
            NewAsset(asset_id, info.issuer, info.decimals, info.nft)
            for asset_id, info in new_assets
        ),
        asset_volumes=tuple(
            AssetVolume(asset_id, *volume)
            for asset_id, volume in _written(changes, ASSET_VOLUMES).items()
        ),
        asset_names=tuple(
            AssetName(asset_id, name.name, name.description)
            for asset_id, name in _written(changes, ASSET_NAMES).items()
        ),
        asset_script=next((AssetScript(asset_id, each.script) for asset_id, each in scripts), None),
        alias=next(
            (NewAlias(owner, name) for name, owner in _written(changes, ALIASES).items()), None
        ),
        order_fills=tuple(
            OrderFill(order_id, *fill) for order_id, fill in _written(changes, ORDER_FILLS).items()
        ),
        account_script=next(
            (
                AccountScript(each.public_key, each.script, each.verifier_complexity)
                for each in _written(changes, ACCOUNT_SCRIPTS).values()
            ),
            None,
        ),
        account_data=_account_data(changes),
        sponsorships=tuple(
            Sponsorship(asset_id, fee) for asset_id, fee in _written(changes, SPONSORSHIPS).items()
        ),
        status=Status(status),
        generation_commitment=next(
            (
                GenerationCommitment(each.public_key, each.endorser_key)
                for each in _written(changes, COMMITMENTS).values()
            ),
            None,
        ),
    )


def _written(changes: Changes, table: Table[K, Any]) -> Mapping[K, Any]:
    """Return the writes to a table; the value is ``None`` for an asset without a script."""
    return cast("Mapping[K, Any]", changes.get(table, {}))


def _account_data(changes: Changes) -> tuple[AccountData, ...]:
    entries: dict[Address, list[DataEntry]] = {}
    written = cast("Mapping[tuple[Address, str], DataValue]", changes.get(DATA, {}))
    for (owner, key), value in written.items():
        entries.setdefault(owner, []).append(DataEntry(key, value))
    return tuple(AccountData(owner, tuple(each)) for owner, each in entries.items())
