"""Sponsorships: every refusal, the fees, and which rule comes first."""

from __future__ import annotations

import pytest

from tests.ledger.cases import rows
from tests.ledger.rules.kinds import check

TABLE = """
devnet | | ok
devnet | min_fee=None | ok
devnet | min_fee=0 | NegativeMinFee negative fee per: 0 per asset
devnet | min_fee=-1 | NegativeMinFee negative fee per: -1 per asset
old | | ActivationError Fee Sponsorship feature has not been activated yet
smart | | ActivationError Fee Sponsorship feature has not been activated yet
fees | | ok
v5 | version=2 | ok
dapps | version=2 | ActivationError Ride V4, VRF, Protobuf, Failed transactions feature has not bee
devnet | asset=NOTHING | TransactionRejected Referenced assetId not found
devnet | asset=ALIEN | TransactionRejected Asset was issued by other address
devnet | asset=SMART | TransactionRejected Sponsorship smart assets is disabled.
devnet | fee=FEE | ok
devnet | fee=FEE - 1 | TransactionRejected Fee for SponsorFeeTransaction (99999 in WAVES) does not
dapps | fee=COIN - 1 | TransactionRejected Fee for SponsorFeeTransaction (99999999 in WAVES) does n
devnet | fee=0 | InsufficientFee insufficient fee
devnet | signer=OTHER | InvalidSignature Proof doesn't validate as signature for
devnet | seen_at=5 | AlreadyInState Transaction
"""


@pytest.mark.parametrize(("rules", "changes", "outcome"), rows(TABLE))
def test_sponsor_fee(rules: str, changes: str, outcome: str) -> None:
    check("sponsor_fee", rules, changes, outcome)
