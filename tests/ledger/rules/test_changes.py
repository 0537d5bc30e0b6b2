"""What transactions that apply write: which tables, and with which values."""

from __future__ import annotations

from typing import Any

import pytest

from soliton.crypto.curve25519 import SignedMessage
from soliton.ledger.state import (
    ACCOUNT_SCRIPTS,
    ALIASES,
    ASSET_BALANCES,
    ASSET_NAMES,
    ASSET_SCRIPTS,
    ASSET_VOLUMES,
    ASSETS,
    ERC20,
    LEASE_INFO,
    LEASE_STATES,
    LEASES,
    ORDER_FILLS,
    SPONSORSHIPS,
    WAVES,
    AccountScript,
    AssetName,
    AssetVolume,
    LeaseBalance,
    LeaseInfo,
    LeaseState,
    OrderFill,
    Status,
    Table,
)
from soliton.parallel import threads
from tests.ledger.cases import COIN, FEE, HEIGHT, ISSUER, ME, OTHER, SENDER, SPONSOR, YOU
from tests.ledger.rules import kinds
from tests.ledger.rules.kinds import ENDED_ID, FOREIGN_ID, GOLD, LEASE_ID, script


def written(kind: str, rules: str = "devnet", **given: Any) -> dict[Table[Any, Any], Any]:
    return kinds.apply(kind, rules, given).changes.changes


def test_lease() -> None:
    changes = written("lease", amount=7)
    lease_id = kinds.make("lease", {"amount": 7}).id
    assert changes == {
        LEASE_INFO: {lease_id: LeaseInfo(SENDER.public_key, YOU, 7, lease_id, HEIGHT)},
        LEASE_STATES: {lease_id: LeaseState(True, 0, b"")},
        LEASES: {ME: LeaseBalance(0, COIN + 7), YOU: LeaseBalance(2 * COIN + 7, 0)},
        WAVES: {ME: 10 * COIN - FEE},
    }


def test_lease_cancel() -> None:
    changes = written("lease_cancel", lease=LEASE_ID)
    transaction_id = kinds.make("lease_cancel", {}).id
    assert changes == {
        LEASE_STATES: {LEASE_ID: LeaseState(False, HEIGHT, transaction_id)},
        LEASES: {ME: LeaseBalance(0, 0), YOU: LeaseBalance(COIN, 0)},
        WAVES: {ME: 10 * COIN - FEE},
    }


@pytest.mark.parametrize("lease_id", [ENDED_ID, FOREIGN_ID])
def test_early_cancels_take_from_the_canceller(lease_id: bytes) -> None:
    changes = written("lease_cancel", "lax cancel", lease=lease_id)
    assert changes[LEASES] == {ME: LeaseBalance(0, 0), YOU: LeaseBalance(COIN, 0)}


def test_aliases_move_to_who_takes_them_later() -> None:
    assert written("create_alias", "old", name="known")[ALIASES] == {"known": ME}


def test_mass_transfer_leaves_out_what_stays() -> None:
    changes = written(
        "mass_transfer", asset=GOLD, to=((ME, 5), (YOU, 0), (SPONSOR, 3)), fee=3 * FEE
    )
    assert changes[ASSET_BALANCES] == {(SPONSOR, GOLD): 1_003, (ME, GOLD): 997}
    alone = written("mass_transfer", asset=GOLD, to=((ME, 5),))
    assert ASSET_BALANCES not in alone


def test_issue() -> None:
    given: dict[str, Any] = {"quantity": 1, "decimals": 0, "reissuable": False}
    asset_id = kinds.make("issue", given).id
    changes = written("issue", **given)
    info = changes[ASSETS][asset_id]
    assert (info.issuer, info.decimals, info.nft) == (SENDER.public_key, 0, True)
    assert (info.origin, info.height, info.sequence) == (asset_id, HEIGHT, 1)
    assert changes[ASSET_VOLUMES] == {asset_id: AssetVolume(False, 1)}
    assert changes[ASSET_NAMES] == {asset_id: AssetName(b"name", b"", HEIGHT)}
    assert changes[ASSET_SCRIPTS] == {asset_id: None}
    assert changes[ERC20] == {asset_id[:20]: asset_id}
    assert changes[ASSET_BALANCES] == {(ME, asset_id): 1}
    assert not written("issue", "dapps", **given)[ASSETS][asset_id].nft


@pytest.mark.parametrize(
    ("old", "asked", "new"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_reissue_cannot_bring_back_what_was_given_up(old: bool, asked: bool, new: bool) -> None:
    changes = written(
        "reissue", "lax cancel", volume=AssetVolume(old, 10), quantity=5, reissuable=asked
    )
    assert changes[ASSET_VOLUMES] == {GOLD: AssetVolume(new, 15)}


def test_burn_of_nothing() -> None:
    changes = written("burn", quantity=0)
    assert changes[ASSET_VOLUMES] == {GOLD: AssetVolume(True, 10_000)}
    assert ASSET_BALANCES not in changes


def test_sponsorship_ends_with_none() -> None:
    assert written("sponsor_fee", min_fee=None, sponsored=5)[SPONSORSHIPS] == {GOLD: 0}


def test_script_of_an_account_without_one() -> None:
    changes = written("set_script")
    assert changes[ACCOUNT_SCRIPTS] == {ME: AccountScript(SENDER.public_key, b"", 0, {})}


def test_sponsor_pays_for_a_call() -> None:
    changes = written(
        "invoke_script",
        theirs=script(dapp=True),
        to=SPONSOR,
        key=OTHER,
        fee_asset=GOLD,
        sponsored=1,
        fee=5,
    )
    assert changes[ASSET_BALANCES] == {(YOU, GOLD): 995, (ME, GOLD): 1_005}
    assert changes[WAVES] == {ME: 10 * COIN - 5 * FEE}


def test_the_sponsor_pays_for_a_failed_call_even_before_sponsorship() -> None:
    """Source: wavesplatform/Waves
    ``node/src/main/scala/com/wavesplatform/state/diffs/TransactionDiffer.scala``
    (``feePortfolios``).
    """
    given = {"yours": script(4, "fail", 1_001, dapp=True), "fee_asset": GOLD, "sponsored": 1}
    applied = kinds.apply("invoke_script", "unsponsored", {**given, "fee": 5, "key": ISSUER})
    assert applied.status is Status.FAILED
    assert applied.changes.changes[ASSET_BALANCES] == {(SPONSOR, GOLD): 995, (ME, GOLD): 1_005}
    assert applied.changes.changes[WAVES] == {ME: 10 * COIN - 5 * FEE}


def test_renaming_for_an_asset_costs_the_sponsor_nothing() -> None:
    changes = written("update_asset_info", "calls", fee_asset=GOLD, sponsored=1, fee=5)
    assert changes[ASSET_BALANCES] == {(ME, GOLD): 995}
    assert WAVES not in changes


def test_exchange() -> None:
    given: dict[str, Any] = {"offer": 200, "buy_fee": 150_000, "sell_fee": 1, "buy_filled": (50, 7)}
    buy, sell = kinds.make("exchange", given).payload.orders
    changes = written("exchange", **given)
    assert changes[ORDER_FILLS] == {buy.id: OrderFill(150, 150_007), sell.id: OrderFill(100, 1)}
    assert changes[ASSET_BALANCES] == {(YOU, GOLD): 1_100, (SPONSOR, GOLD): 900}
    assert changes[WAVES] == {
        YOU: 10 * COIN - 100 - 150_000,
        SPONSOR: 10 * COIN + 100 - 1,
        ME: 10 * COIN - 300_000 + 150_001,
    }


def test_price_amount_is_cut_off() -> None:
    changes = written("exchange", price=COIN - 1, sell_limit=1, amount=3, fees=1)
    assert changes[WAVES][YOU] == 10 * COIN - 2 - 1


def test_failed_exchange_costs_the_matcher_its_fee() -> None:
    given = {"base": kinds.SMART, "fee": 700_000, "smart_code": script(verdict="no")}
    applied = kinds.apply("exchange", "v5", given)
    assert applied.status is Status.FAILED
    assert applied.complexity == 10
    assert applied.changes.changes == {WAVES: {ME: 10 * COIN - 700_000}}
    assert len(applied.changes.transaction_ids) == 1


def test_complexities_add_up() -> None:
    given = {
        "version": 2,
        "orders": 2,
        "base": kinds.SMART,
        "fee": 11 * FEE,
        "mine": script(4, "yes", 100),
        "yours": script(4, "yes", 20),
        "theirs": script(4, "yes", 3),
    }
    assert kinds.apply("exchange", "devnet", given).complexity == 100 + 20 + 3 + 10


def unverified(kind: str, **given: Any) -> list[SignedMessage]:
    """The signatures that are left to be verified."""
    messages: list[SignedMessage] = []
    kinds.apply(kind, "devnet", given, messages)
    return messages


def test_signatures_left_to_the_caller() -> None:
    assert [key for key, _, _ in unverified("lease")] == [SENDER.public_key]
    given = {"version": 3, "orders": 4, "buy_wallet": True}
    messages = unverified("exchange", **given)
    exchange = kinds.make("exchange", given)
    assert [key for key, _, _ in messages] == [
        SENDER.public_key,
        exchange.payload.sell_order.sender_public_key,
    ]
    assert threads.verify_many(messages) == [True, True]


def test_nothing_is_left_where_scripts_or_wallets_sign() -> None:
    assert unverified("ethereum") == []
    assert unverified("lease", version=2, fee=500_000, mine=script(4, "yes", 100)) == []
