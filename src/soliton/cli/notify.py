"""``soliton notify``: webhooks, and programs that are run on events of the chain.

What lives here: options. What does not: the work (``notify_run``), which is imported when the
command runs.
"""

from __future__ import annotations

from pathlib import Path

import click

from soliton.cli.chain_source import ChainSource, chain_options
from soliton.cli.chosen import UsageProblem
from soliton.cli.logs import log_options
from soliton.cli.quantities import CONFIRMATIONS, MILLISECONDS, Confirmations, WholeRange
from soliton.cli.watching import Address, metrics_option


@click.command()
@click.option("--url", metavar="URL", help="The receiver of each notice, as a signed POST request.")
@click.option(
    "--secret-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The secrets that sign requests; a missing file is created.",
)
@click.option(
    "--notify-cmd", metavar="COMMAND", help="Run this program instead, with the notice as input."
)
@click.option(
    "--cursor",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="The file that holds position and queue; an existing one is continued.",
)
@click.option("--payments-to", multiple=True, metavar="ADDRESS", help="Payments to an address.")
@click.option(
    "--transfers-of", multiple=True, metavar="ASSET", help="All payments of an asset, or of WAVES."
)
@click.option(
    "--data",
    multiple=True,
    metavar="ADDRESS[:PATTERN]",
    help="Data entries of an address whose keys match a pattern with * and ?.",
)
@click.option(
    "--failed-invokes",
    multiple=True,
    metavar="ADDRESS",
    help="Failed calls of a dApp, or of any.",
)
@click.option(
    "--orders-of", multiple=True, metavar="ADDRESS", help="Executed orders of an address."
)
@click.option(
    "--from-height",
    type=WholeRange(min=1),
    metavar="HEIGHT",
    help="The first block (default: the next one).",
)
@click.option(
    "--confirmations",
    type=CONFIRMATIONS,
    default="0",
    show_default=True,
    metavar="N|finalized",
    help="Blocks on top of a block before its notices are sent, or finalized.",
)
@click.option(
    "--timeout", type=MILLISECONDS, default="15s", show_default=True, help="Limit of an attempt."
)
@chain_options
@click.option("--once", is_flag=True, help="End when all present notices are sent.")
@metrics_option
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
    confirmations: Confirmations,
    timeout: int,
    where: ChainSource,
    once: bool,
    metrics: Address | None,
) -> None:
    """Notify a web server or a program of events on the chain: at least once, in order."""
    from soliton.cli.notify_run import Destination, run_notify
    from soliton.export.notices import ANY, DataKeys, Interests

    if (url is None) == (notify_cmd is None):
        raise UsageProblem("one of --url and --notify-cmd is needed")
    if (url is None) != (secret_file is None):
        raise UsageProblem("--secret-file needs --url, whose requests it signs")
    entries = [DataKeys(*_split(each)) for each in data]
    named = {*payments_to, *failed_invokes, *orders_of, *(each.address for each in entries)}
    interests = Interests(
        payments_to=frozenset(payments_to),
        transfers_of=frozenset(transfers_of),
        data=tuple(entries),
        failed_invokes=frozenset(failed_invokes),
        orders_of=frozenset(orders_of),
    )
    if interests == Interests():
        raise UsageProblem("no filters: --payments-to, --data or another is needed")
    run_notify(
        Destination(url, secret_file, notify_cmd, timeout / 1_000),
        cursor,
        interests,
        sorted(named - {ANY}),
        where,
        from_height=from_height,
        confirmations=confirmations,
        once=once,
        metrics=metrics,
    )


def _split(text: str) -> tuple[str, str]:
    """Split address and pattern; keys may contain colons, addresses cannot."""
    address, _, pattern = text.partition(":")
    return address, pattern or "*"
