"""Scripts as sources: what comes out compiles to the same script."""

from __future__ import annotations

import base64
import re
from collections import Counter

import pytest

from soliton.ride.compiler import CompileError, compile_source
from soliton.ride.decompiler import (
    MAX_TEXT_CHARS,
    NOT_A_SOURCE,
    NOT_COMPILED,
    OTHER_SCRIPT,
    DecompileError,
    decompile,
)
from soliton.ride.errors import RideError
from soliton.ride.expressions import (
    TRUE,
    Block,
    Call,
    DApp,
    Expression,
    Func,
    GetField,
    If,
    Let,
    ListConst,
    LongConst,
    Ref,
)
from soliton.ride.meta import read_meta
from soliton.ride.script import Script, make_script, parse_script
from tests.amounts import only_long, times
from tests.vectors import load_vectors, report

HEAD = "{-# STDLIB_VERSION 6 #-}\n{-# CONTENT_TYPE %s #-}\n{-# SCRIPT_TYPE ACCOUNT #-}\n"

DEEP = times(12_000, 20_000)
"""Deeper than any recursion may go."""

SAME = "same"
HIDDEN_NAMES = "same but for the names of hidden variables, which contain offsets"


def again(script: Script) -> str:
    """What comes of decompiling and compiling."""
    text = decompile(script)
    if NOT_A_SOURCE in text:
        return "no source has such code: the nearest text came out"
    compact = isinstance(script.content, DApp) and bool(
        read_meta(script.content.meta).original_names
    )
    try:
        result = compile_source(text, compact=compact, check_complexity=False).script
    except CompileError:
        return "the compiler refuses the source: types that are not known, or code it never makes"
    if result.source == script.source:
        return SAME
    if without_offsets(result.source) == without_offsets(script.source):
        return HIDDEN_NAMES
    return "written by another compiler, whose form differs"


def without_offsets(source: bytes) -> bytes:
    return re.sub(rb".\$t0[0-9]+", b"$t0", source[:-4], flags=re.DOTALL)


def vector_scripts() -> list[Script]:
    forms = ("script", "compact", "no_unused", "compact_no_unused")
    texts = {
        vector[form]: None
        for vector in load_vectors("ride_compile")
        for form in forms
        if vector.get(form)
    }
    for name in ("ride_estimate", "ride_parse"):
        texts.update(dict.fromkeys(vector["script"] for vector in load_vectors(name)))
    scripts = []
    for text in texts:
        try:
            scripts.append(parse_script(base64.b64decode(text)))
        except RideError:
            continue
    return scripts


@only_long
def test_scripts_of_all_vectors_round_trip() -> None:
    outcomes = Counter(again(script) for script in vector_scripts())
    round_trips = outcomes.pop(SAME) + outcomes.pop(HIDDEN_NAMES)
    report.ran("decompiled and compiled again", round_trips)
    for reason, count in outcomes.items():
        report.skipped("decompiled and compiled again", count, reason)
    assert round_trips > 12 * outcomes.total()


EXPRESSIONS = """
true
1 + 2 * 3 - (4 - 5) == -6
!(true && false) || 1 >= 2 && 3 < 4
let a = "\\"\\\\ \\n \\u0041"; a == "x"
let (a, b) = (1, "x"); a == b.size()
[1, 2, 3][0] == 1 && 1 :: nil == [1]
func f(a: Int, b: String) = a + b.size(); f(1, "x") == 2
func f(a: Int, b: Int) = a + b; FOLD<3>([1, 2, 3], 0, f) == 6
match tx { case t: TransferTransaction | BurnTransaction => true case _ => false }
match tx { case t: Order => t.price > 0 case t => t.fee > 0 }
match 5 { case 1 | 2 => true case x => x == 5 }
match (1, "a") { case (x: Int, "a") => x == 1 case (_, y: String) => y == "" case _ => false }
match tx { case Order(price = p, sender = Address(bytes = b)) => p == b.size() case _ => false }
strict a = 1; a == 1
height.as[Int] == 5 && value(getString(this, "x")).exactAs[String] == "x"
if (true) then if (height > 1) then true else false else let x = 5; x == 5
sigVerify(tx.bodyBytes, tx.proofs[0], base58'') && base64'AQID' != base16'ff'
-(height) == 5 && toBigInt(-9223372036854775808) == toBigInt(0)
"""


@pytest.mark.parametrize("source", EXPRESSIONS.strip().split("\n"))
def test_round_trip(source: str) -> None:
    script = compile_source(HEAD % "EXPRESSION" + source).script
    assert again(script) in (SAME, HIDDEN_NAMES)


def test_the_text_of_a_dapp() -> None:
    source = (
        HEAD % "DAPP"
        + """
let limit = 5

func fits (amount: Int) = (limit > amount)

@Callable(i)
func pay (amount: Int) = if (fits(amount))
  then [ScriptTransfer(i.caller, amount, unit)]
  else throw("too much")

@Verifier(tx)
func verify () = sigVerify(tx.bodyBytes, getElement(tx.proofs, 0), tx.senderPublicKey)
"""
    )
    for compact in (False, True):
        script = compile_source(source, compact=compact).script
        assert decompile(script).replace("tx.proofs[0]", "getElement(tx.proofs, 0)") == source


@pytest.mark.parametrize(
    ("expression", "reason", "text"),
    [
        (Call(9999, (TRUE,)), "no function 9999", "Native<9999>(true)"),
        (Ref("no name"), "no source can name 'no name'", "no name"),
        (Ref("if"), "no source can name 'if'", "if"),
        (ListConst((LongConst(1),)), "a list or object as a constant", "[1]"),
        (Call(1, (Ref("tx"), TRUE)), "no source calls", "_isInstanceOf(tx, true)"),
        (Block(Let("@", LongConst(1)), Ref("@")), "a cast", "{\n  let @ = 1\n  @\n}"),
        (Block(Let("$l", Ref("nil")), Ref("$l")), "a fold", "{\n  let $l = nil\n  $l\n}"),
        (Block(Let("$match0", TRUE), Call(9999, ())), "", "Native<9999>()"),
        (Block(Let("$t012", Ref("nil")), Ref("$t012"), True), "tuple", "let $t012 = nil\n$t012"),
    ],
)
def test_code_that_no_source_has_comes_as_the_nearest_text(
    expression: Expression, reason: str, text: str
) -> None:
    found = decompile(make_script(6, expression))
    head, shown = found.split("\n\n", 1)
    mark = head.splitlines()[3]
    assert mark.startswith(f"# {NOT_A_SOURCE}: ") and reason in mark
    assert text in shown
    with pytest.raises(CompileError):
        compile_source(found)


def test_a_declaration_of_a_dapp_that_no_source_has() -> None:
    whole = DApp(b"", (Let("$t01", TRUE), Func("f", (), Call(9999, ()))), ())
    found = decompile(make_script(6, whole))
    assert NOT_A_SOURCE in found
    assert found.endswith("let $t01 = true\n\nfunc f () = Native<9999>()\n")


def test_trees_of_any_depth_end_in_text_or_in_an_error() -> None:
    for script in deep_scripts(DEEP):
        outcome = again_or_refused(script)
        assert outcome in ("text", "refused")


def again_or_refused(script: Script) -> str:
    try:
        return "text" if decompile(script) else "nothing"
    except DecompileError:
        return "refused"


def deep_scripts(depth: int) -> list[Script]:
    start: Expression = Ref("height")
    call = field = choice = block = nested = start
    for _ in range(depth):
        call = Call(305, (call,))
        field = GetField(field, "a")
        choice = If(choice, Ref("height"), Ref("height"))
        block = Block(Let("x", block), Ref("x"), True)
        nested = Block(Func("f", ("a",), nested), Ref("a"))
    trees = (call, field, choice, block, nested)
    return [Script(6, tree, b"") for tree in trees]


def test_the_limit_is_for_the_whole_text() -> None:
    nested: Expression = Ref("a")
    for _ in range(300):
        nested = If(Ref("a"), nested, Ref("b"))
    values = tuple(Let(f"x{number}", nested) for number in range(15))
    library: Expression = Ref("unit")
    for value in values:
        library = Block(value, library)
    assert len(decompile(Script(6, DApp(b"", values[:1], ()), b""))) > MAX_TEXT_CHARS // 15
    for content in (DApp(b"", values, ()), library):
        with pytest.raises(DecompileError, match="more than 2000000 characters"):
            decompile(Script(6, content, b""))


# --- what is said of the text ---

NAMES = """
func _a() = 1
func _b(_c: Int) = _c + _a()
@Callable(i)
func f() = [IntegerEntry("a", _b(2))]
"""
FOLDED = """
func numbers(all: List[String]) = {
  func add(acc: (List[IntegerEntry], List[String], Int), each: String) =
    if (each == "") then (acc._1, acc._2 :+ each, acc._3)
    else (acc._1 :+ IntegerEntry(each, 1), acc._2, acc._3 + 1)
  FOLD<10>(all, (nil, nil, 0), add)
}
@Callable(i)
func f(all: List[String]) = numbers(all)._1
"""
LATER_ARGUMENTS = """
func kept(pair: (BigInt, Int)) = toString(pair._1) + toString(pair._2)
func change(pair: (BigInt, Int)) = (pair._1 + toBigInt(1), pair._2)
@Callable(i)
func f() = [StringEntry("a", kept(change(change((toBigInt(1), 2)))))]
"""


CALLS_FROM_TUPLES = """
func all(calls: List[(String, String, List[Any])]) = {
  func call(done: List[Any], each: (String, String, List[Any])) =
    done :+ invoke(Address(fromBase58String(each._1)), each._2, each._3, [])
  FOLD<5>(calls, [], call)
}
@Callable(i)
func f() = []
"""
GATHERED_UNIONS = """
func root(x: BigInt) = {
  func step(acc: (BigInt, BigInt|Unit, Int|Unit), n: Int) = {
    let (d, before, found) = acc
    if (found != unit) then acc else {
      let next = d / toBigInt(2)
      if (next - value(d) == x) then (next, d, n) else (next, d, unit)
    }
  }
  let (d, before, found) = FOLD<3>([1, 2, 3], (x, unit, unit), step)
  if (found != unit) then toString(d) else toString(d - value(before))
}
@Callable(i)
func f() = [StringEntry("a", root(toBigInt(5)))]
"""


@pytest.mark.parametrize(
    "source", [NAMES, FOLDED, LATER_ARGUMENTS, CALLS_FROM_TUPLES, GATHERED_UNIONS]
)
def test_a_source_of_ours_comes_back_without_a_comment(source: str) -> None:
    script = compile_source(HEAD % "DAPP" + source).script
    text = decompile(script)
    assert "#" not in text.replace("#-}", "").replace("{-#", "")
    again = compile_source(text).script
    assert without_offsets(again.source) == without_offsets(script.source)


def test_offsets_in_the_names_of_metadata_may_have_other_lengths() -> None:
    source = HEAD % "DAPP" + "#" * 20_000 + "\n"
    source += "func g(x: (Int, Int)) = {\n  let (a, b) = x\n  a + b\n}\n"
    source += '@Callable(i)\nfunc f() = [IntegerEntry("a", g((1, 2)))]\n'
    text = decompile(compile_source(source, compact=True).script)
    assert OTHER_SCRIPT not in text


def test_a_text_that_compiles_to_another_script_says_so() -> None:
    # Compilers write a declaration of a value in the older form.
    let = Block(Let("a", LongConst(1)), Call(0, (Ref("a"), LongConst(1))), False)
    text = decompile(make_script(6, let))
    assert f"# {OTHER_SCRIPT}\n" in text


def test_a_text_that_the_compiler_refuses_says_why() -> None:
    twice = Block(
        Let("a", LongConst(1)), Block(Let("a", LongConst(2)), Call(0, (Ref("a"), LongConst(1))))
    )
    text = decompile(make_script(6, twice))
    assert f"# {NOT_COMPILED}: " in text
    with pytest.raises(CompileError):
        compile_source(text)
