"""Blocks of code in the documents, and commands of them as a reader types them.

What lives here: finding them, running those of a shell. What does not: what they should do; each
test that runs some has its row in ``tests/test_documents.py``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e.programs import PROGRAM
from tests.vectors import REPOSITORY

SECONDS = 300
"""Far more than any takes: a rollback waits for the disk after each of its thousands of blocks."""
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """One of them; commands have no ``language``."""

    language: str
    text: str


def all_blocks(page: str) -> list[Block]:
    """Those of a page, which is named from the top of the repository."""
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    return [Block(each[2], textwrap.dedent(each[3])) for each in _BLOCK.finditer(text)]


def blocks(page: str, language: str = "") -> list[str]:
    """Those in one language."""
    return [each.text for each in all_blocks(page) if each.language == language]


def typed(
    script: str, directory: Path, places: Mapping[str, object] | None = None, code: int = 0
) -> str:
    """What commands print that are typed in a directory, with ``places`` in place of others; they
    end with a ``code``. Skips where they need a program that is not installed.
    """
    if "curl " in script and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    for place, other in {".venv/bin/": f"{PROGRAM.parent}/", **(places or {})}.items():
        script = script.replace(place, str(other))
    path = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-e", "-c", script],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={**os.environ, "PATH": path, "HOME": str(directory)},
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout
