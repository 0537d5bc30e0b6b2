"""Aliases: every refusal, the fees, and which rule comes first."""

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
devnet | name="known" | TransactionRejected Alias already claimed
old | name="known" | ok
data | name="known" | TransactionRejected Alias already claimed
devnet | name="mine" | TransactionRejected Alias already claimed
devnet | name="free", disabled=("free",) | TransactionRejected Alias already claimed
old | name="free", disabled=("free",) | ok
devnet | name="bad" | AliasError Alias 'bad' length should be between 4 and 30
devnet | name="Upper" | AliasError Alias should contain only following characters: -.0123456789@_ab
devnet | name="n" * 31 | AliasError Alias 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn' length should be betwee
devnet | alias_chain=87 | ValueRuleError Address or alias from other network
devnet | seen_at=5 | AlreadyInState Transaction
stolen | seen_at=5 | ok
stolen | seen_at=5, height=20 | AlreadyInState Transaction
devnet | proofs=(b"a", b"b"), version=2 | TransactionRejected Transactions from non-scripted accoun
devnet | proofs=(b"a", b"b"), version=2, mine=TRUE, fee=500000 | ok
calls | proofs=(b"a", b"b"), version=2, mine=TRUE, fee=500000 | TransactionRejected Invalid proofs
devnet | proofs=(b"a",) * 9, version=2 | ProofsError Too many proofs (9), only 8 allowed
devnet | proofs=(b"a" * 65,), version=2 | ProofsError Too large proof (65), must be max 64 bytes
devnet | fee=FEE - 1 | TransactionRejected Fee for CreateAliasTransaction (99999 in WAVES) does not
devnet | fee=0 | InsufficientFee insufficient fee
devnet | waves=COIN | BalanceErrors
devnet | signer=OTHER | InvalidSignature Proof doesn't validate as signature for
"""


@pytest.mark.parametrize(("rules", "changes", "outcome"), rows(TABLE))
def test_create_alias(rules: str, changes: str, outcome: str) -> None:
    check("create_alias", rules, changes, outcome)
