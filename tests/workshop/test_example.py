"""The example of a small exchange: its own tests, and its page, done as it is written."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.blocks import blocks, typed
from tests.e2e.programs import PROGRAM, WAIT_SECONDS, devnet
from tests.vectors import REPOSITORY

pytestmark = pytest.mark.slow

EXAMPLE = REPOSITORY / "examples" / "exchange"
PAGE = "docs/how-to/a-small-exchange.md"
GUARD = "there is nothing in the pool"
PROMPT = "(ride) "


def copied(directory: Path) -> Path:
    for path in EXAMPLE.iterdir():
        if path.is_file():
            shutil.copy(path, directory)
    return directory


def run(directory: Path, command: list[str], typed: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=directory,
        input=typed,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=4 * WAIT_SECONDS,
        check=False,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


def test_its_tests_reach_every_line_and_branch(tmp_path: Path) -> None:
    first, measured, _, _ = blocks(PAGE)
    installing, going, testing = first.splitlines()
    (extra,) = re.findall(r"\[(\w+)\]'", installing)
    project = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(rf"^{extra} = \[", project, re.MULTILINE)
    assert going.split() == ["cd", str(EXAMPLE.relative_to(REPOSITORY))]
    # The second command of the two: the same with a report.
    assert measured.startswith(f"{testing} -- ")
    told = typed(measured, copied(tmp_path))
    assert re.search(r"^all .* 0 .* 0  100.0%$", told, re.MULTILINE), told


def test_its_sources_are_tidy(tmp_path: Path) -> None:
    directory = copied(tmp_path)
    names = ["exchange.ride", "treasury.ride"]
    done = run(directory, [str(PROGRAM), "ride", "format", "--check", *names])
    assert (done.returncode, done.stdout) == (0, "")
    _, _, looking, _ = blocks(PAGE)
    linting, estimating = looking.splitlines()
    assert typed(linting, directory) == ""
    assert "swap: " in typed(estimating, directory)


def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    """Each command of the page is run; what the transcripts show is compared line by line."""
    directory = copied(tmp_path)
    faulty = directory / "exchange.ride"
    whole = faulty.read_text(encoding="utf-8").splitlines(keepends=True)
    faulty.write_text("".join(line for line in whole if GUARD not in line), encoding="utf-8")
    assert len(whole) - 1 == len(faulty.read_text(encoding="utf-8").splitlines())
    (deploying,) = [block for block in blocks(PAGE) if "ride deploy" in block]
    transcripts = blocks(PAGE, "console")
    assert len(transcripts) == 2
    with devnet() as program:
        node = ["--node", program.node_url]
        for line in deploying.splitlines():
            done = run(directory, [str(PROGRAM), *shlex.split(line)[1:], *node])
            assert done.returncode == 0, done.stdout
        for transcript in transcripts:
            first, _, expected = transcript.partition("\n")
            words = shlex.split(first.removeprefix("$ "))[1:]
            lines = expected.splitlines()
            typed = [line.removeprefix(PROMPT) for line in lines if line.startswith(PROMPT)]
            done = run(directory, [str(PROGRAM), *words, *node], "\n".join(typed))
            assert done.stdout.splitlines() == lines
