"""Every row of the table of routes in three generations: served by the networks that should.

The rows of other programs (signer, matcher, services beside the node) are not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from soliton.api.app import build_app
from soliton.api.application import Application
from soliton.api.routes import ANY_METHOD
from tests.api.chain import PrivateChain
from tests.api.client import call, make_context
from tests.vectors import report

FAMILIES: Final = {"zbs": 8, "tn": 9, "waves": 10}
"""Each family with the column of the table that tells of it."""
OTHERS: Final = ("ride-runner", "signer", "matcher", "public data service")
"""Sections of programs other than the node."""
ELSEWHERE: Final = {
    ("OPTIONS", "any path"): "answered before any route: test_application",
    ("GET", "/api-docs/index.html and static files"): "files: test_openapi",
}


class Row(NamedTuple):
    """One method and path of a row; ``families`` have it."""

    number: int
    method: str
    path: str
    families: frozenset[str]


def table(shared: Path) -> Iterator[Row]:
    section = ""
    for line in (shared / "facts" / "rest-routes.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)]
        if not section.startswith(OTHERS) and len(cells) > 11 and cells[1].isdecimal():
            yield from rows_of(cells)


def rows_of(cells: list[str]) -> Iterator[Row]:
    has = {family for family, column in FAMILIES.items() if served(cells[column])}
    method, path = cells[2], cells[3].strip("`")
    if (method, path) in ELSEWHERE:
        return
    if " · " in path:
        # The name of the coin is in the path: each family has one of them.
        for family, each in zip(FAMILIES, path.split(" · "), strict=True):
            yield Row(int(cells[1]), method, shape(each), frozenset((family,)))
        return
    for each in path.split(", "):
        yield Row(int(cells[1]), method, shape(each), frozenset(has))


def served(cell: str) -> bool:
    return not cell.startswith("–") and "not in code" not in cell


def shape(path: str) -> str:
    """The path without queries and without the names of its parameters."""
    return re.sub(r"{\w+}", "{}", path.partition("?")[0])


def shapes(app: Application) -> set[tuple[str, str]]:
    return {(method, shape(route.path)) for route in app.routes for method in route.methods}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_row_is_served_where_it_should_be(family: str, shared: Path, tmp_path: Path) -> None:
    chain = PrivateChain(tmp_path, family=family)
    try:
        ours = shapes(chain.app)
    finally:
        chain.node.close()
    # Some rows are one route with different queries.
    wanted = {(row.method, row.path) for row in table(shared) if family in row.families}
    missing = [
        (method, path)
        for method, path in sorted(wanted)
        if not all((each, path) in ours for each in (ANY_METHOD if method == "ANY" else (method,)))
    ]
    assert not missing
    report.ran(f"rows of routes, {family}", len(wanted))


async def test_the_rest_of_the_table() -> None:
    app = build_app(make_context())
    assert (await call(app, "OPTIONS /any/path")).status == 200
    assert (await call(app, "GET /api-docs/index.html")).status == 200
