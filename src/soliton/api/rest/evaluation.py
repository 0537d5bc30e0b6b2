"""The route ``/utils/script/evaluate``: the result of a dApp's function without a transaction.

What does not live here: the evaluation itself (``soliton.ledger.dry_run``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/utils/{UtilsApiRoute,UtilsInvocationRequest}.scala``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from soliton.api import errors
from soliton.api.http import Request
from soliton.api.json_reader import wrong_json
from soliton.api.json_traces import short_changes, steps_json
from soliton.api.json_transactions import MIDDLE, Members
from soliton.api.lookup import address_argument, node_of
from soliton.api.rest import examples
from soliton.api.rest.pending import next_block
from soliton.api.route_table import json_body, row, table
from soliton.api.text_jobs import CompileFragment
from soliton.api.thread_pool import Watch
from soliton.api.translate import refusal
from soliton.chain.addresses import (
    Address,
    address_text,
    from_public_key,
    parse_address,
)
from soliton.chain.errors import JsonFieldError
from soliton.chain.function_calls import DEFAULT_CALL, FunctionCall, read_call_json
from soliton.chain.json_kinds import decode_base64
from soliton.chain.json_schemas import shape
from soliton.chain.transactions.invoke_script import PAYMENTS
from soliton.crypto import base58
from soliton.errors import InputError
from soliton.ledger.context import Context
from soliton.ledger.dry_run import Caller, DryRun, DryRunResult, dry_run_call, dry_run_expression
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.scripts import FailedTransaction, account_script
from soliton.ledger.state import ASSET_BALANCES, WAVES, Overlay
from soliton.ledger.state_changes import value_json
from soliton.node.blockchain import Blockchain
from soliton.ride.bindings import Call, argument_value
from soliton.ride.compiler.compile import MAX_DAPP_BYTES
from soliton.ride.environment import Payment
from soliton.ride.errors import ComplexityExceeded, EvaluationError, NotCallable, RideError
from soliton.ride.script import BASE64_PREFIX, Script, parse_script
from soliton.ride.serialization import read_expression
from soliton.ride.trace import Trace
from soliton.web.openapi import ref

T = TypeVar("T")
Source = TypeVar("Source")


_NO_KEY: Final = bytes(32)
_ANONYMOUS_BALANCE: Final = (2**63 - 1) // 10
"""The balance of the anonymous caller."""
_INVOKE_SCRIPT: Final = 16
_OF_EXPRESSIONS: Final = frozenset(("expr", "state"))
"""The members that a request with an expression may have."""
_MAX_LONG: Final = 2**63 - 1
_MAX_ID_CHARS: Final = 100


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

    try:
        code = await _compiled(request, body, script)
    except RideError as error:
        answer = errors.invalid_request(str(error)).body()
        return answer | body | {"address": address_text(address)}

    def work(chain: Blockchain, watch: Watch) -> Members:
        evaluation = _Evaluation(address, body, code, limit, Trace() if traced else None)
        return _answer(evaluation, script, chain, next_block(chain, now, watch))

    answer = await request.context.workers.ask(node, work, request.charge)
    return answer | body | {"address": address_text(address)}


async def _compiled(request: Request, body: Members, script: Script) -> bytes | None:
    """The compiled expression of a request; ``None`` if it has no source or further members."""
    source = body.get("expr")
    if (
        not isinstance(source, str)
        or source.startswith(BASE64_PREFIX)
        or body.keys() - _OF_EXPRESSIONS
    ):
        return None
    work = CompileFragment(source, script.source)
    return (await request.context.texts.do(work, request.charge)).expression


class _Evaluation(msgspec.Struct, frozen=True):
    """The dApp and the request; ``code`` is its expression if that was a source. ``trace`` collects
    the steps, if the client wants them.
    """

    address: Address
    body: Members
    code: bytes | None
    limit: int
    trace: Trace | None


def _answer(
    evaluation: _Evaluation, script: Script, chain: Blockchain, context: Context
) -> Members:
    try:
        result = _evaluate(evaluation, script, chain, context)
        return _success(result, evaluation.trace, chain, context)
    except errors.ApiError as error:
        return error.body()
    except NotCallable as error:
        return errors.invalid_request(error.message).body()
    except EvaluationError as error:
        return _rejected(error)
    except FailedTransaction as error:
        return _failure(f"FailedTransactionError(code = {error.code}, error = {error.reason})")
    except TransactionRejected as error:
        return refusal(error, chain.network.family).body()
    except RideError as error:
        return errors.invalid_request(str(error)).body()


def _evaluate(
    evaluation: _Evaluation, script: Script, chain: Blockchain, context: Context
) -> DryRunResult:
    address, body = evaluation.address, evaluation.body
    state = Overlay(chain.store, chain.height + 1)
    dry_run = DryRun(state, context, evaluation.limit, evaluation.trace)
    anonymous = from_public_key(_NO_KEY, chain.network.chain_id)
    state.put(WAVES, anonymous, max(state.get(WAVES, anonymous), _ANONYMOUS_BALANCE))
    _override(state, body.get("state", {}), chain)
    expression = body.get("expr")
    if not isinstance(expression, str):
        return dry_run_call(*_invocation(chain, address, body), dry_run)
    if body.keys() - _OF_EXPRESSIONS:
        raise errors.CONFLICTING_REQUEST_STRUCTURE.error()
    encoded = evaluation.code
    if encoded is None:
        encoded = _read(decode_base64, expression)
        if len(encoded) > MAX_DAPP_BYTES:
            raise RideError(f"an expression has at most {MAX_DAPP_BYTES} bytes")
    code = read_expression(encoded, script.version, context.watch)
    fee = context.rules.fees.base[_INVOKE_SCRIPT]
    return dry_run_expression(address, code, Caller(anonymous, _NO_KEY, b"", fee), dry_run)


# --- the request ----------------------------------------------------------------------------------


def _invocation(chain: Blockchain, address: Address, body: Members) -> tuple[Call, Caller]:
    """The call in a request. Missing members have defaults; the default caller is anonymous."""
    rules = chain.rules.at(chain.height)
    chain_id = chain.network.chain_id
    call = _read(lambda value: read_call_json(value, chain_id), body.get("call", _DEFAULT))
    function: FunctionCall = DEFAULT_CALL if call is None else call
    payments = _read(lambda value: PAYMENTS.json.read(value, chain_id), body.get("payment", []))
    key = _bytes(body, "senderPublicKey") or _NO_KEY
    sender = body.get("sender")
    try:
        if isinstance(sender, str):
            caller = parse_address(sender, chain_id)
        else:
            caller = from_public_key(key, chain_id)
        arguments = tuple(map(argument_value, function.args))
    except InputError as error:
        raise refusal(error, chain.network.family) from error
    fee = body.get("fee", rules.fees.base[_INVOKE_SCRIPT])
    if not isinstance(fee, int) or not 0 <= fee <= _MAX_LONG:
        raise wrong_json("fee")
    fee_asset = _bytes(body, "feeAssetId")
    return (
        Call(
            address,
            function.function,
            arguments,
            tuple(Payment(each.asset_id, each.amount) for each in payments),
            fee_asset,
        ),
        Caller(caller, key, _bytes(body, "id") or bytes(32), fee, fee_asset),
    )


def _read(convert: Callable[[Source], T], value: Source) -> T:
    try:
        return convert(value)
    except (JsonFieldError, InputError) as error:
        raise errors.invalid_request(str(error)) from error


def _bytes(body: Members, name: str) -> bytes | None:
    """A member in base58."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise wrong_json(name)
    try:
        return base58.decode(value, _MAX_ID_CHARS)
    except InputError as error:
        raise errors.invalid_request(str(error)) from error


def _override(state: Overlay, overrides: object, chain: Blockchain) -> None:
    """Set the balances that a request gives to accounts."""
    accounts = overrides.get("accounts", {}) if isinstance(overrides, dict) else None
    if not isinstance(accounts, dict):
        raise wrong_json("state")
    for text, balances in accounts.items():
        try:
            address = parse_address(text, chain.network.chain_id)
        except InputError as error:
            raise refusal(error, chain.network.family) from error
        if not isinstance(balances, dict):
            raise wrong_json("accounts")
        if balances.get("regularBalance") is not None:
            state.put(WAVES, address, _balance(balances["regularBalance"]))
        assets = balances.get("assetBalances", {})
        if not isinstance(assets, dict):
            raise wrong_json("assetBalances")
        for name, balance in assets.items():
            try:
                asset_id = base58.decode(name, _MAX_ID_CHARS)
            except InputError as error:
                raise errors.invalid_request(str(error)) from error
            state.put(ASSET_BALANCES, (address, asset_id), _balance(balance))


def _balance(value: object) -> int:
    if isinstance(value, str) and len(value) <= 20 and value.isascii() and value.isdecimal():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_LONG:
        raise wrong_json("a balance that is no number")
    return value


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


def _rejected(error: EvaluationError) -> Members:
    message = error.message
    if isinstance(error, ComplexityExceeded):
        message = "Calculation complexity limit exceeded"
    return _failure(f"InvokeRejectError(error = {message})")


def _failure(message: str) -> Members:
    return {"error": errors.SCRIPT_EXECUTION_ERROR.code, "message": message}


_DEFAULT: Final[Members] = {"function": "default", "args": []}
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
