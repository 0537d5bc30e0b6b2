"""Genesis transactions: in the first block, and nowhere else."""

from __future__ import annotations

import pytest

from tests.ledger.cases import check, rows

TABLE = """
devnet | height=1 | ok
devnet | height=1, amount=0 | ok
devnet | height=1, amount=-1 | NegativeAmount negative amount: -1 of waves
devnet | height=1, chain_id=87 | ValueRuleError Address or alias from other network
devnet | height=2 | TransactionRejected GenesisTransaction cannot appear in non-initial block (1)
old    | height=10 | TransactionRejected GenesisTransaction cannot appear in non-initial block (9)
"""


@pytest.mark.parametrize(("rules", "changes", "outcome"), rows(TABLE))
def test_genesis(rules: str, changes: str, outcome: str) -> None:
    check("genesis", rules, changes, outcome)
