"""A database that is away: the export says so, waits, and goes on where it was."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton.export.database import ChainFacts, Database
from soliton.export.running import Export
from tests.e2e.programs import eventually
from tests.export.following import OwnChain, catch_up, dump, export_once, following
from tests.export.postgres import Server, server
from tests.node.chains import mine, open_chain


@pytest.fixture
def own() -> Iterator[Server]:
    with server() as running:
        yield running


def test_it_waits_and_goes_on(own: Server, tmp_path: Path) -> None:
    chain, dsn = open_chain(tmp_path), own.database()
    for _ in range(3):
        mine(chain)
    with following(chain, dsn) as follower:
        catch_up(follower)
    for _ in range(3):
        mine(chain)
    own.kill()
    source = OwnChain(chain)
    facts = ChainFacts(source.network, source.chain_id, source.address_of)
    said: list[str] = []
    export = Export(
        source, lambda: Database.open(dsn, facts), threading.Event(), said.append, once=True
    )
    thread = threading.Thread(target=export.run)
    thread.start()
    eventually(lambda: any(each.startswith("waiting: the database: ") for each in said), "a word")
    own.start()
    eventually(lambda: not thread.is_alive(), "the end of the export")
    thread.join()
    assert said[-2:] == ["resumed", "caught up with the chain: height 7"]
    fresh = own.database()
    export_once(chain, fresh)
    assert dump(dsn) == dump(fresh)
    chain.store.close()
