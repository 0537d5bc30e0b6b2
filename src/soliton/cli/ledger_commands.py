"""``soliton balance``, ``account``, ``tx``, ``block``, ``asset``, ``data``, ``transfer``,
``alias``, ``lease``, ``send`` and ``console``.

They read and write the ledger through any node, Soliton's or the reference's.

What lives here: these commands. What does not: amounts, signing and sending (``node_options``).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click
import msgspec

from soliton.cli.node_options import (
    COIN,
    Writing,
    address_in,
    asset_details,
    chain_to_sign_for,
    connected,
    deliver,
    node_option,
    print_json,
    read_sum,
    reading_options,
    recipient_text,
    report,
    send,
    show,
    writing_options,
)
from soliton.cli.tables import table
from soliton.errors import InputError

if TYPE_CHECKING:
    from soliton.client.account import Account
    from soliton.client.node import Node
    from soliton.client.transaction import Transaction

MAX_ROWS: Final = 1_000
"""Limit on the rows of a table; ``--json`` has no other."""


# --- reading --------------------------------------------------------------------------------------


@click.command()
@click.argument("address")
@click.option("--asset", metavar="ID", help="The balance of this asset.")
@click.option("--all", "all_assets", is_flag=True, help="The balances of all assets, too.")
@reading_options
def balance(address: str, asset: str | None, all_assets: bool, url: str, as_json: bool) -> None:
    """Print the balance of an account; ADDRESS may be alias:NAME."""
    from soliton.client.amounts import text

    with connected(url) as node:
        owner = address_in(node, address)
        if asset is not None and asset != COIN:
            details = node.asset(asset)
            rows = [(details.name, asset, node.balance(owner, asset), details.decimals)]
        else:
            rows = [(COIN, COIN, node.balance(owner), 8)]
        if all_assets:
            held = [each for each in node.asset_balances(owner) if each.balance]
            known = asset_details(node, [each.asset_id for each in held])
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
        print_json(shown)
        return
    cells = [(text(units, decimals), name, "" if id_ == COIN else id_)
             for name, id_, units, decimals in rows[:MAX_ROWS]]  # fmt: skip
    for line in table(("amount", "asset", "id"), cells):
        click.echo(line)
    if len(rows) > MAX_ROWS:
        click.echo(f"… and {len(rows) - MAX_ROWS} more: --json has all")


@click.command()
@click.argument("address")
@reading_options
def account(address: str, url: str, as_json: bool) -> None:
    """Print balances, aliases and script of an account; ADDRESS may be alias:NAME."""
    from soliton.client.amounts import text

    with connected(url) as node:
        owner = address_in(node, address)
        details, script = node.balance_details(owner), node.script(owner)
        found: dict[str, Any] = {"address": owner}
        for name in ("regular", "available", "effective", "generating"):
            units = getattr(details, name)
            found[name] = units if as_json else f"{text(units)} {COIN}"
        found["aliases"] = node.aliases(owner)
        found["scripted"] = script.script is not None
        found["complexity"] = script.complexity or None
    show(found, as_json=as_json)


@click.command()
@click.argument("transaction_id", metavar="ID")
@reading_options
def tx(transaction_id: str, url: str, as_json: bool) -> None:
    """Print a transaction of the chain or the pool."""
    from soliton.client.errors import NotFound

    with connected(url) as node:
        try:
            found = node.transaction(transaction_id)
        except NotFound:
            found = node.unconfirmed_transaction(transaction_id)
    show(found.json, as_json=as_json)


@click.command()
@click.argument("which", metavar="HEIGHT", required=False)
@reading_options
def block(which: str | None, url: str, as_json: bool) -> None:
    """Print the header of the block at HEIGHT, or with an id, by default of the last one."""
    with connected(url) as node:
        if which is None:
            header = node.last_header()
        elif which.isascii() and which.isdecimal() and len(which) <= len(str(2**31)):
            header = node.header_at(int(which))
        else:
            header = node.header(which)
    show(msgspec.to_builtins(header), as_json=as_json)


@click.command()
@click.argument("asset_id", metavar="ID")
@reading_options
def asset(asset_id: str, url: str, as_json: bool) -> None:
    """Print an asset."""
    from soliton.client.amounts import text

    with connected(url) as node:
        details = node.asset(asset_id)
    found = msgspec.to_builtins(details)
    if not as_json:
        found["quantity"] = text(details.quantity, details.decimals)
    show(found, as_json=as_json)


@click.command()
@click.argument("address")
@click.argument("key", required=False)
@reading_options
def data(address: str, key: str | None, url: str, as_json: bool) -> None:
    """Print the data entries of an account, or the one with a key."""
    with connected(url) as node:
        owner = address_in(node, address)
        found = node.data(owner) if key is None else {key: node.data_entry(owner, key)}
    if key is not None and found[key] is None:
        raise InputError(f"{owner} has no entry {key[:80]!r}")
    if as_json:
        print_json(found)
        return
    rows = [(name, _plain(value)) for name, value in list(found.items())[:MAX_ROWS]]
    for line in table(("key", "value"), rows):
        click.echo(line)
    if len(found) > MAX_ROWS:
        click.echo(f"… and {len(found) - MAX_ROWS} more: --json has all")


def _plain(value: object) -> str:
    return f"0x{value.hex()}" if isinstance(value, bytes) else str(value)


# --- writing --------------------------------------------------------------------------------------


@click.command()
@click.argument("recipient", metavar="TO")
@click.argument("amount")
@writing_options
@click.option("--attachment", default="", help="A text for the recipient.")
def transfer(recipient: str, amount: str, attachment: str, how: Writing) -> None:
    """Send AMOUNT, such as "0.5 WAVES" or "10 USDT", to an address or alias:NAME.

    The signing key: --key, --account, or the seed in SOLITON_SEED_FILE or SOLITON_SEED.
    """

    def make(node: Node, sender: Account) -> tuple[Transaction, str]:
        to = recipient_text(recipient, node.chain_id)
        paid = read_sum(amount, node, sender.address)
        made = sender.transfer(to, paid.units, paid.asset, attachment=attachment)
        return made, f"{paid.shown} to {to}"

    send(how, make)


@click.command()
@click.argument("name")
@writing_options
def alias(name: str, how: Writing) -> None:
    """Create the alias NAME of the account, for ever.

    The signing key: --key, --account, or the seed in SOLITON_SEED_FILE or SOLITON_SEED.
    """
    send(how, lambda _node, sender: (sender.alias(name), f"alias {name}"))


@click.command()
@click.argument("recipient", metavar="TO")
@click.argument("amount")
@writing_options
def lease(recipient: str, amount: str, how: Writing) -> None:
    """Lease AMOUNT, such as "1000 WAVES", to a generator: an address or alias:NAME.

    The signing key: --key, --account, or the seed in SOLITON_SEED_FILE or SOLITON_SEED.
    """

    def make(node: Node, sender: Account) -> tuple[Transaction, str]:
        to = recipient_text(recipient, node.chain_id)
        leased = read_sum(amount, node, sender.address)
        if leased.asset is not None:
            raise InputError(f"only {COIN} can be leased")
        return sender.lease(to, leased.units), f"a lease of {leased.shown} to {to}"

    send(how, make)


@click.command("lease-cancel")
@click.argument("lease_id", metavar="ID")
@writing_options
def lease_cancel(lease_id: str, how: Writing) -> None:
    """Cancel the lease with an ID.

    The signing key: --key, --account, or the seed in SOLITON_SEED_FILE or SOLITON_SEED.
    """
    send(
        how,
        lambda _node, sender: (
            sender.cancel_lease(lease_id),
            f"the end of {lease_id}",
        ),
    )


@click.command("send")
@click.argument("file", type=click.File("rb"))
@writing_options
def send_file(file: BinaryIO, how: Writing) -> None:
    """Send the transaction in FILE, a JSON object (- is standard input), of any type.

    Without proofs it is signed with --key, --account, or the seed in SOLITON_SEED_FILE or
    SOLITON_SEED, whose public key is also the default of senderPublicKey.
    """
    from soliton.client.transaction import MAX_JSON_BYTES, Transaction, json_object

    fields = dict(json_object(file.read(MAX_JSON_BYTES + 1)))
    if fields.get("proofs") or fields.get("signature") or fields.get("bytes"):
        with connected(how.url, chain_to_sign_for(how.url, how.chain_id)) as node:
            sent = Transaction.from_json(fields, node.chain_id)
            report(how, deliver(how, node, sent), f"a transaction of type {sent.type}", sent.sender)
        return

    def make(node: Node, sender: Account) -> tuple[Transaction, str]:
        whole = {"senderPublicKey": sender.public_key, "proofs": [], **fields}
        made = Transaction.from_json(whole, node.chain_id).signed_by(sender)
        return made, f"a transaction of type {made.type}"

    send(how, make)


@click.command()
@node_option
def console(url: str) -> None:
    """Start Python with the library, and `node` connected to a node.

    Lines of standard input are run if that is no terminal.
    """
    import code
    import sys

    import soliton

    with connected(url) as node:
        names = {name: getattr(soliton, name) for name in dir(soliton) if name[0] != "_"}
        banner = f"node is {url}; Account, Matcher, units and all of soliton are here. Ctrl-D ends."
        if sys.stdin.isatty():
            with suppress(ImportError):
                import readline  # noqa: F401 - line editing for input()
        code.interact(banner, local={**names, "node": node}, exitmsg="")
