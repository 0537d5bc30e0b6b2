"""What ``soliton config explain`` says about each setting, made from the reference pages.

``python -m tests.cli.meanings`` writes it anew, after a page has changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from tests.vectors import REPOSITORY

PATH: Final = REPOSITORY / "src" / "soliton" / "cli" / "meanings.toml"
_PAGES: Final = {"node": "settings.md", "matcher": "matcher-settings.md"}
_HEAD: Final = "# What each setting means, in the words of docs/reference; a test compares."


def meanings() -> Mapping[str, Mapping[str, str]]:
    """The last column of the pages' tables by setting, without marks and links."""
    return {table: dict(_rows(page)) for table, page in _PAGES.items()}


def _rows(page: str) -> list[tuple[str, str]]:
    text = (REPOSITORY / "docs" / "reference" / page).read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z0-9.-]+)` \| .* \| (.*) \|$", text, re.MULTILINE)
    return [
        (key, re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", meaning).replace("`", ""))
        for key, meaning in rows
    ]


def main() -> None:
    """Write the file."""
    lines = [_HEAD]
    for table, rows in meanings().items():
        lines += ["", f"[{table}]"]
        lines += [
            f"{json.dumps(key)} = {json.dumps(text, ensure_ascii=False)}"
            for key, text in rows.items()
        ]
    PATH.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
