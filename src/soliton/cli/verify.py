"""``soliton verify``: check the node's store.

What lives here: the command. What does not: the checks (``soliton.node.verify``), the process that
reads what may be damaged (``children``).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from soliton.cli.chain_commands import existing, open_chain
from soliton.cli.children import in_child
from soliton.cli.progress import phases
from soliton.node.settings import Settings
from soliton.node.verify import Verified, verify


def run_verify(config: Path | None, network: str | None, data_dir: Path | None) -> None:
    """Check the store in the data directory; raises ``DamagedStore`` for the first damage."""
    settings = existing(config, network, data_dir)
    click.echo(f"verifying the chain in {settings.data_directory}", err=True)
    with phases("verify") as report:
        found = in_child(str(settings.data_directory), _verify, (settings,), report)
    click.echo(
        f"{found.blocks} blocks, {found.transactions} transactions and {found.records} records "
        "are in order"
    )


def _verify(settings: Settings, report: Callable[[str, int, int], None]) -> Verified:
    """The work of the child process."""
    with open_chain(settings, writing=False) as chain:
        return verify(chain, report)
