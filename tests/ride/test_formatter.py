"""The layout of sources: what it looks like, that it stays, that scripts do not change by it."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soliton.ride.compiler import CompileError, compile_source
from soliton.ride.formatter import format_source
from tests.amounts import some, times
from tests.growth import MAX_GROWTH, growth
from tests.ride.differential.programs import programs
from tests.vectors import load_vectors, report

UNTIDY = """{-#   STDLIB_VERSION 6   #-}
{-#CONTENT_TYPE DAPP#-}

# head
let a=1   #  trailing \t
let b  = a+ 1 *(2 -3)-  -1



let c= if(a>b)then a else if (b > 2) then b
else
b
func f ( x:Int,y : List[Int|String] )={
let z=x+
y.size()
 # about w
let w =if z>1
then {
 1
}
else
 {2}
match x{
 case  t:Int=>t
  + 1
 case _ =>
let q=  1
q
# end
}
}
let (d,e)=(1, [ 1,2 , 3])
@Callable( i )
func call(n:Int)= [
IntegerEntry("a # no comment",  n),StringEntry(
"b","c
  d"
),
 ScriptTransfer(i.caller,
   n
   + 1, unit) # last
]
@Verifier (tx)
func v()=!sigVerify(tx.bodyBytes,tx . proofs[0],tx.senderPublicKey)
 && !  true"""
TIDY = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}

# head
let a = 1 #  trailing
let b = a + 1 * (2 - 3) - -1

let c = if (a > b) then a else if (b > 2) then b
else
  b
func f(x: Int, y: List[Int|String]) = {
  let z = x +
    y.size()
  # about w
  let w = if z > 1
    then {
      1
    }
    else
      { 2 }
  match x {
    case t: Int => t
      + 1
    case _ =>
      let q = 1
      q
      # end
  }
}
let (d, e) = (1, [1, 2, 3])
@Callable(i)
func call(n: Int) = [
  IntegerEntry("a # no comment", n), StringEntry(
    "b", "c
  d"
  ),
  ScriptTransfer(i.caller,
    n
      + 1, unit) # last
]
@Verifier(tx)
func v() = !sigVerify(tx.bodyBytes, tx.proofs[0], tx.senderPublicKey)
  && !true
"""
KEPT = (
    # A number with its sign that begins a line is an expression of its own.
    "let a = 1\n-1 == a\n",
    "let a = 2\n  - 1\na == 1\n",
    # A bracket that does not stand directly after a name calls nothing.
    "match (1, 2) {\n  case (a, b) => true\n}\n",
    "func f(x: Int) = x\n\nf(1) == - -1\n",
    "FOLD<5>([1], 0, f) == 1 || base58'' == base16'00'\n",
    "if true then\n  let a = 1\n  a == 1\nelse false\n",
    "# only\n\n# comments\ntrue\n",
    'let t = "\\u0041\\"" + "#"; t.size() == 3\n',
    "{-# STDLIB_VERSION 3 #-}\n{-# CONTENT_TYPE LIBRARY #-}\n\nfunc two() = 2\n",
    "[\n  1,\n  # between\n  2 # after\n  # before the end\n]\n",
    "a\n  .b(1)\n  .c\n",
    "let x = [\n  if a\n    then 1\n    else 2,\n  3\n]\nx\n",
    "# nothing follows\n1 # here\n# the end\n",
    "strict a = 1\nstrict b = a\nlet c = b\nstrict (d, e) = (1, 2)\nstrict f = d\na == f\n",
    """func f(n: Int) = {
  strict a = n
  strict (b, c) = (a +
    1, 2)
  if a > b
    then
      strict d = 1
      d
    else
      strict e = 2
      # why
      e
}
f(1) == 1
""",
    """match tx {
  case t: Order =>
    strict a = 1
    strict b = [
      a
    ]
    true
  case _ =>
    false
}
""",
)
HIDDEN = re.compile(rb".\$t0[0-9]+", re.DOTALL)
"""With the byte that tells the length."""


def script_of(source: str) -> bytes | None:
    """A compiled script without its checksum and the names of hidden variables."""
    try:
        script = compile_source(source, check_complexity=False).script.source
    except CompileError:
        return None
    return HIDDEN.sub(b"$", script[:-4])


def test_an_untidy_source() -> None:
    assert format_source(UNTIDY) == TIDY
    assert format_source(UNTIDY.replace("\n", "\r\n")) == TIDY.replace('"c\n', '"c\r\n')


@pytest.mark.parametrize("source", [TIDY, *KEPT])
def test_what_is_tidy_stays(source: str) -> None:
    assert format_source(source) == source


@pytest.mark.parametrize("source", ["let a = (", "", "{-# STDLIB_VERSION 99 #-}\ntrue"])
def test_what_cannot_be_read_is_refused(source: str) -> None:
    with pytest.raises(CompileError):
        format_source(source)


def test_sources_of_vectors() -> None:
    sources = {
        vector["source"]
        for name in ("ride_compile", "ride_compile_disagree", "ride_source_near_base64")
        for vector in load_vectors(name)
        if isinstance(vector.get("source"), str)
    }
    ran = compiled = unreadable = 0
    for source in some(sorted(sources)):
        try:
            formatted = format_source(source)
        except CompileError:
            assert script_of(source) is None
            unreadable += 1
            continue
        ran += 1
        assert format_source(formatted) == formatted
        script = script_of(source)
        compiled += script is not None
        assert script_of(formatted) == script, source
    assert compiled > times(180, 900)
    report.ran("sources formatted", ran)
    report.skipped("sources formatted", unreadable, "the reference cannot read them either")


def test_strict_is_laid_out_as_let() -> None:
    sources = (vector["source"] for vector in load_vectors("ride_compile"))
    chosen = some((source for source in sources if "strict" in source), 3)
    for source in chosen:
        lines = format_source(source).split("\n")
        others = format_source(re.sub(r"\bstrict\b", "let", source)).split("\n")
        assert [len(line) - len(line.lstrip()) for line in lines] == [
            len(line) - len(line.lstrip()) for line in others
        ], source
    assert len(chosen) > times(15, 50)


SPACES = (" ", "  ", "\t", " \t ")


def untidy(source: str, chance: Random) -> str:
    """The source with more space where there is some, and comments at the ends of lines."""
    lines = []
    for line in source.split("\n"):
        if '"' not in line and "'" not in line and "#" not in line:
            line = re.sub(" ", lambda _: chance.choice(SPACES), line)
            line = chance.choice(("", "  ", "\t")) + line
            if line.strip() and chance.random() < 0.2:
                line += chance.choice((" # why", "#"))
        lines.append(line + chance.choice(("", " ")))
    return "\n".join(lines)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_any_program(seed: int) -> None:
    chance = Random(seed)
    for program in programs(seed, 2):
        for source in (program.source, untidy(program.source, chance)):
            try:
                formatted = format_source(source)
            except CompileError:
                continue
            assert format_source(formatted) == formatted
            assert formatted.count("#") == source.count("#")
            assert script_of(formatted) == script_of(source)


def test_a_long_comment_takes_no_longer_than_its_length() -> None:
    def source(lines: int) -> str:
        return "{-# STDLIB_VERSION 6 #-}\n" + "# word\n" * lines + "true\n"

    assert growth(format_source, source, 5_000) <= MAX_GROWTH
