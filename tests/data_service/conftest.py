"""What the tests of the data service share: the recorded chain in a database, and the service."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import psycopg
import pytest

from soliton.data_service.app import DataService, DataServiceSettings
from soliton.data_service.pool import Pool
from soliton.export.candles import make_pairs
from soliton.node.chain_writer import ChainWriter
from soliton.node.importer import import_blocks
from soliton.storage.store import Store
from soliton.web.server import serve
from tests.data_service.documented import problems
from tests.export.following import export_once
from tests.export.postgres import Server, server
from tests.node import recorded


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with server() as running:
        yield running


@pytest.fixture(scope="session")
def folder(shared: Path) -> Path:
    return shared / "golden" / "waves-r"


@pytest.fixture(scope="session")
def recorded_dsn(postgres: Server, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The database of the chain that the reference node made; its trades are of today."""
    network = recorded.configured_network(folder / "network.conf")
    store = Store(tmp_path_factory.mktemp("chain"), network.name, durable=False)
    chain = ChainWriter(network, store)
    with (folder / "blocks-2-82.bin").open("rb") as file:
        import_blocks(chain, file)
    dsn = postgres.database()
    export_once(chain, dsn)
    store.close()
    with psycopg.connect(dsn, autocommit=True) as connection:
        # Pairs are of the last 24 hours: for them the trades are made younger for a moment.
        (newest,) = connection.execute("SELECT max(time_stamp) FROM txs_7").fetchone() or (None,)
        shift = datetime.now(UTC) - timedelta(hours=1) - newest
        move = "UPDATE txs_7 SET time_stamp = time_stamp + %s"
        connection.execute(move, (shift,))
        make_pairs(connection)
        connection.execute(move, (-shift,))
    return dsn


CHECKED = 5
_seen: Counter[tuple[str, int]] = Counter()


async def check_shape(answer: httpx.Response) -> None:
    """Each answer is one that the document tells of."""
    await answer.aread()
    path = answer.request.url.path.removeprefix("/v0")
    # The first of each kind: validating takes longer than answering.
    kind = re.sub(r"/[1-9A-HJ-NP-Za-km-z]{30,}", "/{id}", path), answer.status_code
    _seen[kind] += 1
    if _seen[kind] <= CHECKED:
        found = problems(answer.request.method, path, answer.status_code, answer.json())
        assert not found, found


@pytest.fixture
async def client(recorded_dsn: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the service, at ``/v0``."""
    pool = Pool(recorded_dsn, 4)
    running = await serve(DataService(pool, DataServiceSettings()), "127.0.0.1", 0)
    url = f"http://{running.host}:{running.port}/v0"
    hooks = {"response": [check_shape]}
    async with httpx.AsyncClient(base_url=url, timeout=60, event_hooks=hooks) as made:
        yield made
    await running.stop()
    await pool.close()
