"""Leases: coins lent for mining, which the owner keeps but cannot spend; shared by lease
transactions and actions of dApps.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/DiffsCommon.scala``.
"""

from __future__ import annotations

from soliton.chain.addresses import Recipient, from_public_key
from soliton.chain.features import Feature
from soliton.crypto import base58
from soliton.ledger.context import Context
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common
from soliton.ledger.state import (
    LEASE_INFO,
    LEASE_STATES,
    LEASES,
    WAVES,
    LeaseInfo,
    LeaseState,
    Overlay,
)


def lease(
    lease_id: bytes,
    transaction_id: bytes,
    sender: bytes,
    recipient: Recipient,
    amount: int,
    fee: int,
    overlay: Overlay,
    portfolio: Portfolio,
    context: Context,
) -> None:
    """Lease ``amount`` wavelets of the account with public key ``sender``.

    ``fee`` is the transaction's fee. Raises ``TransactionRejected``.
    """
    rules = context.rules
    owner = from_public_key(sender, rules.chain_id)
    address = common.resolve(recipient, overlay, rules)
    if address == owner:
        raise TransactionRejected("Cannot lease to self")
    if overlay.get(LEASE_INFO, lease_id) is not None:
        raise TransactionRejected(
            f"Lease with id={base58.encode(lease_id)} is already in the state"
        )
    balance, leased = overlay.get(WAVES, owner), overlay.get(LEASES, owner).lease_out
    needed = amount + fee if rules.has(Feature.SYNCHRONOUS_CALLS) else amount
    if balance - leased < needed:
        raise TransactionRejected(
            f"Cannot lease more than own: Balance: {balance}, already leased: {leased}"
        )
    portfolio.lease(owner, address, amount)
    info = LeaseInfo(sender, address, amount, transaction_id, context.height)
    overlay.put(LEASE_INFO, lease_id, info)
    overlay.put(LEASE_STATES, lease_id, LeaseState(True, 0, b""))


def cancel(
    lease_id: bytes,
    transaction_id: bytes,
    sender: bytes,
    overlay: Overlay,
    portfolio: Portfolio,
    context: Context,
) -> None:
    """End a lease of the account with public key ``sender``; raise ``TransactionRejected``."""
    until = context.rules.multiple_lease_cancel_until
    info, state = overlay.get(LEASE_INFO, lease_id), overlay.get(LEASE_STATES, lease_id)
    if info is None or state is None:
        raise TransactionRejected(f"Lease with id={base58.encode(lease_id)} not found")
    if not state.active and context.timestamp > until:
        raise TransactionRejected("Cannot cancel already cancelled lease")
    if sender != info.sender and context.timestamp >= until:
        raise TransactionRejected(
            "LeaseTransaction was leased by other sender and "
            f"time={context.timestamp} > allowMultipleLeaseCancelTransactionUntilTimestamp={until}"
        )
    # In early history another account could cancel a lease.
    owner = from_public_key(sender, context.rules.chain_id)
    portfolio.lease(owner, info.recipient, -info.amount)
    overlay.put(LEASE_STATES, lease_id, LeaseState(False, context.height, transaction_id))
