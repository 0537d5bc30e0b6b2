"""Commands that stand behind another one's name: ``soliton export postgres`` and the like.

What lives here: that they have a help text and are found. What does not: their options
(``test_reference``), and what they do.
"""

from __future__ import annotations

import re

import click
import pytest
from click.testing import CliRunner

from soliton.cli.helping import WithOthers
from soliton.cli.main import cli

OTHERS = {
    f"{name} {other}": command
    for name, parent in cli.commands.items()
    if isinstance(parent, WithOthers)
    for other, command in parent.others.items()
}


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
