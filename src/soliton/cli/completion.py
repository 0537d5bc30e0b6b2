"""``soliton completion``: the script by which a shell completes commands, options and files.

What lives here: printing it. What does not: the completion, which is click's: the script calls the
program with ``_SOLITON_COMPLETE`` set.
"""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from soliton.errors import InvariantBroken

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_SOLITON_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes soliton's commands in SHELL.

    For bash: eval "$(soliton completion bash)" in ~/.bashrc; for zsh the same in ~/.zshrc; for
    fish: soliton completion fish >~/.config/fish/completions/soliton.fish
    """
    click.echo(script(shell))


def script(shell: str) -> str:
    """Return the script for one of ``SHELLS``."""
    # Of bash click would run the one of this machine, which need not be the one that reads it.
    kind = get_completion_class(shell)
    if kind is None:
        raise InvariantBroken(f"click has no completion for {shell}")
    root = click.get_current_context().find_root().command
    return ShellComplete.source(kind(root, {}, "soliton", VARIABLE))
