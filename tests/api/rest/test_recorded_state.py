"""A chain made by the reference node: our answers about its state and transactions.

Every block is applied with its scripts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from soliton.chain import blocks
from soliton.node.chain import Chain
from tests.api.chain import PrivateChain
from tests.node import recorded
from tests.vectors import report

TOP = 82
LATER_GENERATOR = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"
"""It made the two blocks after the recorded ones: its balance is another one by then."""
NOT_COMPARED = frozenset(("scriptText",))
"""The reference prints how its own program holds a script, different each time."""


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared / "golden" / "waves-r"


@pytest.fixture(scope="module")
def replayed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateChain]:
    made = PrivateChain(tmp_path_factory.mktemp("node"), config=folder / "network.conf")
    node = made.node
    node.chain = Chain(node.network, node.store)
    for data in recorded.records(folder / "blocks-2-82.bin"):
        node.chain.append(blocks.decode(data, ord("R")))
        node.store.flush()
    assert node.chain.height == TOP
    made.now = 2_000_000_000_000
    yield made
    node.close()


def comparable(value: object, *, unordered: bool = False) -> object:
    """The value without what is not compared; ``unordered`` sorts lists."""
    if isinstance(value, dict):
        return {
            key: comparable(item, unordered=unordered)
            for key, item in value.items()
            if key not in NOT_COMPARED
        }
    if isinstance(value, list):
        items = [comparable(item, unordered=unordered) for item in value]
        return sorted(items, key=json.dumps) if unordered else items
    return value


async def differences(chain: PrivateChain, rows: list[Any], **how: bool) -> list[object]:
    """The rows that are answered in another way, with our answer."""
    found: list[object] = []
    for row in rows:
        answer = await chain.get(row["path"])
        body = answer.json() if answer.body else ""
        if (answer.status, comparable(body, **how)) != (
            row["status"],
            comparable(row["body"], **how),
        ):
            found.append((row["path"], row["body"], answer.status, body))
    return found


def rows_of(folder: Path, name: str, *parts: str) -> list[Any]:
    """Recorded requests of a file with all of these parts in their paths."""
    rows = recorded.lines(folder / f"{name}.jsonl.gz")
    return [row for row in rows if all(part in row["path"] for part in parts)]


async def equal(chain: PrivateChain, name: str, rows: list[Any], **how: bool) -> None:
    """All rows are answered as they were; says how many there were."""
    found = await differences(chain, rows, **how)
    assert not found, (len(found), found[:3])
    assert rows
    report.ran(f"golden waves-r {name}", len(rows))


async def test_transactions(replayed: PrivateChain, folder: Path) -> None:
    rows = rows_of(folder, "transactions-info")
    await equal(replayed, "transactions/info", rows)
    types = Counter(row["body"]["type"] for row in rows)
    assert set(types) == {1, *range(3, 19)}


async def test_statuses(replayed: PrivateChain, folder: Path) -> None:
    rows = rows_of(folder, "transactions-status")
    # They were asked one block later.
    for row in rows:
        for item in row["body"]:
            item["confirmations"] = max(0, TOP - item["height"])
    await equal(replayed, "transactions/status", rows)


async def test_snapshots(replayed: PrivateChain, folder: Path) -> None:
    rows = rows_of(folder, "transactions-snapshot")
    await equal(replayed, "transactions/snapshot", rows, unordered=True)


async def test_merkle_proofs(replayed: PrivateChain, folder: Path) -> None:
    await equal(replayed, "transactions/merkleProof", rows_of(folder, "merkle-proof"))


async def test_aliases(replayed: PrivateChain, folder: Path) -> None:
    await equal(replayed, "alias/by-alias", rows_of(folder, "state-aliases"))
    await equal(replayed, "alias/by-address", rows_of(folder, "state-addresses", "/alias/"))


async def test_leases(replayed: PrivateChain, folder: Path) -> None:
    await equal(replayed, "leasing/info", rows_of(folder, "state-leases"))
    await equal(replayed, "leasing/active", rows_of(folder, "state-addresses", "/leasing/"))


async def test_assets(replayed: PrivateChain, folder: Path) -> None:
    await equal(replayed, "assets/details", rows_of(folder, "state-assets", "/details/"))
    whole = [
        row
        for row in rows_of(folder, "state-assets", "/distribution")
        if "limit" not in row["path"]
    ]
    await equal(replayed, "assets/distribution", whole)


async def test_pages_of_holders(replayed: PrivateChain, folder: Path) -> None:
    rows = rows_of(folder, "state-assets", "/distribution/", "/limit/")
    for row in rows:
        answer: Any = (await replayed.get(row["path"])).json()
        # Pages go by the order of addresses, those of the reference by that of first use.
        assert answer.pop("lastItem") in answer["items"]
        del row["body"]["lastItem"]
        assert answer == row["body"]
    report.ran("golden waves-r assets/distribution/limit", len(rows))


async def test_assets_of_accounts(replayed: PrivateChain, folder: Path) -> None:
    await equal(replayed, "assets/balance", rows_of(folder, "state-addresses", "/assets/balance/"))
    await equal(replayed, "assets/nft", rows_of(folder, "state-addresses", "/assets/nft/"))


async def test_balances(replayed: PrivateChain, folder: Path) -> None:
    for name in ("/addresses/balance/", "/addresses/effectiveBalance/"):
        rows = rows_of(folder, "state-addresses", name)
        kept = [row for row in rows if LATER_GENERATOR not in row["path"]]
        await equal(replayed, name.strip("/"), kept)


async def test_data(replayed: PrivateChain, folder: Path) -> None:
    await equal(replayed, "addresses/data", rows_of(folder, "state-addresses", "/addresses/data/"))


async def test_scripts(replayed: PrivateChain, folder: Path) -> None:
    rows = rows_of(folder, "state-addresses", "/scriptInfo/")
    await equal(replayed, "addresses/scriptInfo", rows)


async def test_lists_of_transactions(replayed: PrivateChain, folder: Path) -> None:
    rows = rows_of(folder, "state-addresses", "/transactions/address/")
    await equal(replayed, "transactions/address", rows)
