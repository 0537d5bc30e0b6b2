"""Rows that only the older generations of the interface have, on private chains that speak them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from soliton.chain import orders
from soliton.chain.addresses import parse_address
from soliton.chain.transactions import codec
from soliton.chain.transactions.transfer import TYPE as TRANSFER_TYPE
from soliton.chain.transactions.transfer import Transfer
from soliton.crypto import base58, curve25519
from tests.api.chain import AMOUNT, FEE, OTHER_ADDRESS, RICH, RICH_ADDRESS, WITH_KEY, PrivateChain
from tests.api.client import Answer, call

PUBLIC_KEY = base58.encode(RICH.public_key)
UNKNOWN = "1" * 64


@pytest.fixture
def old(tmp_path: Path) -> Iterator[PrivateChain]:
    made = PrivateChain(tmp_path / "zbs", family="zbs")
    yield made
    made.node.close()


@pytest.fixture
def middle(tmp_path: Path) -> Iterator[PrivateChain]:
    made = PrivateChain(tmp_path / "tn", family="tn")
    yield made
    made.node.close()


async def post(chain: PrivateChain, path: str, body: object) -> Any:
    answer = await chain.post(path, body, WITH_KEY)
    assert answer.status == 200, (path, answer.body)
    return answer.json()


async def get(chain: PrivateChain, target: str) -> Any:
    return (await chain.get(target)).json()


async def test_requests_of_each_type(old: PrivateChain) -> None:
    by_me = {"sender": RICH_ADDRESS, "fee": FEE}
    issued = await post(
        old,
        "/assets/issue",
        by_me
        | {
            "name": "Thing",
            "description": "",
            "quantity": 100,
            "decimals": 0,
            "reissuable": True,
            "fee": 100_000_000,
        },
    )
    old.mine()
    asset = {"assetId": issued["assetId"]}
    lease = await post(
        old, "/leasing/lease", by_me | {"recipient": OTHER_ADDRESS, "amount": AMOUNT}
    )
    for path, type_id, members in (
        ("/assets/reissue", 5, asset | {"quantity": 5, "reissuable": True, "fee": 100_000_000}),
        ("/assets/burn", 6, asset | {"quantity": 5}),
        ("/assets/transfer", 4, asset | {"recipient": OTHER_ADDRESS, "amount": 5}),
        ("/assets/masstransfer", 11, {"transfers": [], "version": 1}),
        ("/assets/sponsor", 14, asset | {"minSponsoredAssetFee": 2, "fee": 100_000_000}),
        ("/alias/create", 10, {"alias": "somebody"}),
        ("/leasing/cancel", 9, {"txId": lease["id"]}),
        ("/addresses/data", 12, {"data": [{"key": "a", "type": "integer", "value": 1}]}),
        ("/payment", 4, {"recipient": OTHER_ADDRESS, "amount": 5}),
        ("/zbs/payment", 4, {"recipient": OTHER_ADDRESS, "amount": 6}),
    ):
        if type_id == 9:
            old.mine()
        sent = await post(old, path, by_me | members)
        assert sent["type"] == type_id and base58.decode(sent["id"], 100) in old.node.pool, path
    old.mine()
    assert len(old.node.pool) == 0
    assert await get(old, f"/alias/by-address/{RICH_ADDRESS}") == ["alias:R:somebody"]
    cancelled = (await get(old, f"/transactions/address/{OTHER_ADDRESS}/limit/9"))[0][-1]
    assert cancelled["id"] == lease["id"] and cancelled["status"] == "canceled"
    assert (await old.post("/assets/transfer", by_me)).status == 403
    answer = await old.post("/alias/create", {"sender": OTHER_ADDRESS, "fee": FEE}, WITH_KEY)
    assert answer.status == 400
    unknown = {"sender": OTHER_ADDRESS, "fee": FEE, "alias": "another"}
    answer = await old.post("/alias/create", unknown, WITH_KEY)
    assert Answer.json(answer)["error"] == 115  # type: ignore[index]


def transfer(chain: PrivateChain, amount: int) -> dict[str, Any]:
    payload = Transfer(parse_address(OTHER_ADDRESS, ord("R")), None, amount, b"")
    return codec.to_json(chain.sign(TRANSFER_TYPE, payload, 2))


async def test_signed_transactions(old: PrivateChain) -> None:
    sent = transfer(old, 1)
    del sent["type"]
    assert (await post(old, "/assets/broadcast/transfer", sent))["id"] == sent["id"]
    good, bad = transfer(old, 2), transfer(old, 3)
    bad["amount"] = 4
    answers = await post(old, "/assets/broadcast/batch-transfer", [good, bad])
    assert answers[0]["id"] == good["id"] and answers[1]["error"] == 112
    wrong: tuple[object, ...] = ({}, [1], "x")
    for body in wrong:
        answer: Any = (await old.post("/assets/broadcast/batch-transfer", body)).json()
        assert answer["error"] == 1
    for path in (
        "/assets/broadcast/issue",
        "/assets/broadcast/reissue",
        "/assets/broadcast/burn",
        "/assets/broadcast/exchange",
        "/alias/broadcast/create",
        "/leasing/broadcast/lease",
        "/leasing/broadcast/cancel",
    ):
        answer = (await old.post(path, {})).json()
        assert answer["error"] == 1 and answer["validationErrors"], path


async def test_an_order_is_signed(old: PrivateChain) -> None:
    order = {
        "version": 2,
        "senderPublicKey": PUBLIC_KEY,
        "matcherPublicKey": PUBLIC_KEY,
        "assetPair": {"amountAsset": "DG2xFkPdDwKUoBkzGAhQtLpSGzfXLiCYPEzeKH2Ad24p"},
        "orderType": "buy",
        "amount": 5,
        "price": 6,
        "timestamp": 7,
        "expiration": 8,
        "matcherFee": 9,
    }
    signed = await post(old, "/assets/order", order)
    assert orders.signature_is_valid(orders.from_json(signed, ord("R")))
    answer: Any = (await old.post("/assets/order", {}, WITH_KEY)).json()
    assert answer["error"] == 1
    stranger = order | {"senderPublicKey": base58.encode(bytes(31) + b"\1")}
    answer = (await old.post("/assets/order", stranger, WITH_KEY)).json()
    assert answer["error"] == 115


async def test_what_is_gone(old: PrivateChain) -> None:
    for path in ("payment/signature", "external-payment", "broadcast-signed-payment"):
        answer: Any = (await old.post(f"/zbs/{path}", {})).json()
        assert answer["error"] == 3


async def test_signed_texts(old: PrivateChain) -> None:
    async def send(path: str, body: bytes) -> Any:
        return (await call(old.app, f"POST {path}", body, WITH_KEY)).json()

    claim: dict[str, str] = {}
    for sign, verify, shown in (
        ("sign", "verify", base58.encode("häl".encode())),
        ("signText", "verifyText", "häl"),
    ):
        signed = await send(f"/addresses/{sign}/{RICH_ADDRESS}", "häl".encode())
        assert signed["message"] == shown and signed["publicKey"] == PUBLIC_KEY
        path = f"/addresses/{verify}/{RICH_ADDRESS}"
        for key in ("publicKey", "publickey"):
            claim = {"message": shown, "signature": signed["signature"], key: PUBLIC_KEY}
            assert await post(old, path, claim) == {"valid": True}
        assert await post(old, path, claim | {"message": "Cn8eVZg"}) == {"valid": False}
        other = f"/addresses/{verify}/{OTHER_ADDRESS}"
        assert await post(old, other, claim) == {"valid": False}
        answer: Any = (await old.post(path, claim | {"signature": "0"}, WITH_KEY)).json()
        assert answer["error"] == 110
        assert await post(old, path, claim | {"publickey": "abc"}) == {"valid": False}
    encoded = claim | {"message": "base64:aMOkbA=="}
    assert await post(old, f"/addresses/verify/{RICH_ADDRESS}", encoded) == {"valid": True}
    assert (await send("/addresses/sign/abc", b""))["error"] == 102
    assert (await send(f"/addresses/signText/{OTHER_ADDRESS}", b""))["error"] == 115
    key = base58.encode(RICH.private_key)
    signed = await send(f"/utils/sign/{key}", b"Cn8eVZg")
    signature = base58.decode(signed["signature"], 100)
    assert curve25519.verify(RICH.public_key, base58.decode("Cn8eVZg", 100), signature)
    for path, body in ((f"/utils/sign/{key}", b"0"), ("/utils/sign/abc", b"")):
        assert (await send(path, body))["error"] == 199


async def test_consensus(old: PrivateChain, middle: PrivateChain) -> None:
    name = base58.encode(old.node.chain.meta(1).id)
    header = old.node.chain.last_block.header
    signature = {"generationSignature": base58.encode(header.generation_signature)}
    target = {"baseTarget": header.base_target}
    assert "FairPoS" in (await get(old, "/consensus/algo"))["consensusAlgo"]
    last = await get(old, "/consensus/basetarget")
    assert last.pop("score").isdecimal() and last == target
    assert await get(middle, "/consensus/basetarget") == target
    assert await get(old, f"/consensus/basetarget/{name}") == target
    assert await get(old, "/consensus/generationsignature") == signature
    assert await get(old, f"/consensus/generationsignature/{name}") == signature
    assert (await middle.get("/consensus/generationsignature")).status == 404
    balance = await get(old, f"/consensus/generatingbalance/{RICH_ADDRESS}")
    assert balance["balance"] == old.node.chain.balance(old.node.wallet.accounts(ord("R"))[0])
    assert (await get(old, f"/consensus/basetarget/{UNKNOWN}"))["error"] == 301
    assert (await get(old, "/consensus/generatingbalance/abc"))["error"] == 102


async def test_the_newest_interface_has_none_of_them(chain: PrivateChain) -> None:
    for path in ("/assets/transfer", "/alias/create", "/leasing/lease", "/payment"):
        assert (await chain.post(path, {}, WITH_KEY)).status == 404
    for path in ("/consensus/algo", "/debug/blocks/1"):
        assert (await chain.get(path)).status in (403, 404)


async def test_assets_in_the_older_forms(old: PrivateChain, middle: PrivateChain) -> None:
    for chain, missing in (
        (old, {"issuerPublicKey", "originTransactionId", "sequenceInBlock"}),
        (middle, {"sequenceInBlock"}),
    ):
        request = {
            "sender": RICH_ADDRESS,
            "fee": 100_000_000,
            "name": "Thing",
            "description": "",
            "quantity": 100,
            "decimals": 0,
            "reissuable": True,
        }
        sent = await post(chain, "/assets/issue", request)
        chain.mine()
        details = await get(chain, f"/assets/details/{sent['assetId']}")
        assert not missing & set(details) and details["name"] == "Thing"
        balances = (await get(chain, f"/assets/balance/{RICH_ADDRESS}"))["balances"]
        assert balances[0]["sponsorBalance"] is None
        assert balances[0]["minSponsoredAssetFee"] is None
        by_me = {"sender": RICH_ADDRESS, "fee": FEE}
        lease = by_me | {"recipient": OTHER_ADDRESS, "amount": AMOUNT}
        lease = await post(chain, "/leasing/lease", lease)
        chain.mine()
        active = await get(chain, f"/leasing/active/{OTHER_ADDRESS}")
        assert active == [{**lease, "height": chain.node.chain.height}]
        cancel = await post(chain, "/leasing/cancel", by_me | {"leaseId": lease["id"]})
        chain.mine()
        shown = await get(chain, f"/transactions/info/{cancel['id']}")
        assert shown["lease"] == lease
