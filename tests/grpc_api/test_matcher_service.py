"""What the Scala matcher asks, as its sources say: balances, assets, sending."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from google.protobuf.message import Message

from soliton.chain.features import Feature
from soliton.chain.orders import Order, Side
from soliton.chain.proto.transaction_pb2 import SignedTransaction
from soliton.chain.transactions import codec, lease
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.grpc_api import matcher_service, peers
from soliton.grpc_api.link import NodeRequest, NodeResponse, Send, Sent
from soliton.grpc_api.proto import waves_blockchain_api_pb2 as pb
from soliton.grpc_api.proto.transactions_api_pb2 import TransactionsByIdRequest, TransactionStatus
from soliton.grpc_api.routes import MAX_ITEMS
from soliton.ledger.state import WAVES
from soliton.storage.reader import StoreReader
from tests.api.chain import RICH, PrivateChain
from tests.grpc_api.market import (
    ALICE,
    BOB,
    COIN,
    MATCHER,
    POOL,
    SERVICE,
    SUPPLY,
    Market,
    chain,
    compiled,
    market_on,
    sent,
)
from tests.grpc_api.serving import Direct, eventually
from tests.node.chains import address_of, person

__all__ = ["chain"]


async def test_what_is_known_of_assets_and_the_chain(chain: PrivateChain) -> None:
    async with market_on(chain) as market:
        smart = market.issue(compiled("{-# STDLIB_VERSION 6 #-}\n{-# SCRIPT_TYPE ASSET #-}\ntrue"))
        nft = market.issue(None, 1)
        chain.mine()
        empty = pb.AddressRequest()
        info = await market.ask("GetCurrentBlockInfo", empty, pb.CurrentBlockInfoResponse)
        assert (info.height, info.block_id) == (4, chain.node.chain.last_block.id)

        async def described(name: bytes) -> pb.AssetDescriptionResponse:
            request = pb.AssetIdRequest(asset_id=name)
            has = await market.ask("HasAssetScript", request, pb.HasScriptResponse)
            found = await market.ask("AssetDescription", request, pb.AssetDescriptionResponse)
            assert found.description.has_script == has.has
            return found

        shown = (await described(market.gold)).description
        assert (shown.name, shown.decimals) == (b"Gold", 2)
        assert not shown.has_script and not shown.nft
        assert (await described(smart.id)).description.has_script
        assert (await described(nft.id)).description.nft
        for absent in (bytes(32), b"", b"short", smart.id + b"x"):
            assert not (await described(absent)).HasField("description")
        for feature, active in ((Feature.RIDE_V6, True), (9_999, False), (-1, False)):
            asked = pb.IsFeatureActivatedRequest(feature_id=feature)
            told = await market.ask("IsFeatureActivated", asked, pb.IsFeatureActivatedResponse)
            assert told.is_activated is active


async def test_balances_of_one_account(chain: PrivateChain) -> None:
    async with market_on(chain) as market:
        other = market.issue(None)
        chain.mine()
        rich, left = address_of(RICH), SUPPLY - 3_000
        coins = chain.node.store.get(WAVES, rich)
        partly = pb.GetAddressPartialRegularBalanceRequest(address=rich)
        for each in (bytes(32), market.gold, b"", b"short"):
            partly.asset_ids.add(asset_id=each)
        some = await market.ask(
            "GetAddressPartialRegularBalance", partly, pb.GetAddressPartialRegularBalanceResponse
        )
        assert pairs(some) == [(market.gold, left), (b"", coins)]
        whole = pb.GetAddressFullRegularBalanceRequest(address=rich)
        name, answer = "GetAddressFullRegularBalance", pb.GetAddressFullRegularBalanceResponse
        first, *rest = pairs(await market.ask(name, whole, answer))
        assert first == (b"", coins)
        assert dict(rest) == {market.gold: left, other.id: SUPPLY}
        whole.exclude_asset_ids.extend((b"", other.id))
        assert pairs(await market.ask(name, whole, answer)) == [(market.gold, left)]
        nobody = pb.GetAddressFullRegularBalanceRequest(address=address_of(person("nobody")))
        assert pairs(await market.ask(name, nobody, answer)) == [(b"", 0)]


async def test_balances_of_many_accounts(chain: PrivateChain) -> None:
    async with market_on(chain) as market:
        chain.send(chain.sign(lease.TYPE, lease.Lease(address_of(BOB), 5 * COIN), 3))
        chain.mine()
        rich, bob, left = address_of(RICH), address_of(BOB), SUPPLY - 3_000
        coins = chain.node.store.get(WAVES, rich)
        request = pb.AddressRequest(address=rich)
        out = await market.ask("GetOutgoingLeasing", request, pb.GetOutgoingLeasingResponse)
        assert out.outgoing_leasing == 5 * COIN
        wanted = [bytes(32), market.gold, b"", b"short", market.gold]
        many = pb.GetBalancesRequest(outgoingLeasingAddresses=[bob, rich])
        many.regular.add(address=rich, assets=wanted)
        many.regular.add(address=bob)
        found = await market.ask("GetBalances", many, pb.GetBalancesResponse)
        amounts = [(each.asset_id, each.amount) for each in found.regular[0].amount]
        assert amounts == list(zip(wanted, [0, left, coins, 0, left], strict=True))
        assert found.regular[1].address == bob and not found.regular[1].amount
        assert [each.amount for each in found.outgoingLeasing] == [0, 5 * COIN]
        for keys, is_pool in ((POOL, True), (ALICE, False)):
            asked = pb.CheckAddressRequest(address=address_of(keys))
            checked = await market.ask("CheckAddress", asked, pb.CheckAddressResponse)
            assert checked.successfully_checked is is_pool


async def test_calls_with_long_lists_are_computed_in_steps(
    chain: PrivateChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn, seen = 0, set[int]()

    def slow(function: Any) -> Any:
        def slowly(*given: Any) -> Any:
            seen.add(turn)
            time.sleep(2 * peers.STEP_SECONDS)
            return function(*given)

        return slowly

    rich, names = address_of(RICH), [number.to_bytes(32) for number in range(20)]
    partly = pb.GetAddressPartialRegularBalanceRequest(address=rich)
    for each in names:
        partly.asset_ids.add(asset_id=each)
    many = pb.GetBalancesRequest()
    many.regular.add(address=rich, assets=names)
    statuses = TransactionsByIdRequest(transaction_ids=names)
    async with market_on(chain) as market:
        monkeypatch.setattr(matcher_service, "_balance", slow(matcher_service._balance))
        monkeypatch.setattr(
            StoreReader, "transaction_location", slow(StoreReader.transaction_location)
        )
        for name, request in (
            ("GetAddressPartialRegularBalance", partly),
            ("GetBalances", many),
            ("GetStatuses", statuses),
        ):
            seen.clear()
            call = asyncio.create_task(market.refused(name, request))
            while not call.done():
                turn += 1
                await asyncio.sleep(0)
            assert (await call).code == "OK"
            assert len(seen) > len(names) / 2, name


async def test_the_assets_of_all_accounts_in_a_request_are_counted(chain: PrivateChain) -> None:
    many = pb.GetBalancesRequest()
    for assets in (MAX_ITEMS, 1):
        many.regular.add(address=address_of(RICH), assets=[b""] * assets)
    async with market_on(chain) as market:
        assert (await market.refused("GetBalances", many)).code == "RESOURCE_EXHAUSTED"


def pairs(message: Any) -> list[tuple[bytes, int]]:
    return [(each.asset_id, each.balance) for each in message.balances]


async def test_an_address_has_26_bytes_of_this_network(chain: PrivateChain) -> None:
    requests: dict[str, Message] = {
        "HasAddressScript": pb.HasAddressScriptRequest(),
        "GetOutgoingLeasing": pb.AddressRequest(),
        "CheckAddress": pb.CheckAddressRequest(),
        "GetAddressFullRegularBalance": pb.GetAddressFullRegularBalanceRequest(),
        "GetAddressPartialRegularBalance": pb.GetAddressPartialRegularBalanceRequest(),
        "RunAddressScript": pb.RunAddressScriptRequest(),
    }
    good = address_of(ALICE)
    async with market_on(chain) as market:
        for bad in (
            b"",
            good[:-1],
            good + b"\0",
            bytes((1, ord("W"))) + good[2:],
            ALICE.public_key,
        ):
            for name, request in requests.items():
                request.address = bad  # type: ignore[attr-defined]
                found = await market.refused(name, request)
                assert (found.code, found.trailers["error-code"]) == ("INVALID_ARGUMENT", "102")
            many = pb.GetBalancesRequest(outgoingLeasingAddresses=[good, bad])
            assert (await market.refused("GetBalances", many)).code == "INVALID_ARGUMENT"


async def test_an_order_is_matched_and_settled(chain: PrivateChain) -> None:
    """Questions in the order in which the matcher asks them for one trade."""
    async with market_on(chain) as market:
        events = market.events()
        await eventually(lambda: len(events.found) == 1)
        first = pb.UtxEvent.FromString(events.take()[0])
        assert first.HasField("switch") and not first.switch.transactions
        buyer, seller = market.order(ALICE, Side.BUY), market.order(BOB, Side.SELL)
        trade = market.trade(buyer, seller)
        request = pb.CheckedBroadcastRequest(transaction=sent(trade))
        assert await status(market, trade.id) == [(TransactionStatus.NOT_EXISTS, 0)]
        answer = await market.ask("CheckedBroadcast", request, pb.CheckedBroadcastResponse)
        assert answer.WhichOneof("result") == "unconfirmed" and answer.unconfirmed, answer
        assert await status(market, trade.id) == [(TransactionStatus.UNCONFIRMED, 0)]
        again = await market.ask("CheckedBroadcast", request, pb.CheckedBroadcastResponse)
        assert again.WhichOneof("result") == "unconfirmed" and not again.unconfirmed
        old = await market.ask(
            "Broadcast", pb.BroadcastRequest(transaction=sent(trade)), pb.BroadcastResponse
        )
        assert old.WhichOneof("result") == "added" and not old.added
        await eventually(lambda: len(events.found) == 1)
        (added,) = pb.UtxEvent.FromString(events.take()[0]).update.added
        shown = added.transaction
        assert shown.id == trade.id
        assert shown.transaction.SerializeToString() == codec.encode_protobuf(trade)
        update = shown.diff.state_update
        moved = {
            (each.address, each.amount_after.asset_id): each.amount_after.amount
            for each in update.balances
        }
        cost = 100 * buyer.price // COIN
        alice, bob, matcher = map(address_of, (ALICE, BOB, MATCHER))
        # By how much, and not what is left: that is what the matcher counts with.
        assert moved == {
            (alice, market.gold): 100,
            (alice, b""): -cost - 300_000,
            (bob, market.gold): -100,
            (bob, b""): cost - 300_000,
            (matcher, b""): 600_000 - 300_000,
        }
        assert all(each.amount_before == 0 for each in update.balances)
        assert not await forged(market, buyer) and not await forged(market, seller)
        chain.mine()
        await eventually(lambda: len(events.found) == 1)
        (removed,) = pb.UtxEvent.FromString(events.take()[0]).update.removed
        assert removed.transaction.id == trade.id and not removed.HasField("reason")
        assert await forged(market, buyer) and await forged(market, seller)
        done = await market.ask("CheckedBroadcast", request, pb.CheckedBroadcastResponse)
        assert done.WhichOneof("result") == "confirmed"
        height = chain.node.chain.height
        assert await status(market, trade.id) == [(TransactionStatus.CONFIRMED, height)]


async def test_it_is_confirmed_where_the_node_is_a_block_ahead(
    chain: PrivateChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with market_on(chain) as market:
        trade = market.trade(market.order(ALICE, Side.BUY), market.order(BOB, Side.SELL))
        request = pb.CheckedBroadcastRequest(transaction=sent(trade))
        ask = Direct.ask

        async def ahead(link: Direct, question: NodeRequest) -> NodeResponse:
            if not isinstance(question, Send):
                return await ask(link, question)
            # As the reference's node says it.
            name = base58.encode(trade.id)
            words = f"Transaction {name} is already in the state on a height of 18"
            return Sent(112, f"State check failed. Reason: {words}")

        monkeypatch.setattr(Direct, "ask", ahead)
        done = await market.ask("CheckedBroadcast", request, pb.CheckedBroadcastResponse)
        assert done.WhichOneof("result") == "confirmed", done


async def status(market: Market, *ids: bytes) -> list[tuple[int, int]]:
    request = TransactionsByIdRequest(transaction_ids=ids)
    found = await market.ask("GetStatuses", request, pb.TransactionsStatusesResponse)
    assert [each.id for each in found.transactions_statutes] == list(ids)
    return [(each.status, each.height) for each in found.transactions_statutes]


async def forged(market: Market, order: Order) -> bool:
    request = pb.ForgedOrderRequest(order_id=order.id)
    return (await market.ask("ForgedOrder", request, pb.ForgedOrderResponse)).is_forged


async def test_what_may_be_sent_again(chain: PrivateChain) -> None:
    async with market_on(chain) as market:

        async def failed(transaction: AnyTransaction) -> tuple[str, bool]:
            request = pb.CheckedBroadcastRequest(transaction=sent(transaction))
            answer = await market.ask("CheckedBroadcast", request, pb.CheckedBroadcastResponse)
            assert answer.WhichOneof("result") == "failed"
            plain = pb.BroadcastRequest(transaction=sent(transaction))
            old = await market.ask("Broadcast", plain, pb.BroadcastResponse)
            assert old.failed == answer.failed.message
            return answer.failed.message, answer.failed.can_retry

        buyer = market.order(ALICE, Side.BUY, 150)
        one, two, three = (market.order(BOB, Side.SELL, 100 + n) for n in range(3))
        chain.send(market.trade(buyer, one))
        words, again = await failed(market.trade(buyer, two))
        assert "Too much buy" in words and again
        words, again = await failed(market.trade(market.order(ALICE, Side.BUY), three, fee=1))
        assert "does not exceed minimal value" in words and not again
        bare = market.order(MATCHER, Side.SELL)
        words, again = await failed(market.trade(market.order(ALICE, Side.BUY), bare))
        assert "negative asset balance" in words and again


async def test_requests_without_an_exchange(chain: PrivateChain) -> None:
    async with market_on(chain) as market:
        payment = chain.transfer()
        held = pb.SignedExchangeTransaction()
        held.transaction.version = 3
        cases = {
            "The signed transaction must be specified": b"",
            "The transaction must be specified": b"\x0a\x00",
            # A transfer is an exchange without data to this service.
            "The transaction's data must be specified": pb.BroadcastRequest(
                transaction=sent(payment)
            ).SerializeToString(),
        }
        for words, data in cases.items():
            found = await market.client.call(SERVICE + "Broadcast", data, stream=False)
            assert (found.code, found.details) == ("INVALID_ARGUMENT", words)
            assert found.trailers["error-code"] == "199"
            checked = await market.client.call(SERVICE + "CheckedBroadcast", data, stream=False)
            answer = pb.CheckedBroadcastResponse.FromString(checked.responses[0])
            assert (answer.failed.message, answer.failed.can_retry) == (words, False)
        assert payment.id not in chain.node.pool
        garbage = await market.client.call(SERVICE + "Broadcast", b"\xff" * 9, stream=False)
        assert garbage.code == "UNKNOWN"


async def test_what_is_sent_is_a_signed_transaction(chain: PrivateChain) -> None:
    """The message of this service and that of the network are one on the wire."""
    async with market_on(chain) as market:
        trade = market.trade(market.order(ALICE, Side.BUY), market.order(BOB, Side.SELL))
        data = codec.encode_protobuf(trade)
        message = pb.SignedExchangeTransaction.FromString(data)
        assert message.SerializeToString() == SignedTransaction.FromString(data).SerializeToString()
        assert message.transaction.exchange.amount == 100
