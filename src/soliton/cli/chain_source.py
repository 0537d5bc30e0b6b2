"""The source of the chain for commands that follow it.

What lives here: the options and their record. What does not: opening the chain (``export_run``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click


class ChainSource(NamedTuple):
    """The source of the chain: a node's URL, or a data directory and its network."""

    node_url: str | None
    data_dir: Path | None
    network: str | None
    config: Path | None


def chain_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for the source of the chain to a command, which gets them as ``where``."""

    @functools.wraps(command)
    def run(
        *,
        from_node: str | None,
        data_dir: Path | None,
        network: str | None,
        config: Path | None,
        **given: Any,  # noqa: ANN401 - the other options
    ) -> None:
        command(where=ChainSource(from_node, data_dir, network, config), **given)

    for option in reversed(_OPTIONS):
        run = option(run)
    return run


finalized_option = click.option(
    "--finalized",
    is_flag=True,
    help="Only final blocks; it is an error if one is taken back.",
)
"""For commands that can wait until no fork replaces a block any more."""

_OPTIONS = (
    click.option("--from-node", metavar="URL", help="Read the chain over a node's REST interface."),
    click.option(
        "--data-dir",
        type=click.Path(path_type=Path, file_okay=False),
        help="Read the chain in a node's data directory (default: ~/.soliton/<network>).",
    ),
    click.option("--network", help="A preset such as waves-mainnet or devnet."),
    click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False, exists=True),
        help="The node's configuration file.",
    ),
)
