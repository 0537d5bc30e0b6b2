"""Scripts run: the vectors, the counting of complexity step by step, calls, errors, traces."""

from __future__ import annotations

import base64
from collections import Counter
from typing import Any

import pytest

from soliton.ride.compiler.library import ScriptKind
from soliton.ride.environment import CURRENT_SWITCHES, Payment, Switches
from soliton.ride.errors import (
    ComplexityExceeded,
    EvaluationError,
    EvaluationEscaped,
    InvocationFailed,
    RideError,
)
from soliton.ride.evaluator import NO_LIMIT, Invocation, Outcome, Setting, evaluate, invoke
from soliton.ride.expressions import Expression, GetField, If, ListConst
from soliton.ride.script import make_script, parse_script
from soliton.ride.trace import Step, Trace
from soliton.ride.values import UNIT, CaseObject, RideList, Value, case_object
from tests.ride.recorded_values import is_recorded
from tests.ride.static_environment import ADDRESS, StaticEnvironment
from tests.ride.trees import Plain, add, block, call, dapp, equal, func, let, text, tree
from tests.vectors import load_vectors, report

OLD = Switches(new_complexity=False)
SUBJECT = case_object("TransferTransaction", {"amount": 5})
VECTOR_LIMIT = 52_000


def run(
    expression: Plain,
    *,
    version: int = 6,
    limit: int = NO_LIMIT,
    switches: Switches = CURRENT_SWITCHES,
    trace: Trace | None = None,
    environment: StaticEnvironment | None = None,
    kind: ScriptKind = ScriptKind.ACCOUNT,
) -> Outcome:
    """The outcome of an expression, quickly and exactly, which must be the same."""
    script = make_script(version, tree(expression))
    environment = environment or StaticEnvironment()
    setting = Setting(limit, switches, kind, trace)
    return evaluate(script, environment, lambda: SUBJECT, setting)


# --- vectors --------------------------------------------------------------------------------------

COSTS_OF_ERRORS = "both fail; the other node counts differently what led to the failure"
FREE_VERIFIER = "the other node lets the call of a verifier that costs nothing go free"
NAMED_COSTS = "the other node has other costs for a few named functions"
NAMED_IN_OLDER_MODE = (
    "version 6 and later in the older mode, where the other node calls != natively"
)
COUNTS_BYTES = "version 8 in the older mode, where the other node counts bytes of texts"
_NAMED_COSTS = {185, 430, 486, 494, 495, 498}
_COUNTS_BYTES = 44
_FIRST_OF_NEWER_MODE = 6


def test_vectors() -> None:
    """All outcomes are those of the other node; where the complexity is not, there is a reason."""
    vectors = load_vectors("ride_eval")
    skipped: Counter[str] = Counter()
    outcomes = complexities = 0
    for index, vector in enumerate(vectors):
        for name, new in (("eval_pre_v6", False), ("eval_latest", True)):
            if index == _COUNTS_BYTES and not new:
                continue
            reason = _check(vector, vector[name], new)
            outcomes += 1
            if reason is None:
                complexities += 1
                continue
            if reason == NAMED_COSTS and vector["lib"] >= _FIRST_OF_NEWER_MODE and not new:
                reason = NAMED_IN_OLDER_MODE
            assert reason != NAMED_COSTS or index in _NAMED_COSTS, index
            skipped[reason] += 1
    report.ran("ride_eval", outcomes)
    report.skipped("ride_eval", 1, COUNTS_BYTES)
    report.ran("ride_eval: complexity", complexities)
    for reason, count in skipped.items():
        report.skipped("ride_eval: complexity", count, reason)
    assert complexities >= 984


def _check(vector: dict[str, Any], expected: dict[str, Any], new: bool) -> str | None:
    """``None`` when all agrees, else what the other node counts differently."""
    switches = Switches(new_complexity=new, code_points=new)
    setting = Setting(VECTOR_LIMIT, switches)
    script = parse_script(base64.b64decode(vector["script"]))
    try:
        outcome = evaluate(script, StaticEnvironment(), lambda: SUBJECT, setting)
    except EvaluationError as error:
        assert "error" in expected
        return None if error.spent == expected["complexity"] else COSTS_OF_ERRORS
    assert is_recorded(expected["value"], outcome.value)
    if outcome.spent == expected["complexity"]:
        return None
    if script.is_dapp and (expected["complexity"], outcome.spent) == (0, 1):
        return FREE_VERIFIER
    return NAMED_COSTS


# --- complexity, as the reference's own tests have it ---------------------------------------------

SUMS = block(
    let("a", add(1, 10, 100)),
    let("b", add(1000, "a", 10_000)),
    let("c", add("a", "b", 100_000)),
    add("c", "a"),
)
FUNCTION = block(
    func(
        "f",
        "a b",
        block(
            let("c", add("a", "b")),
            let("d", call(101, "a", "b")),
            call(101, call(104, "c", "d"), 1),
        ),
    ),
    call("f", 1, 2),
)
CHOICE = If(call(102, 2, 1), add(1, 2, 3), add(3, 4))
FIELD = block(let("address", call("Address", b"aaaa")), GetField(tree("address"), "bytes"))
OVERLAP = block(
    let("x", add(1, 1, 1, 1, 1)),
    let("y", add("x", 1)),
    func("f", "x", add("x", 1)),
    func("g", "x", add("x", 1, 1)),
    func("h", "x", add("x", 1, 1, 1)),
    equal(call("f", call("g", call("h", "y"))), add("x", "x", 2)),
)
INNER = block(
    let("x", add(1, 1, 1)),
    let("y", block(let("x", 1), "x")),
    add("y", "x"),
)
SCOPES = block(
    let("a", add(1, 1)),
    let("b", "a"),
    func("g", "", block(let("a", add(2, 2, 2)), let("c", "a"), add("c", add("b", "a")))),
    add(call("g"), "a"),
)
STRICT = block(
    func(
        "test",
        "",
        block(
            let("a", add(100_500, 42)),
            If(equal("a", "a"), tree("a"), call(2, text("Strict value is not equal to itself."))),
        ),
    ),
    call("test"),
)


@pytest.mark.parametrize(
    ("expression", "value", "old", "new"),
    [
        (SUMS, 111_333, 12, 7),
        (FUNCTION, -4, 10, 4),
        (CHOICE, 6, 4, 3),
        (FIELD, b"aaaa", 2, 1),
        (OVERLAP, True, 21, 14),
        (INNER, 4, 6, 3),
        (SCOPES, 16, 12, 6),
        (STRICT, 100_542, 6, 2),
    ],
)
def test_complexity_and_limits_step_by_step(
    expression: Expression, value: Value, old: int, new: int
) -> None:
    for switches, cost in ((OLD, old), (CURRENT_SWITCHES, new)):
        assert run(expression, switches=switches) == Outcome(value, cost)
        for limit in range(cost):
            with pytest.raises(ComplexityExceeded) as stopped:
                run(expression, switches=switches, limit=limit)
            assert stopped.value.spent == limit
        # A choice or a field is looked at with something left only.
        spare = 0 if expression in (SUMS, FUNCTION, CHOICE, INNER, SCOPES) else 1
        if switches is CURRENT_SWITCHES and spare:
            cost += 1
        assert run(expression, switches=switches, limit=cost).value == value


def test_a_call_that_costs_nothing_costs_one_in_the_newer_way() -> None:
    empty = block(func("f", "", True), call("f"))
    assert run(empty).spent == 1
    assert run(empty, switches=OLD).spent == 0
    assert run(block(func("f", "x", "x"), call("f", add(1, 1)))).spent == 2
    assert run(call("Address", b"")).spent == 1
    assert run(call("Address", b""), switches=OLD).spent == 0


def test_named_library_functions_cost_what_the_table_says_or_what_is_in_them() -> None:
    different = call("!=", 1, 2)
    assert run(different).spent == 1
    assert run(different, version=3, switches=OLD) == Outcome(True, 5)
    assert run(different, version=1, switches=CURRENT_SWITCHES).spent == 26


def test_a_failure_inside_of_a_named_function_costs_both() -> None:
    with pytest.raises(EvaluationError, match="Explicit script termination") as failed:
        run(call("throw"))
    assert failed.value.spent == 2


def test_the_incomplete_function_itself_costs_one_in_the_newer_way() -> None:
    # Of two arguments the first cannot be paid; the second one still is.
    expensive = call(0, call(501, b""), add(1, 1))
    with pytest.raises(ComplexityExceeded) as stopped:
        run(expensive, version=3, limit=5)
    assert stopped.value.spent == 2
    with pytest.raises(ComplexityExceeded) as stopped:
        run(expensive, version=3, limit=5, switches=OLD)
    assert stopped.value.spent == 1


def test_what_is_not_used_is_not_evaluated() -> None:
    assert run(block(let("a", call("throw")), func("f", "x", call("throw")), 1)) == Outcome(1, 0)
    assert run(If(tree(True), tree(1), call("throw"))).value == 1


def test_a_value_is_evaluated_once() -> None:
    environment = StaticEnvironment()
    environment.entries[ADDRESS, "key"] = 3
    asked = call(1050, call("Address", ADDRESS), text("key"))
    outcome = run(block(let("a", asked), add("a", "a", "a")), environment=environment)
    assert outcome == Outcome(9, 10 + 2 + 1)
    assert environment.asked == ["key"]


# --- scope ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (block(let("a", "b"), let("b", "a"), "a"), "A definition of 'b' not found"),
        (
            block(let("a", call("b")), func("b", "", "a"), "a"),
            "Function or type 'b' not found",
        ),
        (
            block(func("f", "", block(let("x", 1), "x")), add(call("f"), "x")),
            "A definition of 'x' not found",
        ),
        (block(func("f", "", call("f")), call("f")), "Function or type 'f' not found"),
        (GetField(tree(1), "x"), "GETTER of non-case-object"),
        (If(tree(1), tree(1), tree(1)), "Non-boolean result in cond"),
        (call(9_999), "not found"),
        (call("Int", 1), "Function or type 'Int' not found"),
    ],
)
def test_what_does_not_make_sense(expression: Expression, message: str) -> None:
    for switches in (CURRENT_SWITCHES, OLD):
        with pytest.raises(EvaluationError, match=message):
            run(expression, switches=switches)


def test_older_rules_evaluate_bodies_where_they_are_called() -> None:
    redefined = block(
        let("x", 1),
        func("f", "", "x"),
        let("x", 2),
        call("f"),
    )
    assert run(redefined).value == 1
    assert run(redefined, switches=Switches(lexical_scope=False)).value == 2


def test_a_field_that_is_not_there_leaves_all_complexity() -> None:
    missing = GetField(call("Address", call(203, b"a", b"b")), "alias")
    with pytest.raises(EvaluationEscaped) as failed:
        run(missing, limit=100)
    assert failed.value.spent == 0
    assert failed.value.remaining == 100


def test_names_of_the_library_can_be_hidden() -> None:
    assert run(block(let("height", 7), "height")).value == 7
    # ``isDefined(a)`` compares with what is called ``unit`` where it is called.
    assert run(block(let("unit", 7), call("isDefined", 7))).value is False


def test_constructors_take_what_they_get() -> None:
    assert run(GetField(call("Address", 1, 2), "bytes")).value == 1
    assert run(call("Unit")).value is UNIT
    pair = run(call("AssetPair", b"a")).value
    assert isinstance(pair, CaseObject)
    assert pair.fields == {"amountAsset": b"a"}


def test_names_that_depend_on_the_run() -> None:
    environment = StaticEnvironment()
    assert run("height", environment=environment) == Outcome(100, 0)
    assert run("height", environment=environment, switches=OLD).spent == 1
    this = run("this", environment=environment).value
    assert isinstance(this, CaseObject)
    assert this.fields == {"bytes": ADDRESS}
    assert run(GetField(tree("lastBlock"), "height")).value == 100
    assert run(GetField(tree("tx"), "amount")).value == 5
    assert run("nil", version=3).value == RideList((), 20)
    with pytest.raises(EvaluationError, match="A definition of 'nil' not found"):
        run("nil", version=2)


# --- dApps ----------------------------------------------------------------------------------------

COUNTER = dapp(
    let("key", text("count")),
    func("read", "", call("valueOrElse", call(1055, "key"), 0)),
    callables=(
        func("add", "n", call(1100, call("IntegerEntry", "key", add(call("read"), "n")), "nil")),
        func("who", "", GetField(tree("i"), "caller")),
    ),
    verifier=func("verify", "", equal(GetField(tree("tx"), "amount"), 5)),
)
INVOCATION = case_object("Invocation", {"caller": case_object("Address", {"bytes": ADDRESS})})


def test_functions_of_dapps_are_called() -> None:
    script = make_script(6, COUNTER)
    environment = StaticEnvironment()
    environment.entries[ADDRESS, "count"] = 40
    outcome = invoke(script, environment, Invocation("add", (2,), INVOCATION))
    assert isinstance(outcome.value, RideList)
    (entry,) = outcome.value.items
    assert isinstance(entry, CaseObject)
    assert entry.fields == {"key": "count", "value": 42}
    # data 10, valueOrElse 2, the sum 1, the entry 1, the list 1
    assert outcome.spent == 15
    who = invoke(script, environment, Invocation("who", (), INVOCATION))
    assert who == Outcome(INVOCATION.fields["caller"], 1)


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        ("add", (), "takes 1 args but 0 were"),
        ("read", (), "not marked as @Callable"),
        ("none", (), "doesn't exist"),
    ],
)
def test_functions_that_cannot_be_called(
    function: str, arguments: tuple[Value, ...], message: str
) -> None:
    with pytest.raises(EvaluationError, match=message):
        invoke(
            make_script(6, COUNTER),
            StaticEnvironment(),
            Invocation(function, arguments, INVOCATION),
        )


def test_verifiers_of_dapps_are_asked() -> None:
    verifier = func("verify", "t", equal(GetField(tree("t"), "amount"), 5))
    script = make_script(6, dapp(callables=(), verifier=verifier))
    assert evaluate(script, StaticEnvironment(), lambda: SUBJECT) == Outcome(True, 1)
    # Compiled verifiers name the transaction in their annotation only.
    plain = func("verify", "", block(let("a", 5), equal(GetField(tree("tx"), "amount"), "a")))
    script = make_script(6, dapp(callables=(), verifier=plain))
    for switches, spent in ((CURRENT_SWITCHES, 1), (OLD, 4)):
        setting = Setting(switches=switches)
        assert evaluate(script, StaticEnvironment(), lambda: SUBJECT, setting) == Outcome(
            True, spent
        )
    with pytest.raises(EvaluationError, match="no verifier"):
        evaluate(
            make_script(6, dapp(callables=(), verifier=None)), StaticEnvironment(), lambda: SUBJECT
        )


def test_a_verifier_may_have_the_name_of_a_callable_function() -> None:
    content = dapp(callables=(func("same", "", 1),), verifier=func("same", "", True))
    script = make_script(6, content)
    for _ in range(2):
        assert invoke(script, StaticEnvironment(), Invocation("same", (), UNIT)).value == 1
        assert evaluate(script, StaticEnvironment(), lambda: SUBJECT).value is True


def _calling(after: Plain) -> Expression:
    nothing = ListConst(())
    called = call(1020, call("Address", ADDRESS), text("other"), nothing, nothing)
    return block(let("answer", called), after)


def test_calls_of_other_dapps_happen_once_even_when_the_run_is_repeated() -> None:
    seen: list[int] = []

    def answer(
        _dapp: bytes,
        function: str,
        arguments: tuple[Value, ...],
        payments: tuple[Payment, ...],
        available: int,
        reentrant: bool,
    ) -> tuple[Value, int]:
        assert (function, arguments, payments, reentrant) == ("other", (), (), False)
        seen.append(available)
        return 7, available - 100

    environment = StaticEnvironment(answer=answer)
    good = dapp(callables=(func("f", "", _calling(add("answer", 1))),), verifier=None)
    call_f = Invocation("f", (), INVOCATION)
    # The address 1, the call 75, what was called 100, the sum 1.
    assert invoke(make_script(6, good), environment, call_f, Setting(1000)) == Outcome(8, 177)
    assert seen == [1000 - 76]
    bad = dapp(callables=(func("f", "", _calling(call(2, text("no")))),), verifier=None)
    failing = block(equal(_calling("answer"), _calling("answer")))
    worse = dapp(callables=(func("f", "", add(failing, 1)),), verifier=None)
    for content, calls in ((bad, 0), (worse, 2)):
        seen.clear()
        with pytest.raises(EvaluationError) as failed:
            invoke(make_script(6, content), environment, call_f, Setting(1000))
        assert len(seen) == calls
        assert failed.value.spent == (1 if calls == 0 else 2 * 176 + 2)


def test_a_failed_call_of_another_dapp_ends_the_run() -> None:
    def answer(*arguments: object) -> tuple[Value, int]:
        seen.append(1)
        raise InvocationFailed("refused", 500)

    seen: list[int] = []
    content = dapp(callables=(func("f", "", _calling("answer")),), verifier=None)
    with pytest.raises(InvocationFailed, match="refused") as failed:
        invoke(
            make_script(5, content),
            StaticEnvironment(answer=answer),
            Invocation("f", (), INVOCATION),
            Setting(1000),
        )
    assert failed.value.spent == 500
    assert seen == [1]


# --- words and traces -----------------------------------------------------------------------------


def test_value_says_what_was_missing() -> None:
    environment = StaticEnvironment()
    address = call("Address", ADDRESS)
    with pytest.raises(EvaluationError, match="value by key 'k' not found for the address"):
        run(call("value", call(1050, address, text("k"))), environment=environment)
    with pytest.raises(EvaluationError, match="by reference 'a'"):
        run(block(let("a", "unit"), call("value", "a")))
    with pytest.raises(EvaluationError, match="extract"):
        run(call("extract", "unit"), version=3)


def test_a_trace_tells_values_calls_and_costs() -> None:
    trace = Trace()
    outcome = run(block(let("a", add(1, 2)), add("a", "a")), trace=trace, limit=50)
    assert outcome == Outcome(6, 2)
    assert trace.steps == [
        Step("+.@args", RideList((1, 2), 16)),
        Step("+.@complexity", 1),
        Step("@complexityLimit", 49),
        Step("a", 3),
        Step("+.@args", RideList((3, 3), 16)),
        Step("+.@complexity", 1),
        Step("@complexityLimit", 48),
    ]


def test_a_trace_tells_where_an_error_was() -> None:
    trace = Trace()
    with pytest.raises(RideError):
        run(block(let("a", call(2, text("no"))), let("b", "a"), "b"), trace=trace)
    assert trace.steps[-1] == Step("a", None, "no")
