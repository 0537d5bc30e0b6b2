"""Applying the actions of a dApp one by one, and running the scripts of the assets concerned.

What does not live here: limits on actions (``action_limits``), calling functions (``invocation``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/invoke/InvokeDiffsCommon.scala``
(``foldActions``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from soliton.chain.addresses import Address, Alias, Recipient, check_address, make_alias
from soliton.chain.errors import AddressError, AliasError
from soliton.chain.features import Feature
from soliton.chain.values import AssetId, DataEntry
from soliton.crypto import base58
from soliton.ledger import assets, leases
from soliton.ledger.action_limits import issue_fault
from soliton.ledger.balances import check_balances
from soliton.ledger.context import Context
from soliton.ledger.errors import BalanceErrors, TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules_at import Rules
from soliton.ledger.script_results import (
    Action,
    Burn,
    Issue,
    Lease,
    LeaseCancel,
    Reissue,
    SponsorFee,
    Transfer,
)
from soliton.ledger.script_runs import ScriptOwner, complexity_of, run_script
from soliton.ledger.script_subjects import Subject
from soliton.ledger.scripts import FailedTransaction
from soliton.ledger.state import (
    ASSET_NAMES,
    ASSET_SCRIPTS,
    ASSET_VOLUMES,
    ASSETS,
    DATA,
    ERC20,
    SPONSORSHIPS,
    AssetInfo,
    AssetName,
    AssetScript,
    AssetVolume,
    Overlay,
    State,
)
from soliton.ledger.traces import BURN, REISSUE, SPONSOR, TRANSFER, AssetTrace, Fault, add_trace
from soliton.ride.bindings import Envelope, View, stand_in, transfer_object
from soliton.ride.functions.printing import plain_text
from soliton.ride.script import parse_script
from soliton.ride.values import Value, utf8

ID_BYTES: Final = 32
_NO_KEY: Final = bytes(32)


class AlwaysRejected(TransactionRejected):
    """A rejection that does not depend on the complexity spent. ``skips`` is reset when it passes
    through a calling dApp.
    """

    skips = True


class Actor(msgspec.Struct, frozen=True):
    """The dApp that performs actions, with the transaction and the block.

    ``called`` is the recipient as given in the call.
    """

    dapp: Address
    public_key: bytes
    transaction_id: bytes
    timestamp: int
    called: Recipient
    context: Context

    @property
    def rules(self) -> Rules:
        """The rules of the block."""
        return self.context.rules

    def left_after(self, complexity: int) -> Actor:
        """Return the actor with the limit reduced by the complexity spent."""
        if self.context.limit is None:
            return self
        return msgspec.structs.replace(self, context=self.context.left_after(complexity))

    def envelope(self, public_key: bytes) -> Envelope:
        """Return the transaction fields that scripts see of an action."""
        return Envelope(self.transaction_id, self.timestamp, self.dapp, public_key)


def failed(reason: str, complexity: int = 0, code: int = 1) -> FailedTransaction:
    """Return a failure of the dApp itself (code 1) or because of the fee (code 2)."""
    return FailedTransaction(code, reason, complexity)


def error_text(error: Exception) -> str:
    """Return the text that the reference node prints for a nested error."""
    if isinstance(error, BalanceErrors):
        details = ", ".join(f"{address} -> {text}" for address, text in error.details.items())
        return f"AccountBalanceError(VectorMap({details}))"
    return str(error)


def apply_actions(actions: tuple[Action, ...], actor: Actor, own: Overlay) -> int:
    """Apply all actions and return the complexity of the asset scripts.

    Raises ``FailedTransaction`` with the complexity so far, or ``TransactionRejected``.
    """
    complexity = 0
    checked = actor.rules.has(Feature.RIDE_V6)
    for action in actions:
        step, portfolio = Overlay(own, actor.context.height), Portfolio()
        spent = 0
        try:
            spent = _apply(action, actor.left_after(complexity), own, step, portfolio)
            if checked:
                try:
                    check_balances(step, own, actor.rules)
                except BalanceErrors as error:
                    raise failed(error_text(error), spent) from error
        except FailedTransaction as failure:
            failure.complexity += complexity
            raise
        complexity += spent
        own.merge(step)
    return complexity


def _apply(action: Action, actor: Actor, own: State, step: Overlay, portfolio: Portfolio) -> int:
    match action:
        case DataEntry():
            step.put(DATA, (actor.dapp, action.key), action.value)
            return 0
        case Transfer():
            return _transfer(action, actor, own, step, portfolio)
        case Issue():
            _issue(action, actor, step, portfolio)
        case Reissue():
            return _reissue(action, actor, own, step, portfolio)
        case Burn():
            return _burn(action, actor, own, step, portfolio)
        case SponsorFee():
            return _sponsor_fee(action, actor, own, step)
        case Lease():
            _failing(lambda: _lease(action, actor, step, portfolio))
        case LeaseCancel():
            _failing(lambda: _lease_cancel(action, actor, step, portfolio))
    return 0


def _failing(apply: Callable[[], None]) -> None:
    """Run something whose rejection is a failure of the transaction."""
    try:
        apply()
    except FailedTransaction:
        raise
    except TransactionRejected as error:
        raise failed(error_text(error)) from error


# --- transfers ------------------------------------------------------------------------------------


def resolve(recipient: bytes, rules: Rules) -> Address:
    """Check an address given by a dApp; raise ``FailedTransaction`` or ``TransactionRejected``."""
    try:
        return check_address(recipient, rules.chain_id)
    except AddressError as error:
        if rules.has(Feature.RIDE_V6):
            raise failed(str(error)) from error
        raise TransactionRejected(f"InvalidAddress({error})") from error


def _transfer(
    action: Transfer, actor: Actor, own: State, step: Overlay, portfolio: Portfolio
) -> int:
    rules = actor.rules
    address = resolve(action.address, rules)
    portfolio.add(address, action.asset_id, action.amount)
    portfolio.add(actor.dapp, action.asset_id, -action.amount)
    try:
        portfolio.write(step)
    except TransactionRejected as error:
        if rules.has(Feature.RIDE_V6):
            raise failed(str(error)) from error
        raise
    if action.asset_id is None:
        return 0
    script = own.get(ASSET_SCRIPTS, action.asset_id)
    if script is None:
        fault = asset_fault(action.asset_id, own, rules)
        if fault is not None:
            raise failed(fault)
        return 0
    if rules.has(Feature.RIDE_V6):
        try:
            check_balances(step, own, rules)
        except BalanceErrors as error:
            if rules.has(Feature.LIGHT_NODE):
                raise failed(error_text(error)) from error
            raise
    key = actor.public_key if rules.has(Feature.BLOCK_V5) else _NO_KEY
    to = action.recipient if rules.has(Feature.SYNCHRONOUS_CALLS) else address
    return _run_asset_script(
        action.asset_id,
        script,
        lambda view: transfer_object(actor.envelope(key), to, action.asset_id, action.amount, view),
        actor,
        own,
        TRANSFER,
    )


def asset_fault(asset_id: AssetId, state: State, rules: Rules) -> str | None:
    """Return why an asset cannot be moved, or ``None``; early rules did not check its existence."""
    if not rules.has(Feature.SYNCHRONOUS_CALLS):
        return None
    if len(asset_id) != ID_BYTES:
        return (
            f"Transfer error: invalid asset ID '{base58.encode(asset_id)}' length = "
            f"{len(asset_id)} bytes, must be {ID_BYTES}"
        )
    if state.get(ASSETS, asset_id) is None:
        return f"Transfer error: asset '{base58.encode(asset_id)}' is not found on the blockchain"
    return None


# --- assets ---------------------------------------------------------------------------------------


def _issue(action: Issue, actor: Actor, step: Overlay, portfolio: Portfolio) -> None:
    fault = issue_fault(action)
    if fault is not None:
        raise failed(fault)
    rules, asset_id = actor.rules, action.id
    if step.get(ERC20, assets.erc20_address(asset_id)) is not None:
        message = f"Asset {base58.encode(asset_id)} is already issued"
        if rules.has(Feature.RIDE_V6) or not rules.dapp_actions_checked:
            raise failed(message)
        raise AlwaysRejected(message)
    nft = assets.is_nft(action.quantity, action.decimals, action.reissuable, rules)
    height = actor.context.height
    sequence = step.count_written(ASSETS) + 1
    info = AssetInfo(actor.public_key, action.decimals, nft, actor.transaction_id, height, sequence)
    step.put(ASSETS, asset_id, info)
    step.put(ASSET_VOLUMES, asset_id, AssetVolume(action.reissuable, action.quantity))
    name = AssetName(utf8(action.name), utf8(action.description), height)
    step.put(ASSET_NAMES, asset_id, name)
    step.put(ASSET_SCRIPTS, asset_id, None)
    step.put(ERC20, assets.erc20_address(asset_id), asset_id)
    portfolio.add(actor.dapp, asset_id, action.quantity)
    portfolio.write(step)


def _reissue(action: Reissue, actor: Actor, own: State, step: Overlay, portfolio: Portfolio) -> int:
    def reissue() -> None:
        assets.reissue(
            action.asset_id,
            action.quantity,
            action.reissuable,
            actor.dapp,
            step,
            portfolio,
            actor.context,
        )
        portfolio.write(step)

    _failing(reissue)
    return _run_script_of(
        action.asset_id,
        lambda view: stand_in("ReissueTransaction", action, actor.envelope(actor.public_key), view),
        actor,
        own,
        REISSUE,
    )


def _burn(action: Burn, actor: Actor, own: State, step: Overlay, portfolio: Portfolio) -> int:
    def burn() -> None:
        assets.burn(action.asset_id, action.quantity, actor.dapp, step, portfolio, actor.context)
        portfolio.write(step)

    _failing(burn)
    return _run_script_of(
        action.asset_id,
        lambda view: stand_in("BurnTransaction", action, actor.envelope(actor.public_key), view),
        actor,
        own,
        BURN,
    )


def _sponsor_fee(action: SponsorFee, actor: Actor, own: State, step: Overlay) -> int:
    asset_id, min_fee = action.asset_id, action.min_fee
    info = own.get(ASSETS, asset_id)
    if info is None or info.issuer != actor.public_key:
        raise failed(
            f"SponsorFee assetId={base58.encode(asset_id)} was not issued from address of current "
            "dApp"
        )
    if min_fee is not None and min_fee <= 0:
        raise failed(f"NegativeMinFee({min_fee},asset)")
    if own.get(ASSET_SCRIPTS, asset_id) is not None:
        raise failed("Sponsorship smart assets is disabled.")
    step.put(SPONSORSHIPS, asset_id, min_fee or 0)
    return _run_script_of(
        asset_id,
        lambda view: stand_in(
            "SponsorFeeTransaction", action, actor.envelope(actor.public_key), view
        ),
        actor,
        own,
        SPONSOR,
    )


# --- leases ---------------------------------------------------------------------------------------


def _lease(action: Lease, actor: Actor, step: Overlay, portfolio: Portfolio) -> None:
    if action.amount <= 0:
        raise failed(f"NonPositiveAmount({action.amount},waves)")
    chain_id = actor.rules.chain_id
    try:
        if isinstance(action.recipient, Alias):
            recipient: Recipient = make_alias(action.recipient.name, chain_id)
        else:
            recipient = check_address(action.recipient, chain_id)
    except AliasError as error:
        raise failed(str(error)) from error
    except AddressError as error:
        raise failed(f"InvalidAddress({error})") from error
    leases.lease(
        action.id,
        actor.transaction_id,
        actor.public_key,
        recipient,
        action.amount,
        0,
        step,
        portfolio,
        actor.context,
    )
    portfolio.write(step)


def _lease_cancel(action: LeaseCancel, actor: Actor, step: Overlay, portfolio: Portfolio) -> None:
    if len(action.id) != ID_BYTES:
        raise failed(
            f"Lease id={base58.encode(action.id)} has invalid length = {len(action.id)} byte(s) "
            f"while expecting {ID_BYTES}"
        )
    leases.cancel(action.id, actor.transaction_id, actor.public_key, step, portfolio, actor.context)
    portfolio.write(step)


# --- scripts of assets ----------------------------------------------------------------------------


def _run_script_of(
    asset_id: AssetId,
    make: Callable[[View], Value],
    actor: Actor,
    own: State,
    purpose: str,
) -> int:
    script = own.get(ASSET_SCRIPTS, asset_id)
    return 0 if script is None else _run_asset_script(asset_id, script, make, actor, own, purpose)


def _run_asset_script(
    asset_id: AssetId,
    script: AssetScript,
    make: Callable[[View], Value],
    actor: Actor,
    own: State,
    purpose: str,
) -> int:
    # For early scripts `this` was the dApp instead of the asset.
    called = actor.called.to_bytes() if isinstance(actor.called, Alias) else actor.called
    this = asset_id if actor.rules.has(Feature.BLOCK_V5) else called
    outcome = run_script(
        parse_script(script.script),
        Subject(actor.transaction_id, make),
        ScriptOwner(asset_id=this),
        own,
        actor.context,
        actor.context.limit,
    )
    traces = actor.context.traces
    complexity = complexity_of(outcome, script.complexity, actor.context)
    if outcome.value is True:
        add_trace(traces, AssetTrace(asset_id, purpose))
        return complexity
    failure = asset_failure(3, asset_id, complexity, outcome.value, outcome.error)
    add_trace(traces, AssetTrace(asset_id, purpose, Fault(failure.detail or None, outcome.steps)))
    raise failure


def asset_failure(
    code: int, asset_id: AssetId, complexity: int, value: Value | None, error: str
) -> FailedTransaction:
    """Return the failure caused by an asset's script that returned false or aborted."""
    message = f"Transaction is not allowed by script of the asset {base58.encode(asset_id)}"
    detail = ""
    if value is not False:
        detail = (
            error
            if value is None
            else f"Script returned not a boolean result, but {plain_text(value)}"
        )
        message += f": {detail}"
    return FailedTransaction(code, message, complexity, asset_id, detail)
