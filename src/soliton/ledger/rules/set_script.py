"""Type 13, set script: sets or removes the script of the sender's account.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/SetScriptTransactionDiff.scala`` and
``CommonValidation.scala`` (which scripts may be set).
"""

from __future__ import annotations

from typing import Final

from soliton.chain.features import Feature
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.set_script import SetScript
from soliton.ledger import script_setting
from soliton.ledger.context import Context, PoolRules, TypeRules
from soliton.ledger.errors import ActivationError, TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common
from soliton.ledger.rules_at import Rules
from soliton.ledger.state import ACCOUNT_SCRIPTS, AccountScript, AssetScript, Overlay

_FEATURE_OF_VERSION: Final = {
    3: Feature.RIDE_4_DAPPS,
    4: Feature.BLOCK_V5,
    5: Feature.SYNCHRONOUS_CALLS,
    6: Feature.RIDE_V6,
    7: Feature.BLOCK_REWARD_DISTRIBUTION,
    8: Feature.LIGHT_NODE,
    9: Feature.DETERMINISTIC_FINALITY,
}
_BYTES_PER_FEE_UNIT: Final = 1_024
_FIRST_VERSION_KEPT: Final = 4


def check_script(script: bytes | None, context: Context) -> None:
    """Raise ``ActivationError`` for a script that no active feature allows, and
    ``TransactionRejected`` for one in another form than the signed one.
    """
    if script is None:
        return
    rules = context.rules
    head = script_setting.inspect(script)
    version = head.version
    if version < 4 and head.has_arrays:
        version = 4
    elif version < 3 and head.has_later_blocks:
        version = 3
    feature = _FEATURE_OF_VERSION.get(version)
    if feature is not None:
        common.require_feature(feature, rules)
    if head.version < _FIRST_VERSION_KEPT and rules.has(Feature.LIGHT_NODE):
        raise ActivationError(
            "Script version below V4 is not allowed after Light Node feature activation"
        )
    if head.dapp:
        common.require_feature(Feature.RIDE_4_DAPPS, rules)
    script_setting.check_form(script)


def estimate_asset(script: bytes, context: Context) -> AssetScript:
    """Return the script of an asset with its complexity; raise ``TransactionRejected``."""
    complexity = script_setting.estimate(script, True, context).verifier
    if complexity < 0 and context.rules.estimation_overflow_checked:
        raise TransactionRejected("Unexpected negative complexity")
    return AssetScript(script, complexity)


def _activation(transaction: AnyTransaction, context: Context) -> None:
    check_script(transaction.payload.script, context)


def _minimum_fee(transaction: AnyTransaction, rules: Rules) -> int:
    if not rules.has(Feature.RIDE_V6):
        return common.base_fee(transaction, rules)
    size = len(transaction.payload.script or b"")
    return max(1, -(-size // _BYTES_PER_FEE_UNIT)) * rules.fees.unit


def _check_size(script: bytes, context: Context) -> None:
    limit = script_setting.MAX_EXPRESSION_BYTES
    if script_setting.inspect(script).dapp:
        later = context.rules.has(Feature.RIDE_V6)
        limit = script_setting.MAX_DAPP_BYTES_V6 if later else script_setting.MAX_DAPP_BYTES
    if len(script) > limit:
        raise TransactionRejected(f"Script is too large: {len(script)} bytes > {limit} bytes")


def _estimate(script: bytes, public_key: bytes, context: Context) -> AccountScript:
    estimate = script_setting.estimate(script, False, context)
    if context.rules.estimation_overflow_checked:
        if estimate.verifier < 0:
            raise TransactionRejected("Unexpected negative verifier complexity")
        for functions in estimate.callables.values():
            for name, complexity in functions.items():
                if complexity < 0:
                    raise TransactionRejected(f"Unexpected negative callable `{name}` complexity")
    return AccountScript(public_key, script, estimate.verifier, estimate.callables)


def _apply(
    transaction: AnyTransaction, overlay: Overlay, _portfolio: Portfolio, context: Context
) -> None:
    payload: SetScript = transaction.payload
    public_key = transaction.sender_public_key
    if payload.script is None:
        script = AccountScript(public_key, b"", 0, {})
    else:
        _check_size(payload.script, context)
        script = _estimate(payload.script, public_key, context)
    overlay.put(ACCOUNT_SCRIPTS, common.sender_of(transaction), script)


RULES = TypeRules(_activation, _minimum_fee, None, _apply, pool=PoolRules(sets_script=True))
