"""Where a script refuses: function, line, expression, values, and who called.

Expected places are counted in the sources, as a person would; that numbers and texts belong
together is tried on scripts of the vectors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from soliton.ride.compiler import CompileError, compile_source
from soliton.ride.errors import EvaluationError, RideError
from soliton.ride.evaluator import Invocation, Outcome, Setting, evaluate, invoke
from soliton.ride.expressions import Block, Call, Func, LongConst, Ref, StringConst
from soliton.ride.faults import (
    DECOMPILED,
    KNOWN,
    NO_TEXT,
    FaultReport,
    SourceText,
    lines_of,
    read_members,
    report_here,
)
from soliton.ride.numbering import numbered
from soliton.ride.observation import DENIED, Observer
from soliton.ride.script import Script, make_script, parse_script
from soliton.ride.source_map import SourceMap, map_decompiled, map_known_source
from soliton.ride.values import UNIT
from soliton.workshop.no_chain import NoChain
from tests.amounts import some, times
from tests.ride.test_decompiler import DEEP, deep_scripts
from tests.vectors import load_vectors, report

SOURCE = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}
# prices of shares
let base = 100

func price (amount: Int, supply: Int) = {
  let scaled = (amount + 1) * base
  scaled / (supply - 5)
}

func check (ok: Boolean, words: String) = if (ok) then unit else throw(words)

@Callable(i)
func buy (amount: Int) = {
  strict positive = check(amount > 0, "nothing to buy")
  let paid = price(amount, 5)
  ([IntegerEntry("paid", paid)], paid)
}

@Callable(i)
func missing () = [IntegerEntry("n", getInteger(this, "n").value())]

@Callable(i)
func sum (n: Int) = {
  func add (a: Int, b: Int) = a / (b - n)
  [IntegerEntry("sum", FOLD<5>([1, 2, 3], 100, add))]
}

@Verifier(tx)
func verify () = {
  let late = height > 3
  late && (1 == 2 || sigVerify(base58'', base58'', base58''))
}
"""


class Chain(NoChain):
    """A chain with a height and empty accounts."""

    @property
    def height(self) -> int:
        return 10

    def this(self) -> bytes:  # type: ignore[override]  # the base takes any arguments
        return bytes(26)

    def data(self, address: bytes, key: str, /) -> None:  # type: ignore[override]  # as above
        return None


def fault_of(
    script: Script,
    run: Callable[[Script, Setting], Outcome],
    sources: dict[bytes, SourceText] | None = None,
) -> FaultReport:
    observer = Observer()
    try:
        outcome = run(script, Setting(observer=observer))
    except EvaluationError:
        pass
    else:
        assert outcome.value is False
    assert observer.fault is not None
    found = report_here(observer.fault, sources)
    assert found is not None
    assert read_members(found.members()) == found
    return found


def calling(name: str, *arguments: int) -> Callable[[Script, Setting], Outcome]:
    return lambda script, setting: invoke(
        script, Chain(), Invocation(name, arguments, UNIT), setting
    )


def asking(script: Script, setting: Setting) -> Outcome:
    return evaluate(script, Chain(), lambda: UNIT, setting)


def compiled(source: str, compact: bool = False) -> Script:
    return parse_script(compile_source(source, compact=compact).script.source)


@pytest.mark.parametrize("compact", [False, True])
def test_a_fault_names_line_expression_values_and_who_called(compact: bool) -> None:
    script = compiled(SOURCE, compact)
    found = fault_of(script, calling("buy", 7), {script.source: SourceText(SOURCE)})
    place = found.position
    assert found.message == "/ by zero"
    assert (place.function, place.line, place.column) == ("price", 9, 3)
    assert place.expression == "scaled / (supply - 5)" and place.source == KNOWN
    assert place.values == {"amount": "7", "supply": "5", "scaled": "800", "supply - 5": "0"}
    (call,) = found.calls
    assert (call.function, call.line, call.column) == ("buy", 17, 14)
    assert call.expression == "price(amount, 5)" and call.values == {"amount": "7"}


@pytest.mark.parametrize("compact", [False, True])
def test_without_the_source_it_is_the_decompiled_text(compact: bool) -> None:
    script = compiled(SOURCE, compact)
    found = fault_of(script, calling("buy", 7))
    place = found.position
    text = map_decompiled(script.source)
    assert text is not None and place.source == DECOMPILED
    line = text.text.splitlines()[place.line - 1]
    assert line[place.column - 1 :].startswith("scaled / (supply - 5)")
    assert place.function == "price" and place.values["scaled"] == "800"
    assert found.calls[0].function == "buy"


def test_words_of_a_throw_and_the_function_that_asked_for_it() -> None:
    script = compiled(SOURCE)
    found = fault_of(script, calling("buy", 0), {script.source: SourceText(SOURCE)})
    assert found.message == "nothing to buy"
    assert (found.position.function, found.position.line) == ("check", 12)
    assert found.position.expression == "throw(words)"
    assert found.position.values == {"ok": "false", "words": '"nothing to buy"'}
    assert [(call.function, call.line) for call in found.calls] == [("buy", 16)]


def test_a_fault_in_a_library_function_is_where_it_is_called() -> None:
    script = compiled(SOURCE)
    found = fault_of(script, calling("missing"), {script.source: SourceText(SOURCE)})
    assert (found.position.function, found.position.line) == ("missing", 22)
    assert found.position.expression == 'getInteger(this, "n").value()'


def test_loops_that_the_compiler_wrote_out_are_one_place() -> None:
    script = compiled(SOURCE)
    found = fault_of(script, calling("sum", 2), {script.source: SourceText(SOURCE)})
    assert (found.position.function, found.position.line) == ("add", 26)
    assert found.position.expression == "a / (b - n)"
    # The first step made 100 / (1 - 2) of it.
    assert found.position.values == {"a": "-100", "b": "2", "n": "2", "b - n": "0"}
    assert [(call.function, call.line) for call in found.calls] == [("sum", 27)]


def test_a_verifier_that_says_no_names_the_question_that_decided() -> None:
    script = compiled(SOURCE)
    found = fault_of(script, asking, {script.source: SourceText(SOURCE)})
    assert found.message == DENIED
    assert (found.position.function, found.position.line) == ("verify", 33)
    assert found.position.expression.startswith("sigVerify(")


@pytest.mark.parametrize(
    ("expression", "decided"),
    [
        ("height < 3", "height < 3"),
        ("let no = height < 3\nlet yes = height > 3\nyes && no", "height < 3"),
        ("let no = height < 3\nif (!no) then no else true", "no"),
        ("if (height > 3) then false else true", "height > 3"),
        ("match tx {\n case _: Order => true\n case _ => false }", "match tx"),
    ],
)
def test_questions_that_decide(expression: str, decided: str) -> None:
    source = "{-# STDLIB_VERSION 6 #-}\n{-# CONTENT_TYPE EXPRESSION #-}\n" + expression
    script = compiled(source)
    found = fault_of(script, asking, {script.source: SourceText(source)})
    assert found.position.expression.startswith(decided) or decided == "match tx"
    assert found.position.line >= 3


def test_places_in_an_imported_library_name_its_file() -> None:
    library = "{-# CONTENT_TYPE LIBRARY #-}\n\nfunc half (n: Int) =\n  1 / n\n"
    source = (
        "{-# STDLIB_VERSION 6 #-}\n{-# CONTENT_TYPE EXPRESSION #-}\n"
        "{-# IMPORT other.ride,lib.ride #-}\nhalf(0) ==\n  1"
    )
    texts = {"lib.ride": library, "other.ride": "{-# CONTENT_TYPE LIBRARY #-}\nlet one = 1\n"}
    script = parse_script(compile_source(source, libraries=texts).script.source)
    found = fault_of(script, asking, {script.source: SourceText(source, texts)})
    place = found.position
    assert (place.file, place.line, place.column) == ("lib.ride", 4, 3)
    assert place.function == "half" and place.values == {"n": "0"}
    assert (found.calls[0].file, found.calls[0].line) == ("", 4)
    assert "lib.ride:4:3 in half: 1 / n" in "\n".join(lines_of(found))
    wrong = texts | {"lib.ride": library + "let x = nowhere\n"}
    with pytest.raises(CompileError) as caught:
        compile_source(source, libraries=wrong)
    assert caught.value.library == ("lib.ride", 5, 9)


def test_a_source_of_another_script_is_not_taken_for_this_one() -> None:
    script = compiled(SOURCE)
    other = SourceText(SOURCE.replace("supply - 5", "supply - 4"))
    found = fault_of(script, calling("buy", 7), {script.source: other})
    assert found.position.source == DECOMPILED
    wrong = SourceText("this is no source")
    assert fault_of(script, calling("buy", 7), {script.source: wrong}).position.line > 0


def test_a_script_that_no_source_means_has_a_function_and_no_line() -> None:
    failing = Func("no name", ("why not",), Call(2, (Ref("why not"),)))
    called = Call("no name", (StringConst("no"),))
    script = make_script(6, Block(failing, called))
    found = fault_of(parse_script(script.source), asking)
    assert found.position.source == NO_TEXT and found.position.line == 0
    assert found.position.function == "no name" and found.position.values == {"why not": '"no"'}
    assert lines_of(found)[1].endswith(" in no name")


def test_what_is_not_observed_comes_to_the_same() -> None:
    script = compiled(SOURCE.replace("supply - 5", "supply - 4"))
    call = Invocation("buy", (7,), UNIT)
    plain = invoke(script, Chain(), call)
    assert invoke(script, Chain(), call, Setting(observer=Observer(record=True))) == plain


def test_numbers_and_texts_belong_together() -> None:
    """In scripts of the vectors: names and numbers stand where the maps of its source, and of its
    decompiled text, say that they do.
    """
    ran = 0
    right: Counter[str] = Counter()
    for vector in some(load_vectors("ride_compile")):
        try:
            script = compile_source(vector["source"], check_complexity=False).script
        except RideError:
            continue
        known, decompiled = (
            map_known_source(script, vector["source"]),
            map_decompiled(script.source),
        )
        assert known is not None, vector["source"]
        for text in (known, decompiled):
            if text is not None:
                ran += 1
                right += compare(script, text)
    report.ran("places in sources", ran)
    assert ran > times(200, 600)
    assert right.keys() == {"names", "numbers"}, right


def compare(script: Script, text: SourceMap) -> Counter[str]:
    found: Counter[str] = Counter()
    for number, node in enumerate(numbered(script.content).expressions):
        start, end = text.span(number)
        assert 0 <= start <= end <= len(text.text)
        excerpt = text.text[start:end]
        # What the compiler makes (folds, matches, tuples taken apart) stands where it is made for.
        if excerpt.startswith("strict"):
            continue
        if isinstance(node, Ref) and node.name not in ("nil", "unit") and node.name[0] not in "$@":
            found["names" if excerpt == node.name else "not names"] += 1
        elif isinstance(node, LongConst) and "FOLD" not in excerpt:
            fits = excerpt.replace("_", "").strip("() ") == str(node.value)
            found["numbers" if fits else "not numbers"] += 1
    return found


def test_trees_of_any_depth_have_no_map_and_do_no_harm() -> None:
    for script in deep_scripts(DEEP):
        assert len(numbered(script.content).expressions) > DEEP
        map_known_source(script, "true")
