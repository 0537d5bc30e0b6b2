"""Ends of leases: every refusal, the fees, and which rule comes first."""

from __future__ import annotations

import pytest

from tests.ledger.cases import rows
from tests.ledger.rules.kinds import check

TABLE = """
devnet | | ok
old | | ok
old | version=2 | ActivationError Smart Accounts feature has not been activated yet
smart | version=2 | ok
v5 | version=3 | ok
dapps | version=3 | ActivationError Ride V4, VRF, Protobuf, Failed transactions feature has not bee
devnet | lease=b"n" * 32 | TransactionRejected Lease with id=8S5Wk8E83ofvLxWpyrt51HturU995zXCTtKBQo
devnet | lease=b"n" * 31, version=3 | ValueRuleError Lease id=2gfdeQqjqDPQsHf2MaxXMumPPzMRVKUEUPW3M
devnet | lease=ENDED | TransactionRejected Cannot cancel already cancelled lease
lax cancel | lease=ENDED | ok
devnet | lease=FOREIGN | TransactionRejected LeaseTransaction was leased by other sender and time=1
lax cancel | lease=FOREIGN | ok
devnet | waves=COIN | ok
devnet | waves=COIN - 1 | ok
devnet | waves=0 | BalanceErrors
old | waves=0 | BalanceErrors
devnet | fee=FEE - 1 | TransactionRejected Fee for LeaseCancelTransaction (99999 in WAVES) does not
devnet | fee=0 | InsufficientFee insufficient fee
devnet | seen_at=5 | AlreadyInState Transaction
devnet | signer=OTHER | InvalidSignature Proof doesn't validate as signature for
devnet | mine=TRUE, fee=500000 | TransactionRejected Can't process transaction with signature from
"""


@pytest.mark.parametrize(("rules", "changes", "outcome"), rows(TABLE))
def test_lease_cancel(rules: str, changes: str, outcome: str) -> None:
    check("lease_cancel", rules, changes, outcome)
