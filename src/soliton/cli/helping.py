"""The format of ``--help`` of all commands, and of untrusted text on the terminal.

What lives here: the option ``-h``, summaries that are not truncated. What does not: the commands.
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

CONTEXT: Final = {"help_option_names": ["-h", "--help"]}
_WHOLE: Final = 10_000


def printable(text: str) -> str:
    """Return untrusted text with control characters replaced, so that it is safe on a terminal."""
    return "".join(each if each.isprintable() else "\ufffd" for each in text)


class ImportedLater(UserDict[str, Any]):
    """Commands by their names, each given as ``module:name`` and imported when it is looked up.

    Most starts of the program need one command; the modules of all take half the time of a start.
    """

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 - a command, as ``click.Group`` wants it
        """Return a command."""
        found = super().__getitem__(key)
        if isinstance(found, str):
            module, _, name = found.partition(":")
            found = self.data[key] = getattr(import_module(module), name)
        return found


class Commands(click.Group):
    """A group whose commands are listed with the whole first sentence of their help."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, command.get_short_help_str(_WHOLE))
            for name, command in commands
            if command is not None and not command.hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


class WithOthers(click.Command):
    """A command whose first argument may name another command instead."""

    def __init__(self, *args: Any, others: Mapping[str, click.Command], **kwargs: Any) -> None:  # noqa: ANN401 - click's own
        super().__init__(*args, **kwargs)
        self.others = others

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401 - click's own
    ) -> click.Context:
        """Return the context of this command, or of the named one."""
        other = self.others.get(args[0]) if args else None
        if other is None:
            return super().make_context(info_name, args, parent, **extra)
        return other.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return what completes a first argument where this command has none of its own."""
        return [*_others(self, incomplete), *super().shell_complete(ctx, incomplete)]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of the other commands."""
        del ctx
        rows = [(name, other.get_short_help_str(_WHOLE)) for name, other in self.others.items()]
        with formatter.section("Instead, with a first argument"):
            formatter.write_dl(rows)


def complete_file_or_other(
    ctx: click.Context, _: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return what completes the first argument of ``WithOthers`` that is a file."""
    # Shells drop what stands before files.
    return [CompletionItem(incomplete, type="file"), *_others(ctx.command, incomplete)]


def _others(command: click.Command, incomplete: str) -> list[CompletionItem]:
    names = command.others if isinstance(command, WithOthers) else ()
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
