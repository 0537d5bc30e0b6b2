"""Transfers: every refusal, and which one comes first when there are several."""

from __future__ import annotations

import pytest

from tests.ledger.cases import check, rows

TABLE = """
devnet | | ok
old    | | ok
devnet | version=2 | ok
devnet | version=3 | ok
devnet | amount=10 * COIN - FEE | ok
devnet | amount=10 * COIN - FEE + 1 | TransactionRejected Attempt to transfer unavailable funds: Tr
devnet | to=ME, amount=9 * COIN | ok
devnet | to=Alias(R, "known") | ok
devnet | to=Alias(R, "unknown") | AliasDoesNotExist Alias 'alias:R:unknown' does not exist.
devnet | to=Alias(87, "known") | ValueRuleError Address or alias from other network
devnet | amount=0 | NonPositiveAmount non-positive amount: 0 of waves
devnet | amount=-1 | NonPositiveAmount non-positive amount: -1 of waves
devnet | amount=0, asset=GOLD | NonPositiveAmount non-positive amount: 0 of
devnet | fee=0 | InsufficientFee insufficient fee
devnet | fee=FEE - 1 | TransactionRejected Fee for TransferTransaction (99999 in WAVES) does not ex
old    | fee=1 | ok
devnet | attachment=bytes(140) | ok
devnet | attachment=bytes(141) | TooBigInBytes Invalid attachment. Length 141 bytes exceeds maximum
devnet | chain_id=87 | ValueRuleError Address or alias from other network
devnet | later=5400000 | ok
devnet | later=5400001 | Mistiming Transaction timestamp 1700005400001 is more than 5400000ms in th
devnet | later=-7201000 | ok
devnet | later=-7201001 | Mistiming Transaction timestamp 1699992798999 is more than 7200000ms in t
future | later=5400001 | ok
devnet | later=-2**63 - TIME | ok
devnet | later=-2**63 - 1000 | ok
devnet | later=-2**63 - 999 | Mistiming Transaction timestamp -9223370336854776807 is more than 7200
old    | version=2 | ActivationError Smart Accounts feature has not been activated yet
smart  | version=2 | ok
smart  | version=3 | ActivationError Ride V4, VRF, Protobuf, Failed transactions feature has not
v5     | version=3 | ok
v5     | version=4 | ok
v5     | version=127 | ok
light  | version=4 | UnsupportedTransaction Bad transaction type (4) and version (4)
devnet | seen_at=7 | AlreadyInState Transaction
devnet | version=2, proofs=() | TransactionRejected Transactions from non-scripted accounts must ha
devnet | version=2, proofs=(b"", b"") | TransactionRejected Transactions from non-scripted accounts
devnet | version=2, proofs=(b"",) * 9 | ProofsError Too many proofs (9), only 8 allowed
devnet | version=2, proofs=(bytes(65),) | ProofsError Too large proof (65), must be max 64 bytes
devnet | signer=OTHER | InvalidSignature Proof doesn't validate as signature for {"type":4
devnet | key=bytes(32), waves=0 | TransactionRejected Attempt to transfer unavailable funds
devnet | lease_out=10 * COIN | BalanceErrors
devnet | lease_out=9 * COIN | BalanceErrors
devnet | lease_out=9 * COIN, lease_in=COIN, amount=1 | ok
old    | lease_out=10 * COIN | ok
protected | lease_out=10 * COIN | BalanceErrors
"""

ASSETS = """
devnet | asset=GOLD, amount=1000 | ok
devnet | asset=GOLD, amount=1001 | TransactionRejected Attempt to transfer unavailable funds: Trans
devnet | asset=PAPER, amount=1 | TransactionRejected Attempt to transfer unavailable funds: Transac
devnet | asset=b"x" * 32, amount=1 | TransactionRejected Transfer error: asset '97GUB8tDxneBjs1uLr9
v5     | asset=b"x" * 32, amount=1 | TransactionRejected Attempt to transfer unavailable funds: Tra
lax    | asset=b"x" * 32, amount=1 | BalanceErrors
old    | asset=GOLD, amount=5, known=() | TransactionRejected Unissued assets are not allowed after
lax    | asset=GOLD, amount=5, known=() | ok
old    | fee_asset=GOLD, fee=5, known=() | TransactionRejected Unissued assets are not allowed afte
old    | fee_asset=GOLD, fee=5 | ok
unsponsored | fee_asset=GOLD, fee=5 | TransactionRejected Asset 7xeSk1y3uibLNKmGvmbdyAVa9MfjNYiTZ2e
unsponsored | fee_asset=GOLD, fee=5, sponsored=5 | ok
unsponsored | fee_asset=GOLD, fee=5, sponsored=5, sponsor_waves=99999 | BalanceErrors
old    | fee_asset=GOLD, fee=1001 | TransactionRejected Attempt to transfer unavailable funds
devnet | fee_asset=GOLD | TransactionRejected Attempt to transfer unavailable funds
devnet | fee_asset=GOLD, fee=5 | TransactionRejected Asset 7xeSk1y3uibLNKmGvmbdyAVa9MfjNYiTZ2eb19ch
devnet | fee_asset=GOLD, fee=5, known=() | TransactionRejected Asset 7xeSk1y3uibLNKmGvmbdyAV
devnet | fee_asset=GOLD, fee=5, sponsored=5 | ok
devnet | fee_asset=GOLD, fee=4, sponsored=5 | TransactionRejected Fee for TransferTransaction (4 in
devnet | fee_asset=GOLD, fee=5, sponsored=5, sponsor_waves=99999 | BalanceErrors
devnet | fee_asset=GOLD, asset=GOLD, amount=995, fee=5, sponsored=5 | ok
devnet | fee_asset=GOLD, asset=GOLD, amount=996, fee=5, sponsored=5 | TransactionRejected Attempt t
devnet | amount=10 * COIN, fee_asset=GOLD, fee=5, sponsored=5 | ok
dapps  | amount=2**63 - 1, waves=2**63 - 1 | TransactionRejected Waves balance sum overflow
smart  | amount=2**63 - 1, fee_asset=GOLD, fee=5, waves=2**63 - 1 | AmountOverflow overflow error
dapps  | amount=2**63 - 1, waves=2**63 - 1, fee_asset=GOLD, fee=5, sponsored=5 | ok
lax    | amount=20 * COIN | BalanceErrors
lax    | to=ME, amount=20 * COIN | ok
"""

# Two and more faults at a time: the first in the reference order is the one that is told.
ORDER = """
devnet | later=10**9, version=4, proofs=(b"",) * 9, seen_at=7, waves=0, fee=1 | Mistiming
light  | version=4, proofs=(b"",) * 9, seen_at=7, waves=0, fee=1, signer=OTHER | UnsupportedTransac
old    | version=2, proofs=(b"",) * 9, seen_at=7, waves=0, signer=OTHER | ActivationError
devnet | version=2, proofs=(b"",) * 9, seen_at=7, waves=0, fee=1, signer=OTHER | ProofsError
devnet | seen_at=7, waves=0, fee=1, signer=OTHER, to=Alias(R, "unknown") | AlreadyInState
devnet | waves=0, fee=1, signer=OTHER, to=Alias(R, "unknown") | TransactionRejected Attempt to tran
devnet | fee=1, signer=OTHER, to=Alias(R, "unknown") | TransactionRejected Fee for TransferTransact
devnet | lease_out=10 * COIN, signer=OTHER, to=Alias(R, "unknown") | BalanceErrors
old    | lease_out=10 * COIN, signer=OTHER, to=Alias(R, "unknown") | InvalidSignature
devnet | lease_out=9 * COIN, signer=OTHER, to=Alias(R, "unknown") | InvalidSignature
devnet | lease_out=9 * COIN, to=Alias(R, "unknown") | AliasDoesNotExist
devnet | lease_out=9 * COIN | BalanceErrors
"""


@pytest.mark.parametrize(("rules", "changes", "outcome"), rows(TABLE))
def test_transfer(rules: str, changes: str, outcome: str) -> None:
    check("transfer", rules, changes, outcome)


@pytest.mark.parametrize(("rules", "changes", "outcome"), rows(ASSETS))
def test_assets(rules: str, changes: str, outcome: str) -> None:
    check("transfer", rules, changes, outcome)


@pytest.mark.parametrize(("rules", "changes", "outcome"), rows(ORDER))
def test_first_error_wins(rules: str, changes: str, outcome: str) -> None:
    check("transfer", rules, changes, outcome)
