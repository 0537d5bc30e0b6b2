"""The line editor's session, and what the terminal shows of sources."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from soliton.cli.main import cli
from soliton.errors import SolitonError
from soliton.workshop import prompts
from soliton.workshop.no_chain import NoChain
from soliton.workshop.repl import Session
from soliton.workshop.reports import excerpt, lint_lines, sources_below, watched


@pytest.fixture
def session() -> Session:
    return Session(6, NoChain())


def ride(*arguments: str, input_text: str = "") -> Result:
    return CliRunner().invoke(cli, ["ride", *arguments], input=input_text)


def test_declarations_stay(session: Session) -> None:
    assert session.do("let a = 5") == []
    assert session.do("func f (x: Int) = {\n  x * a\n}") == []
    (answer,) = session.do("f(3)") or []
    assert answer.startswith("Int = 15 ")
    assert session.do(":names") == ["let a = 5", "func f (x: Int) = {\n  x * a\n}"]
    assert session.do(":type f") == [
        "    1 | f", "      | ^",
        "nothing is called 'f' here (f is a function: call it with brackets)",
    ]  # fmt: skip
    assert session.do(":type f(1)") == ["Int"]
    assert session.do(":forget a") == ["forgotten: 2"]
    assert session.do(":forget a") == ["nothing is called 'a' here"]
    assert session.do("let b = 1") == [] and session.do(":reset") == []
    assert session.do(":names") == [] and session.do("") == []
    assert session.do(":quit") is None and session.do(":q") is None


def test_faults_show_what_was_typed(session: Session) -> None:
    session.do("let a = 5")
    assert session.do("1 + b") == [
        "    1 | 1 + b",
        "      |     ^",
        "nothing is called 'b' here (did you mean a?)",
    ]
    assert "'a' is already a value here" in (session.do("let a = 6") or [""])[-1]
    session.do("func half (n: Int) = 10 / (n - a)")
    assert session.do("half(5)") == [
        "/ by zero",
        "  at 10 / (n - a) in half",
        "      n = 5",
        "      n - a = 0",
        "      a = 5",
        "  at half(5)",
    ]
    assert session.do("height") == ["there is no chain here to ask", "  at height"]


def test_commands_help_and_find(session: Session) -> None:
    assert any(line.startswith(":help") for line in session.do(":help") or [])
    assert "toBase58String(ByteVector): String" in (session.do(":find base58") or [])
    assert session.do(":find zzz") == ["the library has nothing with 'zzz'"]
    assert session.do(":nonsense") == ["there is no command :nonsense; :help lists them"]


def test_a_library_is_loaded(session: Session, tmp_path: Path) -> None:
    file = tmp_path / "l.ride"
    file.write_text("{-# CONTENT_TYPE LIBRARY #-}\nfunc two () = 2\n")
    assert session.do(f":load {file}") == [f"loaded {file}"]
    assert (session.do("two()") or [""])[0].startswith("Int = 2 ")
    assert "cannot read" in (session.do(":load /nowhere") or [""])[0]
    file.write_text("func x () = nowhere\n")
    assert "nowhere" in (session.do(f":load {file}") or [""])[0]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("1 + 2", True), ("1 +", False), ("func f () = {", False), ("func f () = {\n 1\n}", True),
        ("let a =", False), ("let a = 1", True), ('let a = "{"', True), ("(", False), (")", True),
        ("if (true)", False), (":load x", True), ("", True), ("nowhere", True), ("1 # (", True),
        ("(\n\n", True),
    ],
)  # fmt: skip
def test_texts_that_go_on(session: Session, text: str, whole: bool) -> None:
    assert session.is_whole(text) is whole


def test_names_are_completed(session: Session) -> None:
    session.do("let mine = 1")
    names = session.names()
    assert names[0] == "mine"
    assert {"sigVerify", "height", "IntegerEntry", ":help"} <= {*names}
    assert not any(name.startswith(("$", "_")) for name in names)


def test_lines_are_typed_with_history_and_completion(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(prompts, "HISTORY_DIRECTORY", tmp_path / "history")
    whole = Session(6, NoChain()).is_whole
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        keys.send_text("sigVerify\rfunc f () = {\r1\r}\r\x1b[A\x1b[A\r\x04")
        typed = list(prompts.typed_lines("> ", "repl", lambda: ["sigVerify"], whole))
    assert typed[0] == "sigVerify"
    editor = prompts.session("other", lambda: ["sigVerify"])
    assert editor.completer is not None
    offered = editor.completer.get_completions(Document("sigVer"), CompleteEvent())
    assert [each.text for each in offered] == ["sigVerify"]
    assert typed[1].split() == ["func", "f", "()", "=", "{", "1", "}"]
    assert len(typed) == 3
    assert (tmp_path / "history" / "repl").read_text().count("sigVerify") >= 1


def test_the_command_reads_several_lines_from_a_pipe() -> None:
    answer = ride("repl", input_text="func f (n: Int) = {\n  n + 1\n}\nf(1)\n:q\nf(2)\n")
    assert answer.output.splitlines()[0].startswith("Int = 2 ") and "Int = 3" not in answer.output
    alone = ride("repl", "--as", "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF")
    assert isinstance(alone.exception, SolitonError)


# --- lint -----------------------------------------------------------------------------------------

WRONG = "{-# STDLIB_VERSION 6 #-}\n\tlet a = b\nlet c = 1\na == d\n"


def test_compile_tells_all_faults_with_excerpts(tmp_path: Path) -> None:
    file = tmp_path / "wrong.ride"
    file.write_text(WRONG)
    told = str(ride("compile", str(file)).exception).splitlines()
    assert told == [
        f"{file}:2:10: nothing is called 'b' here",
        "    2 | \tlet a = b",
        "      | \t        ^",
        f"{file}:4:6: nothing is called 'd' here (did you mean a?)",
        "    4 | a == d",
        "      |      ^",
    ]
    linted = ride("lint", str(file))
    assert linted.exit_code == 1 and linted.output.splitlines()[:6] == told


def test_lint_tells_warnings_and_exits_with_one(tmp_path: Path) -> None:
    file = tmp_path / "shop.ride"
    file.write_text("{-# STDLIB_VERSION 6 #-}\nlet a = 1\nheight > 3\n")
    linted = ride("lint", str(file))
    assert linted.exit_code == 1
    assert linted.output.splitlines()[0] == f"{file}:2:5: the value 'a' is never used [unused]"
    file.write_text("{-# STDLIB_VERSION 6 #-}\nheight > 3\n")
    linted = ride("lint", str(file))
    assert (linted.exit_code, linted.output) == (0, "")
    checks = " && ".join(["sigVerify(base58'', base58'', base58'')"] * 40)
    file.write_text("{-# STDLIB_VERSION 6 #-}\n" + checks)
    assert "omplex" in ride("lint", str(file)).output


def test_faults_of_a_library_name_its_file(tmp_path: Path) -> None:
    library = "{-# CONTENT_TYPE LIBRARY #-}\nlet a = nowhere\n"
    source = "{-# STDLIB_VERSION 6 #-}\n{-# IMPORT l.ride #-}\na == 1\n"
    lines = lint_lines(str(tmp_path / "s.ride"), source, {"l.ride": library})
    assert lines[0].startswith(f"{tmp_path}/l.ride:2:9: nothing is called 'nowhere' here")
    assert lines[1] == "    2 | let a = nowhere"


def test_files_are_looked_at_again_when_they_change(tmp_path: Path) -> None:
    file = tmp_path / "a.ride"
    file.write_text("1")
    seen = []

    def look() -> None:
        seen.append(file.read_text())
        # The second look sees another size and time; the third would wait for ever.
        file.write_text("22")
        os.utime(file, ns=(1, len(seen)))

    watched(lambda: [file, tmp_path / "missing.ride"], look, rounds=2)
    assert seen == ["1", "22"]


def test_what_is_watched_below_a_directory(tmp_path: Path) -> None:
    for name in ("a.ride", "inner/test_a.py", ".venv/b.py", "node_modules/c.py", "inner/d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = {path.relative_to(tmp_path).as_posix() for path in sources_below(tmp_path)}
    assert found == {"a.ride", "inner/test_a.py"}


def test_excerpts_of_places_that_there_are_not() -> None:
    assert excerpt("a", 5, 1) == []
    assert excerpt("", 1, 1) == ["    1 | ", "      | ^"]
    long = excerpt("x" * 10_000, 1, 5_000)
    assert all(len(line) < 300 for line in long) and long[1].rstrip().endswith("^")
