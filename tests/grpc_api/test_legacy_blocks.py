"""Blocks before version 5, which are converted to messages and cached."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from soliton.chain import blocks
from soliton.grpc_api import messages
from tests.node.recorded import records

MAINNET = ord("W")
SOME = 300


def test_conversions_are_those_of_the_block_asked_for(shared: Path) -> None:
    source = records(shared / "data" / "waves-mainnet-blocks-2-10000.bin")
    found = list(islice(source, SOME))
    messages._convert.cache_clear()
    for _ in range(2):
        for data in found:
            for whole in (True, False):
                expected = blocks.encode_protobuf(data, MAINNET, transactions=whole)
                assert messages._convert(data, MAINNET, whole) == expected
    assert len(messages._convert) == 2 * SOME
    assert 0 < messages._convert.weight <= messages.MAX_CACHED_BYTES
    messages._convert.cache_clear()
