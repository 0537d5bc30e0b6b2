"""Scripts on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from soliton.cli.main import cli
from soliton.errors import SolitonError

LIBRARY = "{-# STDLIB_VERSION 6 #-}\n{-# CONTENT_TYPE LIBRARY #-}\nfunc two() = 2\n"
SOURCE = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# IMPORT two.ride #-}
@Callable(i)
func pay() = [IntegerEntry("two", two())]
"""


def run(*arguments: str, input_text: str = "") -> Result:
    return CliRunner().invoke(cli, ["ride", *arguments], input=input_text)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "two.ride").write_text(LIBRARY)
    path = tmp_path / "pay.ride"
    path.write_text(SOURCE)
    return path


def test_compile_and_back(source: Path, tmp_path: Path) -> None:
    script = run("compile", str(source)).output.strip()
    assert script.startswith("base64:")
    text = run("decompile", script).output
    assert "func two () = 2" in text
    (tmp_path / "again.ride").write_text(text)
    assert run("compile", str(tmp_path / "again.ride")).output.strip() == script
    assert run("decompile", "-", input_text=script).output == text


def test_compact_and_without_unused(source: Path) -> None:
    small = run("compile", str(source), "--compact", "--remove-unused").output.strip()
    assert "func two () = 2" in run("decompile", small).output


def test_estimate(source: Path) -> None:
    assert run("estimate", str(source)).output == "pay: 4\nat most: 4\n"
    declared = run("estimate", "--declarations", str(source)).output
    assert declared == "two: 1\npay: 4\nat most: 4\n"


def test_format(source: Path, tmp_path: Path) -> None:
    untidy = tmp_path / "untidy.ride"
    untidy.write_bytes(b"let a=1  # one\r\n\r\n\r\na==1")
    tidy = "let a = 1 # one\n\na == 1\n"
    assert run("format", str(untidy)).output == tidy
    assert run("format", "-", input_text="let a=1  # one\n\n\na==1").output == tidy
    checked = run("format", "--check", str(source), str(untidy))
    assert (checked.exit_code, checked.output) == (1, f"{untidy}\n")
    untidy.chmod(0o640)
    written = run("format", "--write", str(source), str(untidy))
    assert (written.exit_code, written.output) == (0, "")
    assert untidy.read_bytes() == tidy.encode()
    assert untidy.stat().st_mode & 0o777 == 0o640
    assert source.read_text() == SOURCE
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pay.ride", "two.ride", untidy.name]
    assert run("format", "--check", str(source), str(untidy)).exit_code == 0
    broken = run("format", "-", input_text="let a = (")
    assert isinstance(broken.exception, SolitonError)


def test_eval_and_repl() -> None:
    assert run("eval", "1 + 2").output.startswith("Int = 3 ")
    lines = "let a = 5\nfunc f(x: Int) = x * a\nf(3)\nb\nf(4)\n\n"
    answers = run("repl", input_text=lines).output.splitlines()
    assert answers[0].startswith("Int = 15 ")
    assert "'b'" in answers[3]
    assert answers[4].startswith("Int = 20 ")


@pytest.mark.parametrize("expression", ["height", "tx.id", "this", "nothing", "1 +"])
def test_what_cannot_be_evaluated(expression: str) -> None:
    assert isinstance(run("eval", expression).exception, SolitonError)


def test_no_script() -> None:
    assert isinstance(run("decompile", "no base64!").exception, SolitonError)


@pytest.mark.parametrize("command", ["compile", "estimate", "format"])
def test_errors_begin_with_file_line_and_column(tmp_path: Path, command: str) -> None:
    path = tmp_path / "wrong.ride"
    path.write_text("{-# STDLIB_VERSION 6 #-}\nlet a = 1\na == 'one'\n")
    problem = str(run(command, str(path)).exception)
    assert problem.startswith(f"{path}:3:6: expected an expression, found")
    assert "double quotes" in problem
    path.write_text("{-# STDLIB_VERSION 99 #-}\ntrue\n")
    assert str(run(command, str(path)).exception).startswith(f"{path}:")
    if command == "format":
        broken = run(command, "-", input_text="let a = (")
        assert str(broken.exception).startswith("<stdin>:1:")
