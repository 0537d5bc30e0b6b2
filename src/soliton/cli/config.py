"""``soliton config``: check and explain configurations.

What lives here: options. What does not: the work (``config_reports``), which is imported when a
command runs.
"""

from __future__ import annotations

from pathlib import Path

import click

from soliton.cli.helping import Commands

_NETWORK = click.option("--network", help="A preset such as waves-mainnet; overrides the file.")


@click.group(cls=Commands)
def config() -> None:
    """Check a configuration file, or explain the settings in force."""


@config.command("check")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@_NETWORK
@click.pass_context
def check_command(context: click.Context, file: Path, network: str | None) -> None:
    """Print every problem of a node's, signer's or matcher's FILE with its line.

    The exit code is 1 if there is one. Settings without effect are printed as notes.
    """
    from soliton.cli.config_reports import check

    context.exit(check(file, network))


@config.command("explain")
@click.argument("keys", nargs=-1)
@click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A HOCON configuration file.",
)
@_NETWORK
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="The node's data directory; overrides the file.",
)
def explain_command(
    keys: tuple[str, ...], file: Path | None, network: str | None, data_dir: Path | None
) -> None:
    """Print the settings in force, the origin of each, and its meaning.

    With KEYS, only those and the ones below them: rest-api, miner.quorum.
    """
    from soliton.cli.config_reports import explain

    explain(keys, file, network, data_dir)
