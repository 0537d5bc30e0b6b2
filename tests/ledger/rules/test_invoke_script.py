"""Calls of dApps: every refusal, the fees, and which rule comes first."""

from __future__ import annotations

import pytest

from tests.ledger.cases import rows
from tests.ledger.rules.kinds import check

TABLE = """
devnet | yours=DAPP | ok
devnet | | TransactionRejected No contract at address 3MJEiEvmSM4J43NnHyDkahriCLta6kauVib
devnet | to=Alias(R, "known") | TransactionRejected No contract at address alias:R:known
devnet | to=Alias(R, "unknown") | AliasDoesNotExist Alias 'alias:R:unknown' does not exist.
devnet | to=Alias(R, "known"), disabled=("known",) | AliasIsDisabled AliasIsDisabled(alias:R:known)
devnet | to=Alias(R, "known"), yours=DAPP | ok
devnet | yours=TRUE | TransactionRejected Trying to call dApp on the account with expression script
old | yours=DAPP | ActivationError RIDE 4 DAPPS feature has not been activated yet
dapps | yours=DAPP3 | ok
v5 | yours=DAPP, version=2 | ok
dapps | yours=DAPP, version=2 | ActivationError Ride V4, VRF, Protobuf, Failed transactions feature
devnet | yours=DAPP, payments=((COIN, None), (1, GOLD)) | ok
devnet | yours=DAPP, payments=((0, None),) | NonPositiveAmount non-positive amount: 0 of Waves
devnet | yours=DAPP, payments=((5 * COIN, None),) * 2, lease_out=0 | BalanceErrors
dapps | yours=DAPP3, payments=((5 * COIN, None),) * 2, lease_out=0 | BalanceErrors
devnet | yours=DAPP3, payments=((10 * COIN, None),), lease_out=0 | TransactionRejected Attempt to t
devnet | yours=script(4, dapp=True), payments=((10 * COIN, None),), lease_out=0 | BalanceErrors
devnet | yours=DAPP, payments=((9 * COIN, None),) | BalanceErrors
devnet | yours=DAPP, payments=((1, NOTHING),) | TransactionRejected Transfer error: asset '8S5Wk8E8
v5 | yours=DAPP, payments=((1, NOTHING),) | TransactionRejected Attempt to transfer unavailable fun
devnet | yours=DAPP, payments=((1, b"short"),), version=2 | TransactionRejected Transfer error: inv
devnet | yours=DAPP, payments=((1001, GOLD),) | TransactionRejected Attempt to transfer unavailable
dapps | yours=DAPP3, payments=((1001, GOLD),) | TransactionRejected Attempt to transfer unavailable
devnet | yours=DAPP, payments=((1, SMART),) | ok
v5 | yours=DAPP, payments=((1, SMART),) | TransactionRejected Transaction involves 1 scripted asset
v5 | yours=DAPP, payments=((1, SMART),), fee=900000 | ok
devnet | yours=DAPP, payments=((1, SMART),), smart_code=NO | ScriptExecutionError Error while execu
devnet | yours=script(dapp=True, complexity=2000), payments=((1, SMART),), smart_code=NO | failed
calls | yours=DAPP, payments=((1, SMART),), smart_code=NO | failed
dapps | yours=DAPP3, payments=((1, SMART),), smart_code=NO, fee=900000 | NotAllowedByScript Transac
devnet | yours=fails(1000) | InvocationRejected Error while executing dApp: the call fails
devnet | yours=fails(1001) | failed
devnet | yours=fails(990), mine=script(complexity=11), fee=900000 | failed
calls | yours=fails(1) | failed
dapps | yours=fails(2000) | InvocationRejected Error while executing dApp: the call fails
devnet | yours=overdraws(1000) | BalanceErrors
devnet | yours=overdraws(1001) | failed
v5 | yours=overdraws(1001) | BalanceErrors
devnet | yours=fails(1001), waves=COIN | BalanceErrors
devnet | yours=DAPP, fee=499999 | TransactionRejected Fee for InvokeScriptTransaction (499999 in WA
devnet | yours=DAPP, fee_asset=GOLD, sponsored=1, fee=5 | ok
devnet | yours=DAPP, fee_asset=GOLD, sponsored=1, fee=4 | TransactionRejected Fee for InvokeScriptT
devnet | yours=fails(1001), fee_asset=GOLD, sponsored=1, fee=5 | failed
devnet | yours=DAPP, fee_asset=GOLD, fee=5 | TransactionRejected Asset 7xeSk1y3uibLNKmGvmbdyAVa9Mfj
devnet | yours=DAPP, fee=0 | InsufficientFee insufficient fee
devnet | yours=DAPP, signer=OTHER | InvalidSignature Proof doesn't validate as signature for
devnet | yours=DAPP, seen_at=5 | AlreadyInState Transaction FLkHaW5RxJ67DWvoqGCRL7EDA8gPYbECJe9rzD7
"""


@pytest.mark.parametrize(("rules", "changes", "outcome"), rows(TABLE))
def test_invoke_script(rules: str, changes: str, outcome: str) -> None:
    check("invoke_script", rules, changes, outcome)
