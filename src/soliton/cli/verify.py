"""``soliton verify``: check the node's store.

A child process reads the store: a file that is truncated while it is read, or a page with invalid
links, crashes only that process, and this one can report it.

What lives here: that process, and printing. What does not: the checks (``soliton.node.verify``).
"""

from __future__ import annotations

import multiprocessing
import signal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import click

from soliton.cli.chain_commands import existing, open_chain
from soliton.errors import SolitonError
from soliton.node.settings import Settings
from soliton.node.verify import Verified, verify
from soliton.storage.errors import DamagedStore, StorageProblem

_WAIT_SECONDS: Final = 5.0


def run_verify(config: Path | None, network: str | None, data_dir: Path | None) -> None:
    """Check the store in the data directory; raises ``DamagedStore`` for the first damage."""
    settings = existing(config, network, data_dir)
    click.echo(f"verifying the chain in {settings.data_directory}", err=True)
    own, other = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_verify, args=(settings, other))
    process.start()
    other.close()
    found = _result(own)
    process.join(_WAIT_SECONDS)
    if isinstance(found, Verified):
        click.echo(
            f"{found.blocks} blocks, {found.transactions} transactions and {found.records} records "
            "are in order"
        )
        return
    if found is not None:
        raise found
    code = process.exitcode or 0
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    raise DamagedStore(f"reading {settings.data_directory} ends the process that does it ({how})")


def _result(pipe: Connection) -> Verified | SolitonError | None:
    """Print the child's progress and return its result, ``None`` if it crashed."""
    try:
        while True:
            found: str | Verified | SolitonError = pipe.recv()
            if not isinstance(found, str):
                return found
            click.echo(found, err=True)
    except EOFError:
        return None


def _verify(settings: Settings, pipe: Connection) -> None:
    """The program of the child process."""
    try:
        with open_chain(settings, writing=False) as chain:
            pipe.send(verify(chain, pipe.send))
    except SolitonError as error:
        # Other exceptions may not be picklable.
        pipe.send(StorageProblem(str(error)))
