"""The route ``/utils/script/evaluate``: the result of a dApp's function without a transaction.

What does not live here: the evaluation itself (``soliton.ledger.dry_run``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/utils/{UtilsApiRoute,UtilsInvocationRequest}.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.api import errors
from soliton.api.evaluation_request import (
    NO_KEY,
    Asked,
    Invocation,
    invocation,
    public_key,
    read_body,
    with_request,
)
from soliton.api.http import Request
from soliton.api.json_traces import short_changes, steps_json, steps_text
from soliton.api.json_transactions import MIDDLE, Members
from soliton.api.lookup import address_argument, node_of
from soliton.api.rest import examples
from soliton.api.rest.pending import next_block
from soliton.api.route_table import json_body, row, table
from soliton.api.text_jobs import CompileFragment
from soliton.api.thread_pool import Watch
from soliton.api.translate import refusal
from soliton.chain.addresses import Address, address_text, from_public_key
from soliton.chain.errors import JsonFieldError
from soliton.chain.json_kinds import decode_base64
from soliton.chain.json_schemas import shape
from soliton.errors import InputError
from soliton.ledger.context import Context
from soliton.ledger.dry_run import Caller, DryRun, DryRunResult, dry_run_call, dry_run_expression
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.scripts import FailedTransaction, account_script
from soliton.ledger.state import ASSET_BALANCES, WAVES, Overlay
from soliton.ledger.state_changes import value_json
from soliton.node.blockchain import Blockchain
from soliton.ride.compiler.compile import MAX_DAPP_BYTES
from soliton.ride.errors import ComplexityExceeded, EvaluationError, NotCallable, RideError
from soliton.ride.script import BASE64_PREFIX, Script, parse_script
from soliton.ride.serialization import read_expression
from soliton.ride.trace import INVOKED_DAPP, INVOKED_FUNCTION, Trace
from soliton.web.openapi import ref

_ANONYMOUS_BALANCE: Final = (2**63 - 1) // 10
"""The balance of the anonymous caller."""
_INVOKE_SCRIPT: Final = 16


async def evaluate(request: Request) -> Members:
    """The result of a dApp. Errors of scripts have status 200 as well, as in the reference."""
    node, address = node_of(request), address_argument(request)
    body = request.json()
    found = account_script(address, node.chain.store)
    script = None if found is None else parse_script(found.script)
    if script is None or not script.is_dapp:
        raise errors.invalid_request(f"Address {address_text(address)} is not dApp")
    now, traced = node.clock(), request.flag("trace")
    limit = node.settings.rest_api.evaluate_script_complexity_limit
    fees = node.chain.rules.at(node.chain.height).fees
    text, family = address_text(address), node.network.family
    try:
        asked = read_body(body, node.network.chain_id, fees.base[_INVOKE_SCRIPT])
        key = public_key(asked, family)
    except errors.ApiError as error:
        return with_request(error, body, text)
    except InputError as error:
        # The reference finds this out too late to answer as it does to other errors.
        raise errors.invalid_request(str(error)) from error
    try:
        code = await _compiled(request, asked, script)
    except RideError as error:
        return with_request(errors.invalid_request(str(error)), body, text)

    def work(chain: Blockchain, watch: Watch) -> Members:
        evaluation = _Evaluation(address, asked, key, code, limit, Trace())
        return _answer(evaluation, script, chain, next_block(chain, now, watch), traced=traced)

    answer = await request.context.workers.ask(node, work, request.charge)
    return answer | body | {"address": text}


async def _compiled(request: Request, asked: Asked, script: Script) -> bytes | None:
    """The compiled expression of a request; ``None`` if it has no source."""
    source = asked.what
    if not isinstance(source, str) or source.startswith(BASE64_PREFIX):
        return None
    work = CompileFragment(source, script.source)
    return (await request.context.texts.do(work, request.charge)).expression


class _Evaluation(msgspec.Struct, frozen=True):
    """The dApp and the request; ``code`` is its expression if that was a source. ``trace`` collects
    the steps: the text of an error has them, also if the client does not want them otherwise.
    """

    address: Address
    asked: Asked
    key: bytes
    code: bytes | None
    limit: int
    trace: Trace


def _answer(
    evaluation: _Evaluation, script: Script, chain: Blockchain, context: Context, *, traced: bool
) -> Members:
    try:
        result = _evaluate(evaluation, script, chain, context)
        return _success(result, evaluation.trace if traced else None, chain, context)
    except errors.ApiError as error:
        return error.body()
    except NotCallable as error:
        return errors.invalid_request(error.message).body()
    except EvaluationError as error:
        return _rejected(error, evaluation.trace, context)
    except FailedTransaction as error:
        shown = f"FailedTransactionError(code = {error.code}, error = {error.reason})"
        is_whole = error.reason.startswith("FailedTransactionError")
        return errors.invalid_request(error.reason if is_whole else shown).body()
    except TransactionRejected as error:
        return refusal(error, chain.network.family).body()
    except RideError as error:
        return errors.invalid_request(str(error)).body()


def _evaluate(
    evaluation: _Evaluation, script: Script, chain: Blockchain, context: Context
) -> DryRunResult:
    address, asked, chain_id = evaluation.address, evaluation.asked, chain.network.chain_id
    state = Overlay(chain.store, chain.height + 1)
    dry_run = DryRun(state, context, evaluation.limit, evaluation.trace)
    anonymous = from_public_key(NO_KEY, chain_id)
    state.put(WAVES, anonymous, max(state.get(WAVES, anonymous), _ANONYMOUS_BALANCE))
    for account in asked.balances:
        if account.waves is not None:
            state.put(WAVES, account.address, account.waves)
        for asset_id, balance in account.assets.items():
            state.put(ASSET_BALANCES, (account.address, asset_id), balance)
    if isinstance(asked.what, Invocation):
        family = chain.network.family
        call, caller = invocation(asked.what, evaluation.key, address, chain_id, family)
        return dry_run_call(call, caller, dry_run)
    encoded = evaluation.code
    if encoded is None:
        encoded = _from_base64(asked.what)
    code = read_expression(encoded, script.version, context.watch)
    fees = context.rules.fees
    # So many times the extra fee of a script, not the unit of fees, as in the reference.
    fee = fees.base[_INVOKE_SCRIPT] // fees.unit * fees.script_extra
    return dry_run_expression(address, code, Caller(anonymous, NO_KEY, b"", fee), dry_run)


def _from_base64(text: str) -> bytes:
    try:
        encoded = decode_base64(text)
    except JsonFieldError as error:
        raise errors.invalid_request(str(error)) from error
    if len(encoded) > MAX_DAPP_BYTES:
        raise RideError(f"an expression has at most {MAX_DAPP_BYTES} bytes")
    return encoded


# --- the response ---------------------------------------------------------------------------------


def _success(
    result: DryRunResult, trace: Trace | None, chain: Blockchain, context: Context
) -> Members:
    if chain.network.family == MIDDLE:
        return {"result": value_json(result.value)}
    members: Members = {}
    if trace is not None:
        members["vars"] = steps_json(trace.steps, context.watch)
    return members | {
        "result": value_json(result.value),
        "complexity": result.complexity,
        "stateChanges": short_changes(result.changes),
    }


def _rejected(error: EvaluationError, trace: Trace, context: Context) -> Members:
    reason = error.message
    if isinstance(error, ComplexityExceeded):
        reason = "Calculation complexity limit exceeded"
    own = [step for step in trace.steps if step.name not in (INVOKED_DAPP, INVOKED_FUNCTION)]
    log = steps_text(own, context.watch)
    message = f"InvokeRejectError(error = {reason}, log = {log})"
    return {"error": errors.SCRIPT_EXECUTION_ERROR.code, "message": message}


_BODY: Final = json_body(
    "Either `expr`, an expression that may use the dApp's definitions, as source or compiled in "
    "base64; or a call as in a transaction: `call`, `payment`, `sender` and so on. `state` "
    "overrides balances of accounts.",
    {"expr": "1 + 2"},
    shape(
        "expr?: string, call?, id?: string, fee?: integer, feeAssetId?: string|null, "
        "sender?: string, senderPublicKey?: string, payment?: object[], state?: object",
        call=ref("CallToSend"),
    ),
    get_is_405=True,
)
_ANSWER: Final = shape(
    "address: string, result?, complexity?: integer, stateChanges?, vars?: object[], "
    "error?: integer, message?: string",
    result=ref("RideValue"),
    stateChanges=ref("ShortStateChanges"),
)
_NO_CHANGES: Final = (
    *("data", "transfers", "issues", "reissues", "burns", "sponsorFees", "leases"),
    *("leaseCancels", "invokes"),
)
_EXAMPLE: Final = {
    "result": {"type": "Int", "value": 3},
    "complexity": 1,
    "stateChanges": {name: [] for name in _NO_CHANGES},
    "expr": "1 + 2",
    "address": examples.ADDRESS,
}
ROUTES: Final = table("utils", """
trace | boolean | Add every step, as `vars` | false
""",
    row("POST /utils/script/evaluate/{address}?trace", evaluate,
        "The result of a dApp's function or expression; errors of scripts have status 200 as well",
        _ANSWER, _EXAMPLE,
        "WRONG_JSON INVALID_ADDRESS CUSTOM_VALIDATION_ERROR SERVER_REQUEST_TIMEOUT", body=_BODY),
    reads="chain", family="waves,tn",
)  # fmt: skip
