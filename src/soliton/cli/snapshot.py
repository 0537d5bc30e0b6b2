"""``soliton snapshot``: a chain as files that another node starts from.

What lives here: the commands. What does not: the work (``snapshot_files``).
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from soliton.cli.chosen import UsageProblem
from soliton.cli.helping import CONTEXT

if TYPE_CHECKING:
    from soliton.chain.networks.model import Network
    from soliton.cli.snapshot_checks import Trusted
    from soliton.storage.parts import SnapshotManifest

_DIRECTORY: Final = click.Path(path_type=Path, file_okay=False)
_DATA_DIR: Final = click.option(
    "--data-dir",
    type=_DIRECTORY,
    help="Where the node keeps its data (default: ~/.soliton/<network>).",
)
_NETWORK: Final = click.option("--network", help="A preset such as waves-mainnet or devnet.")
_CONFIG: Final = click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A HOCON configuration file.",
)
_TRUST: Final = click.option(
    "--trust",
    metavar="HEIGHT:HASH",
    help="A block's id or state hash that you know: the snapshot must have that block.",
)


@click.group(context_settings=CONTEXT)
def snapshot() -> None:
    """Snapshots: a chain as files that another node starts from."""


@snapshot.command()
@click.argument("directory", type=_DIRECTORY)
@_NETWORK
@_CONFIG
@_DATA_DIR
@click.option("--copy", is_flag=True, help="Copy all files, even where links would do.")
def create(
    directory: Path, network: str | None, config: Path | None, data_dir: Path | None, copy: bool
) -> None:
    """Write a snapshot of a node's chain to DIRECTORY. The node may run.

    On the file system of the node, large files are hard links: no space is needed at first.
    """
    from soliton.cli.chain_commands import existing
    from soliton.cli.snapshot_files import create_snapshot

    settings = existing(config, network, data_dir)
    made = create_snapshot(settings.data_directory, directory, settings.network, links=not copy)
    _print(made)
    click.echo(f"the snapshot is in {directory}: {len(made.parts)} parts, {made.size:,} bytes")


@snapshot.command()
@click.argument("source", metavar="DIRECTORY|URL")
@_NETWORK
@_CONFIG
@_TRUST
def verify(source: str, network: str | None, config: Path | None, trust: str | None) -> None:
    """Check the parts of a snapshot against their hashes, and the chain in them.

    Of a URL only the parts are checked, which are downloaded and not kept.
    """
    from soliton.cli.part_sources import source_of
    from soliton.cli.snapshot_checks import read_trusted
    from soliton.cli.snapshot_files import (
        check_directory,
        check_files_elsewhere,
        check_network,
        check_source,
    )
    from soliton.storage.parts import decode_manifest

    trusted = None if trust is None else read_trusted(trust)
    is_remote = source.startswith(("http://", "https://"))
    if is_remote and trusted is not None:
        raise UsageProblem("--trust needs the files: download them, or restore with --trust")

    async def check_remote() -> SnapshotManifest:
        remote = source_of(source)
        found = decode_manifest(await remote.manifest())
        check_network(found, _network(found, network, config))
        await check_source(remote, found)
        return found

    if is_remote:
        manifest = asyncio.run(check_remote())
    else:
        manifest = decode_manifest(asyncio.run(source_of(source).manifest()))
        chosen = _network(manifest, network, config)
        check_network(manifest, chosen)
        check_directory(Path(source), manifest)
        check_files_elsewhere(Path(source), manifest, chosen, trusted)
    _print(manifest)
    click.echo(f"{len(manifest.parts)} parts, {manifest.size:,} bytes, are in order")
    if not is_remote:
        _print_trust(trusted)


@snapshot.command()
@click.option("--from", "source", metavar="DIRECTORY|URL", required=True, help="The snapshot.")
@_NETWORK
@_CONFIG
@_DATA_DIR
@_TRUST
def restore(
    source: str,
    network: str | None,
    config: Path | None,
    data_dir: Path | None,
    trust: str | None,
) -> None:
    """Make the chain of a new node from a snapshot: of a directory, a static server or a node.

    The node's data directory must have no chain. What was interrupted goes on where it was.
    """
    from soliton.cli.part_sources import source_of
    from soliton.cli.snapshot_checks import read_trusted
    from soliton.cli.snapshot_files import restore_snapshot
    from soliton.node.settings import load_settings
    from soliton.storage.parts import decode_manifest

    trusted = None if trust is None else read_trusted(trust)

    async def work() -> tuple[SnapshotManifest, Path]:
        chosen = network
        if config is None and network is None:
            remote = source_of(source)
            try:
                chosen = _network(decode_manifest(await remote.manifest()), None, None).name
            finally:
                remote.close()
        settings = load_settings(config, chosen, data_dir=data_dir)
        target = settings.data_directory
        made = await restore_snapshot(source_of(source), target, settings.network, trusted)
        return made, target

    manifest, target = asyncio.run(work())
    _print(manifest)
    click.echo(f"restored to {target}")
    _print_trust(trusted)
    click.echo("`soliton verify` checks every block and record; the node may run meanwhile")


def _network(manifest: SnapshotManifest, network: str | None, config: Path | None) -> Network:
    """Return the chosen network, or the preset that the snapshot names."""
    from soliton.chain import networks
    from soliton.node.settings import load_settings

    if config is not None or network is not None:
        return load_settings(config, network).network
    if manifest.network not in networks.names():
        raise UsageProblem(f"the snapshot is of {manifest.network}, which needs its --config")
    return networks.load(manifest.network)


def _print(manifest: SnapshotManifest) -> None:
    click.echo(f"network {manifest.network}, mode {manifest.mode}, created {manifest.created}")
    click.echo(f"height {manifest.height}")
    click.echo(f"block {manifest.block}")
    click.echo(f"state hash {manifest.state_hash}")


def _print_trust(trusted: Trusted | None) -> None:
    if trusted is None:
        click.echo(
            "nobody has vouched for this chain: compare the block's id with a node that you trust, "
            "or give --trust HEIGHT:HASH"
        )
    else:
        click.echo(f"the block at height {trusted.height} is the trusted one")
    click.echo(
        "the balances are those that the snapshot's author has computed; `soliton verify` compares "
        "them with the records of all blocks"
    )
