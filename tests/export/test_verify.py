"""``soliton verify postgres``: what is equal is said to be, and of each damage where it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from soliton.export.errors import Difference
from soliton.export.verify import verify
from soliton.node.chain_writer import ChainWriter
from tests.export.following import OwnChain, export_once
from tests.export.postgres import Server
from tests.node.chains import DEVNET, RICH, mine, open_chain, person, transfer
from tests.node.scenario import ALL_VERSIONS
from tests.node.test_own_chain import add_microblock, make_chain

DAMAGES = [
    ("UPDATE txs_4 SET amount = amount + 1 WHERE uid = 200001", "txs_4: .*: amount is "),
    ("DELETE FROM txs_4 WHERE uid = 200001", "txs_4: .*uid .*"),
    ("UPDATE txs_3 SET asset_name = 'Lead'", "txs_3: .*asset_name is 'Lead' in the database"),
    ("UPDATE txs_7 SET order1 = jsonb_set(order1, '{amount}', '1')", "txs_7: .*order1 is "),
    ("DELETE FROM txs_11_transfers WHERE position_in_tx = 1", "txs_11_transfers: "),
    ("UPDATE txs_12_data SET data_value_string = 'x' WHERE data_type = 'string'",
     "txs_12_data: .*data_value_string is 'x'"),
    ("UPDATE asset_updates SET volume = volume + 1 WHERE superseded_by = 9223372036854775806",
     "asset_updates: .*volume is "),
    ("UPDATE asset_origins SET issuer = 'me'", "asset_origins: .*issuer is 'me'"),
    ("UPDATE blocks_microblocks SET id = 'x' WHERE height = 5",
     "blocks_microblocks: height 5, id x: id is 'x' in the database"),
    ("UPDATE waves_data SET quantity = quantity + 1 WHERE height = 7",
     "blocks_microblocks: height 7.*: quantity of the coin"),
    ("UPDATE candles SET volume = volume + 1 WHERE interval = '1h'", "candles of 1h: .*volume is"),
    ("UPDATE txs_4 SET height = 100000 WHERE uid = 200001", "height 100000: txs_4 has a row"),
    ("INSERT INTO blocks_microblocks (uid, id, height, time_stamp) VALUES (9999, 'y', 9999, now())",
     "the database has height 9999, the chain ends at"),
]  # fmt: skip


@pytest.fixture(scope="module")
def exported(postgres: Server, chain: ChainWriter) -> str:
    """The name of a database that holds the chain: copies of it can be damaged."""
    dsn = postgres.database()
    export_once(chain, dsn)
    return dsn.rpartition("=")[2]


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChainWriter]:
    made = make_chain(tmp_path_factory.mktemp("chain"), DEVNET, ALL_VERSIONS)
    yield made
    made.store.close()


def test_what_is_equal(postgres: Server, dsn: str, chain: ChainWriter) -> None:
    export_once(chain, dsn)
    found = verify(OwnChain(chain), dsn)
    count = sum(chain.meta(at).transaction_count for at in range(1, chain.height + 1))
    assert (found.blocks, found.transactions) == (chain.height, count)


def test_an_export_that_was_ended_within_a_block(
    postgres: Server, dsn: str, tmp_path: Path
) -> None:
    """What it has of its last block is not all that the chain has there now."""
    chain = open_chain(tmp_path)
    mine(chain)
    mine(chain)
    export_once(chain, dsn)
    known = chain.height
    add_microblock(chain, transfer(chain, RICH, person("friend"), 1))
    mine(chain)
    assert verify(OwnChain(chain), dsn).blocks == known - 1
    chain.store.close()


def test_an_export_that_goes_on_meanwhile(postgres: Server, dsn: str, tmp_path: Path) -> None:
    chain = open_chain(tmp_path)
    mine(chain)
    export_once(chain, dsn)

    class Going(OwnChain):
        """A block comes, and is exported, when it is first looked at."""

        is_first = True

        def refresh(self) -> int:
            before = super().refresh()
            if self.is_first:
                self.is_first = False
                mine(chain)
                export_once(chain, dsn)
            return before

    assert verify(Going(chain), dsn).blocks == chain.height - 1
    chain.store.close()


@pytest.mark.parametrize(("damage", "told"), DAMAGES)
def test_each_damage_is_found(
    postgres: Server, exported: str, chain: ChainWriter, damage: str, told: str
) -> None:
    dsn = postgres.database(exported)
    with psycopg.connect(dsn, autocommit=True) as connection:
        changed = connection.execute(damage.encode())
        assert changed.rowcount > 0
    with pytest.raises(Difference, match=told):
        verify(OwnChain(chain), dsn)


def test_an_empty_database(postgres: Server, dsn: str, chain: ChainWriter, tmp_path: Path) -> None:
    from soliton.errors import SolitonError

    with pytest.raises(SolitonError, match="the database holds no export"):
        verify(OwnChain(chain), dsn)
