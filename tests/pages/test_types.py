"""The types that the pages' scripts say in their comments, checked by TypeScript."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.amounts import only_long
from tests.vectors import REPOSITORY

COMPILER = REPOSITORY / "tests" / "clients" / "node_modules" / ".bin" / "tsc"
STATIC = REPOSITORY / "src" / "soliton" / "pages" / "static"
OPTIONS = {
    "allowJs": True,
    "checkJs": True,
    "noEmit": True,
    "strict": True,
    # What the browser has is not ours to check.
    "skipLibCheck": True,
    "target": "es2022",
    "module": "es2022",
    "moduleResolution": "bundler",
    "lib": ["es2022", "dom", "dom.iterable"],
    "types": [],
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed"),
    pytest.mark.skipif(not COMPILER.exists(), reason="`make clients` was not run: no TypeScript"),
]


def compiled(folder: Path, *files: Path) -> str:
    """What the compiler has to say about some files."""
    project = folder / "tsconfig.json"
    project.write_text(json.dumps({"compilerOptions": OPTIONS, "files": [*map(str, files)]}))
    done = subprocess.run(
        ["node", COMPILER, "--project", project], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_types_of_all_scripts_hold(tmp_path: Path) -> None:
    assert compiled(tmp_path, *sorted(STATIC.glob("*.js"))) == ""


@only_long
def test_a_wrong_type_would_be_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.js"
    wrong.write_text("// A fault.\n/** @type {number} */\nexport const x = 'no number';\n")
    assert "wrong.js(3,14): error TS2322" in compiled(tmp_path, wrong)
