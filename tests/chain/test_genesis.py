"""The first block of every network."""

from __future__ import annotations

import msgspec
import pytest

from soliton.chain import blocks, networks
from soliton.chain.errors import ChainError
from soliton.chain.genesis import GenesisError, genesis_block
from soliton.chain.transactions import codec
from soliton.crypto import base58
from tests.vectors import load_vectors, report

EMPTY_SEED_KEY = "2eEUvypDSivnzPiLrbYEW39SM8yMZ1aq4eJuiKfs4sEY"


@pytest.mark.parametrize("name", networks.names())
def test_every_preset_has_a_valid_first_block(name: str) -> None:
    network = networks.load(name)
    block = genesis_block(network)
    assert blocks.signature_is_valid(block)
    assert base58.encode(block.header.generator) == EMPTY_SEED_KEY
    assert blocks.decode(block.data, network.chain_id) == block
    total = sum(transaction.payload.amount for transaction in block.transactions)
    assert total == network.genesis.initial_balance
    # A chain whose settings hold no signature has the same first block on every node.
    assert genesis_block(network) == block


def test_vectors() -> None:
    vectors = load_vectors("genesis_settings")
    for vector in vectors:
        block = genesis_block(networks.load(f"waves-{vector['network']}"))
        told = vector["genesis"]
        assert base58.encode(block.id) == told["signature"]
        assert block.header.timestamp == told["timestamp"]
        assert block.header.base_target == told["nxt-consensus"]["base-target"]
        assert base58.encode(block.header.reference) == told["reference"]
        for transaction, row in zip(block.transactions, told["transactions"], strict=True):
            printed = codec.to_json(transaction)
            for key in ("id", "signature", "timestamp", "recipient", "amount"):
                assert printed[key] == row[key]
    report.ran("genesis_settings", len(vectors))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"initial_balance": 1}, "genesis transfers sum to 10000000000000000, not 1"),
        ({"initial_base_target": 1}, "the genesis signature of waves-mainnet is not valid"),
        ({"block_timestamp": 1}, "the genesis signature of waves-mainnet is not valid"),
        ({"signature": "1"}, "the genesis signature of waves-mainnet is not valid"),
    ],
)
def test_settings_that_do_not_fit_the_signature(change: dict[str, int], words: str) -> None:
    network = networks.load("waves-mainnet")
    genesis = msgspec.structs.replace(network.genesis, **change)
    with pytest.raises(GenesisError, match=words):
        genesis_block(msgspec.structs.replace(network, genesis=genesis))


def test_recipients_of_another_chain() -> None:
    network = msgspec.structs.replace(networks.load("waves-mainnet"), chain_id=ord("T"))
    with pytest.raises(ChainError, match="Address belongs to another network"):
        genesis_block(network)
