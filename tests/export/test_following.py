"""A database follows a chain with every type of transaction through microblocks, forks, rollbacks.

Whatever the way, the database holds in the end what one does that saw only the final chain.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from soliton.export import schema
from soliton.export.database import Database
from soliton.export.errors import AnotherExport, WrongChain, WrongSchema
from tests.export.following import OwnChain, catch_up, dump, export_once, facts_of, following
from tests.export.postgres import Server
from tests.node.chains import DEVNET, mine, open_chain, person, shared_network, transfer
from tests.node.scenario import ALL_VERSIONS, Scenario
from tests.node.test_own_chain import add_microblock, make_chain

ROUNDS = 3


def test_every_type_in_one_go(postgres: Server, dsn: str, tmp_path: Path) -> None:
    chain = make_chain(tmp_path, DEVNET, ALL_VERSIONS)
    export_once(chain, dsn)
    found = dump(dsn)
    assert len(found["blocks"]) == chain.height
    counts = Counter(
        each.type_id
        for height in range(1, chain.height + 1)
        for each in chain.block_at(height).transactions
    )
    assert len(counts) == 15
    for number, count in counts.items():
        assert len(found[f"txs_{number}"]) == count
    assert found["txs_11_transfers"] and found["txs_12_data"] and found["candles"]
    export_once(chain, dsn)
    assert dump(dsn) == found
    chain.store.close()


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_any_way_leads_to_the_same(postgres: Server, dsn: str, tmp_path: Path, seed: int) -> None:
    """Steps of the chain and of the export by turns, at random."""
    chance = random.Random(seed)
    chain = open_chain(tmp_path)
    with following(chain, dsn) as follower:
        number = rollbacks = grown = 0
        while rollbacks < 6 or grown < 30:
            for batch in Scenario(chain, ALL_VERSIONS, number).batches():
                in_key_block = chance.randint(0, len(batch))
                mine(chain, batch[:in_key_block])
                if chance.random() < 0.7:
                    follower.step()
                for transaction in batch[in_key_block:]:
                    add_microblock(chain, transaction)
                    grown += 1
                    if chance.random() < 0.7:
                        follower.step()
                if chance.random() < 0.1:
                    break
            back = chance.choice((1, 2, 5, 15))
            chain.rollback(max(1, chain.height - back))
            rollbacks += 1
            number += 1
            if chance.random() < 0.5:
                catch_up(follower)
        catch_up(follower)
        assert follower.position.top is not None
        assert follower.position.top.height == chain.height
    fresh = postgres.database()
    export_once(chain, fresh)
    chain.store.close()
    found, expected = dump(dsn), dump(fresh)
    for table, content in expected.items():
        assert found[table] == content, table


def test_a_microblock_that_was_left_out_goes(postgres: Server, dsn: str, tmp_path: Path) -> None:
    """The next key block refers to an earlier microblock than the last that was seen."""
    owner = person("owner")
    network = shared_network(owner, person("other"))
    chain = open_chain(tmp_path, network)
    with following(chain, dsn) as follower:
        mine(chain, [], owner)
        catch_up(follower)
        before = dump(dsn)
        height = chain.height
        mine(chain, [transfer(chain, owner, person("friend"), 1)], owner)
        catch_up(follower)
        assert len(dump(dsn)["txs_4"]) == 1
        chain.rollback(height)
        catch_up(follower)
        assert dump(dsn) == before
    chain.store.close()


def test_another_chain_is_refused(postgres: Server, dsn: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    chain = open_chain(first)
    mine(chain)
    export_once(chain, dsn)
    chain.store.close()
    network = shared_network(person("owner"))
    chain = open_chain(second, network)
    mine(chain, [], person("owner"))
    with pytest.raises(WrongChain, match="holds the chain devnet, not shared"):
        export_once(chain, dsn)
    chain.store.close()


def test_a_second_export_has_to_wait(postgres: Server, dsn: str, tmp_path: Path) -> None:
    chain = open_chain(tmp_path)
    source = OwnChain(chain)
    with following(chain, dsn), pytest.raises(AnotherExport):
        Database.open(dsn, facts_of(source))
    Database.open(dsn, facts_of(source)).close()
    chain.store.close()


def test_an_older_schema_is_refused_and_migrated(
    postgres: Server, dsn: str, tmp_path: Path
) -> None:
    chain = open_chain(tmp_path)
    source = OwnChain(chain)
    with psycopg.connect(dsn, autocommit=True) as connection:
        assert schema.found_version(connection) is None
        with pytest.raises(WrongSchema, match="holds no export"):
            schema.check_version(connection)
        assert schema.migrate(connection, 1) == ["0001_chain.sql"]
        with pytest.raises(
            WrongSchema, match=r"version 1 .*run soliton export postgres .*--migrate"
        ):
            Database.open(dsn, facts_of(source))
        Database.open(dsn, facts_of(source), migrates=True).close()
        newest = schema.found_version(connection)
        assert newest == schema.migrations()[-1].version
        connection.execute(
            "INSERT INTO soliton_schema (version, name) VALUES (%s, 'later')", (newest + 1,)
        )
        with pytest.raises(WrongSchema, match="made by a newer program"):
            Database.open(dsn, facts_of(source))
    chain.store.close()
