"""``soliton signer``: run the signing service, and speak to one that keeps keys.

What lives here: options. What does not: the work (``signer_commands``, ``signer_dry_run``), which
is imported when a command runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from soliton.cli.chosen import chosen_settings
from soliton.cli.helping import Commands
from soliton.cli.logs import log_options, use

if TYPE_CHECKING:
    from soliton.node.settings import Settings

API_KEY_VARIABLE: Final = "SOLITON_SIGNER_KEY"

_CONFIG: Final = click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A HOCON configuration file with a section soliton.signer.",
)
_NETWORK: Final = click.option("--network", help="A preset such as waves-mainnet or devnet.")
_URL: Final = click.option(
    "--url", help="Where the signer listens (default: where its settings say)."
)
_API_KEY_FILE: Final = click.option(
    "--api-key-file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help=f"The API key, in a file; else {API_KEY_VARIABLE}, or it is asked for.",
)


@click.group(cls=Commands, invoke_without_command=True)
@_CONFIG
@_NETWORK
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=int, help="Port to listen on; 0 takes a free one.")
@click.option("--node-url", help="The node that transactions are sent to.")
@log_options
@click.pass_context
def signer(
    context: click.Context,
    config: Path | None,
    network: str | None,
    host: str | None,
    port: int | None,
    node_url: str | None,
) -> None:
    """Run the signer: it signs with keys that it keeps, as its rules say, or from a seed."""
    if context.invoked_subcommand is not None:
        return
    from soliton.cli.run import run_signer

    overrides = {"signer.bind-address": host, "signer.port": port, "signer.node-url": node_url}
    run_signer(chosen_settings(config, network, None, overrides))


@signer.command("reload")
@_CONFIG
@_NETWORK
@_URL
@_API_KEY_FILE
def reload_command(
    config: Path | None, network: str | None, url: str | None, api_key_file: Path | None
) -> None:
    """Let the running signer read its rules again; they must have the hash of the settings."""
    from soliton.cli.signer_commands import run_reload

    run_reload(_settings(config, network), url, api_key_file)


@signer.command("check")
@click.argument("policy", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--network", default="waves-mainnet", show_default=True, help="Whose accounts.")
def check_command(policy: Path, network: str) -> None:
    """Read the rules in POLICY, say what is wrong with them, and print their hash."""
    from soliton.cli.signer_commands import run_check

    run_check(policy, network)


@signer.command("dry-run")
@click.argument("policy", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--key", "keys", multiple=True, required=True, help="NAME=ADDRESS, or more of them.")
@click.option("--caller", default="bot", show_default=True, help="The caller that they stand for.")
@click.option("--days", type=click.IntRange(1, 366), default=30, show_default=True)
@click.option("--network", default="waves-mainnet", show_default=True, help="Whose accounts.")
@click.option("--node-url", default="http://127.0.0.1:6869", show_default=True)
def dry_run_command(
    policy: Path, keys: tuple[str, ...], caller: str, days: int, network: str, node_url: str
) -> None:
    """Tell which transactions of the last days the rules in POLICY would have refused."""
    from soliton.cli.signer_dry_run import run_dry_run

    run_dry_run(policy, keys, caller, days, network, node_url)


@signer.command("unlock")
@click.option("--key", "keys", multiple=True, help="A key's name; without any, all.")
@click.option("--seconds", type=click.IntRange(1), default=3_600, show_default=True)
@click.option(
    "--password-file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="The store's password, in a file; else it is asked for.",
)
@_CONFIG
@_NETWORK
@_URL
@_API_KEY_FILE
def unlock_command(
    keys: tuple[str, ...],
    seconds: int,
    password_file: Path | None,
    config: Path | None,
    network: str | None,
    url: str | None,
    api_key_file: Path | None,
) -> None:
    """Let the running signer use keys for a time."""
    from soliton.cli.signer_commands import run_unlock

    run_unlock(_settings(config, network), url, api_key_file, keys, seconds, password_file)


@signer.command("lock")
@click.option("--key", "keys", multiple=True, help="A key's name; without any, all.")
@_CONFIG
@_NETWORK
@_URL
@_API_KEY_FILE
def lock_command(
    keys: tuple[str, ...],
    config: Path | None,
    network: str | None,
    url: str | None,
    api_key_file: Path | None,
) -> None:
    """Lock keys of the running signer."""
    from soliton.cli.signer_commands import run_lock

    run_lock(_settings(config, network), url, api_key_file, keys)


@signer.command("pending")
@click.argument("pending", required=False)
@_CONFIG
@_NETWORK
@_URL
@_API_KEY_FILE
def pending_command(
    pending: str | None,
    config: Path | None,
    network: str | None,
    url: str | None,
    api_key_file: Path | None,
) -> None:
    """List what waits for approval, or tell all about PENDING and what it would do on the chain."""
    from soliton.cli.signer_commands import run_pending

    run_pending(_settings(config, network), url, api_key_file, pending)


@signer.command("approve")
@click.argument("pending")
@_CONFIG
@_NETWORK
@_URL
@_API_KEY_FILE
def approve_command(
    pending: str,
    config: Path | None,
    network: str | None,
    url: str | None,
    api_key_file: Path | None,
) -> None:
    """Approve what waits under the id PENDING."""
    from soliton.cli.signer_commands import run_decision

    run_decision(_settings(config, network), url, api_key_file, pending, "approve")


@signer.command("refuse")
@click.argument("pending")
@_CONFIG
@_NETWORK
@_URL
@_API_KEY_FILE
def refuse_command(
    pending: str,
    config: Path | None,
    network: str | None,
    url: str | None,
    api_key_file: Path | None,
) -> None:
    """Refuse what waits under the id PENDING, for good."""
    from soliton.cli.signer_commands import run_decision

    run_decision(_settings(config, network), url, api_key_file, pending, "refuse")


@signer.group("audit", cls=Commands)
def audit() -> None:
    """Check the audit log, and print it."""


_STATE: Final = click.argument(
    "directory", type=click.Path(path_type=Path, file_okay=False, exists=True)
)


@audit.command("verify")
@_STATE
@click.option("--head", help="Refuse unless a line has this hash: one that was noted before.")
def verify_command(directory: Path, head: str | None) -> None:
    """Check that no line of the log in DIRECTORY was changed, left out or put in."""
    from soliton.cli.signer_commands import run_verify

    run_verify(directory, head)


@audit.command("export")
@_STATE
@click.option("--csv", "as_csv", is_flag=True, help="A table in place of JSON lines.")
@click.option("--since", type=int, default=0, help="From this time on, in ms since 1970.")
def export_command(directory: Path, as_csv: bool, since: int) -> None:
    """Print what the log in DIRECTORY tells of requests and decisions."""
    from soliton.cli.signer_commands import run_export

    run_export(directory, as_csv, since)


@audit.command("anchor")
@click.option("--key", required=True, help="The key whose account writes it on the chain.")
@click.option("--entry", default="audit-head", show_default=True, help="The key of the data entry.")
@click.option("--fee", type=click.IntRange(1), default=100_000, show_default=True)
@_CONFIG
@_NETWORK
@_URL
@_API_KEY_FILE
def anchor_command(
    key: str,
    entry: str,
    fee: int,
    config: Path | None,
    network: str | None,
    url: str | None,
    api_key_file: Path | None,
) -> None:
    """Write the last line's number and hash on the chain, where nobody can change them."""
    from soliton.cli.signer_commands import run_anchor

    run_anchor(_settings(config, network), url, api_key_file, key, entry, fee)


def _settings(config: Path | None, network: str | None) -> Settings:
    """Where the signer listens: nothing is said of networks."""
    from soliton.node.settings import load_settings

    settings = load_settings(config, network)
    use(settings.logging)
    return settings
