"""Cached messages of blocks are those of the block asked for, in the form asked for."""

from __future__ import annotations

from pathlib import Path

from soliton.chain import blocks, networks
from soliton.chain.protobuf import delimited
from soliton.grpc_api import messages
from soliton.grpc_api.proto.blocks_api_pb2 import BlockWithHeight
from soliton.node.chain_writer import ChainWriter
from soliton.node.importer import import_blocks
from soliton.storage.store import Store
from tests.node.recorded import records

SOME = 200


def test_conversions_are_those_of_the_block_asked_for(shared: Path, tmp_path: Path) -> None:
    network = networks.load("waves-mainnet")
    chain = ChainWriter(network, Store(tmp_path, network.name, durable=False))
    source = shared / "data" / "waves-mainnet-blocks-2-10000.bin"
    cut = tmp_path / "some"
    with cut.open("wb") as file:
        for _, record in zip(range(SOME), records(source), strict=False):
            file.write(len(record).to_bytes(4, "big") + record)
    with cut.open("rb") as file:
        import_blocks(chain, file)
    messages._cached_blocks.clear()
    for _ in range(2):
        for height in range(2, SOME + 1):
            data = chain.store.block_data(height)
            assert data is not None
            for whole in (True, False):
                expected = delimited(
                    1, blocks.encode_protobuf(data, network.chain_id, transactions=whole)
                )
                expected += BlockWithHeight(height=height).SerializeToString()
                found = messages.block_with_height(chain, height, transactions=whole)
                assert found == expected
    assert len(messages._cached_blocks) == 2 * (SOME - 1)
    assert 0 < messages._cached_blocks.weight <= messages.MAX_CACHED_BYTES
    chain.rollback(SOME // 2)
    assert messages.block_with_height(chain, SOME // 2, transactions=True)
    messages._cached_blocks.clear()
    chain.store.close()
