"""What the scripts of one transaction did, for those who ask: verifiers, assets, dApps.

What lives here: the records, and where in the rules they are made (``note``). What does not: the
steps of one script (``soliton.ride.trace``), and how all this looks in JSON (the shell).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/transaction/smart/script/``
``trace/TraceStep.scala`` and ``transaction/smart/Verifier.scala``.
"""

from __future__ import annotations

from typing import TypeAlias, Union

import msgspec

from soliton.chain.addresses import Address, Recipient
from soliton.chain.transactions import (
    burn,
    exchange,
    invoke_script,
    mass_transfer,
    reissue,
    set_asset_script,
    sponsor_fee,
    transfer,
    update_asset_info,
)
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.ledger.script_results import Result
from soliton.ride.trace import Step
from soliton.ride.values import Value

TRANSFER = "transfer"
REISSUE = "reissue"
BURN = "burn"
SPONSOR = "sponsor"
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


def note(traces: Traces | None, trace: ScriptTrace) -> None:
    """Keep a trace where somebody wants it."""
    if traces is not None:
        traces.append(trace)


_BY_TYPE = {
    reissue.TYPE.type_id: REISSUE,
    burn.TYPE.type_id: BURN,
    sponsor_fee.TYPE.type_id: SPONSOR,
    update_asset_info.TYPE.type_id: "updateInfo",
    set_asset_script.TYPE.type_id: "updateInfo",
    transfer.TYPE.type_id: TRANSFER,
    mass_transfer.TYPE.type_id: TRANSFER,
    invoke_script.TYPE.type_id: "payment",
}


def context_of(transaction: AnyTransaction, asset_id: AssetId) -> str:
    """What an asset with a script has to do with a transaction."""
    if transaction.type_id == exchange.TYPE.type_id:
        first = transaction.payload.order1
        return "orderAmount" if first.amount_asset == asset_id else "orderPrice"
    return _BY_TYPE.get(transaction.type_id, UNKNOWN)
