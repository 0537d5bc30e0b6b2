"""What a docstring calls by name is there: a module, a function, a field, a word of a table.

What lives here: the search. What does not: names of others, which are written as theirs are, with
capitals inside (``foldActions``), and files of others.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.source import nodes_of, place_of, sources

NAME = re.compile(r"[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)*(?:\(\))?")
QUOTED = re.compile(r"(?<!`)(`{1,2})([^`\n]+)\1(?!`)")
FILES = (".scala", ".java", ".org", ".go")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

NAMING = (
    *(ast.Name, ast.Attribute, ast.arg, ast.keyword, ast.alias, ast.Constant),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
)

FOREIGN: dict[str, str] = {
    "aa": "a name that the compiler makes, as an example",
    "immutable": "a package of Scala's collections",
}
"""Words that look like names of ours, and what they are."""


def known_names() -> set[str]:
    """All that has a name in the source: modules, definitions, fields, words of texts."""
    found: set[str] = set()
    for path in sources("src"):
        found.update(path.with_suffix("").parts)
        nodes = nodes_of(path)
        own = {id(each) for node in nodes if (each := docstring_of(node))}
        for node in nodes:
            if isinstance(node, NAMING) and id(node) not in own:
                found.update(names_of(node))
    return found


def names_of(node: ast.AST) -> Iterator[str]:
    """What one node of a tree names."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.keyword(arg=str(name)):
            yield name
        case ast.alias(name=name):
            yield from name.split(".")
        case ast.Constant(value=str(text)):
            yield from re.findall(r"\w+", text)


def docstring_of(node: ast.AST) -> ast.Constant | None:
    """The text at the beginning of a module, a class or a function."""
    if isinstance(node, DOCUMENTED) and node.body:
        match node.body[0]:
            case ast.Expr(value=ast.Constant(value=str()) as text):
                return text
    return None


def unknown_in(text: str, known: set[str]) -> list[str]:
    """The names in a docstring that nothing has."""
    quoted = (each for _, each in QUOTED.findall(text))
    names = (each.removesuffix("()") for each in quoted if NAME.fullmatch(each))
    return [
        name
        for name in names
        if not name.endswith(FILES) and name not in FOREIGN and set(name.split(".")) - known
    ]


def test_docstrings_name_what_is_there() -> None:
    known = known_names()
    found = [
        f"{place_of(path)}:{text.lineno}: {name}"
        for path in sources("src")
        for node in nodes_of(path)
        if (text := docstring_of(node)) is not None
        for name in unknown_in(str(text.value), known)
    ]
    assert found == []


def test_the_search_sees_what_is_gone() -> None:
    text = "See ``soliton.gone``, `here`, ``foldActions``, `gone_too()` and ``Some.scala``."
    assert unknown_in(text, {"soliton", "here"}) == ["soliton.gone", "gone_too"]
