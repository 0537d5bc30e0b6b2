"""Completion as a shell asks for it, and the pages of the manual."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from soliton.cli.completion import SHELLS
from soliton.cli.man_pages import pages
from tests.cli.here import run_here
from tests.cli.test_reference import COMMANDS, options_of
from tests.e2e.programs import PROGRAM


def completed(place: Path, *words: str) -> set[str]:
    """What bash offers for the last word."""
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    (place / "completion").write_text(run_here("completion", "bash").stdout, "utf-8")
    listed = " ".join(f"'{word}'" for word in ("soliton", *words))
    script = (
        f". ./completion; COMP_WORDS=({listed}); COMP_CWORD={len(words)}; "
        '_soliton_completion soliton; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    path = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=place,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_bash_completes_commands_options_and_choices(tmp_path: Path) -> None:
    assert completed(tmp_path, "dev") == {"devnet"}
    assert {"check", "explain"} == completed(tmp_path, "config", "")
    assert "--data-dir" in completed(tmp_path, "run", "--data")
    assert set(SHELLS) == completed(tmp_path, "completion", "")


def test_bash_completes_commands_that_stand_instead_of_an_argument(tmp_path: Path) -> None:
    assert "postgres" in completed(tmp_path, "export", "post")
    assert "--dsn" in completed(tmp_path, "export", "postgres", "--ds")


@pytest.mark.parametrize("shell", SHELLS)
def test_shells_read_their_script(shell: str, tmp_path: Path) -> None:
    script = tmp_path / "script"
    done = run_here("completion", shell)
    script.write_text(done.stdout, "utf-8")
    assert done.returncode == 0 and "_SOLITON_COMPLETE" in done.stdout
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n", str(script)], check=True)


def test_another_shell() -> None:
    done = run_here("completion", "tcsh")
    assert done.returncode == 2 and "bash" in done.stderr


def test_pages_of_the_manual_have_all_commands_and_options() -> None:
    found = {name: text.replace("\\-", "-") for name, text in pages()}
    for name, command in COMMANDS.items():
        page = found[f"soliton-{name.split()[0]}.1"]
        assert f"soliton {name}" in page or name.split()[0] == name
        assert {option for option in options_of(command) if option not in page} == set()


def test_the_manual_can_be_read(tmp_path: Path) -> None:
    """The program that shows pages finds nothing odd in them."""
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    for name, text in pages():
        (tmp_path / name).write_text(text, "utf-8")
        command = ["groff", "-man", "-Tutf8", "-P-cbou", "-ww", str(tmp_path / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and done.stderr == "", (name, done.stderr)
        assert "NAME" in done.stdout
