"""Running an export: where the chain is read, how a person ends it.

What lives here: putting the parts together. What does not: the parts (``soliton.export``).
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from soliton.cli.chain_source import Where
from soliton.cli.chosen import UsageProblem
from soliton.errors import EnvironmentProblem

if TYPE_CHECKING:
    from soliton.export.sources import Source

STOP_SECONDS: Final = 10.0
"""How long a step that is under way may take when the command is to end."""


class MissingDriver(EnvironmentProblem):
    """The program was installed without what speaks to a database, a broker, or writes files."""


def check_driver(module: str = "psycopg", extra: str = "postgres") -> None:
    """Raises ``MissingDriver`` where an extra was not installed."""
    if find_spec(module) is None:
        raise MissingDriver(
            f"this needs the extra: pip install 'soliton[{extra}]', or make setup-{extra}"
        )


@contextmanager
def opened(where: Where, complete: frozenset[int] = frozenset()) -> Iterator[Source]:
    """The chain, closed afterwards; ``complete`` are types whose outcome is to be shown."""
    source = _open(where, complete)
    try:
        yield source
    finally:
        source.close()


def _open(where: Where, complete: frozenset[int]) -> Source:
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
    return StoreSource(Blockchain(network, store), complete)


def run_export_postgres(
    dsn: str, where: Where, *, once: bool, migrates: bool, asset_storage: str
) -> None:
    """Follow the chain into a database until it is stopped."""
    check_driver()
    from soliton.export.database import ChainFacts, Database
    from soliton.export.running import Export

    with opened(where) as source, stopping() as stopped:
        facts = ChainFacts(source.network, source.chain_id, source.address_of, asset_storage)
        Export(
            source,
            lambda: Database.open(dsn, facts, migrates=migrates),
            stopped,
            tell,
            once=once,
        ).run()


@contextmanager
def export_beside(dsn: str, where: Where) -> Iterator[None]:
    """Follow the chain into a database in a thread, which is where the chain is at the beginning.

    Raises what the export does; one that fails later ends this process as a polite kill does.
    """
    from soliton.export.database import ChainFacts, Database
    from soliton.export.running import Export

    with opened(where) as source:
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


def run_export_ndjson(path: Path, where: Where, *, once: bool) -> None:
    """Follow the chain into a file of lines until it is stopped."""
    from soliton.export.ndjson import opener
    from soliton.export.running import Export

    with opened(where) as source, stopping() as stopped:
        Export(source, opener(path), stopped, tell, once=once).run()


def run_export_parquet(
    path: Path, heights: int, seconds: float, where: Where, *, once: bool
) -> None:
    """Follow the chain into Parquet files until it is stopped."""
    check_driver("pyarrow", "parquet")
    from soliton.export.parquet import Files, opener
    from soliton.export.running import Export

    with opened(where) as source, stopping() as stopped:
        Export(source, opener(Files(path, heights, seconds)), stopped, tell, once=once).run()


def run_export_kafka(
    address: tuple[str, str, str, str, str],
    ca_file: Path | None,
    replicas: int,
    where: Where,
    *,
    once: bool,
) -> None:
    """Follow the chain into a Kafka topic until it is stopped."""
    check_driver("aiokafka", "kafka")
    from soliton.export.kafka import Broker, opener
    from soliton.export.running import Export

    password = os.environ.get("SOLITON_KAFKA_PASSWORD", "")
    broker = Broker(*address, password, ca_file, replicas)
    with opened(where) as source, stopping() as stopped:
        Export(source, opener(broker), stopped, tell, once=once).run()


def run_verify_postgres(dsn: str, where: Where) -> None:
    """Compare a database with a chain; raises ``Difference`` at the first thing that differs."""
    check_driver()
    from soliton.export.verify import verify

    with opened(where) as source:
        found = verify(source, dsn, tell)
    click.echo(
        f"the database holds what the chain does: {found.blocks} blocks, {found.transactions} "
        f"transactions, {found.rows} rows compared"
    )


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """An event that a polite kill sets, as Ctrl-C does.

    What is written to may not answer. Then the process ends a while later all the same: its next
    start goes on as after a kill.
    """
    stopped, ended = threading.Event(), threading.Event()

    def end() -> None:
        if not ended.wait(STOP_SECONDS):
            tell("what is written to does not answer: ended without it")
            os._exit(1)

    def stop(*_: object) -> None:
        if not stopped.is_set():
            stopped.set()
            threading.Thread(target=end, daemon=True).start()

    before = [(number, signal.signal(number, stop)) for number in (signal.SIGTERM, signal.SIGINT)]
    try:
        yield stopped
    finally:
        ended.set()
        for number, handler in before:
            signal.signal(number, handler)


def tell(words: str) -> None:
    """Say something to whoever runs the command."""
    click.echo(words, err=True)
