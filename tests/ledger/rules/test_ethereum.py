"""Transactions of Ethereum wallets: every refusal, the fees, and which rule comes first."""

from __future__ import annotations

import pytest

from tests.ledger.cases import rows
from tests.ledger.rules.kinds import check

TABLE = r"""
devnet | | ok
ride 6 | | ok
calls | | ActivationError Ride V6, MetaMask support feature has not been activated yet
devnet | value=10**10 - 1 | NonPositiveAmount non-positive amount: 0 of waves
devnet | value=0 | ValueRuleError Transaction cancellation is not supported
devnet | value=10**19 | BalanceErrors
devnet | value=10**20 | BalanceErrors
devnet | data=b"\1" | TransactionRejected Fee for EthereumTransaction (100000 in WAVES) does not ex
devnet | data=b"\1", value=1 | ValueRuleError Transaction should have either data or value
devnet | token=GOLD[:20] | ok
devnet | token=GOLD[:20], amount=1000 | ok
devnet | token=GOLD[:20], amount=1001 | BalanceErrors
devnet | token=GOLD[:20], amount=0 | NonPositiveAmount non-positive amount: 0 of 0x6767676767676767
devnet | token=NOTHING[:20] | TransactionRejected Can't resolve ERC20 address 2YEVmL3Z7y2ePnKqegVnQ
devnet | token=GOLD[:20], surplus=b"x" | TransactionRejected Invalid asset data size for Ethereum T
ride 6 | token=GOLD[:20], surplus=b"x" | ok
devnet | token=SMART[:20] | TransactionRejected Transaction involves 1 scripted assets. Requires 40
devnet | token=SMART[:20], fee=500000 | ok
devnet | token=SMART[:20], fee=500000, smart_code=NO | NotAllowedByScript Transaction is not allowe
devnet | token=SMART[:20], fee=500000, smart_code=ERROR | ScriptExecutionError Error while executin
devnet | data=b"call", fee=500000 | TransactionRejected No script at address 3MJEiEvmSM4J43NnHyDkah
devnet | data=b"call", fee=500000, yours=DAPP | ok
devnet | data=b"call", fee=499999, yours=DAPP | TransactionRejected Fee for EthereumTransaction (49
devnet | data=b"call", fee=500000, yours=fails(1000) | InvocationRejected Error while executing dAp
devnet | data=b"call", fee=500000, yours=fails(1001) | failed
devnet | data=b"call", fee=500000, yours=overdraws(1001) | BalanceErrors
ride 6 | wallet_key=(79).to_bytes(32, "big") | BalanceErrors
devnet | fee=FEE - 1 | TransactionRejected Fee for EthereumTransaction (99999 in WAVES) does not ex
devnet | fee=0 | InsufficientFee insufficient fee
devnet | others=10 * COIN, value=10**19 - 10**15 | ok
finality | | ok
light | high=True | ok
finality | high=True | TransactionRejected Non-canonical ECDSA signature
adjusted | high=True | TransactionRejected Non-canonical ECDSA signature
light | more_v=2**32 | ok
finality | more_v=2**32 | TransactionRejected Transaction chain ID Some(2147483730) does
finality | more_v=2**32, high=True | TransactionRejected Transaction chain ID Some
finality | data=b"call", fee=500000, yours=DAPP, high=True | TransactionRejected Non-canonical ECDSA
devnet | chain_id=87 | TransactionRejected Address belongs to another network: expected: 82(R), act
devnet | later=5400001 | Mistiming Transaction timestamp 1700005400001 is more than 5400000ms in th
devnet | seen_at=5 | AlreadyInState Transaction
"""


@pytest.mark.parametrize(("rules", "changes", "outcome"), rows(TABLE))
def test_ethereum(rules: str, changes: str, outcome: str) -> None:
    check("ethereum", rules, changes, outcome)
