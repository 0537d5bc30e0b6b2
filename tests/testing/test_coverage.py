"""Coverage of RIDE: what the plugin tells of a source whose reached parts were counted by hand."""

from __future__ import annotations

import shutil

import pytest

from tests.amounts import only_long
from tests.testing.test_plugin import run, run_apart
from tests.vectors import REPOSITORY

pytest_plugins = ["pytester"]

HEAD = """
{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}
{-# IMPORT shared.ride #-}
"""
DAPP = f"""{HEAD.strip()}

let unused = 5

func sized(n: Int) = {{
  let half = n / 2
  if (n > 10 && n < 20) then "middle"
  else if (n > 5)
    then "large"
    else "small"
}}

func iffy(n: Int) = n == 1 || n == 2

@Callable(i)
func name(n: Int) = {{
  strict checked = limited(n)
  [StringEntry("size", sized(checked)), BooleanEntry("iffy", iffy(checked))]
}}

@Callable(i)
func kind() = {{
  let found = match (i.payments[0].assetId) {{
    case _: ByteVector => true
    case _ => false
  }}
  [BooleanEntry("asset", found)]
}}

@Callable(i)
func never(n: Int) = {{
  let twice = n * 2
  [IntegerEntry("n", twice)]
}}

@Callable(i)
func addAll(list: List[Int]) = {{
  func add(total: Int, each: Int) = total + each
  [IntegerEntry("sum", FOLD<3>(list, 0, add))]
}}
"""
LIBRARY = """{-# STDLIB_VERSION 6 #-}
{-# SCRIPT_TYPE ACCOUNT #-}
{-# CONTENT_TYPE LIBRARY #-}

func limited(n: Int) = if (n > 100) then throw("too much") else n

func other(n: Int) = n + 1
"""
CASES = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}

func kind(value: Int|String|Boolean|Unit) = match (value) {
  case n: Int =>
    n + 1
  case _: String|Boolean => 2
  case _: Unit => 3
}

@Callable(i)
func ask(what: String) = {
  let given = if (what == "n") then kind(1)
    else if (what == "text") then kind("")
    else kind(unit)
  strict same = given
  [IntegerEntry("kind", same)]
}

@Verifier(tx)
func verify() = match (tx) {
  case _: SetScriptTransaction|DataTransaction =>
    sigVerify(tx.bodyBytes, tx.proofs[0], tx.senderPublicKey)
  case _: TransferTransaction => false
  case _ => true
}
"""
OTHER = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}

@Callable(i)
func nobody() = [IntegerEntry("n", 1)]
"""
SOME = """
from pathlib import Path

import pytest
from soliton.testing import refused

@pytest.fixture(scope="module")
def dapp(deploy):
    return deploy(Path(__file__).parent / "dapp.ride")

def test_large(dapp, alice):
    dapp.call(alice, "name", 7)

def test_coins(dapp, alice):
    dapp.call(alice, "kind", payments=[(1, None)])

def test_sums(dapp, alice):
    dapp.call(alice, "addAll", [1, 2])
"""
MORE = """
def test_sizes(dapp, alice):
    for n in (1, 2, 15):
        dapp.call(alice, "name", n)
    with refused("too much"):
        dapp.call(alice, "name", 101)

def test_assets(dapp, alice, node):
    gold = node.send(alice.issue("Gold", 10, 0)).wait().asset_id
    dapp.call(alice, "kind", payments=[(1, gold)])
"""
MISSED_BY_SOME = """
dapp.ride:9:14: never run: n / 2
dapp.ride:10:17: never taken: then n < 20
dapp.ride:10:30: never taken: then "middle"
dapp.ride:13:10: never taken: else "small"
dapp.ride:27:5: never taken: case _: ByteVector => true
dapp.ride:35:15: never run: n * 2
dapp.ride:36:3: never run: [IntegerEntry("n", twice)]
shared.ride:5:42: never taken: then throw("too much")
shared.ride:7:22: never run: n + 1
"""
MISSED_BY_ALL = """
dapp.ride:9:14: never run: n / 2
dapp.ride:35:15: never run: n * 2
dapp.ride:36:3: never run: [IntegerEntry("n", twice)]
other.ride:6:17: never run: [IntegerEntry("n", 1)]
shared.ride:7:22: never run: n + 1
"""


def write(pytester: pytest.Pytester, *tests: str) -> None:
    pytester.makefile(".ride", dapp=DAPP, shared=LIBRARY)
    pytester.makepyfile(test_dapp="".join(tests))


def missed(result: pytest.RunResult) -> str:
    return "\n".join(each for each in result.outlines if ": never " in each)


def figures(result: pytest.RunResult, name: str) -> list[str]:
    (line,) = (each for each in result.outlines if each.startswith(f"{name} "))
    return line.split()[1:]


def test_what_is_not_reached_is_told(pytester: pytest.Pytester) -> None:
    write(pytester, SOME)
    result = run(pytester, "--ride-cov", "--ride-cov-fail-under", 90)
    result.assert_outcomes(passed=3)
    assert missed(result) == MISSED_BY_SOME.strip()
    # Lines 9 to 11, 16, 20, 21, 26, 27 (which asks whether a case fits), 30, 35, 36, 41 and 42;
    # four arms of two choices, two cases, and the right sides of && and ||.
    assert figures(result, "dapp.ride") == ["13", "3", "8", "4", "66.7%"]
    assert result.ret == 1
    assert any("is less than 90%" in each for each in result.outlines)


@only_long
def test_more_tests_reach_more(pytester: pytest.Pytester) -> None:
    write(pytester, SOME, MORE)
    pytester.makefile(".ride", other=OTHER)
    result = run_apart(pytester, "--ride-cov-fail-under", 50, "-n", 2)
    result.assert_outcomes(passed=5)
    assert missed(result) == MISSED_BY_ALL.strip()
    assert result.ret == 0


@only_long
def test_cases_count_one_by_one(pytester: pytest.Pytester) -> None:
    pytester.makefile(".ride", cases=CASES)
    pytester.makepyfile("""
        from pathlib import Path

        import pytest
        from soliton.testing import refused

        @pytest.fixture(scope="module")
        def cases(deploy):
            return deploy(Path(__file__).parent / "cases.ride")

        def test_cases(cases, alice, node):
            cases.call(alice, "ask", "n")
            cases.call(alice, "ask", "unit")
            with refused("not allowed"):
                node.send(cases.account.transfer(alice, 1))
            node.send(cases.account.data({"n": 1})).wait()
            node.send(cases.account.alias("some-alias")).wait()
    """)
    assert missed(run(pytester, "--ride-cov")) == (
        "cases.ride:8:3: never taken: case _: String|Boolean => 2\n"
        'cases.ride:15:35: never taken: then kind("")'
    )


@only_long
def test_what_a_test_less_does_not_reach_is_told(pytester: pytest.Pytester) -> None:
    for path in (REPOSITORY / "examples" / "exchange").iterdir():
        if path.is_file():
            shutil.copy(path, pytester.path)
    thinner = pytester.path / "test_exchange.py"
    text = thinner.read_text(encoding="utf-8")
    one = 'with refused("no such token here"):'
    assert text.count(one) == 1
    start = text.index(one)
    end = text.index("for payments", start)
    thinner.write_text(text[:start] + text[end:], encoding="utf-8")
    result = run(pytester, "--ride-cov", "--ride-cov-fail-under", 100)
    assert result.ret == 1
    assert 'throw("no such token here")' in missed(result)


def test_elsewhere_nothing_is_measured(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_nothing(): pass")
    result = run(pytester, "--ride-cov", "--soliton-url", "http://127.0.0.1:1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
