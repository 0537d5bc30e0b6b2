"""``soliton balance``, ``account``, ``tx``, ``block``, ``asset``, ``data``, ``transfer``, ``alias``
and ``lease``.

They read and write the ledger through any node, Soliton's or the reference's.

What lives here: options, amounts with units, output. What does not: requests and transactions
(``soliton.client``), the signing key (``signing_key``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

import click
import msgspec

from soliton.cli.helping import printable
from soliton.cli.quantities import CONFIRMATIONS, Confirmations
from soliton.cli.signing_key import read_chain_id, read_keys, signing_options
from soliton.cli.tables import facts, table
from soliton.errors import InputError

if TYPE_CHECKING:
    from soliton.client.account import Account
    from soliton.client.node import Node
    from soliton.client.records import AssetDetails
    from soliton.client.transaction import Transaction

COIN: Final = "WAVES"
MAX_ROWS: Final = 1_000
"""Limit on the rows of a table; ``--json`` has no other."""
ASSETS_AT_ONCE: Final = 100
WAIT_SECONDS: Final = 600.0
_NODE: Final = "http://127.0.0.1:6869"
_ALIAS: Final = "alias:"
_Command = TypeVar("_Command", bound=Callable[..., Any])


def _common(command: _Command) -> _Command:
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--node", "url", default=_NODE, envvar="SOLITON_NODE", show_default=True,
            metavar="URL", help="The node, or SOLITON_NODE."),
    ):  # fmt: skip
        command = option(command)
    return command


@contextmanager
def _opened(url: str, chain_id: int | None = None) -> Iterator[Node]:
    from soliton.client.node import Node

    with Node(url, chain_id=chain_id) as node:
        yield node


def _show(value: Mapping[str, Any], *, as_json: bool) -> None:
    """Print an object as JSON, or its plain members as lines."""
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
        return
    rows = [
        (name, msgspec.json.encode(each).decode() if isinstance(each, dict | list) else each)
        for name, each in value.items()
        if each is not None
    ]
    for line in facts(rows):
        click.echo(line)


def _address(node: Node, text: str) -> str:
    """The address that a text names: an address, or ``alias:NAME``."""
    if text.startswith(_ALIAS):
        return node.address_by_alias(text.rpartition(":")[2])
    return text


def _details(node: Node, ids: list[str]) -> dict[str, AssetDetails]:
    found: dict[str, AssetDetails] = {}
    for start in range(0, len(ids), ASSETS_AT_ONCE):
        for each in node.assets(ids[start : start + ASSETS_AT_ONCE]):
            found[each.asset_id] = each
    return found


# --- reading --------------------------------------------------------------------------------------


@click.command()
@click.argument("address")
@click.option("--asset", metavar="ID", help="The balance of this asset.")
@click.option("--all", "all_assets", is_flag=True, help="The balances of all assets, too.")
@_common
def balance(address: str, asset: str | None, all_assets: bool, url: str, as_json: bool) -> None:
    """Print the balance of an account; ADDRESS may be alias:NAME."""
    from soliton.client.amounts import text

    with _opened(url) as node:
        owner = _address(node, address)
        if asset is not None and asset != COIN:
            details = node.asset(asset)
            rows = [(details.name, asset, node.balance(owner, asset), details.decimals)]
        else:
            rows = [(COIN, COIN, node.balance(owner), 8)]
        if all_assets:
            held = [each for each in node.asset_balances(owner) if each.balance]
            known = _details(node, [each.asset_id for each in held])
            rows += [
                (known[each.asset_id].name, each.asset_id, each.balance,
                 known[each.asset_id].decimals)
                for each in held if each.asset_id in known
            ]  # fmt: skip
    if as_json:
        shown = [
            {"name": name, "assetId": None if id_ == COIN else id_, "balance": units,
             "amount": text(units, decimals)}
            for name, id_, units, decimals in rows
        ]  # fmt: skip
        click.echo(msgspec.json.format(msgspec.json.encode(shown), indent=2).decode())
        return
    cells = [(text(units, decimals), name, "" if id_ == COIN else id_)
             for name, id_, units, decimals in rows[:MAX_ROWS]]  # fmt: skip
    for line in table(("amount", "asset", "id"), cells):
        click.echo(line)
    if len(rows) > MAX_ROWS:
        click.echo(f"… and {len(rows) - MAX_ROWS} more: --json has all")


@click.command()
@click.argument("address")
@_common
def account(address: str, url: str, as_json: bool) -> None:
    """Print balances, aliases and script of an account; ADDRESS may be alias:NAME."""
    from soliton.client.amounts import text

    with _opened(url) as node:
        owner = _address(node, address)
        details, script = node.balance_details(owner), node.script(owner)
        found: dict[str, Any] = {"address": owner}
        for name in ("regular", "available", "effective", "generating"):
            units = getattr(details, name)
            found[name] = units if as_json else f"{text(units)} {COIN}"
        found["aliases"] = node.aliases(owner)
        found["scripted"] = script.script is not None
        found["complexity"] = script.complexity or None
    _show(found, as_json=as_json)


@click.command()
@click.argument("transaction_id", metavar="ID")
@_common
def tx(transaction_id: str, url: str, as_json: bool) -> None:
    """Print a transaction of the chain or the pool."""
    from soliton.client.errors import NotFound

    with _opened(url) as node:
        try:
            found = node.transaction(transaction_id)
        except NotFound:
            found = node.unconfirmed_transaction(transaction_id)
    _show(found.json, as_json=as_json)


@click.command()
@click.argument("which", metavar="HEIGHT", required=False)
@_common
def block(which: str | None, url: str, as_json: bool) -> None:
    """Print the header of the block at HEIGHT, or with an id, by default of the last one."""
    with _opened(url) as node:
        if which is None:
            header = node.last_header()
        elif which.isascii() and which.isdecimal() and len(which) <= len(str(2**31)):
            header = node.header_at(int(which))
        else:
            header = node.header(which)
    _show(msgspec.to_builtins(header), as_json=as_json)


@click.command()
@click.argument("asset_id", metavar="ID")
@_common
def asset(asset_id: str, url: str, as_json: bool) -> None:
    """Print an asset."""
    from soliton.client.amounts import text

    with _opened(url) as node:
        details = node.asset(asset_id)
    found = msgspec.to_builtins(details)
    if not as_json:
        found["quantity"] = text(details.quantity, details.decimals)
    _show(found, as_json=as_json)


@click.command()
@click.argument("address")
@click.argument("key", required=False)
@_common
def data(address: str, key: str | None, url: str, as_json: bool) -> None:
    """Print the data entries of an account, or the one with a key."""
    with _opened(url) as node:
        owner = _address(node, address)
        found = node.data(owner) if key is None else {key: node.data_entry(owner, key)}
    if key is not None and found[key] is None:
        raise InputError(f"{owner} has no entry {key[:80]!r}")
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return
    rows = [(name, _plain(value)) for name, value in list(found.items())[:MAX_ROWS]]
    for line in table(("key", "value"), rows):
        click.echo(line)
    if len(found) > MAX_ROWS:
        click.echo(f"… and {len(found) - MAX_ROWS} more: --json has all")


def _plain(value: object) -> str:
    return f"0x{value.hex()}" if isinstance(value, bytes) else str(value)


# --- writing --------------------------------------------------------------------------------------


class Sum(msgspec.Struct, frozen=True):
    """An amount with its unit: of the coin, or of an asset."""

    units: int
    asset: AssetDetails | None

    @property
    def shown(self) -> str:
        """The amount for people."""
        from soliton.client.amounts import text

        if self.asset is None:
            return f"{text(self.units)} {COIN}"
        return f"{text(self.units, self.asset.decimals)} {self.asset.name} ({self.asset.asset_id})"


def read_sum(words: str, node: Node, owner: str) -> Sum:
    """Parse ``0.5 WAVES``, ``10 USDT`` or ``3 ASSETID``; without a unit it is the coin.

    A name stands for the asset that ``owner`` holds under it: anybody can issue an asset of any
    name, so that two of one name have to be told apart by their ids. Raises ``InputError``.
    """
    from soliton.client.amounts import scaled

    number, _, unit = words.strip().partition(" ")
    unit = unit.strip()
    details = None if unit in ("", COIN) else _unit(unit, node, owner)
    found = scaled(number, 8 if details is None else details.decimals)
    if found <= 0:
        raise InputError(f"{number!r} is not an amount above 0")
    return Sum(found, details)


def _unit(unit: str, node: Node, owner: str) -> AssetDetails:
    held = [each.asset_id for each in node.asset_balances(owner) if each.balance]
    if unit in held:
        return node.asset(unit)
    named = [each for each in _details(node, held).values() if each.name == unit]
    if len(named) > 1:
        ids = ", ".join(each.asset_id for each in named)
        raise InputError(
            f"{owner} holds {len(named)} assets named {unit!r}: name one by its id: {ids}"
        )
    if not named:
        raise InputError(f"{owner} holds no asset with the name or id {unit[:80]!r}")
    return named[0]


class Writing(NamedTuple):
    """The options of a command that signs: the node, the key, what to wait for."""

    url: str
    as_json: bool
    account: int | None
    key: str | None
    store: Path
    password_file: Path | None
    chain_id: str | None
    dry_run: bool
    depth: Confirmations | None


def _writing(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a command that signs, which gets them as ``how``."""

    @functools.wraps(command)
    def run(**given: Any) -> None:  # noqa: ANN401 - the options
        how = Writing(**{name: given.pop(name) for name in Writing._fields})
        command(how=how, **given)

    for option in (
        click.option("--wait", "depth", type=CONFIRMATIONS, metavar="N|finalized",
            help="Wait for so many blocks above it, or until it is final."),
        click.option("--dry-run", is_flag=True, help="Show what would happen, and send nothing."),
        click.option("--chain-id", help="The chain to sign for; required for a remote node."),
    ):  # fmt: skip
        run = option(run)
    return _common(signing_options(run))


def _send(how: Writing, make: Callable[[Node, Account], tuple[Transaction, str]]) -> None:
    """Make a transaction and send it, or say what it would do. ``make`` returns it with a sentence
    for people that lacks its subject and its verb.
    """
    from soliton.client.account import Account

    keys = read_keys(how.account, how.key, how.store, how.password_file)
    with _opened(how.url, _expected(how.url, how.chain_id)) as node:
        sender = Account(keys, node.chain_id)
        made, text = make(node, sender)
        if how.dry_run:
            found = node.validate(made)
            shown = {"valid": found.valid, "error": found.error, "fee": made.fee, "id": made.id}
            _report(f"not sent: {text} from {sender.address}", shown, as_json=how.as_json)
            if not found.valid:
                raise InputError(f"the node would refuse it: {found.error}")
            return
        sent = node.send(made)
        result: dict[str, Any] = {"id": sent.id, "fee": sent.transaction.fee}
        if how.depth is not None:
            result["height"] = sent.wait(WAIT_SECONDS, how.depth).height
    _report(f"sent: {text} from {sender.address}", result, as_json=how.as_json)


def _recipient(text: str, chain_id: int) -> str:
    """The recipient as it is signed. The node does not decide whose an alias is."""
    if text.startswith(_ALIAS):
        return f"{_ALIAS}{chr(chain_id)}:{text.rpartition(':')[2]}"
    return text


def _expected(url: str, chain_id: str | None) -> int | None:
    """The chain to sign for: a node on another machine does not decide that."""
    from soliton.node.rest_settings import is_local

    if chain_id is None and not is_local(urlsplit(url).hostname or ""):
        raise InputError(f"{url} is on another machine: --chain-id says for which chain to sign")
    return read_chain_id(chain_id)


def _report(text: str, members: Mapping[str, Any], *, as_json: bool) -> None:
    if not as_json:
        click.echo(printable(text))
    _show(members, as_json=as_json)


@click.command()
@click.argument("recipient", metavar="TO")
@click.argument("amount")
@_writing
@click.option("--attachment", default="", help="A text for the recipient.")
def transfer(recipient: str, amount: str, attachment: str, how: Writing) -> None:
    """Send AMOUNT, such as "0.5 WAVES" or "10 USDT", to an address or alias:NAME.

    The signing key: --key, --account, or the seed in SOLITON_SEED_FILE or SOLITON_SEED.
    """

    def make(node: Node, sender: Account) -> tuple[Transaction, str]:
        to = _recipient(recipient, node.chain_id)
        paid = read_sum(amount, node, sender.address)
        made = sender.transfer(to, paid.units, paid.asset, attachment=attachment)
        return made, f"{paid.shown} to {to}"

    _send(how, make)


@click.command()
@click.argument("name")
@_writing
def alias(name: str, how: Writing) -> None:
    """Create the alias NAME of the account, for ever.

    The signing key: --key, --account, or the seed in SOLITON_SEED_FILE or SOLITON_SEED.
    """
    _send(how, lambda _node, sender: (sender.alias(name), f"alias {name}"))


@click.command()
@click.argument("recipient", metavar="TO")
@click.argument("amount")
@_writing
def lease(recipient: str, amount: str, how: Writing) -> None:
    """Lease AMOUNT, such as "1000 WAVES", to a generator: an address or alias:NAME.

    The signing key: --key, --account, or the seed in SOLITON_SEED_FILE or SOLITON_SEED.
    """

    def make(node: Node, sender: Account) -> tuple[Transaction, str]:
        to = _recipient(recipient, node.chain_id)
        leased = read_sum(amount, node, sender.address)
        if leased.asset is not None:
            raise InputError(f"only {COIN} can be leased")
        return sender.lease(to, leased.units), f"a lease of {leased.shown} to {to}"

    _send(how, make)


@click.command("lease-cancel")
@click.argument("lease_id", metavar="ID")
@_writing
def lease_cancel(lease_id: str, how: Writing) -> None:
    """Cancel the lease with an ID.

    The signing key: --key, --account, or the seed in SOLITON_SEED_FILE or SOLITON_SEED.
    """
    _send(how, lambda _node, sender: (sender.cancel_lease(lease_id), f"the end of {lease_id}"))
