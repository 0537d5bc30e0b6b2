"""The page of compatibility names every release of the reference, and says what is true here."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from datetime import date

import pytest

from soliton.chain.features import IMPLEMENTED
from tests.amounts import only_long
from tests.vectors import REPOSITORY

PAGE = REPOSITORY / "docs" / "reference" / "compatibility.md"
RECORD = tomllib.loads((REPOSITORY / "tests" / "reference_releases.toml").read_text())
ROW = re.compile(r"^\| (\d+\.\d+\.\d+) \|")
SECONDS = 60


def rows() -> list[list[str]]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if ROW.match(line)]


def test_every_release_has_a_row_that_was_checked() -> None:
    assert [row[0] for row in rows()] == RECORD["releases"]
    for *_, checked in rows():
        assert date.fromisoformat(checked) >= RECORD["recorded"]


def test_features_are_said_to_be_here_if_they_are() -> None:
    named = 0
    for _, _, _, features, _, state, _ in rows():
        for feature in features.split():
            named += 1
            assert (int(feature) in IMPLEMENTED) is not state.startswith("no")
    assert named


@only_long
def test_no_newer_compiler_is_published() -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    for name, known in RECORD["npm"].items():
        done = subprocess.run(
            [npm, "view", name, "version"],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if done.returncode:
            pytest.skip("the registry of npm did not answer")
        assert done.stdout.strip() == known, f"{name} has a new release: see {PAGE.name}"
