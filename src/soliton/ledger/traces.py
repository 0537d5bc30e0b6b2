"""Traces of the scripts of one transaction: verifiers, assets, dApps.

What lives here: the records, and adding them (``add_trace``). What does not: the steps of one
script (``soliton.ride.trace``), and the JSON form (the shell).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/transaction/smart/script/``
``trace/TraceStep.scala`` and ``transaction/smart/Verifier.scala``.
"""

from __future__ import annotations

from typing import TypeAlias, Union

import msgspec

from soliton.chain.addresses import Address, Recipient
from soliton.chain.values import AssetId
from soliton.ledger.script_results import Result
from soliton.ride.trace import Step
from soliton.ride.values import Value

TRANSFER = "transfer"
REISSUE = "reissue"
BURN = "burn"
SPONSOR = "sponsor"
UPDATE = "updateInfo"
PAYMENT = "payment"
MATCHER_FEE = "matcherFee"
UNKNOWN = "unknown"


class Fault(msgspec.Struct, frozen=True):
    """Why something failed; ``message`` is ``None`` if a script returned false. ``steps`` are those
    of the script that caused the failure, ``None`` if no script did.
    """

    message: str | None
    steps: tuple[Step, ...] | None = None


class VerifierTrace(msgspec.Struct, frozen=True):
    """A run of the sender's verifier."""

    address: Address
    fault: Fault | None = None


class AssetTrace(msgspec.Struct, frozen=True):
    """A run of an asset's script; ``context`` is the asset's role in the transaction."""

    asset_id: AssetId
    context: str
    fault: Fault | None = None


class CallTrace(msgspec.Struct, frozen=True):
    """A call of a dApp, by the transaction or by another dApp.

    Without a fault ``result`` is its result, ``None`` if the call was not completed.
    """

    dapp: Recipient
    function: str
    arguments: tuple[Value, ...]
    steps: tuple[Step, ...]
    calls: tuple[CallTrace, ...]
    result: Result | None = None
    fault: Fault | None = None


ScriptTrace: TypeAlias = Union[VerifierTrace, AssetTrace, CallTrace]  # noqa: UP007 - one of them is recursive
Traces: TypeAlias = list[ScriptTrace]


def add_trace(traces: Traces | None, trace: ScriptTrace) -> None:
    """Add a trace if traces are requested."""
    if traces is not None:
        traces.append(trace)
