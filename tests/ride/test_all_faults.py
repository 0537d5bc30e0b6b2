"""All faults of a source at once, and warnings.

What the reference's compiler takes has no fault; what it refuses has one at least, and what our
compiler stops at is among them.
"""

from __future__ import annotations

import pytest

from soliton.ride.compiler import CompileError, compile_source
from soliton.ride.compiler.all_faults import MAX_FAULTS, check_source
from soliton.ride.lint import MAX_WARNINGS, resolve, warnings
from tests.amounts import some, times
from tests.vectors import load_vectors, report

HEAD = "{-# STDLIB_VERSION 6 #-}\n{-# CONTENT_TYPE DAPP #-}\n"
WRONG = (
    HEAD
    + """let base = 100
let other = bas + 1
func price (amount: Int, supply: Int) = {
  let scaled = (amount + nope) * base
  scald / (supply - "a")
}
func broken (a: Int = a + 1

func fine () = broken(1) + other.x + base

@Callable(i)
func buy (amount: Foo, supply: Int) = {
  let p = price(supply, supply)
  ([IntegerEntry("p", p)], q)
}
@Callable(i)
func again (supply: Int) = 1
"""
)


def faults(source: str) -> list[tuple[int, int, str]]:
    return [(each.line, each.column, each.problem) for each in check_source(source).faults]


def test_all_faults_each_once() -> None:
    assert [(line, column) for line, column, _ in faults(WRONG)] == [
        (4, 13), (6, 26), (7, 3), (7, 12), (9, 21), (11, 28), (14, 11), (14, 19), (19, 1),
    ]  # fmt: skip
    advice = {each.line: each.advice for each in check_source(WRONG).faults}
    assert advice[4] == "did you mean base?"


def test_what_a_faulty_part_is_used_for_is_no_further_fault() -> None:
    source = HEAD + (
        "let a = nowhere\nlet b = a.field + a.size() + nothing(a)\n"
        "func f (n: Int) = match a { case n: Int => n case _ => 1 }\n"
        "let c = [a, 1] :+ f(a)\nlet d = if (a) then a else -a\nlet e = f\n"
    )
    assert [(line, column) for line, column, _ in faults(source)] == [(3, 9), (4, 30), (8, 9)]


def test_what_the_reference_takes_has_no_fault_and_what_it_refuses_has_one() -> None:
    taken = refused = 0
    for vector in some(load_vectors("ride_compile")):
        try:
            compile_source(vector["source"], check_complexity=False)
        except CompileError:
            continue
        assert check_source(vector["source"]).faults == [], vector["source"]
        taken += 1
    for vector in load_vectors("ride_compile_errors"):
        try:
            compile_source(vector["source"], check_complexity=False)
        except CompileError as stopped:
            words, is_placed = str(stopped), stopped.line > 0
        else:
            continue
        if is_placed:
            found = [str(each) for each in check_source(vector["source"]).faults]
            assert words in found, vector["source"]
        refused += 1
    report.ran("sources without a fault", taken)
    report.ran("sources with faults", refused)
    assert taken > times(120, 600) and refused > 100


@pytest.mark.parametrize(
    "source",
    [
        "",
        "\x00",
        "{-# STDLIB_VERSION 99 #-}",
        HEAD + "func f(" * 200,
        HEAD + "@Callable(i)\n" * 100,
        HEAD + "let a = (((((((((((",
        "(" * 5_000,
        HEAD + 'let a = "',
        HEAD + "{-# IMPORT nowhere.ride #-}\n",
        "{-# CONTENT_TYPE LIBRARY #-}\nlet a = b\n",
        HEAD + "let é = 1\nlet 😀 = 2",
    ],
)
def test_texts_of_any_kind_have_faults_and_raise_nothing(source: str) -> None:
    assert check_source(source).faults
    assert isinstance(warnings(check_source(source)), list)


def test_faults_are_bounded_in_number() -> None:
    lines = [f"let a{number} = nowhere{number}" for number in range(3_000)]
    assert len(check_source(HEAD + "\n".join(lines)).faults) == MAX_FAULTS
    broken = [f"let a{number} = (" for number in range(3_000)]
    assert 0 < len(check_source(HEAD + "\n".join(broken)).faults) <= MAX_FAULTS


# --- warnings -------------------------------------------------------------------------------------


def found_in(body: str, libraries: dict[str, str] | None = None) -> list[tuple[str, str]]:
    source = HEAD + body
    checked = check_source(source, libraries)
    assert checked.faults == [], checked.faults
    compiled = compile_source(source, libraries=libraries, check_complexity=True)
    text = checked.source.text
    found = warnings(checked, compiled)
    return [(each.kind, text[each.start :].split()[0].rstrip(",):")) for each in found]


FOLDED = """func add (a: Int, b: Int) = a + b
@Callable(i)
func f () = [IntegerEntry("a", FOLD<3>([1], 0, add))]
"""
MATCHED = """@Callable(i)
func f () = match getInteger(this, "a") {
  case n: Int => []
  case _ => []
}
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("let a = 1\n@Callable(i)\nfunc f () = [IntegerEntry(\"a\", a)]", []),
        ("let a = 1\n@Callable(i)\nfunc f () = []", [("unused", "a")]),
        ("func g (n: Int) = 1\n@Callable(i)\nfunc f () = [IntegerEntry(\"a\", g(1))]",
         [("unused", "n")]),
        ("@Callable(i)\nfunc f (n: Int) = {\n let a = n\n []\n}", [("unused", "a")]),
        ("let a = 1\nfunc g (a: Int) = a\n@Callable(i)\nfunc f () = [IntegerEntry(\"\", a + g(1))]",
         [("shadowed", "a")]),
        ("func g (height: Int) = height\n@Callable(i)\nfunc f () = [IntegerEntry(\"a\", g(1))]",
         [("shadowed", "height")]),
        ("@Callable(i)\nfunc f () = if (1 == 1) then [] else []", [("always", "1")]),
        ("@Callable(i)\nfunc f (n: Int) = if (n != n) then [] else []", [("always", "n")]),
        ("@Callable(i)\nfunc f (n: Int) = if (n > 1 && !false) then [] else []", []),
        ("@Callable(i)\nfunc f (n: Int) = if (true) then [] else [IntegerEntry(\"a\", n)]",
         [("always", "true")]),
        ("@Callable(i)\nfunc f (n: Int) = {\n strict a = n\n []\n}", []),
        (FOLDED, []),
        (MATCHED, [("unused", "n")]),
        ("let (a, b) = (1, 2)\n@Callable(i)\nfunc f () = [IntegerEntry(\"a\", a)]",
         [("unused", "b")]),
    ],
)  # fmt: skip
def test_warnings(body: str, expected: list[tuple[str, str]]) -> None:
    assert found_in(body) == expected


def test_what_is_imported_is_not_warned_of() -> None:
    library = "{-# CONTENT_TYPE LIBRARY #-}\nfunc one () = 1\nfunc two () = 2\n"
    body = '{-# IMPORT l.ride #-}\n@Callable(i)\nfunc f () = [IntegerEntry("a", one())]'
    assert found_in(body, {"l.ride": library}) == []
    assert warnings(check_source(library)) == []


def test_what_is_complex() -> None:
    checks = " && ".join(["sigVerify(tx.bodyBytes, tx.proofs[0], tx.senderPublicKey)"] * 2)
    assert found_in(f"@Verifier(tx)\nfunc verify () = {checks}") == [("complexity", "func")]
    hashes = " + ".join(["sha256(base58'').size()"] * 140)
    lines = [f"func g{number} () = {hashes}" for number in range(2)]
    body = "\n".join([*lines, '@Callable(i)\nfunc f () = [IntegerEntry("a", g0() + g1())]'])
    assert found_in(body) == [("complexity", "func")]


def test_names_are_resolved_where_they_stand() -> None:
    source = HEAD + (
        "let a = 1\nfunc g (a: Int) = a\n"
        '@Callable(i)\nfunc f () = [IntegerEntry("x", a.g() + g(2))]\n'
    )
    checked = check_source(source)
    names = resolve(checked)
    parameter = names.at(source.index("= a\n") + 2)
    outer = names.at(source.index("a.g()"))
    function = names.at(source.index(".g()") + 1)
    assert parameter is not None and parameter.kind == "parameter"
    assert outer is not None and outer.start == source.index("a = 1")
    assert function is not None and function.kind == "function"
    assert function.uses and all(source[start:end] == "g" for start, end in function.uses)


def test_long_chains_and_many_names_are_walked() -> None:
    """A chain of operators as long as a source may be, and as many names."""
    source = HEAD + "let a = " + " + ".join(["1"] * 20_000)
    assert len(warnings(check_source(source))) == 1
    many = HEAD + "\n".join(f"let a{number} = {number}" for number in range(5_000))
    assert len(warnings(check_source(many))) == MAX_WARNINGS
