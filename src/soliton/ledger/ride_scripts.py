"""Scripts read, estimated and run with the script language of this program.

What lives here: ``RideScripts``, the implementation of ``scripts.Scripts``, and what wallets of
Ethereum write as calls and transfers. What does not: the language (``soliton.ride``), calls
(``invocation``).

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/smart/Verifier.scala``,
``state/diffs/EthereumTransactionDiff.scala`` and ``transaction/EthABIConverter.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.caching import kept
from soliton.chain.addresses import Address, address_text, from_public_key
from soliton.chain.errors import FormatError
from soliton.chain.ethereum_encoding import SELECTOR_LENGTH, selector
from soliton.chain.features import Feature
from soliton.chain.networks.model import Network
from soliton.chain.orders import Order
from soliton.chain.transactions import invoke_script
from soliton.chain.transactions.ethereum import (
    Ethereum,
    EthereumCall,
    EthereumTransfer,
    to_invoke,
)
from soliton.chain.transactions.invoke_script import InvokeScript
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.crypto import curve25519
from soliton.ledger.actions import asset_failure, asset_fault
from soliton.ledger.call_frames import Root
from soliton.ledger.context import Context
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.invocation import Invoked, add_fee, invoke
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules_at import Rules
from soliton.ledger.script_runs import (
    Answer,
    Asked,
    Subject,
    argument_value,
    ask,
    call_of,
    call_subject,
    subject_of,
)
from soliton.ledger.scripts import (
    Estimate,
    NotAllowedByScript,
    ScriptExecutionError,
    ScriptHead,
    account_script,
    fault_of,
    smart_assets,
)
from soliton.ledger.state import (
    ASSET_SCRIPTS,
    ERC20,
    AccountScript,
    AssetScript,
    Overlay,
    State,
)
from soliton.ledger.traces import UNKNOWN, AssetTrace, note
from soliton.ride.bindings import Call, foreign_envelope_of, transfer_object
from soliton.ride.errors import RideError, ScriptFormatError
from soliton.ride.estimators.choice import (
    EstimationRules,
    estimate_for_account,
    estimate_for_asset,
    rules_at,
)
from soliton.ride.expressions import DApp
from soliton.ride.meta import ArgumentType, argument_types, read_meta
from soliton.ride.script import (
    Script,
    has_later_blocks,
    has_lists,
    parse_script,
)
from soliton.ride.values import MAX_LIST_LENGTH, RideList, type_name

_MAX_KEPT_BYTES: Final = 16 * 1024**2
"""What is kept of the heads of scripts, and of the interfaces of dApps, each with the scripts."""
_HEAD_BYTES: Final = 512
_INTERFACE_FACTOR: Final = 8
"""The names of functions and arguments, taken apart, and the script itself, take so many times its
bytes at most.
"""
_FIRST_WITHOUT_UNIONS: Final = 6
_ABI_TYPES: Final = {
    "Int": "int64",
    "Boolean": "bool",
    "ByteVector": "bytes",
    "String": "string",
}


class RideScripts:
    """Reads, estimates and runs scripts by the rules of a network."""

    def __init__(self, network: Network) -> None:
        self._settings = network.functionality

    def inspect(self, script: bytes, /) -> ScriptHead:
        return _head(script)

    def estimate(self, script: bytes, for_asset: bool, context: Context, /) -> Estimate:
        parsed = _parsed(script)
        _check_interface(parsed)
        rules = self._estimation_rules(context)
        try:
            if for_asset:
                return Estimate(estimate_for_asset(parsed, rules, context.watch))
            complexities = estimate_for_account(parsed, rules, context.watch)
        except RideError as error:
            raise TransactionRejected(str(error)) from error
        return Estimate(complexities.verifier, complexities.callables)

    def _estimation_rules(self, context: Context) -> EstimationRules:
        return rules_at(context.height, context.rules.features, self._settings)

    # --- verifiers and scripts of assets ----------------------------------------------------------

    def run_account(
        self,
        script: AccountScript,
        subject: AnyTransaction | Order,
        state: State,
        context: Context,
        /,
    ) -> int:
        parsed = _parsed(script.script)
        if isinstance(parsed.content, DApp) and parsed.content.verifier is None:
            return _check_signature(subject, context.rules)
        address = from_public_key(subject.sender_public_key, context.rules.chain_id)
        answer = ask(parsed, subject_of(subject), Asked(address), state, context, self._settings)
        evaluated = context.rules.has(Feature.SYNCHRONOUS_CALLS)
        if answer.value is True:
            return answer.complexity if evaluated else script.verifier_complexity
        raise _refusal(answer, None)

    def run_asset(
        self,
        asset_id: AssetId,
        script: AssetScript,
        transaction: AnyTransaction,
        state: State,
        context: Context,
        /,
    ) -> int:
        return self._run_asset(
            asset_id, script, _subject(transaction, state, self, context), state, context
        )

    def _run_asset(
        self,
        asset_id: AssetId,
        script: AssetScript,
        subject: Subject,
        state: State,
        context: Context,
    ) -> int:
        answer = ask(
            _parsed(script.script),
            subject,
            Asked(asset_id=asset_id),
            state,
            context,
            self._settings,
            context.limit,
        )
        evaluated = context.rules.has(Feature.SYNCHRONOUS_CALLS)
        if answer.value is True:
            return answer.complexity if evaluated else script.complexity
        raise _refusal(answer, asset_id)

    # --- calls of dApps ---------------------------------------------------------------------------

    def invoke(
        self,
        dapp: Address,
        transaction: AnyTransaction,
        overlay: Overlay,
        _portfolio: Portfolio,
        context: Context,
        /,
    ) -> int:
        payload = transaction.payload
        if isinstance(payload, Ethereum):
            assert isinstance(payload.action, EthereumCall), "transfers call nobody"
            return self._invoke_by_wallet(transaction, payload.action, overlay, context)
        root = _root(transaction, call_of(payload, transaction.fee_asset_id))
        invoked = self._invoke(dapp, root, overlay, context)
        return invoked.complexity

    def _invoke(self, dapp: Address, root: Root, overlay: Overlay, context: Context) -> Invoked:
        # The rules take the fee afterwards; actions see it as paid.
        refund = Portfolio()
        add_fee(root, refund, overlay, context.rules, -1)
        invoked = invoke(dapp, root.call.dapp, root, overlay, context, self._settings)
        refund.write(overlay)
        context.state_changes[root.id] = invoked.changes
        return invoked

    def _invoke_by_wallet(
        self, transaction: AnyTransaction, action: EthereumCall, overlay: Overlay, context: Context
    ) -> int:
        rules = context.rules
        payload = self.read_call(action, overlay, context)
        call = call_of(payload, None)
        for payment in payload.payments:
            fault = (
                None if payment.asset_id is None else asset_fault(payment.asset_id, overlay, rules)
            )
            if fault is not None:
                raise TransactionRejected(fault)
        scripted = [
            (asset_id, script)
            for asset_id in smart_assets(_assets(payload), overlay)
            if (script := overlay.get(ASSET_SCRIPTS, asset_id)) is not None
        ]
        before = Overlay(overlay)
        invoked = self._invoke(action.d_app, _root(transaction, call), overlay, context)
        complexity = invoked.complexity
        subject = call_subject(foreign_envelope_of(transaction), call)
        spent = 0
        for asset_id, script in scripted:
            left = context.left_after(complexity + spent)
            try:
                spent += self._run_asset(asset_id, script, subject, before, left)
            except (NotAllowedByScript, ScriptExecutionError) as error:
                told = fault_of(error)
                note(context.traces, AssetTrace(asset_id, UNKNOWN, told))
                value, words = (False, "") if told.words is None else (None, told.words)
                total = complexity + spent + script.complexity
                raise asset_failure(4, asset_id, total, value, words) from error
            note(context.traces, AssetTrace(asset_id, UNKNOWN))
        return complexity + spent

    def read_call(self, action: EthereumCall, state: State, context: Context) -> InvokeScript:
        """The call of a wallet in the words of its dApp; raises ``TransactionRejected``."""
        rules = context.rules
        account = account_script(action.d_app, state)
        if account is None:
            raise TransactionRejected(f"No script at address {address_text(action.d_app)}")
        method = action.data[:SELECTOR_LENGTH]
        found = _functions_by_selector(account.script).get(method)
        if found is None:
            raise TransactionRejected(f"Function not defined: {method.hex()}")
        function, types = found
        try:
            payload, exact = to_invoke(action, function, types)
        except FormatError as error:
            raise TransactionRejected(str(error)) from error
        later = rules.has(Feature.BLOCK_REWARD_DISTRIBUTION)
        if later and not exact:
            raise TransactionRejected("Redundant bytes were found in Ethereum Invoke")
        _check_arguments(payload)
        if later and invoke_script.data_size(payload) > invoke_script.MAX_BYTES:
            raise TransactionRejected(
                f"Ethereum Invoke bytes length exceeds limit = {invoke_script.MAX_BYTES}"
            )
        if rules.ethereum_payments_checked:
            invoke_script.check_payments(payload.payments)
        return payload


def _weight_of_head(script: bytes) -> int:
    return _HEAD_BYTES + len(script)


@kept(_MAX_KEPT_BYTES, _weight_of_head)
def _head(script: bytes) -> ScriptHead:
    parsed = _parsed(script)
    content = parsed.content
    return ScriptHead(parsed.version, parsed.is_dapp, has_lists(content), has_later_blocks(content))


def _parsed(script: bytes) -> Script:
    try:
        return parse_script(script)
    except ScriptFormatError as error:
        raise TransactionRejected(str(error)) from error


def _check_signature(subject: AnyTransaction | Order, rules: Rules) -> int:
    """What a dApp without verifier stands for: the signature of the account."""
    proofs, key = subject.proofs, subject.sender_public_key
    if len(proofs) != 1:
        raise ScriptExecutionError(
            "Transactions from non-scripted accounts must have exactly 1 proof"
        )
    weak = rules.has(Feature.RIDE_V6) and curve25519.is_weak(key)
    if weak or not curve25519.verify(key, subject.body, proofs[0]):
        raise ScriptExecutionError("Proof doesn't validate as signature")
    return 0


def _refusal(answer: Answer, asset_id: AssetId | None) -> TransactionRejected:
    if answer.value is False:
        return NotAllowedByScript(asset_id, answer.complexity, answer.steps)
    words = answer.error
    if answer.value is not None:
        words = f"Script returned not a boolean result, but {type_name(answer.value)}"
    return ScriptExecutionError(words, asset_id, answer.complexity, answer.steps)


def _subject(
    transaction: AnyTransaction, state: State, scripts: RideScripts, context: Context
) -> Subject:
    """A transaction as scripts of assets see it."""
    payload = transaction.payload
    if not isinstance(payload, Ethereum):
        return subject_of(transaction)
    action = payload.action
    envelope = foreign_envelope_of(transaction)
    if isinstance(action, EthereumTransfer):
        asset_id = None if action.token is None else state.get(ERC20, action.token)
        return Subject(
            transaction.id,
            lambda view: transfer_object(envelope, action.recipient, asset_id, action.amount, view),
        )
    return call_subject(envelope, call_of(scripts.read_call(action, state, context), None))


def _root(transaction: AnyTransaction, call: Call) -> Root:
    old = not isinstance(transaction.payload, InvokeScript) or transaction.version == 1
    return Root(
        transaction.id,
        transaction.timestamp,
        from_public_key(transaction.sender_public_key, transaction.chain_id),
        transaction.sender_public_key,
        transaction.fee,
        transaction.fee_asset_id,
        call,
        old,
    )


def _assets(payload: InvokeScript) -> tuple[AssetId, ...]:
    ids = (payment.asset_id for payment in payload.payments)
    return tuple(asset_id for asset_id in ids if asset_id is not None)


# --- the ABI of dApps -----------------------------------------------------------------------------


def wallet_call(action: EthereumCall, state: State) -> InvokeScript | None:
    """The call of a wallet in the words of its dApp, ``None`` where it does not know them."""
    account = account_script(action.d_app, state)
    if account is None:
        return None
    try:
        functions = _functions_by_selector(account.script)
        found = functions.get(action.data[:SELECTOR_LENGTH])
        return None if found is None else to_invoke(action, *found)[0]
    except (FormatError, TransactionRejected):
        return None


def _weight_of_interface(source: bytes) -> int:
    return _HEAD_BYTES + _INTERFACE_FACTOR * len(source)


@kept(_MAX_KEPT_BYTES, _weight_of_interface)
def _functions_by_selector(source: bytes) -> dict[bytes, tuple[str, tuple[str, ...]]]:
    """The functions that wallets can call: their names and the types of their arguments."""
    content = _parsed(source).content
    if not isinstance(content, DApp):
        return {}
    try:
        signatures = argument_types(read_meta(content.meta))
    except ScriptFormatError:
        return {}
    if signatures is None:
        return {}
    found = {}
    for each, signature in zip(content.callables, signatures, strict=False):
        types = tuple(map(abi_type, signature))
        plain = tuple(kind for kind in types if kind is not None)
        if len(plain) == len(types):
            found[selector(each.function.name, plain)] = (each.function.name, plain)
    return found


def _check_interface(script: Script) -> None:
    """Refuse a dApp of later versions with a function that takes one of several types."""
    content = script.content
    if not isinstance(content, DApp) or script.version < _FIRST_WITHOUT_UNIONS:
        return
    try:
        signatures = argument_types(read_meta(content.meta)) or ()
    except ScriptFormatError as error:
        raise TransactionRejected(str(error)) from error
    if any(len(argument.types) != 1 for signature in signatures for argument in signature):
        raise TransactionRejected(
            "Union type is not allowed in callable function arguments of script"
        )


def abi_type(argument: ArgumentType) -> str | None:
    """The type of an argument for wallets; unions have none."""
    if len(argument.types) != 1:
        return None
    name = _ABI_TYPES[argument.types[0]]
    return f"{name}[]" if argument.is_list else name


def _check_arguments(payload: InvokeScript) -> None:
    """Refuse lists that are longer than the language allows."""
    call = payload.call
    for argument in () if call is None else call.args:
        try:
            value = argument_value(argument)
        except RideError as error:
            raise TransactionRejected(str(error)) from error
        if isinstance(value, RideList) and len(value.items) > MAX_LIST_LENGTH:
            raise TransactionRejected(f"List size should not exceed {MAX_LIST_LENGTH}")
