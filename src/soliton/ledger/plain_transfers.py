"""A fast path for plain transfers, which are most transactions.

A plain transfer sends the chain's coin between accounts without scripts, and pays its fee in the
coin. Its validity depends only on the two balances, the sender's leases and the absence of a
script. The fast path accepts valid plain transfers; every other transaction is left to the rules,
which report errors in their order. Tests compare both.

What does not live here: signatures, rejecting transactions, and the rules themselves
(``transactions``).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from soliton.chain.addresses import Address, Alias, from_public_key
from soliton.chain.features import Feature
from soliton.chain.layouts import SIGNATURE_LENGTH
from soliton.chain.transactions import transfer
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import MAX_I64
from soliton.ledger.context import Context
from soliton.ledger.environment import BlockEnvironment
from soliton.ledger.rules import common
from soliton.ledger.rules_at import Rules
from soliton.ledger.scripts import account_script
from soliton.ledger.state import WAVES, State, locked_balance

_TYPE: Final = transfer.TYPE.type_id
_FIRST_VERSION: Final = 1
_SINCE: Final = {2: Feature.SMART_ACCOUNTS, 3: Feature.BLOCK_V5}
"""The feature that introduced each later version."""


class PlainTransfer(NamedTuple):
    """The new balances of the two accounts, in wavelets; both are the same for a transfer to the
    sender itself.
    """

    sender: Address
    left: int
    recipient: Address
    received: int


def plain_transfer(
    transaction: AnyTransaction, state: State, context: Context
) -> PlainTransfer | None:
    """Return the outcome of a valid plain transfer, without checking its proof; ``None`` for every
    other transaction.
    """
    if transaction.type_id != _TYPE or transaction.fee_asset_id is not None:
        return None
    payload = transaction.payload
    recipient, amount, fee = payload.recipient, payload.amount, transaction.fee
    if payload.asset_id is not None or isinstance(recipient, Alias) or amount <= 0:
        return None
    block = context.block
    rules = block.rules
    if fee <= 0 or fee < common.base_fee(transaction, rules):
        return None
    if transaction.chain_id != rules.chain_id or not _is_timely(transaction, block):
        return None
    if not (_is_active(transaction.version, rules) and _has_one_signature(transaction)):
        return None
    sender = from_public_key(transaction.sender_public_key, rules.chain_id)
    left = state.get(WAVES, sender) - amount - fee
    to_itself = sender == recipient
    received = (left if to_itself else state.get(WAVES, recipient)) + amount
    if left < 0 or received > MAX_I64:
        return None
    if left < locked_balance(state, sender) or account_script(sender, state) is not None:
        return None
    if state.transaction_height(transaction.id) is not None:
        return None
    return PlainTransfer(sender, received if to_itself else left, recipient, received)


def _is_active(version: int, rules: Rules) -> bool:
    return version == _FIRST_VERSION or _SINCE.get(version) in rules.features


def _has_one_signature(transaction: AnyTransaction) -> bool:
    proofs = transaction.proofs
    return len(proofs) == 1 and len(proofs[0]) == SIGNATURE_LENGTH


def _is_timely(transaction: AnyTransaction, block: BlockEnvironment) -> bool:
    """Whether the timestamp is close to those of the block and its parent."""
    rules, timestamp, parent = block.rules, transaction.timestamp, block.parent
    return timestamp - block.timestamp <= rules.max_time_forward_ms and (
        parent is None or parent.timestamp - timestamp <= rules.max_time_back_ms
    )
