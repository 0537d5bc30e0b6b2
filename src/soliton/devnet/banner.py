"""The announcement of a private chain that is ready, as text and as JSON.

What lives here: the record and its formats. What does not: the origin of the values (``main``).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from soliton.controls.control import Origin
from soliton.controls.mining import MiningMode
from soliton.devnet.accounts import COIN, DevnetAccount, Funding
from soliton.devnet.options import DevnetOptions, mining_text
from soliton.errors import EnvironmentProblem
from soliton.storage.files import replace_file

if TYPE_CHECKING:
    from soliton.devnet.playing import Played

SHOWN_ACCOUNTS: Final = 20
"""Limit on the accounts in the text; ``--config-out`` writes all."""
_PRIVATE: Final = 0o600
_SIGNED_FOR: Final = "(the node's wallet signs for all of them)"


class Description(msgspec.Struct, frozen=True, rename="camel"):
    """A private chain that is ready, with all that is needed to use it."""

    chain_id: int
    node: str
    signer: str
    matcher: str
    api_key: str
    data: str
    height: int
    mining: MiningMode
    balance: int
    rich: DevnetAccount
    accounts: tuple[DevnetAccount, ...]
    nodes: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    processes: tuple[int, ...] | msgspec.UnsetType = msgspec.UNSET
    """The process id of each node, if there are several."""
    data_service: str | msgspec.UnsetType = msgspec.UNSET
    grpc: str | msgspec.UnsetType = msgspec.UNSET
    """The address, as gRPC clients take it: host and port."""
    grpc_updates: str | msgspec.UnsetType = msgspec.UNSET
    scenario: Played | None = None
    fork: Origin | None = None


def announce(description: Description, options: DevnetOptions) -> None:
    """Print a description, and write it to a file, as the options say."""
    if options.config_out is not None:
        write_config(options.config_out, description)
    click.echo(as_json(description) if options.as_json else as_text(description))


def as_json(description: Description) -> bytes:
    """Return a line of JSON."""
    return msgspec.json.encode(description)


def write_config(path: Path, description: Description) -> None:
    """Write the JSON to a file that only its owner can read, because it contains private keys."""
    try:
        replace_file(path, [msgspec.json.format(as_json(description)), b"\n"], _PRIVATE)
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {path}: {error.strerror or error}") from error


def as_text(description: Description) -> str:
    """Return a text for people."""
    coins = f"{description.balance / COIN:,.8f}".rstrip("0").rstrip(".")
    chain_id, number = description.chain_id, len(description.accounts)
    count = "Ten" if number == Funding().count else str(number)
    plural = "s" * (number != 1)
    lines = [
        "Soliton devnet",
        f"  chain id      {chr(chain_id)} ({chain_id}), {mining_text(description.mining)}",
        f"  node          {description.node}  (interactive page and REST API)",
        *_others(description),
        f"  signer        {description.signer}",
        f"  matcher       {description.matcher}  (interactive page, REST API and WebSocket)",
        *_optional(description),
        f"  X-API-Key     {description.api_key}",
        f"  data          {description.data}",
        *_fork_lines(description),
        "",
        "Rich account (it mines):",
        *_account_lines(description.rich),
        "",
        f"{count} account{plural} with {coins} coins each {_SIGNED_FOR}:",
    ]
    for account in description.accounts[:SHOWN_ACCOUNTS]:
        lines += _account_lines(account)
    if number > SHOWN_ACCOUNTS:
        lines.append(f"  and {number - SHOWN_ACCOUNTS} more: --config-out FILE writes all of them")
    if description.scenario is not None:
        lines += _scenario_lines(description.scenario)
    return "\n".join([*lines, "", "Ready. Ctrl-C stops."])


def _optional(description: Description) -> list[str]:
    parts = (
        (description.data_service, "  data service  {}/v0"),
        (description.grpc, "  gRPC          {}"),
        (description.grpc_updates, "  gRPC updates  {}"),
    )
    return [line.format(found) for found, line in parts if found is not msgspec.UNSET]


def _fork_lines(description: Description) -> list[str]:
    fork = description.fork
    return [] if fork is None else [f"  fork of       {fork.url} at height {fork.height}"]


def _others(description: Description) -> list[str]:
    if description.nodes is msgspec.UNSET or description.processes is msgspec.UNSET:
        return []
    # The ids at the start: a process that has ended is restarted with another one.
    numbers = ", ".join(map(str, description.processes))
    rest = [f"  node          {each}" for each in description.nodes[1:]]
    return [
        *rest,
        f"  processes     {numbers}",
        f"  logs          {description.data}/node-*/log.txt",
    ]


def _scenario_lines(played: Played) -> list[str]:
    lines = ["", f"Scenario {played.scenario}: {played.description}"]
    lines += [f"  {each.ticker:8} {each.id}  {each.name}" for each in played.tokens if each.id]
    lines += [f"  {name}  {address}  (dApp)" for name, address in played.dapps.items()]
    lines += [f'  {each.name}  {each.address}  seed "{each.seed}"' for each in played.accounts]
    if played.markets:
        lines.append(f"  markets: {', '.join(played.markets)}")
    return lines


def _account_lines(account: DevnetAccount) -> list[str]:
    return [
        f'  {account.address}  seed "{account.seed}"',
        f"    public key {account.public_key}  private key {account.private_key}",
    ]
