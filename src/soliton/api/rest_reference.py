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
`/api-docs/openapi.yaml`. Common rules and all errors are in [errors.md](errors.md). Routes with a
key require the header `X-API-Key`. Amounts are in the smallest unit of the coin or asset, times in
milliseconds.

Answers that depend only on the chain have an `ETag`, the last block's id: a request with it in
`If-None-Match` gets an empty answer with status 304 until there is another block or microblock.
(Streamed lists have none.) Paged lists have a `Link` to the next page, and some an `order`. Errors
may have a `hint` for a person; where the reference answers in plain text, it is in the header
`X-Hint`.

Networks have one of three generations of this interface: `waves`, `tn` and `zbs`, the oldest.
Answers follow the network: an unknown block, for example, is error 301 on `waves`, an empty answer
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
