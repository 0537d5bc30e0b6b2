"""State changes of a transaction in the JSON of the REST API.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/
StateSnapshotJson.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.api.http import big_number
from soliton.api.json_transactions import Members
from soliton.api.state_schemas import APPLICATION_STATUSES
from soliton.chain.addresses import address_text
from soliton.chain.json_kinds import data_entry_json, encode_base64
from soliton.chain.layouts import lenient_text
from soliton.chain.values import AssetId, DataEntry
from soliton.crypto import base58
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
)

_MAX_I64: Final = 2**63 - 1

Rows = list[Members]


def snapshot_json(changes: Changes, transaction_id: bytes, height: int, status: int) -> Members:
    """The changes of a transaction of the block at a height."""
    name = base58.encode(transaction_id)
    return {
        "applicationStatus": APPLICATION_STATUSES[status],
        "balances": balances_json(changes),
        "leaseBalances": [
            {"address": address_text(address), "in": leases.lease_in, "out": leases.lease_out}
            for address, leases in changes.get(LEASES, {}).items()
        ],
        **_assets(changes, name, height),
        **_leases(changes, name, height),
        "aliases": [
            {"address": address_text(address), "alias": alias}
            for alias, address in changes.get(ALIASES, {}).items()
        ],
        "orderFills": [
            {"id": base58.encode(order_id), "volume": fill.volume, "fee": fill.fee}
            for order_id, fill in changes.get(ORDER_FILLS, {}).items()
        ],
        "accountScripts": [
            {
                "publicKey": base58.encode(script.public_key),
                "script": encode_base64(script.script) if script.script else None,
                "verifierComplexity": script.verifier_complexity,
            }
            for script in changes.get(ACCOUNT_SCRIPTS, {}).values()
        ],
        "accountData": _data(changes),
        "nextCommittedGenerators": [
            {
                "publicKey": base58.encode(commitment.public_key),
                "blsPublicKey": base58.encode(commitment.endorser_key),
            }
            for commitment in changes.get(COMMITMENTS, {}).values()
        ],
    }


def balances_json(changes: Changes) -> Rows:
    """The balances in the changes."""
    waves: list[tuple[bytes, AssetId | None, int]] = [
        (address, None, balance) for address, balance in changes.get(WAVES, {}).items()
    ]
    assets = [
        (address, asset_id, balance)
        for (address, asset_id), balance in changes.get(ASSET_BALANCES, {}).items()
    ]
    return [
        {
            "address": address_text(address),
            "asset": None if asset_id is None else base58.encode(asset_id),
            "balance": balance,
        }
        for address, asset_id, balance in (*waves, *assets)
    ]


def _assets(changes: Changes, transaction: str, height: int) -> Members:
    return {
        "assetStatics": [
            {
                "id": base58.encode(asset_id),
                "source": transaction,
                "issuer": base58.encode(asset.issuer),
                "decimals": asset.decimals,
                "nft": asset.nft,
            }
            for asset_id, asset in changes.get(ASSETS, {}).items()
        ],
        "assetVolumes": [
            {
                "id": base58.encode(asset_id),
                "isReissuable": volume.reissuable,
                "volume": whole(volume.quantity),
            }
            for asset_id, volume in changes.get(ASSET_VOLUMES, {}).items()
        ],
        "assetNamesAndDescriptions": [
            {
                "id": base58.encode(asset_id),
                "name": lenient_text(name.name),
                "description": lenient_text(name.description),
                "lastUpdatedAt": height,
            }
            for asset_id, name in changes.get(ASSET_NAMES, {}).items()
        ],
        "assetScripts": [
            {
                "id": base58.encode(asset_id),
                "script": encode_base64(script.script),
                # Snapshots do not have it.
                "complexity": 0,
            }
            for asset_id, script in changes.get(ASSET_SCRIPTS, {}).items()
            if script is not None
        ],
        "sponsorships": [
            {"id": base58.encode(asset_id), "minSponsoredAssetFee": fee}
            for asset_id, fee in changes.get(SPONSORSHIPS, {}).items()
        ],
    }


def _leases(changes: Changes, transaction: str, height: int) -> Members:
    return {
        "newLeases": [
            {
                "id": base58.encode(lease_id),
                "sender": base58.encode(lease.sender),
                "recipient": address_text(lease.recipient),
                "amount": lease.amount,
                "txId": transaction,
                "height": height,
            }
            for lease_id, lease in changes.get(LEASE_INFO, {}).items()
        ],
        "cancelledLeases": [
            {"id": base58.encode(lease_id), "txId": transaction, "height": height}
            for lease_id, state in changes.get(LEASE_STATES, {}).items()
            if not state.active
        ],
    }


def _data(changes: Changes) -> Rows:
    by_address: dict[bytes, list[object]] = {}
    for (address, key), value in changes.get(DATA, {}).items():
        by_address.setdefault(address, []).append(data_entry_json(DataEntry(key, value)))
    return [
        {"address": address_text(address), "data": entries}
        for address, entries in by_address.items()
    ]


def whole(value: int) -> object:
    """A number that may exceed 64 bits, as volumes of early assets do."""
    return value if -_MAX_I64 <= value <= _MAX_I64 else big_number(value)
