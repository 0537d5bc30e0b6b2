"""``soliton data-service``: the ecosystem's ``/v0`` API, from the tables of the export.

What lives here: options, and starting the service. What does not: the service
(``soliton.data_service``), which is imported when the command runs.
"""

from __future__ import annotations

import asyncio
import logging
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import click

from soliton.cli.chain_source import finalized_option
from soliton.cli.chosen import UsageProblem
from soliton.cli.logs import configure_log, current_log, log_options
from soliton.cli.quantities import WHOLE, WholeRange
from soliton.cli.ranges import Seconds
from soliton.errors import InputError

if TYPE_CHECKING:
    from soliton.data_service.app import DataServiceSettings

_AMOUNT: Final = re.compile(r"[0-9]{1,30}(?:\.[0-9]{1,30})?")
_log = logging.getLogger(__name__)


class WrongNumber(InputError):
    """An option that is not a number."""


@click.command("data-service")
@click.option(
    "--dsn",
    envvar="SOLITON_DSN",
    metavar="DSN",
    help="The database, as a libpq connection string; a replica is sufficient.",
)
@click.option(
    "--from-node",
    metavar="URL",
    help="Without a database: serve this node's chain.",
)
@finalized_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=WHOLE, default=3000, show_default=True, help="0 chooses a free one.")
@click.option(
    "--matcher",
    default="",
    envvar="DEFAULT_MATCHER",
    metavar="ADDRESS",
    help="The matcher of requests for pairs and candles that name none.",
)
@click.option(
    "--rate-base", default="WAVES", show_default=True, metavar="ASSET", help="The asset of rates."
)
@click.option(
    "--rate-threshold-asset",
    default="",
    metavar="ASSET",
    help="The asset of --rate-threshold.",
)
@click.option(
    "--rate-threshold",
    default="0",
    metavar="AMOUNT",
    help="The volume in 24 hours from which a pair's own trades determine its rate.",
)
@click.option(
    "--pool",
    type=WholeRange(1, 1_000),
    default=20,
    show_default=True,
    help="Connections to the database.",
)
@click.option(
    "--statement-timeout",
    type=Seconds(0.1, 600),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Longer queries are answered with 504.",
)
@click.option(
    "--max-block-age",
    type=Seconds(0, 10_000_000),
    default=0.0,
    show_default=True,
    metavar="SECONDS",
    help="/readyz answers 503 if the newest block is older; 0 means no limit.",
)
@log_options
def data_service(
    dsn: str | None,
    from_node: str | None,
    finalized: bool,
    host: str,
    port: int,
    matcher: str,
    rate_base: str,
    rate_threshold_asset: str,
    rate_threshold: str,
    pool: int,
    statement_timeout: float,
    max_block_age: float,
) -> None:
    """Serve /v0: assets, pairs, candles, rates, transactions, from the export's database."""
    from soliton.cli.export_run import check_driver
    from soliton.cli.process import run_program

    check_driver()
    from soliton.data_service.app import DataServiceSettings
    from soliton.data_service.rates import RateSettings

    configure_log(current_log())
    rates = RateSettings(rate_base, rate_threshold_asset, _amount(rate_threshold))
    settings = DataServiceSettings(matcher, rates, max_block_age)
    if (dsn is None) == (from_node is None):
        raise UsageProblem("one of --dsn and --from-node is needed")
    if finalized and from_node is None:
        raise UsageProblem("--finalized goes with --from-node; a database has what was exported")
    with _database(dsn, from_node, finalized=finalized) as found:
        run_program(lambda: _serve(found, (host, port), settings, pool, statement_timeout))


def _amount(text: str) -> Decimal:
    """Parse the value of ``--rate-threshold``."""
    if _AMOUNT.fullmatch(text) is None:
        raise WrongNumber(f"--rate-threshold: {text!r} is not an amount")
    return Decimal(text)


@contextmanager
def _database(dsn: str | None, from_node: str | None, *, finalized: bool) -> Iterator[str]:
    """Return the given database, or run a server of our own that follows a node."""
    if dsn is not None:
        yield dsn
        return
    from soliton.cli.chain_source import ChainSource
    from soliton.cli.export_run import background_export
    from soliton.cli.own_postgres import own_postgres

    # Until the service handles it, SIGTERM acts like Ctrl-C, so that the server is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    where = ChainSource(from_node, None, None, None)
    with own_postgres() as own, background_export(own, where, finalized=finalized):
        yield own


async def _serve(
    dsn: str,
    where: tuple[str, int],
    settings: DataServiceSettings,
    size: int,
    seconds: float,
) -> None:
    from soliton.cli.process import call_on_signals, end_start_of_service
    from soliton.data_service.app import DataService
    from soliton.data_service.pool import Pool
    from soliton.web.server import serve

    stopped = asyncio.Event()
    call_on_signals(stopped.set)
    pool = Pool(dsn, size, seconds)
    service = DataService(pool, settings)
    server = await serve(service, *where, counters=service.traffic.counters)
    _log.info("data service on http://%s:%d", server.host, server.port)
    end_start_of_service()
    try:
        await stopped.wait()
    finally:
        await server.stop()
        await pool.close()
