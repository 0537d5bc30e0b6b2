"""The accounts that a transaction is listed under: those it changes, and the dApp it calls.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/NewTransactionInfo.scala``.
"""

from __future__ import annotations

from soliton.chain.addresses import Address, Alias, from_public_key
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.table import type_by_id
from soliton.ledger.apply import Outcome
from soliton.ledger.rules import rules_of
from soliton.ledger.state import ALIASES, Changes, State, Status, touched_accounts
from soliton.ledger.transactions import Applied


def accounts_of(transaction: AnyTransaction, outcome: Outcome, state: State) -> tuple[Address, ...]:
    """Return the accounts of a transaction, without duplicates; resolves aliases in ``state``."""
    payload, kind = transaction.payload, type_by_id(transaction.type_id)
    called = kind.calls(payload)
    if outcome.status is not Status.ELIDED and called is None:
        return outcome.touched
    found = dict.fromkeys(outcome.touched)
    recipients = [] if called is None else [called]
    if outcome.status is Status.ELIDED:
        # An elided transaction is listed under all accounts that it names.
        found[from_public_key(transaction.sender_public_key, transaction.chain_id)] = None
        recipients += kind.accounts(payload)
        recipients += rules_of(transaction.type_id).names(transaction, state)
    for recipient in recipients:
        address = state.get(ALIASES, recipient.name) if isinstance(recipient, Alias) else recipient
        if address is not None:
            found[address] = None
    return tuple(found)


def accounts_of_confirmed(
    transaction: AnyTransaction, status: int, changes: Changes, state: State
) -> tuple[Address, ...]:
    """Return the accounts of a transaction of the chain by its stored changes. With them are those
    of the generator's part of the fee, which the index leaves out.
    """
    outcome = Outcome(Status(status), 0, touched_accounts(changes), changes)
    return accounts_of(transaction, outcome, state)


def accounts_of_pending(transaction: AnyTransaction, applied: Applied) -> tuple[Address, ...]:
    """Return the accounts of an unconfirmed transaction, as applied to the state now."""
    state = applied.changes
    touched = touched_accounts(state.changes)
    outcome = Outcome(applied.status, applied.spent, touched, state.changes, applied.state_changes)
    return accounts_of(transaction, outcome, state)
