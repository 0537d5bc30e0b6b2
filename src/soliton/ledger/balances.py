"""Checks of balances after a transaction: not negative, and not below the leased-out amount and the
deposit of commitments.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/BalanceDiffValidation.scala``.
"""

from __future__ import annotations

from soliton.chain.addresses import Address, address_text
from soliton.crypto import base58
from soliton.ledger.errors import BalanceErrors
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules_at import Rules
from soliton.ledger.state import (
    ASSET_BALANCES,
    DEPOSITS,
    LEASES,
    WAVES,
    LeaseBalance,
    Overlay,
    State,
    effective_balance,
)


def check_portfolio(portfolio: Portfolio, state: State, rules: Rules) -> None:
    """Raise ``TransactionRejected`` if these changes alone would make a balance too low."""
    overlay = Overlay(state)
    portfolio.write(overlay)
    check_balances(overlay, state, rules)


def check_balances(overlay: Overlay, before: State, rules: Rules) -> None:
    """Raise ``BalanceErrors`` if a decreased balance is negative or below the leased-out amount."""
    problems: dict[str, str] = {}
    changes = overlay.changes
    for address, balance in changes.get(WAVES, {}).items():
        old = before.get(WAVES, address)
        if balance < old:
            problem = _waves_problem(address, old, balance, overlay, before, rules)
            if problem is not None:
                problems[address_text(address)] = problem
    assets = changes.get(ASSET_BALANCES, {})
    address = next((key[0] for key, balance in assets.items() if balance < 0), None)
    if address is not None:
        negative = ", ".join(
            f"{base58.encode(asset_id)} -> {balance}"
            for (owner, asset_id), balance in assets.items()
            if owner == address and balance < 0
        )
        text = address_text(address)
        problems[text] = f"negative asset balance: {text}, new portfolio: VectorMap({negative})"
    if problems:
        raise BalanceErrors(problems)


def _waves_problem(
    address: Address, old: int, new: int, overlay: Overlay, before: State, rules: Rules
) -> str | None:
    if not rules.balances_enforced:
        return None
    if new < 0:
        return f"negative waves balance: {address_text(address)}, old: {old}, new: {new}"
    leases, deposit = overlay.get(LEASES, address), overlay.get(DEPOSITS, address)
    if new >= leases.lease_out + deposit or not rules.leased_coins_protected:
        return None
    old_leases, text = before.get(LEASES, address), address_text(address)
    if deposit:
        shown = (
            f"before: {_parts(old, old_leases, before.get(DEPOSITS, address))}, "
            f"after: {_parts(new, leases, deposit)}"
        )
        return f"{_deposit_problem(address, new, overlay, before)}, {shown}"
    if effective_balance(new, leases, 0) < 0:
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


def _deposit_problem(address: Address, new: int, overlay: Overlay, before: State) -> str:
    leases, deposit = overlay.get(LEASES, address), overlay.get(DEPOSITS, address)
    if new < deposit:
        if deposit > before.get(DEPOSITS, address):
            return "not enough funds for deposit"
        return "trying to spend a deposit"
    if effective_balance(new, leases, deposit) < 0:
        return "negative effective balance"
    if leases.lease_out == before.get(LEASES, address).lease_out:
        return "trying to spend leased money"
    return "leased being more than own"


def _parts(balance: int, leases: LeaseBalance, deposit: int) -> str:
    parts = {"waves": balance, "lease": leases.lease_out, "deposit": deposit}
    shown = "".join(f", {name}={value}" for name, value in parts.items() if value)
    return f"spendable={balance - leases.lease_out - deposit}{shown}"


def _pair(balance: int, leases: LeaseBalance) -> str:
    return f"({balance},LeaseBalance({leases.lease_in},{leases.lease_out}))"
