"""Payments: every refusal."""

from __future__ import annotations

import pytest

from tests.ledger.cases import check, rows

TABLE = """
old    | | ok
old    | fee=1 | ok
old    | amount=10 * COIN - FEE | ok
old    | amount=10 * COIN - FEE + 1 | TransactionRejected Attempt to pay unavailable funds: balance
old    | to=ME | ok
old    | amount=0 | NonPositiveAmount non-positive amount: 0 of waves
old    | amount=-1 | NonPositiveAmount non-positive amount: -1 of waves
old    | fee=0 | InsufficientFee insufficient fee
old    | amount=2**63 - FEE | AmountOverflow overflow error
old    | amount=2**63 - 1 - FEE | TransactionRejected Attempt to pay unavailable funds
old    | chain_id=87 | ValueRuleError Address or alias from other network
old    | seen_at=7 | ok
old    | signer=OTHER | InvalidSignature Proof doesn't validate as signature for {"type":2
old    | later=5400001 | Mistiming
old    | lease_out=10 * COIN | ok
old    | height=1000 | ok
old    | height=1001 | TransactionRejected Payment transaction is deprecated after h=1000
devnet | | TransactionRejected Payment transaction is deprecated after h=0
fees   | fee=FEE - 1 | TransactionRejected Fee for PaymentTransaction (99999 in WAVES) does not exc
lax    | amount=11 * COIN | BalanceErrors
lax    | to=ME, amount=11 * COIN | ok
old    | waves=0, fee=0 | InsufficientFee
old    | waves=0, signer=OTHER | TransactionRejected Attempt to pay unavailable funds
devnet | signer=OTHER | InvalidSignature
"""


@pytest.mark.parametrize(("rules", "changes", "outcome"), rows(TABLE))
def test_payment(rules: str, changes: str, outcome: str) -> None:
    check("payment", rules, changes, outcome)
