"""New assets: every refusal, the fees, and which rule comes first."""

from __future__ import annotations

import pytest

from tests.ledger.cases import rows
from tests.ledger.rules.kinds import check

TABLE = r"""
devnet | | ok
old | | ok
old | version=2 | ok
v5 | version=3 | ok
dapps | version=3 | ActivationError Ride V4, VRF, Protobuf, Failed transactions feature has not bee
devnet | name=b"abc" | InvalidName invalid name
devnet | name=b"a" * 17 | InvalidName invalid name
devnet | text=b"a" * 1000 | ok
devnet | text=b"a" * 1001 | TooBigCount Too big sequence requested: max limit is 1000 entries
devnet | quantity=0 | NonPositiveAmount non-positive amount: 0 of assets
devnet | decimals=9 | InvalidDecimals invalid decimals value: 9, decimals should be in interval [0;
devnet | decimals=8 | ok
devnet | fee=0 | InsufficientFee insufficient fee
devnet | fee=COIN - 1 | TransactionRejected Fee for IssueTransaction (99999999 in WAVES) does not e
devnet | quantity=1, decimals=0, reissuable=False, fee=FEE | ok
devnet | quantity=1, decimals=0, reissuable=False, fee=FEE - 1 | TransactionRejected Fee for IssueT
devnet | quantity=1, decimals=0, reissuable=True, fee=FEE | TransactionRejected Fee for IssueTransa
devnet | quantity=2, decimals=0, reissuable=False, fee=FEE | TransactionRejected Fee for IssueTrans
devnet | quantity=1, decimals=1, reissuable=False, fee=FEE | TransactionRejected Fee for IssueTrans
dapps | quantity=1, decimals=0, reissuable=False, fee=FEE | TransactionRejected Fee for IssueTransa
old | fee=1 | ok
devnet | issued=True | TransactionRejected Asset
devnet | name=b"\xff" * 4 | TransactionRejected Valid UTF-8 strings required
old | name=b"\xff" * 4 | ok
dapps | text=b"\xff" * 4 | ok
devnet | text=b"\xff" * 4 | TransactionRejected Valid UTF-8 strings required
devnet | code=TRUE | ValueRuleError Script not supported
devnet | code=TRUE, version=2 | ok
devnet | code=DAPP, version=2 | ValueRuleError Asset can only be assigned with Expression script, n
devnet | code=script(size=8192), version=2 | ok
devnet | code=script(size=8193), version=2 | TransactionRejected Script is too large: 8193 bytes >
ride 6 | code=script(size=8193), version=2 | ok
devnet | code=script(complexity=-1), version=2 | TransactionRejected Unexpected negative complexity
overflow | code=script(complexity=-1), version=2 | ok
old | code=script(1), version=2 | ok
old | code=script(3), version=2 | ActivationError RIDE 4 DAPPS feature has not been activated yet
dapps | code=script(3), version=2 | ok
old | code=script(1, "blocks"), version=2 | ActivationError RIDE 4 DAPPS feature has not been activ
dapps | code=script(1, "blocks"), version=2 | ok
dapps | code=script(1, "arrays"), version=2 | ActivationError Ride V4, VRF, Protobuf, Failed transa
v5 | code=script(1, "arrays"), version=2 | ok
dapps | code=script(4), version=2 | ActivationError Ride V4, VRF, Protobuf, Failed transactions fea
v5 | code=script(5), version=2 | ActivationError Ride V5, dApp-to-dApp invocations feature has not
calls | code=script(6), version=2 | ActivationError Ride V6, MetaMask support feature has not been
ride 6 | code=script(7), version=2 | ActivationError Block Reward Distribution feature has not been
ride 6 | code=script(8), version=2 | ActivationError Light Node feature has not been activated yet
light | code=script(8), version=2 | ok
light | code=script(3), version=2 | ActivationError Script version below V4 is not allowed after Li
devnet | waves=COIN | BalanceErrors
devnet | waves=COIN - 1 | BalanceErrors
devnet | waves=2 * COIN, lease_out=COIN + 1 | BalanceErrors
devnet | signer=OTHER | InvalidSignature Proof doesn't validate as signature for
"""


@pytest.mark.parametrize(("rules", "changes", "outcome"), rows(TABLE))
def test_issue(rules: str, changes: str, outcome: str) -> None:
    check("issue", rules, changes, outcome)
