"""``soliton signer``: run the signing service, and operate a running one that keeps keys.

What lives here: options. What does not: the work (``signer_commands``, ``signer_dry_run``), which
is imported when a command runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from soliton.cli.chosen import chosen_settings
from soliton.cli.helping import Commands
from soliton.cli.logs import configure_log, log_options
from soliton.cli.quantities import WHOLE, WholeRange

if TYPE_CHECKING:
    from soliton.node.settings import Settings

API_KEY_VARIABLE: Final = "SOLITON_SIGNER_KEY"

_CONFIG: Final = click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A HOCON configuration file with a section soliton.signer.",
)
_NETWORK: Final = click.option("--network", help="A preset such as waves-mainnet or devnet.")
_URL: Final = click.option("--url", help="The signer's URL (default: the address in its settings).")
_API_KEY_FILE: Final = click.option(
    "--api-key-file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help=f"A file with the API key; else {API_KEY_VARIABLE}, or a prompt.",
)


@click.group(cls=Commands, invoke_without_command=True)
@_CONFIG
@_NETWORK
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=WHOLE, help="Port to listen on; 0 chooses a free one.")
@click.option("--node-url", help="The node to broadcast through.")
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
    """Run the signer: it signs with keys that it keeps, as its policy allows, or from a seed."""
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
    """Make the running signer reload its policy, which must have the hash in the settings."""
    from soliton.cli.signer_commands import run_reload

    run_reload(_settings(config, network), url, api_key_file)


@signer.command("check")
@click.argument("policy", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--network", default="waves-mainnet", show_default=True, help="Network of accounts.")
def check_command(policy: Path, network: str) -> None:
    """Check the policy in file POLICY, print its problems and its hash."""
    from soliton.cli.signer_commands import run_check

    run_check(policy, network)


@signer.command("dry-run")
@click.argument("policy", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--key", "keys", multiple=True, required=True, help="NAME=ADDRESS, repeatable.")
@click.option("--caller", default="bot", show_default=True, help="The caller to assume.")
@click.option("--days", type=WholeRange(1, 366), default=30, show_default=True)
@click.option("--network", default="waves-mainnet", show_default=True, help="Network of accounts.")
@click.option("--node-url", default="http://127.0.0.1:6869", show_default=True)
def dry_run_command(
    policy: Path, keys: tuple[str, ...], caller: str, days: int, network: str, node_url: str
) -> None:
    """Print the transactions of the last days that the policy in POLICY would have refused."""
    from soliton.cli.signer_dry_run import run_dry_run

    run_dry_run(policy, keys, caller, days, network, node_url)


@signer.command("unlock")
@click.option("--key", "keys", multiple=True, help="A key's name, repeatable; default: all.")
@click.option("--seconds", type=WholeRange(1), default=3_600, show_default=True)
@click.option(
    "--password-file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A file with the store's password; else a prompt.",
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
    """Unlock keys of the running signer for a time."""
    from soliton.cli.signer_commands import run_unlock

    run_unlock(_settings(config, network), url, api_key_file, keys, seconds, password_file)


@signer.command("lock")
@click.option("--key", "keys", multiple=True, help="A key's name, repeatable; default: all.")
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
    """List the requests that need approval, or show PENDING and its effects on the chain."""
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
    """Approve the request with the id PENDING."""
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
    """Refuse the request with the id PENDING, for good."""
    from soliton.cli.signer_commands import run_decision

    run_decision(_settings(config, network), url, api_key_file, pending, "refuse")


@signer.group("audit", cls=Commands)
def audit() -> None:
    """Check, print or anchor the audit log."""


_STATE: Final = click.argument(
    "directory", type=click.Path(path_type=Path, file_okay=False, exists=True)
)


@audit.command("verify")
@_STATE
@click.option("--head", help="Fail unless a line has this hash, which was noted before.")
def verify_command(directory: Path, head: str | None) -> None:
    """Check that no line of the log in DIRECTORY was changed, removed or inserted."""
    from soliton.cli.signer_commands import run_verify

    run_verify(directory, head)


@audit.command("export")
@_STATE
@click.option("--csv", "as_csv", is_flag=True, help="CSV in place of JSON lines.")
@click.option("--since", type=WHOLE, default=0, help="Start time in ms since 1970.")
def export_command(directory: Path, as_csv: bool, since: int) -> None:
    """Print the requests and decisions in the log in DIRECTORY."""
    from soliton.cli.signer_commands import run_export

    run_export(directory, as_csv, since)


@audit.command("anchor")
@click.option("--key", required=True, help="The key whose account signs the data transaction.")
@click.option("--entry", default="audit-head", show_default=True, help="The key of the data entry.")
@click.option("--fee", type=WholeRange(1), default=100_000, show_default=True)
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
    """Write the last line's number and hash on the chain, where they cannot be changed."""
    from soliton.cli.signer_commands import run_anchor

    run_anchor(_settings(config, network), url, api_key_file, key, entry, fee)


def _settings(config: Path | None, network: str | None) -> Settings:
    """The settings, which say where the signer listens; no network is required."""
    from soliton.node.settings import load_settings

    settings = load_settings(config, network)
    configure_log(settings.logging)
    return settings
