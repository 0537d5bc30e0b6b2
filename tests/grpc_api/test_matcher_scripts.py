"""Scripts that the Scala matcher asks about orders and exchanges: what they see and say."""

from __future__ import annotations

from typing import Any

import pytest

from soliton.chain import orders
from soliton.chain.orders import Side
from soliton.chain.transactions import transfer
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.grpc_api.proto import waves_blockchain_api_pb2 as pb
from tests.api.chain import FEE, PrivateChain
from tests.grpc_api.market import (
    ALICE,
    BOB,
    POOL,
    chain,
    compiled,
    market_on,
    sent,
)
from tests.node.chains import address_of

__all__ = ["chain"]

ORDER = "{-# STDLIB_VERSION 6 #-}\n{-# CONTENT_TYPE EXPRESSION #-}\n{-# SCRIPT_TYPE ACCOUNT #-}\n"
DENIED = "An access to the blockchain.{} is denied on DEX"
ASKING = {
    "true": ("", ""),
    "false": ("denied", ""),
    'if true then throw("no") else true': ("script_error", "no"),
    "match tx { case o: Order => o.amount == 100 && o.sender == this case _ => false }": ("", ""),
    "height > 0": ("script_error", DENIED.format("height")),
    "lastBlock.height > 0": ("script_error", DENIED.format("height")),
    'isDefined(getInteger(this, "a"))': ("script_error", DENIED.format("accountData")),
    "wavesBalance(this).regular > 0": ("script_error", DENIED.format("balance")),
    "isDefined(assetInfo(tx.id))": ("script_error", DENIED.format("assetDescription")),
    "isDefined(blockInfoByHeight(1))": ("script_error", DENIED.format("blockHeader")),
    "isDefined(transactionHeightById(tx.id))": (
        "script_error",
        DENIED.format("transactionMeta"),
    ),
    "isDefined(transferTransactionById(tx.id))": ("script_error", DENIED.format("transferById")),
    "isDataStorageUntouched(this)": ("script_error", DENIED.format("hasData")),
    "isDefined(scriptHash(this))": ("script_error", DENIED.format("accountScript")),
}


@pytest.mark.parametrize("source", ASKING)
async def test_scripts_of_orders_see_the_order_alone(chain: PrivateChain, source: str) -> None:
    async with market_on(chain) as market:
        market.set_script(ALICE, ORDER + source)
        request = pb.RunAddressScriptRequest(address=address_of(ALICE))
        orders.fill_message(request.order, market.order(ALICE, Side.BUY))
        answer = await market.ask("RunAddressScript", request, pb.RunScriptResponse)
        kind, words = ASKING[source]
        assert (answer.WhichOneof("result") or "") == kind
        assert answer.script_error == words
        has = pb.HasAddressScriptRequest(address=address_of(ALICE))
        assert (await market.ask("HasAddressScript", has, pb.HasScriptResponse)).has
        has = pb.HasAddressScriptRequest(address=address_of(BOB))
        assert not (await market.ask("HasAddressScript", has, pb.HasScriptResponse)).has
        request.address = address_of(BOB)
        plain = await market.ask("RunAddressScript", request, pb.RunScriptResponse)
        assert plain.WhichOneof("result") is None


async def test_a_script_without_an_order(chain: PrivateChain) -> None:
    async with market_on(chain) as market:
        market.set_script(ALICE, ORDER + "true")
        request = pb.RunAddressScriptRequest(address=address_of(ALICE))
        found = await market.refused("RunAddressScript", request)
        assert (found.code, found.details) == ("INVALID_ARGUMENT", "")
        assert found.trailers["desc"] == "Expected an order"
        orders.fill_message(request.order, market.order(ALICE, Side.BUY))
        request.order.ClearField("matcher_fee")
        found = await market.refused("RunAddressScript", request)
        assert (found.code, found.details) == ("INTERNAL", "The matcherFee must be specified")
        request.order.matcher_fee.amount = 1
        request.order.ClearField("sender")
        assert (await market.refused("RunAddressScript", request)).code == "INTERNAL"


async def test_scripts_of_pools_see_the_chain_and_what_waits(chain: PrivateChain) -> None:
    """What the pool's account pays in transactions that wait counts already."""
    source = "wavesBalance(this).available > 0 && assetBalance(this, base58'{}') >= 900"
    async with market_on(chain) as market:
        gold = base58.encode(market.gold)
        market.set_script(POOL, ORDER + source.format(gold))
        request = pb.RunAddressScriptRequest(address=address_of(POOL))
        orders.fill_message(request.order, market.order(POOL, Side.SELL))

        async def answered() -> str:
            answer = await market.ask("RunAddressScript", request, pb.RunScriptResponse)
            assert not answer.script_error
            return answer.WhichOneof("result") or ""

        assert await answered() == ""
        trade = market.trade(
            market.order(ALICE, Side.BUY, 150), market.order(POOL, Side.SELL, 150), 150
        )
        chain.send(trade)
        await eventually_answers(answered, "denied")
        # A transaction of others that waits is not looked at.
        market.pay(BOB, market.gold, 1)
        assert await answered() == "denied"


async def eventually_answers(ask: Any, wanted: str) -> None:
    for _ in range(500):
        if await ask() == wanted:
            return
    raise AssertionError(f"it never was {wanted}")


ASSET = "{-# STDLIB_VERSION 6 #-}\n{-# SCRIPT_TYPE ASSET #-}\n"


async def test_scripts_of_assets(chain: PrivateChain) -> None:
    script = compiled(
        ASSET + "match tx { case e: ExchangeTransaction => e.amount < 100 && height > 0 "
        "case _ => true }"
    )
    async with market_on(chain) as market:
        smart = AssetId(market.issue(script).id)
        chain.mine()
        for each in (ALICE, BOB):
            payload = transfer.Transfer(address_of(each), smart, 1_000, b"")
            chain.send(chain.sign(transfer.TYPE, payload, 3, fee=FEE + 400_000))
        chain.mine()
        both = (
            market.order(ALICE, Side.BUY, amount_asset=smart),
            market.order(BOB, Side.SELL, amount_asset=smart),
        )
        request = pb.RunAssetScriptRequest(asset_id=smart)
        request.transaction.CopyFrom(sent(market.trade(*both, 99)))
        answer = await market.ask("RunAssetScript", request, pb.RunScriptResponse)
        assert answer.WhichOneof("result") is None
        request.transaction.CopyFrom(sent(market.trade(*both, 100)))
        answer = await market.ask("RunAssetScript", request, pb.RunScriptResponse)
        assert answer.WhichOneof("result") == "denied"
        request.asset_id = market.gold
        answer = await market.ask("RunAssetScript", request, pb.RunScriptResponse)
        assert answer.WhichOneof("result") is None
        request.asset_id = smart
        request.transaction.transaction.ClearField("exchange")
        found = await market.refused("RunAssetScript", request)
        assert found.trailers["desc"] == "Can't parse the transaction"
        request.ClearField("transaction")
        found = await market.refused("RunAssetScript", request)
        assert (found.code, found.trailers["desc"]) == (
            "INVALID_ARGUMENT",
            "Expected a transaction",
        )
