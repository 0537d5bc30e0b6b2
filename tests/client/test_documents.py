"""The page of the library is one program, which runs; its reference has every public name."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import soliton
from tests.e2e.programs import Program
from tests.vectors import REPOSITORY

PAGE = REPOSITORY / "docs" / "how-to" / "use-the-library.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMES: dict[str, str] = soliton._MODULES  # type: ignore[attr-defined]
SECONDS = 300
"""Far more than it takes: it only ends a test that hangs."""


@pytest.mark.slow
def test_the_page_runs(program: Program) -> None:
    source = "\n".join(BLOCK.findall(PAGE.read_text(encoding="utf-8")))
    source = source.replace("http://127.0.0.1:6869", program.node_url)
    source = source.replace("http://127.0.0.1:6886", program.matcher_url)
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning", "-c", source],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "150"
    assert lines[1].startswith("5 ")
    assert lines[2] == "{'last': 2}"
    assert lines[3] == "Error while executing dApp: too much withdraw 8"
    assert lines[4] == "2"
    assert "(Level(price=50000000000000, amount=600),)" in lines


@pytest.mark.slow
def test_the_readme_runs(program: Program) -> None:
    (source,) = BLOCK.findall((REPOSITORY / "README.md").read_text(encoding="utf-8"))
    source = source.replace("http://127.0.0.1:6869", program.node_url)
    command = [sys.executable, "-c", source + "\nprint(node.asset(gold).name)"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    assert done.stdout == "Gold\n"


def test_the_page_names_every_exception() -> None:
    text = PAGE.read_text(encoding="utf-8")
    values = {name: getattr(soliton, name) for name in NAMES}
    named = [
        name
        for name, value in values.items()
        if isinstance(value, type) and issubclass(value, Exception)
    ]
    assert len(named) >= 10
    assert [name for name in named if f"`{name}`" not in text and name != "AmountError"] == []


@pytest.mark.slow
def test_the_reference_has_every_name(tmp_path: Path) -> None:
    """As `make reference` builds it."""
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    (command,) = re.findall(r"/python (-m pdoc .*) --output-directory", makefile)
    subprocess.run(
        [sys.executable, *command.split(), "--output-directory", str(tmp_path)],
        capture_output=True,
        timeout=SECONDS,
        check=True,
        cwd=REPOSITORY,
    )
    page = (tmp_path / "soliton.html").read_text(encoding="utf-8")
    names = set(re.findall(r'id="([\w.]+)"', page))
    assert set(NAMES) - names == set()
    for name in NAMES:
        value = getattr(soliton, name)
        if isinstance(value, type):
            members = {each for each in vars(value) if not each.startswith("_")}
            assert {f"{name}.{each}" for each in members} - names == set()
    # What a method takes and gives is shown, not the steps behind it.
    shown = re.sub(r"<[^>]+>", "", page)
    assert "Generator[" not in shown and "steps.Core" not in shown and "@wraps" not in shown


@pytest.mark.parametrize("module", sorted({*NAMES.values()}))
def test_examples_in_docstrings_hold(module: str) -> None:
    found = doctest.testmod(importlib.import_module(f"soliton.client.{module}"))
    assert found.failed == 0
