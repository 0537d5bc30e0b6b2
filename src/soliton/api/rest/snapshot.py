"""``/snapshot``: the parts of a snapshot that the operator offers for ``soliton snapshot restore``.
No other node has it.

What lives here: the route. What does not: sending files (``soliton.api.downloads``), what a
snapshot is (``soliton.storage.parts``).
"""

from __future__ import annotations

from typing import Final

from soliton.api.application import NOT_FOUND
from soliton.api.http import Request
from soliton.api.lookup import node_of
from soliton.api.route_table import row, table
from soliton.storage.checkpoint import is_part
from soliton.storage.parts import MANIFEST_NAME
from soliton.web.answers import Stream, Whole


def part(request: Request) -> Stream | Whole:
    """Send a file of the snapshot in ``rest-api.snapshot-directory``."""
    directory = node_of(request).settings.rest_api.snapshot_directory
    name = request.text("file")
    if directory is None or not (name == MANIFEST_NAME or is_part(name)):
        return NOT_FOUND
    downloads = request.context.downloads
    return downloads.answer(directory / name, request.header("range")) or NOT_FOUND


ROUTES: Final = table("node", """
file | text | `manifest.json`, or the name of a part in it | manifest.json
""",
    row("GET /snapshot/{file}", part,
        "A part of the snapshot in `rest-api.snapshot-directory`; `Range` is known",
        {"type": "string", "format": "binary"}, "", "TOO_MANY_LONG_ANSWERS",
        statuses=((206, "The range that was asked for"), (404, "There is none"),
            (416, "The range begins behind the end")),
        content_type="application/octet-stream"),
    own=True,
)  # fmt: skip
