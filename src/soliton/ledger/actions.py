"""Doing what a dApp answered: its actions one by one, with the scripts of assets that have a say.

What does not live here: limits of answers (``action_limits``), calling functions (``invocation``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/invoke/InvokeDiffsCommon.scala``
(``foldActions``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from soliton.chain.addresses import Address, Alias, Recipient, check_address, make_alias
from soliton.chain.errors import AddressError
from soliton.chain.features import Feature
from soliton.chain.values import AssetId, DataEntry
from soliton.crypto import base58
from soliton.ledger import assets, leases
from soliton.ledger.action_limits import issue_fault
from soliton.ledger.balances import check_balances
from soliton.ledger.context import Context
from soliton.ledger.errors import AliasDoesNotExist, BalanceErrors, TransactionRejected
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
from soliton.ledger.script_runs import Asked, ask, complexity_of
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
from soliton.ride.script import parse_script
from soliton.ride.values import Value, type_name, utf8

ID_BYTES: Final = 32
_NO_KEY: Final = bytes(32)


class AlwaysRejected(TransactionRejected):
    """What is refused whatever it cost; ``skips`` until one more dApp lies in between."""

    skips = True


class Actor(msgspec.Struct, frozen=True):
    """Who does actions: the dApp with its public key, for which transaction, in which block.

    ``called`` is the recipient that the call named.
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
        """The same where so much has been run."""
        if self.context.limit is None:
            return self
        return msgspec.structs.replace(self, context=self.context.left_after(complexity))

    def envelope(self, public_key: bytes) -> Envelope:
        """What an action has of a transaction."""
        return Envelope(self.transaction_id, self.timestamp, self.dapp, public_key)


def failed(reason: str, complexity: int = 0, code: int = 1) -> FailedTransaction:
    """A failure of the dApp itself (code 1) or for its fee (code 2)."""
    return FailedTransaction(code, reason, complexity)


def words_of(error: Exception) -> str:
    """What the reference prints for an error inside of another one."""
    if isinstance(error, BalanceErrors):
        details = ", ".join(f"{address} -> {text}" for address, text in error.details.items())
        return f"AccountBalanceError(VectorMap({details}))"
    if isinstance(error, AliasDoesNotExist):
        return f"Alias '{error.alias}' does not exist."
    return str(error)


def do_actions(actions: tuple[Action, ...], actor: Actor, own: Overlay) -> int:
    """Do all actions; the complexity of the scripts of assets.

    Raises ``FailedTransaction`` with that complexity so far, or ``TransactionRejected``.
    """
    complexity = 0
    checked = actor.rules.has(Feature.RIDE_V6)
    for action in actions:
        step, portfolio = Overlay(own, actor.context.height), Portfolio()
        spent = 0
        try:
            spent = _do(action, actor.left_after(complexity), own, step, portfolio)
            if checked:
                try:
                    check_balances(step, own, actor.rules)
                except BalanceErrors as error:
                    raise failed(words_of(error), spent) from error
        except FailedTransaction as failure:
            failure.complexity += complexity
            raise
        complexity += spent
        own.merge(step)
    return complexity


def _do(action: Action, actor: Actor, own: State, step: Overlay, portfolio: Portfolio) -> int:
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


def _failing(do: Callable[[], None]) -> None:
    """Do something whose refusal is a failure of the transaction."""
    try:
        do()
    except FailedTransaction:
        raise
    except TransactionRejected as error:
        raise failed(words_of(error)) from error


# --- transfers ------------------------------------------------------------------------------------


def resolve(recipient: bytes, rules: Rules) -> Address:
    """An address that a dApp gave; raises ``FailedTransaction`` or ``TransactionRejected``."""
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
                raise failed(words_of(error)) from error
            raise
    key = actor.public_key if rules.has(Feature.BLOCK_V5) else _NO_KEY
    to = action.recipient if rules.has(Feature.SYNCHRONOUS_CALLS) else address
    return _ask_asset(
        action.asset_id,
        script,
        lambda view: transfer_object(actor.envelope(key), to, action.asset_id, action.amount, view),
        actor,
        own,
        TRANSFER,
    )


def asset_fault(asset_id: AssetId, state: State, rules: Rules) -> str | None:
    """Why an asset cannot be moved: it does not exist, and later rules look at that."""
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
        words = f"Asset {base58.encode(asset_id)} is already issued"
        if rules.has(Feature.RIDE_V6) or not rules.dapp_actions_checked:
            raise failed(words)
        raise AlwaysRejected(words)
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
    return _ask_about(
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
    return _ask_about(
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
    return _ask_about(
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
    except AddressError as error:
        raise failed(str(error)) from error
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


def _ask_about(
    asset_id: AssetId,
    make: Callable[[View], Value],
    actor: Actor,
    own: State,
    purpose: str,
) -> int:
    script = own.get(ASSET_SCRIPTS, asset_id)
    return 0 if script is None else _ask_asset(asset_id, script, make, actor, own, purpose)


def _ask_asset(
    asset_id: AssetId,
    script: AssetScript,
    make: Callable[[View], Value],
    actor: Actor,
    own: State,
    purpose: str,
) -> int:
    # Early scripts were told the dApp where they asked for their asset.
    called = actor.called.to_bytes() if isinstance(actor.called, Alias) else actor.called
    this = asset_id if actor.rules.has(Feature.BLOCK_V5) else called
    answer = ask(
        parse_script(script.script),
        Subject(actor.transaction_id, make),
        Asked(asset_id=this),
        own,
        actor.context,
        actor.context.limit,
    )
    traces = actor.context.traces
    complexity = complexity_of(answer, script.complexity, actor.context)
    if answer.value is True:
        add_trace(traces, AssetTrace(asset_id, purpose))
        return complexity
    failure = asset_failure(3, asset_id, complexity, answer.value, answer.error)
    add_trace(traces, AssetTrace(asset_id, purpose, Fault(failure.detail or None, answer.steps)))
    raise failure


def asset_failure(
    code: int, asset_id: AssetId, complexity: int, value: Value | None, error: str
) -> FailedTransaction:
    """The failure of a transaction by an asset's script that said no or broke off."""
    words = f"Transaction is not allowed by script of the asset {base58.encode(asset_id)}"
    detail = ""
    if value is not False:
        detail = (
            error
            if value is None
            else f"Script returned not a boolean result, but {type_name(value)}"
        )
        words += f": {detail}"
    return FailedTransaction(code, words, complexity, asset_id, detail)
