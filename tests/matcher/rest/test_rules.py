"""The interface of a whole service, whose rules on pairs, assets and fees are those of its files:
what the reference answers, from its sources.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from soliton.chain import orders
from soliton.chain.features import Feature
from soliton.chain.orders import Order, Side
from soliton.crypto import base58
from soliton.crypto.curve25519 import is_weak
from soliton.crypto.hashes import blake2b256, secure_hash
from soliton.crypto.keys import KeyPair
from soliton.matcher.node_client import Asset
from soliton.matcher.rest.app import build_app
from soliton.matcher.settings import RestApi
from soliton.matcher.trading_settings import TradingSettings
from soliton.matching.fees import (
    AssetType,
    CompositeFee,
    Discount,
    DynamicFee,
    FixedFee,
    OrderFee,
    PercentFee,
)
from soliton.matching.pairs import AssetPair
from soliton.matching.placement import PlacementSettings
from tests.matcher import kit
from tests.matcher.fakes import KEY, Reply, exchange
from tests.matcher.kit import COIN, USD, FakeNode

SCAM = blake2b256(b"an asset with a name that is not wanted")
GOLD = blake2b256(b"gold of the rules")
USD_NAME, SCAM_NAME, GOLD_NAME = (base58.encode(each) for each in (USD, SCAM, GOLD))
BOOK = f"/matcher/orderbook/WAVES/{USD_NAME}"
DYNAMIC = DynamicFee(300_000, 300_000)
FEE_REQUEST = {"orderType": "sell", "amount": COIN, "price": 10**8}


class Desk:
    """A service that is asked without sockets."""

    def __init__(self, matcher: Any, node: FakeNode) -> None:
        self.matcher, self.node = matcher, node
        self._app = build_app(matcher)

    async def __call__(self, line: str, body: Any = None) -> Reply:
        return await exchange(self._app.gate, line, body, {"X-API-Key": KEY})


@asynccontextmanager
async def desk(
    directory: Path, *, fee: OrderFee = DYNAMIC, v4_from: int = -1, **placement: Any
) -> AsyncIterator[Desk]:
    node = FakeNode()
    node.assets[SCAM] = Asset("Great SCAM", 8, scripted=False)
    node.assets[GOLD] = Asset("Gold", 8, scripted=False)
    for keys in (kit.ALICE, kit.BOB):
        node.fund(keys)
    rules = PlacementSettings(b"", price_assets=(USD, GOLD), **placement)
    settings = kit.settings_in(
        directory,
        trading=TradingSettings(
            order_fees=((-1, fee),), order_v4_start_offset=v4_from, placement=rules
        ),
        rest_api=RestApi(api_key_hashes=(secure_hash(KEY.encode()),)),
    )
    async with kit.running(settings, node) as matcher:
        yield Desk(matcher, node)


# --- names and ids that are not wanted ------------------------------------------------------------


@pytest.mark.parametrize("again", [False, True])
async def test_an_unwanted_name_counts_from_the_first_request_on(
    tmp_path: Path, again: bool
) -> None:
    """``AssetPairBuilder.validateAssetId`` asks for the asset before it looks at the name."""
    pair = f"{SCAM_NAME}/{USD_NAME}"
    async with desk(tmp_path, blacklisted_names=(re.compile("SCAM"),)) as ask:
        if again:
            await ask(f"GET /matcher/orderbook/{pair}/status")
        reply = await ask(f"GET /matcher/orderbook/{pair}/status")
        told = reply.json()
        assert (reply.status, told["error"], told["status"]) == (400, 11538181, "InfoNotFound")
        # So its book may be deleted at once; there is none.
        reply = await ask(f"DELETE /matcher/orderbook/{pair}")
        assert (reply.status, reply.json()["error"]) == (503, 8388609)


async def test_an_unwanted_asset_has_no_rate(tmp_path: Path) -> None:
    """``RatesRoute`` asks for a rate's asset with ``withAsset``."""
    unwanted: dict[str, Any] = {
        "blacklisted_assets": frozenset((GOLD,)),
        "blacklisted_names": (re.compile("SC"),),
    }
    async with desk(tmp_path, **unwanted) as ask:
        for name in (SCAM_NAME, GOLD_NAME):
            for line, body in (("PUT", 0.5), ("DELETE", None)):
                reply = await ask(f"{line} /matcher/settings/rates/{name}", body)
                told = reply.json()
                assert (reply.status, told["error"]) == (400, 11534341), line
                assert told["status"] == "InfoNotFound"
        assert (await ask(f"PUT /matcher/settings/rates/{USD_NAME}", 0.5)).status == 201


async def test_an_unwanted_price_asset_is_not_announced(tmp_path: Path) -> None:
    """``MatcherInfoRoute.getMatcherPublicSettings`` leaves it out."""
    async with desk(tmp_path, blacklisted_assets=frozenset((GOLD,))) as ask:
        assert (await ask("GET /matcher/settings")).json()["priceAssets"] == [USD_NAME]


async def test_a_pair_that_is_no_longer_allowed_is_not_listed(tmp_path: Path) -> None:
    """``OrderBookDirectoryActor`` opens the books of pairs that ``quickValidateAssetPair`` allows.
    Ours keeps the others, so that their orders may be cancelled.
    """
    order = kit.make_order(kit.ALICE, Side.SELL, COIN, 5 * 10**8)
    async with desk(tmp_path) as ask:
        assert (await ask("POST /matcher/orderbook", orders.to_json(order))).status == 200
        (market,) = (await ask("GET /matcher/orderbook")).json()["markets"]
        assert market["priceAsset"] == USD_NAME
    async with desk(tmp_path, white_list_only=True) as ask:
        assert (await ask("GET /matcher/orderbook")).json()["markets"] == []
        reply = await ask(f"POST /matcher/orders/cancel/{base58.encode(order.id)}")
        assert reply.status == 200
        assert (await ask(f"DELETE {BOOK}")).status == 202


# --- transactions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, 3])
async def test_members_of_a_transaction(tmp_path: Path, version: int) -> None:
    """Those of the reference's ``ExchangeTransaction.json``, in its order."""
    async with desk(tmp_path, v4_from=-1 if version == 3 else 10**9) as ask:
        sell = kit.make_order(kit.ALICE, Side.SELL, COIN, 5 * 10**8)
        buy = kit.make_order(kit.BOB, Side.BUY, COIN, 5 * 10**8)
        for order in (sell, buy):
            assert (await ask("POST /matcher/orderbook", orders.to_json(order))).status == 200
        path = f"GET /matcher/transactions/{base58.encode(sell.id)}"
        (told,) = (await ask(path)).json()
    assert list(told) == [
        *("type", "chainId", "id", "sender", "senderPublicKey", "fee", "feeAssetId", "timestamp"),
        *("proofs", "version", "order1", "order2", "amount", "price", "assetDecimalsPrice"),
        *("buyMatcherFee", "sellMatcherFee"),
    ]
    assert (told["chainId"], told["version"]) == (kit.CHAIN_ID, version)
    assert told["assetDecimalsPrice"] == 5 * 10**8
    assert told["price"] == (5 * 10**8 if version == 2 else 5 * 10**14)
    assert [told[name]["orderType"] for name in ("order1", "order2")] == ["buy", "sell"]


# --- tick sizes -----------------------------------------------------------------------------------


async def test_the_least_tick_size_is_that_of_eight_decimals(tmp_path: Path) -> None:
    """``MatchingRulesCache.getDenormalizedRuleForNextOrder``: also where a price has more."""
    silver = blake2b256(b"an asset with two decimals")
    name = base58.encode(silver)
    async with desk(tmp_path) as ask:
        ask.node.assets[silver] = Asset("Silver", 2, scripted=False)
        for amount, price, tick in (
            (name, GOLD_NAME, "0.00000001"),
            (name, USD_NAME, "0.00000001"),
            ("WAVES", USD_NAME, "0.01"),
        ):
            info = (await ask(f"GET /matcher/orderbook/{amount}/{price}/info")).json()
            assert info["matchingRules"]["tickSize"] == tick
        # One unit of such a price is 10^6; less than that is a level of nothing.
        for units, error in ((10**6 - 1, 9441286), (10**6 + 1, 9441284)):
            order = kit.make_order(
                kit.ALICE, Side.BUY, 10**9, units, pair=AssetPair(silver, GOLD), version=3
            )
            told = (await ask("POST /matcher/orderbook", orders.to_json(order))).json()
            assert told["error"] == error
            if error == 9441286:
                params = {"price": "0.0000000099999900", "tickSize": "0.00000001"}
                assert told["params"] == {k: v.rstrip("0") for k, v in params.items()}


# --- fees -----------------------------------------------------------------------------------------


async def test_every_dynamic_mode_has_its_own_base_fee(tmp_path: Path) -> None:
    """``HttpOrderFeeMode.fromSettings`` adds what the account's script costs to each."""
    fee = CompositeFee(
        default=FixedFee(USD, 30),
        custom={
            AssetPair(None, USD): DynamicFee(100_000, 200_000),
            AssetPair(None, GOLD): DynamicFee(500_000, 400_000),
        },
    )
    async with desk(tmp_path, fee=fee) as ask:
        for more in (0, 400_000):
            told = (await ask("GET /matcher/settings")).json()["orderFee"]["composite"]
            assert told["default"] == {"fixed": {"assetId": USD_NAME, "minFee": 30}}
            assert told["custom"] == {
                f"WAVES-{USD_NAME}": {"dynamic": {"baseFee": 200_000 + more}},
                f"WAVES-{GOLD_NAME}": {"dynamic": {"baseFee": 500_000 + more}},
            }
            ask.matcher.chain.matcher_scripted = True


@pytest.mark.parametrize(
    ("mode", "least"),
    [(FixedFee(USD, 30), 30), (PercentFee(AssetType.PRICE, Decimal(1), 300_000), 1)],
)
async def test_the_usual_fee_asset_may_be_the_discounted_one(
    tmp_path: Path, mode: Any, least: int
) -> None:
    """``calculateFeeByAssetPairAndOrderParams``: an asset with a discount is never the base."""
    fee = CompositeFee(default=mode, discount=Discount(USD, Decimal(50)))
    async with desk(tmp_path, fee=fee) as ask:
        ask.matcher.rates.put(USD, 0.0001)
        told = (await ask(f"POST {BOOK}/calculateFee", FEE_REQUEST)).json()
        assert list(told) == ["discount"] and told["discount"]["feeAssetId"] == USD_NAME
        assert told["discount"]["matcherFee"] >= least


@pytest.mark.parametrize("numbers", [(0, 0), (0, 5), (5, 0), (-1, 7), (2**63 - 1, 2**63 - 1)])
async def test_the_fee_of_an_order_that_is_not_typed_yet(
    tmp_path: Path, numbers: tuple[int, int]
) -> None:
    """The reference looks at neither number; the fee of an empty order is the least one."""
    amount, price = numbers
    body = {"orderType": "buy", "amount": amount, "price": price}
    percent = PercentFee(AssetType.AMOUNT, Decimal(1), 300_000)
    for fee in (DYNAMIC, percent):
        async with desk(tmp_path / type(fee).__name__, fee=fee) as ask:
            reply = await ask(f"POST {BOOK}/calculateFee", body)
            assert reply.status == 200
            least = max(300_000, -(-amount // 100)) if fee is percent else 300_000
            assert reply.json() == {"base": {"feeAssetId": "WAVES", "matcherFee": least}}


async def test_members_of_a_fee_request(tmp_path: Path) -> None:
    async with desk(tmp_path) as ask:
        for changes, wrong in (
            ({"amount": None}, ["/amount"]),
            ({"price": 2**63}, ["/price"]),
            ({"orderType": "BUY", "amount": -(2**63) - 1}, ["/amount", "/orderType"]),
            ({"orderType": 1, "amount": 1.5, "price": "1"}, ["/amount", "/orderType", "/price"]),
        ):
            told = (await ask(f"POST {BOOK}/calculateFee", {**FEE_REQUEST, **changes})).json()
            assert (told["error"], told["params"]["invalidFields"]) == (1048577, wrong)
        told = (await ask(f"POST {BOOK}/calculateFee", {})).json()
        assert told["params"]["invalidFields"] == ["/amount", "/orderType", "/price"]


# --- orders that no block may hold ----------------------------------------------------------------


async def refusal(ask: Desk, draft: Order, **changes: str) -> tuple[int, str]:
    """Code and details of the error for an order of Alice's, 0 if it is accepted."""
    order = orders.sign(orders.build(draft), kit.ALICE.private_key)
    told = (await ask("POST /matcher/orderbook", orders.to_json(order) | changes)).json()
    return told.get("error", 0), told.get("params", {}).get("details", "")


async def test_attachments_are_those_that_the_chain_takes(tmp_path: Path) -> None:
    order = kit.make_order(kit.ALICE, Side.SELL, COIN, 5 * 10**8, version=4)

    def attached(attachment: bytes) -> Order:
        return msgspec.structs.replace(order, attachment=attachment)

    async with desk(tmp_path) as ask:
        # A zero byte is one character in base58.
        for size, other in ((1_025, {}), (1_400, {"attachment": "1" * 1_400})):
            told = await refusal(ask, attached(bytes(size)), **other)
            assert told == (9437184, "attachment size should be <= 1024 bytes")
        # The chain's JSON has the first in base64, and the second in base58.
        for size in (1_024, 1_023):
            assert await refusal(ask, attached(bytes(size))) == (0, "")
        for text in ("base64:?", "base64:A", "base64:" + "A" * 1_396, "0"):
            assert (await refusal(ask, attached(b"x"), attachment=text))[0] == 1048577
        ask.node.features.discard(Feature.LIGHT_NODE)
        await ask.matcher.chain.refresh()
        told = await refusal(ask, attached(b"x"))
        assert told == (9437184, "Attachment field for orders is not supported yet")


def anybodys(key: bytes, version: int) -> Order:
    """An order that is signed without a private key: its public key is a point of order two."""
    points = (b"\x01" + bytes(31), b"\xec" + b"\xff" * 30 + b"\x7f")
    while True:
        order = kit.make_order(kit.ALICE, Side.SELL, COIN, 5 * 10**8, version=version)
        order = orders.build(msgspec.structs.replace(order, sender_public_key=key))
        for point in points:
            forged = msgspec.structs.replace(order, proofs=(point + bytes(32),))
            if orders.signature_is_valid(forged):
                return forged


async def test_nobody_trades_with_a_key_that_everybody_can_sign_for(tmp_path: Path) -> None:
    """The chain does not, since feature 17."""
    weak = KeyPair(bytes(32), bytes(32))
    assert is_weak(weak.public_key)
    async with desk(tmp_path) as ask:
        ask.node.fund(weak)
        for version in (1, 2, 3, 4):
            form = orders.to_json(anybodys(weak.public_key, version))
            told = (await ask("POST /matcher/orderbook", form)).json()
            assert told["error"] == 9440512, version
