"""What is told of transactions, beside what the reference node says of the same chain."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from soliton.export.notices import ANY, COMPLETE, DataKeys, Interests, notices_of
from soliton.export.sources import ChainBlock, StoreSource
from soliton.node.blockchain import Blockchain
from soliton.node.chain_writer import ChainWriter
from soliton.node.importer import import_blocks
from soliton.storage.store import Store
from tests.node import recorded
from tests.vectors import report

Members = dict[str, Any]
MOVING: Final = (4, 11, 16, 18)
"""Types that move what there is; in calls, unless they issue, reissue or burn."""


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared / "golden" / "waves-r"


@pytest.fixture(scope="module")
def source(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreSource]:
    directory = tmp_path_factory.mktemp("chain")
    network = recorded.configured_network(folder / "network.conf")
    chain = ChainWriter(network, Store(directory, network.name, durable=False))
    with (folder / "blocks-2-82.bin").open("rb") as file:
        import_blocks(chain, file)
    chain.store.close()
    store = Store(directory, network.name, exclusive=False)
    found = StoreSource(Blockchain(network, store), COMPLETE)
    found.refresh()
    yield found
    found.close()


@pytest.fixture(scope="module")
def blocks(source: StoreSource) -> list[ChainBlock]:
    return list(source.blocks(1, source.refresh()))


@pytest.fixture(scope="module")
def bodies(folder: Path) -> dict[str, Members]:
    """The reference's answers about transactions."""
    rows = recorded.lines(folder / "transactions-info.jsonl.gz")
    return {row["body"]["id"]: row["body"] for row in rows if row["status"] == 200}


def told(source: StoreSource, blocks: list[ChainBlock], **wanted: Any) -> list[Members]:
    interests = Interests(**wanted)
    return [
        each.members
        for block in blocks
        for each in notices_of(block, 0, interests, source.address_of)
    ]


def accounts_of(folder: Path) -> list[str]:
    """All accounts that the reference was asked about."""
    rows = recorded.lines(folder / "state-addresses.jsonl.gz")
    prefix = "/addresses/data/"
    return sorted({row["path"][len(prefix) :] for row in rows if row["path"].startswith(prefix)})


def changes_supply(body: Members) -> bool:
    waiting = [(body.get("payload") or body).get("stateChanges") or {}]
    while waiting:
        changes = waiting.pop()
        if changes.get("issues") or changes.get("reissues") or changes.get("burns"):
            return True
        waiting += [each["stateChanges"] for each in changes.get("invokes", ())]
    return False


def test_payments_are_what_balances_have_changed_by(
    source: StoreSource, blocks: list[ChainBlock], folder: Path, bodies: dict[str, Members]
) -> None:
    """Balances after each transaction are the reference's own."""
    moved: dict[str, Counter[tuple[str, str | None]]] = defaultdict(Counter)
    everybody = frozenset(accounts_of(folder))
    for notice in told(source, blocks, payments_to=everybody):
        assert notice["event"] == "payment"
        moved[notice["transaction"]][notice["recipient"], notice["assetId"]] += notice["amount"]
        if notice["from"] is not None:
            moved[notice["transaction"]][notice["from"], notice["assetId"]] -= notice["amount"]
    generators = {row["generator"] for row in recorded.load(folder / "blocks.json.gz")}
    rows = recorded.lines(folder / "transactions-snapshot.jsonl.gz")
    after = {row["path"].rpartition("/")[2]: row["body"] for row in rows if row["status"] == 200}
    balances: dict[tuple[str, str | None], int] = {}
    count = 0
    for block in blocks:
        for each in block.transactions:
            name = each.members["id"]
            body, changed = bodies[name], after[name]
            counts = body["type"] in MOVING and not changes_supply(body)
            counts = counts and body.get("feeAssetId") is None and body.get("feeAsset") is None
            counts = counts and body["applicationStatus"] == "succeeded"
            for item in changed["balances"]:
                place = item["address"], item["asset"]
                delta = item["balance"] - balances.get(place, 0)
                balances[place] = item["balance"]
                if not counts or (place[0] in generators and place[1] is None):
                    continue
                fee = body["fee"] if place == (body["sender"], None) else 0
                assert moved[name][place] == delta + fee, (name, place)
                count += 1
    assert count > 500
    report.ran("golden/waves-r payments", count)


def test_the_last_told_data_are_what_the_reference_has(
    source: StoreSource, blocks: list[ChainBlock], folder: Path
) -> None:
    accounts = accounts_of(folder)
    entries: dict[str, dict[str, Members]] = {each: {} for each in accounts}
    for notice in told(source, blocks, data=tuple(DataKeys(each, "*") for each in accounts)):
        entry = notice["entry"]
        if entry.get("type") is None:
            entries[notice["address"]].pop(entry["key"], None)
        else:
            entries[notice["address"]][entry["key"]] = entry
    prefix, count = "/addresses/data/", 0
    for row in recorded.lines(folder / "state-addresses.jsonl.gz"):
        account = row["path"].removeprefix(prefix)
        if row["path"].startswith(prefix) and account in entries and row["status"] == 200:
            expected = {each["key"]: each for each in row["body"]}
            assert entries[account] == expected
            count += len(expected)
    assert count > 50


def test_keys_fit_a_pattern(source: StoreSource, blocks: list[ChainBlock]) -> None:
    all_keys = [
        (account["address"], entry["key"])
        for block in blocks
        for each in block.transactions
        for account in each.data
        for entry in account["data"]
    ]
    address, key = next(each for each in all_keys if len(each[1]) > 3)
    found = told(source, blocks, data=(DataKeys(address, key[:3] + "*"),))
    keys = {each["entry"]["key"] for each in found}
    assert key in keys
    assert keys == {name for owner, name in all_keys if owner == address and name[:3] == key[:3]}


def test_failed_calls_and_filled_orders(
    source: StoreSource, blocks: list[ChainBlock], bodies: dict[str, Members]
) -> None:
    failed = [
        each
        for each in bodies.values()
        if each["type"] == 16 and each["applicationStatus"] != "succeeded"
    ]
    assert failed
    found = told(source, blocks, failed_invokes=frozenset((ANY,)))
    assert [each["event"] for each in found] == ["failed-invoke"] * len(failed)
    for notice in found:
        body = bodies[notice["transaction"]]
        assert body in failed
        assert notice["error"] == body["stateChanges"]["error"]
        assert (notice["call"], notice["status"]) == (body["call"], "script_execution_failed")
    one = found[0]["dApp"]
    assert told(source, blocks, failed_invokes=frozenset((one,))) == [
        each for each in found if each["dApp"] == one
    ]
    trades = [each for each in bodies.values() if each["type"] == 7]
    traders = {each[order]["sender"] for each in trades for order in ("order1", "order2")}
    filled = told(source, blocks, orders_of=frozenset(traders))
    assert len(filled) == 2 * len(trades) > 0
    for notice in filled:
        body = bodies[notice["transaction"]]
        order = next(
            body[name] for name in ("order1", "order2") if body[name]["id"] == notice["order"]
        )
        assert notice["account"] == order["sender"]
        assert notice["side"] == order["orderType"]
        assert (notice["amount"], notice["price"]) == (body["amount"], body["price"])


def test_transfers_of_an_asset(
    source: StoreSource, blocks: list[ChainBlock], bodies: dict[str, Members]
) -> None:
    assets = {each["assetId"] for each in bodies.values() if each["type"] == 4} - {None}
    asset = min(assets)
    found = told(source, blocks, transfers_of=frozenset((asset,)))
    assert {each["assetId"] for each in found} == {asset}
    expected = [
        (each["id"], each["amount"])
        for each in bodies.values()
        if each["type"] == 4 and each["assetId"] == asset
    ]
    assert expected
    assert [
        (each["transaction"], each["amount"]) for each in found if each["type"] == 4
    ] == expected
    native = told(source, blocks, transfers_of=frozenset(("WAVES",)))
    assert {each["assetId"] for each in native} == {None}
