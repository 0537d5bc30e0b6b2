"""Pages of the manual, made of the commands: ``python -m soliton.cli.man_pages DIRECTORY``.

What lives here: one page for the program and one for each of its commands, in the macros of
``man(7)``. What does not: words; they are those of ``--help``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from soliton import __version__
from soliton.cli.helping import WithOthers
from soliton.cli.main import cli

DOCUMENTS: Final = "docs/reference in the source has the settings, the routes and the errors."
_WHOLE: Final = 10_000


def pages() -> Iterator[tuple[str, str]]:
    """Yield name and text of each page."""
    names = sorted(cli.commands)
    parts = [*_head("soliton", cli), *_options(click.Context(cli, info_name="soliton"))]
    parts.append(".SH COMMANDS")
    for name in names:
        summary = cli.commands[name].get_short_help_str(_WHOLE)
        parts += [".TP", rf"\fBsoliton {_escaped(name)}\fR", _escaped(summary)]
    parts += [".SH SEE ALSO", ", ".join(rf"\fBsoliton\-{_escaped(each)}\fR(1)" for each in names)]
    parts += [".PP", _escaped(DOCUMENTS)]
    yield "soliton.1", "\n".join(parts) + "\n"
    for name in names:
        lines = [*_head(f"soliton {name}", cli.commands[name]), *_command(name, cli.commands[name])]
        lines += [".SH SEE ALSO", r"\fBsoliton\fR(1)"]
        yield f"soliton-{name}.1", "\n".join(lines) + "\n"


def _head(name: str, command: click.Command) -> list[str]:
    title = name.replace(" ", "-")
    summary = command.get_short_help_str(_WHOLE).rstrip(".")
    return [
        f'.TH "{_escaped(title.upper())}" 1 "" "soliton {__version__}" "Soliton"',
        *(".SH NAME", rf"{_escaped(title)} \- {_escaped(summary)}"),
    ]


def _command(name: str, command: click.Command) -> list[str]:
    """Return everything about a command, and about the commands below it."""
    context = click.Context(command, info_name=f"soliton {name}")
    lines = [".SH SYNOPSIS", _synopsis(context), ".SH DESCRIPTION", *_help(command)]
    lines += _options(context)
    below = dict(_below(name, command))
    for each in below.values():
        inner = each.command
        lines += [f'.SH "{_escaped(str(each.info_name).upper())}"', _synopsis(each), ".PP"]
        lines += [*_help(inner), *_options(each, ".PP")]
    return lines


def _below(name: str, command: click.Command) -> Iterator[tuple[str, click.Context]]:
    others = command.others if isinstance(command, WithOthers) else {}
    others = command.commands if isinstance(command, click.Group) else others
    for other in sorted(others):
        inner = others[other]
        full = f"{name} {other}"
        yield full, click.Context(inner, info_name=f"soliton {full}")
        yield from _below(full, inner)


def _synopsis(context: click.Context) -> str:
    words = " ".join(context.command.collect_usage_pieces(context))
    return rf"\fB{_escaped(str(context.info_name))}\fR {_escaped(words)}"


def _help(command: click.Command) -> list[str]:
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    lines: list[str] = []
    for each in paragraphs:
        lines += [".PP", _escaped(" ".join(each.replace("\b", "").split()))]
    return lines[1:]


def _options(context: click.Context, heading: str = ".SH OPTIONS") -> list[str]:
    records = [each.get_help_record(context) for each in context.command.get_params(context)]
    lines = [heading]
    for record in records:
        if record is not None:
            lines += [".TP", rf"\fB{_escaped(record[0])}\fR", _escaped(record[1])]
    return lines


def _escaped(text: str) -> str:
    """Return text in which no character means anything to roff; none of ours begins a line."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    text = "".join(each if each.isascii() else f"\\[u{ord(each):04X}]" for each in text)
    return rf"\&{text}" if text[:1] in (".", "'") else text


def main() -> None:
    """Write all pages."""
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in pages():
        (directory / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
