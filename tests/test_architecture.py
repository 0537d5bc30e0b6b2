"""The rings of docs/architecture.md: who may import whom, checked on the source text.

What lives here: the table, the checker, and tests of the checker on small made-up trees. An import
counts wherever it stands: at the top, inside a function, under ``TYPE_CHECKING``, or as a name
given to ``import_module``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.vectors import REPOSITORY

SOURCE = REPOSITORY / "src" / "soliton"

RULES = {"ride", "consensus", "ledger", "matching", "wire", "sync"}
SHELL = {"web", "parallel", "storage", "api", "node", "signer", "matcher"}
PROGRAMS = {"cli", "devnet", "testing", "explorer"}
CORE = {"crypto", "chain", *RULES}

# For each package the packages of ours that it may import, besides itself. `soliton.errors`,
# `soliton.caching` and the root (`soliton`, for its version) are open to all. A package missing
# here is refused.
MAY_IMPORT: dict[str, set[str]] = {
    "crypto": set(),
    "chain": {"crypto"},
    "ride": {"chain", "crypto"},
    "consensus": {"chain", "crypto"},
    "ledger": {"ride", "consensus", "chain", "crypto"},
    "matching": {"chain", "crypto"},
    "wire": {"chain", "crypto"},
    "sync": {"wire", "chain", "crypto"},
    "storage": {"ledger", "consensus", "chain", "crypto"},
    "parallel": {"crypto"},
    "node": {*CORE, "storage", "parallel"},
    "web": set(),
    "api": {*CORE, "web", "storage", "parallel", "node"},
    "signer": {"web", "chain", "crypto"},
    "matcher": {"web", "parallel", "matching", "storage", "chain", "crypto"},
    **{program: {*CORE, *SHELL, *PROGRAMS} for program in PROGRAMS},
}

# The core does no input or output and knows neither clock nor chance: these stay outside of it.
IMPURE = {
    *("asyncio", "http", "logging", "multiprocessing", "random", "secrets", "select", "selectors"),
    *("socket", "socketserver", "sqlite3", "ssl", "subprocess", "tempfile", "time", "urllib"),
    *("click", "httptools", "httpx", "lmdb", "rich", "starlette", "uvicorn", "uvloop"),
    "websockets",
}
# What one package of the core may use all the same, each with its reason.
PURE_ENOUGH: dict[str, set[str]] = {}


def violations(source: Path) -> list[str]:
    """Every import below `source` (the directory of the package) that breaks a rule, as text."""
    found = []
    for path in sorted(source.rglob("*.py")):
        place = path.relative_to(source)
        if len(place.parts) == 1 or path.name.endswith("_pb2.py"):
            continue  # the root modules are checked by `root_violations`
        package = place.parts[0]
        if package not in MAY_IMPORT:
            found.append(f"{place}: package {package} has no row in the table")
            continue
        for line, target in imports_of(path, source):
            if fault := fault_of(package, target):
                found.append(f"{place}:{line}: {package} imports {target}: {fault}")
    return found


def fault_of(package: str, target: str) -> str | None:
    """Why a module of `package` may not import `target`, or None."""
    names = target.split(".")
    if names[0] != "soliton":
        impure = names[0] in IMPURE and names[0] not in PURE_ENOUGH.get(package, set())
        return "the core has no I/O, clock or chance" if package in CORE and impure else None
    if len(names) == 1 or names[1] in {"errors", "caching", "__version__", package}:
        return None
    if names[1] in MAY_IMPORT[package]:
        return None
    return "an outer ring, or a neighbour that it may not know"


def root_violations(source: Path) -> list[str]:
    """`soliton/__init__.py`, `errors.py` and the like are imported by all: they import nothing."""
    return [
        f"{path.name}:{line}: the root imports {target}"
        for path in sorted(source.glob("*.py"))
        if path.name != "__main__.py"
        for line, target in imports_of(path, source)
        if target.startswith("soliton.")
    ]


def imports_of(path: Path, source: Path) -> Iterator[tuple[int, str]]:
    """All modules that a file imports, absolute, one per imported name: `soliton.chain.blocks`."""
    location = path.relative_to(source.parent).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, name.name) for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                # One dot is the package of the file, also where the file is its `__init__`.
                base = [*location[:-level]] if level else []
                start = ".".join([*base, *([module] if module else [])])
                yield from ((node.lineno, f"{start}.{name.name}") for name in names)
            case ast.Call(func=func, args=[ast.Constant(value=str(target)), *_]) if getattr(
                func, "id", getattr(func, "attr", "")
            ) in {"import_module", "__import__"}:
                yield node.lineno, target


def test_no_package_imports_outwards() -> None:
    assert violations(SOURCE) == []


def test_the_root_imports_nothing_of_ours() -> None:
    assert root_violations(SOURCE) == []


def test_the_table_points_inwards_only() -> None:
    """No two packages may import each other, programs aside."""
    for package, allowed in MAY_IMPORT.items():
        if package not in PROGRAMS:
            for inner in allowed:
                assert package not in MAY_IMPORT[inner], f"{package} and {inner} import each other"


def test_the_document_names_every_package() -> None:
    text = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert [package for package in MAY_IMPORT if f"`{package}`" not in text] == []


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("crypto/hashes.py", "from soliton.chain import blocks"),
        ("crypto/hashes.py", "import soliton.chain.blocks"),
        ("crypto/hashes.py", "from soliton import chain"),
        ("crypto/hashes.py", "from ..chain import blocks"),
        ("crypto/hashes.py", "from .. import chain"),
        ("chain/networks/__init__.py", "from ...ledger import apply"),
        ("chain/blocks.py", "def late():\n    from soliton.ledger import apply"),
        ("chain/blocks.py", "if TYPE_CHECKING:\n    from soliton.ledger import State"),
        ("chain/blocks.py", "importlib.import_module('soliton.ledger')"),
        ("consensus/pos.py", "from soliton.ledger import apply"),
        ("ledger/apply.py", "from soliton.storage import store"),
        ("ledger/apply.py", "import time"),
        ("ledger/apply.py", "from asyncio import Queue"),
        ("signer/app.py", "from soliton.node import wallet"),
        ("node/chain.py", "from soliton.api import app"),
        ("storage/store.py", "from soliton.node import settings"),
        ("newcomer/code.py", "import json"),
    ],
)
def test_the_checker_sees_a_violation(tmp_path: Path, place: str, text: str) -> None:
    assert len(violations(_tree(tmp_path, place, text))) == 1


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("crypto/hashes.py", "import hashlib\nfrom soliton.errors import SolitonError"),
        ("crypto/hashes.py", "from soliton import __version__\nfrom . import base58"),
        ("chain/networks/__init__.py", "from ..blocks import Block\nfrom ...crypto import base58"),
        ("ledger/apply.py", "from soliton.chain.blocks import Block"),
        ("node/chain.py", "import asyncio\nfrom soliton.storage import store"),
        ("api/app.py", "from soliton.node import wallet"),
        ("cli/main.py", "from soliton.devnet import run\nfrom soliton.api import app"),
    ],
)
def test_the_checker_lets_the_rest_pass(tmp_path: Path, place: str, text: str) -> None:
    assert violations(_tree(tmp_path, place, text)) == []


def test_the_checker_sees_a_root_that_imports(tmp_path: Path) -> None:
    assert len(root_violations(_tree(tmp_path, "errors.py", "from soliton.chain import x"))) == 1


def _tree(directory: Path, place: str, text: str) -> Path:
    source = directory / "soliton"
    path = source / place
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return source
