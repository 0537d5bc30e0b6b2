"""Burning of assets: every refusal, the fees, and which rule comes first."""

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
devnet | quantity=0 | ok
devnet | quantity=-1 | NegativeAmount negative amount: -1 of assets
devnet | quantity=1000 | ok
devnet | quantity=1001 | BalanceErrors
devnet | asset=NOTHING | TransactionRejected Referenced assetId not found
devnet | asset=ALIEN | ok
old | asset=ALIEN | TransactionRejected Asset was issued by other address
devnet | asset=SMART | TransactionRejected Transaction involves 1 scripted assets. Requires 400000
devnet | asset=SMART, fee=500000 | ok
devnet | asset=SMART, fee=500000, smart_code=NO | NotAllowedByScript Transaction is not allowed by
devnet | fee=FEE - 1 | TransactionRejected Fee for BurnTransaction (99999 in WAVES) does not exceed
devnet | fee=0 | InsufficientFee insufficient fee
devnet | signer=OTHER | InvalidSignature Proof doesn't validate as signature for
devnet | seen_at=5 | AlreadyInState Transaction
"""


@pytest.mark.parametrize(("rules", "changes", "outcome"), rows(TABLE))
def test_burn(rules: str, changes: str, outcome: str) -> None:
    check("burn", rules, changes, outcome)
