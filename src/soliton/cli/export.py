"""``soliton export postgres``, ``kafka``, ``parquet`` and ``ndjson``, ``soliton verify postgres``.

What lives here: options. What does not: the work (``export_run``), which is imported when a command
runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from soliton.cli.chain_source import ChainSource, chain_options, finalized_option
from soliton.cli.logs import log_options
from soliton.cli.quantities import MILLISECONDS, WholeRange
from soliton.cli.watching import Address, metrics_option

_DSN: Final = click.option(
    "--dsn",
    required=True,
    envvar="SOLITON_DSN",
    metavar="DSN",
    help="The database, as a libpq connection string: postgresql://… or host=… dbname=….",
)


@click.command("export postgres")
@_DSN
@chain_options
@finalized_option
@click.option("--once", is_flag=True, help="End when the database has caught up with the chain.")
@click.option("--migrate", is_flag=True, help="First migrate tables of an older version.")
@click.option(
    "--asset-storage", default="", metavar="ADDRESS", help="The account with the assets' tickers."
)
@metrics_option
@log_options
def export_postgres(
    dsn: str,
    where: ChainSource,
    finalized: bool,
    once: bool,
    migrate: bool,
    asset_storage: str,
    metrics: Address | None,
) -> None:
    """Export the chain into PostgreSQL: blocks, microblocks and rollbacks, until stopped."""
    from soliton.cli.export_run import run_export_postgres

    run_export_postgres(
        dsn,
        where,
        finalized=finalized,
        once=once,
        migrates=migrate,
        asset_storage=asset_storage,
        metrics=metrics,
    )


@click.command("export ndjson")
@click.option(
    "--to",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="The file; an existing one is continued.",
)
@chain_options
@finalized_option
@click.option("--once", is_flag=True, help="End when the file has caught up with the chain.")
@metrics_option
@log_options
def export_ndjson(
    path: Path,
    where: ChainSource,
    finalized: bool,
    once: bool,
    metrics: Address | None,
) -> None:
    """Export the chain into a file with a JSON object in each line, until stopped."""
    from soliton.cli.export_run import run_export_ndjson

    run_export_ndjson(path, where, finalized=finalized, once=once, metrics=metrics)


@click.command("export parquet")
@click.option(
    "--to",
    "path",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="DIRECTORY",
    help="The directory; an existing one is continued.",
)
@click.option(
    "--heights",
    type=WholeRange(1, 1_000_000),
    default=1_000,
    show_default=True,
    help="Heights per file.",
)
@click.option(
    "--every",
    type=MILLISECONDS,
    default="10s",
    show_default=True,
    help="Shortest interval between rewrites of the last files.",
)
@chain_options
@finalized_option
@click.option("--once", is_flag=True, help="End when the files have caught up with the chain.")
@metrics_option
@log_options
def export_parquet(
    path: Path,
    heights: int,
    every: int,
    where: ChainSource,
    finalized: bool,
    once: bool,
    metrics: Address | None,
) -> None:
    """Export the chain into Parquet files, for DuckDB, Spark and the like, until stopped."""
    from soliton.cli.export_run import run_export_parquet

    run_export_parquet(
        path, heights, every / 1_000, where, finalized=finalized, once=once, metrics=metrics
    )


@click.command("export kafka")
@click.option("--brokers", required=True, metavar="HOST:PORT,…", help="The brokers.")
@click.option("--topic", required=True, help="The topic; it is created if missing.")
@click.option(
    "--replicas",
    type=WholeRange(1, 100),
    default=1,
    show_default=True,
    help="Replicas of a topic that is created.",
)
@click.option(
    "--protocol",
    type=click.Choice(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
    default="PLAINTEXT",
    show_default=True,
    help="Security protocol of the brokers.",
)
@click.option(
    "--mechanism",
    type=click.Choice(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")),
    default="PLAIN",
    show_default=True,
    help="SASL mechanism.",
)
@click.option("--user", default="", help="SASL user; the password is in SOLITON_KAFKA_PASSWORD.")
@click.option(
    "--ca-file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="The certificates that TLS trusts (default: the system's).",
)
@chain_options
@finalized_option
@click.option("--once", is_flag=True, help="End when the topic has caught up with the chain.")
@metrics_option
@log_options
def export_kafka(
    brokers: str,
    topic: str,
    replicas: int,
    protocol: str,
    mechanism: str,
    user: str,
    ca_file: Path | None,
    where: ChainSource,
    finalized: bool,
    once: bool,
    metrics: Address | None,
) -> None:
    """Export the chain into a Kafka topic, each record exactly once, until stopped."""
    from soliton.cli.export_run import run_export_kafka

    address = (brokers, topic, protocol, mechanism, user)
    run_export_kafka(
        address, ca_file, replicas, where, finalized=finalized, once=once, metrics=metrics
    )


@click.command("verify postgres")
@_DSN
@chain_options
@log_options
def verify_postgres(
    dsn: str,
    where: ChainSource,
) -> None:
    """Compare a database with the chain, row by row.

    Exits with code 1 at the first difference, and names it.
    """
    from soliton.cli.export_run import run_verify_postgres

    run_verify_postgres(dsn, where)
