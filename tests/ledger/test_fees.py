"""Minimum fees of every type on every family of networks, and what raises them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from soliton.chain import networks
from soliton.ledger import fees
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.rules_at import RuleBook, Rules
from soliton.ledger.state import ACCOUNT_SCRIPTS
from tests.ledger import cases
from tests.ledger.cases import ME, YOU, rows
from tests.ledger.rules import kinds
from tests.ledger.rules.kinds import GOLD, script

COIN = 100_000_000
ALL = range(1, 24)


def rules_of(family: str, features: range) -> Rules:
    network = networks.load(
        {"waves": "waves-mainnet", "zbs": "zbs-mainnet", "tn": "tn-mainnet"}[family]
    )
    functionality = msgspec.structs.replace(
        network.functionality, pre_activated_features=dict.fromkeys(features, -20_000)
    )
    # Accounts of tests are devnet's, whatever the fees are.
    network = msgspec.structs.replace(network, chain_id=cases.R, functionality=functionality)
    return RuleBook(network).at(2_000_000)


def least(kind: str, rules: Rules, given: dict[str, Any]) -> int:
    make = cases.make if kind in ("transfer", "data") else kinds.make
    return fees.minimum_fee(make(kind, given), kinds.state_of(given), rules).waves


# Kind, changes, and the least fee in coins: waves, zbs, tn; before and after features 15 and 17.
TABLE = """
transfer          |                        | 0.001   0.05   0.02
data              |                        | 0.001   0.03   0.02
issue             |                        | 1       500    1000
issue             | quantity=1, decimals=0, reissuable=False | 0.001 500 0.1
reissue           |                        | 1       200    1000
burn              |                        | 0.001   5      0.02
exchange          |                        | 0.003   0.2    0.04
lease             |                        | 0.001   5      0.02
lease_cancel      |                        | 0.001   1      0.02
create_alias      |                        | 0.001   10     10
mass_transfer     | to=()                  | 0.001   0.05   0.02
mass_transfer     | to=((YOU, 1),)         | 0.002   0.051  0.04
mass_transfer     | to=((YOU, 1),) * 2     | 0.002   0.051  0.04
mass_transfer     | to=((YOU, 1),) * 3     | 0.003   0.052  0.06
mass_transfer     | to=((YOU, 1),) * 100   | 0.051   0.1    1.02
set_script        |                        | 0.01    10     1
sponsor_fee       |                        | 1       50     10
set_asset_script  |                        | 1       10     1.04
invoke_script     |                        | 0.005   0.1    0.06
lease             | mine=TRUE              | 0.005   5.01   0.06
burn              | asset=SMART            | 0.005   5.01   0.06
burn              | asset=SMART, mine=TRUE | 0.009   5.02   0.1
exchange          | base=SMART             | 0.007   0.21   0.08
exchange          | base=SMART, quote=GOLD | 0.007   0.21   0.08
invoke_script     | payments=((1, SMART),) * 2 | 0.013 0.12 0.14
"""

LATER = """
reissue           |                        | 0.001
sponsor_fee       |                        | 0.001
set_script        |                        | 0.001
set_script        | code=script(size=1024) | 0.001
set_script        | code=script(size=1025) | 0.002
update_asset_info |                        | 0.001
invoke_script     | payments=((1, SMART),) | 0.005
ethereum          |                        | 0.001
ethereum          | token=SMART[:20]       | 0.005
ethereum          | data=b"call"           | 0.005
lease             | mine=script()          | 0.005
"""


def wavelets(coins: str) -> int:
    return round(float(coins) * COIN)


@pytest.mark.parametrize(("kind", "changes", "expected"), rows(TABLE))
def test_families(kind: str, changes: str, expected: str) -> None:
    given = eval(f"dict({changes})", dict(kinds.NAMES))
    found = [
        least(kind, rules_of(family, range(1, 15)), given) for family in ("waves", "zbs", "tn")
    ]
    assert found == [wavelets(coins) for coins in expected.split()]


@pytest.mark.parametrize(("kind", "changes", "expected"), rows(LATER))
def test_later_features(kind: str, changes: str, expected: str) -> None:
    given = eval(f"dict({changes})", dict(kinds.NAMES))
    assert least(kind, rules_of("waves", ALL), given) == wavelets(expected)


def test_verifiers_that_are_free() -> None:
    given = {"mine": script()}
    state = kinds.state_of(given)
    transaction = kinds.make("lease", given)
    for complexity, expected in ((200, 100_000), (201, 500_000)):
        old = state.get(ACCOUNT_SCRIPTS, ME)
        assert old is not None
        state.put(ACCOUNT_SCRIPTS, ME, old._replace(verifier_complexity=complexity))
        found = fees.minimum_fee(transaction, state, rules_of("waves", range(1, 17)))
        assert found.waves == expected
        assert (
            fees.minimum_fee(transaction, state, rules_of("waves", range(1, 16))).waves == 500_000
        )


@pytest.mark.parametrize(
    ("family", "sponsored", "expected"),
    [("waves", 7, 7), ("waves", 1, 1), ("tn", 3, 3), ("zbs", 2, 100)],
)
def test_fee_in_an_asset(family: str, sponsored: int, expected: int) -> None:
    given = {"fee_asset": GOLD, "sponsored": sponsored, "to": YOU}
    state = kinds.state_of(given)
    found = fees.minimum_fee(cases.make("transfer", given), state, rules_of(family, range(1, 15)))
    assert found.amount == expected


def test_words_name_the_coin() -> None:
    transaction = kinds.make("burn", {"fee": 1})
    for family, coin in (("waves", "WAVES"), ("zbs", "ZBS"), ("tn", "TN")):
        with pytest.raises(TransactionRejected, match=rf"\(1 in {coin}\).*[0-9] {coin}\.$"):
            fees.check_fee(transaction, kinds.state_of({}), rules_of(family, range(1, 15)))


def test_any_fee_is_enough_on_young_turtle_network() -> None:
    rules = msgspec.structs.replace(rules_of("tn", range(1, 15)), minimum_fees_enforced=False)
    fees.check_fee(kinds.make("burn", {"fee": 1}), kinds.state_of({}), rules)
