"""Walking through recorded runs, forward and backward, without a node."""

from __future__ import annotations

import pytest

from soliton.ride.compiler import compile_source
from soliton.ride.errors import EvaluationError
from soliton.ride.evaluator import Invocation, Setting, invoke
from soliton.ride.faults import SourceText
from soliton.ride.observation import Observer
from soliton.ride.recording import MAX_STEPS, Recording, recording
from soliton.ride.script import parse_script
from soliton.ride.values import UNIT
from soliton.workshop.debugger import Debugger
from soliton.workshop.tracing import changes_lines, function_lines, transaction_lines
from soliton.workshop.walking import BACKWARD, FORWARD, Walk
from tests.ride.test_faults import SOURCE, Chain

ADDRESS = "1" * 26
"""Of the dApp in these runs: 26 zeros in base58."""


def record(name: str, *arguments: int, source: str = SOURCE, compact: bool = False) -> Recording:
    script = parse_script(compile_source(source, compact=compact).script.source)
    observer = Observer(record=True)
    error = ""
    try:
        invoke(script, Chain(), Invocation(name, arguments, UNIT), Setting(observer=observer))
    except EvaluationError as problem:
        error = problem.message
    return recording(observer, {script.source: SourceText(source, {}, "prices.ride")}, error)


def here(walk: Walk) -> tuple[str, int, str | None]:
    assert walk.step is not None
    return walk.step.function, walk.step.line, walk.step.value


def test_forward_and_backward_are_the_same_way() -> None:
    walk = Walk(record("buy", 7))
    total = len(walk.record.steps)
    there = []
    while walk.step is not None:
        there.append(walk.at)
        walk.expression(FORWARD)
    assert walk.at == total and there == list(range(total))
    back = []
    while walk.at > 0:
        walk.expression(BACKWARD)
        back.append(walk.at)
    assert back == there[::-1]


def test_lines_calls_and_values() -> None:
    walk = Walk(record("buy", 7))
    walk.functions.add("price")
    walk.run(FORWARD)
    assert here(walk)[:2] == ("price", 9)
    assert [(step.function, step.line) for step in walk.calls()] == [("buy", 17)]
    names = dict(walk.names())
    assert (names["amount"], names["supply"]) == ("7", "5") and "scaled" not in names
    walk.line(FORWARD)
    assert here(walk)[:2] == ("price", 8)
    walk.to(len(walk.record.steps))
    walk.expression(BACKWARD)
    assert dict(walk.names())["scaled"] == "800"
    assert walk.step is not None and walk.step.value == "0"
    walk.out(BACKWARD)
    assert here(walk)[0] == "buy"


def test_over_a_function_and_out_of_it() -> None:
    walk = Walk(record("buy", 7, source=SOURCE.replace("supply - 5", "supply - 4")))
    walk.functions.add("check")
    walk.run(FORWARD)
    assert here(walk)[:2] == ("check", 12)
    walk.out(FORWARD)
    assert here(walk)[0] == "buy"
    walk.over(FORWARD)
    while walk.step is not None:
        assert walk.step.function in ("buy", "verify", ""), walk.step
        walk.over(FORWARD)


def test_breakpoints_on_lines_stop_once_for_each_time_that_the_line_is_reached() -> None:
    walk = Walk(record("sum", 2))
    walk.lines.add(("", 26))
    values = []
    walk.run(FORWARD)
    while walk.step is not None:
        names = dict(walk.names())
        values.append((names["a"], names["b"]))
        walk.run(FORWARD)
    # 100 / (1 - 2), and then the division by zero.
    assert values == [("100", "1"), ("-100", "2")]
    walk.run(BACKWARD)
    assert walk.step is not None and walk.step.line == 26
    walk.run(BACKWARD)
    walk.run(BACKWARD)
    assert walk.at == 0


@pytest.mark.parametrize("compact", [False, True])
def test_names_are_those_of_the_source(compact: bool) -> None:
    walk = Walk(record("buy", 7, compact=compact))
    walk.to(len(walk.record.steps) - 1)
    assert set(dict(walk.names())) >= {"amount", "supply", "scaled", "base"}


def test_long_runs_are_cut() -> None:
    head = "{-# STDLIB_VERSION 6 #-}\n{-# CONTENT_TYPE DAPP #-}\n"
    lines = ["func f0 (n: Int) = n + 1"]
    lines += [f"func f{i} (n: Int) = f{i - 1}(n) + f{i - 1}(n)" for i in range(1, 13)]
    source = head + "\n".join(
        [*lines, "@Callable(i)\nfunc go () = [IntegerEntry(toString(f12(1)), 1)]"]
    )
    found = record("go", source=source)
    assert len(found.steps) == MAX_STEPS and found.truncated
    said: list[str] = []
    Debugger(found, said.append).session(["run", "brun"])
    assert "the rest is left out" in said[0]


def talk(found: Recording, *lines: str) -> str:
    said: list[str] = []
    Debugger(found, said.append).session(lines)
    return "\n".join(said)


def test_a_session_in_words() -> None:
    lines = ("b price", "b", "r", "v", "w", "l", "d price", "bi", "g 3", "q", "nonsense")
    text = talk(record("buy", 7), *lines)
    assert text.splitlines()[0].endswith(" steps; refused: / by zero. h is help.")
    assert "stops at price" in text
    assert "price at prices.ride:9:3" in text
    assert "->    9 |   scaled / (supply - 5)" in text
    assert "  buy at prices.ride:17:14: price(amount, 5)" in text
    assert "[3/" in text and "there is no command" not in text


def test_the_end_names_the_fault() -> None:
    text = talk(record("buy", 7), "r")
    assert "[end] refused: / by zero" in text
    assert "  prices.ride:9:3 in price: scaled / (supply - 5)" in text
    assert "  prices.ride:17:14 in buy: price(amount, 5)" in text


def test_wrong_commands_say_so_and_do_no_harm() -> None:
    text = talk(
        record("buy", 7), "nonsense", "g", "g x", "b nowhere", "d nowhere", "go 999999999", "", "h",
        "br", "w", "v", "l",
    )  # fmt: skip
    assert "there is no command 'nonsense'" in text
    assert "go where?" in text
    assert "which this run never reaches" in text
    assert "[end]" in text and "forward          backward" in text


def test_functions_of_a_run_as_a_tree() -> None:
    lines = function_lines(record("buy", 7, source=SOURCE.replace("supply - 5", "supply - 4")), {})
    assert lines[0].startswith("functions")
    assert any("prices.ride:17:14: price(amount, 5) = 800" in line for line in lines)
    assert function_lines(record("buy", 7), {})[-1] == "ended with: / by zero"


def test_what_a_transaction_did() -> None:
    """A transaction as the reference node shows it, of its documentation."""
    inner = {
        "dApp": "3N1", "call": {"function": "bar", "args": [{"type": "integer", "value": 1}]},
        "payment": [{"amount": 5, "assetId": None}],
        "stateChanges": {"data": [{"key": "k", "type": "integer", "value": 2}], "invokes": []},
    }  # fmt: skip
    told = {
        "type": 16, "id": "Abc", "sender": "3N0", "height": 5, "dApp": "3N2", "payment": [],
        "applicationStatus": "script_execution_failed", "spentComplexity": 7,
        "call": {"function": "foo", "args": []},
        "stateChanges": {"data": [], "invokes": [inner], "error": {"code": 1, "text": "no"}},
    }  # fmt: skip
    assert list(transaction_lines(told)) == [
        "Abc: type 16 by 3N0 at height 5, script_execution_failed, complexity 7",
        "  3N2 foo()",
        "    3N1 bar(1) + 5 coin",
        "      data: key k, type integer, value 2",
        "    error 1: no",
    ]
    assert list(changes_lines({})) == []
