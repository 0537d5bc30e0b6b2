"""Placing orders over HTTP: what is read, what is answered, how refusals read."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from soliton.chain import orders
from soliton.chain.orders import PriceMode
from soliton.crypto import base58
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.records import ServiceStatus
from soliton.matcher.rest.answers import Refusal
from soliton.matcher.rest.order_json import order_json, read_order
from soliton.matching import errors
from soliton.matching.errors import MatcherError
from tests.matcher.fakes import ALICE, BOB, CHAIN_ID, GOLD, NOWHERE, Api, buy, sell
from tests.vectors import shared_root
from tests.web.memory import Wire


@pytest.mark.parametrize("version", [1, 2, 3, 4])
async def test_an_order_is_accepted_and_comes_back(version: int) -> None:
    api, order = Api(), buy(ALICE, 10**8, 2 * 10**8, version=version)
    reply = await api.place(order)
    assert reply.status == 200
    assert reply.json() == {
        "success": True,
        "status": "OrderAccepted",
        "message": {
            **orders.to_json(order),
            "assetPair": {"amountAsset": base58.encode(GOLD), "priceAsset": "WAVES"},
        },
    }
    assert api.core.placed == [order]
    assert reply.headers[b"matcher-http-server"] == b"test"
    assert reply.headers[b"access-control-allow-origin"] == b"*"


async def test_a_market_order_has_a_path_of_its_own() -> None:
    api = Api()
    await api.place(sell(BOB, 10**8, 10**8))
    order = buy(ALICE, 10**8, 2 * 10**8)
    reply = await api("POST /matcher/orderbook/market", orders.to_json(order))
    assert reply.json()["status"] == "OrderAccepted"
    info = api.core.queries.order_info(order.id)
    assert info is not None and info.is_market and info.filled == 10**8


async def test_a_refusal_has_the_flat_envelope() -> None:
    api, order = Api(), buy(ALICE, 10**8, 2 * 10**8)
    await api.place(order)
    reply = await api.place(order)
    name = base58.encode(order.id)
    assert reply.status == 400
    assert reply.json() == {
        "error": 3148040,
        "message": f"The order {name} has already been placed",
        "template": "The order {{id}} has already been placed",
        "params": {"id": name},
        "status": "OrderRejected",
        "success": False,
    }


async def test_trouble_with_journal_node_or_code() -> None:
    api, order = Api(), buy(ALICE, 10**8, 2 * 10**8)
    told = []
    for trouble in (
        MatcherError(errors.CAN_NOT_PERSIST_EVENT),
        NodeUnavailable("gone"),
        RuntimeError("a bug"),
    ):
        api.core.fail_with = trouble
        reply = await api.place(order)
        told.append((reply.status, reply.json()["error"], reply.json()["status"]))
    assert told == [
        (503, 25601, "WavesNodeUnavailable"),
        (503, 105906177, "WavesNodeUnavailable"),
        (503, 4, "WavesNodeUnavailable"),
    ]


async def test_placing_is_not_barred_while_starting() -> None:
    api = Api()
    api.core.status = ServiceStatus.STARTING
    assert (await api.place(buy(ALICE, 10**8, 10**8))).status == 200


# --- reading --------------------------------------------------------------------------------------

FORM: dict[str, Any] = {
    **orders.to_json(buy(ALICE, 10**8, 2 * 10**8)),
    "id": "does not count",
    "sender": "does not count",
    "chainId": 3,
}


def changed(**members: Any) -> dict[str, Any]:
    return {**FORM, **members}


def without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in FORM.items() if name not in names}


MALFORMED = [
    (b"", []),
    (b"{", []),
    (b"[" * 100_000, []),
    (b"1", [""]),
    ([1], [""]),
    (changed(amount="1"), ["/amount"]),
    (changed(amount=1.5), ["/amount"]),
    (changed(amount=2**63), ["/amount"]),
    (changed(price=None, timestamp=True), ["/price", "/timestamp"]),
    (without("amount", "matcherFee"), ["/amount", "/matcherFee"]),
    (without("assetPair"), ["/assetPair"]),
    (without("senderPublicKey"), ["/senderPublicKey"]),
    (changed(assetPair={"amountAsset": "0", "priceAsset": 1}), ["/assetPair"]),
    (changed(assetPair={"amountAsset": "0"}), ["/assetPair/amountAsset"]),
    (changed(orderType="BUY"), ["/orderType"]),
    (changed(senderPublicKey="111"), ["/senderPublicKey"]),
    (changed(matcherPublicKey="O"), ["/matcherPublicKey"]),
    (changed(proofs=["0"]), ["/proofs"]),
    (changed(proofs=["1"] * 65), ["/proofs"]),
    (changed(proofs="1"), ["/proofs"]),
    (changed(version=0), ["/version"]),
    (changed(version="3"), ["/version"]),
    (changed(version=4, eip712Signature="0xg", proofs=[]), ["/eip712Signature"]),
    (changed(version=4, attachment="0"), ["/attachment"]),
]


@pytest.mark.parametrize(("body", "fields"), MALFORMED)
async def test_malformed_orders_name_their_members(body: Any, fields: list[str]) -> None:
    reply = await Api()("POST /matcher/orderbook", body)
    told = reply.json()
    assert (reply.status, told["error"], told["status"]) == (400, 1048577, "InvalidJsonResponse")
    assert told.get("params", {}).get("invalidFields", []) == fields


def spelled(**numbers: str) -> bytes:
    """The order with numbers in another spelling."""
    text = msgspec.json.encode(FORM)
    for name, number in numbers.items():
        text = text.replace(b'"%s":%d' % (name.encode(), FORM[name]), f'"{name}":{number}'.encode())
    return text


async def test_whole_numbers_of_programs_with_doubles() -> None:
    """``Reads.LongReads`` of play-json takes every number that is a 64-bit integer."""
    assert FORM["amount"] == 10**8
    body = spelled(amount="1e8", price="2.0E+8", matcherFee="300000.00", version="3.0")
    reply = await Api()("POST /matcher/orderbook", body)
    assert (reply.status, reply.json()["message"]["id"]) == (
        200,
        base58.encode(buy(ALICE, 10**8, 2 * 10**8).id),
    )
    exact = read_order(spelled(amount="9007199254740993.0"), CHAIN_ID)
    assert exact.amount == 2**53 + 1


@pytest.mark.parametrize(
    "number", ["1e-8", "0.5", "1e19", "1e999999999", "-1e999999999", "0e999999999", "1e8.0", "1."]
)
async def test_numbers_that_are_not_whole(number: str) -> None:
    reply = await Api()("POST /matcher/orderbook", spelled(amount=number))
    told = reply.json()
    assert (reply.status, told["error"]) == (400, 1048577)
    known = msgspec.json.encode(["/amount"]) if number[-2:] not in (".0", "1.") else b"[]"
    assert msgspec.json.encode(told.get("params", {}).get("invalidFields", [])) == known


async def test_other_content_types_are_refused() -> None:
    for header in ({"Content-Type": "text/plain"}, {"Content-Type": ""}):
        reply = await Api()("POST /matcher/orderbook", FORM, header)
        assert (reply.status, reply.json()["error"]) == (400, 1048579)
    header = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert (await Api()("POST /matcher/orderbook", FORM, header)).status == 200


async def test_an_unknown_version_is_refused_with_its_code() -> None:
    reply = await Api()("POST /matcher/orderbook", changed(version=5))
    assert (reply.status, reply.json()["error"]) == (400, 9439747)


async def test_an_asset_of_another_length_is_unknown() -> None:
    pair = {"amountAsset": "111", "priceAsset": None}
    reply = await Api()("POST /matcher/orderbook", changed(assetPair=pair))
    assert (reply.status, reply.json()["error"]) == (404, 11534345)


async def test_a_body_that_never_comes_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("soliton.matcher.rest.http_gate.SLOW_BODY_SECONDS", 0.01)
    wire = Wire(Api().app.gate)
    wire.send(b"POST /matcher/orderbook HTTP/1.1\r\nHost: x\r\ncontent-length: 5\r\n\r\n")
    async with asyncio.timeout(60):
        assert (await wire.answer()).status == 408


async def test_an_oversize_body_is_not_read() -> None:
    reply = await Api()("POST /matcher/orderbook", b" " * 100_001)
    assert reply.status == 413


def read(form: dict[str, Any]) -> orders.Order:
    return read_order(msgspec.json.encode(form), CHAIN_ID)


def test_an_absent_version_follows_from_the_proofs() -> None:
    first, second = buy(ALICE, 10**8, 10**8, version=1), buy(ALICE, 10**8, 10**8, version=2)
    old = {name: value for name, value in orders.to_json(first).items() if name != "version"}
    assert read(old) == first
    assert read({k: v for k, v in old.items() if k != "proofs"}) == first
    form = {**old, "proofs": [base58.encode(proof) for proof in (*second.proofs, b"more")]}
    assert read(form).version == 2


@pytest.mark.parametrize("absent", [None, "", "WAVES"])
def test_the_native_coin_has_four_spellings(absent: str | None) -> None:
    form = changed(matcherFeeAssetId=absent, assetPair={"amountAsset": base58.encode(GOLD)})
    assert read(form).matcher_fee_asset is None
    assert read(form).price_asset is None
    assert read(without("matcherFeeAssetId")).matcher_fee_asset is None


def test_prices_of_version_4_have_the_decimals_of_the_pair() -> None:
    for given in (None, "assetDecimals", "fixedDecimals"):
        order = read(changed(version=4, priceMode=given))
        assert order.price_mode is PriceMode.ASSET_DECIMALS
    assert read(changed(priceMode="assetDecimals")).price_mode is PriceMode.DEFAULT


def test_an_attachment_is_part_of_what_was_signed() -> None:
    order = read(changed(version=4, attachment=base58.encode(b"hello")))
    assert order.attachment == b"hello" and order.body != read(changed(version=4)).body


def test_what_the_rules_refuse_later_is_read() -> None:
    form = changed(amount=0, price=-1, matcherFee=-5, expiration=0, timestamp=-(2**63))
    assert read(form).amount == 0
    form = changed(assetPair={"amountAsset": base58.encode(NOWHERE)})
    assert read(form).amount_asset == NOWHERE


def test_an_ethereum_signature_makes_other_proofs_void() -> None:
    signature = "0x" + "11" * 65
    form = changed(version=4, eip712Signature=signature, senderPublicKey=None)
    order = read(form)
    assert order.proofs == () and order.eip712_signature == bytes([0x11]) * 65
    with pytest.raises(Refusal):
        read(changed(version=4, senderPublicKey=None))


def test_the_vectors_are_read_with_their_ids() -> None:
    path = shared_root() / "vectors" / "matcher-orders.json"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    given = msgspec.json.decode(path.read_bytes())["orders"]
    chain_ids = {base58.decode(vector["sender"])[1] for vector in given}
    assert len(chain_ids) == 1
    for vector in given:
        order = read_order(msgspec.json.encode(vector), *chain_ids)
        assert base58.encode(order.id) == vector["id"]
        assert order.body == base58.decode(vector["_body"])
        assert orders.signature_is_valid(order)
        assert order_json(order) == {k: v for k, v in vector.items() if k != "_body"}


@pytest.mark.parametrize("mode", ["fixedDecimals", "default", 0, 1])
def test_a_wallet_is_told_which_price_mode_to_sign(mode: object) -> None:
    """Whoever would be found from a signature of another mode is nobody."""
    signature = "0x" + "11" * 64 + "1b"
    form = changed(version=4, eip712Signature=signature, senderPublicKey=None)
    read(form | {"priceMode": "assetDecimals"})
    read(form | {"priceMode": None})
    with pytest.raises(Refusal) as refused:
        read(form | {"priceMode": mode})
    assert 'set priceMode to "assetDecimals"' in refused.value.error.message
