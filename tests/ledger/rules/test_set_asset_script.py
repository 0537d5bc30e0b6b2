"""Scripts of assets: every refusal, the fees, and which rule comes first."""

from __future__ import annotations

import pytest

from tests.ledger.cases import rows
from tests.ledger.rules.kinds import check

TABLE = """
devnet | | ok
dapps | | ActivationError Ride V4, VRF, Protobuf, Failed transactions feature has not been activate
old | | ActivationError Smart Assets feature has not been activated yet
smart | | ActivationError Smart Assets feature has not been activated yet
v5 | version=2 | ok
dapps | version=2 | ActivationError Ride V4, VRF, Protobuf, Failed transactions feature has not bee
devnet | code=None | ValueRuleError Cannot set empty script
devnet | code=DAPP | ValueRuleError Asset can only be assigned with Expression script, not Contract
devnet | asset=GOLD | TransactionRejected Cannot set script on an asset issued without a script
devnet | asset=ALIEN | TransactionRejected Asset was issued by other address
devnet | asset=NOTHING | TransactionRejected Referenced assetId not found
devnet | code=script(size=8192) | ok
devnet | code=script(size=8193) | TransactionRejected Script is too large: 8193 bytes > 8192 bytes
ride 6 | code=script(size=8193) | ok
devnet | code=script(complexity=-1) | TransactionRejected Unexpected negative complexity
overflow | code=script(complexity=-1) | ok
light | code=script(3) | ActivationError Script version below V4 is not allowed after Light Node fe
ride 6 | code=script(7) | ActivationError Block Reward Distribution feature has not been activated
devnet | fee=COIN - 1 | TransactionRejected Transaction involves 1 scripted assets. Requires 400000
devnet | smart_code=NO | NotAllowedByScript Transaction is not allowed by token-script
devnet | smart_code=ERROR | ScriptExecutionError Error while executing token-script: broken
devnet | fee=0 | InsufficientFee insufficient fee
devnet | signer=OTHER | InvalidSignature Proof doesn't validate as signature for
devnet | seen_at=5 | AlreadyInState Transaction
"""


@pytest.mark.parametrize(("rules", "changes", "outcome"), rows(TABLE))
def test_set_asset_script(rules: str, changes: str, outcome: str) -> None:
    check("set_asset_script", rules, changes, outcome)
