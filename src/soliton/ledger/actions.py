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
from soliton.chain.networks.model import Functionality
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
from soliton.ledger.script_runs import Asked, Subject, ask
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
from soliton.ledger.traces import BURN, REISSUE, SPONSOR, TRANSFER, AssetTrace, Fault, note
from soliton.ride.bindings import (
    Envelope,
    View,
    burn_object,
    reissue_object,
    sponsor_fee_object,
    transfer_object,
)
from soliton.ride.script import parse_script
from soliton.ride.values import Value, type_name, utf8

ID_BYTES: Final = 32
_NO_KEY: Final = bytes(32)


class AlwaysRejected(TransactionRejected):
    """What is refused whatever it cost; ``skips`` until one more dApp lies in between."""

    skips = True


class Doer(msgspec.Struct, frozen=True):
    """Who does actions: the dApp with its public key, for which transaction, in which block.

    ``called`` is the recipient that the call named.
    """

    dapp: Address
    public_key: bytes
    transaction_id: bytes
    timestamp: int
    called: Recipient
    context: Context
    settings: Functionality

    @property
    def rules(self) -> Rules:
        """The rules of the block."""
        return self.context.rules

    @property
    def validated(self) -> bool:
        """Whether the height is one from which transfers of dApps are looked at closely."""
        return self.context.height >= self.settings.enforce_transfer_validation_after

    def left_after(self, complexity: int) -> Doer:
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


def do_actions(actions: tuple[Action, ...], doer: Doer, own: Overlay) -> int:
    """Do all actions; the complexity of the scripts of assets.

    Raises ``FailedTransaction`` with that complexity so far, or ``TransactionRejected``.
    """
    complexity = 0
    checked = doer.rules.has(Feature.RIDE_V6)
    for action in actions:
        step, portfolio = Overlay(own, doer.context.height), Portfolio()
        spent = 0
        try:
            spent = _do(action, doer.left_after(complexity), own, step, portfolio)
            if checked:
                try:
                    check_balances(step, own, doer.rules)
                except BalanceErrors as error:
                    raise failed(words_of(error), spent) from error
        except FailedTransaction as failure:
            failure.complexity += complexity
            raise
        complexity += spent
        own.merge(step)
    return complexity


def _do(action: Action, doer: Doer, own: State, step: Overlay, portfolio: Portfolio) -> int:
    match action:
        case DataEntry():
            step.put(DATA, (doer.dapp, action.key), action.value)
            return 0
        case Transfer():
            return _transfer(action, doer, own, step, portfolio)
        case Issue():
            _issue(action, doer, step, portfolio)
        case Reissue():
            return _reissue(action, doer, own, step, portfolio)
        case Burn():
            return _burn(action, doer, own, step, portfolio)
        case SponsorFee():
            return _sponsor_fee(action, doer, own, step)
        case Lease():
            _failing(lambda: _lease(action, doer, step, portfolio))
        case LeaseCancel():
            _failing(lambda: _lease_cancel(action, doer, step, portfolio))
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


def _transfer(action: Transfer, doer: Doer, own: State, step: Overlay, portfolio: Portfolio) -> int:
    rules = doer.rules
    address = resolve(action.address, rules)
    portfolio.add(address, action.asset_id, action.amount)
    portfolio.add(doer.dapp, action.asset_id, -action.amount)
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
    key = doer.public_key if rules.has(Feature.BLOCK_V5) else _NO_KEY
    to = action.recipient if rules.has(Feature.SYNCHRONOUS_CALLS) else address
    return _ask_asset(
        action.asset_id,
        script,
        lambda view: transfer_object(doer.envelope(key), to, action.asset_id, action.amount, view),
        doer,
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


def _issue(action: Issue, doer: Doer, step: Overlay, portfolio: Portfolio) -> None:
    fault = issue_fault(action)
    if fault is not None:
        raise failed(fault)
    rules, asset_id = doer.rules, action.id
    if step.get(ERC20, assets.erc20_address(asset_id)) is not None:
        words = f"Asset {base58.encode(asset_id)} is already issued"
        if rules.has(Feature.RIDE_V6) or not doer.validated:
            raise failed(words)
        raise AlwaysRejected(words)
    nft = assets.is_nft(action.quantity, action.decimals, action.reissuable, rules)
    height = doer.context.height
    sequence = step.count_written(ASSETS) + 1
    info = AssetInfo(doer.public_key, action.decimals, nft, doer.transaction_id, height, sequence)
    step.put(ASSETS, asset_id, info)
    step.put(ASSET_VOLUMES, asset_id, AssetVolume(action.reissuable, action.quantity))
    name = AssetName(utf8(action.name), utf8(action.description), height)
    step.put(ASSET_NAMES, asset_id, name)
    step.put(ASSET_SCRIPTS, asset_id, None)
    step.put(ERC20, assets.erc20_address(asset_id), asset_id)
    portfolio.add(doer.dapp, asset_id, action.quantity)
    portfolio.write(step)


def _reissue(action: Reissue, doer: Doer, own: State, step: Overlay, portfolio: Portfolio) -> int:
    def reissue() -> None:
        assets.reissue(
            action.asset_id,
            action.quantity,
            action.reissuable,
            doer.dapp,
            step,
            portfolio,
            doer.context,
        )
        portfolio.write(step)

    _failing(reissue)
    return _ask_about(
        action.asset_id,
        lambda view: reissue_object(
            doer.envelope(doer.public_key),
            action.asset_id,
            action.quantity,
            action.reissuable,
            view,
        ),
        doer,
        own,
        REISSUE,
    )


def _burn(action: Burn, doer: Doer, own: State, step: Overlay, portfolio: Portfolio) -> int:
    def burn() -> None:
        assets.burn(action.asset_id, action.quantity, doer.dapp, step, portfolio, doer.context)
        portfolio.write(step)

    _failing(burn)
    return _ask_about(
        action.asset_id,
        lambda view: burn_object(
            doer.envelope(doer.public_key), action.asset_id, action.quantity, view
        ),
        doer,
        own,
        BURN,
    )


def _sponsor_fee(action: SponsorFee, doer: Doer, own: State, step: Overlay) -> int:
    asset_id, min_fee = action.asset_id, action.min_fee
    info = own.get(ASSETS, asset_id)
    if info is None or info.issuer != doer.public_key:
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
        lambda view: sponsor_fee_object(doer.envelope(doer.public_key), asset_id, min_fee, view),
        doer,
        own,
        SPONSOR,
    )


# --- leases ---------------------------------------------------------------------------------------


def _lease(action: Lease, doer: Doer, step: Overlay, portfolio: Portfolio) -> None:
    if action.amount <= 0:
        raise failed(f"NonPositiveAmount({action.amount},waves)")
    chain_id = doer.rules.chain_id
    try:
        if isinstance(action.recipient, Alias):
            recipient: Recipient = make_alias(action.recipient.name, chain_id)
        else:
            recipient = check_address(action.recipient, chain_id)
    except AddressError as error:
        raise failed(str(error)) from error
    leases.lease(
        action.id,
        doer.transaction_id,
        doer.public_key,
        recipient,
        action.amount,
        0,
        step,
        portfolio,
        doer.context,
    )
    portfolio.write(step)


def _lease_cancel(action: LeaseCancel, doer: Doer, step: Overlay, portfolio: Portfolio) -> None:
    if len(action.id) != ID_BYTES:
        raise failed(
            f"Lease id={base58.encode(action.id)} has invalid length = {len(action.id)} byte(s) "
            f"while expecting {ID_BYTES}"
        )
    leases.cancel(action.id, doer.transaction_id, doer.public_key, step, portfolio, doer.context)
    portfolio.write(step)


# --- scripts of assets ----------------------------------------------------------------------------


def _ask_about(
    asset_id: AssetId, make: Callable[[View], Value], doer: Doer, own: State, purpose: str
) -> int:
    script = own.get(ASSET_SCRIPTS, asset_id)
    return 0 if script is None else _ask_asset(asset_id, script, make, doer, own, purpose)


def _ask_asset(
    asset_id: AssetId,
    script: AssetScript,
    make: Callable[[View], Value],
    doer: Doer,
    own: State,
    purpose: str,
) -> int:
    # Early scripts were told the dApp where they asked for their asset.
    called = doer.called.to_bytes() if isinstance(doer.called, Alias) else doer.called
    this = asset_id if doer.rules.has(Feature.BLOCK_V5) else called
    answer = ask(
        parse_script(script.script),
        Subject(doer.transaction_id, make),
        Asked(asset_id=this),
        own,
        doer.context,
        doer.settings,
        doer.context.limit,
    )
    traces = doer.context.traces
    evaluated = doer.rules.has(Feature.SYNCHRONOUS_CALLS)
    complexity = answer.complexity if evaluated else script.complexity
    if answer.value is True:
        note(traces, AssetTrace(asset_id, purpose))
        return complexity
    failure = asset_failure(3, asset_id, complexity, answer.value, answer.error)
    note(traces, AssetTrace(asset_id, purpose, Fault(failure.detail or None, answer.steps)))
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
