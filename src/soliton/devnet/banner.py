"""What a private chain tells when it is ready: for people, and for programs.

What lives here: the record and its two forms. What does not: where the values come from (``main``).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from soliton.controls.control import Origin
from soliton.controls.mining import MiningMode
from soliton.devnet.accounts import COIN, DevnetAccount, Funding
from soliton.devnet.options import mining_text
from soliton.errors import EnvironmentProblem
from soliton.storage.files import replace_file

if TYPE_CHECKING:
    from soliton.devnet.playing import Played

SHOWN_ACCOUNTS: Final = 20
"""Who has more of them reads the file of ``--config-out``."""
_PRIVATE: Final = 0o600
_SIGNED_FOR: Final = "(the node's wallet signs for all of them)"


class Description(msgspec.Struct, frozen=True, rename="camel"):
    """A private chain that is ready: where it is, and all that is needed to use it."""

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
    """Of each node, where there are several."""
    data_service: str | msgspec.UnsetType = msgspec.UNSET
    scenario: Played | None = None
    fork: Origin | None = None


def as_json(told: Description) -> bytes:
    """One line."""
    return msgspec.json.encode(told)


def write_config(path: Path, told: Description) -> None:
    """Write it to a file that its owner alone can read: there are keys in it."""
    try:
        replace_file(path, [msgspec.json.format(as_json(told)), b"\n"], _PRIVATE)
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {path}: {error.strerror or error}") from error


def as_text(told: Description) -> str:
    """Some lines for a person."""
    coins = f"{told.balance / COIN:,.8f}".rstrip("0").rstrip(".")
    number = len(told.accounts)
    count = "Ten" if number == Funding().count else str(number)
    plural = "s" * (number != 1)
    lines = [
        "Soliton devnet",
        f"  chain id      {chr(told.chain_id)} ({told.chain_id}), {mining_text(told.mining)}",
        f"  node          {told.node}  (interactive page and REST API)",
        *_others(told),
        f"  signer        {told.signer}",
        f"  matcher       {told.matcher}  (interactive page, REST API and WebSocket)",
        *_data_service(told),
        f"  X-API-Key     {told.api_key}",
        f"  data          {told.data}",
        *_fork_lines(told),
        "",
        "Rich account (it mines):",
        *_account_lines(told.rich),
        "",
        f"{count} account{plural} with {coins} coins each {_SIGNED_FOR}:",
    ]
    for account in told.accounts[:SHOWN_ACCOUNTS]:
        lines += _account_lines(account)
    if number > SHOWN_ACCOUNTS:
        lines.append(f"  and {number - SHOWN_ACCOUNTS} more: --config-out FILE writes all of them")
    if told.scenario is not None:
        lines += _scenario_lines(told.scenario)
    return "\n".join([*lines, "", "Ready. Ctrl-C stops."])


def _data_service(told: Description) -> list[str]:
    found = told.data_service
    return [] if found is msgspec.UNSET else [f"  data service  {found}/v0"]


def _fork_lines(told: Description) -> list[str]:
    fork = told.fork
    return [] if fork is None else [f"  fork of       {fork.url} at height {fork.height}"]


def _others(told: Description) -> list[str]:
    if told.nodes is msgspec.UNSET or told.processes is msgspec.UNSET:
        return []
    # A process that has ended is started again.
    numbers = ", ".join(map(str, told.processes))
    rest = [f"  node          {each}" for each in told.nodes[1:]]
    return [*rest, f"  processes     {numbers}", f"  logs          {told.data}/node-*/log.txt"]


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
