"""The rows of a chain that the reference node made, beside that node's own answers about it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from psycopg.rows import dict_row

from soliton.node.chain_writer import ChainWriter
from soliton.node.importer import import_blocks
from soliton.storage.store import Store
from tests.export.following import export_once
from tests.export.postgres import Server
from tests.node import recorded
from tests.vectors import report

Row = dict[str, Any]
TOP: Final = 82


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared / "golden" / "waves-r"


@pytest.fixture(scope="module")
def database(
    postgres: Server, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[psycopg.Connection[Row]]:
    """The chain, imported and exported."""
    directory = tmp_path_factory.mktemp("chain")
    network = recorded.configured_network(folder / "network.conf")
    chain = ChainWriter(network, Store(directory, network.name, durable=False))
    with (folder / "blocks-2-82.bin").open("rb") as file:
        import_blocks(chain, file)
    dsn = postgres.database()
    export_once(chain, dsn)
    chain.store.close()
    with psycopg.connect(dsn, row_factory=dict_row) as connection:
        yield connection


def told(folder: Path, name: str) -> list[Row]:
    """The bodies of recorded answers."""
    rows = recorded.lines(folder / f"{name}.jsonl.gz")
    return [row["body"] for row in rows if row["status"] == 200]


def moment(milliseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


def same(name: str) -> Callable[[Row], Any]:
    return lambda told: told[name]


def asset(name: str) -> Callable[[Row], Any]:
    return lambda told: told.get(name) or "WAVES"


def script(told: Row) -> str | None:
    return told["script"].removeprefix("base64:") if told.get("script") else None


def function(told: Row) -> str:
    name: str = (told.get("call") or {"function": "default"})["function"]
    return name


def pair(name: str) -> Callable[[Row], Any]:
    return lambda told: told["order1"]["assetPair"][name] or "WAVES"


COLUMNS: Final[dict[int, dict[str, Callable[[Row], Any]]]] = {
    1: {"amount": same("amount")},
    3: {
        "asset_id": same("id"),
        "asset_name": same("name"),
        "description": same("description"),
        "quantity": same("quantity"),
        "decimals": same("decimals"),
        "reissuable": same("reissuable"),
        "script": script,
    },
    4: {
        "asset_id": asset("assetId"),
        "amount": same("amount"),
        "fee_asset_id": asset("feeAsset"),
        "attachment": same("attachment"),
    },
    5: {
        name: same(told)
        for name, told in (
            ("asset_id", "assetId"),
            ("quantity", "quantity"),
            ("reissuable", "reissuable"),
        )
    },
    6: {"asset_id": same("assetId"), "amount": same("amount")},
    7: {
        "amount": same("amount"),
        "price": same("price"),
        "amount_asset_id": pair("amountAsset"),
        "price_asset_id": pair("priceAsset"),
        "buy_matcher_fee": same("buyMatcherFee"),
        "sell_matcher_fee": same("sellMatcherFee"),
        "fee_asset_id": asset("feeAssetId"),
    },
    8: {"amount": same("amount")},
    9: {"lease_id": same("leaseId")},
    10: {"alias": same("alias")},
    11: {"asset_id": asset("assetId"), "attachment": same("attachment")},
    13: {"script": script},
    14: {"asset_id": same("assetId"), "min_sponsored_asset_fee": same("minSponsoredAssetFee")},
    15: {"asset_id": same("assetId"), "script": script},
    16: {"function_name": function, "fee_asset_id": asset("feeAssetId")},
    17: {
        name: same(told)
        for name, told in (
            ("asset_id", "assetId"),
            ("asset_name", "name"),
            ("description", "description"),
        )
    },
    18: {"bytes": lambda told: bytes.fromhex(told["bytes"][2:])},
}
"""Of each type, how its columns follow from the answer of the reference."""


def test_transactions_are_as_the_reference_tells_them(
    database: psycopg.Connection[Row], folder: Path
) -> None:
    counts: Counter[int] = Counter()
    for expected in told(folder, "transactions-info"):
        kind = expected["type"]
        found = database.execute(
            f"SELECT * FROM txs_{kind} WHERE id = %s".encode(), (expected["id"],)
        ).fetchone()
        assert found is not None, expected["id"]
        proofs = expected.get("proofs") or (
            [expected["signature"]] if "signature" in expected else []
        )
        assert found["tx_type"] == kind
        assert found["sender"] == expected.get("sender")
        assert found["sender_public_key"] == expected.get("senderPublicKey")
        assert found["time_stamp"] == moment(expected["timestamp"])
        assert found["height"] == expected["height"]
        assert found["fee"] == expected["fee"]
        assert found["status"] == expected["applicationStatus"]
        assert found["proofs"] == proofs
        assert found["signature"] == ((proofs[0] or None) if proofs else None)
        assert found["tx_version"] == expected.get("version")
        for column, read in COLUMNS.get(kind, {}).items():
            assert found[column] == read(expected), (column, expected)
        check_recipient(found, expected)
        check_orders(found, expected)
        check_details(database, found, expected)
        counts[kind] += 1
    assert set(counts) == {*range(1, 19)} - {2}
    report.ran("golden/waves-r exported", sum(counts.values()))


def check_recipient(found: Row, expected: Row) -> None:
    for column, member in (("recipient", "recipient"), ("dapp", "dApp")):
        if member not in expected or expected["type"] == 11:
            continue
        _, is_alias, name = expected[member].rpartition(":")
        assert found[f"{column}_alias"] == (name if is_alias else None)
        if not is_alias:
            assert found[f"{column}_address"] == expected[member]


def check_orders(found: Row, expected: Row) -> None:
    for name in ("order1", "order2"):
        if name in expected:
            order = {key: value for key, value in expected[name].items() if key != "attachment"}
            assert found[name] == order


def check_details(database: psycopg.Connection[Row], found: Row, expected: Row) -> None:
    """The tables with a row for each item of a transaction."""

    def items(table: str, position: str) -> list[Row]:
        statement = f"SELECT * FROM {table} WHERE tx_uid = %s ORDER BY {position}"
        return database.execute(statement.encode(), (found["uid"],)).fetchall()

    kind = expected["type"]
    if kind == 11:
        for row, item in zip(
            items("txs_11_transfers", "position_in_tx"), expected["transfers"], strict=True
        ):
            assert row["amount"] == item["amount"]
            assert item["recipient"].rpartition(":")[2] in (
                row["recipient_address"],
                row["recipient_alias"],
            )
    elif kind == 12:
        for row, item in zip(items("txs_12_data", "position_in_tx"), expected["data"], strict=True):
            assert (row["data_key"], row["data_type"]) == (item["key"], item.get("type"))
            if "type" in item:
                assert row[f"data_value_{item['type']}"] == item["value"]
    elif kind in (16, 18):
        holder = expected.get("payload", expected)
        call = holder.get("call") or {}
        for row, item in zip(
            items(f"txs_{kind}_args", "position_in_args"), call.get("args", ()), strict=True
        ):
            assert row["arg_type"] == item["type"]
            assert row[f"arg_value_{item['type']}"] == item["value"]
        payments = [
            (each["amount"], each["asset_id"])
            for each in items(f"txs_{kind}_payment", "position_in_payment")
        ]
        assert payments == [
            (each["amount"], each["assetId"] or "WAVES") for each in holder.get("payment") or ()
        ]


def test_assets_are_as_the_reference_tells_them(
    database: psycopg.Connection[Row], folder: Path
) -> None:
    rows = recorded.lines(folder / "state-assets.jsonl.gz")
    count = 0
    for row in rows:
        if row["status"] != 200 or not row["path"].startswith("/assets/details/"):
            continue
        expected = row["body"]
        found = database.execute(
            "SELECT a.*, o.origin_transaction_id FROM assets a JOIN asset_origins o "
            "USING (asset_id) WHERE asset_id = %s",
            (expected["assetId"],),
        ).fetchone()
        assert found is not None
        assert (found["asset_name"], found["description"]) == (
            expected["name"],
            expected["description"],
        )
        assert found["sender"] == expected["issuer"]
        assert found["issue_height"] == expected["issueHeight"]
        assert found["issue_timestamp"] == moment(expected["issueTimestamp"])
        assert found["total_quantity"] == expected["quantity"]
        assert found["decimals"] == expected["decimals"]
        assert found["reissuable"] == expected["reissuable"]
        assert found["has_script"] == expected["scripted"]
        assert found["min_sponsored_asset_fee"] == expected["minSponsoredAssetFee"]
        assert found["origin_transaction_id"] == expected["originTransactionId"]
        count += 1
    assert count == 58


def test_blocks_and_supply_are_as_the_reference_tells_them(
    database: psycopg.Connection[Row], folder: Path
) -> None:
    blocks = {row["height"]: row for row in recorded.load(folder / "blocks.json.gz")}
    found = database.execute("SELECT * FROM blocks_microblocks ORDER BY uid").fetchall()
    assert [(row["height"], row["id"], row["time_stamp"]) for row in found] == [
        (height, blocks[height]["id"], moment(blocks[height]["timestamp"]))
        for height in range(1, TOP + 1)
    ]
    for row in recorded.lines(folder / "chain.jsonl.gz"):
        _, _, height = row["path"].partition("/blockchain/rewards/")
        if height and row["status"] == 200:
            supply = database.execute(
                "SELECT quantity FROM waves_data WHERE height <= %s ORDER BY height DESC LIMIT 1",
                (int(height),),
            ).fetchone()
            assert supply is not None
            assert supply["quantity"] == row["body"]["totalWavesAmount"], json.dumps(row["body"])
