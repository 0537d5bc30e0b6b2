"""The ``soliton`` command: import, rollback, state-hash, run, devnet, simulate, matcher …

What lives here: options, and the function that each command calls. What does not: the work itself;
it is imported when its command runs, so that ``soliton --help`` is fast.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from pathlib import Path
from typing import NoReturn

import click

from soliton import __version__
from soliton.cli.chosen import chosen_settings
from soliton.cli.helping import (
    CONTEXT,
    Commands,
    ImportedLater,
    WithOthers,
    complete_file_or_other,
)
from soliton.cli.logs import choose_level, configure_log, current_log, log_options
from soliton.cli.quantities import MILLISECONDS, SHARE, WHOLE, WholeRange
from soliton.errors import SolitonError
from soliton.revision import revision

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
_OTHER_MODULES = ImportedLater(
    {
        "account": "soliton.cli.ledger_commands:account",
        "alias": "soliton.cli.ledger_commands:alias",
        "api-key": "soliton.cli.keys:api_key",
        "asset": "soliton.cli.ledger_commands:asset",
        "backup": "soliton.cli.backup:backup",
        "balance": "soliton.cli.ledger_commands:balance",
        "block": "soliton.cli.ledger_commands:block",
        "book": "soliton.cli.trading_commands:book",
        "cancel": "soliton.cli.trading_commands:cancel",
        "compare": "soliton.cli.compare:compare",
        "completion": "soliton.cli.completion:completion",
        "config": "soliton.cli.config:config",
        "console": "soliton.cli.ledger_commands:console",
        "data": "soliton.cli.ledger_commands:data",
        "data-service": "soliton.cli.data_service:data_service",
        "db": "soliton.cli.db:db",
        "devnet": "soliton.cli.devnet:devnet",
        "doctor": "soliton.cli.doctor:doctor",
        "invoke": "soliton.cli.ride_node:invoke",
        "keys": "soliton.cli.keys:keys",
        "lease": "soliton.cli.ledger_commands:lease",
        "lease-cancel": "soliton.cli.ledger_commands:lease_cancel",
        "matcher": "soliton.cli.matcher:matcher",
        "notify": "soliton.cli.notify:notify",
        "order": "soliton.cli.trading_commands:order",
        "orders": "soliton.cli.trading_commands:orders",
        "peers": "soliton.cli.peers:peers",
        "restore": "soliton.cli.backup:restore",
        "ride": "soliton.cli.ride_node:group",
        "send": "soliton.cli.ledger_commands:send_file",
        "signer": "soliton.cli.signer:signer",
        "snapshot": "soliton.cli.snapshot:snapshot",
        "status": "soliton.cli.status:status",
        "transfer": "soliton.cli.ledger_commands:transfer",
        "tx": "soliton.cli.ledger_commands:tx",
    }
)


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        commit = revision()
        click.echo(f"soliton, version {__version__}" + (f", commit {commit}" if commit else ""))
        context.exit()


@click.group(cls=Commands, commands=_OTHER_MODULES, context_settings=CONTEXT)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version and the commit, and exit.",
)
@click.option("--verbose", "-v", is_flag=True, help="Log details: --log-level debug.")
@log_options
def cli(verbose: bool) -> None:
    """A node, signer and matcher of the Waves protocol family."""
    configure_log(current_log())
    if verbose:
        choose_level("debug")


@cli.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@_NETWORK
@_CONFIG
@_DATA_DIR
@click.option("--to-height", type=WholeRange(min=2), help="Stop after this height.")
def import_command(
    file: Path,
    network: str | None,
    config: Path | None,
    data_dir: Path | None,
    to_height: int | None,
) -> None:
    """Import blocks from FILE (records of u32 length and block), everything verified."""
    from soliton.cli.chain_commands import run_import

    run_import(file, chosen_settings(config, network, data_dir), to_height)


@cli.command(
    cls=WithOthers,
    others=ImportedLater(
        {
            "postgres": "soliton.cli.export:export_postgres",
            "kafka": "soliton.cli.export:export_kafka",
            "parquet": "soliton.cli.export:export_parquet",
            "ndjson": "soliton.cli.export:export_ndjson",
        }
    ),
)
@click.argument(
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    shell_complete=complete_file_or_other,
)
@_NETWORK
@_CONFIG
@_DATA_DIR
@click.option("--to-height", type=WholeRange(min=2), help="Stop after this height.")
@click.option(
    "--changed-by-hand", is_flag=True, help="Include blocks of a devnet that no node would accept."
)
def export(
    file: Path,
    network: str | None,
    config: Path | None,
    data_dir: Path | None,
    to_height: int | None,
    changed_by_hand: bool,
) -> None:
    """Write the chain's blocks from height 2 on to FILE, in the format that import reads."""
    from soliton.cli.chain_commands import run_export

    run_export(file, config, network, data_dir, to_height, changed_by_hand=changed_by_hand)


@cli.command()
@_NETWORK
@_CONFIG
@_DATA_DIR
@click.option("--to-height", type=WholeRange(min=1), required=True, help="The last height to keep.")
def rollback(
    network: str | None, config: Path | None, data_dir: Path | None, to_height: int
) -> None:
    """Remove the blocks above a height from the chain in the data directory."""
    from soliton.cli.chain_commands import run_rollback

    run_rollback(config, network, data_dir, to_height)


@cli.command("state-hash")
@click.argument("height", type=WholeRange(min=1))
@_NETWORK
@_CONFIG
@_DATA_DIR
def state_hash(
    height: int, network: str | None, config: Path | None, data_dir: Path | None
) -> None:
    """Print the state hashes of the block at HEIGHT as JSON."""
    from soliton.cli.chain_commands import run_state_hash

    run_state_hash(config, network, data_dir, height)


@cli.command(
    cls=WithOthers, others=ImportedLater({"postgres": "soliton.cli.export:verify_postgres"})
)
@_NETWORK
@_CONFIG
@_DATA_DIR
def verify(network: str | None, config: Path | None, data_dir: Path | None) -> None:
    """Check the store in the data directory: every block, every record.

    Exits with code 1 at the first damage and says how to repair it. A node may run meanwhile.
    """
    from soliton.cli.verify import run_verify

    run_verify(config, network, data_dir)


@cli.command()
@_CONFIG
@_NETWORK
@_DATA_DIR
@click.option("--host", help="Address that the REST API listens on.")
@click.option("--port", type=WHOLE, help="Port of the REST API; 0 chooses a free one.")
@click.option("--peer-port", type=WHOLE, help="Port for other nodes; 0 chooses a free one.")
@click.option("--offline", is_flag=True, help="Connect to no other nodes.")
@click.option("--sync-from", metavar="HOST:PORT", help="Connect to this node only.")
@log_options
def run(
    config: Path | None,
    network: str | None,
    data_dir: Path | None,
    host: str | None,
    port: int | None,
    peer_port: int | None,
    offline: bool,
    sync_from: str | None,
) -> None:
    """Run a node with its peers and its REST API, until it is stopped."""
    from soliton.cli.run import run_node

    given = {
        "rest-api.bind-address": host,
        "rest-api.port": port,
        "network.port": peer_port,
        "network.enable": False if offline else None,
        "network.only-peer": sync_from,
    }
    run_node(chosen_settings(config, network, data_dir, given))


@cli.command()
@click.option("--nodes", type=WholeRange(1, 50), default=7, show_default=True, help="Honest nodes.")
@click.option(
    "--light", type=WholeRange(0, 50), default=0, show_default=True, help="Light nodes of them."
)
@click.option(
    "--seed", type=WholeRange(min=0), default=1, show_default=True, help="Seed of randomness."
)
@click.option(
    "--seeds",
    type=WholeRange(min=1),
    default=1,
    show_default=True,
    help="Number of runs, from --seed on.",
)
@click.option(
    "--seconds",
    type=WholeRange(1, 10_000_000),
    default=3_600,
    show_default=True,
    help="Length of a run, in simulated seconds.",
)
@click.option("--latency", type=MILLISECONDS, default="40ms", show_default=True, help="One way.")
@click.option(
    "--jitter", type=MILLISECONDS, default="40ms", show_default=True, help="Random extra latency."
)
@click.option("--loss", type=SHARE, default="0%", show_default=True, help="Share of lost segments.")
@click.option(
    "--partition",
    type=MILLISECONDS,
    default="0s",
    help="Recurring partitions of this length.",
)
@click.option("--crashes", type=WholeRange(0, 10_000), default=0, help="Crashes with restarts.")
@click.option("--skew", type=MILLISECONDS, default="0ms", help="Maximal error of the clocks.")
@click.option("--duplicates", is_flag=True, help="Nodes dial peers that they are connected to.")
@click.option("--transactions", type=WholeRange(0, 60_000), default=0, help="Transfers per minute.")
@click.option(
    "--block-time",
    type=MILLISECONDS,
    default="60s",
    show_default=True,
    help="Mean time between blocks.",
)
@click.option(
    "--patience", type=MILLISECONDS, default="30m", show_default=True, help="Time limit to agree."
)
@click.option(
    "--generation-period",
    type=WholeRange(0, 10_000),
    default=0,
    help="Deterministic finality with periods of so many blocks.  [default: without]",
)
@click.option("--lies", default="", help="A lying node for each item of a list, or all.")
@click.option(
    "--svg", type=click.Path(path_type=Path, dir_okay=False), help="Draw a timeline into this file."
)
@log_options
def simulate(
    nodes: int,
    light: int,
    seed: int,
    seeds: int,
    seconds: int,
    latency: int,
    jitter: int,
    loss: float,
    partition: int,
    crashes: int,
    skew: int,
    duplicates: bool,
    transactions: int,
    block_time: int,
    patience: int,
    generation_period: int,
    lies: str,
    svg: Path | None,
) -> None:
    """Run a network of nodes in virtual time, and check that they agree at the end.

    The same seed gives the same run. Exits with code 1 when a check fails.
    """
    from soliton.simulation.command import lies_in, run_simulate
    from soliton.simulation.links import LinkSettings
    from soliton.simulation.plan import Plan

    if current_log().level == "info":
        # The logs of several nodes at once would be of little use.
        choose_level("error")
    plan = Plan(
        nodes=nodes,
        light=min(light, nodes),
        seed=seed,
        seconds=seconds,
        links=LinkSettings(latency, jitter, loss),
        partition=partition,
        crashes=crashes,
        skew=skew,
        duplicates=duplicates,
        transactions=transactions,
        block_time=max(1_000, block_time),
        lies=lies_in(lies, generation_period),
        patience=patience // 1_000,
        generation_period=generation_period,
    )
    run_simulate(plan, seeds, svg)


def main() -> None:
    """Run the program: an expected error is printed as one line, with exit code 1."""
    try:
        cli()
    except SolitonError as error:
        _fail(f"{error}{_advice(error)}")
    except OSError as error:
        # A full disk or too many open files, which the operator can mend.
        if error.errno is None:
            raise
        logging.getLogger(__name__).debug("the program ends", exc_info=True)
        place = f": {error.filename}" if error.filename else ""
        _fail(f"{error.strerror}{place}")
    except RuntimeError as error:
        # What pathlib raises for ~ in a container whose user has no name, without HOME.
        if type(error) is not RuntimeError or has_home():
            raise
        _fail("this user has no home directory: set HOME, or name the directory (--data-dir)")


def has_home() -> bool:
    """Whether the directory of this user is known."""
    return not os.path.expanduser("~").startswith("~")  # noqa: PTH111 - pathlib raises


def _fail(reason: str) -> NoReturn:
    """Print why the program ends, and end it with exit code 1, also where an output is full: what
    is left in a buffer would fail again as the interpreter ends, which changes the code to 120.
    """
    with contextlib.suppress(OSError):
        click.echo(f"soliton: {reason}", err=True)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
    sys.exit(1)


def _advice(error: SolitonError) -> str:
    """Return what to add to an error message for a person at a terminal."""
    from soliton.web.ports import holder
    from soliton.web.server import PortTaken

    if not isinstance(error, PortTaken):
        return ""
    other = holder(error.port)
    return (f" by {other}" if other else "") + "; --port 0 takes a free one"
