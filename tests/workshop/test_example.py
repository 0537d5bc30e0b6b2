"""The example of a small exchange: its own tests, and its page, done as it is written."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.programs import PROGRAM, WAIT_SECONDS, devnet
from tests.vectors import REPOSITORY

pytestmark = pytest.mark.slow

EXAMPLE = REPOSITORY / "examples" / "exchange"
PAGE = REPOSITORY / "docs" / "how-to" / "a-small-exchange.md"
GUARD = "there is nothing in the pool"
PROMPT = "(ride) "


COVERAGE = """
from collections import defaultdict
from pathlib import Path

import msgspec

from soliton.ride import evaluator
from soliton.ride.expressions import CONSTANTS, Block
from soliton.ride.numbering import numbered
from soliton.ride.observation import Observer
from soliton.ride.script import parse_script
from soliton.ride.source_map import map_known_source

SEEN = defaultdict(set)
EXACTLY = evaluator._run_exactly


class Covering(Observer):
    def note(self, run, expression, scope, value):
        SEEN[run.script.source].add(run.numbering.of(expression))


def run_exactly(script, called, library, context, setting):
    if setting.observer is None:
        setting = msgspec.structs.replace(setting, observer=Covering())
    return EXACTLY(script, called, library, context, setting)


evaluator._entry = lambda *_: None
evaluator._run_exactly = run_exactly


def pytest_terminal_summary(terminalreporter):
    for source, seen in SEEN.items():
        script = parse_script(source)
        for path in Path().glob("*.ride"):
            text = map_known_source(script, path.read_text(encoding="utf-8"))
            if text is None:
                continue
            # A block is what it ends with.
            wanted = {
                number: node
                for number, node in enumerate(numbered(script.content).expressions)
                if not isinstance(node, (*CONSTANTS, Block))
            }
            # What the compiler adds (a strict value that is not itself) stands where it adds it.
            spans = {text.span(number) for number in seen if number is not None}
            for number in wanted.keys() - seen:
                if text.span(number) in spans:
                    del wanted[number]
            covered = len(wanted.keys() & seen)
            terminalreporter.write_line(f"COVERED {path}: {covered} of {len(wanted)}")
            for number in sorted(wanted.keys() - seen):
                place = text.place(number)
                terminalreporter.write_line(f"  {path}:{place.line}:{place.column} {place.text}")
"""
"""A plugin that notes which expressions of scripts a run of tests evaluates."""


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


def blocks(language: str) -> list[str]:
    page = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def test_its_own_tests_pass(tmp_path: Path) -> None:
    options = ("-q", "-p", "soliton.testing.plugin", "-p", "no:cacheprovider", "-p", "no:asyncio")
    done = run(copied(tmp_path), [str(PROGRAM), "ride", "test", "--", *options])
    assert done.returncode == 0, done.stdout
    assert re.search(r"^\d+ passed", done.stdout.splitlines()[-1]), done.stdout


def test_its_tests_evaluate_every_expression(tmp_path: Path) -> None:
    """Every branch of both dApps, by the tests of the example alone."""
    (copied(tmp_path) / "conftest.py").write_text(COVERAGE, encoding="utf-8")
    options = ("-q", "-p", "soliton.testing.plugin", "-p", "no:cacheprovider", "-p", "no:asyncio")
    done = run(tmp_path, [str(PROGRAM), "ride", "test", "--", *options])
    found = re.findall(r"^COVERED (\w+)\.ride: (\d+) of (\d+)$", done.stdout, re.MULTILINE)
    assert {name for name, _, _ in found} == {"exchange", "treasury"}, done.stdout
    assert all(covered == wanted for _, covered, wanted in found), done.stdout


def test_its_sources_are_tidy(tmp_path: Path) -> None:
    directory = copied(tmp_path)
    names = ["exchange.ride", "treasury.ride"]
    for words in (["format", "--check", *names], ["lint", *names]):
        done = run(directory, [str(PROGRAM), "ride", *words])
        assert (done.returncode, done.stdout) == (0, "")


def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    """Each command of the page is run; what the transcripts show is compared line by line."""
    directory = copied(tmp_path)
    faulty = directory / "exchange.ride"
    whole = faulty.read_text(encoding="utf-8").splitlines(keepends=True)
    faulty.write_text("".join(line for line in whole if GUARD not in line), encoding="utf-8")
    assert len(whole) - 1 == len(faulty.read_text(encoding="utf-8").splitlines())
    (deploying,) = [block for block in blocks("") if "ride deploy" in block]
    transcripts = blocks("console")
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
