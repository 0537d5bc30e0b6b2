"""One transaction on a state: every check in the reference order, then its changes.

The order decides which error a client sees when several rules are broken: common checks, funds for
the fee, the signature, the type's own rules, balances.

What lives here: the sequence. What does not: the rules of a type (``ledger.rules``), blocks
(``apply``).

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/TransactionDiffer.scala``,
``CommonValidation.scala``, ``BalanceDiffValidation.scala`` and
``transaction/smart/Verifier.scala``.
"""

from __future__ import annotations

import msgspec

from soliton.chain.addresses import Address, address_text
from soliton.chain.errors import UnsupportedTransaction
from soliton.chain.features import Feature
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.table import type_by_id
from soliton.crypto import base58, curve25519
from soliton.ledger import fees
from soliton.ledger.context import Context
from soliton.ledger.errors import (
    AlreadyInState,
    BalanceErrors,
    InvalidSignature,
    Mistiming,
    TransactionRejected,
)
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common, rules_of
from soliton.ledger.rules_at import Rules
from soliton.ledger.state import (
    ASSET_BALANCES,
    LEASES,
    WAVES,
    LeaseBalance,
    Overlay,
    State,
    effective_balance,
)


def apply_transaction(
    transaction: AnyTransaction, state: State, context: Context, *, verify_signature: bool = True
) -> Overlay:
    """Check a transaction against a state and give its changes in an overlay above that state.

    Rules that need no state are checked by ``codec.validate`` beforehand. Raises
    ``TransactionRejected`` or one of the typed errors under ``LedgerError`` and ``ChainError``; the
    state is not touched.
    """
    _check_common(transaction, state, context)
    if context.rules.has(Feature.BLOCK_V5) and transaction.sender_public_key:
        _check_fee_funds(transaction, state, context)
    check_signature(transaction, context.rules, verify=verify_signature)
    overlay = Overlay(state, context.height)
    portfolio = Portfolio()
    rules_of(transaction.type_id).apply(transaction, overlay, portfolio, context)
    fees.add_fee(transaction, portfolio, state, context.rules)
    portfolio.write(overlay)
    check_balances(overlay, state, context.rules)
    overlay.record_transaction(transaction.id)
    return overlay


def _check_common(transaction: AnyTransaction, state: State, context: Context) -> None:
    rules = context.rules
    if transaction.chain_id != rules.chain_id:
        raise TransactionRejected(
            "Address belongs to another network: expected: "
            f"{rules.chain_id}({chr(rules.chain_id)}), "
            f"actual: {transaction.chain_id}({chr(transaction.chain_id)})"
        )
    _check_time(transaction, context)
    _check_version(transaction, rules)
    of_type = rules_of(transaction.type_id)
    of_type.activation(transaction, context)
    codec.check_proofs(transaction.proofs)
    if of_type.unique:
        height = state.transaction_height(transaction.id)
        if height is not None:
            raise AlreadyInState(base58.encode(transaction.id), height)
    if of_type.sending is not None and context.timestamp >= rules.temporary_negative_until:
        of_type.sending(transaction, state, rules)
    fees.check_fee(transaction, state, rules)


def _check_time(transaction: AnyTransaction, context: Context) -> None:
    rules, timestamp = context.rules, transaction.timestamp
    if (
        timestamp >= rules.future_until
        and timestamp - context.timestamp > rules.max_time_forward_ms
    ):
        raise Mistiming(
            f"Transaction timestamp {timestamp} is more than {rules.max_time_forward_ms}ms in the "
            f"future relative to block timestamp {context.timestamp}"
        )
    parent = context.parent_timestamp
    if parent is not None and parent - timestamp > rules.max_time_back_ms:
        raise Mistiming(
            f"Transaction timestamp {timestamp} is more than {rules.max_time_back_ms}ms in the "
            f"past relative to previous block timestamp {parent}"
        )


def _check_version(transaction: AnyTransaction, rules: Rules) -> None:
    kind = type_by_id(transaction.type_id)
    if not kind.versioned:
        return
    known = 0 < transaction.version <= kind.max_version
    if not known and rules.has(Feature.LIGHT_NODE):
        raise UnsupportedTransaction(transaction.type_id, transaction.version)
    # Before the light node feature, protobuf versions above the known ones got into the history of
    # mainnet.
    if codec.is_protobuf(kind, transaction.version):
        common.require_feature(Feature.BLOCK_V5, rules)
    elif not known:
        raise UnsupportedTransaction(transaction.type_id, transaction.version)


def _check_fee_funds(transaction: AnyTransaction, state: State, context: Context) -> None:
    """Whether the fee alone can be paid."""
    portfolio = Portfolio()
    fees.add_fee(transaction, portfolio, state, context.rules)
    overlay = Overlay(state)
    portfolio.write(overlay)
    check_balances(overlay, state, context.rules)


def check_signature(transaction: AnyTransaction, rules: Rules, *, verify: bool = True) -> None:
    """Raise ``TransactionRejected`` unless the one proof is a signature of the sender.

    Without ``verify`` the caller has checked the signature itself; what remains is how many proofs
    there are and whether the key is one that is refused.
    """
    if not transaction.sender_public_key:
        return
    if len(transaction.proofs) != 1:
        raise TransactionRejected(
            "Transactions from non-scripted accounts must have exactly 1 proof"
        )
    key = transaction.sender_public_key
    weak = rules.has(Feature.RIDE_V6) and curve25519.is_weak(key)
    if weak or (verify and not curve25519.verify(key, transaction.body, transaction.proofs[0])):
        raise invalid_signature(transaction)


def invalid_signature(transaction: AnyTransaction) -> InvalidSignature:
    """The error of a proof that does not fit, with the transaction in its text."""
    text = msgspec.json.encode(codec.to_json(transaction)).decode()
    return InvalidSignature(f"Proof doesn't validate as signature for {text}")


def check_balances(overlay: Overlay, before: State, rules: Rules) -> None:
    """Raise ``BalanceErrors`` when a balance that went down is below zero or below what is leased
    out.
    """
    problems: dict[str, str] = {}
    changes = overlay.changes
    for address, balance in changes.get(WAVES, {}).items():
        old = before.get(WAVES, address)
        if balance < old:
            problem = _waves_problem(address, old, balance, overlay, before, rules)
            if problem is not None:
                problems[address_text(address)] = problem
    for (address, asset_id), balance in changes.get(ASSET_BALANCES, {}).items():
        if balance < 0:
            text = address_text(address)
            problems[text] = (
                f"negative asset balance: {text}, "
                f"new portfolio: Map({base58.encode(asset_id)} -> {balance})"
            )
            break
    if problems:
        raise BalanceErrors(problems)


def _waves_problem(
    address: Address, old: int, new: int, overlay: Overlay, before: State, rules: Rules
) -> str | None:
    text = address_text(address)
    if new < 0:
        return f"negative waves balance: {text}, old: {old}, new: {new}"
    leases = overlay.get(LEASES, address)
    if new >= leases.lease_out or not rules.leased_coins_protected:
        return None
    old_leases = before.get(LEASES, address)
    if effective_balance(new, leases) < 0:
        return (
            f"negative effective balance: {text}, old: {_pair(old, old_leases)}, "
            f"new: {_pair(new, leases)}"
        )
    if leases.lease_out == old_leases.lease_out:
        return f"{text} trying to spend leased money"
    return (
        f"leased being more than own: {text}, old: {_pair(old, old_leases)}, "
        f"new: {_pair(new, leases)}"
    )


def _pair(balance: int, leases: LeaseBalance) -> str:
    return f"({balance},LeaseBalance({leases.lease_in},{leases.lease_out}))"
