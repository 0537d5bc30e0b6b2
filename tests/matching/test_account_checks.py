"""What an account may place: signatures, refusals of scripts, numbers of orders, balances."""

from __future__ import annotations

import re

import msgspec
import pytest

from soliton.chain import orders
from soliton.chain.orders import Order, PriceMode, Side, signature_is_valid
from soliton.crypto import curve25519, keys
from soliton.matching.account_checks import (
    ScriptFault,
    account_script_refusal,
    asset_script_refusal,
    available_for_spending,
    check_account,
    check_order_count,
    check_script_version,
    duplicate,
    forged,
    signature_to_verify,
)
from soliton.matching.book import LevelTotal
from soliton.matching.errors import MatcherError
from soliton.matching.model import limit_order, market_order
from soliton.matching.pairs import Asset
from soliton.matching.placement import PlacementSettings
from tests.matching.makers import AMOUNT_ASSET, FEE_ASSET, MATCHER, PRICE_ASSET, make_order
from tests.matching.test_validation import ASSETS, COIN, outcome

# --- signatures and scripts -----------------------------------------------------------------------


def test_signatures() -> None:
    pair = keys.key_pair("somebody")
    draft = orders.build(
        msgspec.structs.replace(
            make_order(Side.BUY, COIN, 200), sender_public_key=pair.public_key, proofs=()
        )
    )
    signed = orders.sign(draft, pair.private_key)
    claim = signature_to_verify(signed)
    assert claim is not None
    assert curve25519.verify(*claim)
    twice = msgspec.structs.replace(signed, proofs=signed.proofs * 2)
    for wrong in (draft, twice):
        found = outcome(lambda order=wrong: signature_to_verify(order))
        assert "must have exactly 1 proof" in found
    keyless = msgspec.structs.replace(signed, sender_public_key=b"k" * 64)
    assert "Proof doesn't validate" in outcome(lambda: signature_to_verify(keyless))
    assert "Proof doesn't validate" in str(forged(signed))


def test_an_order_of_a_wallet() -> None:
    wallet = msgspec.structs.replace(
        make_order(Side.BUY, COIN, 200, version=4),
        eip712_signature=b"s" * 65,
        sender_public_key=b"k" * 64,
        proofs=(),
    )
    assert signature_is_valid(wallet)
    assert signature_to_verify(wallet) is None
    assert wallet.price_mode is PriceMode.ASSET_DECIMALS


def _sold(version: int) -> Order:
    return make_order(Side.SELL, COIN, 200, version=version)


def test_scripts_need_proofs() -> None:
    check_script_version(_sold(2))
    found = outcome(lambda: check_script_version(_sold(1)))
    assert found.startswith("AccountNotSupportOrderVersion The account 3F")
    assert found.endswith("requires the version >= 2, but given 1")


@pytest.mark.parametrize(
    ("fault", "account_code", "asset_code", "words"),
    [
        (ScriptFault.DENIED, 3_147_522, 11_536_130, "rejected the order"),
        (ScriptFault.RETURNED_ERROR, 3_147_520, 11_536_128, "returned the error: why"),
        (ScriptFault.UNEXPECTED_RESULT, 3_147_524, 11_536_132, "The returned object is 'why'"),
        (ScriptFault.EXCEPTION, 3_147_521, 11_536_129, "the text is: why"),
    ],
)
def test_refusals_of_scripts(
    fault: ScriptFault, account_code: int, asset_code: int, words: str
) -> None:
    errors = (
        account_script_refusal(_sold(2), fault, "why"),
        asset_script_refusal(FEE_ASSET, fault, "why"),
    )
    assert [error.code for error in errors] == [account_code, asset_code]
    assert all(error.message.endswith(words) for error in errors)


# --- the account ----------------------------------------------------------------------------------

ACCOUNTS = """
buy 100 @200 fee=5 paid=native | PRICE 200 native 5 | ok
buy 100 @200 fee=5 paid=native | PRICE 199 native 5 | BalanceNotEnough Not enough tradable balance.
buy 100 @200 fee=5 paid=native | PRICE 200 native 4 | BalanceNotEnough
buy 100 @200 fee=5 paid=PRICE | PRICE 205 | ok
buy 100 @200 fee=5 paid=PRICE | PRICE 204 | BalanceNotEnough Not enough tradable balance. The order
buy 100 @200 fee=5 paid=AMOUNT | PRICE 200 | BalanceNotEnough
sell 100 @200 fee=5 paid=PRICE | AMOUNT 10000000000 | BalanceNotEnough
sell 100 @200 fee=5 paid=AMOUNT | AMOUNT 10000000005 | ok
sell 100 @200 fee=5 paid=AMOUNT | AMOUNT 10000000004 | BalanceNotEnough
market buy 100 @200 fee=5 paid=native | PRICE 1 native 5 | ok
market buy 100 @200 fee=5 paid=native | PRICE 0 native 5 | BalanceNotEnough Not enough tradable bala
market buy 100 @200 fee=5 paid=PRICE | PRICE 6 | ok
market buy 100 @200 fee=5 paid=PRICE | PRICE 5 | BalanceNotEnough
"""


@pytest.mark.parametrize("row", ACCOUNTS.strip().splitlines())
def test_balances(row: str) -> None:
    offer, balance, expected = (cell.strip() for cell in row.split(" | "))
    names = {"PRICE": PRICE_ASSET, "AMOUNT": AMOUNT_ASSET, "native": None}
    match = re.fullmatch(r"(market )?(\w+) (\d+) @(\d+) fee=(\d+) paid=(\w+)", offer)
    assert match is not None
    market, side, amount, price, fee, paid = match.groups()
    order = make_order(
        Side[side.upper()],
        int(amount) * COIN,
        int(price) // 100,
        fee=int(fee),
        fee_asset=names[paid],
    )
    words = balance.split()
    has = {names[asset]: int(units) for asset, units in zip(words[::2], words[1::2], strict=True)}
    active = market_order(order, 1) if market else limit_order(order)
    found = outcome(lambda: check_account(active, lambda asset: has.get(asset, 0), (), ASSETS))
    assert found == "ok" if expected == "ok" else found.startswith(expected), found


def test_what_a_refusal_for_balance_says() -> None:
    order = make_order(Side.SELL, COIN, 200, fee=300_000)
    with pytest.raises(MatcherError) as caught:
        check_account(limit_order(order), lambda _: 5, (), ASSETS)
    params = caught.value.to_json()["params"]
    assert params["required"]["WAVES"] == "0.003"
    assert params["actual"]["WAVES"] == "0.00000005"
    assert len(params["required"]) == 2


@pytest.mark.parametrize(
    ("side", "price", "levels", "expected"),
    [
        (Side.BUY, 200, ((200, COIN),), "ok"),
        (Side.BUY, 200, ((199, COIN // 2), (200, COIN)), "ok"),
        (Side.BUY, 200, ((199, COIN // 2), (201, COIN)), "low"),
        (Side.BUY, 200, ((199, COIN), (201, COIN)), "ok"),
        (Side.BUY, 200, ((199, 5),), "ok"),
        (Side.BUY, 200, (), "ok"),
        (Side.SELL, 200, ((200, COIN),), "ok"),
        (Side.SELL, 200, ((201, COIN // 2), (199, COIN)), "high"),
        (Side.SELL, 200, ((201, COIN), (199, COIN)), "ok"),
    ],
)
def test_market_orders_that_do_not_reach(
    side: Side, price: int, levels: tuple[tuple[int, int], ...], expected: str
) -> None:
    active = market_order(make_order(side, COIN, price), COIN)
    depth = [LevelTotal(*level) for level in levels]
    found = outcome(lambda: check_account(active, lambda _: 10**12, depth, ASSETS))
    if expected == "ok":
        assert found == "ok"
    else:
        assert found == (
            f"InvalidMarketOrderPrice Price of the {side.name.lower()} market order (2) is too "
            f"{expected} for its full execution with the current market state"
        )


def test_of_a_deep_book_only_the_levels_that_are_needed_are_looked_at() -> None:
    active = market_order(make_order(Side.BUY, COIN, 200), COIN)
    depth = iter([LevelTotal(190, COIN // 2), LevelTotal(195, COIN), LevelTotal(200, COIN)])
    check_account(active, lambda _: 10**12, depth, ASSETS)
    assert next(depth).price == 200


@pytest.mark.parametrize(
    ("side", "paid", "tradable", "available"),
    [
        (Side.BUY, None, 10**9, 200),
        (Side.BUY, None, 150, 150),
        (Side.BUY, PRICE_ASSET, 10**9, 207),
        (Side.SELL, None, 10**9, COIN),
        (Side.SELL, AMOUNT_ASSET, 10**9, COIN + 7),
        (Side.SELL, PRICE_ASSET, 5, 5),
    ],
)
def test_what_a_market_order_may_spend(
    side: Side, paid: Asset, tradable: int, available: int
) -> None:
    order = make_order(side, COIN, 200, fee=7, fee_asset=paid)
    assert available_for_spending(order, lambda _: tradable) == available


def test_the_number_of_orders() -> None:
    settings = PlacementSettings(MATCHER, max_active_orders=3)
    check_order_count(2, settings)
    found = outcome(lambda: check_order_count(3, settings))
    assert found == "ActiveOrdersLimitReached The limit of 3 active orders has been reached"


def test_duplicates() -> None:
    error = duplicate(make_order(Side.SELL, COIN, 200))
    assert error.code == 3_148_040
    assert error.message.endswith("has already been placed")
