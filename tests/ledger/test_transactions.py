"""What a transaction leaves behind: balances, fees and sponsors, and nothing when it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from soliton.chain.addresses import Alias, address_text
from soliton.chain.values import DataEntry
from soliton.ledger.errors import BalanceErrors
from soliton.ledger.hashes import snapshot_entries
from soliton.ledger.state import ASSET_BALANCES, DATA, WAVES, Overlay
from soliton.ledger.transactions import apply_transaction
from tests.ledger.cases import (
    COIN,
    FEE,
    GOLD,
    HEIGHT,
    ME,
    SPONSOR,
    TIME,
    YOU,
    R,
    context_at,
    make,
    rules_of,
    state_of,
)


def changes_of(kind: str, rules: str = "devnet", **given: Any) -> Overlay:
    state = state_of(**given)
    context = context_at(HEIGHT, TIME, TIME - 1_000, rules_of(rules))
    return apply_transaction(make(kind, given), state, context).changes


def test_transfer() -> None:
    changes = changes_of("transfer", amount=COIN)
    assert changes.changes == {WAVES: {ME: 9 * COIN - FEE, YOU: COIN}}


def test_transfer_to_an_alias() -> None:
    changes = changes_of("transfer", amount=COIN, to=Alias(R, "known"))
    assert changes.changes == {WAVES: {ME: 9 * COIN - FEE, YOU: COIN}}


def test_transfer_to_oneself_costs_the_fee() -> None:
    assert changes_of("transfer", to=ME).changes == {WAVES: {ME: 10 * COIN - FEE}}


def test_an_account_whose_sum_is_zero_is_not_touched() -> None:
    """State hashes show what was written, so writing the same again would be another hash."""
    changes = changes_of("payment", "old", to=ME, amount=COIN)
    assert changes.changes == {WAVES: {ME: 10 * COIN - FEE}}
    changes = changes_of("transfer", to=ME, asset=GOLD, amount=5)
    assert changes.changes == {WAVES: {ME: 10 * COIN - FEE}}
    assert len(snapshot_entries(changes.changes)) == 1


def test_transfer_of_an_asset() -> None:
    changes = changes_of("transfer", asset=GOLD, amount=300).changes
    assert changes[ASSET_BALANCES] == {(ME, GOLD): 700, (YOU, GOLD): 300}
    assert changes[WAVES] == {ME: 10 * COIN - FEE}


def test_sponsored_fee() -> None:
    """The sender pays gold; its issuer gets the gold and pays coins in its place."""
    changes = changes_of("transfer", amount=COIN, fee_asset=GOLD, fee=12, sponsored=5).changes
    assert changes[WAVES] == {ME: 9 * COIN, YOU: COIN, SPONSOR: COIN - 240_000}
    assert changes[ASSET_BALANCES] == {(ME, GOLD): 988, (SPONSOR, GOLD): 12}


def test_fee_in_an_asset_before_sponsorship() -> None:
    changes = changes_of("transfer", "smart", fee_asset=GOLD, fee=12).changes
    assert changes[WAVES] == {ME: 9 * COIN, YOU: COIN}
    assert changes[ASSET_BALANCES] == {(ME, GOLD): 988}


def test_data() -> None:
    entries = (DataEntry("a", 1), DataEntry("b", None), DataEntry("c", "text"))
    changes = changes_of("data", version=2, entries=entries).changes
    assert changes[DATA] == {(ME, "a"): 1, (ME, "b"): None, (ME, "c"): "text"}
    assert changes[WAVES] == {ME: 10 * COIN - FEE}


def test_genesis() -> None:
    state = state_of()
    context = context_at(1, TIME, None, rules_of("devnet", 1))
    changes = apply_transaction(make("genesis", {}), state, context).changes
    assert changes.changes == {WAVES: {YOU: COIN}}


def test_the_id_is_recorded_and_nothing_below_is_touched() -> None:
    state = state_of()
    before = {table: dict(values) for table, values in state.tables.items()}
    transaction = make("transfer", {})
    context = context_at(HEIGHT, TIME, TIME, rules_of("devnet"))
    overlay = apply_transaction(transaction, state, context).changes
    assert overlay.transaction_height(transaction.id) == HEIGHT
    assert state.transaction_height(transaction.id) is None
    assert state.tables == before


# Rules, what the account has, and the text for it.
BALANCES = [
    (
        "devnet",
        {"lease_out": 10 * COIN},
        (
            "negative effective balance: {me}, old: (1000000000,LeaseBalance(0,1000000000)), "
            "new: (999900000,LeaseBalance(0,1000000000))"
        ),
    ),
    ("devnet", {"lease_out": 10 * COIN, "lease_in": 2 * COIN}, "{me} trying to spend leased money"),
    (
        "lax",
        {"amount": 11 * COIN},
        "negative waves balance: {me}, old: 1000000000, new: -100100000",
    ),
    (
        "lax",
        {"asset": GOLD, "amount": 1_001},
        (
            "negative asset balance: {me}, new portfolio: "
            "VectorMap(7xeSk1y3uibLNKmGvmbdyAVa9MfjNYiTZ2eb19chxKDp -> -1)"
        ),
    ),
]


@pytest.mark.parametrize(("rules", "given", "text"), BALANCES)
def test_balance_errors_name_the_account(rules: str, given: dict[str, int], text: str) -> None:
    with pytest.raises(BalanceErrors) as caught:
        changes_of("transfer", rules, **given)
    me = address_text(ME)
    assert caught.value.details == {me: text.format(me=me)}
