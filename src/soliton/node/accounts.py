"""Under which accounts a transaction is listed: those that it changes, and the dApp that it calls.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/NewTransactionInfo.scala``.
"""

from __future__ import annotations

from collections.abc import Iterator

from soliton.chain.addresses import Address, Alias, Recipient, from_public_key
from soliton.chain.transactions.ethereum import EthereumCall
from soliton.chain.transactions.model import AnyTransaction
from soliton.ledger.apply import Outcome
from soliton.ledger.state import ALIASES, LEASE_INFO, State, Status, touched_accounts
from soliton.ledger.transactions import Applied


def accounts_of(transaction: AnyTransaction, outcome: Outcome, state: State) -> tuple[Address, ...]:
    """The accounts of a transaction, each once; aliases are resolved in ``state``."""
    payload = transaction.payload
    # An Ethereum transaction says in its action whether it calls a dApp.
    action = getattr(payload, "action", payload)
    called = getattr(action, "d_app", None)
    if outcome.status is not Status.ELIDED and called is None:
        return outcome.touched
    found = dict.fromkeys(outcome.touched)
    recipients = [] if called is None else [called]
    if outcome.status is Status.ELIDED:
        found[from_public_key(transaction.sender_public_key, transaction.chain_id)] = None
        if not isinstance(action, EthereumCall):
            recipients += _named(transaction, action, state)
    for recipient in recipients:
        address = state.get(ALIASES, recipient.name) if isinstance(recipient, Alias) else recipient
        if address is not None:
            found[address] = None
    return tuple(found)


def accounts_of_pending(transaction: AnyTransaction, applied: Applied) -> tuple[Address, ...]:
    """The same of a transaction that waits for a block, as it would be now."""
    state = applied.changes
    touched = touched_accounts(state.changes)
    outcome = Outcome(applied.status, applied.spent, touched, state.changes, applied.state_changes)
    return accounts_of(transaction, outcome, state)


def _named(transaction: AnyTransaction, payload: object, state: State) -> Iterator[Recipient]:
    """Whom a transaction names, whatever became of it."""
    recipient: Recipient | None = getattr(payload, "recipient", None)
    if recipient is not None:
        yield recipient
    for item in getattr(payload, "transfers", ()):
        yield item.recipient
    lease = state.get(LEASE_INFO, getattr(payload, "lease_id", b""))
    if lease is not None:
        yield lease.recipient
    if hasattr(payload, "orders"):
        for order in payload.orders():
            yield from_public_key(order.sender_public_key, transaction.chain_id)
