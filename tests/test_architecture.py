"""The rings of docs/architecture.md: who may import whom, checked on the source text.

What lives here: the tables, the checker, and tests of the checker on small made-up trees. An import
counts wherever it stands: at the top, inside a function, under ``TYPE_CHECKING``, or as a name
given to ``import_module``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.source import nodes_of
from tests.vectors import REPOSITORY

SOURCE = REPOSITORY / "src" / "soliton"

RULES = {"ride", "consensus", "ledger", "matching", "wire", "sync"}
SHELL = {"web", "pages", "parallel", "storage", "keystore", "api", "node", "p2p", "controls"} | {
    *("client", "signer", "matcher", "grpc_api", "export", "data_service"),
}
PROGRAMS = {"cli", "devnet", "simulation", "testing", "workshop"}
CORE = {"crypto", "chain", *RULES}

# For each package the packages of ours that it may import, besides itself. `soliton.errors`,
# `soliton.caching`, `soliton.steps`, `soliton.owners`, `soliton.proxies`, `soliton.revision` and
# the root (`soliton`, for its version) are open to all, `soliton.turns`, which knows the event
# loop, to all but the core. A package missing here is refused.
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
    "p2p": {*CORE, "storage", "parallel", "node"},
    "controls": {*CORE, "storage", "node"},
    "web": set(),
    "pages": {"web"},
    "api": {*CORE, "web", "pages", "storage", "parallel", "node", "controls"},
    "grpc_api": {*CORE, "web", "storage", "parallel", "node", "controls", "api"},
    "keystore": {"storage", "chain", "crypto"},
    "client": {"web", "chain", "crypto"},
    "data_service": {"web"},
    "export": {*CORE, "web", "storage", "parallel", "node", "controls", "api"},
    "signer": {"web", "pages", "keystore", "storage", "wire", "chain", "crypto"},
    "matcher": {"web", "pages", "parallel", "matching", "storage", "chain", "crypto"},
    **{program: {*CORE, *SHELL, *PROGRAMS} for program in PROGRAMS},
}

# The core does no input or output and knows neither clock nor chance: of what is not ours it takes
# this and nothing else.
PURE = {
    *("__future__", "abc", "array", "base64", "binascii", "bisect", "collections", "contextlib"),
    *("dataclasses", "decimal", "difflib", "enum", "fractions", "functools", "google", "hashlib"),
    *("importlib", "ipaddress", "itertools", "keyword", "math", "msgspec", "operator", "re"),
    *("string", "struct", "tomllib", "types", "typing", "unicodedata"),
}
# What one package of the core imports besides, each with its reason.
BESIDES: dict[str, dict[str, str]] = {
    "crypto": {
        **dict.fromkeys(
            (
                "coincurve",
                "Crypto",
                "cryptography",
                "gmpy2",
                "hmac",
                "nacl",
                "pyblst",
                "sha3",
                "zksnake",
            ),
            "arithmetic in compiled code, without state",
        ),
        "os": "secret random bytes for a signature or a proof, unless they are handed in",
        "sys": "which implementation of Keccak there is for a platform",
    },
    "ride": {
        "sys": "deep scripts need a higher limit on recursion; it is raised once, and stays",
        "contextvars": "how deep the nested runs of one transaction are together",
        "json": "its C code joins the halves of UTF-16 pairs",
        "threading": "a program is compiled once, whichever thread needs it first",
    },
}

# Modules that import one another, in whatever way: two names, and the reason.
CIRCLES: dict[frozenset[str], str] = {
    frozenset({"chain.orders", "chain.typed_data"}): (
        "an order has a hash for Ethereum wallets, which is made of an order"
    ),
    frozenset({"ride.compiler.checker", "ride.compiler.matching"}): (
        "expressions hold matches, whose branches are expressions"
    ),
}


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
        pure = names[0] in PURE or names[0] in BESIDES.get(package, {})
        return "the core has no I/O, clock or chance" if package in CORE and not pure else None
    if len(names) == 1 or names[1] in {
        "errors",
        "caching",
        "steps",
        "owners",
        "proxies",
        "revision",
        "__version__",
        package,
    }:
        return None
    if names[1] == "turns" and package not in CORE:
        return None
    if names[1] in MAY_IMPORT[package]:
        return None
    return "an outer ring, or a neighbour that it may not know"


def circles(source: Path) -> set[frozenset[str]]:
    """Groups of modules each of which leads to every other by imports, wherever these stand."""
    places = {_name_of(path, source): path for path in source.rglob("*.py")}
    leads = {
        name: {
            target if target in places else target.rpartition(".")[0]
            for _, target in imports_of(path, source)
        }
        & places.keys() - {name}
        for name, path in places.items()
        if not path.name.endswith("_pb2.py")
    }
    reached = {name: _reachable(name, leads) for name in leads}
    groups = (
        frozenset(other for other in reached[name] if name in reached.get(other, ()))
        for name in leads
    )
    return {group for group in groups if len(group) > 1}


def _name_of(path: Path, source: Path) -> str:
    parts = path.relative_to(source.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _reachable(name: str, leads: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = {name}
    while waiting:
        further = leads.get(waiting.pop(), set()) - found
        found |= further
        waiting |= further
    return found


def root_violations(source: Path) -> list[str]:
    """`soliton/__init__.py`, `errors.py` and the like are imported by all: they import nothing."""
    return [
        f"{path.name}:{line}: the root imports {target}"
        for path in sorted(source.glob("*.py"))
        if path.name != "__main__.py"
        for line, target in imports_of(path, source)
        if target.startswith("soliton.")
    ]


@cache
def imports_of(path: Path, source: Path) -> tuple[tuple[int, str], ...]:
    """All modules that a file imports, absolute, one per imported name: `soliton.chain.blocks`."""
    return tuple(_imports_of(path, source))


def _imports_of(path: Path, source: Path) -> Iterator[tuple[int, str]]:
    location = path.relative_to(source.parent).with_suffix("").parts
    for node in nodes_of(path):
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


def test_no_modules_import_one_another() -> None:
    """But for those that are named, as long as they do."""
    found = {frozenset(name.removeprefix("soliton.") for name in each) for each in circles(SOURCE)}
    assert found == CIRCLES.keys()


def test_what_the_core_imports_besides_is_still_imported() -> None:
    for package, modules in BESIDES.items():
        used = {
            target.split(".")[0]
            for path in (SOURCE / package).rglob("*.py")
            for _, target in imports_of(path, SOURCE)
        }
        assert modules.keys() - used == set(), package


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
        ("chain/blocks.py", "import os"),
        ("wire/frames.py", "import threading"),
        ("matching/book.py", "from concurrent.futures import ThreadPoolExecutor"),
        ("sync/peers.py", "import anything_else"),
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


@pytest.mark.parametrize(
    "second",
    [
        "from soliton.chain.a import x",
        "def late():\n    from soliton.chain import a",
        "from . import a",
    ],
)
def test_the_checker_sees_a_circle(tmp_path: Path, second: str) -> None:
    source = _tree(tmp_path, "chain/a.py", "from soliton.chain.b import y")
    (source / "chain" / "b.py").write_text(second, encoding="utf-8")
    (source / "chain" / "c.py").write_text("from soliton.chain import a, b", encoding="utf-8")
    assert circles(source) == {frozenset({"soliton.chain.a", "soliton.chain.b"})}


def test_the_checker_sees_a_root_that_imports(tmp_path: Path) -> None:
    assert len(root_violations(_tree(tmp_path, "errors.py", "from soliton.chain import x"))) == 1


def _tree(directory: Path, place: str, text: str) -> Path:
    source = directory / "soliton"
    path = source / place
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return source
