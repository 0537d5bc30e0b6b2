"""A chain that the JavaScript library filled with everything that it makes without scripts.

Every transaction is read back as it was sent, the state is what the transactions say, and the
chain comes out the same when its exported file is imported, rolled back and imported again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from soliton.chain import networks
from soliton.chain.addresses import address_text, from_public_key
from soliton.crypto import base58
from soliton.node.chain_writer import ChainWriter
from soliton.storage.store import Store
from tests.clients.scripts import NEEDS_NODE, run_script
from tests.e2e.programs import devnet, run

CHAIN_ID: Final = ord("R")
FUNDS: Final = 10**14
COIN: Final = 10**8
ROLLED_BACK: Final = 50
ACCOUNTS: Final = ("owner", "friend", "matcher")
VERSIONS: Final = {
    **dict.fromkeys((3, 4, 5, 6, 7, 8, 9, 10), (1, 2, 3)),
    **dict.fromkeys((11, 12, 13, 14), (1, 2)),
    17: (1,),
}

pytestmark = NEEDS_NODE


class Outcome(NamedTuple):
    """What the script told, its transactions apart, and where the chain is."""

    told: dict[str, Any]
    transactions: dict[str, dict[str, Any]]
    directory: Path


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    directory = tmp_path_factory.mktemp("chain")
    with devnet("--data-dir", directory) as program:
        told = run_script("every_type.js", program.node_url)
    transactions = {
        name: value for name, value in told.items() if isinstance(value, dict) and "sent" in value
    }
    return Outcome(told, transactions, directory)


def test_each_type_and_version_is_read_back(outcome: Outcome) -> None:
    counts: Counter[tuple[int, int]] = Counter()
    for name, value in outcome.transactions.items():
        sent = value["sent"]
        counts[sent["type"], sent["version"]] += 1
        check_contains(value["answer"], sent, name)
        check_contains(value["info"], sent, name)
        assert value["waited"]["id"] == sent["id"], name
        assert value["info"]["applicationStatus"] == "succeeded", name
        assert value["status"]["status"] == "in_blockchain", name
        assert value["status"]["height"] == value["info"]["height"] > 2, name
    assert set(counts) == {(kind, each) for kind, versions in VERSIONS.items() for each in versions}
    orders = {
        (order["version"], order["matcherFeeAssetId"] is not None)
        for value in outcome.transactions.values()
        if value["sent"]["type"] == 7
        for order in (value["sent"]["order1"], value["sent"]["order2"])
    }
    assert orders == {(1, False), (2, False), (3, True), (4, True)}


def check_contains(found: Any, sent: Any, where: str) -> None:
    """Everything that was sent is in the answer.

    Old versions do not carry the byte of the network, old orders no asset for the fee.
    """
    if isinstance(sent, dict):
        for key, value in sent.items():
            if key == "chainId" or (key == "matcherFeeAssetId" and value is None):
                continue
            check_contains(found[key], value, f"{where}.{key}")
    elif isinstance(sent, list):
        assert len(found) == len(sent), where
        for index, (one, other) in enumerate(zip(found, sent, strict=True)):
            check_contains(one, other, f"{where}[{index}]")
    else:
        assert found == sent, where


# --- the state ------------------------------------------------------------------------------------


def movements(
    transactions: Iterator[dict[str, Any]], aliases: dict[str, str], sponsor: str
) -> Iterator[tuple[str, str | None, int]]:
    """Who got or lost how much of which asset, told from the JSON of transactions alone."""
    rates: dict[str, int] = {}
    for each in transactions:
        sender = address_of(each["senderPublicKey"])
        fee_asset = each.get("feeAssetId")
        yield sender, fee_asset, -each["fee"]
        if fee_asset is not None:
            yield sponsor, fee_asset, each["fee"]
            yield sponsor, None, -each["fee"] * 100_000 // rates[fee_asset]
        match each["type"]:
            case 3:
                yield sender, each["id"], each["quantity"]
            case 5:
                yield sender, each["assetId"], each["quantity"]
            case 6:
                yield sender, each["assetId"], -each["amount"]
            case 4 | 11:
                for item in each.get("transfers", [each]):
                    yield sender, each["assetId"], -item["amount"]
                    recipient = item["recipient"]
                    yield aliases.get(recipient, recipient), each["assetId"], item["amount"]
            case 7:
                yield from trade(each, sender)
            case 14:
                rates[each["assetId"]] = each["minSponsoredAssetFee"]


def trade(each: dict[str, Any], matcher: str) -> Iterator[tuple[str, str | None, int]]:
    cost = each["amount"] * each["price"] // COIN
    for order in (each["order1"], each["order2"]):
        owner = address_of(order["senderPublicKey"])
        sign = 1 if order["orderType"] == "buy" else -1
        fee = each[f"{order['orderType']}MatcherFee"]
        yield owner, order["assetPair"]["amountAsset"], sign * each["amount"]
        yield owner, order["assetPair"]["priceAsset"], -sign * cost
        yield owner, order["matcherFeeAssetId"], -fee
        yield matcher, order["matcherFeeAssetId"], fee


def address_of(public_key: str) -> str:
    return address_text(from_public_key(base58.decode(public_key), CHAIN_ID))


def test_balances_are_what_the_transactions_say(outcome: Outcome) -> None:
    told = outcome.told
    names = told["names"]
    owner, friend = names["owner"], names["friend"]
    sent = (value["sent"] for value in outcome.transactions.values())
    expected: Counter[tuple[str, str | None]] = Counter()
    for address, asset, amount in movements(sent, {"alias:R:friend": friend}, owner):
        expected[address, asset] += amount
    for name in ACCOUNTS:
        balances = told[f"balances of {name}"]
        assert int(balances["coins"]) == FUNDS + expected[names[name], None], name
        for asset, balance in balances["assets"].items():
            assert balance == expected[names[name], asset], (name, asset)
        held = {each["assetId"]: each["balance"] for each in balances["all"]["balances"]}
        assert held == {key: value for key, value in balances["assets"].items() if value}, name
    assert {each["assetId"] for each in told["balances of friend"]["nfts"]} == {names["nft"]}
    assert told["balances of owner"]["nfts"] == []
    shares = {names[name]: told[f"balances of {name}"]["assets"] for name in ACCOUNTS}
    silver = names["assets"]["1"]
    assert told["distribution"]["items"] == {who: held[silver] for who, held in shares.items()}


def test_assets_aliases_leases_and_data_are_as_they_were_left(outcome: Outcome) -> None:
    told = outcome.told
    names = told["names"]
    described = {each["assetId"]: each for each in told["assets"]}
    first, second, third = (described[names["assets"][version]] for version in "123")
    assert (first["name"], first["description"]) == ("Silver", "coins")
    assert (second["name"], second["description"]) == ("Gold 2", "bars, grüße")
    assert {each["quantity"] for each in (first, second, third)} == {10**12 + 5 - 3}
    assert [each["reissuable"] for each in (first, second, third)] == [True, True, False]
    assert [each["minSponsoredAssetFee"] for each in (first, second, third)] == [None, 7, None]
    assert described[names["nft"]]["quantity"] == 1
    assert told["alias"] == {"address": names["friend"]}
    assert told["balances of friend"]["aliases"] == ["alias:R:friend"]
    assert sorted(told["balances of owner"]["aliases"]) == [f"alias:R:owner-{at}" for at in "123"]
    leases = {each["id"]: each for each in told["leases"]}
    for name, lease_id in names["leases"].items():
        status = "canceled" if name.startswith("ended") else "active"
        assert leases[lease_id]["status"] == status, name
        assert leases[lease_id]["recipient"] == names["friend"], name
    active = {names["leases"][version] for version in "123"}
    for name in ("owner", "friend"):
        assert {each["id"] for each in told[f"balances of {name}"]["leases"]} == active
    owner, friend = (told[f"balances of {name}"]["details"] for name in ("owner", "friend"))
    assert int(owner["regular"]) - int(owner["available"]) == 6 * COIN
    assert int(friend["effective"]) - int(friend["regular"]) == 6 * COIN
    data = {each["key"]: each["value"] for each in told["data"]}
    assert data == {"whole": 42, "text": "世界", "bytes": "base64:AP8="}


# --- the chain ------------------------------------------------------------------------------------


def command(*arguments: object) -> str:
    done = run(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def hashes(directory: Path) -> list[tuple[bytes, bytes, bytes]]:
    """Id, legacy and snapshot hash of each block."""
    network = networks.load("devnet")
    store = Store(directory / "data", network.name)
    chain = ChainWriter(network, store)
    metas = [chain.meta(height) for height in range(1, chain.height + 1)]
    store.close()
    return [(meta.id, meta.state_hash, meta.snapshot_hash) for meta in metas]


def test_chain_is_the_same_again(outcome: Outcome, tmp_path: Path) -> None:
    original, copy, file = outcome.directory, tmp_path / "copy", tmp_path / "blocks"
    expected = hashes(original)
    assert len(expected) == outcome.told["height"]
    command("export", file, "--data-dir", original)
    command("import", file, "--network", "devnet", "--data-dir", copy)
    assert hashes(copy) == expected
    for height in (1, len(expected) // 2, len(expected)):
        found = command("state-hash", height, "--data-dir", copy)
        assert found == command("state-hash", height, "--data-dir", original)
        assert json.loads(found)["stateHash"] == expected[height - 1][1].hex()
    for directory in (copy, original):
        left = len(expected) - min(ROLLED_BACK, len(expected) - 1)
        command("rollback", "--to-height", left, "--data-dir", directory)
        assert hashes(directory) == expected[:left]
        command("import", file, "--network", "devnet", "--data-dir", directory)
        assert hashes(directory) == expected
