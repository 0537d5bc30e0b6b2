"""Running an export: opening the chain, and stopping on a signal.

What lives here: assembling the parts. What does not: the parts (``soliton.export``).
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from soliton.cli.chain_source import ChainSource
from soliton.cli.chosen import UsageProblem
from soliton.cli.watching import Address, watched
from soliton.errors import EnvironmentProblem

if TYPE_CHECKING:
    from soliton.export.sources import Source
    from soliton.export.steps import Sink

STOP_SECONDS: Final = 10.0
"""Time limit of the running step once the command is to end."""

_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class MissingDriver(EnvironmentProblem):
    """An optional dependency (database driver, broker client, file writer) is not installed."""


def check_driver(module: str = "psycopg", extra: str = "postgres") -> None:
    """Raise ``MissingDriver`` if an extra is not installed."""
    if find_spec(module) is None:
        raise MissingDriver(
            f"this needs the extra: pip install 'WHEEL[{extra}]', or make setup EXTRAS={extra}"
        )


@contextmanager
def open_source(
    where: ChainSource, complete: frozenset[int] = frozenset(), *, finalized: bool = False
) -> Iterator[Source]:
    """Open the chain, or its ``finalized`` blocks, and close it afterwards; ``complete`` are the
    transaction types to read with their outcome.
    """
    source = _open(where, complete)
    try:
        if finalized:
            from soliton.export.confirmed import Finalized

            source = Finalized(source)
        yield source
    finally:
        source.close()


def _open(where: ChainSource, complete: frozenset[int]) -> Source:
    if where.node_url is not None:
        if (where.data_dir, where.network, where.config) != (None, None, None):
            raise UsageProblem("--from-node goes without --data-dir, --network and --config")
        from soliton.export.node_source import NodeSource

        return NodeSource(where.node_url, complete)
    from soliton.cli.chain_commands import existing
    from soliton.export.sources import StoreSource
    from soliton.node.blockchain import Blockchain
    from soliton.storage.store import Store

    settings = existing(where.config, where.network, where.data_dir)
    network = settings.network
    store = Store(settings.data_directory, network.name, exclusive=False)
    chain = Blockchain(network, store)
    chain.max_rollback = settings.synchronization.loader.max_rollback
    return StoreSource(chain, complete)


def run_export_postgres(
    dsn: str,
    where: ChainSource,
    *,
    finalized: bool,
    once: bool,
    migrates: bool,
    asset_storage: str,
    metrics: Address | None,
) -> None:
    """Export the chain into a database until stopped."""
    check_driver()
    from soliton.export.database import ChainFacts, Database

    with open_source(where, finalized=finalized) as source, stopping() as stopped:
        facts = ChainFacts(source.network, source.chain_id, source.address_of, asset_storage)
        open_database = partial(Database.open, dsn, facts, migrates=migrates)
        _follow(source, open_database, stopped, once=once, metrics=metrics)


def _follow(
    source: Source,
    open_sink: Callable[[], Sink],
    stopped: threading.Event,
    *,
    once: bool,
    metrics: Address | None,
) -> None:
    """Export until stopped, and serve ``metrics`` meanwhile."""
    from soliton.export.metrics import Progress
    from soliton.export.running import Export

    progress = Progress()
    with watched("export", progress, metrics):
        Export(source, open_sink, stopped, print_message, once=once, progress=progress).run()


@contextmanager
def background_export(dsn: str, where: ChainSource, *, finalized: bool) -> Iterator[None]:
    """Export the chain, or its ``finalized`` blocks, into a database in a thread, after a first
    export in this one.

    Raises the errors of that export; a later failure sends this process SIGTERM.
    """
    from soliton.export.database import ChainFacts, Database
    from soliton.export.running import Export

    with open_source(where, finalized=finalized) as source:
        facts = ChainFacts(source.network, source.chain_id, source.address_of)
        stopped = threading.Event()

        def export(*, once: bool) -> None:
            Export(source, lambda: Database.open(dsn, facts), stopped, once=once).run()

        def ended(_: object) -> None:
            if not stopped.is_set():
                os.kill(os.getpid(), signal.SIGTERM)

        export(once=True)
        with ThreadPoolExecutor(1) as pool:
            following = pool.submit(export, once=False)
            following.add_done_callback(ended)
            try:
                yield
            finally:
                stopped.set()
                following.result()


def run_export_ndjson(
    path: Path, where: ChainSource, *, finalized: bool, once: bool, metrics: Address | None
) -> None:
    """Export the chain into a file of JSON lines until stopped."""
    from soliton.export.ndjson import NdjsonFile

    with open_source(where, finalized=finalized) as source, stopping() as stopped:
        _follow(source, partial(NdjsonFile.open, path), stopped, once=once, metrics=metrics)


def run_export_parquet(
    path: Path,
    heights: int,
    seconds: float,
    where: ChainSource,
    *,
    finalized: bool,
    once: bool,
    metrics: Address | None,
) -> None:
    """Export the chain into Parquet files until stopped."""
    check_driver("pyarrow", "parquet")
    from soliton.export.parquet import Files, ParquetFiles

    files = Files(path, heights, seconds)
    with open_source(where, finalized=finalized) as source, stopping() as stopped:
        _follow(source, partial(ParquetFiles.open, files), stopped, once=once, metrics=metrics)


def run_export_kafka(
    address: tuple[str, str, str, str, str],
    ca_file: Path | None,
    replicas: int,
    where: ChainSource,
    *,
    finalized: bool,
    once: bool,
    metrics: Address | None,
) -> None:
    """Export the chain into a Kafka topic until stopped."""
    check_driver("aiokafka", "kafka")
    from soliton.export.kafka import Broker, KafkaTopic

    password = os.environ.get("SOLITON_KAFKA_PASSWORD", "")
    broker = Broker(*address, password, ca_file, replicas)
    with open_source(where, finalized=finalized) as source, stopping() as stopped:
        _follow(source, partial(KafkaTopic.open, broker), stopped, once=once, metrics=metrics)


def run_verify_postgres(dsn: str, where: ChainSource) -> None:
    """Compare a database with a chain; raises ``Difference`` at the first difference."""
    check_driver()
    from soliton.export.verify import verify

    with open_source(where) as source:
        found = verify(source, dsn, print_message)
    click.echo(
        f"the database holds what the chain does: {found.blocks} blocks, {found.transactions} "
        f"transactions, {found.rows} rows compared"
    )


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM, SIGINT and SIGHUP set.

    If the destination hangs, the process exits some seconds later all the same; its next start
    resumes as after a kill.
    """
    stopped, ended = threading.Event(), threading.Event()

    def end() -> None:
        if not ended.wait(STOP_SECONDS):
            print_message("the destination does not respond: ended without it")
            os._exit(1)

    def stop(*_: object) -> None:
        if not stopped.is_set():
            stopped.set()
            threading.Thread(target=end, daemon=True).start()

    # Under nohup a closed terminal is ignored.
    heard = [each for each in _STOP_SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    before = [(number, signal.signal(number, stop)) for number in heard]
    try:
        yield stopped
    finally:
        ended.set()
        for number, handler in before:
            signal.signal(number, handler)


def print_message(text: str) -> None:
    """Print a message on standard error."""
    click.echo(text, err=True)
