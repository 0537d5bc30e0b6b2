"""Data transactions: every refusal, sizes and fees."""

from __future__ import annotations

import pytest

from tests.ledger.cases import check, rows

TABLE = """
devnet | | ok
data   | | ok
old    | | ActivationError Data Transaction feature has not been activated yet
data   | version=2 | ActivationError Ride V4, VRF, Protobuf, Failed transactions feature has not be
devnet | version=2 | ok
light  | version=3 | UnsupportedTransaction Bad transaction type (12) and version (3)
v5     | version=3 | ok
devnet | entries=() | ok
devnet | entries=(E("", 1),) | ValueRuleError Empty key found
devnet | entries=(E("a", 1), E("a", 2)) | ValueRuleError Duplicate keys found
devnet | entries=(E("a", None),) | ValueRuleError Empty data is not allowed in V1
devnet | version=2, entries=(E("a", None),) | ok
devnet | fee=0 | InsufficientFee
devnet | fee=0, entries=(E("", 1), E("", 1)) | InsufficientFee
devnet | entries=(E("", 1), E("", 1)) | ValueRuleError Empty key found
devnet | entries=tuple(E(str(n), n) for n in range(100)) | ok
devnet | entries=tuple(E(str(n), n) for n in range(101)) | TooBigCount Too big sequence requested
devnet | waves=FEE | ok
devnet | waves=FEE - 1 | BalanceErrors
data   | waves=FEE - 1 | BalanceErrors
devnet | waves=COIN, lease_out=COIN | BalanceErrors
devnet | signer=OTHER | InvalidSignature
devnet | seen_at=3 | AlreadyInState
devnet | later=5400001 | Mistiming
devnet | chain_id=87 | TransactionRejected Address belongs to another network: expected: 82(R), act
"""

# Feature 17 counts keys and values, earlier rules the encoding of the whole.
SIZES = """
devnet | entries=(E("k", b"v" * 1023),) | ok
devnet | entries=(E("k", b"v" * 1024),) | TransactionRejected Fee for DataTransaction (100000 in WA
devnet | entries=(E("k", b"v" * 1024),), fee=200000 | ok
devnet | version=2, entries=(E("k", b"v" * 1023),) | ok
devnet | version=2, entries=(E("k", b"v" * 1024),) | TransactionRejected Fee for DataTransaction (1
calls  | entries=(E("k", b"v" * 966),) | ok
calls  | entries=(E("k", b"v" * 968),) | TransactionRejected Fee for DataTransaction (100000 in WAV
calls  | version=2, entries=(E("k", b"v" * 1014),) | ok
calls  | version=2, entries=(E("k", b"v" * 1016),) | TransactionRejected Fee for DataTransaction (1
devnet | entries=(E("k" * 400, 1),) | ok
devnet | entries=(E("k" * 401, 1),) | TooBigCount
calls  | entries=(E("k" * 100, 1),) | ok
calls  | entries=(E("k" * 101, 1),) | TooBigCount
calls  | entries=(E("\\u20bf" * 100, 1),) | ok
calls  | version=2, entries=(E("k" * 400, 1),) | ok
devnet | entries=(E("k", "s" * 32767),), fee=COIN | ok
devnet | entries=(E("k", "s" * 32768),), fee=COIN | TooBigCount
devnet | entries=tuple(E(str(n), b"v" * 32767) for n in range(5)), fee=COIN | ok
devnet | entries=tuple(E(str(n), b"v" * 30000) for n in range(6)), fee=COIN | TooBigCount
calls  | entries=tuple(E(str(n), b"v" * 30000) for n in range(5)), fee=COIN | ok
calls  | entries=tuple(E(str(n), b"v" * 32000) for n in range(5)), fee=COIN | TooBigCount
calls  | version=2, entries=tuple(E(str(n), b"v" * 32767) for n in range(5)), fee=COIN | ok
calls  | version=2, entries=tuple(E(str(n), b"v" * 32000) for n in range(6)), fee=COIN | TooBigCoun
calls  | version=3, entries=tuple(E(str(n), b"v" * 32000) for n in range(6)), fee=COIN | ok
"""


@pytest.mark.parametrize(("rules", "changes", "outcome"), rows(TABLE))
def test_data(rules: str, changes: str, outcome: str) -> None:
    check("data", rules, changes, outcome)


@pytest.mark.parametrize(("rules", "changes", "outcome"), rows(SIZES))
def test_sizes(rules: str, changes: str, outcome: str) -> None:
    check("data", rules, changes, outcome)
