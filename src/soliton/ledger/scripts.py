"""Scripts in the state, and the refusals that they cause.

What lives here: look-ups and typed errors. What does not: reading scripts (``script_setting``) and
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
"""What fails after at most this much work costs nothing: it is refused."""
FREE_VERIFIER_COMPLEXITY: Final = 200
"""Since feature 16 a verifier up to this complexity costs no extra fee."""


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


def fault_of(error: NotAllowedByScript | ScriptExecutionError) -> Fault:
    """The refusal of a script as traces tell it."""
    words = error.reason if isinstance(error, ScriptExecutionError) else None
    return Fault(words, error.steps)


def asset_script(asset_id: AssetId, state: State) -> AssetScript:
    """The script of a smart asset, as ``smart_assets`` gives them."""
    script = state.get(ASSET_SCRIPTS, asset_id)
    assert script is not None, f"the asset {base58.encode(asset_id)} has no script"
    return script
