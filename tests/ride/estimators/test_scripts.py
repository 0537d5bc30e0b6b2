"""Which expressions of a script are estimated; depth, length and work without end."""

from __future__ import annotations

import pytest

from soliton.ride.errors import RideError
from soliton.ride.estimators import (
    CodeKind,
    EstimationError,
    EstimationTooLong,
    estimator,
    machine,
    second,
    third,
)
from soliton.ride.estimators.scripts import estimate_fully, expression_cost
from soliton.ride.expressions import (
    TRUE,
    AnnotatedFunction,
    Block,
    Call,
    DApp,
    Declaration,
    Expression,
    Func,
    GetField,
    If,
    Let,
    ListConst,
    Ref,
)
from soliton.ride.script import Script
from tests.ride.estimators import estimate

INVOKE = 1020
PLUS = 100


def _dapp(
    *declarations: Declaration,
    callables: tuple[Func, ...] = (),
    verifier: Expression | None = None,
    version: int = 6,
) -> Script:
    check = None if verifier is None else AnnotatedFunction("tx", Func("verify", (), verifier))
    dapp = DApp(b"", declarations, tuple(AnnotatedFunction("i", each) for each in callables), check)
    return Script(version, dapp, b"")


def _script(expression: Expression, version: int = 6) -> Script:
    return Script(version, expression, b"")


def _plus(left: Expression, right: Expression) -> Call:
    return Call(PLUS, (left, right))


def _after(declarations: list[Declaration], expression: Expression) -> Expression:
    for declaration in reversed(declarations):
        expression = Block(declaration, expression)
    return expression


def test_numbers_of_a_dapp() -> None:
    script = _dapp(
        Let("three", _plus(TRUE, _plus(TRUE, _plus(TRUE, TRUE)))),
        Func("twice", ("x",), _plus(Ref("x"), Ref("three"))),
        callables=(Func("a", (), Call("twice", (TRUE,))), Func("b", ("p", "q"), Ref("p"))),
        verifier=_plus(Ref("three"), TRUE),
    )
    result = estimate(script, 4, let_fixes=True)
    assert (result.max, result.verifier) == (4, 4)
    assert result.callables == {"a": 4, "b": 1}
    assert result.costliest == "a"


def test_an_empty_dapp_costs_nothing() -> None:
    result = estimate(_dapp(Let("x", Call("unknown", ()))), 4)
    assert (result.max, result.verifier, result.callables, result.costliest) == (0, 0, {}, "")


@pytest.mark.parametrize("version", [1, 2, 4])
def test_parts_of_a_dapp(version: int) -> None:
    script = _dapp(
        Let("two", _plus(TRUE, _plus(TRUE, TRUE))),
        Let("three", _plus(Ref("two"), TRUE)),
        Func("twice", ("x",), _plus(Ref("x"), Ref("three"))),
        callables=(Func("call", (), Call("twice", (TRUE,))),),
        verifier=_plus(Ref("three"), TRUE),
    )
    assert isinstance(script.content, DApp)
    full = estimate_fully(estimator(version), 6, script.content)
    if version == 4:
        assert full.values == {"two": 2, "three": 3}
        assert full.functions == {"twice": 4}
        assert full.annotated == {"call": 4, "verify": 4}
    else:
        numbers = estimate(script, version)
        assert full.annotated == {**numbers.callables, "verify": numbers.verifier}
        # Three blocks of 5, and the value with its 3 constants and 2 sums after a name.
        assert full.values["two"] == 3 * 5 + 2 + 5


def test_arguments_hide_values_since_the_fixes() -> None:
    """``let p = <10>; func f(p) = p; f(true)``."""
    expression = _after(
        [Let("p", Call("@extrNative(1055)", (TRUE,))), Func("f", ("p",), Ref("p"))],
        Call("f", (TRUE,)),
    )
    assert estimate(_script(expression), 4).max == 11
    assert estimate(_script(expression), 4, let_fixes=True).max == 1


def test_a_call_costs_nothing_if_its_values_do() -> None:
    """``let p = <10>; func f() = p; f()``."""
    expression = _after(
        [Let("p", Call("@extrNative(1055)", (TRUE,))), Func("f", (), Ref("p"))], Call("f", ())
    )
    assert estimate(_script(expression), 4).max == 11
    assert estimate(_script(expression), 4, let_fixes=True).max == 10


def test_functions_must_have_names_of_their_own_since_the_fix() -> None:
    expression = _after([Func("f", (), TRUE), Func("f", (), TRUE)], Call("f", ()))
    assert estimate(_script(expression), 4, fix_overflow=False).max == 1
    with pytest.raises(EstimationError, match=r"Function 'f\(\)' shadows preceding declaration"):
        estimate(_script(expression), 4)
    with pytest.raises(EstimationError, match="shadows"):
        estimate(_script(Block(Func("Address", ("x", "y"), TRUE), TRUE)), 4)


def _doubling(count: int) -> Expression:
    declarations: list[Declaration] = [Func("f0", (), _plus(TRUE, TRUE))]
    for place in range(count):
        call = Call(f"f{place}", ())
        declarations.append(Func(f"f{place + 1}", (), _plus(call, call)))
    return _after(declarations, Call(f"f{count}", ()))


def test_sums_beyond_64_bits() -> None:
    script = _script(_doubling(63))
    with pytest.raises(EstimationError, match="Illegal script"):
        estimate(script, 4)
    assert estimate(script, 4, fix_overflow=False).max == -1
    assert estimate(_script(_doubling(62)), 4).max == 2**63 - 1
    assert estimate(_script(_doubling(61)), 1).max < 0


def test_the_second_estimator_gives_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second, "MAX_STEPS_BEFORE", 100_000)
    assert estimate(_script(_doubling(10), 3), 2).max == 2**12 - 1 + 5 * 11
    with pytest.raises(EstimationTooLong, match="takes more than 100000 steps"):
        estimate(_script(_doubling(60), 3), 2)


def test_functions_that_call_themselves_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second function of one name calls what it believes to be the first."""
    monkeypatch.setattr(machine, "MAX_DEPTH", 10_000)
    expression = _after([Func("f", (), TRUE), Func("f", (), Call("f", ()))], Call("f", ()))
    with pytest.raises(EstimationTooLong, match="is over 10000 deep"):
        estimate(_script(expression, 3), 2)
    assert estimate(_script(expression, 3), 1).max == 11


def test_values_that_mention_themselves_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """``let x = true; func g() = x; let x = g(); g()``: the worth of ``g`` is that of ``x``."""
    monkeypatch.setattr(machine, "MAX_DEPTH", 10_000)
    expression = _after(
        [Let("x", TRUE), Func("g", (), Ref("x")), Let("x", Call("g", ()))], Call("g", ())
    )
    with pytest.raises(EstimationTooLong):
        estimate(_script(expression), 4, let_fixes=True)
    assert estimate(_script(expression), 4).max == 2


def test_work_on_many_functions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(third, "MAX_STEPS", 1_000)
    lets = [Let(f"x{place}", TRUE) for place in range(100)]
    functions = tuple(Func(f"f{place}", (), TRUE) for place in range(20))
    with pytest.raises(EstimationTooLong):
        estimate(_dapp(*lets, callables=functions), 4)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["field", "call", "choice", "let", "value", "function"])
def test_depth_is_no_problem(version: int, kind: str) -> None:
    depth = 30_000
    tree: Expression = TRUE
    for place in range(depth):
        match kind:
            case "field":
                tree = GetField(tree, "x")
            case "call":
                tree = Call(PLUS, (tree, TRUE))
            case "choice":
                tree = If(TRUE, TRUE, tree)
            case "let":
                tree = Block(Let("x", Ref("x")), tree)
            case "value":
                tree = Block(Let("x", tree), Ref("x"))
            case _:
                tree = Block(Func(f"f{place}", (), tree), TRUE)
    assert estimate(_script(tree), version).max >= 0


@pytest.mark.parametrize("version", [1, 2])
def test_unknown_names(version: int) -> None:
    with pytest.raises(EstimationError, match="x"):
        estimate(_script(Ref("x")), version)
    with pytest.raises(EstimationError, match=r"User\(f\)"):
        estimate(_script(Call("f", ())), version)
    with pytest.raises(EstimationError, match=r"Native\(9999\)"):
        estimate(_script(Call(9999, ())), version)
    assert estimate(_script(Ref("tx")), version).max > 0
    with pytest.raises(EstimationError, match="tx"):
        estimate(_dapp(callables=(Func("f", (), Ref("tx")),)), version)


def test_the_third_estimator_does_not_know_names_of_values() -> None:
    assert estimate(_script(Ref("anything")), 4).max == 0
    with pytest.raises(EstimationError, match=r"function 'User\(f\)' not found"):
        estimate(_script(Call("f", ())), 4)


def test_lists_are_too_new_for_the_first_estimator() -> None:
    with pytest.raises(EstimationError):
        estimate(_script(ListConst((TRUE,)), 3), 1)
    assert estimate(_script(ListConst((TRUE,)), 3), 2).max == 1


def test_there_are_four() -> None:
    with pytest.raises(RideError, match="no estimator 5"):
        estimate(_script(TRUE), 5)


CALL = Call(INVOKE, (Ref("this"), TRUE, TRUE, TRUE))


@pytest.mark.parametrize(
    "script",
    [
        _dapp(verifier=CALL),
        _dapp(Let("x", CALL), verifier=Ref("x")),
        _dapp(Func("f", (), CALL), Let("x", Call("f", ())), verifier=If(Ref("x"), TRUE, TRUE)),
        _dapp(Let("x", CALL), verifier=Block(Let("x", GetField(Ref("x"), "y")), Ref("x"))),
    ],
)
def test_verifiers_must_not_call_dapps(script: Script) -> None:
    with pytest.raises(EstimationError, match="not allowed from verifier"):
        estimate(script, 4)


def test_what_a_verifier_hides_or_leaves_alone_may_call_dapps() -> None:
    hidden = _dapp(Let("x", CALL), verifier=Block(Let("x", TRUE), Ref("x")))
    assert estimate(hidden, 4).verifier == 1
    function = _dapp(Func("f", (), CALL), verifier=TRUE, version=5)
    value = _dapp(Let("x", CALL), verifier=TRUE, version=5)
    assert estimate(function, 4).verifier == 1
    # Before version 6 of the language such a function had no place before a verifier at all.
    with pytest.raises(EstimationError, match="not allowed from verifier"):
        estimate(function, 4, old_verifier=True)
    assert estimate(value, 4, old_verifier=True).verifier == 1


def test_functions_of_dapps_and_of_accounts() -> None:
    own_data = Call(1055, (TRUE,))
    latest = estimator(4)
    for place, call, known in (
        (CodeKind.EXPRESSION, CALL, False),
        (CodeKind.FREE_CALL, CALL, True),
        (CodeKind.DAPP, CALL, True),
        (CodeKind.ANY, CALL, True),
        (CodeKind.EXPRESSION, own_data, True),
        (CodeKind.FREE_CALL, own_data, False),
        (CodeKind.DAPP, own_data, True),
    ):
        if known:
            assert expression_cost(latest, 6, call, place) > 0
        else:
            with pytest.raises(EstimationError, match="not found"):
                expression_cost(latest, 6, call, place)


def test_calls_without_a_script_have_no_verifier() -> None:
    result = estimate(_script(_plus(TRUE, TRUE)), 4, kind=CodeKind.FREE_CALL)
    assert (result.max, result.verifier) == (1, 0)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("Unit", range(1, 9)),
        ("Ceiling", range(1, 4)),
        ("Sha1", range(3, 4)),
        ("TransferTransaction", range(1, 6)),
        ("InvokeExpressionTransaction", ()),
        ("Issue", ()),
        ("Lease", range(5, 9)),
        ("DataEntry", range(1, 4)),
        ("StringEntry", range(4, 9)),
        ("Buy", ()),
    ],
)
def test_constructors_that_scripts_can_name(name: str, known: range | tuple[int, ...]) -> None:
    for version in range(1, 9):
        expression = Call(name, ())
        if version in known:
            assert expression_cost(estimator(3), version, expression, CodeKind.EXPRESSION) >= 0
        else:
            with pytest.raises(EstimationError, match="not found"):
                expression_cost(estimator(3), version, expression, CodeKind.EXPRESSION)
