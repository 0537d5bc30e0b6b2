"""What stands between an order and the journal: scripts, the node, limits; and questions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from soliton.chain.addresses import Address
from soliton.chain.features import Feature
from soliton.chain.orders import Order, PriceMode, Side, build, sign
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.matcher.node_client import AccountState, Asset, NodeUpdate, ScriptAnswer
from soliton.matcher.service import Matcher
from soliton.matcher.trading_settings import TradingSettings
from soliton.matching import errors
from soliton.matching.account_checks import ScriptFault
from soliton.matching.commands import CancelSource
from soliton.matching.errors import MatcherError
from soliton.matching.fees import CompositeFee, Discount, DynamicFee
from soliton.matching.pairs import AssetPair
from soliton.matching.placement import Deviations, PlacementSettings
from tests.matcher.kit import (
    ALICE,
    BOB,
    COIN,
    FEE,
    MATCHER,
    PAIR,
    USD,
    FakeNode,
    address_of,
    eventually,
    eventually_equal,
    make_order,
    running,
    settings_in,
)

PRICE = 250
SMART = b"\5" * 32


@pytest.fixture
def node() -> FakeNode:
    node = FakeNode()
    node.assets[SMART] = Asset("Smart", 8, scripted=True)
    for keys in (ALICE, BOB):
        node.fund(keys)
        node.balances[address_of(keys)][SMART] = 10**15
    return node


@pytest_asyncio.fixture
async def matcher(tmp_path: Path, node: FakeNode) -> AsyncIterator[Matcher]:
    async with running(settings_in(tmp_path), node) as matcher:
        yield matcher


async def refusal(
    matcher: Matcher, order: Order, *, market: bool = False, is_signed: bool | None = None
) -> errors.ErrorKind:
    with pytest.raises(MatcherError) as caught:
        await matcher.placing.place(order, market=market, is_signed=is_signed)
    return caught.value.kind


@pytest.mark.parametrize(
    ("fault", "of_account", "of_asset"),
    [
        (
            ScriptFault.DENIED,
            errors.ACCOUNT_SCRIPT_DENIED_ORDER,
            errors.ASSET_SCRIPT_DENIED_ORDER,
        ),
        (
            ScriptFault.RETURNED_ERROR,
            errors.ACCOUNT_SCRIPT_RETURNED_ERROR,
            errors.ASSET_SCRIPT_RETURNED_ERROR,
        ),
    ],
)
async def test_scripts_have_a_say(
    matcher: Matcher,
    node: FakeNode,
    fault: ScriptFault,
    of_account: errors.ErrorKind,
    of_asset: errors.ErrorKind,
) -> None:
    node.scripted.add(address_of(ALICE))
    old = make_order(ALICE, Side.SELL, COIN, PRICE, version=1)
    assert await refusal(matcher, old) is errors.ACCOUNT_NOT_SUPPORT_ORDER_VERSION
    order = make_order(ALICE, Side.SELL, COIN, PRICE)
    node.script_answer = ScriptAnswer(fault, None, "why")
    assert await refusal(matcher, order) is of_account
    pair = AssetPair(SMART, USD)
    smart = make_order(BOB, Side.SELL, COIN, PRICE, pair=pair, fee=FEE + 400_000)
    node.script_answer = ScriptAnswer(fault, SMART, "why")
    assert await refusal(matcher, smart) is of_asset
    node.script_answer = ScriptAnswer()
    # Its script decides, not its signature.
    await matcher.placing.place(msgspec.structs.replace(order, proofs=(b"\1",)), market=False)


async def test_scripts_are_asked_about_an_exchange_with_the_matcher(
    matcher: Matcher, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def keep(
        trials: Iterator[AnyTransaction], order: Order, assets: object, *, blind: bool
    ) -> ScriptAnswer:
        assert blind
        asked.append((list(trials), order, assets))
        return ScriptAnswer()

    monkeypatch.setattr(node, "run_scripts", keep)
    order = make_order(BOB, Side.BUY, COIN, PRICE, pair=AssetPair(SMART, USD), fee=FEE + 400_000)
    await matcher.placing.place(order, market=False)
    (trial, least), about, assets = asked[0]
    assert (trial.payload.amount, least.payload.amount) == (COIN, COIN // PRICE)
    assert (least.payload.buy_matcher_fee, least.payload.sell_matcher_fee) == (0, 0)
    payload: Exchange = trial.payload
    assert (about, assets) == (order, {SMART})
    assert payload.buy_order == order
    assert payload.sell_order.sender_public_key == MATCHER.public_key
    assert trial.fee == 300_000 + 400_000


async def test_a_script_that_was_set_meanwhile_is_noticed(matcher: Matcher, node: FakeNode) -> None:
    await matcher.placing.place(make_order(ALICE, Side.SELL, COIN, PRICE), market=False)
    node.scripted.add(address_of(ALICE))
    node.script_answer = ScriptAnswer(ScriptFault.DENIED)
    node.update(changed=frozenset((address_of(ALICE),)))
    await asyncio.sleep(0.02)
    order = make_order(ALICE, Side.SELL, COIN, PRICE + 1)
    assert await refusal(matcher, order) is errors.ACCOUNT_SCRIPT_DENIED_ORDER


async def test_a_node_that_is_down_is_told(matcher: Matcher, node: FakeNode) -> None:
    node.down = True
    order = make_order(ALICE, Side.SELL, COIN, PRICE)
    assert await refusal(matcher, order) is errors.WAVES_NODE_CONNECTION_BROKEN
    node.down = False
    await matcher.placing.place(order, market=False)
    node.down = True
    # What rests can be cancelled all the same.
    await matcher.canceling.cancel(order.id, address_of(ALICE), CancelSource.REQUEST)
    node.update(changed=None)
    await asyncio.sleep(0.02)
    node.down = False
    node.balances[address_of(ALICE)] = {None: 5}
    node.update()
    await eventually_equal(lambda: matcher.queries.tradable(address_of(ALICE), PAIR), {None: 5})


async def test_orders_of_an_account_are_limited(tmp_path: Path, node: FakeNode) -> None:
    async with running(settings_in(tmp_path, max_active_orders=3), node) as matcher:
        orders = [make_order(ALICE, Side.SELL, COIN, PRICE + step) for step in range(4)]
        for order in orders[:3]:
            await matcher.placing.place(order, market=False)
        assert await refusal(matcher, orders[3]) is errors.ACTIVE_ORDERS_LIMIT_REACHED
        await matcher.canceling.cancel(orders[0].id, address_of(ALICE), CancelSource.REQUEST)
        await matcher.placing.place(orders[3], market=False)


async def test_a_price_mode_that_is_not_the_matchers_breaks_the_signature(
    matcher: Matcher,
) -> None:
    right = make_order(ALICE, Side.SELL, COIN, PRICE, version=4)
    fixed = msgspec.structs.replace(right, price_mode=PriceMode.FIXED_DECIMALS, proofs=())
    fixed = sign(build(fixed), ALICE.private_key)
    # True as a signature of what was sent, which is not what would be executed.
    for is_signed in (None, True):
        with pytest.raises(MatcherError) as refused:
            await matcher.placing.place(fixed, market=False, is_signed=is_signed)
        assert refused.value.kind is errors.ORDER_INVALID_SIGNATURE
        # A price of eight decimals of a pair with 8 and 2 is a millionth of that.
        words = (
            'mode fixedDecimals, a matcher takes assetDecimals: set priceMode to "assetDecimals"'
        )
        assert words in refused.value.message
    whole = msgspec.structs.replace(right, price_mode=PriceMode.DEFAULT, price=3 * 10**8, proofs=())
    with pytest.raises(MatcherError, match=r"mode default.*, and the price 300 before signing"):
        await matcher.placing.place(sign(build(whole), ALICE.private_key), market=False)
    await matcher.placing.place(right, market=False)


async def test_what_somebody_else_says_about_a_signature(matcher: Matcher, node: FakeNode) -> None:
    """It stands for the check of one signature, and for nothing else."""
    node.scripted.add(address_of(BOB))
    right = make_order(ALICE, Side.SELL, COIN, PRICE)
    forged = msgspec.structs.replace(right, proofs=(bytes(64),))
    twice = msgspec.structs.replace(right, proofs=right.proofs * 2)
    of_nobody = build(
        msgspec.structs.replace(
            make_order(ALICE, Side.SELL, COIN, PRICE, version=4), eip712_signature=bytes(65)
        )
    )
    assert of_nobody.sender_public_key == b""
    wrong = [(forged, None), (forged, False), (right, False), (twice, True), (of_nobody, True)]
    for order, is_signed in wrong:
        kind = await refusal(matcher, order, is_signed=is_signed)
        assert kind is errors.ORDER_INVALID_SIGNATURE, is_signed
    await matcher.placing.place(right, market=False, is_signed=True)
    scripted = make_order(BOB, Side.SELL, COIN, PRICE + 1)
    node.script_answer = ScriptAnswer(ScriptFault.DENIED)
    kind = await refusal(matcher, scripted, is_signed=True)
    assert kind is errors.ACCOUNT_SCRIPT_DENIED_ORDER
    node.script_answer = ScriptAnswer()
    await matcher.placing.place(scripted, market=False, is_signed=False)


async def test_versions_follow_the_chain(matcher: Matcher, node: FakeNode) -> None:
    assert matcher.queries.order_versions() == (1, 2, 3, 4)
    node.features.discard(Feature.RIDE_V6)
    node.height += 1
    node.tell(NodeUpdate(node._status()))
    await eventually(lambda: Feature.RIDE_V6 not in matcher.chain.features)
    assert matcher.queries.order_versions() == (1, 2, 3)
    order = make_order(ALICE, Side.SELL, COIN, PRICE, version=4)
    assert await refusal(matcher, order) is errors.ORDER_VERSION_UNSUPPORTED


async def test_deviations_look_at_the_book(tmp_path: Path, node: FakeNode) -> None:
    placement = PlacementSettings(
        b"",
        price_assets=(USD,),
        deviations=Deviations(max_price_profit=Decimal(10), max_price_loss=Decimal(10)),
    )
    settings = settings_in(tmp_path, trading=TradingSettings(placement=placement))
    async with running(settings, node) as matcher:
        await matcher.placing.place(make_order(ALICE, Side.BUY, COIN, 200), market=False)
        low = make_order(BOB, Side.SELL, COIN, 179)
        assert await refusal(matcher, low) is errors.DEVIANT_ORDER_PRICE
        await matcher.placing.place(make_order(BOB, Side.SELL, COIN, 181), market=False)


async def test_rates_fees_and_discount(tmp_path: Path, node: FakeNode) -> None:
    fees = CompositeFee(DynamicFee(FEE, FEE), discount=Discount(SMART, Decimal(50)))
    placement = PlacementSettings(b"", price_assets=(USD,))
    trading = TradingSettings(order_fees=((-1, fees),), placement=placement)
    settings = settings_in(tmp_path, trading=trading)
    async with running(settings, node) as matcher:
        assert matcher.rates.put(SMART, 2.0) is None
        with pytest.raises(MatcherError) as caught:
            matcher.rates.put(None, 2.0)
        assert caught.value.kind is errors.WAVES_IMMUTABLE_RATE
        order = make_order(ALICE, Side.SELL, COIN, PRICE, fee=FEE, fee_asset=SMART)
        assert await matcher.queries.minimum_fee(PAIR, Side.SELL, COIN, PRICE) == (
            (None, FEE),
            (SMART, FEE),
        )
        await matcher.placing.place(order, market=False)
        cheap = make_order(ALICE, Side.SELL, COIN, PRICE, fee=FEE - 1, fee_asset=SMART)
        assert await refusal(matcher, cheap) is errors.FEE_NOT_ENOUGH
        assert matcher.queries.account_fee() == 0
    async with running(settings, node) as matcher:
        assert matcher.rates.latest() == {None: 1.0, SMART: 2.0}
        assert matcher.rates.delete(SMART) == 2.0
        with pytest.raises(MatcherError) as caught:
            await matcher.queries.minimum_fee(PAIR, Side.SELL, COIN, PRICE)
        assert caught.value.kind is errors.RATE_NOT_FOUND


async def test_all_about_an_account(matcher: Matcher, node: FakeNode) -> None:
    node.leased[address_of(ALICE)] = 7 * COIN
    order = make_order(ALICE, Side.SELL, COIN, PRICE)
    await matcher.placing.place(order, market=False)
    report = await matcher.queries.report(address_of(ALICE))
    assert report.regular[None] == 10**6 * COIN
    assert report.leased_out == 7 * COIN
    assert report.reserved == {None: COIN + FEE}
    assert report.tradable[None] == 10**6 * COIN - 8 * COIN - FEE
    assert report.regular[SMART] == 10**15
    assert report.placement_queue == ()


async def test_accounts_with_nothing_at_stake_are_not_asked_for_again(
    matcher: Matcher, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = make_order(BOB, Side.SELL, COIN, PRICE)
    await matcher.placing.place(order, market=False)
    assert (await matcher.queries.tradable(address_of(ALICE), PAIR))[None] == 10**6 * COIN
    asked = []
    account = node.account

    async def count(address: Address, assets: object) -> AccountState:
        if address != matcher.address:
            asked.append(address)
        return await account(address, assets)  # type: ignore[arg-type]

    monkeypatch.setattr(node, "account", count)
    node.balances[address_of(ALICE)] = {None: 5}
    node.update(changed=None)
    await eventually(lambda: bool(asked))
    assert asked == [address_of(BOB)]
    assert await matcher.queries.tradable(address_of(ALICE), PAIR) == {None: 5}


async def test_an_account_stays_the_same_while_its_order_is_checked(
    matcher: Matcher, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = asyncio.Event()

    async def slow(_order_id: bytes) -> bool:
        await go_on.wait()
        return False

    monkeypatch.setattr(node, "was_executed", slow)
    order = make_order(ALICE, Side.SELL, COIN, PRICE)
    placing = asyncio.create_task(matcher.placing.place(order, market=False))
    await asyncio.sleep(0.01)
    node.update(changed=None)
    await asyncio.sleep(0.01)
    go_on.set()
    await placing
    assert matcher.queries.reserved(address_of(ALICE)) == {None: COIN + FEE}
