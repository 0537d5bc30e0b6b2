"""``soliton matcher``: set up, run and verify a matcher.

What lives here: options. What does not: the work (``matcher_commands``), which is imported when a
command runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from soliton.cli.helping import Commands
from soliton.cli.logs import configure_log, log_options
from soliton.cli.quantities import WHOLE, WholeRange

if TYPE_CHECKING:
    from soliton.matcher.settings import MatcherSettings

_CONFIG = click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A HOCON file with a section soliton.matcher or waves.dex (default: the one of init).",
)
_NETWORK = click.option("--network", help="A preset such as waves-mainnet or devnet.")
_DATA_DIR = click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="The matcher's data is in matcher/ below it (default: ~/.soliton/<network>).",
)
_NODE_URL = click.option("--node-url", help="The matcher's node.")


@click.group(cls=Commands)
def matcher() -> None:
    """Set up, run and verify a matcher."""


@matcher.command("init")
@click.option("--network", default="devnet", show_default=True, help="The network of its orders.")
@_DATA_DIR
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to create (default: matcher/matcher.conf in the data directory).",
)
@click.option(
    "--node-url",
    default="http://127.0.0.1:6869",
    show_default=True,
    help="The matcher's node.",
)
@click.option(
    "--if-missing", is_flag=True, help="If the file is there already, leave it, with exit code 0."
)
def init_command(
    network: str, data_dir: Path | None, config: Path | None, node_url: str, if_missing: bool
) -> None:
    """Create an account, an API key and a configuration file for a new matcher."""
    from soliton.cli.matcher_commands import run_init

    run_init(network, data_dir, config, node_url, if_missing=if_missing)


@matcher.command("account-file")
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--seed-format",
    type=click.Choice(("base64", "base58", "raw-string")),
    default="base64",
    show_default=True,
    help="The encoding of the seed.",
)
@click.option(
    "--account-nonce",
    type=WholeRange(0, 2**31 - 1),
    help="Derive the account of this number from the seed.",
)
def account_file_command(path: Path, seed_format: str, account_nonce: int | None) -> None:
    """Encrypt an account seed into PATH, for account-storage.encrypted-file."""
    from soliton.cli.matcher_commands import run_account_file

    run_account_file(
        path,
        click.prompt("Seed", hide_input=True),
        seed_format,
        account_nonce,
        click.prompt("Password for the file", hide_input=True, confirmation_prompt=True),
    )


@matcher.command("run")
@_CONFIG
@_NETWORK
@_DATA_DIR
@_NODE_URL
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=WHOLE, help="Port to listen on; 0 chooses a free one.")
@click.option(
    "--workers", type=WHOLE, help="Processes that parse the clients' requests for the matcher."
)
@log_options
def run_command(
    config: Path | None,
    network: str | None,
    data_dir: Path | None,
    node_url: str | None,
    host: str | None,
    port: int | None,
    workers: int | None,
) -> None:
    """Run the matcher until a signal ends it."""
    from soliton.cli.matcher_config import made_by_init, matcher_settings
    from soliton.cli.matcher_run import run_matcher
    from soliton.node.settings import load_settings

    overrides = {
        "rest-api.address": host,
        "rest-api.port": port,
        "rest-api.workers": workers,
        "node.url": node_url,
    }
    chosen = config or made_by_init(network, data_dir)
    log = load_settings(chosen, network).logging
    configure_log(log)
    run_matcher(matcher_settings(chosen, network, data_dir, overrides), log.heartbeat_ms)


@matcher.command("verify")
@_CONFIG
@_NETWORK
@_DATA_DIR
@_NODE_URL
@click.option("--no-chain", is_flag=True, help="Skip settlement; the matcher may run meanwhile.")
@click.option("--no-signatures", is_flag=True, help="Skip the signatures of orders.")
def verify_command(
    config: Path | None,
    network: str | None,
    data_dir: Path | None,
    node_url: str | None,
    no_chain: bool,
    no_signatures: bool,
) -> None:
    """Prove from the journal and the chain that all orders were matched by the rules.

    Exits with code 1 and the first offset at which priority, conservation or settlement does not
    hold.
    """
    from soliton.cli.matcher_commands import run_verify

    settings = _settings(config, network, data_dir, node_url)
    run_verify(settings, chain=not no_chain, signatures=not no_signatures)


@matcher.command("replay")
@_CONFIG
@_NETWORK
@_DATA_DIR
@_NODE_URL
@click.option("--to-offset", type=WholeRange(min=0), help="Stop after this command.")
@click.option("--no-chain", is_flag=True, help="Do not query the node about assets.")
def replay_command(
    config: Path | None,
    network: str | None,
    data_dir: Path | None,
    node_url: str | None,
    to_offset: int | None,
    no_chain: bool,
) -> None:
    """Apply the journal to empty books, and print them with their hash."""
    from soliton.cli.matcher_commands import run_replay

    settings = _settings(config, network, data_dir, node_url)
    run_replay(settings, to_offset, node=not no_chain)


def _settings(
    config: Path | None, network: str | None, data_dir: Path | None, node_url: str | None
) -> MatcherSettings:
    from soliton.cli.matcher_config import made_by_init, matcher_settings

    config = config or made_by_init(network, data_dir)
    return matcher_settings(config, network, data_dir, {"node.url": node_url})
