"""The page of the library is one program, which runs; its reference has every public name."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import soliton
import soliton.testing
from tests.blocks import blocks
from tests.e2e.programs import Program
from tests.vectors import REPOSITORY

PAGE = "docs/how-to/use-the-library.md"
NAMES: dict[str, str] = soliton._MODULES  # type: ignore[attr-defined]
INNER = "soliton_kit"
"""What all other fixtures are made of."""
SECONDS = 300
"""Far more than it takes: it only ends a test that hangs."""


@pytest.mark.slow
def test_the_page_runs(program: Program) -> None:
    source = "\n".join(blocks(PAGE, "python"))
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
    assert lines[2] == "18 0x1a642f0E3c3aF545E7AcBD38b07251B3990914F1"
    assert lines[3] == "{'last': 2}"
    assert lines[4] == "Error while executing dApp: too much withdraw 8"
    assert lines[5] == "2"
    assert "(Level(price=50000000000000, amount=600),)" in lines


@pytest.mark.slow
def test_the_readme_runs(program: Program) -> None:
    (source,) = blocks("README.md", "python")
    source = source.replace("http://127.0.0.1:6869", program.node_url)
    command = [sys.executable, "-c", source + "\nprint(node.asset(gold).name)"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    assert done.stdout == "Gold\n"


def test_the_page_names_every_exception() -> None:
    text = (REPOSITORY / PAGE).read_text(encoding="utf-8")
    values = {name: getattr(soliton, name) for name in NAMES}
    named = [
        name
        for name, value in values.items()
        if isinstance(value, type) and issubclass(value, Exception)
    ]
    assert len(named) >= 10
    assert [name for name in named if f"`{name}`" not in text and name != "AmountError"] == []


def fixture_names() -> set[str]:
    """The fixtures of the plugin that users are meant to have."""
    tree = ast.parse(Path(soliton.testing.__path__[0], "plugin.py").read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and "pytest.fixture" in map(
            _called, node.decorator_list
        ):
            found.add(node.name)
        if isinstance(node, ast.Assign) and "pytest.fixture" in ast.unparse(node.value):
            found.add(ast.unparse(node.targets[0]))
    return {name for name in found if not name.startswith("_")}


def _called(decorator: ast.expr) -> str:
    return ast.unparse(decorator).partition("(")[0]


def test_the_page_names_every_fixture() -> None:
    page = (REPOSITORY / "docs" / "how-to" / "test-a-dapp.md").read_text(encoding="utf-8")
    assert [name for name in fixture_names() if f"`{name}`" not in page and name != INNER] == []


@pytest.mark.slow
def test_the_reference_has_every_name(tmp_path: Path) -> None:
    """As `make reference` builds it."""
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    (command,) = re.findall(
        r"/python (-m pdoc .*) --output-directory", makefile.replace("\\\n", "")
    )
    subprocess.run(
        [sys.executable, *command.split(), "--output-directory", str(tmp_path)],
        capture_output=True,
        timeout=SECONDS,
        check=True,
        cwd=REPOSITORY,
    )
    page = (tmp_path / "soliton.html").read_text(encoding="utf-8")
    for module in (soliton, soliton.testing):
        path = tmp_path.joinpath(*module.__name__.split(".")).with_suffix(".html")
        names = set(re.findall(r'id="([\w.]+)"', path.read_text(encoding="utf-8")))
        public = {name for name in module.__all__ if not name.startswith("__")}
        assert public and public - names == set()
        for name in public:
            value = getattr(module, name)
            if isinstance(value, type):
                members = {each for each in vars(value) if not each.startswith("_")}
                assert {f"{name}.{each}" for each in members} - names == set()
    # The fixtures, too, each with what it is.
    plugin = (tmp_path / "soliton" / "testing" / "plugin.html").read_text(encoding="utf-8")
    fixtures = fixture_names()
    assert {"alice", "chain", "deploy", "matcher", "node"} <= fixtures
    assert fixtures - set(re.findall(r'id="(\w+)"', plugin)) == set()
    # What a method takes and gives is shown, not the steps behind it.
    shown = re.sub(r"<[^>]+>", "", page)
    assert "Generator[" not in shown and "steps.Core" not in shown and "@wraps" not in shown


@pytest.mark.parametrize("module", sorted({*NAMES.values()}))
def test_examples_in_docstrings_hold(module: str) -> None:
    found = doctest.testmod(importlib.import_module(f"soliton.client.{module}"))
    assert found.failed == 0
