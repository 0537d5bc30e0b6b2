"""Names of assets: every refusal, the fees, and which rule comes first."""

from __future__ import annotations

import pytest

from tests.ledger.cases import rows
from tests.ledger.rules.kinds import check

TABLE = """
devnet | | ok
v5 | | ok
dapps | | ActivationError Ride V4, VRF, Protobuf, Failed transactions feature has not been activate
devnet | asset=NOTHING | TransactionRejected Referenced assetId not found
devnet | asset=ALIEN | TransactionRejected Asset was issued by other address
devnet | named_at=8 | ok
devnet | named_at=9 | TransactionRejected Can't update info of asset with id=7xeSk1y3uibLNKmGvmbdyA
devnet | name=b"abc" | InvalidName invalid name
devnet | name=b"a" * 17 | InvalidName invalid name
devnet | text=b"a" * 1001 | TooBigCount Too big sequence requested: max limit is 1000 entries
devnet | fee_asset=GOLD, sponsored=1, fee=1 | TransactionRejected Invalid fee asset: 7xeSk1y3uibLNK
calls | fee_asset=GOLD, sponsored=1, fee=1 | ok
calls | fee_asset=GOLD, fee=1 | TransactionRejected Asset
calls | fee_asset=NOTHING, fee=1 | TransactionRejected Asset 8S5Wk8E83ofvLxWpyrt51HturU995zXCTtKBQo
devnet | asset=SMART | TransactionRejected Transaction involves 1 scripted assets. Requires 400000
devnet | asset=SMART, fee=500000 | ok
devnet | asset=SMART, fee=500000, smart_code=NO | NotAllowedByScript Transaction is not allowed by
devnet | fee=FEE - 1 | TransactionRejected Fee for UpdateAssetInfoTransaction (99999 in WAVES) does
devnet | fee=0 | InsufficientFee insufficient fee
devnet | signer=OTHER | InvalidSignature Proof doesn't validate as signature for
devnet | seen_at=5 | AlreadyInState Transaction
"""


@pytest.mark.parametrize(("rules", "changes", "outcome"), rows(TABLE))
def test_update_asset_info(rules: str, changes: str, outcome: str) -> None:
    check("update_asset_info", rules, changes, outcome)
