"""A chain of our own with every transaction type: exported, imported, rolled back, imported again.

Each time the blocks must leave the same hashes at every height and, in the end, the same database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from itertools import chain as joined
from pathlib import Path
from typing import Final

import msgspec
import pytest

from soliton.chain.networks import Network
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.cli.chain_commands import run_export
from soliton.ledger.state import (
    ASSET_BALANCES,
    ASSET_NAMES,
    ASSET_VOLUMES,
    LEASES,
    SPONSORSHIPS,
    AssetVolume,
    LeaseBalance,
)
from soliton.node.chain_writer import ChainWriter
from soliton.node.importer import import_blocks
from soliton.storage import indexes, layout
from soliton.storage.store import Store
from tests.node import forging
from tests.node.chains import DEVNET, RICH, mine, old_network, open_chain, record
from tests.node.scenario import (
    ALL_VERSIONS,
    BINARY_VERSIONS,
    COIN,
    OLDEST_VERSIONS,
    WALLET_ADDRESS,
    Scenario,
)
from tests.storage.rows import read_rows

ROUNDS: Final = 2
ROLLED_BACK: Final = 50
Hashes = list[tuple[bytes, bytes, bytes]]
OLDEST = old_network()
BINARY = old_network(range(1, 15))


def make_chain(
    directory: Path, network: Network, versions: dict[int, tuple[int, ...]]
) -> ChainWriter:
    """Mine everything that the chain takes, on NG chains in key blocks and microblocks by turns."""
    chain = open_chain(directory, network)
    ng = chain.rules.at(1).ng
    number = 0
    while chain.height <= ROLLED_BACK + 10 or number < ROUNDS:
        for place, batch in enumerate(Scenario(chain, versions, number).batches()):
            in_key_block = (len(batch), 0, 1)[place % 3] if ng else len(batch)
            mine(chain, batch[:in_key_block])
            for transaction in batch[in_key_block:]:
                add_microblock(chain, transaction)
        number += 1
    return chain


def add_microblock(chain: ChainWriter, transaction: AnyTransaction) -> None:
    forged = forging.forge_micro(chain, RICH, [transaction], 255)
    assert forged is not None
    chain.extend((transaction,), forged.block.header.state_hash, forged.block.signature)


def hashes(chain: ChainWriter) -> Hashes:
    metas = map(chain.meta, range(1, chain.height + 1))
    return [(meta.id, meta.state_hash, meta.snapshot_hash) for meta in metas]


def content(directory: Path) -> dict[bytes, bytes]:
    """Everything in a database but the undo records, and how many transactions its blocks had
    before their microblocks: of whole blocks nobody knows.
    """
    records = read_rows(directory)
    for key, value in records.items():
        if key[:1] == layout.REPLACED:
            told = msgspec.structs.replace(layout.decode_replaced(value), count=0)
            records[key] = layout.encode(told)
    return {key: value for key, value in records.items() if key[:1] != layout.UNDO}


def imported(directory: Path, network: Network, blocks: bytes) -> Hashes:
    """Put the blocks on what is in the directory; the hashes of the whole chain."""
    chain = ChainWriter(network, Store(directory, network.name, durable=False))
    import_blocks(chain, BytesIO(blocks))
    found = hashes(chain)
    chain.store.close()
    return found


def roll_back(directory: Path, network: Network, count: int) -> Hashes:
    chain = ChainWriter(network, Store(directory, network.name, durable=False))
    chain.rollback(chain.height - count)
    left = hashes(chain)
    chain.store.close()
    return left


@pytest.mark.parametrize(
    ("network", "versions"),
    [(DEVNET, ALL_VERSIONS), (BINARY, BINARY_VERSIONS), (OLDEST, OLDEST_VERSIONS)],
    ids=["all features", "features 1 to 14", "no features"],
)
def test_chain_is_the_same_again(
    tmp_path: Path, network: Network, versions: dict[int, tuple[int, ...]]
) -> None:
    mined, copy = tmp_path / "data", tmp_path / "copy"
    chain = make_chain(mined, network, versions)
    expected = hashes(chain)
    exported = b"".join(record(chain.block_at(at)) for at in range(2, chain.height + 1))
    check_versions(chain, versions)
    check_state(chain, versions)
    chain.store.close()
    if network is DEVNET:
        # The command knows the networks of the presets only.
        run_export(tmp_path / "file", None, None, tmp_path, None)
        assert (tmp_path / "file").read_bytes() == exported
    assert len(expected) > ROLLED_BACK + 10

    assert imported(copy, network, exported) == expected
    first = content(copy)
    assert roll_back(copy, network, ROLLED_BACK) == expected[:-ROLLED_BACK]
    assert imported(copy, network, exported) == expected
    assert content(copy) == first
    assert content(mined) == first
    assert roll_back(mined, network, len(expected) - 1) == expected[:1]
    assert imported(mined, network, exported) == expected
    assert content(mined) == first


def check_versions(chain: ChainWriter, versions: dict[int, tuple[int, ...]]) -> None:
    """That nothing is missing on the chain."""
    heights = range(1, chain.height + 1)
    transactions = list(joined.from_iterable(chain.block_at(at).transactions for at in heights))
    counts = Counter((each.type_id, each.version) for each in transactions)
    wanted = {(kind, version) for kind, each in versions.items() for version in each}
    assert set(counts) == wanted | {(1, 1)}
    orders = {
        (order.version, order.eip712_signature is not None)
        for each in transactions
        if isinstance(each.payload, Exchange)
        for order in each.payload.orders
    }
    newest = {3: 4, 2: 3, 1: 1}[versions[7][-1]]
    expected = {(version, False) for version in range(1, newest + 1)}
    assert orders == (expected | {(4, True)} if newest == 4 else expected)
    statuses = {
        found.status for each in transactions if (found := chain.transaction(each.id)) is not None
    }
    assert statuses == {0}


def check_state(chain: ChainWriter, versions: dict[int, tuple[int, ...]]) -> None:
    """What the first round leaves behind."""
    first = Scenario(chain, versions, 0)
    store, me, you = chain.store, first.my_address, first.your_address
    assert {first.alias(version).name for version in versions[10]} == set(
        indexes.aliases_of(store, me)
    )
    assert list(indexes.aliases_of(store, you)) == [first.their_alias.name]
    kept = sum(COIN + version for version in versions[8])
    assert store.get(LEASES, me) == LeaseBalance(0, kept)
    assert store.get(LEASES, you) == LeaseBalance(kept, 0)
    oldest = chain.transaction(next(iter(issues(chain))))
    assert oldest is not None
    volume = store.get(ASSET_VOLUMES, oldest.transaction.id)
    assert volume == AssetVolume(True, 10**12 + 10**6 - 10**5)
    assert store.get(SPONSORSHIPS, oldest.transaction.id) == 0
    if 17 in versions:
        name = store.get(ASSET_NAMES, oldest.transaction.id)
        assert name is not None
        assert name.name == b"Silver 0"
        assert store.get(ASSET_BALANCES, (WALLET_ADDRESS, oldest.transaction.id)) == 300
    if 12 in versions:
        keys = {"whole", "flag", "text", "bytes"} - ({"flag"} if 2 in versions[12] else set())
        assert {key for key, _ in store.data_entries(me)} == keys


def issues(chain: ChainWriter) -> Iterator[bytes]:
    """The ids of all issued assets, from the first on."""
    for height in range(1, chain.height + 1):
        for transaction in chain.block_at(height).transactions:
            if transaction.type_id == 3:
                yield transaction.id
