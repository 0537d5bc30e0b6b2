"""docs/reference/matcher-rest.md names every route and every error of the matcher, and no other."""

from __future__ import annotations

import re

from soliton.matcher.rest.answers import status_of
from soliton.matching.errors import KINDS
from tests.matcher.fakes import Api
from tests.vectors import REPOSITORY

DOCUMENT = REPOSITORY / "docs" / "reference" / "matcher-rest.md"
ROUTE = re.compile(
    r"^\| (GET|POST|PUT|DELETE) \| `([^`]+)` \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE
)
ERROR = re.compile(r"^\| (\d+) \| (\d+) \| (\w+) \| (.*) \|$", re.MULTILINE)


def text() -> str:
    return DOCUMENT.read_text(encoding="utf-8")


async def test_every_route_has_its_row() -> None:
    told = {(row[1], row[2]): (row[3].strip(), row[4].strip()) for row in ROUTE.finditer(text())}
    wanted = {
        (route.method, route.path): (route.auth.name.lower().replace("_", " "), route.summary)
        for route in Api().app.routes
        if route.documented
    }
    assert told == wanted


def test_every_error_has_its_row() -> None:
    told = {int(row[1]): (int(row[2]), row[3], row[4]) for row in ERROR.finditer(text())}
    wanted = {
        kind.code: (status_of(kind), kind.name, " — or — ".join(kind.templates))
        for kind in KINDS.values()
    }
    assert told == wanted
