"""Commands on the chain of a node that is not running: import, rollback, state-hash.

What lives here: opening the store, showing progress, printing results. What does not: the work
(``soliton.node.importer``, ``soliton.node.chain_writer``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec

from soliton.chain import networks
from soliton.cli.chosen import UsageProblem
from soliton.cli.progress import BYTES, Report, progress
from soliton.crypto import base58
from soliton.errors import EnvironmentProblem
from soliton.node.chain_writer import ChainWriter, open_store
from soliton.node.importer import import_blocks
from soliton.node.settings import Settings, load_settings
from soliton.node.state_hash_json import state_hash_json
from soliton.storage.directories import stored_network
from soliton.storage.errors import StoreFull
from soliton.storage.files import replace_file


class FileProblem(EnvironmentProblem):
    """An output file of a command cannot be written."""


@contextmanager
def open_chain(settings: Settings, *, writing: bool) -> Iterator[ChainWriter]:
    """Open the chain in the settings' data directory, and close it afterwards.

    Only one process at a time can be ``writing``; others may read.
    """
    store = open_store(settings, writes=writing)
    try:
        yield ChainWriter(settings.network, store)
    finally:
        try:
            store.discard_pending()
        finally:
            store.close()


def run_import(path: Path, settings: Settings, to_height: int | None) -> None:
    """Import a file and print the last block, also when an invalid record ended it."""
    with open_chain(settings, writing=True) as chain, path.open("rb") as file:
        started, first = time.monotonic(), chain.height
        click.echo(f"importing {path} into {settings.network.name} from height {first}", err=True)
        try:
            by_height = to_height is not None
            total = to_height - first if to_height is not None else path.stat().st_size
            with progress("import", total, "blocks" if by_height else BYTES) as report:

                def show(height: int) -> None:
                    done = height - first if by_height else file.tell()
                    report(done, f"height {height}")

                import_blocks(chain, file, to_height, show)
        except StoreFull as error:
            raise StoreFull(
                f"{error}; make room and import again: it goes on after height {chain.height}"
            ) from error
        finally:
            # Ctrl-C interrupts a batch: report only what was stored.
            chain.discard_pending()
            seconds = time.monotonic() - started
            added = chain.height - first
            click.echo(f"{added} blocks in {seconds:.1f} s", err=True)
            print_tip(chain)


def print_tip(chain: ChainWriter) -> None:
    """Print height, id and state hash of the last block, one line each."""
    meta = chain.meta(chain.height)
    click.echo(f"height {chain.height}")
    click.echo(f"block {base58.encode(meta.id)}")
    click.echo(f"state hash {meta.state_hash.hex()}")


def run_export(
    path: Path,
    config: Path | None,
    network: str | None,
    data_dir: Path | None,
    to_height: int | None,
    *,
    changed_by_hand: bool = False,
) -> None:
    """Write blocks to a file, atomically. Blocks that were ``changed_by_hand``, which no node would
    accept, are refused unless they are requested.
    """
    with open_chain(existing(config, network, data_dir), writing=False) as chain:
        last = chain.height if to_height is None else min(to_height, chain.height)
        first = chain.store.first_by_hand()
        if first is not None and first <= last and not changed_by_hand:
            raise UsageProblem(
                f"the chain was changed by hand from height {first} on: no node would accept its "
                f"blocks. --to-height {first - 1} leaves them out, --changed-by-hand writes them"
            )
        if last > 1:
            # Before the file is begun.
            chain.store.kept.need_block(2)
        try:
            with progress("export", last, "blocks") as report:
                replace_file(path, _exported(chain, last, report))
        except OSError as error:
            raise FileProblem(f"{path} cannot be written: {error.strerror}") from error
    click.echo(f"{last - 1} blocks, heights 2 to {last}, in {path}")


def _exported(chain: ChainWriter, last: int, report: Report) -> Iterator[bytes]:
    """Yield the blocks up to a height in the format of a file."""
    for height in range(2, last + 1):
        data = chain.block_at(height).data
        yield len(data).to_bytes(4, "big") + data
        report(height)


def run_rollback(
    config: Path | None, network: str | None, data_dir: Path | None, to_height: int
) -> None:
    """Remove blocks and print the last block."""
    with open_chain(existing(config, network, data_dir), writing=True) as chain:
        if to_height > chain.height:
            raise UsageProblem(f"the chain is at height {chain.height}, below {to_height}")
        chain.rollback(to_height)
        print_tip(chain)


def run_state_hash(
    config: Path | None, network: str | None, data_dir: Path | None, height: int
) -> None:
    """Print the state hashes of a block as the REST API returns them."""
    with open_chain(existing(config, network, data_dir), writing=False) as chain:
        if height > chain.height:
            raise UsageProblem(f"the chain is at height {chain.height}, below {height}")
        answer = state_hash_json(chain, height)
        click.echo(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode())


def existing(config: Path | None, network: str | None, data_dir: Path | None) -> Settings:
    """Load the settings of an existing chain; the store determines an unspecified network."""
    settings = load_settings(config, network, data_dir=data_dir)
    found = stored_network(settings.data_directory)
    if found is None:
        raise UsageProblem(f"there is no chain in {settings.data_directory}")
    if config is None and network is None:
        if found not in networks.names():
            raise UsageProblem(f"the chain {found} needs its --config")
        settings = load_settings(None, found, data_dir=data_dir)
    return settings
