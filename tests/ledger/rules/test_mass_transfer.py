"""Mass transfers: every refusal, the fees, and which rule comes first."""

from __future__ import annotations

import pytest

from tests.ledger.cases import rows
from tests.ledger.rules.kinds import check

TABLE = """
devnet | | ok
smart | | ActivationError Mass Transfer Transaction feature has not been activated yet
v5 | version=2 | ok
dapps | version=2 | ActivationError Ride V4, VRF, Protobuf, Failed transactions feature has not bee
devnet | to=() | ok
devnet | to=(), fee=FEE | ok
devnet | to=(), fee=FEE - 1 | TransactionRejected Fee for MassTransferTransaction (99999 in WAVES)
devnet | to=((YOU, 1), (ME, 1), (YOU, 0)), fee=3 * FEE | ok
devnet | to=((YOU, 1), (ME, 1), (YOU, 0)), fee=3 * FEE - 1 | TransactionRejected Fee for MassTransf
devnet | to=((YOU, 1),) * 100, fee=51 * FEE | ok
devnet | to=((YOU, 1),) * 101, fee=52 * FEE | ValueRuleError Number of transfers 101 is greater tha
devnet | to=((YOU, -1),) | NegativeAmount negative amount: -1 of asset
devnet | to=((YOU, 2**63 - 1), (YOU, 1)) | AmountOverflow overflow error
devnet | to=((Alias(R, "known"), 1),) | ok
devnet | to=((Alias(R, "unknown"), 1),) | AliasDoesNotExist Alias 'alias:R:unknown' does not exist
devnet | to=((Alias(R, "known"), 1),), disabled=("known",) | AliasIsDisabled AliasIsDisabled(alias:
devnet | to=((Alias(87, "known"), 1),) | ValueRuleError One of chain ids not match: List(87)
devnet | to=((YOU, 10 * COIN - 2 * FEE),) | BalanceErrors
v5 | to=((YOU, 10 * COIN - 2 * FEE),), lease_out=0 | ok
devnet | to=((YOU, 10 * COIN - 2 * FEE + 1),) | TransactionRejected Attempt to transfer unavailable
devnet | asset=GOLD, to=((YOU, 1000),) | ok
devnet | asset=GOLD, to=((YOU, 1001),) | TransactionRejected Attempt to transfer unavailable funds:
devnet | asset=NOTHING, to=((YOU, 0),) | TransactionRejected Transfer error: asset '8S5Wk8E83ofvLxW
v5 | asset=NOTHING, to=((YOU, 0),) | TransactionRejected Attempt to transfer a nonexistent asset
dapps | asset=NOTHING, to=((YOU, 0),) | TransactionRejected Attempt to transfer a nonexistent asset
dapps | asset=NOTHING, to=((YOU, 1),) | TransactionRejected Attempt to transfer unavailable funds:
devnet | attachment=b"a" * 140 | ok
devnet | attachment=b"a" * 141 | TooBigInBytes Invalid attachment. Length 141 bytes exceeds maximum
devnet | asset=SMART, to=((YOU, 1),) | TransactionRejected Transaction involves 1 scripted assets.
devnet | asset=SMART, to=((YOU, 1),), fee=600000 | ok
devnet | asset=SMART, to=((YOU, 1),), fee=600000, smart_code=NO | NotAllowedByScript Transaction is
devnet | asset=SMART, to=((YOU, 1),), fee=600000, smart_code=ERROR | ScriptExecutionError Error whi
devnet | asset=SMART, to=((YOU, 1),), mine=TRUE, fee=600000 | TransactionRejected Transaction sent
devnet | seen_at=5 | AlreadyInState Transaction
devnet | signer=OTHER | InvalidSignature Proof doesn't validate as signature for
"""


@pytest.mark.parametrize(("rules", "changes", "outcome"), rows(TABLE))
def test_mass_transfer(rules: str, changes: str, outcome: str) -> None:
    check("mass_transfer", rules, changes, outcome)
