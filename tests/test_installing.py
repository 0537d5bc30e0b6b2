"""What pages and messages say about installation: commands that exist, extras that there are."""

from __future__ import annotations

import re
import shlex
import subprocess
from importlib.metadata import metadata
from pathlib import Path

import pytest

from tests.blocks import blocks
from tests.vectors import REPOSITORY

PIP_INSTALL = re.compile(r"pip install\s+(?:--?\S+\s+)*'?([\w.-]+)(?:\[([\w,{}-]+)\])?")
EXTRAS = re.compile(r"EXTRAS=([\w,-]+)")
PLACES = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "examples/**/*.md", "src/**/*.py")


def texts() -> dict[str, str]:
    """All that users read, by place; the line ends of a message do not matter."""
    return {
        str(path.relative_to(REPOSITORY)): path.read_text(encoding="utf-8").replace('"\n', "\n")
        for pattern in PLACES
        for path in REPOSITORY.glob(pattern)
    }


def test_what_is_named_to_pip_can_be_installed() -> None:
    """Nothing of ours is registered: pages name the wheel, whose extras have to be there."""
    extras = set(metadata("soliton").get_all("Provides-Extra") or ())
    named = {
        (place, found[1], extra)
        for place, text in texts().items()
        for found in PIP_INSTALL.finditer(text)
        for extra in (found[2] or "").split(",")
    }
    assert len(named) > 8
    ours = {each for each in named if each[1].lower() in ("wheel", "soliton")}
    allowed = ("docs/how-to/install.md", "soliton", "")  # which says that it does not exist
    assert {each for each in ours if each[1] == "soliton"} <= {allowed}
    assert {extra for _, _, extra in ours if "{" not in extra} <= extras | {""}
    to_make = {
        extra
        for text in texts().values()
        for found in EXTRAS.finditer(text)
        for extra in found[1].split(",")
    }
    assert to_make <= extras and "kafka" in to_make


def test_the_package_has_no_extra_for_its_makers() -> None:
    assert "dev" not in (metadata("soliton").get_all("Provides-Extra") or ())


@pytest.mark.parametrize(
    "line",
    [
        line
        for block in blocks("docs/how-to/install.md")
        for line in block.splitlines()
        if line.startswith("make ")
    ],
)
def test_commands_of_make_exist(line: str) -> None:
    program, *rest = shlex.split(line, comments=True)
    command = [program, "--dry-run", "-C", str(REPOSITORY), *rest]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_failed_environment_is_no_half(tmp_path: Path) -> None:
    """As on Debian without its package for ``venv``: the first run says so, and the next one is
    another attempt.
    """
    for name in ("Makefile", "requirements.lock", "pyproject.toml", "hatch_build.py"):
        (tmp_path / name).write_bytes((REPOSITORY / name).read_bytes())
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nmkdir -p .venv/bin\n: >.venv/bin/python\nexit 1\n", "utf-8")
    python.chmod(0o755)
    for _ in range(2):
        command = ["make", "-C", str(tmp_path), "setup", "UV=", f"PYTHON={python}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2 and "apt-get install python3-venv" in done.stdout
        assert not (tmp_path / ".venv").exists()
