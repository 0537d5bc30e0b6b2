"""Commands that stand behind another one's name: ``soliton export postgres`` and the like.

What lives here: that they are told with all options, and found. What does not: what they do.
"""

from __future__ import annotations

import re

import click
import pytest
from click.testing import CliRunner

from soliton.cli.helping import WithOthers
from soliton.cli.main import cli
from tests.cli.test_reference import TEXT, options_of

OTHERS = {
    f"{name} {other}": command
    for name, parent in cli.commands.items()
    if isinstance(parent, WithOthers)
    for other, command in parent.others.items()
}


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_options_are_all_told(name: str) -> None:
    heading = f"### `soliton {name}`"
    _, found, rest = TEXT.partition(heading + "\n")
    assert found, f"docs/reference/commands.md has no section {heading}"
    section = re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]
    rows = re.findall(r"^\| its (`-.*?) \|", section, re.MULTILINE)
    told = {option for row in rows for option in re.findall(r"`(-[^`]+)`", row)}
    assert told == options_of(OTHERS[name])


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_help_is_there_and_the_parent_names_it(name: str) -> None:
    parent, other = name.split()
    done = CliRunner().invoke(cli, [parent, other, "--help"])
    assert done.exit_code == 0
    assert f"Usage: cli {name}" in done.output
    told = CliRunner().invoke(cli, [parent, "--help"])
    assert re.search(rf"^  {other} ", told.output, re.MULTILINE)


def test_another_word_is_the_commands_own_argument() -> None:
    parent = cli.commands["export"]
    with click.Context(cli) as context:
        made = parent.make_context("export", ["postgres.bin"], context)
    assert made.params["file"].name == "postgres.bin"
