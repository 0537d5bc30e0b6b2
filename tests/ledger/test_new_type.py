"""Adding a transaction type takes two modules and one row: here is one, from JSON to the chain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from soliton.chain import blocks, networks
from soliton.chain.addresses import address_text, from_public_key
from soliton.chain.errors import UnsupportedTransaction, ValueRuleError
from soliton.chain.networks.model import Network
from soliton.chain.transactions import codec, table
from soliton.chain.transactions.json_reader import read_signed
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto.keys import key_pair
from soliton.ledger import rules
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.state import DATA
from soliton.node import miner
from soliton.node.chain import Chain
from soliton.node.pool import UtxPool
from soliton.storage.store import Store
from tests.ledger.new_type import greeting, greeting_rules

CHAIN_ID = ord("R")
RICH = key_pair("waves private node seed with waves tokens")
ME = from_public_key(RICH.public_key, CHAIN_ID)
FRIEND = from_public_key(key_pair("soliton devnet account 1").public_key, CHAIN_ID)


@pytest.fixture(autouse=True)
def greetings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row of type 20, for the time of a test."""
    monkeypatch.setattr(table, "_BY_ID", dict(table._BY_ID))
    monkeypatch.setattr(table, "_BY_MEMBER", dict(table._BY_MEMBER))
    monkeypatch.setattr(rules, "_RULES", dict(rules._RULES))
    table.register(greeting.TYPE)
    rules.register(20, greeting_rules.RULES)


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    network = _network_before_protobuf()
    store = Store(tmp_path, network.name, durable=False)
    yield Chain(network, store)
    store.close()


def _network_before_protobuf() -> Network:
    """The schema of protobuf transactions is the network's: a type of ours is in the old form."""
    devnet = networks.load("devnet")
    features = {
        feature: height
        for feature, height in devnet.functionality.pre_activated_features.items()
        if feature < 15
    }
    functionality = msgspec.structs.replace(devnet.functionality, pre_activated_features=features)
    return msgspec.structs.replace(devnet, functionality=functionality)


def _greet(chain: Chain, words: str, fee: int = greeting_rules.FEE) -> AnyTransaction:
    unsigned = codec.build(
        greeting.TYPE,
        greeting.Greeting(FRIEND, words),
        version=1,
        chain_id=CHAIN_ID,
        sender_public_key=RICH.public_key,
        fee=fee,
        timestamp=chain.last_block.header.timestamp,
    )
    return codec.sign(unsigned, RICH.private_key)


def test_it_is_read_checked_mined_and_found_again(chain: Chain) -> None:
    transaction = _greet(chain, "hello")
    shown = codec.to_json(transaction)
    assert (shown["type"], shown["recipient"], shown["words"]) == (
        20,
        address_text(FRIEND),
        "hello",
    )
    assert read_signed(msgspec.json.decode(msgspec.json.encode(shown)), CHAIN_ID) == transaction
    assert codec.decode_legacy(codec.encode(transaction), CHAIN_ID) == transaction

    pool = UtxPool(chain, lambda: chain.last_block.header.timestamp, 10, 10_000)
    assert pool.add(transaction)
    forged = miner.forge(chain, miner.next_slot(chain, RICH), pool.transactions(), 0)
    chain.append(blocks.decode(forged.block.data, CHAIN_ID))
    chain.store.flush()
    assert chain.store.get(DATA, (ME, address_text(FRIEND))) == "hello"
    found = chain.transaction(transaction.id)
    assert found is not None
    assert found.transaction == transaction
    chain.rollback(1)
    assert list(chain.store.data_entries(ME)) == []


def test_its_own_rules_hold(chain: Chain) -> None:
    pool = UtxPool(chain, lambda: chain.last_block.header.timestamp, 10, 10_000)
    with pytest.raises(TransactionRejected, match="does not exceed minimal value of 7"):
        pool.add(_greet(chain, "hello", fee=6))
    with pytest.raises(ValueRuleError, match="1 to 20 characters"):
        codec.validate(_greet(chain, "x" * 21))


def test_without_its_row_it_is_unknown(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    data = codec.encode(_greet(chain, "hello"))
    monkeypatch.delitem(table._BY_ID, 20)
    with pytest.raises(UnsupportedTransaction):
        codec.decode_legacy(data, CHAIN_ID)
