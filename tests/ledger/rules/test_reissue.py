"""Reissues: every refusal, the fees, and which rule comes first."""

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
devnet | asset=NOTHING | TransactionRejected Referenced assetId not found
devnet | asset=ALIEN | TransactionRejected Asset was issued by other address
devnet | quantity=0 | NonPositiveAmount non-positive amount: 0 of assets
devnet | volume=Volume(False, 10000) | TransactionRejected Asset is not reissuable
lax cancel | volume=Volume(False, 10000) | ok
devnet | volume=Volume(True, 2**63 - 2) | ok
devnet | volume=Volume(True, 2**63 - 1) | TransactionRejected Asset total value overflow
old | volume=Volume(True, 2**63 - 1) | ok
devnet | fee=FEE | ok
devnet | fee=FEE - 1 | TransactionRejected Fee for ReissueTransaction (99999 in WAVES) does not exc
dapps | fee=COIN - 1 | TransactionRejected Fee for ReissueTransaction (99999999 in WAVES) does not
dapps | | ok
devnet | quantity=2**63 - 1 | TransactionRejected Asset total value overflow
old | quantity=2**63 - 1 | TransactionRejected 3MQ7afH3ZwxgahNpfcmtKP6fzuo2wDvAwGQ -> Asset balance
devnet | asset=SMART, fee=FEE | TransactionRejected Transaction involves 1 scripted assets. Require
devnet | asset=SMART, fee=500000 | ok
devnet | asset=SMART, fee=500000, smart_code=NO | NotAllowedByScript Transaction is not allowed by
devnet | fee=0 | InsufficientFee insufficient fee
devnet | signer=OTHER | InvalidSignature Proof doesn't validate as signature for
devnet | seen_at=5 | AlreadyInState Transaction
"""


@pytest.mark.parametrize(("rules", "changes", "outcome"), rows(TABLE))
def test_reissue(rules: str, changes: str, outcome: str) -> None:
    check("reissue", rules, changes, outcome)
