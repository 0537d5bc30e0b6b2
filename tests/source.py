"""Our Python files, read and parsed once for all tests that look through the whole source.

What lives here: texts, trees and their nodes, kept for the run. What does not: rules about them
(``test_house``, ``test_architecture``, ``test_names``, ``test_patterns``).
"""

from __future__ import annotations

import ast
import gc
import os
from functools import cache
from pathlib import Path

from tests.vectors import REPOSITORY


def sources(*directories: str) -> list[Path]:
    """Our Python files below the given directories of the repository, generated ones left out."""
    return [path for directory in directories for path in _files_below(REPOSITORY / directory)]


@cache
def _files_below(directory: Path) -> tuple[Path, ...]:
    found = []
    for place, names, files in os.walk(directory):
        # Tens of thousands of files of others are not even looked at.
        names[:] = sorted({*names} - {"node_modules", ".venv", "__pycache__"})
        found += [Path(place, name) for name in files if name.endswith(".py")]
    return tuple(sorted(path for path in found if not path.name.endswith("_pb2.py")))


@cache
def lines_of_file(path: Path) -> tuple[str, ...]:
    """The lines of a file."""
    return tuple(path.read_text(encoding="utf-8").splitlines())


@cache
def tree_of(path: Path) -> ast.Module:
    """A file, parsed."""
    # There is no garbage in a tree, and a search for some would go through all of them.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        if collecting:
            gc.enable()


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file, as ``ast.walk`` goes through them, but for marks of loading and
    storing.
    """
    return all_nodes(tree_of(path))


def all_nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """A node and all below it, in the order of ``ast.walk``."""
    found = [tree]
    for node in found:
        for value in vars(node).values():
            if type(value) is list:
                found += [each for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                found.append(value)
    return tuple(found)


def place_of(path: Path) -> str:
    """The path as it is written in messages."""
    return path.relative_to(REPOSITORY).as_posix()
