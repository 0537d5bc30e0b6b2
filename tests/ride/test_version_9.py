"""Version 9 of the language against the reference: bytes, complexities, values, errors.

What lives here: the recorded outcomes of its compiler and its evaluator. What does not: certificate
chains by their parts (``tests/crypto/test_certificates.py``).
"""

from __future__ import annotations

import base64
from collections import Counter
from typing import Any, Final

import pytest

from soliton.ride.compiler import CompileError, compile_source
from soliton.ride.environment import CallContext, Switches
from soliton.ride.errors import ComplexityExceeded, EvaluationError
from soliton.ride.evaluator import Setting, evaluate
from soliton.ride.functions.library import implementations
from soliton.ride.script import parse_script
from soliton.ride.values import UNIT, Value, ride_list
from tests.amounts import some
from tests.ride.compiler.test_vectors import FORMS, compiled
from tests.ride.estimators import estimate
from tests.ride.functions.setting import context_of
from tests.ride.recorded_values import is_recorded
from tests.ride.static_environment import StaticEnvironment
from tests.vectors import load_document, load_vectors, report

COMPILED: Final = "ride9/ride_v9_compile"
EVALUATED: Final = "ride9/ride_v9_eval"
RECOVERED: Final = "ride9/ride_ecrecover_fix"
OF_GO: Final = "finality/ride_v9"
CERTIFICATES: Final = "finality/ride_v9_certificates"

OUTCOMES: Final = ("value", "error", "incomplete")
CHAINS: Final = "validateCertificateChain: "
AS_OPENJDK: Final = {
    "p256Verify: public key 65 bytes, 0 appended",
    *(
        f"{CHAINS}{each}"
        for each in (
            *("one certificate, no CRL", "one leaf, no CRL", "root as the leaf too"),
            *("same CRL twice", "root without cRLSign", "leaf without the SGX extension"),
            *("leaf serial revoked by another issuer CRL", "1 ms before the CRL begins"),
            *("1 ms after the CRL ends", "leaf is byte appended", "leaf is PEM", "CRL is PEM"),
        )
    ),
}
"""Where the Go node, whose answers these are, and the reference differ: as the latter's code has
it, run by OpenJDK 17 with the provider that the reference prefers.
"""
COMPLEXITY_LIMIT: Final = 52_000


def test_sources_compile_to_the_same_bytes_at_the_same_complexity() -> None:
    vectors = load_vectors(COMPILED)
    in_all_forms = {id(vector) for vector in some(vectors, 3)}
    for vector in vectors:
        source = vector["source"]
        if "error" in vector:
            with pytest.raises(CompileError):
                compile_source(source)
            continue
        for form, options in FORMS.items():
            if vector.get(form) and (form == "script" or id(vector) in in_all_forms):
                assert compiled(source, **options) == vector[form], vector["how"]
        _check_complexities(vector)
    report.ran(COMPILED, len(vectors))


def _check_complexities(vector: dict[str, Any]) -> None:
    result = compile_source(vector["source"])
    numbers, parts = result.estimate, result.parts
    assert numbers is not None
    assert numbers.max == vector["complexity"], vector["source"]
    if "callableComplexities" in vector:
        assert parts is not None
        assert numbers.verifier == vector["verifierComplexity"]
        assert numbers.callables == vector["callableComplexities"]
        assert parts.functions == vector["userFunctionComplexities"]
        assert parts.values == vector["globalVariableComplexities"]
    # The recorded numbers of the older estimators are of a release that has the older costs of
    # sha256 and lacks two functions.
    if vector["lang_1_6_0"] != "same":
        return
    for name, told in vector.get("estimators_lang_1_6_0", {}).items():
        if "complexity" in told:
            assert estimate(result.script, int(name[1:])).max == told["complexity"], name


def test_scripts_are_evaluated_to_the_same_values_at_the_same_complexity() -> None:
    vectors = load_vectors(EVALUATED)
    counts: Counter[str] = Counter()
    for vector in vectors:
        counts[_outcome(vector)] += 1
    different = {how: count for how, count in counts.items() if how not in OUTCOMES}
    report.ran(EVALUATED, len(vectors) - sum(different.values()))
    report.skipped(EVALUATED, sum(different.values()), "recorded of the Go node, which differs")
    assert different.keys() == AS_OPENJDK
    assert min(counts[each] for each in OUTCOMES) > 20


def _outcome(vector: dict[str, Any]) -> str:
    expected = vector["eval_latest"]
    limit = vector.get("limit", COMPLEXITY_LIMIT)
    script = parse_script(base64.b64decode(vector["script"]))
    try:
        outcome = evaluate(script, StaticEnvironment(), _no_subject, Setting(limit))
    except EvaluationError as error:
        return _failure(vector, error)
    if "error" in expected and vector["authority"].startswith("gowaves"):
        return str(vector["how"])
    assert is_recorded(expected["value"], outcome.value), vector
    assert outcome.spent == expected["complexity"], vector
    return "value"


def _failure(vector: dict[str, Any], error: EvaluationError) -> str:
    expected = vector["eval_latest"]
    if isinstance(error, ComplexityExceeded):
        assert expected.get("incomplete") or "exceeded the complexity limit" in expected["error"]
        # The reference takes 1 for what it did before the limit, the Go node nothing.
        assert error.spent == min(vector["limit"], 1), vector
        assert expected["complexity"] in (0, error.spent)
        return "incomplete"
    if "value" in expected and vector["authority"].startswith("gowaves"):
        return str(vector["how"])
    assert "error" in expected, (vector, str(error))
    assert error.spent == expected.get("complexity", error.spent), vector
    told = vector.get("error_ride_lang_1_6_1", expected["error"])
    if told != expected["error"] or vector["authority"].startswith("lang"):
        _check_text(str(error), told)
    return "error"


def _no_subject() -> Value:
    raise AssertionError("no script asks for it")


def _check_text(text: str, told: str) -> None:
    """The reference adds the parameters of a function to some texts, and names of its classes."""
    if told.startswith("Can't apply"):
        assert text.startswith("Can't apply")
    else:
        assert told.endswith(text)


def test_recovered_keys_keep_their_zeros_since_the_fix() -> None:
    vectors = load_vectors(RECOVERED)
    for vector in vectors:
        script = parse_script(base64.b64decode(vector["script"]))
        for switch in (True, False):
            expected = vector["fix_ecrecover_on" if switch else "fix_ecrecover_off"]
            setting = Setting(COMPLEXITY_LIMIT, Switches(ecrecover_fix=switch))
            try:
                outcome = evaluate(script, StaticEnvironment(), _no_subject, setting)
            except EvaluationError:
                assert "error" in expected, vector
            else:
                assert is_recorded(expected["value"], outcome.value), vector
                assert outcome.spent == expected["complexity"]
    report.ran(RECOVERED, len(vectors))


DIFFERENCES: Final = {
    "replaceFirst": "the reference limits the result",
    "replaceAll": "the reference finds code units, and limits the result",
    "toBase64String_1C": "the reference takes only bytes",
    "toBase16String_1C": "the reference takes only bytes",
}


def _value(recorded: Any) -> Value:
    if recorded is None:
        return ride_list(())
    if isinstance(recorded, list):
        return ride_list([bytes.fromhex(item) for item in recorded])
    if recorded == "Unit":
        return UNIT
    kind, content = next(iter(recorded.items()))
    match kind:
        case "ByteVector":
            return bytes.fromhex(content)
        case "List":
            return ride_list(map(_value, content))
    value: Value = content
    return value


def _called(row: dict[str, Any], context: CallContext) -> Value | None:
    function = implementations(9)[int(row["id"])]
    try:
        return function([_value(each) for each in row["args"]], context)
    except EvaluationError:
        return None


def _as_value(recorded: Any) -> dict[str, Any]:
    if isinstance(recorded, list):
        return {"List": recorded}
    if "ListOf" in recorded:
        return {"List": [recorded["ListOf"]] * recorded["length"]}
    found: dict[str, Any] = recorded
    return found


def test_calls_recorded_from_the_go_node() -> None:
    document = load_document(OF_GO)
    different: Counter[str] = Counter()
    for row in document["calls"]:
        result = _called(row, context_of(9))
        wanted = row.get("result")
        same = result is None if wanted is None else result is not None
        if same and wanted is not None and result is not None:
            same = is_recorded(_as_value(wanted), result)
        if not same:
            assert row["function"] in DIFFERENCES, row
            different[row["function"]] += 1
    report.ran(OF_GO, len(document["calls"]) - different.total())
    for name, count in different.items():
        report.skipped(OF_GO, count, DIFFERENCES[name])
    assert different.keys() == DIFFERENCES.keys() and different.total() == 5


def test_certificate_chains_recorded_from_the_go_node() -> None:
    """It wants an extension of Intel's in the first certificate, and a list for each other one,
    but takes the same list twice.
    """
    rows = load_document(CERTIFICATES)["calls"]
    different = []
    for row in rows:
        row["id"] = "902"
        result = _called(row, context_of(9))
        wanted = row.get("result")
        if wanted is None or result is None:
            if wanted is not None or result is not None:
                different.append(row["note"])
            continue
        assert is_recorded(wanted, result)
    assert different == ["one certificate, no CRL", "same CRL twice"]
    report.ran(CERTIFICATES, len(rows) - len(different))
    report.skipped(CERTIFICATES, len(different), "the reference counts differently")
