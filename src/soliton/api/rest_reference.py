"""The page ``docs/reference/rest.md``, generated from the declarations of the routes.

Run this module to write it: ``python -m soliton.api.rest_reference``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from soliton.api.app import all_routes
from soliton.api.routes import Route
from soliton.web.parameters import Place

_HEAD: Final = """\
# Routes of the REST API

A running node shows these routes with their parameters, schemas and examples on its page at
`/api-docs/`, and as an OpenAPI document at `/api-docs/openapi.json` and
`/api-docs/openapi.yaml`. What is common to all of them, and every error, is in
[errors.md](errors.md). Routes with a key want the header `X-API-Key`. Amounts are in the smallest
unit of the coin or asset, times in milliseconds.

What the chain alone answers has an `ETag`, the last block's id: who sends it in `If-None-Match`
gets an empty answer with status 304 until there is another block or microblock. (Lists that are
read while they are sent have none.) Lists that come page by page have a `Link` to the next page,
and some an `order`. Errors may have a `hint`, for a person; where the reference answers with a
sentence in plain text, it is in the header `X-Hint`.

Networks speak one of three generations of this interface: `waves`, `tn` and `zbs`, the oldest.
Answers follow the network: an unknown block, for one, is error 301 on `waves`, an empty answer
with status 404 on `tn`, and `{"status":"error","details":"No block for this height"}` with status
200 on `zbs`. Routes that only some of them have are marked.
"""

_FOOT: Final = "\nThis page is generated from `soliton.api.rest`.\n"


def rest_reference() -> str:
    """The text of the page."""
    by_tag: dict[str, list[Route]] = {}
    for route in all_routes():
        if route.documented:
            by_tag.setdefault(route.tag, []).append(route)
    lines = [_HEAD]
    for tag, routes in by_tag.items():
        lines += [
            f"## {tag}",
            "",
            "| Method | Path | Key | What it does | Errors |",
            "|---|---|---|---|---|",
            *map(_row, routes),
            "",
        ]
    return "\n".join(lines).rstrip("\n") + "\n" + _FOOT


def _row(route: Route) -> str:
    method = "any" if len(route.methods) > 1 else route.methods[0]
    queries = [item.name for item in route.parameters if item.place is Place.QUERY]
    path = route.path + (f"?{'&'.join(f'{name}=' for name in queries)}" if queries else "")
    only = f" (only {_and(route.families)})" if route.families else ""
    codes = sorted({kind.code for kind in route.all_errors()})
    key = "yes" if route.key else ""
    return f"| {method} | `{path}` | {key} | {route.summary}{only} | {', '.join(map(str, codes))} |"


def _and(families: tuple[str, ...]) -> str:
    return " and ".join(f"`{family}`" for family in families)


if __name__ == "__main__":
    Path("docs/reference/rest.md").write_text(rest_reference(), encoding="utf-8")
