"""All scripts of the vectors, quickly and exactly: wanting a trace must not change an outcome."""

from __future__ import annotations

import base64

import pytest

from soliton.ride.environment import Payment, Switches
from soliton.ride.errors import EvaluationError, RideError
from soliton.ride.evaluator import Invocation, Outcome, Setting, evaluate, invoke
from soliton.ride.expressions import DApp
from soliton.ride.meta import ArgumentType, argument_types, read_meta
from soliton.ride.script import Script, parse_script
from soliton.ride.trace import Trace
from soliton.ride.values import UNIT, Value, case_object, equal, ride_list
from tests.amounts import some, times
from tests.ride.static_environment import ADDRESS, StaticEnvironment
from tests.vectors import load_vectors

ARGUMENTS: dict[str, Value] = {"Int": 3, "ByteVector": b"abc", "Boolean": True, "String": "abc"}
OWN_ADDRESS = case_object("Address", {"bytes": ADDRESS})
PAYMENT = case_object("AttachedPayment", {"assetId": UNIT, "amount": 100})
INVOCATION = case_object(
    "Invocation",
    {
        "caller": OWN_ADDRESS,
        "callerPublicKey": b"k" * 32,
        "payments": ride_list((PAYMENT,)),
        "payment": PAYMENT,
        "transactionId": b"t" * 32,
        "fee": 1,
        "feeAssetId": UNIT,
        "originCaller": OWN_ADDRESS,
        "originCallerPublicKey": b"k" * 32,
    },
)
TRANSFER = case_object(
    "TransferTransaction",
    {
        "amount": 5,
        "id": b"1" * 32,
        "bodyBytes": b"body",
        "proofs": ride_list((b"",) * 8),
        "sender": OWN_ADDRESS,
        "senderPublicKey": b"k" * 32,
        "recipient": OWN_ADDRESS,
        "assetId": UNIT,
        "timestamp": 1,
        "fee": 1,
    },
)


def _answer(
    _dapp: bytes,
    _function: str,
    _arguments: tuple[Value, ...],
    _payments: tuple[Payment, ...],
    available: int,
    _reentrant: bool,
) -> tuple[Value, int]:
    return 7, available - 10


def _argument(of: ArgumentType | None) -> Value:
    value = ARGUMENTS[of.types[0] if of else "Int"]
    return ride_list((value,)) if of and of.is_list else value


def _invocations(script: Script) -> list[Invocation | None]:
    """What to run: all functions with arguments of their types; ``None`` is the verifier."""
    content = script.content
    if not isinstance(content, DApp):
        return [None]
    try:
        types = argument_types(read_meta(content.meta)) or ()
    except RideError:
        types = ()
    found: list[Invocation | None] = [] if content.verifier is None else [None]
    for place, each in enumerate(content.callables):
        of = types[place] if place < len(types) else ()
        arguments = tuple(
            _argument(of[number] if number < len(of) else None)
            for number in range(len(each.function.parameters))
        )
        found.append(Invocation(each.function.name, arguments, INVOCATION))
    return found


def _outcome(script: Script, call: Invocation | None, setting: Setting) -> Outcome | str:
    environment = StaticEnvironment(answer=_answer)
    try:
        if call is None:
            return evaluate(script, environment, lambda: TRANSFER, setting)
        return invoke(script, environment, call, setting)
    except EvaluationError as error:
        return f"{error.spent}: {error}"


@pytest.mark.parametrize("limit", [52_000, 40])
@pytest.mark.parametrize("new", [True, False])
def test_a_trace_changes_nothing(new: bool, limit: int) -> None:
    texts = {
        vector["script"]
        for name in ("ride_eval", "ride_estimate", "ride_calls_with_env")
        for vector in load_vectors(name)
        if vector.get("script")
    }
    successes = 0
    for text in some(sorted(texts)):
        try:
            script = parse_script(base64.b64decode(text))
        except RideError:
            continue
        for call in _invocations(script):
            switches = Switches(new_complexity=new)
            quick = _outcome(script, call, Setting(limit, switches))
            exact = _outcome(script, call, Setting(limit, switches, trace=Trace()))
            if isinstance(quick, str) or isinstance(exact, str):
                assert quick == exact
            else:
                successes += 1
                assert equal(quick.value, exact.value)
                assert quick.spent == exact.spent
    assert successes > times(100, 500)
