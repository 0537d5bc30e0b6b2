"""The reference of commands is complete: every command with all of its options, and no others."""

from __future__ import annotations

import re

import click
import pytest

from soliton.cli.main import cli
from tests.vectors import REPOSITORY

DOCUMENT = REPOSITORY / "docs" / "reference" / "commands.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")
SECTIONS = re.split(r"^## ", TEXT, flags=re.MULTILINE)


def section_of(name: str) -> str:
    found = [each for each in SECTIONS[1:] if re.match(rf"`soliton {name}[ `]", each)]
    assert len(found) == 1, f"docs/reference/commands.md has no section, or several, on {name}"
    return found[0]


def told_options(section: str) -> set[str]:
    """The options in the first column of the section's table."""
    rows = re.findall(r"^\| (`-.*?) \|", section, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(-[^`]+)`", row)}


def options_of(command: click.Command) -> set[str]:
    return {
        name
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for name in parameter.opts
    }


def test_there_is_a_section_for_each_command() -> None:
    told = [re.match(r"`soliton ([a-z-]+)", each) for each in SECTIONS[1:]]
    assert {match[1] for match in told if match} == set(cli.commands)


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_options_are_all_told(name: str) -> None:
    assert told_options(section_of(name)) == options_of(cli.commands[name])


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_arguments_are_in_the_heading(name: str) -> None:
    heading = section_of(name).splitlines()[0]
    arguments = [
        parameter.human_readable_name
        for parameter in cli.commands[name].params
        if isinstance(parameter, click.Argument)
    ]
    assert heading == " ".join([f"`soliton {name}", *arguments]) + "`"


def test_options_of_the_program_itself_are_told() -> None:
    told = told_options(SECTIONS[0])
    assert options_of(cli) | {"--help"} <= told
