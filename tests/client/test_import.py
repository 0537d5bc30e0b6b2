"""What importing the library loads, and that its names are the same to everybody."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

import soliton
from tests.vectors import REPOSITORY

SERVERS = ("node", "api", "matcher", "signer", "storage", "p2p", "cli", "devnet", "ledger", "ride")
LOADED = "import sys; print('\\n'.join(name for name in sys.modules))"


def loaded(code: str) -> set[str]:
    """The modules that a new process has after some code."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{LOADED}"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_the_package_alone_loads_nothing() -> None:
    found = {name for name in loaded("import soliton") if name.startswith("soliton")}
    assert found == {"soliton"}


def test_the_library_loads_no_server() -> None:
    found = loaded("from soliton import *")
    assert "soliton.client.node" in found
    servers = {f"soliton.{name}" for name in SERVERS}
    assert {".".join(name.split(".")[:2]) for name in found} & servers == set()
    assert {"rocksdict", "click", "rich", "uvloop", "pytest"} & found == set()


def test_a_blocking_node_loads_no_event_loop() -> None:
    assert "asyncio" not in loaded("from soliton import Account, Node")


def test_type_checkers_see_the_same_names() -> None:
    stub = ast.parse((REPOSITORY / "src/soliton/__init__.pyi").read_text(encoding="utf-8"))
    told = {
        (alias.asname, node.module)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    real = {
        (name, f"soliton.client.{module}")
        for name, module in soliton._MODULES.items()  # type: ignore[attr-defined]
    }
    assert told == real
    assert set(soliton.__all__) == {*(name for name, _ in real), "__version__"}  # type: ignore[attr-defined]
    for name, _ in real:
        assert getattr(soliton, name).__doc__, name


def test_an_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        soliton.nonsense  # type: ignore[attr-defined]  # noqa: B018
    assert "Account" in dir(soliton)
