"""Calls of library functions, recorded from wavesplatform/gowaves, many of them compared with the
JavaScript build of the reference.

Each is run for every version of the language that has the function. Where gowaves and the
reference differ, the reference is followed; `_difference` lists those calls with the reason.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from soliton.crypto import base58
from soliton.ride.environment import CallContext
from soliton.ride.errors import EvaluationError
from soliton.ride.functions import catalogue
from soliton.ride.values import (
    UNIT,
    BigInt,
    CaseObject,
    Value,
    case_object,
    equal,
    ride_list,
    ride_tuple,
)
from tests.ride.functions.plain import call
from tests.ride.static_environment import ADDRESS, StaticEnvironment
from tests.vectors import load_vectors, report

FILE = "ride_functions"
CHAINS = (ord("T"), ord("W"), ord("S"))
"""The file does not tell which chain a call was recorded on."""
MAX_INT = 2**63 - 1

QUESTIONS = frozenset(
    (
        "height",
        "transaction_id",
        "this",
        "last_block",
        "block_info",
        "transaction",
        "transaction_height",
        "asset_info",
        "token_asset",
        "resolve_alias",
        "data",
        "has_data",
        "balance",
        "balance_details",
        "script",
        "calculate_delay",
        "invoke",
    )
)


class Asked(Exception):
    """A function asked the chain, of which the file says nothing."""


class SilentEnvironment(StaticEnvironment):
    """Knows its chain id, and nothing else."""

    def __getattribute__(self, name: str) -> Any:
        if name in QUESTIONS:
            raise Asked(name)
        return super().__getattribute__(name)


class Unreadable(Exception):
    """A value that the file does not hold: it was none of the recorded types."""


def read_value(value: dict[str, Any] | None) -> Value:
    if value is None:
        raise Unreadable
    if "Object" in value:
        fields = {name: read_value(field) for name, field in value["fields"].items()}
        return case_object(value["Object"], fields)
    ((kind, content),) = value.items()
    match kind:
        case "Int" | "Boolean" | "String":
            result: Value = content
            return result
        case "ByteVector":
            return bytes.fromhex(content)
        case "BigInt":
            return BigInt(int(content))
        case "Unit":
            return UNIT
        case "List":
            return ride_list(map(read_value, content))
        case "Tuple":
            # How many there are is all that is asked of those that the file does not hold.
            return ride_tuple(*(UNIT if item is None else read_value(item) for item in content))
        case "Address":
            return case_object("Address", {"bytes": base58.decode(content)})
        case "Alias":
            return case_object("Alias", {"alias": content.split(":")[2]})
        case "Named":
            return case_object(content, {})
    raise AssertionError(kind)


def _difference(vector: dict[str, Any], key: int | str, version: int) -> str | None:
    """Why the reference differs from what was recorded, if it does."""
    name, arguments = vector["fn"], vector["args"]
    kinds = [next(iter(argument)) for argument in arguments]
    if name in ("unaryNot", "unaryMinus", "sqrt", "contains") and len(kinds) in (2, 4, 5):
        return "arguments too many of named functions are ignored"
    if name.endswith("State") or name == "stringToBigIntOpt":
        return "wrong arguments are an error, not unit"
    if name == "medianListBigInt":
        return "the mean of the middle numbers is rounded down"
    if name == "fraction" and version < 5 and vector.get("result") == {"Int": MAX_INT}:
        return "until version 5 the largest number was refused"
    if name == "addressFromString" and version < 4:
        return "until version 4 bad Base58 was an error"
    if name == "sigVerify" and version == 3:
        return "version 3 has a limit on messages"
    if name in ("keccak256", "blake2b256", "sha256"):
        if kinds == ["String"]:
            return "only bytes are hashed"
        return "these functions have no limit"
    if name == "takeString" and "?" in vector["result"]["String"]:
        return "recorded before characters were counted"
    if name == "splitString" and vector["result"] == {"List": []}:
        return "an empty text has one part"
    return None


def _run(vector: dict[str, Any], key: int | str, version: int) -> str:
    arguments = [read_value(argument) for argument in vector["args"]]
    wanted = read_value(vector["result"]) if "result" in vector else None
    chains = CHAINS if vector["env_dependent"] else CHAINS[:1]
    outcome = "different"
    for chain_id in chains:
        context = CallContext(SilentEnvironment(chain_id=chain_id), version)
        try:
            result = call(key, arguments, context)
        except Asked:
            outcome = "asked"
            if _is_answer_of_a_chain(vector["fn"], key, arguments, context, wanted):
                return "same"
        except EvaluationError:
            if wanted is None:
                return "same"
        else:
            if wanted is not None and equal(result, wanted):
                return "same"
    return outcome


def _is_answer_of_a_chain(
    name: str, key: int | str, arguments: list[Value], context: CallContext, wanted: Value | None
) -> bool:
    """Whether what was recorded is what a chain answers that has nothing on it but what was asked
    for, where it is plain which entry or balance that was.
    """
    environment = StaticEnvironment(chain_id=context.environment.chain_id)
    environment.aliases = dict.fromkeys(map(_alias, arguments), ADDRESS)
    asked = [_plain(argument) for argument in arguments]
    if name.endswith("State") and isinstance(wanted, int | bool | bytes | str):
        owner, entry = asked if len(asked) == 2 else (ADDRESS, asked[0])
        environment.entries[owner, entry] = wanted
    elif "Balance" in name and isinstance(wanted, int):
        owner, asset = asked if len(asked) == 2 else (asked[0], None)
        environment.balances[owner, asset] = wanted
    try:
        result = call(key, arguments, CallContext(environment, context.version))
    except EvaluationError:
        return wanted is None
    return wanted is not None and equal(result, wanted)


def _plain(value: Value) -> Any:
    """The bytes of an address or of what all aliases lead to, other values as they are."""
    if isinstance(value, CaseObject):
        return value.fields.get("bytes", ADDRESS if value.type_name == "Alias" else None)
    return value


def _alias(value: Value) -> str:
    return str(value.fields.get("alias")) if isinstance(value, CaseObject) else ""


def _calls(vector: dict[str, Any]) -> list[tuple[int | str, int]]:
    known = {function.key for function in catalogue.FUNCTIONS}
    calls: list[tuple[int | str, int]] = []
    for text, versions in vector["ride_ids"].items():
        key: int | str = int(text) if text.isdecimal() else text
        calls += (
            (key, version)
            for version in versions
            if key not in known or key in catalogue.costs(version)
        )
    return calls


def test_functions() -> None:
    counts: Counter[str] = Counter()
    wrong = []
    for vector in load_vectors(FILE):
        outcomes = set()
        for key, version in _calls(vector):
            try:
                outcome = _run(vector, key, version)
            except Unreadable:
                outcome = "unreadable"
            if outcome == "different":
                outcome = _difference(vector, key, version) or "wrong"
            if outcome == "wrong":
                wrong.append((vector["fn"], key, version, vector["args"]))
            outcomes.add(outcome)
        outcomes.discard("same")
        counts[next(iter(outcomes), "same")] += 1
    assert wrong == []
    assert counts["same"] > 1_880
    report.ran(FILE, counts.pop("same"))
    for reason, count in counts.items():
        told = {
            "asked": "asks a chain whose answers the file does not have",
            "unreadable": "an argument or the result is missing in the file",
        }
        report.skipped(FILE, count, told.get(reason, f"reference: {reason}"))


@pytest.mark.parametrize("agreement", ["agree", "agree_error"])
def test_what_the_reference_agreed_with(agreement: str) -> None:
    """Two implementations agree on these; only version-dependent calls may differ."""
    for vector in load_vectors(FILE):
        if vector["ridejs"] != agreement:
            continue
        for key, version in _calls(vector):
            outcome = _run(vector, key, version)
            if outcome == "different":
                reason = _difference(vector, key, version)
                assert reason == "until version 5 the largest number was refused"
