"""Texts of blocks: the same whether made at once or in turns, kept by their ids, never too many."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from soliton.api import block_texts
from soliton.api.block_texts import BlockTexts
from soliton.api.errors import ApiError
from soliton.api.time_slices import TimeSlices
from soliton.chain.transactions.codec import to_json
from soliton.node.chain_writer import ChainWriter
from tests.api.chain import RICH, PrivateChain
from tests.node import forging

COUNT = 40


@pytest.fixture
def full(chain: PrivateChain) -> PrivateChain:
    """A block of 40 transfers at height 2, an empty one above."""
    for number in range(COUNT):
        chain.send(chain.transfer(amount=number + 1))
    chain.mine()
    chain.mine()
    return chain


async def text_of(
    texts: BlockTexts, chain: ChainWriter, height: int, *, strings: bool = False
) -> bytes:
    found = texts.find(chain, height, TimeSlices(), strings=strings)
    return found if isinstance(found, bytes) else await found


@pytest.mark.parametrize("strings", [False, True])
async def test_at_once_and_in_turns_it_is_the_same(
    full: PrivateChain, monkeypatch: pytest.MonkeyPatch, strings: bool
) -> None:
    chain = full.node.chain
    found = {}
    for few in (0, COUNT):
        monkeypatch.setattr(block_texts, "FEW_TRANSACTIONS", few)
        monkeypatch.setattr("soliton.api.time_slices.SLICE_SECONDS", 0.0)
        found[few] = [
            await text_of(BlockTexts(), chain, height, strings=strings) for height in (1, 2, 3)
        ]
    assert found[0] == found[COUNT]
    block = msgspec.json.decode(found[0][1])
    assert len(block["transactions"]) == block["transactionCount"] == COUNT
    fee = COUNT * 100_000
    assert block["fee"] == (str(fee) if strings else fee)
    if not strings:
        first = to_json(chain.block_at(2).transactions[0])
        assert block["transactions"][0] == first | {"applicationStatus": "succeeded"}


async def test_who_asks_meanwhile_waits_for_the_same(full: PrivateChain) -> None:
    texts, slices, chain = BlockTexts(), TimeSlices(), full.node.chain
    making = texts.find(chain, 2, slices, strings=False)
    assert isinstance(making, asyncio.Task)
    assert texts.find(chain, 2, slices, strings=False) is making
    assert texts.find(chain, 2, slices, strings=True) is not making
    text = await making
    assert texts.find(chain, 2, slices, strings=False) is text


async def test_the_oldest_go_when_there_are_too_many(
    full: PrivateChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, chain = BlockTexts(), full.node.chain
    sizes = [len(await text_of(BlockTexts(), chain, height)) for height in (1, 2, 3)]
    monkeypatch.setattr(block_texts, "MAX_KEPT_BYTES", sizes[0] + sizes[1])
    texts_now = [await text_of(texts, chain, height) for height in (1, 2)]
    assert await text_of(texts, chain, 1) is texts_now[0]
    await text_of(texts, chain, 3)
    assert await text_of(texts, chain, 1) is texts_now[0]
    assert await text_of(texts, chain, 2) is not texts_now[1]
    monkeypatch.setattr(block_texts, "MAX_KEPT_BYTES", 0)
    assert len(await text_of(texts, chain, 1)) == sizes[0]


async def test_another_block_at_the_same_height(full: PrivateChain) -> None:
    texts, chain = BlockTexts(), full.node.chain
    before = await text_of(texts, chain, 3)
    chain.rollback(2)
    full.tick(5_000)
    full.mine()
    assert await text_of(texts, chain, 3) != before


async def test_rolled_back_before_its_turn(full: PrivateChain) -> None:
    chain = full.node.chain
    making = BlockTexts().find(chain, 2, TimeSlices(), strings=False)
    chain.rollback(1)
    assert isinstance(making, asyncio.Task)
    with pytest.raises(ApiError, match="block does not exist"):
        await making
    with pytest.raises(KeyError):
        BlockTexts().find(chain, 2, TimeSlices(), strings=False)


async def test_a_block_that_changes_while_its_text_waits_for_a_turn(full: PrivateChain) -> None:
    """What is made then is not taken for the text of the block that was asked for."""
    texts, slices, chain = BlockTexts(), TimeSlices(), full.node.chain
    chain.rollback(2)
    block, expected = chain.last_block, await text_of(BlockTexts(), chain, 2)
    making = texts.find(chain, 2, slices, strings=False)
    assert isinstance(making, asyncio.Task)
    chain.rollback(1)
    for number in range(COUNT):
        full.send(full.transfer(amount=number + 1_000))
    full.mine()
    with pytest.raises(ApiError):
        await making
    assert await text_of(texts, chain, 2) == await text_of(BlockTexts(), chain, 2)
    chain.rollback(1)
    chain.append(block)
    assert await text_of(texts, chain, 2) == expected


async def test_a_block_that_grows_while_its_text_waits_for_a_turn(full: PrivateChain) -> None:
    texts, node = BlockTexts(), full.node
    for number in range(COUNT):
        full.send(full.transfer(amount=number + 1_000))
    assert forging.mine_micro(node, RICH) == COUNT
    expected = await text_of(BlockTexts(), node.chain, 3)
    making = texts.find(node.chain, 3, TimeSlices(), strings=False)
    full.send(full.transfer(amount=1))
    assert forging.mine_micro(node, RICH) == 1
    assert isinstance(making, asyncio.Task)
    assert await making == expected
    assert await text_of(texts, node.chain, 3) == await text_of(BlockTexts(), node.chain, 3)
