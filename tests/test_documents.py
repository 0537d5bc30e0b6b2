"""Documents that name code are held against it: the walks through the source, and the index.

What lives here: names and places that pages give. What does not: links between pages
(``test_house``), pages that are made from the code (tests of what they are made from).
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.blocks import all_blocks
from tests.source import all_nodes, place_of, tree_of
from tests.test_house import LINK, documents
from tests.vectors import REPOSITORY

SOURCES = REPOSITORY / "src" / "soliton"
DOCS = REPOSITORY / "docs"
WALKS = ("life-of-a-block.md", "life-of-a-transaction.md")
HOP = re.compile(r"^\| (\d+) \| ([^|]*)\| `([\w/]+\.py)` `([\w.]+)` \| [^|]+ \|$")
HEADING = re.compile(r"^## .*: (\d+) hops$")
NAMED_CODE = (*WALKS, "life-of-an-order.md", "architecture.md")
TOUR = "tests/e2e/test_documents.py"
BY_HAND = "tests/e2e/test_how_tos.py"
RUN_BY: dict[str, dict[str, tuple[int, str]]] = {
    "README.md": {
        "": (4, f"{TOUR} {BY_HAND}"),
        "python": (1, "tests/client/test_documents.py"),
    },
    "CONTRIBUTING.md": {"": (2, BY_HAND), "python": (1, BY_HAND)},
    "docs/getting-started.md": {"": (9, f"{TOUR} {BY_HAND}"), "hocon": (1, TOUR)},
    "docs/how-to/a-small-exchange.md": {
        "": (4, "tests/workshop/test_example.py"),
        "console": (2, "tests/workshop/test_example.py"),
    },
    "docs/how-to/back-up-and-restore.md": {"": (2, "tests/cli/test_backup.py")},
    "docs/how-to/choose-a-mode.md": {
        "hocon": (1, "tests/api/rest/test_modes.py"),
        "json": (1, "tests/api/rest/test_modes.py"),
    },
    "docs/how-to/containers.md": {"console": (3, "tests/test_containers.py")},
    "docs/how-to/control-a-devnet.md": {"": (8, TOUR)},
    "docs/how-to/export-to-postgres.md": {"": (1, "tests/export/test_pages.py")},
    "docs/how-to/follow-the-chain.md": {"": (1, TOUR), "python": (1, TOUR)},
    "docs/how-to/fork-a-chain.md": {"": (1, "tests/devnet/test_fork.py")},
    "docs/how-to/get-notices.md": {
        "": (2, "tests/export/test_pages.py"),
        "python": (1, "tests/export/test_pages.py"),
    },
    "docs/how-to/install.md": {
        "": (5, "tests/test_installing.py"),
        "console": (1, "tests/test_deploy.py"),
    },
    "docs/how-to/join-a-network.md": {"": (1, BY_HAND)},
    "docs/how-to/look-into-the-ledger.md": {"python": (7, "tests/ledger/test_notebook.py")},
    "docs/how-to/run-a-matcher.md": {"": (4, BY_HAND)},
    "docs/how-to/run-behind-a-proxy.md": {
        "hocon": (1, "tests/web/test_reverse_proxy.py"),
        "nginx": (3, "tests/web/test_reverse_proxy.py"),
    },
    "docs/how-to/run-a-signer.md": {"": (12, "tests/e2e/test_signer_how_to.py")},
    "docs/how-to/several-matchers.md": {"hocon": (1, BY_HAND)},
    "docs/reference/commands.md": {"": (1, "tests/cli/test_ledger_commands.py")},
    "docs/how-to/simulate-a-network.md": {"": (3, BY_HAND)},
    "docs/how-to/start-from-a-snapshot.md": {"": (5, BY_HAND)},
    "docs/how-to/test-a-dapp.md": {
        "ride": (1, "tests/testing/test_plugin.py"),
        "python": (2, "tests/testing/test_plugin.py"),
    },
    "docs/how-to/trade-with-ccxt.md": {"python": (2, "tests/matcher/ccxt/test_devnet.py")},
    "docs/how-to/try-and-wait.md": {"": (2, TOUR)},
    "docs/how-to/upgrade.md": {"": (1, "tests/storage/test_upgrade.py")},
    "docs/how-to/use-the-library.md": {"python": (11, "tests/client/test_documents.py")},
    "docs/how-to/write-scripts.md": {
        "": (1, BY_HAND),
        "ride": (1, "tests/testing/test_pages.py"),
        "json": (2, f"tests/testing/test_pages.py {BY_HAND}"),
        "lua": (1, BY_HAND),
    },
    "docs/reference/key-files.md": {
        "json": (1, "tests/keystore/test_files.py"),
        "python": (1, "tests/keystore/test_files.py"),
    },
    "docs/reference/scenarios.md": {"toml": (1, "tests/devnet/test_scenario.py")},
    "docs/reference/signer-policy.md": {"toml": (1, "tests/testing/test_pages.py")},
    "docs/reference/signer.md": {
        "python": (1, "tests/testing/test_pages.py"),
        "toml": (1, "tests/testing/test_pages.py"),
        "hocon": (1, BY_HAND),
        "js": (1, "tests/clients/test_provider.py"),
    },
}
"""The blocks of code on each page by their language: how many, and which files of tests run them.
Who adds one to a page adds it to its test, too. What is ``text`` is shown, and nobody types it.
"""
CODE = re.compile(r"`([^`\n]+)`")
MODULE = re.compile(r"(?:[a-z_0-9]+/)*[a-z_0-9]+\.py")
METHOD = re.compile(r"[A-Z]\w*\.[a-z_]\w*")

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Hop(NamedTuple):
    """A row of a walk: ``caller`` is the number of another one, or nothing."""

    number: int
    caller: str
    how: str
    file: str
    name: str


class Walk(NamedTuple):
    """A table, and how many hops its heading tells."""

    title: str
    told: int
    hops: tuple[Hop, ...]


def walks_of(text: str) -> list[Walk]:
    """The walks of a page: those of its parts whose heading tells a number of hops."""
    found = []
    for part in re.split(r"^(?=## )", text, flags=re.MULTILINE):
        lines = part.splitlines()
        heading = HEADING.match(lines[0]) if lines else None
        if heading is None:
            continue
        rows = [match for line in lines if (match := HOP.match(line))]
        hops = []
        for row in rows:
            caller, _, how = row[2].strip().partition(" ")
            hops.append(Hop(int(row[1]), caller, how, row[3], row[4]))
        found.append(Walk(lines[0], int(heading[1]), tuple(hops)))
    return found


def definition(file: Path, name: str) -> Definition | None:
    """The function, class or method with this name."""
    scope: list[ast.stmt] = tree_of(file).body
    found: Definition | None = None
    for part in name.split("."):
        found = next(
            (each for each in scope if isinstance(each, Definition) and each.name == part), None
        )
        if found is None:
            return None
        scope = found.body
    return found


def mentioned(node: ast.AST) -> set[str]:
    """All names and attributes in a piece of source."""
    nodes = all_nodes(node)
    names = {each.id for each in nodes if isinstance(each, ast.Name)}
    return names | {each.attr for each in nodes if isinstance(each, ast.Attribute)}


def faults_of(walk: Walk) -> list[str]:
    """What a walk says that the source does not."""
    faults = []
    if [hop.number for hop in walk.hops] != list(range(1, walk.told + 1)):
        faults.append(f"{walk.title}: the rows are {[hop.number for hop in walk.hops]}")
    found: dict[str, ast.AST] = {}
    for hop in walk.hops:
        file = SOURCES / hop.file
        node = definition(file, hop.name) if file.is_file() else None
        if node is None:
            faults.append(f"hop {hop.number}: no {hop.name} in {hop.file}")
            continue
        found[str(hop.number)] = node
        if hop.how == "table" or hop.number == 1:
            continue
        called = hop.how.removeprefix("as ") if hop.how.startswith("as ") else hop.name
        caller = found.get(hop.caller)
        if caller is None or called.rpartition(".")[2] not in mentioned(caller):
            faults.append(f"hop {hop.number}: {hop.name} is not called by hop {hop.caller!r}")
    return faults


@pytest.mark.parametrize("page", WALKS)
def test_walks_follow_the_source(page: str) -> None:
    walks = walks_of((DOCS / page).read_text(encoding="utf-8"))
    assert len(walks) >= 2
    assert [fault for walk in walks for fault in faults_of(walk)] == []


def test_a_wrong_walk_is_seen() -> None:
    text = """## Wrong: 3 hops

| 1 | | `node/importer.py` `import_blocks` | begins |
| 2 | 1 | `node/importer.py` `_decode` | is called by another one |
| 4 | 2 | `node/importer.py` `Nothing.at_all` | is not there |
"""
    (walk,) = walks_of(text)
    assert len(faults_of(walk)) == 3


def definitions() -> tuple[set[str], set[str]]:
    """All of our modules by the ends of their paths, and ``Class.member`` of all classes."""
    modules, methods = set(), set()
    for path in SOURCES.rglob("*.py"):
        place = path.relative_to(SOURCES).as_posix()
        parts = place.split("/")
        modules |= {"/".join(parts[start:]) for start in range(len(parts))}
        if path.name.endswith("_pb2.py"):
            continue
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef):
                names = {each.name for each in node.body if isinstance(each, Definition)}
                names |= {
                    each.target.id
                    for each in node.body
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
                }
                methods |= {f"{node.name}.{name}" for name in names}
    return modules, methods


@pytest.mark.parametrize("page", NAMED_CODE)
def test_modules_and_methods_exist(page: str) -> None:
    modules, methods = definitions()
    named = CODE.findall((DOCS / page).read_text(encoding="utf-8"))
    missing = [each for each in named if MODULE.fullmatch(each) and not (
        each in modules or (REPOSITORY / each).is_file() or (SOURCES / each).is_file()
    )]  # fmt: skip
    missing += [each for each in named if METHOD.fullmatch(each) and each not in methods]
    assert missing == []


def test_places_in_contributing_exist() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    places = [
        REPOSITORY / (f"src/{each}" if each.startswith("soliton/") else each)
        for each in CODE.findall(text)
        if re.fullmatch(r"(?:src|tests|docs|soliton)/[\w./-]+", each)
    ]
    commands = re.findall(r"python -m ((?:soliton|tests)[\w.]+)", text)
    for name in commands:
        root = REPOSITORY / "src" if name.startswith("soliton") else REPOSITORY
        places.append(root / f"{name.replace('.', '/')}.py")
    assert len(places) > 20 and len(commands) >= 4
    assert [str(place) for place in places if not place.exists()] == []


def test_the_index_names_every_page_once() -> None:
    index = DOCS / "README.md"
    listed = [
        (index.parent / target).resolve()
        for target in LINK.findall(index.read_text(encoding="utf-8"))
        if "://" not in target
    ]
    pages = {path for path in documents() if DOCS in path.parents and path != index}
    assert pages - {*listed} == set(), "not in docs/README.md"
    assert sorted(map(place_of, listed)) == sorted({*map(place_of, listed)}), "listed twice"


def counted(page: Path) -> Counter[str]:
    """The blocks of a page that are more than shown, by language."""
    found = Counter(each.language for each in all_blocks(page.relative_to(REPOSITORY).as_posix()))
    found.pop("text", None)
    return found


def test_every_block_of_code_is_run() -> None:
    """A page with another number of blocks than its tests run has one that nobody has tried."""
    pages = [*documents(), *(REPOSITORY / "examples").rglob("*.md")]
    found = {place_of(each): dict(blocks) for each in pages if (blocks := counted(each))}
    told = {page: {each: row[0] for each, row in rows.items()} for page, rows in RUN_BY.items()}
    assert found == told


@pytest.mark.parametrize("page", RUN_BY)
def test_those_who_run_them_read_the_page(page: str) -> None:
    """They take what they run from it."""
    for _, files in RUN_BY[page].values():
        for file in files.split():
            tree = ast.parse((REPOSITORY / file).read_text(encoding="utf-8"))
            texts = {each.value for each in ast.walk(tree) if isinstance(each, ast.Constant)}
            assert page in texts, f"{file} does not name {page}"


def test_a_block_is_not_overlooked() -> None:
    """However it is fenced: what opens or closes one belongs to one that was found."""
    for path in documents():
        text = path.read_text(encoding="utf-8")
        fences = re.findall(r"^ *(?:```|~~~)", text, re.MULTILINE)
        assert len(fences) == 2 * len(all_blocks(place_of(path))), place_of(path)
