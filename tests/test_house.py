"""The rules of the house that a machine can check: docstrings, no loose ends, documents.

What lives here: rules about all of the source at once. What does not: formatting, lint and types
(`make lint`), and who may import whom (`tests/test_architecture.py`).
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.source import lines_of_file, place_of, sources, tree_of
from tests.vectors import REPOSITORY

LOOSE_ENDS = re.compile(r"\b(NotImplementedError|TODO|FIXME|XXX)\b")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def documents() -> list[Path]:
    """The documents that a person reads: those at the top and all below ``docs``."""
    return [*sorted(REPOSITORY.glob("*.md")), *sorted((REPOSITORY / "docs").rglob("*.md"))]


def test_source_has_no_loose_ends() -> None:
    found = [
        f"{place_of(path)}:{number}: {line.strip()}"
        for path in sources("src")
        for number, line in enumerate(lines_of_file(path), 1)
        if LOOSE_ENDS.search(line)
    ]
    assert found == []


def test_every_module_says_what_lives_there() -> None:
    silent = [
        place_of(path)
        for path in sources("src", "benchmarks")
        if not ast.get_docstring(tree_of(path))
    ]
    assert silent == []


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *(line for extra in project["project"]["optional-dependencies"].values() for line in extra),
        *project["dependency-groups"]["dev"],
    ]
    names = {re.split(r"[^A-Za-z0-9_.-]", line, maxsplit=1)[0] for line in wanted}
    text = (REPOSITORY / "docs" / "dependencies.md").read_text(encoding="utf-8")
    told = {match[1] for match in re.finditer(r"^\| `([^`]+)` \|", text, re.MULTILINE)}
    assert names - told == set(), "without a line in docs/dependencies.md"
    assert told - names == set(), "in docs/dependencies.md, but no dependency"


@pytest.mark.parametrize("document", documents(), ids=place_of)
def test_links_lead_somewhere(document: Path) -> None:
    targets = LINK.findall(document.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (document.parent / target).exists()] == []


def test_generated_messages_are_the_networks() -> None:
    """The messages import under our path and carry the network's own package name."""
    from soliton.chain.proto import block_pb2, state_snapshot_pb2, transaction_pb2

    transaction = transaction_pb2.Transaction(chain_id=ord("W"), fee={"amount": 1}, version=3)
    assert transaction.SerializeToString().hex() == "08571a0210012803"
    names = {
        block_pb2.Block.DESCRIPTOR.full_name,
        state_snapshot_pb2.BlockSnapshot.DESCRIPTOR.full_name,
        transaction_pb2.SignedTransaction.DESCRIPTOR.full_name,
    }
    assert names == {"waves.Block", "waves.BlockSnapshot", "waves.SignedTransaction"}
