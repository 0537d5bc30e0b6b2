"""Snapshot hashes of the Go node's own tests, most of them of MainNet's first blocks."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from soliton.chain import snapshots
from soliton.crypto import base58
from soliton.ledger.hashes import SECTIONS, legacy_hash, next_snapshot_hash, snapshot_entries
from soliton.ledger.snapshots import snapshot_of
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
    AccountScript,
    AssetInfo,
    AssetName,
    AssetScript,
    AssetVolume,
    Commitment,
    LeaseBalance,
    LeaseInfo,
    LeaseState,
    OrderFill,
    Status,
)
from tests.vectors import load_document, load_vectors, report

Row = dict[str, Any]
Change = tuple[Any, Any, Any]
CHAIN_ID = ord("R")
PARTS = "legacySections", "snapshots"
STATUS = "TransactionStatusSnapshot"
STATUSES = {
    "succeeded": Status.SUCCEEDED,
    "script_execution_failed": Status.FAILED,
    "elided": Status.ELIDED,
}


def b58(text: str) -> bytes:
    return base58.decode(text, 100)


def script_of(text: str | None) -> bytes:
    return base64.b64decode((text or "").removeprefix("base64:"))


def entry_value(entry: Row) -> Any:
    value = entry["value"]
    return script_of(value) if entry.get("type") == "binary" else value


def data_changes(data: Row) -> list[Change]:
    address = b58(data["address"])
    return [(DATA, (address, each["key"]), entry_value(each)) for each in data["data"]]


def lease_changes(data: Row) -> list[Change]:
    info = LeaseInfo(b58(data["sender"]), b58(data["recipient"]), data["amount"], b"", 0)  # type: ignore[arg-type]
    return [(LEASE_INFO, b58(data["id"]), info)]


CHANGES: dict[str, Callable[[Row, int], list[Change]]] = {
    "WavesBalanceSnapshot": lambda d, _: [(WAVES, b58(d["address"]), d["balance"])],
    "AssetBalanceSnapshot": lambda d, _: [
        (ASSET_BALANCES, (b58(d["address"]), b58(d["asset"])), d["balance"])
    ],
    "LeaseBalanceSnapshot": lambda d, _: [
        (LEASES, b58(d["address"]), LeaseBalance(d["in"], d["out"]))
    ],
    "DataEntriesSnapshot": lambda d, _: data_changes(d),
    "AccountScriptSnapshot": lambda d, _: [
        (
            ACCOUNT_SCRIPTS,
            b58(d["publicKey"]),
            AccountScript(b58(d["publicKey"]), script_of(d["script"]), d["verifierComplexity"], {}),
        )
    ],
    "AssetScriptSnapshot": lambda d, _: [
        (ASSET_SCRIPTS, b58(d["id"]), AssetScript(script_of(d["script"]), 0))
    ],
    "SponsorshipSnapshot": lambda d, _: [(SPONSORSHIPS, b58(d["id"]), d["minSponsoredAssetFee"])],
    "AliasSnapshot": lambda d, _: [(ALIASES, d["alias"], b58(d["address"]))],
    "NewAssetSnapshot": lambda d, _: [
        (
            ASSETS,
            b58(d["id"]),
            AssetInfo(b58(d["issuer"]), d["decimals"], d["nft"], b"", 0, 0),
        )
    ],
    "AssetVolumeSnapshot": lambda d, _: [
        (ASSET_VOLUMES, b58(d["id"]), AssetVolume(d["isReissuable"], int(d["volume"])))
    ],
    "AssetDescriptionSnapshot": lambda d, height: [
        (
            ASSET_NAMES,
            b58(d["id"]),
            AssetName(d["name"].encode(), d["description"].encode(), height),
        )
    ],
    "NewLeaseSnapshot": lambda d, _: lease_changes(d),
    "CancelledLeaseSnapshot": lambda d, _: [
        (LEASE_STATES, b58(d["id"]), LeaseState(False, 0, b""))
    ],
    "FilledVolumeFeeSnapshot": lambda d, _: [
        (ORDER_FILLS, b58(d["id"]), OrderFill(d["volume"], d["fee"]))
    ],
}


def test_snapshots_of_the_go_node_hash_as_there() -> None:
    vectors = load_vectors("snapshot_hash_gowaves")
    seen = set()
    for row in vectors:
        changes: dict[Any, dict[Any, Any]] = {}
        status = b""
        for snapshot in row["snapshots"]:
            kind, data = snapshot["type"], snapshot["data"]
            seen.add(kind)
            if kind == STATUS:
                found = STATUSES[data["transactionStatus"]]
                if found is not Status.SUCCEEDED:
                    status = b58(row["tx_id"]) + bytes((found,))
                continue
            for table, key, value in CHANGES[kind](data, row["height"]):
                changes.setdefault(table, {})[key] = value
        entries = {*snapshot_entries(changes), *filter(None, (status,))}
        assert sorted(entry.hex() for entry in entries) == row["sorted_entries"], row["tx_id"]
        following = next_snapshot_hash(bytes.fromhex(row["prev"]), changes, status)
        assert following.hex() == row["hash"], row["tx_id"]
    assert seen == {STATUS, *CHANGES}
    report.ran("snapshot_hash_gowaves", len(vectors))


def section_hash(row: Row) -> bytes:
    """One of the two sections that the legacy hash has with deterministic finality."""
    commitments = {
        (10, index): Commitment(
            bytes.fromhex(each["publicKey"]), bytes.fromhex(each["endorserPublicKey"]), b""
        )
        for index, each in enumerate(row.get("entries", ()))
    }
    found = legacy_hash(b"", {}, {COMMITMENTS: commitments}, row.get("balances", ()))
    return found.sections[SECTIONS.index(f"{row['section']}Hash")]


def test_commitments_hash_as_in_the_go_node() -> None:
    document = load_document("finality/state_hashes")
    for row in document["legacySections"]:
        assert section_hash(row).hex() == row["hash"]
    for row in document["snapshots"]:
        commitment = Commitment(
            bytes.fromhex(row["senderPublicKey"]), bytes.fromhex(row["endorserPublicKey"]), b""
        )
        data = bytes.fromhex(row["protobuf"])
        recorded = snapshots.decode(data, CHAIN_ID)
        changes: dict[Any, dict[Any, Any]] = {
            WAVES: {each.address: each.amount for each in recorded.balances},
            COMMITMENTS: {(10, 0): commitment},
        }
        following = next_snapshot_hash(bytes.fromhex(row["previous"]), changes)
        assert following.hex() == row["hash"]
        assert snapshot_of(changes, Status.SUCCEEDED) == recorded
        assert snapshots.encode(recorded) == data
    report.ran("finality/state_hashes", sum(len(document[name]) for name in PARTS))
