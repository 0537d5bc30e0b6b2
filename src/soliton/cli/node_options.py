"""What the commands at a node have in common: options, amounts with units, signing and sending.

What lives here: how ``transfer``, ``invoke``, ``order`` and their siblings read options, print and
send. What does not: the commands (``ledger_commands``, ``ride_node``, ``trading_commands``),
requests and transactions (``soliton.client``), the signing key (``signing_key``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit

import click
import msgspec

from soliton.cli.helping import printable
from soliton.cli.quantities import CONFIRMATIONS, Confirmations
from soliton.cli.signing_key import read_chain_id, read_keys, signing_options
from soliton.cli.tables import facts
from soliton.errors import InputError

if TYPE_CHECKING:
    from soliton.client.account import Account
    from soliton.client.node import Node
    from soliton.client.records import AssetDetails, Mined, Validation
    from soliton.client.transaction import Transaction

COIN: Final = "WAVES"
SMALLEST: Final = "wavelets"
"""The unit of the coin's smallest part."""
ASSETS_AT_ONCE: Final = 100
WAIT_SECONDS: Final = 600.0
_NODE: Final = "http://127.0.0.1:6869"
_ALIAS: Final = "alias:"
_Command = TypeVar("_Command", bound=Callable[..., Any])
node_option: Final = click.option(
    "--node",
    "url",
    default=_NODE,
    envvar="SOLITON_NODE",
    show_default=True,
    metavar="URL",
    help="The node, or SOLITON_NODE.",
)


chain_option: Final = click.option(
    "--chain-id", help="The chain to sign for; required for a remote node."
)


def reading_options(command: _Command) -> _Command:
    """Add the options of a command that reads: the node, and the form of the output."""
    return node_option(click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command))


@contextmanager
def connected(url: str, chain_id: int | None = None) -> Iterator[Node]:
    """Connect to a node."""
    from soliton.client.node import Node

    with Node(url, chain_id=chain_id) as node:
        yield node


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def show(value: Mapping[str, Any], *, as_json: bool) -> None:
    """Print an object as JSON, or its plain members as lines."""
    if as_json:
        print_json(value)
        return
    rows = [
        (name, msgspec.json.encode(each).decode() if isinstance(each, dict | list) else each)
        for name, each in value.items()
        if each is not None
    ]
    for line in facts(rows):
        click.echo(line)


# --- amounts --------------------------------------------------------------------------------------


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
    """Parse ``0.5 WAVES``, ``35 wavelets``, ``10 USDT`` or ``3 ASSETID``; without a unit it is the
    coin.

    A name stands for the asset that ``owner`` holds under it: anybody can issue an asset of any
    name, so that two of one name have to be told apart by their ids. Raises ``InputError``.
    """
    from soliton.client.amounts import scaled

    number, _, unit = words.strip().partition(" ")
    unit = unit.strip()
    details = None if unit in ("", COIN, SMALLEST) else held_asset(unit, node, owner)
    decimals = 8 if details is None else details.decimals
    units = scaled(number, 0 if unit == SMALLEST else decimals)
    if units <= 0:
        raise InputError(f"{number!r} is not an amount above 0")
    return Sum(units, details)


def read_coins(words: str | None) -> int | None:
    """Parse an amount of the coin, such as ``0.005`` or ``0.005 WAVES``; raises ``InputError``."""
    from soliton.client.amounts import scaled

    if words is None:
        return None
    number, space, unit = words.partition(" ")
    if space and unit not in (COIN, SMALLEST):
        raise InputError(f"{words[:80]!r} is not an amount of {COIN}")
    return scaled(number, 0 if unit == SMALLEST else 8)


def held_asset(unit: str, node: Node, owner: str) -> AssetDetails:
    """The asset that an account holds under a name or id; raises ``InputError``."""
    held = [each.asset_id for each in node.asset_balances(owner) if each.balance]
    if unit in held:
        return node.asset(unit)
    named = [each for each in asset_details(node, held).values() if each.name == unit]
    if len(named) > 1:
        ids = ", ".join(each.asset_id for each in named)
        raise InputError(
            f"{owner} holds {len(named)} assets named {unit!r}: name one by its id: {ids}"
        )
    if not named:
        raise InputError(f"{owner} holds no asset with the name or id {unit[:80]!r}")
    return named[0]


def asset_details(node: Node, ids: list[str]) -> dict[str, AssetDetails]:
    """The records of assets by id."""
    found: dict[str, AssetDetails] = {}
    for start in range(0, len(ids), ASSETS_AT_ONCE):
        for each in node.assets(ids[start : start + ASSETS_AT_ONCE]):
            found[each.asset_id] = each
    return found


# --- signing and sending --------------------------------------------------------------------------


class Key(Protocol):
    """The options that choose a node, and the key and the chain to sign with."""

    @property
    def url(self) -> str: ...
    @property
    def account(self) -> int | None: ...
    @property
    def key(self) -> str | None: ...
    @property
    def store(self) -> Path: ...
    @property
    def password_file(self) -> Path | None: ...
    @property
    def chain_id(self) -> str | None: ...


class Asking(NamedTuple):
    """The options of a command that signs and sends nothing to the chain: the node and the key."""

    url: str
    account: int | None
    key: str | None
    store: Path
    password_file: Path | None
    chain_id: str | None


class Writing(NamedTuple):
    """The options of a command that signs: the node, the key, the fee, what to wait for."""

    url: str
    as_json: bool
    account: int | None
    key: str | None
    store: Path
    password_file: Path | None
    chain_id: str | None
    fee: str | None
    max_fee: str | None
    dry_run: bool
    depth: Confirmations | None


def gathered(command: Callable[..., None], kind: type[Any]) -> Callable[..., None]:
    """The command with the options of a named tuple, which it gets as ``how``."""

    @functools.wraps(command)
    def run(**options: Any) -> None:  # noqa: ANN401 - of any type
        how = kind(**{name: options.pop(name) for name in kind._fields})
        command(how=how, **options)

    return run


def writing_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a command that sends a transaction, which gets them as ``how``."""
    run = gathered(command, Writing)
    for option in (
        click.option("--wait", "depth", type=CONFIRMATIONS, metavar="N|finalized",
            help="Wait for so many blocks above it, or until it is final."),
        click.option("--dry-run", is_flag=True, help="Show what would happen, and send nothing."),
        click.option("--max-fee", metavar="AMOUNT",
            help="The limit on that.  [default: twice the minimum of the network's rules]"),
        click.option("--fee", metavar="AMOUNT", help="The fee.  [default: what the node requires]"),
        chain_option,
    ):  # fmt: skip
        run = option(run)
    return reading_options(signing_options(run))


def asking_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a command that signs without sending, which gets them as ``how``."""
    return node_option(signing_options(chain_option(gathered(command, Asking))))


@contextmanager
def signing(how: Key) -> Iterator[tuple[Node, Account]]:
    """Connect to a node with the account that the options choose; raises ``InputError``."""
    from soliton.client.account import Account

    keys = read_keys(how.account, how.key, how.store, how.password_file)
    with connected(how.url, chain_to_sign_for(how.url, how.chain_id)) as node:
        yield node, Account(keys, node.chain_id)


def chain_to_sign_for(url: str, chain_id: str | None) -> int | None:
    """The chain in an option: a node on another machine does not decide that. ``None`` for what a
    node on this machine says; raises ``InputError``.
    """
    from soliton.node.rest_settings import is_local

    if chain_id is None and not is_local(urlsplit(url).hostname or ""):
        raise InputError(f"{url} is on another machine: --chain-id says for which chain to sign")
    return read_chain_id(chain_id)


class WouldBeRefused(InputError):
    """A dry run has failed; ``fault`` is the place in a script as the node reports it, or empty."""

    def __init__(self, reason: str, fault: Mapping[str, Any]) -> None:
        super().__init__(f"the node would refuse it: {reason}")
        self.fault = fault


class Delivery(NamedTuple):
    """What has become of a transaction: the verdict of a dry run, or its block if that was waited
    for.
    """

    transaction: Transaction
    verdict: Validation | None = None
    mined: Mined | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """Id, fee, and what is known, by name."""
        found: dict[str, Any] = {"id": self.transaction.id, "fee": self.transaction.fee}
        if self.verdict is not None:
            return {"valid": self.verdict.valid, "error": self.verdict.error, **found}
        if self.mined is not None:
            found["height"] = self.mined.height
        return found

    def check(self) -> None:
        """Raise ``WouldBeRefused`` for a dry run that has failed."""
        if self.verdict is not None and not self.verdict.valid:
            raise WouldBeRefused(self.verdict.error or "it is invalid", self.verdict.fault)


def deliver(how: Writing, node: Node, transaction: Transaction) -> Delivery:
    """Send a transaction and wait for its block, or dry-run it, as the options say."""
    fee = read_coins(how.fee)
    if fee is not None:
        transaction = transaction.renewed(fee=fee)
    max_fee = read_coins(how.max_fee)
    if how.dry_run:
        return Delivery(*node.dry_run(transaction, max_fee))
    sent = node.send(transaction, max_fee=max_fee)
    mined = None if how.depth is None else sent.wait(WAIT_SECONDS, how.depth)
    return Delivery(sent.transaction, mined=mined)


def send(how: Writing, make: Callable[[Node, Account], tuple[Transaction, str]]) -> None:
    """Make a transaction and send or dry-run it, and print what has become of it. ``make`` returns
    it with a sentence for people that lacks its subject and its verb.
    """
    with signing(how) as (node, sender):
        transaction, text = make(node, sender)
        delivery = deliver(how, node, transaction)
    report(how, delivery, text, sender.address)


def report(how: Writing, delivery: Delivery, text: str, sender: str) -> None:
    """Print what has become of a transaction; raises ``WouldBeRefused``."""
    if not how.as_json:
        verb = "sent" if delivery.verdict is None else "not sent"
        click.echo(printable(f"{verb}: {text} from {sender}"))
    show(delivery.facts, as_json=how.as_json)
    delivery.check()


def recipient_text(text: str, chain_id: int) -> str:
    """The recipient as it is signed. The node does not decide whose an alias is."""
    if text.startswith(_ALIAS):
        return f"{_ALIAS}{chr(chain_id)}:{text.rpartition(':')[2]}"
    return text


def address_in(node: Node, text: str) -> str:
    """The address that a text names: an address, or ``alias:NAME``."""
    if text.startswith(_ALIAS):
        return node.address_by_alias(text.rpartition(":")[2])
    return text
