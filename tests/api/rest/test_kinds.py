"""Every type of transaction from a request to the chain: price, signature, broadcast, answers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from soliton.chain.addresses import address_text, from_public_key
from soliton.chain.transactions import ethereum
from soliton.crypto import base58, curve25519
from soliton.crypto.hashes import keccak256
from soliton.ledger import patches
from soliton.ledger.patches import Patches
from soliton.ledger.rules_at import RuleBook
from soliton.ledger.state import Status
from soliton.node.blockchain import Blockchain, FoundTransaction
from tests.api.chain import OTHER_ADDRESS, RICH, RICH_ADDRESS, PrivateChain
from tests.api.client import KEY

WITH_KEY = {"x-api-key": KEY}
JsonObject = dict[str, Any]


async def made(chain: PrivateChain, obj: JsonObject) -> JsonObject:
    """Sign with the wallet, send, mine; what the chain says about it then."""
    public_key = base58.encode(RICH.public_key)
    priced = await chain.post("/transactions/calculateFee", obj | {"senderPublicKey": public_key})
    assert priced.status == 200, priced.body
    fee: Any = priced.json()
    assert fee["feeAssetId"] is None
    request = {"sender": RICH_ADDRESS, "fee": fee["feeAmount"], "timestamp": chain.tick(), **obj}
    signed = await chain.post("/transactions/sign", request, WITH_KEY)
    assert signed.status == 200, signed.body
    claimed: Any = signed.json()
    for key in ("senderPublicKey", "senderPk"):
        unsigned = {name: value for name, value in claimed.items() if name != "proofs"}
        unsigned[key] = unsigned.pop("senderPublicKey")
        serialised: Any = (await chain.post("/utils/transactionSerialize", unsigned)).json()
        body = bytes(serialised["bytes"])
        signature = base58.decode(claimed["proofs"][0], 100)
        assert curve25519.verify(RICH.public_key, body, signature)
    validated: Any = (await chain.post("/debug/validate", claimed)).json()
    assert validated["valid"], validated
    assert validated["id"] == claimed["id"] and validated["height"] == chain.node.chain.height
    answer = await chain.post("/transactions/broadcast", claimed)
    assert (answer.status, answer.json()) == (200, claimed)
    waiting: Any = (await chain.get(f"/transactions/unconfirmed/info/{claimed['id']}")).json()
    assert {key: waiting[key] for key in claimed} == claimed
    chain.mine()
    found = (await chain.get(f"/transactions/info/{claimed['id']}")).json()
    assert isinstance(found, dict)
    assert {key: found[key] for key in claimed} == claimed
    listed: Any = (await chain.get(f"/transactions/address/{RICH_ADDRESS}/limit/1")).json()
    assert listed == [[found]]
    snapshot: Any = (await chain.get(f"/transactions/snapshot/{claimed['id']}")).json()
    assert any(item["address"] == RICH_ADDRESS for item in snapshot["balances"])
    return found


def issue(**changes: object) -> JsonObject:
    return {
        "type": 3,
        "version": 3,
        "name": "Thing",
        "description": "of tests",
        "quantity": 1000,
        "decimals": 2,
        "reissuable": True,
        **changes,
    }


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_assets(chain: PrivateChain, version: int) -> None:
    made_asset = await made(chain, issue(version=version))
    name = made_asset["assetId"]
    common = {"assetId": name, "version": version}
    await made(chain, {"type": 5, "quantity": 500, "reissuable": True, **common})
    await made(chain, {"type": 6, "amount": 100, **common})
    to = {"recipient": OTHER_ADDRESS, "amount": 300}
    await made(chain, {"type": 4, **to, **common})
    details: Any = (await chain.get(f"/assets/details/{name}")).json()
    assert details["quantity"] == 1400 and details["issueTimestamp"] == made_asset["timestamp"]
    balance: Any = (await chain.get(f"/assets/balance/{OTHER_ADDRESS}")).json()
    assert [(item["assetId"], item["balance"]) for item in balance["balances"]] == [(name, 300)]
    assert balance["balances"][0]["issueTransaction"]["id"] == name
    holders = {OTHER_ADDRESS: 300, RICH_ADDRESS: 1100}
    assert (await chain.get(f"/assets/{name}/distribution")).json() == holders


async def test_sponsorship_and_names(chain: PrivateChain) -> None:
    name = (await made(chain, issue()))["assetId"]
    await made(chain, {"type": 14, "version": 2, "assetId": name, "minSponsoredAssetFee": 3})
    details: Any = (await chain.get(f"/assets/details/{name}")).json()
    assert details["minSponsoredAssetFee"] == 3
    balance: Any = (await chain.get(f"/assets/balance/{RICH_ADDRESS}")).json()
    assert balance["balances"][0]["sponsorBalance"] > 0


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_leases(chain: PrivateChain, version: int) -> None:
    lease = {"type": 8, "version": version, "recipient": OTHER_ADDRESS, "amount": 5_000}
    first = await made(chain, lease)
    second = await made(chain, lease)
    assert first["status"] == "active"
    for address in (RICH_ADDRESS, OTHER_ADDRESS):
        active: Any = (await chain.get(f"/leasing/active/{address}")).json()
        assert [item["id"] for item in active] == [second["id"], first["id"]]
    effective: Any = (await chain.get(f"/addresses/effectiveBalance/{OTHER_ADDRESS}")).json()
    assert effective["balance"] == 10_000
    cancel = await made(chain, {"type": 9, "version": version, "leaseId": first["id"]})
    shown: Any = (await chain.get(f"/leasing/info/{first['id']}")).json()
    assert shown == cancel["lease"]
    assert shown["status"] == "canceled" and shown["cancelTransactionId"] == cancel["id"]
    again: Any = (await chain.get(f"/transactions/info/{first['id']}")).json()
    assert again["status"] == "canceled"
    active = (await chain.get(f"/leasing/active/{OTHER_ADDRESS}")).json()
    assert [item["id"] for item in active] == [second["id"]]
    details: Any = (await chain.get(f"/addresses/balance/details/{OTHER_ADDRESS}")).json()
    assert (details["regular"], details["effective"]) == (0, 5_000)


async def test_a_lease_that_the_network_ends_has_expired(
    chain: PrivateChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``LeaseInfo``: only under ``/leasing`` it is told apart from a canceled one."""
    sent = await made(chain, {"type": 8, "version": 3, "recipient": OTHER_ADDRESS, "amount": 5_000})
    top = chain.node.chain.height + 1
    ending = Patches(
        top, ord("R"), (patches.Patch(name="ends", height=top, cancelled=(sent["id"],)),)
    )
    at_top = {top: ending}.get
    monkeypatch.setattr(RuleBook, "patch_at", lambda _book, height: at_top(height))
    chain.mine()
    assert chain.node.chain.height == top
    for target in (f"/leasing/info/{sent['id']}", f"/leasing/info?id={sent['id']}"):
        told: Any = (await chain.get(target)).json()
        shown = told if isinstance(told, dict) else told[0]
        ended = {"status": "expired", "cancelHeight": top, "cancelTransactionId": None}
        assert ended.items() <= shown.items()
    again: Any = (await chain.get(f"/transactions/info/{sent['id']}")).json()
    assert again["status"] == "canceled"
    assert (await chain.get(f"/leasing/active/{OTHER_ADDRESS}")).json() == []


async def test_aliases(chain: PrivateChain) -> None:
    for number, version in enumerate((1, 2, 3)):
        await made(chain, {"type": 10, "version": version, "alias": f"name-{number}"})
    names: Any = (await chain.get(f"/alias/by-address/{RICH_ADDRESS}")).json()
    assert names == [f"alias:R:name-{number}" for number in (2, 1, 0)]
    for name in ("name-0", "name-2"):
        assert (await chain.get(f"/alias/by-alias/{name}")).json() == {"address": RICH_ADDRESS}
    unknown: Any = (await chain.get("/alias/by-alias/nobody")).json()
    assert unknown["message"] == "alias 'alias:R:nobody' doesn't exist"
    # Who is meant by an alias is listed with what was sent to it.
    to = {"recipient": "alias:R:name-1", "amount": 1}
    await made(chain, {"type": 4, "version": 3, **to})


async def test_many_transfers_are_shown_to_each_by_his_own(chain: PrivateChain) -> None:
    third = "3MMiWb5hjTXwst33rEaebQq8RnXZRFrTjuY"
    lines = [{"recipient": OTHER_ADDRESS, "amount": 7}, {"recipient": third, "amount": 9}]
    sent = await made(chain, {"type": 11, "version": 2, "transfers": lines})
    assert sent["transfers"] == lines and sent["totalAmount"] == 16
    listed: Any = (await chain.get(f"/transactions/address/{OTHER_ADDRESS}/limit/9")).json()
    assert listed == [[{**sent, "transfers": lines[:1]}]]


async def test_data(chain: PrivateChain) -> None:
    entries = [
        {"key": "a", "type": "integer", "value": 5},
        {"key": "b", "type": "binary", "value": "base64:AQI="},
    ]
    sent = await made(chain, {"type": 12, "version": 2, "data": entries})
    snapshot: Any = (await chain.get(f"/transactions/snapshot/{sent['id']}")).json()
    assert snapshot["accountData"] == [{"address": RICH_ADDRESS, "data": entries}]


async def test_an_ethereum_transfer(chain: PrivateChain, monkeypatch: pytest.MonkeyPatch) -> None:
    wallet = keccak256(b"wallet")
    payer = ethereum.sign(
        wallet, chain_id=ord("R"), timestamp=1, fee=100_000, to=bytes(20), value=10**10
    )
    owner = address_text(from_public_key(payer.sender_public_key, ord("R")))
    await made(chain, {"type": 4, "version": 3, "recipient": owner, "amount": 10**8})
    sent = ethereum.sign(
        wallet, chain_id=ord("R"), timestamp=chain.tick(), fee=100_000, to=b"\5" * 20, value=10**12
    )
    chain.send(sent)
    chain.mine()
    shown: Any = (await chain.get(f"/transactions/info/{base58.encode(sent.id)}")).json()
    assert shown["payload"]["type"] == "transfer" and shown["payload"]["amount"] == 100
    recipient = shown["payload"]["recipient"]
    listed: Any = (await chain.get(f"/transactions/address/{recipient}/limit/9")).json()
    assert listed == [[shown]]
    usual = Blockchain.transaction

    def elided(self: Blockchain, name: bytes) -> FoundTransaction | None:
        found = usual(self, name)
        return found and msgspec.structs.replace(found, status=Status.ELIDED)

    monkeypatch.setattr(Blockchain, "transaction", elided)
    shown = (await chain.get(f"/transactions/info/{base58.encode(sent.id)}")).json()
    assert (shown["applicationStatus"], shown["payload"]) == ("elided", {})
    assert (await chain.get(f"/transactions/address/{recipient}/limit/9")).json() == [[shown]]


async def test_what_is_wrong_with_a_transaction(chain: PrivateChain) -> None:
    claimed = msgspec.to_builtins((await chain.broadcast(chain.transfer(amount=1))).json())
    claimed["amount"] = 2
    answer: Any = (await chain.post("/debug/validate", claimed)).json()
    assert not answer["valid"] and "Proof doesn't validate" in answer["error"]
    assert answer["transaction"]["amount"] == 2
    wrong = await chain.post("/debug/validate", {"type": 4, "fee": 1, "recipient": 5})
    answer = wrong.json()
    assert (wrong.status, answer["error"]) == (400, 1)
    assert sorted(answer["validationErrors"]) == ["obj.amount", "obj.recipient"]
    foreign = claimed | {"chainId": 84}
    answer = (await chain.post("/debug/validate", foreign)).json()
    assert answer["error"] == "Wrong chain-id. Expected - 82, provided - 84"
    assert not answer["valid"] and answer["transaction"] == foreign
    assert (await chain.get("/debug/validate")).status == 405
