"""Properties and complexities of scripts that a transaction sets.

What lives here: inspecting a script before an account or an asset gets it. What does not: whether
it is allowed (``rules.set_script``), estimators (``soliton.ride``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/SetScriptTransactionDiff.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.caching import cached_by_weight
from soliton.ledger.context import Context
from soliton.ledger.errors import TransactionRejected
from soliton.ride.errors import RideError, ScriptFormatError
from soliton.ride.estimators.choice import Complexities, estimate_for_account, estimate_for_asset
from soliton.ride.expressions import DApp
from soliton.ride.meta import argument_types, read_meta
from soliton.ride.script import Script, has_later_blocks, has_lists, parse_script
from soliton.ride.serialization import write_script

MAX_EXPRESSION_BYTES: Final = 8_192
MAX_DAPP_BYTES: Final = 32_768
MAX_DAPP_BYTES_V6: Final = 163_840
_MAX_CACHED_BYTES: Final = 16 * 1024**2
"""The size of the cache of script heads, which holds the scripts as well."""
_HEAD_BYTES: Final = 512
_FIRST_WITHOUT_UNIONS: Final = 6


class ScriptHead(msgspec.Struct, frozen=True):
    """What determines whether a script may be set at a height: its language version, whether it is
    a dApp, and two constructs that were added to older versions later.
    """

    version: int
    dapp: bool
    has_arrays: bool = False
    has_later_blocks: bool = False


def estimate(script: bytes, for_asset: bool, context: Context) -> Complexities:
    """Return the complexities of a script; raise ``TransactionRejected`` if it exceeds a limit."""
    parsed = parsed_script(script)
    _check_interface(parsed)
    rules = context.rules.estimation
    try:
        if for_asset:
            return Complexities(estimate_for_asset(parsed, rules, context.watch))
        return estimate_for_account(parsed, rules, context.watch)
    except RideError as error:
        raise TransactionRejected(str(error)) from error


def _weight(script: bytes) -> int:
    return _HEAD_BYTES + len(script)


@cached_by_weight(_MAX_CACHED_BYTES, _weight)
def inspect(script: bytes) -> ScriptHead:
    """Return the head of a script; raise ``TransactionRejected`` if it is malformed."""
    parsed = parsed_script(script)
    content = parsed.content
    return ScriptHead(parsed.version, parsed.is_dapp, has_lists(content), has_later_blocks(content))


def check_form(script: bytes) -> None:
    """Raise ``TransactionRejected`` for a script in another form than the one that it is written
    in, for example with another header.

    The reference node signs, hashes and stores what it writes itself: with other bytes the
    transaction has another id there, and its signature is not valid. Source: wavesplatform/Waves
    ``lang/shared/src/main/scala/com/wavesplatform/lang/script/Script.scala`` (``bytes``) and
    ``node/src/main/scala/com/wavesplatform/protobuf/transaction/PBTransactions.scala``
    (``toPBScript``).
    """
    parsed = parsed_script(script)
    try:
        written = write_script(parsed.version, parsed.content)
    except ScriptFormatError as error:
        raise TransactionRejected(str(error)) from error
    if written != script:
        raise TransactionRejected("The script is not in the form that it is signed in")


def parsed_script(script: bytes) -> Script:
    """Parse a script; raise ``TransactionRejected`` if it is malformed."""
    try:
        return parse_script(script)
    except ScriptFormatError as error:
        raise TransactionRejected(str(error)) from error


def _check_interface(script: Script) -> None:
    """Reject a dApp of a later version with a union type among its functions' arguments."""
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
