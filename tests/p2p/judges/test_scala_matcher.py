"""The Scala matcher on a node of ours: orders placed, matched, settled on the chain; scripts;
accounts without money; and what it does when the node goes away or goes back.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from soliton.client.account import Account
from soliton.client.errors import NodeRefused, OutcomeUnknown
from soliton.client.order import Order
from tests.p2p.judges.chain import CHAIN_ID, account
from tests.p2p.judges.exchange import (
    COIN,
    FEE,
    MATCHER,
    POOL,
    ScalaMatcher,
    Serving,
    trading,
    until,
)

pytestmark = pytest.mark.skipif(not MATCHER, reason="SOLITON_JUDGE_MATCHER names no matcher")

ALICE = Account(account(1), CHAIN_ID)
BOB = Account(account(2), CHAIN_ID)
SMART_FEE = FEE + 400_000
"""An exchange of an asset with a script costs so much more."""


def an_account(name: str) -> Account:
    return Account.from_account_seed(f"judges: {name}".encode(), CHAIN_ID)


def gold_of(node: Serving, **more: Any) -> str:
    return node.mined(ALICE.issue("Gold", 100_000 * COIN, decimals=8, **more))


def holdings(node: Serving, asset: str, *who: Account) -> list[tuple[int, int]]:
    """Coins and units of an asset of accounts."""
    return [(node.client.balance(each), node.client.balance(each, asset)) for each in who]


def changes(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(b[0] - a[0], b[1] - a[1]) for a, b in zip(before, after, strict=True)]


def knows_balances(node: Serving, matcher: ScalaMatcher, asset: str, *who: Account) -> bool:
    """Whether the matcher sees what the node has of accounts without open orders."""
    return all(
        matcher.tradable(each, (asset, None))
        == {asset: node.client.balance(each, asset), "WAVES": node.client.balance(each)}
        for each in who
    )


def filled(matcher: ScalaMatcher, order: Order) -> None:
    until(lambda: matcher.is_filled(order), f"{order.id} as a filled order")


def settled(matcher: ScalaMatcher, order: Order, count: int = 1) -> list[str]:
    """The exchanges of an order, when there are so many, all below the last block."""
    until(lambda: len(matcher.exchanges(order)) == count, f"exchanges of {order.id}")
    return [each["id"] for each in matcher.ask(f"/matcher/transactions/{order.id}")]


def test_orders_of_every_version_are_matched_and_settled(tmp_path: Path) -> None:
    with trading(tmp_path) as (node, matcher):
        assert matcher.client.public_key() == matcher.account.public_key
        gold = gold_of(node)
        pair = (gold, None)
        for version in (1, 2, 3, 4):
            # The only price mode of version 4 that this matcher knows.
            how: dict[str, Any] = {"price_mode": "assetDecimals"} if version == 4 else {}
            how["version"] = version
            before = holdings(node, gold, ALICE, BOB, matcher.account)
            sold = matcher.order(ALICE, "sell", 10 * COIN, 2 * COIN, pair, **how)
            matcher.client.place(sold)
            wanted = [
                matcher.order(BOB, "buy", n * COIN, 25 * COIN // 10, pair, **how) for n in (4, 6)
            ]
            for each in wanted:
                matcher.client.place(each)
            for order in (sold, *wanted):
                filled(matcher, order)
            for name in settled(matcher, sold, 2):
                found = node.ask(f"/transactions/info/{name}")
                assert found["type"] == 7
                assert found["applicationStatus"] == "succeeded"
                assert found["senderPublicKey"] == matcher.account.public_key
                assert sold.id in {found["order1"]["id"], found["order2"]["id"]}
                assert found["price"] == 2 * COIN
            after = holdings(node, gold, ALICE, BOB, matcher.account)
            # What the seller asked for counts; each order pays its fee, each exchange costs one.
            assert changes(before, after) == [
                (20 * COIN - FEE, -10 * COIN),
                (-20 * COIN - 2 * FEE, 10 * COIN),
                (3 * FEE - 2 * FEE, 0),
            ]
            until(lambda: knows_balances(node, matcher, gold, ALICE, BOB), "the same balances")


def test_who_has_too_little_is_refused_and_who_spends_it_loses_the_order(tmp_path: Path) -> None:
    carol, dan = an_account("carol"), an_account("dan")
    with trading(tmp_path) as (node, matcher):
        gold = gold_of(node)
        pair = (gold, None)
        node.mined(ALICE.transfer(carol, 10 * COIN))
        with pytest.raises(NodeRefused) as refused:
            matcher.client.place(matcher.order(dan, "buy", COIN, COIN, pair))
        assert refused.value.code == 3147270, refused.value
        with pytest.raises(NodeRefused) as refused:
            matcher.client.place(matcher.order(carol, "buy", 11 * COIN, COIN, pair))
        assert refused.value.code == 3147270, refused.value
        order = matcher.order(carol, "buy", 8 * COIN, COIN, pair)
        matcher.client.place(order)
        assert matcher.client.order_status(order).status == "Accepted"
        node.client.send(carol.transfer(ALICE, 5 * COIN))
        until(lambda: matcher.client.order_status(order).status == "Cancelled", "a cancelled order")
        # A lease is seen as well.
        node.mined(ALICE.transfer(carol, 10 * COIN))
        order = matcher.order(carol, "buy", 8 * COIN, COIN, pair)
        until(lambda: matcher.tradable(carol, pair)["WAVES"] >= 14 * COIN, "new coins")
        matcher.client.place(order)
        node.client.send(carol.lease(ALICE, 10 * COIN))
        until(lambda: matcher.client.order_status(order).status == "Cancelled", "a cancelled order")
        found = matcher.ask(f"/matcher/debug/address/{POOL.address}/check")
        assert found == {"matcher": True, "blockchain": True}
        assert not matcher.ask(f"/matcher/debug/address/{carol.address}/check")["blockchain"]


HEAD = "{-# STDLIB_VERSION 5 #-}\n{-# CONTENT_TYPE EXPRESSION #-}\n{-# SCRIPT_TYPE %s #-}\n"
SIGNED = "sigVerify({0}.bodyBytes, {0}.proofs[0], {0}.senderPublicKey)"
OF_ACCOUNT = HEAD % "ACCOUNT" + (
    "match tx { case o: Order => %s\n"
    f"case t: TransferTransaction => {SIGNED.format('t')}\n"
    "case _ => true }"
)
OF_ASSET = HEAD % "ASSET" + (
    "match tx { case e: ExchangeTransaction => e.amount <= 500000000\ncase _ => true }"
)
SELLER, EYE, THROWER, ODD = map(an_account, ("seller", "eye", "thrower", "odd"))
SCRIPTS = {
    SELLER: SIGNED.format("o") + " && o.amount <= 500000000",
    EYE: "height > 0",
    THROWER: 'throw("no orders today")',
    ODD: "true",
}


def test_scripts_of_accounts_and_assets_decide(tmp_path: Path) -> None:
    with trading(tmp_path) as (node, matcher):
        gold = gold_of(node)
        script = node.client.compile(OF_ASSET).script
        smart = node.mined(ALICE.issue("Smart", 1_000 * COIN, decimals=8, script=script))
        for each, text in SCRIPTS.items():
            node.mined(ALICE.transfer(each, 100 * COIN))
            node.mined(ALICE.transfer(each, 100 * COIN, gold))
            node.mined(each.set_script(node.client.compile(OF_ACCOUNT % text).script))

        def refusal(who: Account, amount: int, asset: str = gold, fee: int = FEE) -> NodeRefused:
            order = matcher.order(who, "sell", amount, COIN, (asset, None), matcher_fee=fee)
            with pytest.raises(NodeRefused) as refused:
                matcher.client.place(order)
            return refused.value

        assert refusal(SELLER, 6 * COIN).code == 3147522
        assert refusal(ALICE, 6 * COIN, smart, SMART_FEE).code == 11536130
        for who, words in (
            (EYE, "An access to the blockchain.height is denied on DEX"),
            (THROWER, "no orders today"),
        ):
            told = refusal(who, COIN)
            assert told.code == 3147520
            assert told.message.endswith(words)
        for who, asset, fee in ((SELLER, gold, FEE), (ODD, gold, FEE), (ALICE, smart, SMART_FEE)):
            before = holdings(node, asset, who, BOB)
            pair = (asset, None)
            sold = matcher.order(who, "sell", 5 * COIN, COIN, pair, matcher_fee=fee)
            wish = matcher.order(BOB, "buy", 5 * COIN, COIN, pair, matcher_fee=fee)
            matcher.client.place(sold)
            matcher.client.place(wish)
            settled(matcher, sold)
            assert changes(before, holdings(node, asset, who, BOB)) == [
                (5 * COIN - fee, -5 * COIN),
                (-5 * COIN - fee, 5 * COIN),
            ]


def test_it_goes_on_when_the_node_was_away(tmp_path: Path) -> None:
    with trading(tmp_path) as (node, matcher):
        gold = gold_of(node)
        trade = trades(node, matcher, gold)
        trade(3)
        for kill in (False, True):
            resting = matcher.order(ALICE, "sell", COIN, 3 * COIN, (gold, None))
            matcher.client.place(resting)
            node.stop(kill=kill)
            wish = matcher.order(BOB, "buy", COIN, 3 * COIN, (gold, None))
            try:
                matcher.client.place(wish)
            except OutcomeUnknown as error:
                print("while the node is away:", error)
            node.start()
            until(matcher.works, "a matcher that follows")
            if matcher.client.order_status(wish).status == "NotFound":
                wish = matcher.order(BOB, "buy", COIN, 3 * COIN, (gold, None))
                matcher.client.place(wish)
            settled(matcher, resting)
            trade(3)
        # The matcher itself goes and comes back: what rests is still there.
        resting = matcher.order(ALICE, "sell", 2 * COIN, 3 * COIN, (gold, None))
        matcher.client.place(resting)
        matcher.stop()
        node.mined(BOB.transfer(ALICE, COIN))
        matcher.start()
        wish = matcher.order(BOB, "buy", 2 * COIN, 3 * COIN, (gold, None))
        matcher.client.place(wish)
        settled(matcher, wish)
        trade(3)


@pytest.mark.parametrize("keeps", [True, False])
def test_it_follows_a_rollback(tmp_path: Path, keeps: bool) -> None:
    with trading(tmp_path) as (node, matcher):
        gold = gold_of(node)
        trade = trades(node, matcher, gold)
        trade(3)
        height = node.height()
        until(lambda: node.height() > height + 1, "blocks")
        base = node.height() - 1
        before = holdings(node, gold, ALICE, BOB)
        orders = trade(3)
        ids = [each for order in orders for each in settled(matcher, order)]
        node.roll_back(base, keeps=keeps)
        until(lambda: node.height() > base + 3, "blocks on the other branch")
        until(matcher.works, "a matcher that follows")
        if keeps:
            until(lambda: all(map(node.has, ids)), "the exchanges again")
        else:
            assert holdings(node, gold, ALICE, BOB) == before
        until(lambda: knows_balances(node, matcher, gold, ALICE, BOB), "the same balances")
        trade(3)
        until(lambda: knows_balances(node, matcher, gold, ALICE, BOB), "the same balances")


def trades(node: Serving, matcher: ScalaMatcher, gold: str) -> Callable[[int], list[Order]]:
    """What trades so many times, at random, until all of it is on the chain."""
    chosen = random.Random(7)
    pair = (gold, None)

    def trade(count: int) -> list[Order]:
        before = holdings(node, gold, ALICE, BOB)
        want = [[0, 0], [0, 0]]
        sold: list[Order] = []
        for _ in range(count):
            amount, price = chosen.randrange(1, 5) * COIN, chosen.randrange(1, 5) * COIN
            sides = [(ALICE, "sell", 0, 1), (BOB, "buy", 1, -1)]
            chosen.shuffle(sides)
            for who, side, place, sign in sides:
                order = matcher.order(who, side, amount, price, pair)
                matcher.client.place(order)
                want[place][0] += sign * amount * price // COIN - FEE
                want[place][1] -= sign * amount
                if side == "sell":
                    sold.append(order)
        for order in sold:
            filled(matcher, order)
            settled(matcher, order)
        after = holdings(node, gold, ALICE, BOB)
        assert changes(before, after) == [tuple(each) for each in want]
        until(lambda: knows_balances(node, matcher, gold, ALICE, BOB), "the same balances")
        return sold

    return trade
