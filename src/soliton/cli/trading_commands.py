"""``soliton book``, ``order``, ``orders`` and ``cancel``: trading at a matcher.

They work with Soliton's matcher and with the reference's, which knows no codes of assets.

What lives here: these commands. What does not: orders and requests (``soliton.client``), the
options that they share with others (``node_options``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
import msgspec

from soliton.cli.helping import printable
from soliton.cli.node_options import (
    COIN,
    chain_option,
    connected,
    gathered,
    print_json,
    read_coins,
    reading_options,
    show,
    signing,
)
from soliton.cli.quantities import WholeRange
from soliton.cli.signing_key import signing_options
from soliton.cli.tables import table
from soliton.errors import InputError

if TYPE_CHECKING:
    from soliton.client.account import Account
    from soliton.client.matcher import Matcher
    from soliton.client.matcher_records import Level, OrderInfo
    from soliton.client.node import Node
    from soliton.client.records import AssetDetails

MAX_DEPTH: Final = 1_000
_MATCHER: Final = "http://127.0.0.1:6886"
_PRICE_DECIMALS: Final = 8
_matcher_option: Final = click.option(
    "--matcher",
    "matcher_url",
    default=_MATCHER,
    envvar="SOLITON_MATCHER",
    show_default=True,
    metavar="URL",
    help="The matcher, or SOLITON_MATCHER.",
)


class Trading(NamedTuple):
    """The options of a command that trades: node, matcher, key."""

    url: str
    matcher_url: str
    as_json: bool
    account: int | None
    key: str | None
    store: Path
    password_file: Path | None
    chain_id: str | None


def _trading_options(command: Callable[..., None]) -> Callable[..., None]:
    run = chain_option(gathered(command, Trading))
    return _matcher_option(reading_options(signing_options(run)))


class Pair(NamedTuple):
    """Two assets, each with its record (``None``: the coin), and the words for them."""

    words: tuple[str, str]
    amount: AssetDetails | None
    price: AssetDetails | None

    @property
    def amount_decimals(self) -> int:
        """The decimals of the amount asset."""
        return 8 if self.amount is None else self.amount.decimals

    @property
    def price_places(self) -> int:
        """The decimals of prices in the units of order books."""
        price = 8 if self.price is None else self.price.decimals
        return _PRICE_DECIMALS + price - self.amount_decimals


def read_pair(words: str, node: Node, matcher: Matcher) -> Pair:
    """Parse ``BTC/USD``: codes that the matcher's operator vouches for, ids, or ``WAVES``.

    Names of assets are no codes, as anybody can issue an asset of any name. Raises ``InputError``.
    """
    first, slash, second = words.partition("/")
    if not slash or not first or not second or first == second:
        raise InputError(f"{words[:80]!r} is not a pair such as BTC/USD")
    codes = matcher.settings().tickers
    ids = [None if word == COIN else codes.get(word, word) for word in (first, second)]
    found = matcher.pair(ids[0], ids[1])
    if (found.amount_asset, found.price_asset) != tuple(each or COIN for each in ids):
        raise InputError(f"the market is {second}/{first}, not {words}")
    return Pair((first, second), *(None if each is None else node.asset(each) for each in ids))


@click.command()
@click.argument("pair")
@_matcher_option
@reading_options
@click.option("--depth", type=WholeRange(1, MAX_DEPTH), default=10, show_default=True,
    help="Levels of each side.")  # fmt: skip
def book(pair: str, depth: int, matcher_url: str, url: str, as_json: bool) -> None:
    """Print the order book of PAIR, such as BTC/USD: codes of the matcher, or ids of assets."""
    from soliton.client.matcher import Matcher

    with connected(url) as node, Matcher(matcher_url) as matcher:
        market = read_pair(pair, node, matcher)
        found = matcher.book(market.amount, market.price, depth)
    bids, asks = (_levels(market, side[:depth]) for side in (found.bids, found.asks))
    if as_json:
        print_json({"bids": bids, "asks": asks, "timestamp": found.timestamp})
        return
    rows = [("ask", *each) for each in reversed(asks)] + [("bid", *each) for each in bids]
    for line in table(("", f"price {market.words[1]}", f"amount {market.words[0]}"), rows):
        click.echo(line)


def _levels(market: Pair, levels: Sequence[Level]) -> list[tuple[str, str]]:
    from soliton.client.amounts import text

    return [
        (text(each.price, market.price_places), text(each.amount, market.amount_decimals))
        for each in levels
    ]


@click.command()
@click.argument("side", type=click.Choice(["buy", "sell"]))
@click.argument("amount")
@click.argument("pair")
@click.argument("price")
@_trading_options
@click.option("--market", is_flag=True, help="Execute at once as far as possible, up to PRICE.")
@click.option("--matcher-fee", default="0.003", show_default=True, metavar="AMOUNT",
    help="The matcher's fee.")  # fmt: skip
def order(
    side: str, amount: str, pair: str, price: str, market: bool, matcher_fee: str, how: Trading
) -> None:
    """Place an order: soliton order buy 0.5 BTC/USD 65000.

    PRICE is the limit for one whole unit. The signing key: --key, --account, or the seed in
    SOLITON_SEED_FILE or SOLITON_SEED.
    """
    fee = read_coins(matcher_fee)
    assert fee is not None, "the option has a default"
    with ExitStack() as stack:
        node, matcher, sender = _at(stack, how)
        of = read_pair(pair, node, matcher)
        made = sender.order(
            side, amount, of.amount, price, of.price,
            matcher=matcher.public_key(), matcher_fee=fee,
        )  # fmt: skip
        matcher.place(made, market=market)
        status = matcher.order_status(made)
    if not how.as_json:
        click.echo(printable(f"placed: {side} {amount} {pair} at {price} by {sender.address}"))
    show({"id": made.id, **msgspec.to_builtins(status)}, as_json=how.as_json)


@click.command()
@click.argument("pair", required=False)
@_trading_options
@click.option("--all", "everything", is_flag=True, help="Also orders that have ended.")
def orders(pair: str | None, everything: bool, how: Trading) -> None:
    """List the orders of an account, of all markets or of PAIR."""
    with ExitStack() as stack:
        node, matcher, sender = _at(stack, how)
        of = None if pair is None else read_pair(pair, node, matcher)
        assets = (None, None) if of is None else (of.amount, of.price)
        found = matcher.orders(sender, *assets, active=None if everything else True)
        codes = {asset: code for code, asset in matcher.settings().tickers.items()}
        known = _records(node, found)
    if how.as_json:
        print_json(found)
        return
    rows = [_row(each, codes, known) for each in found]
    for line in table(("side", "amount", "filled", "market", "price", "status", "id"), rows):
        click.echo(line)


def _records(node: Node, found: list[OrderInfo]) -> dict[str, int]:
    """The decimals of the assets of orders."""
    ids = {asset for each in found for asset in (each.amount_asset, each.price_asset)} - {COIN}
    return {each: node.asset(each).decimals for each in ids} | {COIN: 8}


def _row(each: OrderInfo, codes: dict[str, str], decimals: dict[str, int]) -> tuple[str, ...]:
    from soliton.client.amounts import text

    first, second = each.amount_asset, each.price_asset
    places = _PRICE_DECIMALS + decimals[second] - decimals[first]
    amount, filled = (text(units, decimals[first]) for units in (each.amount, each.filled))
    market = "/".join(codes.get(asset, asset) for asset in (first, second))
    return each.side, amount, filled, market, text(each.price, places), each.status, each.id


@click.command()
@click.argument("order_id", metavar="ID", required=False)
@_trading_options
@click.option("--all", "everything", is_flag=True, help="All orders of the account.")
def cancel(order_id: str | None, everything: bool, how: Trading) -> None:
    """Cancel the order with an ID, or --all."""
    if (order_id is None) != everything:
        raise InputError("which order? its ID, or --all")
    with ExitStack() as stack:
        _, matcher, sender = _at(stack, how)
        if order_id is None:
            matcher.cancel_all(sender)
            found: dict[str, Any] = {"cancelled": "all", "sender": sender.address}
        else:
            placed = matcher.order(sender, order_id)
            matcher.cancel(sender, placed)
            found = {"id": order_id, **msgspec.to_builtins(matcher.order_status(placed))}
    show(found, as_json=how.as_json)


def _at(stack: ExitStack, how: Trading) -> tuple[Node, Matcher, Account]:
    from soliton.client.matcher import Matcher

    node, sender = stack.enter_context(signing(how))
    return node, stack.enter_context(Matcher(how.matcher_url)), sender
