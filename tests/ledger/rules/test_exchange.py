"""Exchanges: every refusal, the fees, and which rule comes first."""

from __future__ import annotations

import pytest

from tests.ledger.cases import rows
from tests.ledger.rules.kinds import check

TABLE = """
devnet | | ok
old | | ok
smart trade | version=2 | ok
smart | version=2 | ActivationError Smart Account Trading feature has not been activated yet
smart trade | version=2, orders=2 | ok
smart trade | version=2, orders=3 | ActivationError Order Version 3 feature has not been activated
dapps | version=2, orders=3 | ActivationError Order Version 3 feature has not been activated yet
v5 | version=2, orders=3 | ok
v5 | version=3, orders=3 | TransactionRejected exchange.price = 100_000_000 should be <= buyOrder.p
dapps | version=3 | ActivationError Ride V4, VRF, Protobuf, Failed transactions feature has not bee
v5 | version=3, orders=4 | ok
devnet | version=3, orders=4 | ok
devnet | orders=2 | ValueRuleError can only contain orders of version 1
devnet | version=2, orders=4 | ValueRuleError can only contain orders of version < 4
devnet | version=3, orders=4, swapped=True | ok
devnet | swapped=True | ValueRuleError order1 should have OrderType.BUY
devnet | version=2, sell_side=0 | ValueRuleError sellOrder should has OrderType.SELL
devnet | version=2, buy_side=1 | ValueRuleError order1 should have OrderType.BUY
devnet | amount=0 | ValueRuleError amount should be in interval (0; 1000000000000000000]
devnet | price=0 | ValueRuleError price should be in interval (0; 1000000000000000000]
devnet | offer=0 | ValueRuleError amount should be in interval (0; 1000000000000000000]
devnet | limit=0 | ValueRuleError price should be > 0
devnet | matcher_fee=0 | ValueRuleError matcher fee should be in interval (0; 1000000000000000000)
devnet | matcher_fee=10**18 | ValueRuleError matcher fee should be in interval (0; 1000000000000000
devnet | buy_fee=10**18 + 1 | ValueRuleError buyMatcherFee too large
devnet | sell_fee=10**18 + 1 | ValueRuleError sellMatcherFee too large
devnet | fee=10**18 + 1 | ValueRuleError fee too large
devnet | sell_quote=ALIEN | ValueRuleError Both orders should have same AssetPair
devnet | base=GOLD, quote=GOLD | OrderInvalid Order validation error: Invalid AssetPair
devnet | expiration=TIME - 1 | OrderInvalid Order validation error: expiration should be > currentT
devnet | expiration=TIME + 2592000001 | OrderInvalid Order validation error: expiration should be e
devnet | paid_in=GOLD | OrderInvalid Order validation error: matcherFeeAssetId should be waves
devnet | version=3, orders=4, attachment=b"a" | ok
ride 6 | version=3, orders=4, attachment=b"a" | TransactionRejected Attachment field for orders is
devnet | version=3, orders=4, attachment=b"a" * 1025 | OrderInvalid Order validation error: attachm
devnet | version=3, orders=4, mode=1 | ok
v5 | version=3, orders=4, mode=1 | TransactionRejected Legacy price mode is only available after Ri
devnet | version=3, orders=4, mode=2, limit=100 | TransactionRejected exchange.price = 100_000_000
devnet | version=3, orders=3, limit=100 | TransactionRejected exchange.price = 100_000_000 should b
devnet | version=3, orders=3, limit=99 | TransactionRejected exchange.price = 100_000_000 should be
devnet | limit=COIN - 1 | TransactionRejected exchange.price = 100_000_000 should be <= buyOrder.pr
devnet | buy_limit=COIN - 1 | TransactionRejected exchange.price = 100_000_000 should be <= buyOrde
devnet | sell_limit=COIN + 1 | TransactionRejected exchange.price = 100_000_000 should be >= sellOr
devnet | buy_limit=2 * COIN | ok
devnet | version=3, buy_orders=3, buy_limit=99999999, sell_limit=10**13 | TransactionRejected excha
devnet | version=3, orders=3, limit=2**63 - 1, decimals=0, quote=GOLD, base=None | TransactionRejec
devnet | amount=101 | OrderInvalid Order validation error: Too much buy. Already filled volume for
devnet | offer=200, amount=101, buy_filled=(100, 0) | OrderInvalid Order validation error: Too much
devnet | sell_offer=150, offer=300, amount=101, sell_filled=(50, 0) | OrderInvalid Order validation
devnet | offer=200, buy_fee=150001, sell_fee=1 | OrderInvalid Order validation error: Insufficient
devnet | offer=200, buy_fee=150000, sell_fee=150001 | OrderInvalid Order validation error: Insuffic
devnet | offer=200, buy_fee=150000, sell_fee=150000 | ok
devnet | offer=200, buy_fee=200000, sell_fee=1, buy_filled=(100, 100000) | ok
devnet | offer=200, buy_fee=200001, sell_fee=1, buy_filled=(100, 100000) | OrderInvalid Order valid
devnet | version=2, orders=3, offer=200 | ok
devnet | version=2, orders=3, offer=200, buy_filled=(10, 1) | OrderInvalid Order validation error:
devnet | buy_fee=-1 | TransactionRejected Matcher fee can not be negative
old | sell_fee=-1 | TransactionRejected Matcher fee can not be negative
devnet | base=NOTHING | TransactionRejected Assets should be issued before they can be traded
old | base=NOTHING | TransactionRejected Assets should be issued before they can be traded
devnet | version=2, orders=3, paid_in=NOTHING | TransactionRejected Asset 8S5Wk8E83ofvLxWpyrt51Htur
dapps | version=2, orders=3, paid_in=NOTHING | ActivationError Order Version 3 feature has not been
orders 3 | version=2, orders=3, paid_in=GOLD, matcher_fee=10, fees=10 | ok
orders 3 | version=2, orders=3, paid_in=GOLD, matcher_fee=2000, buy_fee=1001, fees=1 | ok
devnet | version=2, orders=3, paid_in=GOLD, matcher_fee=2000, buy_fee=1001, fees=1 | BalanceErrors
devnet | version=2, orders=3, paid_in=GOLD, matcher_fee=2000, fees=1001 | BalanceErrors
devnet | amount=10**7, offer=10**7, quote=None | BalanceErrors
devnet | amount=2 * 10**9, offer=2 * 10**9 | BalanceErrors
old | amount=1001, offer=1001 | BalanceErrors
devnet | others=299999 | BalanceErrors
devnet | waves=COIN + 299999, fee=300000 | BalanceErrors
devnet | amount=10**18, offer=10**18, price=10**18, limit=10**18 | TransactionRejected BigInteger o
old | amount=10**18, offer=10**18, price=9 * COIN, limit=10 * COIN, fees=1 | TransactionRejected ex
devnet | fee=299999 | TransactionRejected Fee for ExchangeTransaction (299999 in WAVES) does not ex
old | fee=1 | ok
devnet | fee=0 | InsufficientFee insufficient fee
devnet | base=SMART | TransactionRejected Transaction involves 1 scripted assets. Requires 400000 e
devnet | base=SMART, fee=700000 | ok
devnet | base=SMART, quote=SMART, fee=700000 | OrderInvalid Order validation error: Invalid AssetPa
old | base=SMART, fee=700000 | TransactionRejected Smart assets can't participate in ExchangeTransa
devnet | base=SMART, fee=700000, smart_code=NO | ScriptExecutionError Error while executing token-s
v5 | base=SMART, fee=700000, smart_code=NO | failed
dapps | base=SMART, fee=700000, smart_code=NO | NotAllowedByScript Transaction is not allowed by to
devnet | version=2, base=SMART, fee=11 * FEE, smart_code=ERROR, mine=script(4, "y", 1000) | failed
calls | amount=1001, offer=1001, mine=script(4, "yes", 1001), fee=700000, version=2 | BalanceErrors
sums | amount=1001, offer=1001, mine=script(4, "yes", 1001), fee=700000, version=2 | failed
sums | amount=1001, offer=1001, mine=script(4, "yes", 1000), fee=700000, version=2 | BalanceErrors
sums | amount=1001, offer=1001 | BalanceErrors
sums | amount=1001, offer=1001, height=20 | BalanceErrors
devnet | version=3, orders=3, limit=10**14 | ok
devnet | version=3, orders=4, mode=2, limit=10**14, sell_limit=10**14 + 10**6 | TransactionRejected
devnet | version=3, orders=4, quote=ALIEN, amount=10 | ok
devnet | version=3, orders=4, quote=ALIEN, amount=1000, offer=1001 | ok
devnet | version=3, orders=4, quote=ALIEN, amount=1001, offer=1001 | BalanceErrors
devnet | version=2, orders=3, paid_in=SMART, fees=1 | ok
v5 | version=2, orders=3, paid_in=SMART, fees=1, smart_code=NO | failed
devnet | mine=TRUE, fee=700000 | TransactionRejected Can't process transaction with signature from
devnet | mine=TRUE, fee=700000, version=2 | ok
devnet | yours=TRUE | TransactionRejected Can't process order with signature from scripted account
devnet | yours=TRUE, version=2, orders=2 | ok
devnet | yours=NO, version=2, orders=2 | NotAllowedByScript Transaction is not allowed by account-s
devnet | theirs=ERROR, version=2, orders=2 | ScriptExecutionError Error while executing account-scr
old | yours=TRUE | TransactionRejected Can't process order with signature from scripted account
devnet | signer=OTHER | InvalidSignature Proof doesn't validate as signature for
devnet | buy_signer=SENDER | InvalidSignature Proof doesn't validate as signature for OrderV1(id=
devnet | sell_signer=SENDER | InvalidSignature Proof doesn't validate as signature for OrderV1(id=
devnet | buy_signer=SENDER, sell_signer=SENDER | InvalidSignature Proof doesn't validate as signatu
devnet | version=2, orders=2, buy_order_proofs=() | TransactionRejected Transactions from non-scrip
devnet | version=2, orders=2, buy_order_proofs=(b"",) * 9 | OrderInvalid Order validation error: To
devnet | version=3, orders=4, buy_wallet=True | ok
ride 6 | version=3, orders=4, buy_wallet=True | ok
ride 6 | version=3, orders=4, buy_wallet=True, buy_v=0 | TransactionRejected Invalid order signatur
devnet | version=3, orders=4, buy_wallet=True, buy_v=0 | ok
ride 6 | version=3, orders=4, buy_wallet=True, buy_v=2 * R + 35 | TransactionRejected Invalid order
devnet | version=3, orders=4, buy_wallet=True, buy_v=2 * R + 35 | ok
devnet | version=3, orders=4, buy_wallet=True, buy_v=200 | BalanceErrors
light | version=3, orders=4, buy_wallet=True, buy_half=64 | ok
finality | version=3, orders=4, buy_wallet=True | ok
finality | version=3, orders=4, buy_wallet=True, buy_half=64 | TransactionRejected Invalid order
adjusted | version=3, orders=4, sell_wallet=True, sell_half=64 | TransactionRejected Invalid order
devnet | seen_at=5 | AlreadyInState Transaction
devnet | later=-7200001 | ok
devnet | later=-2**63 - TIME | ok
"""


@pytest.mark.parametrize(("rules", "changes", "outcome"), rows(TABLE))
def test_exchange(rules: str, changes: str, outcome: str) -> None:
    check("exchange", rules, changes, outcome)
