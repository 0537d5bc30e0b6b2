"""Scripts as the rules see them: what they ask of whoever can read and run them.

What lives here: the protocol ``Scripts`` with its questions and answers, an implementation that
refuses everything (``NO_SCRIPTS``), look-ups of scripts in the state, and the refusals that scripts
cause. What does not: the language itself.

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/smart/Verifier.scala``,
``transaction/TxValidationError.scala`` and ``state/diffs/DiffsCommon.scala``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from soliton.chain.addresses import Address
from soliton.chain.features import Feature
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules_at import Rules
from soliton.ledger.state import (
    ACCOUNT_SCRIPTS,
    ASSET_SCRIPTS,
    AccountScript,
    AssetScript,
    Overlay,
    State,
)
from soliton.ledger.traces import AssetTrace, Fault, VerifierTrace, context_of, note
from soliton.ride.trace import Step

if TYPE_CHECKING:
    from soliton.chain.orders import Order
    from soliton.ledger.context import Context
    from soliton.ledger.state_changes import StateChanges

FAIL_FREE_COMPLEXITY: Final = 1_000
"""What fails after at most this much work costs nothing: it is refused."""
FREE_VERIFIER_COMPLEXITY: Final = 200
"""Since feature 16 a verifier up to this complexity costs no extra fee."""
MAX_EXPRESSION_BYTES: Final = 8_192
MAX_DAPP_BYTES: Final = 32_768
MAX_DAPP_BYTES_V6: Final = 163_840


class ScriptHead(msgspec.Struct, frozen=True):
    """What decides whether a script may be set at a height: the version of its language, whether it
    is a dApp, and two constructs that older versions got later.
    """

    version: int
    dapp: bool
    has_arrays: bool = False
    has_later_blocks: bool = False


class Estimate(msgspec.Struct, frozen=True):
    """The estimated complexity of a script's verifier (0 without one) and of a dApp's functions, by
    version of the estimator.
    """

    verifier: int
    callables: dict[int, dict[str, int]] = {}


class Scripts(Protocol):
    """Reads, estimates and runs scripts.

    What is run raises ``NotAllowedByScript`` when a script says no and ``ScriptExecutionError``
    when it breaks off; otherwise the answer is the complexity that was spent.
    """

    def inspect(self, script: bytes, /) -> ScriptHead:
        """The head of a script; raises ``TransactionRejected`` for bytes that are none."""

    def estimate(self, script: bytes, for_asset: bool, context: Context, /) -> Estimate:
        """How complex a script is; raises ``TransactionRejected`` when it is beyond the limits."""

    def run_account(
        self,
        script: AccountScript,
        subject: AnyTransaction | Order,
        state: State,
        context: Context,
        /,
    ) -> int:
        """Ask the verifier of the account that sends a transaction or an order."""

    def run_asset(
        self,
        asset_id: AssetId,
        script: AssetScript,
        transaction: AnyTransaction,
        state: State,
        context: Context,
        /,
    ) -> int:
        """Ask the script of an asset whether a transaction may move it."""

    def invoke(
        self,
        dapp: Address,
        transaction: AnyTransaction,
        overlay: Overlay,
        portfolio: Portfolio,
        context: Context,
        /,
    ) -> int:
        """Call the function of a dApp and do what it answers.

        For a call that an Ethereum wallet signed this includes the reading of its data, the checks
        of its payments, and the scripts of the assets in these. Raises ``TransactionRejected`` or
        ``FailedTransaction``.
        """


class ScriptsNotSupported(TransactionRejected):
    """Something that would need a script to be read or run."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: scripts are not supported")


class NotAllowedByScript(TransactionRejected):
    """A script said no; ``asset_id`` when it was an asset's, ``complexity`` is what it took and
    ``steps`` what it did, if that was asked for.
    """

    def __init__(
        self,
        asset_id: AssetId | None = None,
        complexity: int = 0,
        steps: tuple[Step, ...] = (),
    ) -> None:
        super().__init__(f"Transaction is not allowed by {_owner(asset_id)}")
        self.asset_id = asset_id
        self.complexity = complexity
        self.steps = steps


class ScriptExecutionError(TransactionRejected):
    """A script broke off; the rest is as in ``NotAllowedByScript``."""

    def __init__(
        self,
        reason: str,
        asset_id: AssetId | None = None,
        complexity: int = 0,
        steps: tuple[Step, ...] = (),
    ) -> None:
        super().__init__(f"Error while executing {_owner(asset_id)}: {reason}")
        self.reason = reason
        self.asset_id = asset_id
        self.complexity = complexity
        self.steps = steps


class InvocationRejected(TransactionRejected):
    """The call of a dApp that went wrong before it did costly work."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Error while executing dApp: {reason}")
        self.reason = reason


class FailedTransaction(TransactionRejected):
    """A transaction that fails after its scripts did costly work: its fee is due all the same.

    ``code`` is 1 for a dApp, 2 for a fee too small for what was done, 3 for an asset's script in an
    action, 4 for one of an asset that the transaction itself moves; ``asset_id`` is that asset.
    ``detail`` is what its script broke off for; ``changes`` are the calls up to there.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        complexity: int,
        asset_id: AssetId | None = None,
        detail: str = "",
    ) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.complexity = complexity
        self.asset_id = asset_id
        self.detail = detail
        self.changes: StateChanges | None = None

    def rejection(self) -> TransactionRejected:
        """What it is where nothing is due."""
        if self.asset_id is None:
            return InvocationRejected(self.reason)
        return ScriptExecutionError(self.reason, self.asset_id, self.complexity)


def failed_by_asset(
    error: NotAllowedByScript | ScriptExecutionError, complexity: int
) -> FailedTransaction:
    """What an asset's refusal is for a transaction that may fail."""
    asset_id = error.asset_id or b""
    reason = f"Transaction is not allowed by script of the asset {base58.encode(asset_id)}"
    if isinstance(error, ScriptExecutionError):
        reason += f": {error.reason}"
    return FailedTransaction(4, reason, complexity, asset_id)


def _owner(asset_id: AssetId | None) -> str:
    return "account-script" if asset_id is None else "token-script"


class _NoScripts:
    """Refuses all that needs a script to be understood."""

    def inspect(self, script: bytes, /) -> ScriptHead:
        raise ScriptsNotSupported(f"a script of {len(script)} bytes")

    def estimate(self, script: bytes, _for_asset: bool, _context: Context, /) -> Estimate:
        raise ScriptsNotSupported(f"a script of {len(script)} bytes")

    def run_account(
        self,
        _script: AccountScript,
        _subject: AnyTransaction | Order,
        _state: State,
        _context: Context,
        /,
    ) -> int:
        raise ScriptsNotSupported("the account has a script")

    def run_asset(
        self,
        asset_id: AssetId,
        _script: AssetScript,
        _transaction: AnyTransaction,
        _state: State,
        _context: Context,
        /,
    ) -> int:
        raise ScriptsNotSupported(f"the asset {base58.encode(asset_id)} has a script")

    def invoke(
        self,
        _dapp: Address,
        _transaction: AnyTransaction,
        _overlay: Overlay,
        _portfolio: Portfolio,
        _context: Context,
        /,
    ) -> int:
        raise ScriptsNotSupported("a dApp is called")


NO_SCRIPTS: Final[Scripts] = _NoScripts()


def account_script(address: Address, state: State) -> AccountScript | None:
    """The script of an account, ``None`` when it has none (any more)."""
    script = state.get(ACCOUNT_SCRIPTS, address)
    return script if script is not None and script.script else None


def has_paid_verifier(address: Address, state: State, rules: Rules) -> bool:
    """Whether transactions of an account cost the extra fee for scripts."""
    script = account_script(address, state)
    if script is None:
        return False
    if rules.has(Feature.SYNCHRONOUS_CALLS):
        return script.verifier_complexity > FREE_VERIFIER_COMPLEXITY
    return True


def smart_assets(assets: tuple[AssetId, ...], state: State) -> tuple[AssetId, ...]:
    """Those of the assets that have a script."""
    return tuple(asset for asset in assets if state.get(ASSET_SCRIPTS, asset) is not None)


def run_asset(
    asset_id: AssetId,
    transaction: AnyTransaction,
    state: State,
    context: Context,
    purpose: str | None = None,
) -> int:
    """Ask the script of a smart asset about a transaction and give the complexity.

    ``purpose`` is what traces tell of it. Raises ``NotAllowedByScript`` or
    ``ScriptExecutionError``.
    """
    traces = context.traces
    name = purpose or context_of(transaction, asset_id)
    script = asset_script(asset_id, state)
    try:
        complexity = context.scripts.run_asset(asset_id, script, transaction, state, context)
    except (NotAllowedByScript, ScriptExecutionError) as error:
        note(traces, AssetTrace(asset_id, name, fault_of(error)))
        raise
    note(traces, AssetTrace(asset_id, name))
    return complexity


def run_account(
    address: Address,
    script: AccountScript,
    transaction: AnyTransaction,
    state: State,
    context: Context,
) -> int:
    """Ask the verifier of a transaction's sender and give the complexity.

    Raises ``NotAllowedByScript`` or ``ScriptExecutionError``.
    """
    traces = context.traces
    try:
        complexity = context.scripts.run_account(script, transaction, state, context)
    except (NotAllowedByScript, ScriptExecutionError) as error:
        note(traces, VerifierTrace(address, fault_of(error)))
        raise
    note(traces, VerifierTrace(address))
    return complexity


def fault_of(error: NotAllowedByScript | ScriptExecutionError) -> Fault:
    """The refusal of a script as traces tell it."""
    words = error.reason if isinstance(error, ScriptExecutionError) else None
    return Fault(words, error.steps)


def asset_script(asset_id: AssetId, state: State) -> AssetScript:
    """The script of a smart asset, as ``smart_assets`` gives them."""
    script = state.get(ASSET_SCRIPTS, asset_id)
    assert script is not None, f"the asset {base58.encode(asset_id)} has no script"
    return script
