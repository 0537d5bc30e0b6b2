"""``soliton notify``: webhooks, and programs that are run when something happens on the chain.

What lives here: options. What does not: the work (``notify_run``), which is imported when the
command runs.
"""

from __future__ import annotations

from pathlib import Path

import click

from soliton.cli.chain_source import Where, chain_options
from soliton.cli.chosen import UsageProblem
from soliton.cli.logs import log_options
from soliton.cli.quantities import MILLISECONDS


@click.command()
@click.option("--url", metavar="URL", help="Who gets each notice, with a signed POST request.")
@click.option(
    "--secret-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="What requests are signed with; a file that is missing is made.",
)
@click.option(
    "--notify-cmd", metavar="COMMAND", help="Run this program instead; it reads the notice."
)
@click.option(
    "--cursor",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="Where it is kept what was told; one that is there is gone on with.",
)
@click.option("--payments-to", multiple=True, metavar="ADDRESS", help="Tell of payments to it.")
@click.option(
    "--transfers-of", multiple=True, metavar="ASSET", help="Tell of all payments of it; or WAVES."
)
@click.option(
    "--data",
    multiple=True,
    metavar="ADDRESS[:PATTERN]",
    help="Tell of its data entries whose keys fit a pattern with * and ?.",
)
@click.option(
    "--failed-invokes",
    multiple=True,
    metavar="ADDRESS",
    help="Tell of calls of this dApp, or of any, that failed.",
)
@click.option(
    "--orders-of", multiple=True, metavar="ADDRESS", help="Tell when its orders are filled."
)
@click.option(
    "--from-height",
    type=click.IntRange(min=1),
    metavar="HEIGHT",
    help="Begin here (default: with what comes next).",
)
@click.option(
    "--confirmations",
    type=click.IntRange(0, 10_000),
    default=0,
    show_default=True,
    help="Tell of a block when so many are on top of it.",
)
@click.option(
    "--timeout", type=MILLISECONDS, default="15s", show_default=True, help="For one attempt."
)
@chain_options
@click.option("--once", is_flag=True, help="End when all is told that there is.")
@log_options
def notify(
    url: str | None,
    secret_file: Path | None,
    notify_cmd: str | None,
    cursor: Path,
    payments_to: tuple[str, ...],
    transfers_of: tuple[str, ...],
    data: tuple[str, ...],
    failed_invokes: tuple[str, ...],
    orders_of: tuple[str, ...],
    from_height: int | None,
    confirmations: int,
    timeout: int,
    where: Where,
    once: bool,
) -> None:
    """Tell a web server or a program what happens on the chain: at least once, in order."""
    from soliton.cli.notify_run import Told, run_notify
    from soliton.export.notices import ANY, DataKeys, Interests

    if (url is None) == (notify_cmd is None):
        raise UsageProblem("one of --url and --notify-cmd is needed")
    if (url is None) != (secret_file is None):
        raise UsageProblem("--secret-file goes with --url, whose requests it signs")
    wanted = [DataKeys(*_split(each)) for each in data]
    named = {*payments_to, *failed_invokes, *orders_of, *(each.address for each in wanted)}
    interests = Interests(
        payments_to=frozenset(payments_to),
        transfers_of=frozenset(transfers_of),
        data=tuple(wanted),
        failed_invokes=frozenset(failed_invokes),
        orders_of=frozenset(orders_of),
    )
    if interests == Interests():
        raise UsageProblem("nothing to be told: --payments-to, --data or another is needed")
    run_notify(
        Told(url, secret_file, notify_cmd, timeout / 1_000),
        cursor,
        interests,
        sorted(named - {ANY}),
        where,
        from_height=from_height,
        confirmations=confirmations,
        once=once,
    )


def _split(text: str) -> tuple[str, str]:
    """Address and pattern; keys may have colons, addresses have none."""
    address, _, pattern = text.partition(":")
    return address, pattern or "*"
