"""Scripts of accounts: every refusal, the fees, and which rule comes first."""

from __future__ import annotations

import pytest

from tests.ledger.cases import rows
from tests.ledger.rules.kinds import check

TABLE = """
devnet | | ok
old | | ok
devnet | fee=FEE | ok
devnet | fee=FEE - 1 | TransactionRejected Fee for SetScriptTransaction (99999 in WAVES) does not e
v5 | fee=999999 | TransactionRejected Fee for SetScriptTransaction (999999 in WAVES) does not excee
v5 | version=2 | ok
dapps | version=2 | ActivationError Ride V4, VRF, Protobuf, Failed transactions feature has not bee
devnet | code=TRUE | ok
devnet | code=script(size=1024), fee=FEE | ok
devnet | code=script(size=1025), fee=FEE | TransactionRejected Fee for SetScriptTransaction (100000
devnet | code=script(size=1025), fee=2 * FEE | ok
devnet | code=script(size=8192) | ok
devnet | code=script(size=8193) | TransactionRejected Script is too large: 8193 bytes > 8192 bytes
devnet | code=script(size=163840, dapp=True), fee=160 * FEE, version=2 | ok
devnet | code=script(size=163841, dapp=True), fee=161 * FEE, version=2 | TransactionRejected Script
calls | code=script(size=32768, dapp=True), version=2 | ok
calls | code=script(size=32769, dapp=True), version=2 | TransactionRejected Script is too large: 32
devnet | code=script(complexity=-1) | TransactionRejected Unexpected negative verifier complexity
devnet | code=script(verdict="functions", complexity=-1, dapp=True) | TransactionRejected Unexpecte
overflow | code=script(complexity=-1) | ok
old | code=script(1) | ok
old | code=script(1, dapp=True) | ActivationError RIDE 4 DAPPS feature has not been activated yet
old | code=script(3) | ActivationError RIDE 4 DAPPS feature has not been activated yet
dapps | code=DAPP3 | ok
dapps | code=script(4) | ActivationError Ride V4, VRF, Protobuf, Failed transactions feature has no
v5 | code=script(5) | ActivationError Ride V5, dApp-to-dApp invocations feature has not been activa
calls | code=script(6) | ActivationError Ride V6, MetaMask support feature has not been activated y
ride 6 | code=script(7) | ActivationError Block Reward Distribution feature has not been activated
ride 6 | code=script(8) | ActivationError Light Node feature has not been activated yet
light | code=script(3) | ActivationError Script version below V4 is not allowed after Light Node fe
light | code=script(8) | ok
light | code=script(9) | ActivationError Deterministic Finality & RIDE V9 feature has not been activ
finality | code=script(9) | ok
devnet | mine=TRUE, version=1 | ok
devnet | mine=TRUE, version=1, fee=500000 | ok
devnet | mine=NO, fee=500000 | NotAllowedByScript Transaction is not allowed by account-script
devnet | fee=0 | InsufficientFee insufficient fee
devnet | signer=OTHER | InvalidSignature Proof doesn't validate as signature for
devnet | seen_at=5 | AlreadyInState Transaction
"""


@pytest.mark.parametrize(("rules", "changes", "outcome"), rows(TABLE))
def test_set_script(rules: str, changes: str, outcome: str) -> None:
    check("set_script", rules, changes, outcome)
