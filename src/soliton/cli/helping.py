"""``--help`` of all commands: ``-h`` as well, and summaries that are not cut.

What lives here: how click shows commands. What does not: the commands.
"""

from __future__ import annotations

from typing import Final

import click

CONTEXT: Final = {"help_option_names": ["-h", "--help"]}
_WHOLE: Final = 10_000


class Commands(click.Group):
    """A group whose commands are listed with the whole first sentence of their help."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list, broken into lines where it has to be."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, command.get_short_help_str(_WHOLE))
            for name, command in commands
            if command is not None and not command.hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)
