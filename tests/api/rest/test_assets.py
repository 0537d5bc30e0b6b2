"""Routes under `/assets`: limits, pages, wrong ids; what their answers say is in `test_kinds`."""

from __future__ import annotations

import base64
import threading
from typing import Any

import pytest

from soliton.api.rest import assets, proofs, transactions
from soliton.api.time_slices import TimeSlices
from soliton.chain.blocks import Block
from soliton.chain.transactions.issue import TYPE as ISSUE_TYPE
from soliton.chain.transactions.issue import Issue
from soliton.chain.transactions.transfer import TYPE as TRANSFER_TYPE
from soliton.chain.transactions.transfer import Transfer
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.node.blockchain import Blockchain
from tests.api.chain import OTHER, OTHER_ADDRESS, RICH_ADDRESS, PrivateChain, address_of
from tests.api.client import call

TRUE = base64.b64decode("BgEGsNFPzw==")
UNKNOWN = "DG2xFkPdDwKUoBkzGAhQtLpSGzfXLiCYPEzeKH2Ad24p"
STRINGS = {"accept": "application/json;large-significand-format=string"}


def issue(chain: PrivateChain, quantity: int, *, nft: bool = False) -> AssetId:
    payload = Issue(b"Thing", b"", quantity, 0, not nft, None)
    version, fee = 3, 100_000 if nft else 100_000_000
    sent = chain.send(chain.sign(ISSUE_TYPE, payload, version, fee=fee))
    chain.mine()
    return AssetId(sent.id)


def give(chain: PrivateChain, asset_id: AssetId, amount: int) -> None:
    payload = Transfer(address_of(OTHER, chain), asset_id, amount, b"")
    chain.send(chain.sign(TRANSFER_TYPE, payload, 3))
    chain.mine()


async def ask(chain: PrivateChain, target: str, **headers: str) -> Any:
    return (await chain.get(target, **headers)).json()


async def test_nfts_page_by_page(chain: PrivateChain) -> None:
    names = [base58.encode(issue(chain, 1, nft=True)) for _ in range(4)]
    coin = base58.encode(issue(chain, 10))
    path = f"/assets/nft/{RICH_ADDRESS}/limit/"
    assert [item["assetId"] for item in await ask(chain, f"{path}10")] == names
    assert [item["assetId"] for item in await ask(chain, f"{path}2")] == names[:2]
    page = await ask(chain, f"{path}2?after={names[1]}")
    assert [item["assetId"] for item in page] == names[2:]
    assert "minSponsoredAssetFee" not in page[0]
    assert await ask(chain, f"{path}2?after={UNKNOWN}") == []
    assert (await ask(chain, f"{path}2?after=0"))["error"] == 4007
    assert (await ask(chain, f"{path}1001"))["error"] == 10
    balances = (await ask(chain, f"/assets/balance/{RICH_ADDRESS}"))["balances"]
    assert [item["assetId"] for item in balances] == [coin]
    one = (await ask(chain, f"/assets/balance/{RICH_ADDRESS}?id={names[0]}"))["balances"]
    assert one[0]["balance"] == 1
    give(chain, AssetId(base58.decode(names[0], 100)), 1)
    assert [item["assetId"] for item in await ask(chain, f"{path}10")] == names[1:]
    theirs = await ask(chain, f"/assets/nft/{OTHER_ADDRESS}/limit/5")
    assert [item["assetId"] for item in theirs] == names[:1]


async def test_holders_page_by_page(chain: PrivateChain) -> None:
    asset_id = issue(chain, 10)
    issued = chain.node.chain.height
    give(chain, asset_id, 4)
    chain.mine()
    name = base58.encode(asset_id)
    path = f"/assets/{name}/distribution/{chain.node.chain.height - 1}/limit/"
    whole = await ask(chain, f"{path}10")
    assert whole["items"] == {RICH_ADDRESS: 6, OTHER_ADDRESS: 4} and not whole["hasNext"]
    first = await ask(chain, f"{path}1")
    assert first["hasNext"] and list(first["items"]) == [first["lastItem"]]
    second = await ask(chain, f"{path}1?after={first['lastItem']}")
    assert first["items"] | second["items"] == whole["items"]
    third = await ask(chain, f"{path}1?after={second['lastItem']}")
    assert third == {"hasNext": False, "lastItem": None, "items": {}}
    before = await ask(chain, f"/assets/{name}/distribution/{issued}/limit/5")
    assert before["items"] == {RICH_ADDRESS: 10}
    assert (await ask(chain, f"{path}5", **STRINGS))["items"][OTHER_ADDRESS] == "4"
    holders = await ask(chain, f"/assets/{name}/distribution", **STRINGS)
    assert holders == {RICH_ADDRESS: "6", OTHER_ADDRESS: "4"}
    height = f"/addresses/balance?address={OTHER_ADDRESS}&asset={name}&height="
    for at, balance in ((issued, 0), (issued + 1, 4)):
        assert await ask(chain, f"{height}{at}") == [{"id": OTHER_ADDRESS, "balance": balance}]


@pytest.mark.parametrize(
    ("height", "limit", "message"),
    [
        ("1", "0", "Limit should be greater than 0"),
        ("1", "1001", "Limit should be less than or equal to 1000"),
        ("0", "5", "Height should be greater than zero"),
        ("2", "5", "Using 'assetDistributionAtHeight' on current height can lead to inc"),
        ("3", "5", "Asset distribution available only at height not greater than 1"),
    ],
)
async def test_wrong_pages(chain: PrivateChain, height: str, limit: str, message: str) -> None:
    chain.mine()
    answer = await ask(chain, f"/assets/{UNKNOWN}/distribution/{height}/limit/{limit}")
    assert answer["error"] == 199 and answer["message"].startswith(message)


async def test_ids_that_mean_nothing(chain: PrivateChain) -> None:
    long = "1" * 200
    for target, error in (
        (f"/assets/details/{UNKNOWN}", 313),
        ("/assets/details/abc", 4007),
        (f"/assets/details?id={UNKNOWN}", 314),
        (f"/assets/details?id={UNKNOWN}&id=0", 116),
        (f"/assets/details?id={long[:192]}", 314),
        (f"/assets/details?id={long}", 116),
        ("/assets/details", 4009),
        (f"/assets/balance/{RICH_ADDRESS}?id=0", 116),
        (f"/assets/balance/{RICH_ADDRESS}?" + "id=1&" * 101, 10),
        (f"/assets/balance/{RICH_ADDRESS}/abc", 4007),
        (f"/leasing/info/{UNKNOWN}", 311),
        ("/leasing/info/0", 4001),
        (f"/leasing/info?id={UNKNOWN}", 116),
        (f"/leasing/info?id={long}", 116),
        (f"/transactions/snapshot/{UNKNOWN}", 311),
        ("/transactions/snapshot", 4001),
        ("/transactions/snapshot?id=0", 199),
        ("/transactions/snapshot?" + "id=1&" * 101, 10),
        (f"/transactions/status?id={long}", 116),
        ("/transactions/merkleProof?id=0", 116),
        (f"/transactions/merkleProof?id={UNKNOWN}", 199),
        ("/transactions/merkleProof", 4001),
    ):
        assert (await ask(chain, target))["error"] == error, target
    words = "requirement failed: base58Decode input exceeds 192"
    lengths = "Length can either be 32 or 64"
    for target, message in (
        (f"/transactions/info/{long}", words),
        (f"/blocks/{long}", words),
        (f"/transactions/info?id={long}", f"java.lang.IllegalArgumentException: {words}"),
        (f"/blocks/{long[:192]}", f"{long[:192]} has invalid length 192. {lengths}"),
    ):
        assert (await ask(chain, target))["message"] == message
    for target in ("/transactions/unconfirmed/size/", "/blockchain/rewards/"):
        answer = await chain.get(target)
        assert answer.json() == (await chain.get(target[:-1])).json() != {}


async def test_lists_come_as_query_form_and_json(chain: PrivateChain) -> None:
    sent = chain.send(chain.transfer())
    name = base58.encode(issue(chain, 10))
    transfer = base58.encode(sent.id)
    form = {"content-type": "application/x-www-form-urlencoded"}
    for path, item in (
        ("/assets/details", name),
        (f"/assets/balance/{RICH_ADDRESS}", name),
        ("/transactions/merkleProof", transfer),
        ("/transactions/snapshot", transfer),
        ("/transactions/info", transfer),
        ("/transactions/status", transfer),
    ):
        expected = await ask(chain, f"{path}?id={item}")
        assert expected
        for slash in ("", "/"):
            answer = await chain.post(path + slash, {"ids": [item]})
            assert (answer.status, answer.json()) == (200, expected), path
        answer = await call(chain.app, f"POST {path}", f"id={item}".encode(), form)
        assert answer.json() == expected


async def test_assets_as_ethereum_wallets_know_them(chain: PrivateChain) -> None:
    asset_id = issue(chain, 10)
    address = "0x" + asset_id[:20].hex()
    expected = [await ask(chain, f"/assets/details/{base58.encode(asset_id)}")]
    assert await ask(chain, f"/eth/assets?id={address}") == expected
    assert (await chain.post("/eth/assets", {"ids": [address[2:]]})).json() == expected
    assert await ask(chain, f"/eth/assets?id={address[2:].upper()}") == expected
    for wrong, shown in (
        ("0x" + "00" * 20, "0x" + "00" * 20),
        ("ABC", "0x0abc"),
        # The reference's library takes what is no digit for -1.
        ("0x" + "zz" * 20, "0x" + "ef" * 20),
        ("", "0x"),
        ("12" * 10_000, "0x" + "12" * 10_000),
        ("0x" + "zz" * 96, "0x" + "ef" * 96),
        # A longer one that is no number is not converted digit by digit.
        ("0x" + "zz" * 97, "0x" + "zz" * 97),
    ):
        answer = await ask(chain, f"/eth/assets?id={address}&id={wrong}")
        assert (answer["error"], answer["ids"]) == (116, [shown])
    assert (await chain.get("/eth/assets")).status == 404
    assert (await ask(chain, "/eth/assets?" + "id=1&" * 101))["error"] == 10


async def test_the_oldest_form(oldest: PrivateChain) -> None:
    assert (await ask(oldest, "/assets/details/abc"))["error"] == 199
    assert (await ask(oldest, f"/assets/details/{UNKNOWN}"))["error"] == 199
    assert (await oldest.get(f"/leasing/info/{UNKNOWN}")).status == 404
    assert (await oldest.get(f"/transactions/snapshot/{UNKNOWN}")).status == 404


async def test_proofs_in_long_blocks_are_made_in_a_thread(
    chain: PrivateChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is the same as for short blocks, and each block is decoded once."""
    ids: list[str] = []
    for first in (1, 4):
        sent = [chain.send(chain.transfer(amount=first + number)) for number in range(3)]
        ids += [base58.encode(each.id) for each in sent]
        chain.mine()
    target = "/transactions/merkleProof?" + "&".join(f"id={name}" for name in [*ids, *ids[:1]])
    expected = await ask(chain, target)
    assert [each["id"] for each in expected] == [*ids, *ids[:1]]
    decoded = []
    block_at = Blockchain.block_at

    def counted(self: Blockchain, height: int) -> Block:
        decoded.append((height, threading.current_thread() is threading.main_thread()))
        return block_at(self, height)

    monkeypatch.setattr(Blockchain, "block_at", counted)
    monkeypatch.setattr(proofs, "FEW_TRANSACTIONS", 5)
    assert await ask(chain, target) == expected
    assert decoded == [(2, False), (3, False)]
    answer = await ask(chain, f"/transactions/merkleProof?id={UNKNOWN}")
    assert (answer["error"], len(decoded)) == (199, 2)


async def test_many_transactions_and_scripts_are_made_in_time_slices(
    chain: PrivateChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answers and errors are those of short lists."""
    sent = [base58.encode(chain.send(chain.transfer(amount=each)).id) for each in (1, 2)]
    chain.mine()
    payload = Issue(b"Thing", b"", 1, 0, False, TRUE)
    asset = base58.encode(chain.send(chain.sign(ISSUE_TYPE, payload, 3, fee=100_000_000)).id)
    chain.mine()
    targets = [
        f"/transactions/info?id={sent[0]}&id={sent[1]}",
        f"/transactions/info?id={sent[0]}&id={UNKNOWN}",
        f"/transactions/info?id={sent[0]}&id=0",
        f"/assets/details?id={asset}&full=true",
    ]
    expected = [await ask(chain, target) for target in targets]
    assert expected[3][0]["scriptDetails"]
    mapped = 0
    map_items = TimeSlices.map

    async def counted(self: TimeSlices, function: Any, items: Any) -> Any:
        nonlocal mapped
        mapped += 1
        return await map_items(self, function, items)

    monkeypatch.setattr(TimeSlices, "map", counted)
    monkeypatch.setattr(transactions, "_PAGE", 1)
    monkeypatch.setattr(assets, "FEW_SCRIPTS", 0)
    assert [await ask(chain, target) for target in targets] == expected
    assert mapped == len(targets)
