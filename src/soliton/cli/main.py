"""The ``soliton`` command: import, rollback, state-hash, run, devnet, signer, matcher, ride.

What lives here: options, and which part of the program a command starts. What does not: the work
itself; it is imported when its command runs, so that ``soliton --help`` is quick.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from soliton import __version__
from soliton.cli.config import config
from soliton.cli.helping import CONTEXT, Commands
from soliton.cli.logs import choose_level, in_force, log_options, use
from soliton.cli.matcher import matcher
from soliton.cli.ride import ride
from soliton.errors import SolitonError

if TYPE_CHECKING:
    from soliton.node.settings import Settings

_DATA_DIR = click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the node keeps its data (default: ~/.soliton/<network>).",
)
_NETWORK = click.option("--network", help="A preset such as waves-mainnet, zbs-testnet or devnet.")
_CONFIG = click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A HOCON configuration file.",
)


@click.group(cls=Commands, context_settings=CONTEXT)
@click.version_option(__version__, prog_name="soliton")
@click.option("--verbose", "-v", is_flag=True, help="Log details: --log-level debug.")
@log_options
def cli(verbose: bool) -> None:
    """A node, signer and matcher of the Waves protocol family."""
    use(in_force())
    if verbose:
        choose_level("debug")


@cli.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@_NETWORK
@_CONFIG
@_DATA_DIR
@click.option("--to-height", type=click.IntRange(min=2), help="Stop after this height.")
def import_command(
    file: Path,
    network: str | None,
    config: Path | None,
    data_dir: Path | None,
    to_height: int | None,
) -> None:
    """Import blocks from FILE (records of u32 length and block), everything verified."""
    from soliton.cli.chain_commands import run_import

    run_import(file, _settings(config, network, data_dir), to_height)


@cli.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@_NETWORK
@_CONFIG
@_DATA_DIR
@click.option("--to-height", type=click.IntRange(min=2), help="Stop after this height.")
def export(
    file: Path,
    network: str | None,
    config: Path | None,
    data_dir: Path | None,
    to_height: int | None,
) -> None:
    """Write the chain's blocks from height 2 on to FILE, in the form that import reads."""
    from soliton.cli.chain_commands import run_export

    run_export(file, config, network, data_dir, to_height)


@cli.command()
@_NETWORK
@_CONFIG
@_DATA_DIR
@click.option(
    "--to-height", type=click.IntRange(min=1), required=True, help="The last height that stays."
)
def rollback(
    network: str | None, config: Path | None, data_dir: Path | None, to_height: int
) -> None:
    """Remove the blocks above a height from the chain in the data directory."""
    from soliton.cli.chain_commands import run_rollback

    run_rollback(config, network, data_dir, to_height)


@cli.command("state-hash")
@click.argument("height", type=click.IntRange(min=1))
@_NETWORK
@_CONFIG
@_DATA_DIR
def state_hash(
    height: int, network: str | None, config: Path | None, data_dir: Path | None
) -> None:
    """Print the state hashes of the block at HEIGHT as JSON."""
    from soliton.cli.chain_commands import run_state_hash

    run_state_hash(config, network, data_dir, height)


@cli.command()
@_NETWORK
@_CONFIG
@_DATA_DIR
def verify(network: str | None, config: Path | None, data_dir: Path | None) -> None:
    """Check the store in the data directory: every block, every record.

    Ends with code 1 at the first damage, and says what to do. A node may run meanwhile.
    """
    from soliton.cli.verify import run_verify

    run_verify(config, network, data_dir)


@cli.command()
@_CONFIG
@_NETWORK
@_DATA_DIR
@click.option("--host", help="Address that the REST API listens on.")
@click.option("--port", type=int, help="Port of the REST API; 0 takes a free one.")
@log_options
def run(
    config: Path | None,
    network: str | None,
    data_dir: Path | None,
    host: str | None,
    port: int | None,
) -> None:
    """Run a node with its REST API until it is stopped."""
    from soliton.cli.run import run_node

    given = {"rest-api.bind-address": host, "rest-api.port": port}
    run_node(_settings(config, network, data_dir, given))


@cli.command()
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the chain here (default: a temporary directory, removed at the end).",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=6869, show_default=True, help="REST API; 0 takes a free one.")
@click.option("--signer-port", default=6888, show_default=True, help="Signer; 0 takes a free one.")
@click.option(
    "--matcher-port", default=6886, show_default=True, help="Matcher; 0 takes a free one."
)
@click.option(
    "--block-time",
    type=click.FloatRange(min=0.05),
    help="Seconds between blocks; without it each transaction is mined at once.",
)
@click.option(
    "--heartbeat",
    type=click.FloatRange(min=0, max=86_400),
    default=10.0,
    show_default=True,
    help="Seconds without a transaction after which an empty block comes; 0 for none.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=0, max=64),
    default=0,
    show_default=True,
    help="Further processes that serve the REST API.",
)
@log_options
def devnet(
    data_dir: Path | None,
    host: str,
    port: int,
    signer_port: int,
    matcher_port: int,
    block_time: float | None,
    heartbeat: float,
    workers: int,
) -> None:
    """Run a private chain: node, REST API, signer and matcher in one process."""
    from soliton.devnet.main import Ports, Rhythm, run_devnet

    ports = Ports(port, signer_port, matcher_port)
    run_devnet(data_dir, host, ports, Rhythm(block_time, heartbeat), workers)


@cli.command()
@_CONFIG
@_NETWORK
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=int, help="Port to listen on; 0 takes a free one.")
@click.option("--node-url", help="The node that transactions are sent to.")
@log_options
def signer(
    config: Path | None,
    network: str | None,
    host: str | None,
    port: int | None,
    node_url: str | None,
) -> None:
    """Run the signer: it signs data transactions from a seed and broadcasts them."""
    from soliton.cli.run import run_signer

    run_signer(
        _settings(
            config,
            network,
            None,
            {"signer.bind-address": host, "signer.port": port, "signer.node-url": node_url},
        )
    )


cli.add_command(config)
cli.add_command(matcher)
cli.add_command(ride)


def _settings(
    config: Path | None,
    network: str | None,
    data_dir: Path | None,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    from soliton.node.settings import load_settings

    settings = load_settings(config, network, data_dir=data_dir, overrides=overrides)
    use(settings.logging)
    if config is None and network is None:
        _tell_default(settings)
    for warning in settings.warnings:
        logging.getLogger("soliton.settings").warning("%s", warning)
    return settings


def _tell_default(settings: Settings) -> None:
    """Nobody has named a network: say which one that is, before its rules surprise."""
    from soliton.cli.chain_commands import UsageProblem
    from soliton.storage.directories import stored_network

    name, found = settings.network.name, stored_network(settings.data_directory)
    if found not in (None, name):
        raise UsageProblem(
            f"{settings.data_directory} holds the chain {found}; without --network and --config it "
            f"would be {name}, the default: give --network {found}, or its --config"
        )
    logging.getLogger("soliton.settings").info("no --network and no --config: %s", name)


def main() -> None:
    """The entry point: errors that we raise on purpose become one line and exit code 1."""
    try:
        cli()
    except SolitonError as error:
        click.echo(f"soliton: {error}{_way_out(error)}", err=True)
        sys.exit(1)


def _way_out(error: SolitonError) -> str:
    """What to add for a person at a terminal."""
    from soliton.web.ports import holder
    from soliton.web.server import PortTaken

    if not isinstance(error, PortTaken):
        return ""
    other = holder(error.port)
    return (f" by {other}" if other else "") + "; --port 0 takes a free one"
