"""What the scripts of one transaction did, for those who ask: verifiers, assets, dApps.

What lives here: the records, and adding them (``add_trace``). What does not: the steps of one
script (``soliton.ride.trace``), and how all this looks in JSON (the shell).

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
    """Why something failed: ``None`` where a script said no. ``steps`` are those of a script that
    is to blame, ``None`` where none is.
    """

    words: str | None
    steps: tuple[Step, ...] | None = None


class VerifierTrace(msgspec.Struct, frozen=True):
    """The verifier of the account that sends the transaction was asked."""

    address: Address
    fault: Fault | None = None


class AssetTrace(msgspec.Struct, frozen=True):
    """The script of an asset was asked; ``context`` tells what the asset has to do with it."""

    asset_id: AssetId
    context: str
    fault: Fault | None = None


class CallTrace(msgspec.Struct, frozen=True):
    """A dApp was called, by the transaction or by another dApp.

    Without a fault ``result`` is what it answered, ``None`` for one that was not run to its end.
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
    """Keep a trace where somebody wants it."""
    if traces is not None:
        traces.append(trace)
