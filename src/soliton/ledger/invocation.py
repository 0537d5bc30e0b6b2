"""Calls of dApps: from a transaction, and from one dApp to another.

What lives here: how a call goes from its arguments to its actions, what it may cost, what fails and
what is refused. What does not: reading answers (``script_results``), their limits
(``action_limits``), doing them (``actions``).

A call works on an overlay of its own, which lies above that of its caller; when it succeeds the
caller takes over what it wrote.

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/invoke/{InvokeScriptTransactionDiff,InvokeScriptDiff}.scala``
and ``transaction/smart/WavesEnvironment.scala`` (``DAppEnvironment``).
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain.addresses import (
    Address,
    Recipient,
    address_text,
    check_address,
    from_public_key,
)
from soliton.chain.errors import AddressError
from soliton.chain.features import Feature
from soliton.chain.networks.model import Functionality
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.ledger import fees
from soliton.ledger.action_limits import (
    Answer,
    Counts,
    allowance,
    answer_fault,
    bytes_fault,
    count,
    field_fault,
    total_fault,
)
from soliton.ledger.actions import (
    AlwaysRejected,
    Doer,
    asset_failure,
    asset_fault,
    do_actions,
    failed,
    resolve,
    words_of,
)
from soliton.ledger.balances import check_balances
from soliton.ledger.context import Context
from soliton.ledger.errors import BalanceErrors, TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules_at import Rules
from soliton.ledger.script_environment import LedgerEnvironment
from soliton.ledger.script_results import Issue, Reader, Result, Transfer, read_result
from soliton.ledger.script_runs import Asked, Subject, ask, switches_at
from soliton.ledger.scripts import (
    FAIL_FREE_COMPLEXITY,
    FailedTransaction,
    InvocationRejected,
    account_script,
    has_paid_verifier,
    smart_assets,
)
from soliton.ledger.state import (
    ASSET_BALANCES,
    ASSET_SCRIPTS,
    WAVES,
    AccountScript,
    AssetScript,
    Overlay,
    State,
)
from soliton.ledger.state_changes import ErrorMessage, InvokedCall, StateChanges
from soliton.ride.bindings import (
    Call,
    Envelope,
    Invocation,
    check_payment_count,
    invocation_object,
    invoke_object,
    transfer_object,
)
from soliton.ride.environment import Payment
from soliton.ride.errors import (
    ComplexityExceeded,
    EvaluationError,
    FailOrReject,
    InvocationFailed,
    NativeCrash,
)
from soliton.ride.evaluator import NO_LIMIT, Setting
from soliton.ride.evaluator import Invocation as Function
from soliton.ride.evaluator import invoke as run_function
from soliton.ride.script import Script, parse_script
from soliton.ride.values import RideList, Value

MAX_CALLS: Final = 100
MAX_PAYMENTS: Final = 100
_FIRST_THAT_IS_CALLED: Final = 5
_FIRST_PAID_BEFORE: Final = 5
_INVOKE_SCRIPT: Final = 16
_ISSUE: Final = 3


class Root(msgspec.Struct, frozen=True):
    """A transaction that calls a dApp, whoever signed it. ``empty_keys`` may be written by old
    versions.
    """

    id: bytes
    timestamp: int
    sender: Address
    sender_public_key: bytes
    fee: int
    fee_asset: AssetId | None
    call: Call
    empty_keys: bool


class Invoked(msgspec.Struct, frozen=True):
    """What became of a call: the complexity of all that ran for it, and what it did."""

    complexity: int
    changes: StateChanges


class _Note:
    """A call on the way: what is known about it, for the tree of what a failed one did."""

    __slots__ = ("arguments", "dapp", "error", "function", "notes", "payments")

    def __init__(
        self,
        dapp: Address,
        function: str,
        arguments: tuple[Value, ...],
        payments: tuple[Payment, ...],
    ) -> None:
        self.dapp = dapp
        self.function = function
        self.arguments = arguments
        self.payments = payments
        self.notes: list[_Note] = []
        self.error: ErrorMessage | None = None

    def calls(self) -> tuple[InvokedCall, ...]:
        """The calls of a failed one."""
        return tuple(
            InvokedCall(
                note.dapp,
                note.function,
                note.arguments,
                note.payments,
                StateChanges((), note.calls(), note.own_error()),
            )
            for note in self.notes
        )

    def own_error(self) -> ErrorMessage | None:
        """The error, unless it comes from a call further in."""
        return None if any(note.error == self.error for note in self.notes) else self.error


class _Shared(msgspec.Struct, frozen=True):
    """What all calls of a transaction have in common."""

    root: Root
    version: int
    context: Context
    settings: Functionality

    @property
    def rules(self) -> Rules:
        return self.context.rules

    @property
    def validated(self) -> bool:
        return self.context.height >= self.settings.enforce_transfer_validation_after


def max_total_complexity(version: int) -> int:
    """The limit for all calls of a transaction; ``version`` is that of its dApp."""
    if version == 5:
        return 26_000
    return 26_000 if version < 3 else 52_000


def max_step_complexity(version: int) -> int:
    """The complexity that a fee pays for."""
    return 2_000 if version < 3 else 4_000


def invoke(
    dapp: Address,
    recipient: Recipient,
    root: Root,
    overlay: Overlay,
    context: Context,
    settings: Functionality,
) -> Invoked:
    """Call a dApp for a transaction and write all that follows from it, its fee included.

    ``recipient`` is how the transaction names it. Raises ``FailedTransaction`` or
    ``TransactionRejected``; then ``overlay`` is as before.
    """
    account, script = _dapp_at(dapp, overlay)
    shared = _Shared(root, script.version, context, settings)
    note = _Note(dapp, root.call.function, root.call.arguments, root.call.payments)
    own = Overlay(overlay, context.height)
    run = _Run(
        shared,
        dapp,
        account.public_key,
        script.version,
        overlay,
        own,
        frozenset((root.sender,)),
        MAX_CALLS,
        allowance(script.version),
        MAX_PAYMENTS - len(root.call.payments),
        note,
    )
    try:
        invoked = _invoke(run, script, recipient)
    except FailedTransaction as failure:
        failure.changes = StateChanges((), note.calls(), ErrorMessage(failure.code, failure.reason))
        raise
    overlay.merge(own)
    return invoked


def _dapp_at(address: Address, state: State) -> tuple[AccountScript, Script]:
    account = account_script(address, state)
    if account is None:
        raise TransactionRejected(f"No contract at address {address_text(address)}")
    script = parse_script(account.script)
    if not script.is_dapp:
        raise TransactionRejected("Trying to call dApp on the account with expression script")
    return account, script


class _Run:
    """One function of one dApp while it runs, and what it may still do."""

    __slots__ = (
        "address",
        "base",
        "blocked",
        "calls_left",
        "done",
        "left",
        "note",
        "own",
        "payments_left",
        "public_key",
        "shared",
        "version",
    )

    def __init__(
        self,
        shared: _Shared,
        address: Address,
        public_key: bytes,
        version: int,
        base: Overlay,
        own: Overlay,
        blocked: frozenset[Address],
        calls_left: int,
        left: Counts,
        payments_left: int,
        note: _Note,
    ) -> None:
        self.shared = shared
        self.address = address
        self.public_key = public_key
        self.version = version
        self.base = base
        self.own = own
        self.blocked = blocked
        self.calls_left = calls_left
        self.left = left
        self.payments_left = payments_left
        self.note = note
        self.done: list[InvokedCall] = []

    def environment(self) -> LedgerEnvironment:
        """What the function sees of the chain."""
        shared = self.shared
        return LedgerEnvironment(
            self.own,
            self.base,
            shared.context,
            shared.root.id,
            address=self.address,
            invoke=self.call,
        )

    def doer(self, called: Recipient, context: Context) -> Doer:
        """The dApp as it does its actions."""
        root = self.shared.root
        return Doer(
            self.address,
            self.public_key,
            root.id,
            root.timestamp,
            called,
            context,
            self.shared.settings,
        )

    def call(
        self,
        dapp: bytes,
        function: str,
        arguments: tuple[Value, ...],
        payments: tuple[Payment, ...],
        available: int,
        reentrant: bool,
    ) -> tuple[Value, int]:
        """Call another dApp: what it returned, and the complexity left over."""
        try:
            value, spent = self._call(dapp, function, arguments, payments, available, reentrant)
        except FailedTransaction as failure:
            words = failure.detail or failure.reason
            raise InvocationFailed(words, available - failure.complexity, failure) from failure
        except AlwaysRejected as error:
            if error.skips:
                raise FailOrReject(str(error), available) from error
            raise InvocationFailed(str(error), available, error) from error
        except TransactionRejected as error:
            raise InvocationFailed(str(error), available, error) from error
        return value, available - spent

    def _call(
        self,
        dapp: bytes,
        function: str,
        arguments: tuple[Value, ...],
        payments: tuple[Payment, ...],
        available: int,
        reentrant: bool,
    ) -> tuple[Value, int]:
        shared = self.shared
        try:
            address = check_address(dapp, shared.rules.chain_id)
        except AddressError as error:
            raise TransactionRejected(f"InvalidAddress({error})") from error
        if address != self.address and address in self.blocked:
            raise TransactionRejected(
                "The invocation stack contains multiple invocations of the dApp at address "
                f"{address_text(address)} with invocations of another dApp between them"
            )
        note = _Note(address, function, arguments, payments)
        self.note.notes.append(note)
        blocked = self.blocked if reentrant else self.blocked | {self.address}
        try:
            nested = _Nested(self, note, blocked, available)
            value, spent, result = nested.run()
        except TransactionRejected as error:
            code = error.code if isinstance(error, FailedTransaction) else 1
            note.error = ErrorMessage(code, str(error))
            raise
        callee = nested.callee
        if shared.rules.has(Feature.LIGHT_NODE):
            _check_balances_above(
                self.base, callee.own, shared, max_total_complexity(shared.version) - available
            )
        self.own.merge(callee.own)
        self.calls_left -= 1
        self.left = callee.left
        self.payments_left = callee.payments_left
        changes = StateChanges(result.actions, tuple(callee.done))
        self.done.append(InvokedCall(address, function, arguments, payments, changes))
        return value, spent


# --- the call of a transaction --------------------------------------------------------------------


def _invoke(run: _Run, script: Script, recipient: Recipient) -> Invoked:
    shared, own, version = run.shared, run.own, run.version
    root, context = shared.root, shared.context
    _check_arguments(root.call.arguments, shared.rules)
    try:
        multiple = shared.rules.has(Feature.BLOCK_V5)
        check_payment_count(root.call.payments, version, multiple, "DApp")
    except EvaluationError as error:
        raise TransactionRejected(error.message) from error
    paid_before = version >= _FIRST_PAID_BEFORE
    if paid_before:
        _pay(root.call.payments, root.sender, run.address).write(own)
    limit, free = _limits(version, shared.rules)
    scripted = _asset_scripts(root.call.payments, run.base)
    for_payments = sum(each.complexity for each in scripted)
    limit -= for_payments
    result, spent = _evaluate_root(run, script, limit, free, for_payments)
    fault = _limits_fault(run, result)
    if fault is not None:
        raise failed(fault, spent)
    _check_answer(run, result, spent, root.sender)
    portfolio = Portfolio() if paid_before else _pay(root.call.payments, root.sender, run.address)
    _check_fee(run, result, spent, len(scripted))
    add_fee(root, portfolio, run.base, shared.rules)
    portfolio.write(own)
    complexity = spent + _do(run, result, recipient, spent, context)
    return Invoked(complexity, StateChanges(result.actions, tuple(run.done)))


def _limits(version: int, rules: Rules) -> tuple[int, int]:
    """The limit of a transaction's complexity, and up to where errors cost nothing."""
    second_estimator = rules.has(Feature.BLOCK_REWARD) and not rules.has(Feature.BLOCK_V5)
    limit = NO_LIMIT if second_estimator else max_total_complexity(version)
    return limit, FAIL_FREE_COMPLEXITY if rules.has(Feature.BLOCK_V5) else limit


def _evaluate_root(
    run: _Run, script: Script, limit: int, free: int, for_payments: int
) -> tuple[Result, int]:
    root = run.shared.root
    invocation = Invocation(
        root.sender,
        root.sender_public_key,
        root.sender,
        root.sender_public_key,
        root.call.payments,
        root.id,
        root.fee,
        root.fee_asset,
    )

    def failure(words: str, spent: int) -> TransactionRejected:
        if spent > free:
            return failed(words, spent + for_payments)
        return InvocationRejected(words)

    try:
        result, spent = _evaluate(run, script, root.call, invocation, limit)
    except ComplexityExceeded as error:
        raise TransactionRejected(
            f"Evaluation was uncompleted with unused complexity = {limit - error.spent}"
        ) from error
    except FailOrReject as error:
        raise InvocationRejected(error.message) from error
    except EvaluationError as error:
        raise failure(error.message, min(error.spent, limit)) from error
    try:
        _check_fields(run, result)
    except AlwaysRejected as error:
        raise InvocationRejected(str(error)) from error
    except TransactionRejected as error:
        raise failure(f"GenericError({error})", spent) from error
    return result, spent


def _evaluate(
    run: _Run, script: Script, call: Call, invocation: Invocation, limit: int
) -> tuple[Result, int]:
    """The answer of a function, and the complexity that it took; raises ``EvaluationError``."""
    shared = run.shared
    environment = run.environment()
    outcome = run_function(
        script,
        environment,
        Function(call.function, call.arguments, invocation_object(invocation, run.version)),
        Setting(limit, switches_at(shared.context, shared.settings)),
    )
    reader = Reader(run.version, environment, shared.root.id, shared.rules.has(Feature.BLOCK_V5))
    try:
        return read_result(outcome.value, reader), outcome.spent
    except EvaluationError as error:
        error.spent = limit if isinstance(error, NativeCrash) else outcome.spent
        raise


def _check_fields(run: _Run, result: Result) -> None:
    fault = field_fault(result.actions) if run.version >= 4 else None
    if fault is None:
        return
    if run.shared.rules.has(Feature.RIDE_V6):
        raise TransactionRejected(fault)
    if run.shared.validated:
        raise AlwaysRejected(fault)


def _check_arguments(arguments: tuple[Value, ...], rules: Rules) -> None:
    lists = rules.has(Feature.BLOCK_V5)
    exactly = rules.has(Feature.RIDE_V6)
    for argument in arguments:
        if isinstance(argument, (bool, int, bytes, str)):
            continue
        items = argument.items if isinstance(argument, RideList) else None
        fits = items is not None and lists
        if fits and exactly and items is not None:
            fits = all(isinstance(item, (bool, int, bytes, str)) for item in items)
        if not fits:
            types = "Int, ByteVector, Boolean, String"
            types += ", List[Int], List[ByteVector], List[Boolean], List[String]" if lists else ""
            raise TransactionRejected(
                f"All arguments of InvokeScript must be one of the types: {types}"
            )


def _pay(payments: tuple[Payment, ...], sender: Address, dapp: Address) -> Portfolio:
    portfolio = Portfolio()
    for payment in payments:
        portfolio.add(sender, payment.asset_id, -payment.amount)
        portfolio.add(dapp, payment.asset_id, payment.amount)
    return portfolio


def _asset_scripts(payments: tuple[Payment, ...], state: State) -> list[AssetScript]:
    ids = tuple(payment.asset_id for payment in payments if payment.asset_id is not None)
    scripts = (state.get(ASSET_SCRIPTS, asset_id) for asset_id in smart_assets(ids, state))
    return [script for script in scripts if script is not None]


# --- checks of an answer --------------------------------------------------------------------------


def _limits_fault(run: _Run, result: Result) -> str | None:
    """Why an answer is more than the transaction may still have; raises ``AlwaysRejected`` for one
    kind of fault at some heights.
    """
    rules = run.shared.rules
    counts = count(result, rules)
    by_root = rules.has(Feature.BLOCK_REWARD_DISTRIBUTION)
    words = bytes_fault(counts, run.left)
    if words is None:
        return total_fault(counts, run.left, run.shared.version if by_root else run.version)
    if rules.has(Feature.RIDE_V6):
        return words
    if rules.has(Feature.SYNCHRONOUS_CALLS) and run.shared.validated:
        raise AlwaysRejected(words)
    return None


def _check_answer(run: _Run, result: Result, spent: int, sender: Address) -> None:
    """Raise ``FailedTransaction`` for an answer that breaks a limit by itself."""
    shared = run.shared
    answer = Answer(
        result,
        run.address,
        run.version,
        shared.version,
        shared.root.empty_keys,
        bool(run.note.payments) and sender == run.address,
    )
    fault = answer_fault(answer, shared.rules)
    if fault is not None:
        raise failed(fault, spent)
    limit = max_total_complexity(shared.version)
    scripts = sum(script.complexity for script in _scripts_of_actions(run, result))
    if scripts + spent > limit:
        raise failed(f"Invoke complexity limit = {limit} is exceeded", spent, code=2)


def _scripts_of_actions(run: _Run, result: Result) -> list[AssetScript]:
    found = []
    for action in result.actions:
        asset_id = None if isinstance(action, Issue) else getattr(action, "asset_id", None)
        if asset_id is not None:
            script = run.own.get(ASSET_SCRIPTS, asset_id)
            if script is not None:
                found.append(script)
    return found


def _do(run: _Run, result: Result, called: Recipient, spent: int, context: Context) -> int:
    """Do the actions; the complexity of scripts of assets."""
    rules = run.shared.rules
    try:
        complexity = do_actions(result.actions, run.doer(called, context), run.own)
        for action in result.actions:
            if isinstance(action, Transfer):
                resolve(action.address, rules)
    except FailedTransaction as failure:
        failure.complexity += spent
        raise
    return complexity


# --- fees -----------------------------------------------------------------------------------------


def _check_fee(run: _Run, result: Result, spent: int, scripted_payments: int) -> None:
    """Raise ``FailedTransaction`` when the fee does not suffice for what was answered."""
    shared = run.shared
    root, rules = shared.root, shared.rules
    step = max_step_complexity(run.version)
    charged = min(spent, step)
    steps = -(-charged // step)
    scripts = int(has_paid_verifier(root.sender, run.own, rules))
    if not rules.has(Feature.SYNCHRONOUS_CALLS):
        scripts += len(_scripts_of_actions(run, result)) + scripted_payments
    issues = [action for action in result.actions if isinstance(action, Issue)]
    issues += [issue for call in run.done for issue in _issues(call.changes)]
    large = sum(not _is_nft(issue, rules) for issue in issues)
    least = (
        rules.fees.base[_INVOKE_SCRIPT] * steps
        + rules.fees.base[_ISSUE] * large
        + rules.fees.script_extra * scripts
    )
    paid = root.fee
    if root.fee_asset is not None:
        sponsorship = fees.sponsor_of(root.fee_asset, run.own)[1]
        paid = fees.to_waves(root.fee, sponsorship, rules.fees.unit)
    if paid < least:
        raise failed(_fee_words(root, rules, least, scripts, len(issues)), charged, code=2)


def _is_nft(issue: Issue, rules: Rules) -> bool:
    single = issue.quantity == 1 and issue.decimals == 0 and not issue.reissuable
    return single and rules.has(Feature.REDUCED_NFT_FEE)


def _issues(changes: StateChanges) -> list[Issue]:
    found = [action for action in changes.actions if isinstance(action, Issue)]
    for call in changes.invokes:
        found += _issues(call.changes)
    return found


def _fee_words(root: Root, rules: Rules, least: int, scripts: int, issues: int) -> str:
    asset = rules.coin if root.fee_asset is None else base58.encode(root.fee_asset)
    with_scripts = f" with {scripts} total scripts invoked" if scripts else ""
    with_issues = f" with {issues} assets issued" if issues else ""
    return (
        f"Fee in {asset} for InvokeScriptTransaction ({root.fee} in {asset}){with_scripts}"
        f"{with_issues} does not exceed minimal value of {least} {rules.coin}."
    )


def add_fee(root: Root, portfolio: Portfolio, state: State, rules: Rules, sign: int = 1) -> None:
    """Take the fee from the sender and its sponsor, or give it back (``sign`` -1)."""
    portfolio.add(root.sender, root.fee_asset, -sign * root.fee)
    if root.fee_asset is not None:
        info, sponsorship = fees.sponsor_of(root.fee_asset, state)
        issuer = from_public_key(info.issuer, rules.chain_id)
        waves = fees.to_waves(root.fee, sponsorship, rules.fees.unit)
        portfolio.add(issuer, root.fee_asset, sign * root.fee)
        portfolio.add(issuer, None, -sign * waves)


# --- calls of dApps by dApps ----------------------------------------------------------------------


class _Nested:
    """A call that a dApp makes, from the checks of what it asks for to its actions."""

    __slots__ = ("available", "blocked", "call", "callee", "caller", "note", "script")

    def __init__(
        self, caller: _Run, note: _Note, blocked: frozenset[Address], available: int
    ) -> None:
        self.caller = caller
        self.note = note
        self.blocked = blocked
        self.available = available
        account, self.script = _dapp_at(note.dapp, caller.own)
        self.call = Call(note.dapp, note.function, note.arguments, note.payments)
        self.callee = _Run(
            caller.shared,
            note.dapp,
            account.public_key,
            self.script.version,
            caller.own,
            Overlay(caller.own, caller.shared.context.height),
            blocked,
            caller.calls_left - 1,
            caller.left,
            caller.payments_left - len(note.payments),
            note,
        )

    def run(self) -> tuple[Value, int, Result]:
        """The value that the dApp returned, the complexity that counts for it, and its actions.

        Raises ``FailedTransaction`` or ``TransactionRejected``.
        """
        caller, callee, shared = self.caller, self.callee, self.caller.shared
        light = shared.rules.has(Feature.LIGHT_NODE)
        self._check()
        scripts, left = self._ask_assets()
        _pay(self.note.payments, caller.address, callee.address).write(callee.own)
        if light and shared.context.height >= shared.settings.payments_check_height:
            _check_balances_above(caller.own, callee.own, shared, 0)
        result, unused = self._evaluate(left)
        used = self.available - unused
        if not light:
            spent_so_far = self.available - max(unused, 0)
            _check_balances_above(caller.own, callee.own, shared, spent_so_far)
        if result is None:
            most = max_total_complexity(shared.version)
            raise failed(f"Invoke complexity limit = {most} is exceeded", used)
        fault = _limits_fault(callee, result)
        if fault is not None:
            raise failed(fault, used)
        spent = left - unused
        _check_answer(callee, result, spent, caller.address)
        # What is not reissuable cannot be reissued, whatever the time.
        context = msgspec.structs.replace(
            shared.context, timestamp=shared.rules.invalid_reissue_until + 1
        )
        spent += _do(callee, result, callee.address, spent, context)
        spent += sum(script.complexity for script in scripts)
        if not light:
            _check_balances_above(caller.own, callee.own, shared, spent)
        callee.left = callee.left.minus(count(result, shared.rules))
        return result.value, spent, result

    def _check(self) -> None:
        caller, note, rules = self.caller, self.note, self.caller.shared.rules
        if rules.has(Feature.RIDE_V6):
            _check_arguments(note.arguments, rules)
        words = f"DApp {address_text(caller.address)} invoked DApp {address_text(note.dapp)}"
        if self.script.version < _FIRST_THAT_IS_CALLED:
            raise TransactionRejected(
                f"{words} that uses RIDE V{self.script.version}, but dApp-to-dApp invocation "
                "requires version 5 or higher"
            )
        if caller.calls_left <= 0:
            raise TransactionRejected(
                f"ScriptRunsLimitError(DApp calls limit = {MAX_CALLS} is exceeded)"
            )
        if rules.has(Feature.RIDE_V6) and caller.payments_left < len(note.payments):
            raise TransactionRejected(f"Invoke payments limit = {MAX_PAYMENTS} is exceeded")
        for payment in note.payments:
            if payment.amount < 0:
                self._refuse_negative(words, payment)
        try:
            check_payment_count(
                note.payments, self.script.version, rules.has(Feature.BLOCK_V5), "DApp"
            )
        except EvaluationError as error:
            raise TransactionRejected(error.message) from error

    def _refuse_negative(self, words: str, payment: Payment) -> None:
        shared = self.caller.shared
        asset = "WAVES"
        if payment.asset_id is not None:
            asset = f"token {base58.encode(payment.asset_id)}"
        words = f"{words} with attached {asset} amount = {payment.amount}"
        if shared.rules.has(Feature.RIDE_V6):
            raise TransactionRejected(words)
        if shared.rules.has(Feature.SYNCHRONOUS_CALLS) and shared.validated:
            raise AlwaysRejected(words)

    def _ask_assets(self) -> tuple[list[AssetScript], int]:
        """Ask the scripts of the assets in the payments: these, and the complexity left."""
        shared, own = self.caller.shared, self.caller.own
        found = []
        for payment in self.note.payments:
            if payment.asset_id is not None:
                fault = asset_fault(payment.asset_id, own, shared.rules)
                if fault is not None:
                    raise TransactionRejected(fault)
                script = own.get(ASSET_SCRIPTS, payment.asset_id)
                if script is not None:
                    found.append((payment.asset_id, payment.amount, script))
        left = self.available
        for asset_id, amount, script in found:
            left -= self._ask_asset(asset_id, amount, script, left)
        return [script for _, _, script in found], left

    def _ask_asset(self, asset_id: AssetId, amount: int, script: AssetScript, left: int) -> int:
        shared = self.caller.shared
        answer = ask(
            parse_script(script.script),
            self._payment_subject(asset_id, amount),
            Asked(asset_id=asset_id),
            self.caller.own,
            shared.context,
            shared.settings,
            left,
        )
        evaluated = shared.rules.has(Feature.SYNCHRONOUS_CALLS)
        complexity = answer.complexity if evaluated else script.complexity
        if answer.value is True:
            return complexity
        total = max_total_complexity(shared.version) - left + complexity
        code = 3 if answer.value is None else 4
        raise asset_failure(code, asset_id, total, answer.value, answer.error)

    def _payment_subject(self, asset_id: AssetId, amount: int) -> Subject:
        root, caller, dapp = self.caller.shared.root, self.caller, self.note.dapp
        envelope = Envelope(root.id, root.timestamp, caller.address, caller.public_key)
        if not caller.shared.rules.has(Feature.RIDE_V6):
            return Subject(
                root.id, lambda view: transfer_object(envelope, dapp, asset_id, amount, view)
            )
        call, version = self.call, self.script.version
        return Subject(
            root.id,
            lambda view: invoke_object(
                envelope, call, msgspec.structs.replace(view, payments_version=version)
            ),
        )

    def _evaluate(self, limit: int) -> tuple[Result | None, int]:
        """The answer (``None``: the complexity did not suffice), and the complexity left over."""
        root, caller = self.caller.shared.root, self.caller
        invocation = Invocation(
            caller.address,
            caller.public_key,
            root.sender,
            root.sender_public_key,
            self.note.payments,
            root.id,
            root.fee,
            root.fee_asset,
        )
        try:
            result, spent = _evaluate(self.callee, self.script, self.call, invocation, limit)
        except ComplexityExceeded as error:
            return None, limit - error.spent
        except FailOrReject as error:
            refusal = AlwaysRejected(error.message)
            refusal.skips = False
            raise refusal from error
        except EvaluationError as error:
            raise failed(error.message, self.available - limit + error.spent) from error
        unused = limit - spent
        try:
            _check_fields(self.callee, result)
        except AlwaysRejected:
            raise
        except TransactionRejected as error:
            raise failed(f"GenericError({error})", self.available - unused) from error
        return result, unused


def _check_balances_above(before: State, own: Overlay, shared: _Shared, complexity: int) -> None:
    """Check the balances that a call wrote, as if it had been made on the state ``before``.

    That need not be the state on which it was made: since the light-node feature what the caller
    itself did before does not count, neither does what it leased.
    """
    above = Overlay(before, shared.context.height)
    above.changes = own.changes
    if shared.rules.has(Feature.RIDE_V6):
        try:
            check_balances(above, before, shared.rules)
        except BalanceErrors as error:
            raise failed(words_of(error), complexity) from error
    elif shared.validated:
        _refuse_negative_balances(above, before)


def _refuse_negative_balances(above: Overlay, before: State) -> None:
    for address, balance in above.changes.get(WAVES, {}).items():
        if balance < 0:
            old = before.get(WAVES, address)
            raise AlwaysRejected(
                f"{address_text(address)}: Negative waves balance: old = {old}, new = {balance}"
            )
    for (address, asset_id), balance in above.changes.get(ASSET_BALANCES, {}).items():
        if balance < 0:
            old = before.get(ASSET_BALANCES, (address, asset_id))
            raise AlwaysRejected(
                f"{address_text(address)}: Negative asset {base58.encode(asset_id)} balance: "
                f"old = {old}, new = {balance}"
            )
