"""``soliton compare``: whether two nodes have the same chain, and who is right.

What lives here: options and output. What does not: the comparison (``comparing``).
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click
import msgspec

from soliton.cli.ranges import Seconds
from soliton.cli.tables import facts, table

if TYPE_CHECKING:
    from soliton.cli.comparing import Comparison, Shown

DIFFERENT: Final = 1
NO_ANSWER: Final = 2
_MS: Final = 1_000


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.argument("third", metavar="C", required=False)
@click.option(
    "--api-key",
    envvar="SOLITON_API_KEY",
    help="The key of nodes that require one for state hashes, or SOLITON_API_KEY.",
)
@click.option(
    "--timeout",
    type=Seconds(0.1, 600),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit of an answer.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare(
    first: str, second: str, third: str | None, api_key: str | None, timeout: float, as_json: bool
) -> None:
    """Compare the chains of the nodes at the URLs A and B; C tells who is right.

    Finds the first different block, and the first different state, by bisection. Exits with code 1
    if the chains differ, and 2 if a node does not answer.
    """
    from soliton.cli.comparing import compare as compare_chains
    from soliton.cli.comparing import node_side
    from soliton.client.errors import ClientError
    from soliton.errors import EnvironmentProblem

    sides = [
        None if url is None else node_side(url, api_key, timeout) for url in (first, second, third)
    ]
    ours, theirs, judge = sides
    assert ours is not None and theirs is not None
    try:
        with ExitStack() as stack:
            for side in filter(None, sides):
                stack.enter_context(side.node)
            found = compare_chains(ours, theirs, judge)
    except (ClientError, EnvironmentProblem) as error:
        click.echo(f"soliton: {error}", err=True)
        sys.exit(NO_ANSWER)
    if as_json:
        shown = {"equal": found.is_equal} | msgspec.to_builtins(found)
        click.echo(msgspec.json.format(msgspec.json.encode(shown), indent=2).decode())
    else:
        _print(found, third)
    if not found.is_equal:
        sys.exit(DIFFERENT)


def _print(found: Comparison, third: str | None) -> None:
    rows: list[tuple[str, object]] = [
        ("A", f"{found.first}, height {found.first_height}"),
        ("B", f"{found.second}, height {found.second_height}"),
        ("last equal block", found.common_height or "none: they are not of one network"),
        ("states compared", _states(found)),
    ]
    for line in facts(rows):
        click.echo(line)
    difference = found.difference
    if difference is None:
        click.echo("the chains are equal" + _behind(found))
        return
    click.echo(f"the first different {difference.kind} is at height {difference.height}:")
    shown = [_row(name, each) for name, each in (("A", difference.first), ("B", difference.second))]
    for line in table(("", "block", "generator", "time", "state hash"), shown):
        click.echo(line)
    if third is None:
        click.echo("a third node tells who is right: soliton compare A B C")
    elif difference.right is None:
        click.echo(f"{third} agrees with neither")
    else:
        wrong = found.second if difference.right == found.first else found.first
        click.echo(f"{third} agrees with {difference.right}: {wrong} is on a fork of its own")


def _states(found: Comparison) -> str:
    if found.state_height is None:
        return "none: a node has no state hashes, or requires --api-key"
    return f"up to height {found.state_height}"


def _behind(found: Comparison) -> str:
    behind = found.first_height - found.second_height
    if not behind:
        return ""
    name = found.second if behind > 0 else found.first
    return f"; {name} is {abs(behind)} blocks behind"


def _row(name: str, shown: Shown) -> tuple[str, str, str, str, str]:
    try:
        moment = f"{datetime.fromtimestamp(shown.timestamp / _MS, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        moment = str(shown.timestamp)
    return name, shown.id, shown.generator, moment, shown.state_hash or "-"
