"""What is wrong with a source is told with line, column and a way out; nothing else is raised."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soliton.ride.compiler import CompileError, compile_source
from tests.amounts import examples, times

HEAD = "{-# STDLIB_VERSION 6 #-}\n{-# CONTENT_TYPE %s #-}\n"

# source after the two lines of the head; line:column, a part of the problem, a part of the advice
TABLE = """
1 + "a" == 2                         | 3:1  | + does not take (Int, String)   | it takes
let a = 1; b == a                    | 3:12 | nothing is called 'b'           |
let amount = 1; amuont == 1          | 3:17 | nothing is called 'amuont'      | did you mean amount?
sise("a") == 1                       | 3:1  | no function sise(String)        | did you mean size?
"abc                                 | 3:1  | the text has no end             | close it with "
'abc' == "abc"                       | 3:1  | expected an expression, found   | double quotes
size('abc') == 3                     | 3:6  | found "'abc'                    | double quotes
"abc" == 'abc'                       | 3:10 | found "'abc'                    | double quotes
match 1 { case 'a' => true }         | 3:16 | found "'a'                      | double quotes
let a = "b"; a 'c'                   | 3:16 | found "'c'                      | double quotes
"\\q" == ""                          | 3:1  | unknown escape                  | known are
base58'0' == base58''                | 3:1  | this is no base 58              |
9223372036854775808 == 1             | 3:1  | does not fit into 64 bits       | BigInt
if true then false                   | 3:19 | expected else                   | if ... then ... else
if 1 then true else false            | 3:4  | a condition has to be Boolean   | compare
let size = 1; true                   | 3:1  | 'size' is already a function    | another name
let tx = 1; true                     | 3:1  | 'tx' is already a value         | another name
let if = 1; true                     | 3:5  | 'if' is a word of the language  | another name
let a = 1                            | 3:10 | the block has no result         | end it with
tx.fee + 1 == 1                      | 3:1  | has no field 'fee'              | use match first
match tx { case a: Order => true }   | 3:1  | the cases do not fit            | case _ => ...
match tx { case _: Odrer => true }   | 3:20 | no type 'Odrer'                 | did you mean Order?
match 1 { }                          | 3:1  | match without a case            | case _ => ...
func f(a: Int, a: Int) = a; true     | 3:1  | two parameters of the same name |
1 == 1 )                             | 3:8  | the expression has ended here   |
5                                    | 0:0  | gives Int, it has to give       | CONTENT_TYPE DAPP
[1].as[List[Int]] == unit            | 3:1  | a cast to List[Int]             | List[Any]
FOLD<0>([1], 0, f) == 1              | 3:1  | 1 to 1000 steps                 |
"""

DAPP_TABLE = """
@Callable(i) func f(a: Address) = [] | 3:21 | no transaction can carry        | Int, ByteVector
@Callable(i) func f(a: Int) = 5      | 3:14 | f gives Int                     | it has to give
@Callable() func f() = []            | 3:1  | binds one name                  | @Callable(i)
@Other(i) func f() = []              | 3:1  | no annotation @Other            | or @Verifier
@Verifier(tx) func f() = 1           | 3:15 | a verifier is Boolean           |
@Callable(i) func f() = [] let a = 1 | 3:28 | after a callable function       | before
@Callable(i) func f(i: Int) = []     | 3:21 | the annotation's parameter      | otherwise
true                                 | 3:1  | expected a declaration          |
"""


def rows(table: str) -> list[tuple[str, str, str, str]]:
    found = []
    for line in table.strip().split("\n"):
        source, place, problem, advice = (part.strip() for part in line.rsplit("|", 3))
        found.append((source, place, problem, advice))
    return found


def check(kind: str, source: str, place: str, problem: str, advice: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_source(HEAD % kind + source)
    error = caught.value
    assert f"{error.line}:{error.column}" == place, str(error)
    assert problem in error.problem, str(error)
    assert advice in error.advice, str(error)


@pytest.mark.parametrize(("source", "place", "problem", "advice"), rows(TABLE))
def test_expressions(source: str, place: str, problem: str, advice: str) -> None:
    check("EXPRESSION", source, place, problem, advice)


@pytest.mark.parametrize(("source", "place", "problem", "advice"), rows(DAPP_TABLE))
def test_dapps(source: str, place: str, problem: str, advice: str) -> None:
    check("DAPP", source, place, problem, advice)


N = times(20_000, 100_000)
DEEP = {
    "brackets": "(" * N + "true" + ")" * N,
    "braces": "{" * N + "true" + "}" * N,
    "not": "!" * N + "true",
    "calls": "size(" * N + '""' + ")" * N,
    "lists": "[" * N + "]" * N,
    "sum": "+".join(["1"] * N) + " == 1",
    "and": "&&".join(["true"] * N),
    "casts": "1" + ".as[Int]" * N,
    "fields": "tx" + ".a" * N,
    "indexes": "nil" + "[0]" * N,
    "else if": "if true then true else " * (N // 3) + "true",
    "match": "match 1 {case _=>" * (N // 2),
    "let": "let a = " * N,
    "types": "func f(a: " + "List[" * N,
    "tuple patterns": "match 1 {case " + "(" * N,
    "object patterns": "match 1 {case " + "A(b=" * N,
    "too long": " " * 1_000_001,
}


def outcome(source: str) -> str:
    try:
        compile_source(source)
    except CompileError:
        return "refused"
    return "compiled"


@pytest.mark.parametrize("name", DEEP)
def test_deep_nesting_is_an_error_like_others(name: str) -> None:
    assert outcome(HEAD % "EXPRESSION" + DEEP[name]) == "refused"
    assert outcome(HEAD % "DAPP" + "let q = " + DEEP[name]) in ("refused", "compiled")


UNIONS = ", ".join(["Int|String"] * 22)
BOMBS = {
    "a tuple of itself twice, again and again": "let a0 = (1, 2)\n"
    + "".join(f"let a{n + 1} = (a{n}, a{n})\n" for n in range(200))
    + "true",
    "a list of itself twice": 'let a0 = [1, "a"]\n'
    + "".join(f"let a{n + 1} = [a{n}, (a{n}, a{n})]\n" for n in range(60))
    + "true",
    "a tuple of unions in a match": f"func f(a: ({UNIONS})) = match a {{ case b: (Int, Int) => 1\n"
    "case _ => 2 }\ntrue",
    "a pattern of unions": f"func f(a: ({UNIONS})) = match a {{ case ("
    + ", ".join(f"x{n}: Int|String" for n in range(22))
    + ") => 1\ncase _ => 2 }\ntrue",
    "a tuple of unions that is compared": f"func f(a: ({UNIONS})) = 1\n"
    f"func g(a: ({UNIONS.replace('Int|String', 'String|Int', 1)}), b: (Int|Boolean)) = f((b, a))\n"
    "true",
}


@pytest.mark.parametrize("name", BOMBS)
def test_types_that_double_are_refused(name: str) -> None:
    with pytest.raises(CompileError):
        compile_source(HEAD % "EXPRESSION" + BOMBS[name])


WORDS = (
    "let func strict match case if then else true => = == + - :: :+ && ! ( ) [ ] { } , . ; | : _ @"
    " \" 1 a tx b.size Int List[Int] base58'1' FOLD<2>( .as[Int] \n"
)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(st.sampled_from(WORDS.split(" ")), max_size=40),
    st.sampled_from(("EXPRESSION", "DAPP", "LIBRARY")),
)
def test_any_words_compile_or_are_refused(words: list[str], kind: str) -> None:
    assert outcome(HEAD % kind + " ".join(words)) in ("refused", "compiled")


def test_places_beyond_imported_libraries_are_the_authors() -> None:
    library = "{-# CONTENT_TYPE LIBRARY #-}\nfunc two() = 2\nfunc three() = 3\n"
    source = "{-# STDLIB_VERSION 6 #-}\n{-# IMPORT a #-}\nlet x = 1\n\nx == y\n"
    with pytest.raises(CompileError) as caught:
        compile_source(source, libraries={"a": library})
    assert (caught.value.line, caught.value.column) == (5, 6)
    with pytest.raises(CompileError, match="in an imported library"):
        compile_source(source, libraries={"a": library + "func bad() = nobody"})
    with pytest.raises(CompileError, match="cannot find the imported a"):
        compile_source(source)


@pytest.mark.parametrize(
    "source",
    ["let a = # why\n-height; a == 1", "true && # why\n!true", "let a = # why\nstrict b = 1; b"],
)
def test_comments_that_hide_signs(source: str) -> None:
    check("EXPRESSION", source, "4:1", "a comment hides this", "put the comment")


@pytest.mark.parametrize(
    "source",
    [
        "# why\n-height < 0",
        "(# why\n-height) < 0",
        "max([# why\n-height, # why\n-1]) < 0",
        "let a = { # why\n -height }\na < 0",
        "let a = # why\n true # why\n# why\n !a",
        "let a = # why\n let b = 5\n b\na > 0",
    ],
)
def test_comments_that_hide_nothing(source: str) -> None:
    assert outcome(HEAD % "EXPRESSION" + source) == "compiled"


MIXED = 'let one = if (true) then true else "a"\nlet other = if (true) then "a" else true\n'


def test_unions_count_by_their_order_in_lists_alone() -> None:
    """As in the reference, whose sets of types look at more than comparisons do."""
    nested = f"{MIXED}let lists = [[one], [other]].getElement(0)\n"
    assert outcome(f"{HEAD % 'EXPRESSION'}{nested}lists == [one]") == "compiled"
    assert outcome(f"{HEAD % 'EXPRESSION'}{nested}lists.getElement(0) == one") == "refused"
    plain = f"{MIXED}let lists = if (true) then [one] else [other]\n"
    assert outcome(f"{HEAD % 'EXPRESSION'}{plain}lists.getElement(0) == one") == "compiled"
