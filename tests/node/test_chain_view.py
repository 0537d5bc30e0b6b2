"""What scripts get to see of the blocks below: compared with a recorded chain."""

from __future__ import annotations

from pathlib import Path

import pytest

from soliton.chain import blocks
from soliton.chain.addresses import Address, address_text, parse_address
from soliton.crypto import base58
from soliton.node.chain_writer import ChainWriter
from soliton.node.importer import import_blocks
from soliton.storage.store import Store
from tests.node import recorded
from tests.node.recorded import JsonObject


@pytest.fixture
def chain(shared: Path, tmp_path: Path) -> ChainWriter:
    folder = shared / "golden" / "waves-r"
    network = recorded.configured_network(folder / "network.conf")
    chain = ChainWriter(network, Store(tmp_path, network.name, durable=False))
    with (folder / "blocks-2-82.bin").open("rb") as file:
        import_blocks(chain, file)
    return chain


@pytest.fixture
def told(shared: Path) -> list[JsonObject]:
    bodies: list[JsonObject] = recorded.load(shared / "golden" / "waves-r" / "blocks.json.gz")
    return bodies


def test_blocks(chain: ChainWriter, told: list[JsonObject]) -> None:
    for expected in told[1:]:
        block = chain.view.block(expected["height"])
        assert block is not None
        consensus = expected["nxt-consensus"]
        assert block.timestamp == expected["timestamp"]
        assert block.base_target == consensus["base-target"]
        assert base58.encode(block.generation_signature) == consensus["generation-signature"]
        assert block.vrf is not None
        assert base58.encode(block.vrf) == expected["VRF"]
        shares = {address_text(Address(to)): amount for to, amount in block.rewards}
        assert shares == expected["rewardShares"]
    assert chain.view.block(0) is None
    assert chain.view.block(83) is None


def test_transactions(chain: ChainWriter, told: list[JsonObject]) -> None:
    height, first = next(
        (block["height"], block["transactions"][0]) for block in told[1:] if block["transactions"]
    )
    found = chain.view.transaction(base58.decode(first["id"], 100))
    assert found is not None
    assert (found.height, found.transaction.timestamp) == (height, first["timestamp"])
    assert chain.view.transaction(bytes(32)) is None


def test_data_counts_before_and_after_it_is_flushed(
    shared: Path, tmp_path: Path, told: list[JsonObject]
) -> None:
    folder = shared / "golden" / "waves-r"
    network = recorded.configured_network(folder / "network.conf")
    chain = ChainWriter(network, Store(tmp_path, network.name, durable=False))
    writer = next(
        parse_address(each["sender"], network.chain_id)
        for block in told[1:]
        for each in block["transactions"]
        if each["type"] == 12
    )
    assert not chain.view.has_data(writer)
    for data in recorded.records(folder / "blocks-2-82.bin"):
        chain.append(blocks.decode(data, network.chain_id))
    assert chain.view.has_data(writer)
    chain.store.flush()
    assert chain.view.has_data(writer)


def test_balances_below_a_height(chain: ChainWriter) -> None:
    rich = parse_address("3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF", chain.network.chain_id)
    assert chain.view.generating_balance(rich, 83) == chain.generating_balance(rich)
    assert chain.view.generating_balance(rich, 3) >= chain.generating_balance(rich)
