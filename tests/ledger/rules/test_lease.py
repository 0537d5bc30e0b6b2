"""Leases: every refusal, the fees, and which rule comes first."""

from __future__ import annotations

import pytest

from tests.ledger.cases import rows
from tests.ledger.rules.kinds import check

TABLE = """
devnet | | ok
old | | ok
smart | version=2 | ok
old | version=2 | ActivationError Smart Accounts feature has not been activated yet
v5 | version=3 | ok
calls | version=3 | ok
dapps | version=3 | ActivationError Ride V4, VRF, Protobuf, Failed transactions feature has not bee
devnet | amount=9 * COIN - FEE | ok
devnet | amount=9 * COIN - FEE + 1 | TransactionRejected Cannot lease more than own: Balance: 10000
v5 | amount=9 * COIN - FEE | ok
v5 | amount=9 * COIN | ok
v5 | amount=9 * COIN + 1 | TransactionRejected Cannot lease more than own: Balance: 1000000000, alr
old | amount=9 * COIN | ok
protected | amount=9 * COIN - FEE + 1 | BalanceErrors
protected | amount=9 * COIN + 1 | TransactionRejected Cannot lease more than own: Balance: 10000000
devnet | amount=0 | NonPositiveAmount non-positive amount: 0 of waves
devnet | amount=2**63 - FEE | AmountOverflow overflow error
devnet | to=ME | ToSelf Transaction to yourself
devnet | to=Alias(R, "mine") | TransactionRejected Cannot lease to self
devnet | to=Alias(R, "known") | ok
devnet | to=Alias(R, "unknown") | AliasDoesNotExist Alias 'alias:R:unknown' does not exist.
devnet | to=Alias(R, "known"), disabled=("known",) | AliasIsDisabled AliasIsDisabled(alias:R:known)
devnet | to=Alias(87, "known") | ValueRuleError Address or alias from other network
devnet | exists=True | TransactionRejected Lease with id=
devnet | seen_at=5 | AlreadyInState Transaction
devnet | fee=FEE - 1 | TransactionRejected Fee for LeaseTransaction (99999 in WAVES) does not excee
old | fee=1 | ok
devnet | fee=0 | InsufficientFee insufficient fee
devnet | waves=COIN + FEE - 1, amount=1 | BalanceErrors
devnet | signer=OTHER | InvalidSignature Proof doesn't validate as signature for
devnet | proofs=(b"",) * 2, version=2 | TransactionRejected Transactions from non-scripted accounts
devnet | mine=TRUE, fee=FEE | TransactionRejected Transaction sent from smart account. Requires 400
devnet | mine=TRUE, fee=500000, version=2 | ok
devnet | mine=TRUE, fee=500000 | TransactionRejected Can't process transaction with signature from
devnet | mine=NO, fee=500000, version=2 | NotAllowedByScript Transaction is not allowed by account-
devnet | mine=ERROR, fee=500000, version=2 | ScriptExecutionError Error while executing account-scr
devnet | chain_id=87 | ValueRuleError Address or alias from other network
"""


@pytest.mark.parametrize(("rules", "changes", "outcome"), rows(TABLE))
def test_lease(rules: str, changes: str, outcome: str) -> None:
    check("lease", rules, changes, outcome)
