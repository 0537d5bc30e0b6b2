"""Type 10, create alias: gives the sender's account an alias.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/CreateAliasTransactionDiff.scala``.
"""

from __future__ import annotations

from soliton.chain.features import Feature
from soliton.chain.transactions.create_alias import CreateAlias
from soliton.chain.transactions.model import AnyTransaction
from soliton.ledger.context import Context, TypeRules
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common
from soliton.ledger.rules_at import Rules
from soliton.ledger.state import ALIASES, Overlay


def _unique(rules: Rules) -> bool:
    # Old ids depend only on the alias, which could be claimed again.
    return rules.alias_ids_unique


def _apply(
    transaction: AnyTransaction, overlay: Overlay, _portfolio: Portfolio, context: Context
) -> None:
    rules = context.rules
    payload: CreateAlias = transaction.payload
    name = payload.alias.name
    taken = name in rules.disabled_aliases or overlay.get(ALIASES, name) is not None
    if taken and rules.has(Feature.DATA_TRANSACTION):
        raise TransactionRejected("Alias already claimed")
    if len(transaction.proofs) > 1 and not rules.has(Feature.RIDE_V6):
        raise TransactionRejected("Invalid proofs size")
    overlay.put(ALIASES, name, common.sender_of(transaction))


RULES = TypeRules(common.generic_activation, common.base_fee, None, _apply, unique=_unique)
