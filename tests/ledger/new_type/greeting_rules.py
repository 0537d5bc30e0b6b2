"""Type 20, greeting: what it does (the ledger side): the words go to the sender's data storage."""

from __future__ import annotations

from soliton.chain.addresses import address_text
from soliton.chain.transactions.model import AnyTransaction
from soliton.ledger.context import Context, TypeRules
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common
from soliton.ledger.rules_at import Rules
from soliton.ledger.state import DATA, Overlay

FEE = 7


def _activation(_transaction: AnyTransaction, _context: Context) -> None:
    return


def _minimum_fee(_transaction: AnyTransaction, _rules: Rules) -> int:
    return FEE


def _apply(
    transaction: AnyTransaction, overlay: Overlay, _portfolio: Portfolio, context: Context
) -> None:
    sender = common.sender_of(transaction)
    recipient = common.resolve(transaction.payload.recipient, overlay, context.rules)
    if recipient == sender:
        raise TransactionRejected("nobody greets themselves")
    overlay.put(DATA, (sender, address_text(recipient)), transaction.payload.words)


RULES = TypeRules(_activation, _minimum_fee, None, _apply)
