"""``soliton backup`` and ``soliton restore``: all that the services of one configuration keep.

What lives here: the commands. What does not: the work (``backup_files``).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from soliton.cli.backup_files import Place

C = TypeVar("C", bound=Callable[..., Any])

_FILE: Final = click.Path(path_type=Path, dir_okay=False)
_DIRECTORY: Final = click.Path(path_type=Path, file_okay=False)


def _places(command: C) -> C:
    """Add the options that name the services."""
    for option in (
        click.option("--include", type=_FILE, multiple=True, help="One more file; repeatable."),
        click.option("--matcher-config", type=_FILE, help="The configuration file of a matcher."),
        click.option("--data-dir", type=_DIRECTORY, help="Where the node keeps its data."),
        click.option("--config", type=_FILE, help="The configuration file of node and signer."),
        click.option("--network", help="A preset such as waves-mainnet or devnet."),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("directory", type=_DIRECTORY)
@_places
def backup(
    directory: Path,
    network: str | None,
    config: Path | None,
    data_dir: Path | None,
    matcher_config: Path | None,
    include: tuple[Path, ...],
) -> None:
    """Copy what node, wallet, signer and matcher keep on disk to DIRECTORY, while they run."""
    from soliton.cli.backup_files import back_up

    places, name = _chosen(network, config, data_dir, matcher_config, include)
    made = back_up(places, directory, name)
    for place in places:
        if any(part.name.startswith(place.name) for part in made.parts):
            click.echo(f"{place.name:<26} {place.path}")
    size = sum(part.size for part in made.parts)
    click.echo(f"the backup is in {directory}: {len(made.parts)} files, {size:,} bytes")


@click.command()
@click.argument("directory", type=_DIRECTORY)
@_places
@click.option("--check", is_flag=True, help="Only compare the backup with its hashes.")
def restore(
    directory: Path,
    network: str | None,
    config: Path | None,
    data_dir: Path | None,
    matcher_config: Path | None,
    include: tuple[Path, ...],
    check: bool,
) -> None:
    """Put a backup in DIRECTORY back to the places of the settings, which must be empty."""
    from soliton.cli.backup_files import check_backup, put_back, read_backup

    manifest = read_backup(directory)
    if check:
        check_backup(directory, manifest)
        click.echo(f"{len(manifest.parts)} files are in order")
        return
    places, name = _chosen(network, config, data_dir, matcher_config, include)
    found = put_back(places, directory, manifest, name)
    for place in found:
        click.echo(f"{place.name:<26} {place.path}")
    if any(place.name == "signer/state" for place in found):
        click.echo(
            "the signer does not know what it has signed since the backup, and does not start "
            "before you have read docs/how-to/back-up-and-restore.md"
        )


def _chosen(
    network: str | None,
    config: Path | None,
    data_dir: Path | None,
    matcher_config: Path | None,
    include: tuple[Path, ...],
) -> tuple[list[Place], str]:
    """Return the places of the services, and the name of the network."""
    from soliton.cli.backup_files import places_of
    from soliton.cli.matcher_config import matcher_settings
    from soliton.node.settings import load_settings

    settings = load_settings(config, network, data_dir=data_dir)
    matcher = None
    if matcher_config is not None:
        matcher = matcher_settings(matcher_config, network, data_dir)
    configs = {"node.conf": config, "matcher.conf": matcher_config}
    used = {name: path for name, path in configs.items() if path is not None}
    return places_of(settings, matcher, used, include), settings.network.name
