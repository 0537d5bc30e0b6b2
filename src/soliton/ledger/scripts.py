"""Scripts in the state, and the errors that they cause.

What lives here: look-ups and error types. What does not: parsing scripts (``script_setting``) and
running them (``script_runs``, ``invocation``).

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/smart/Verifier.scala``,
``transaction/TxValidationError.scala`` and ``state/diffs/DiffsCommon.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.chain.addresses import Address
from soliton.chain.features import Feature
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.rules_at import Rules
from soliton.ledger.state import ACCOUNT_SCRIPTS, ASSET_SCRIPTS, AccountScript, AssetScript, State
from soliton.ledger.state_changes import StateChanges
from soliton.ledger.traces import Fault
from soliton.ride.trace import Step

FAIL_FREE_COMPLEXITY: Final = 1_000
"""A transaction that fails at this complexity or less is rejected instead, without a fee."""
FREE_VERIFIER_COMPLEXITY: Final = 200
"""Since feature 16, verifiers up to this complexity cost no extra fee."""


class NotAllowedByScript(TransactionRejected):
    """A script returned false; ``asset_id`` if it was an asset's, ``complexity`` is the complexity
    spent, ``steps`` its trace if requested.
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
    """A script aborted; the fields are as in ``NotAllowedByScript``."""

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
    """The call of a dApp failed before it spent much complexity."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Error while executing dApp: {reason}")
        self.reason = reason


class FailedTransaction(TransactionRejected):
    """A transaction fails after its scripts spent much complexity, so its fee is due.

    ``code`` is 1 for a dApp, 2 for an insufficient fee, 3 for an asset's script in an action, 4 for
    the script of an asset that the transaction itself moves; ``asset_id`` is that asset. ``detail``
    is the error of its script; ``changes`` are the calls up to the failure.
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
        """Return the corresponding error for a transaction that is rejected without a fee."""
        if self.asset_id is None:
            return InvocationRejected(self.reason)
        return ScriptExecutionError(self.reason, self.asset_id, self.complexity)


def failed_by_asset(
    error: NotAllowedByScript | ScriptExecutionError, complexity: int
) -> FailedTransaction:
    """Convert a rejection by an asset's script to a failure."""
    asset_id = error.asset_id or b""
    reason = f"Transaction is not allowed by script of the asset {base58.encode(asset_id)}"
    if isinstance(error, ScriptExecutionError):
        reason += f": {error.reason}"
    return FailedTransaction(4, reason, complexity, asset_id)


def _owner(asset_id: AssetId | None) -> str:
    return "account-script" if asset_id is None else "token-script"


def account_script(address: Address, state: State) -> AccountScript | None:
    """Return the script of an account, or ``None``."""
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
    """Return the assets that have a script."""
    return tuple(asset for asset in assets if state.get(ASSET_SCRIPTS, asset) is not None)


def fault_of(error: NotAllowedByScript | ScriptExecutionError) -> Fault:
    """Convert the error of a script to its form in traces."""
    message = error.reason if isinstance(error, ScriptExecutionError) else None
    return Fault(message, error.steps)


def asset_script(asset_id: AssetId, state: State) -> AssetScript:
    """Return the script of a smart asset."""
    script = state.get(ASSET_SCRIPTS, asset_id)
    assert script is not None, f"the asset {base58.encode(asset_id)} has no script"
    return script
