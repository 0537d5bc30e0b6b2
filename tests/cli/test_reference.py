"""The reference of commands is complete: every command with all of its options, and no others."""

from __future__ import annotations

import re

import click
import pytest

from soliton.cli.helping import WithOthers
from soliton.cli.main import cli
from tests.vectors import REPOSITORY

DOCUMENT = REPOSITORY / "docs" / "reference" / "commands.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")
SECTIONS = re.split(r"^##+ ", TEXT, flags=re.MULTILINE)

COMMANDS: dict[str, click.Command] = {
    **cli.commands,
    **{
        f"{name} {other}": command
        for name, each in cli.commands.items()
        if isinstance(each, WithOthers)
        for other, command in each.others.items()
    },
}
"""The commands with a section of their own."""
GROUPS = {name: each for name, each in cli.commands.items() if isinstance(each, click.Group)}


def section_of(name: str) -> str:
    found = [each for each in SECTIONS[1:] if re.match(rf"`soliton {name}( [A-Z]+)*`\n", each)]
    assert len(found) == 1, f"docs/reference/commands.md has no section, or several, on {name}"
    return found[0]


def documented_options(section: str) -> set[str]:
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
    headings = [re.match(r"`soliton ([a-z -]+[a-z])", each) for each in SECTIONS[1:]]
    assert {match[1] for match in headings if match} == set(COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_all_options_are_documented(name: str) -> None:
    assert documented_options(section_of(name)) == options_of(COMMANDS[name])


@pytest.mark.parametrize("name", sorted(GROUPS))
def test_a_group_documents_its_commands(name: str) -> None:
    section = section_of(name)
    for each, command in GROUPS[name].commands.items():
        assert f"`soliton {name} {each}" in section or f"`{each}" in section
        missing = {option for option in options_of(command) if f"`{option}" not in section}
        assert not {option for option in missing if option.startswith("--")}, each


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_arguments_are_in_the_heading(name: str) -> None:
    heading = section_of(name).splitlines()[0]
    arguments = [
        parameter.human_readable_name
        for parameter in COMMANDS[name].params
        if isinstance(parameter, click.Argument)
    ]
    assert heading == " ".join([f"`soliton {name}", *arguments]) + "`"


def test_options_of_the_program_itself_are_documented() -> None:
    assert options_of(cli) | {"--help"} <= documented_options(SECTIONS[0])
