"""Answers at edges that the recorded calls do not reach, as the reference's sources have them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton.chain import networks
from soliton.chain.features import Feature
from soliton.chain.transactions import issue, transfer
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.grpc_api.proto import (
    assets_api_pb2,
    blockchain_api_pb2,
    blockchain_updates_pb2,
    blocks_api_pb2,
)
from soliton.grpc_api.proto.events_pb2 import BlockchainUpdated
from soliton.p2p.jobs import own_microblock
from soliton.p2p.receiving import Verdict
from soliton.wire.messages import ProtobufMicroblock
from tests.api.chain import OTHER, RICH, PrivateChain
from tests.grpc_api.serving import Client, eventually, served
from tests.node import forging
from tests.node.chains import address_of
from tests.p2p.world import done, make, network

FEATURE = int(Feature.BOOST_BLOCK_REWARD)
STATUS = "/waves.node.grpc.BlockchainApi/GetActivationStatus"
NFTS = "/waves.node.grpc.AssetsApi/GetNFTList"
RANGE = "/waves.node.grpc.BlocksApi/GetBlockRange"
SUBSCRIBE = "/waves.events.grpc.BlockchainUpdatesApi/Subscribe"
PERIOD = 5


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PrivateChain]:
    """A chain that votes for a feature: four of five blocks approve it."""
    features = dict(networks.load("devnet").functionality.pre_activated_features)
    del features[FEATURE]
    voting: dict[str, object] = {
        "pre_activated_features": features,
        "feature_check_blocks_period": PERIOD,
        "blocks_for_feature_activation": PERIOD - 1,
    }
    made = PrivateChain(tmp_path, functionality=voting, supported=(FEATURE,))
    yield made
    made.node.close()


async def vote(client: Client, height: int) -> tuple[int, int, int]:
    """The status of the feature at a height, the blocks that support it, its activation."""
    request = blockchain_api_pb2.ActivationStatusRequest(height=height)
    called = await client.call(STATUS, request.SerializeToString(), stream=False)
    found = blockchain_api_pb2.ActivationStatusResponse.FromString(called.responses[0])
    [one] = [each for each in found.features if each.id == FEATURE]
    return one.blockchain_status, one.supporting_blocks, one.activation_height


async def test_a_vote_in_the_past_counts_its_whole_window(chain: PrivateChain) -> None:
    undefined = blockchain_api_pb2.FeatureActivationStatus.UNDEFINED
    approved = blockchain_api_pb2.FeatureActivationStatus.APPROVED
    activated = blockchain_api_pb2.FeatureActivationStatus.ACTIVATED
    for _ in range(3):
        chain.mine()
    async with served(chain.node) as client:
        # The last block, at height 4, counts from its own height on.
        assert await vote(client, 2) == (undefined, 2, 0)
        assert await vote(client, 4) == (undefined, 3, 0)
        assert await vote(client, PERIOD + 2) == (undefined, 1, 0)
        for _ in range(3):
            chain.mine()
        # It was approved at height 5, not before.
        assert await vote(client, 3) == (undefined, 4, 2 * PERIOD)
        assert await vote(client, PERIOD) == (approved, 0, 2 * PERIOD)
        assert await vote(client, 2 * PERIOD) == (activated, 0, 2 * PERIOD)


async def test_nfts_after_one_that_the_account_never_had(chain: PrivateChain) -> None:
    def nft(name: str) -> AnyTransaction:
        made = issue.Issue(name.encode(), b"", 1, 0, False, None)
        return chain.send(chain.sign(issue.TYPE, made, 3))

    art = [nft(f"Art{number}") for number in range(3)]
    chain.mine()
    for each in art[1:]:
        given = transfer.Transfer(address_of(OTHER), AssetId(each.id), 1, b"")
        chain.send(chain.sign(transfer.TYPE, given, 3))
    chain.mine()

    async def listed(owner: bytes, after: bytes) -> list[bytes]:
        request = assets_api_pb2.NFTRequest(address=owner, limit=9, after_asset_id=after)
        called = await client.call(NFTS, request.SerializeToString(), stream=True)
        return [assets_api_pb2.NFTResponse.FromString(each).asset_id for each in called.responses]

    rich, other = bytes(address_of(RICH)), bytes(address_of(OTHER))
    async with served(chain.node) as client:
        assert await listed(other, b"") == [art[1].id, art[2].id]
        assert await listed(other, art[1].id) == [art[2].id]
        # Once its own, an NFT stays in the list of an account. What it never had leads nowhere.
        assert await listed(rich, art[2].id) == []
        assert await listed(other, art[0].id) == []
        assert await listed(other, art[0].id[:20]) == []


async def test_a_key_block_on_an_earlier_form_takes_only_microblocks_back(tmp_path: Path) -> None:
    """As in the reference: one rollback of the type ``MICROBLOCK``, and no block comes again."""
    shared = network()
    maker, taker = (make(tmp_path / str(number), number, shared) for number in range(2))
    receiver = taker.service.jobs.receiver
    maker.node.mine(maker.owner, empty=True)
    base = maker.node.chain.last_block
    assert done(receiver.block(base.data)).verdict is Verdict.APPLIED
    forms = [base]
    for amount in (1, 2, 3):
        maker.node.broadcast(maker.transfer(amount))
        assert forging.mine_micro(maker.node, maker.owner) == 1
        forms.append(maker.node.chain.last_block)
        message = own_microblock(forms[-1], forms[-2].id, 1, maker.owner.private_key)
        assert isinstance(message, ProtobufMicroblock)
        assert done(receiver.microblock(message.data))[1].verdict is Verdict.APPLIED
    maker.node.chain.shorten(forms[1].id)
    maker.node.mine(maker.owner, empty=True)
    key_block = maker.node.chain.last_block
    async with served(taker.node) as client:
        request = blockchain_updates_pb2.SubscribeRequest(from_height=2)
        stream = client.stream(SUBSCRIBE, request.SerializeToString())
        await eventually(lambda: len(stream.found) == len(forms))
        stream.take()
        assert done(receiver.block(key_block.data)).verdict is Verdict.APPLIED
        await eventually(lambda: len(stream.found) > 1)
        updates = [
            blockchain_updates_pb2.SubscribeEvent.FromString(each).update for each in stream.found
        ]
    back, ahead = updates
    assert (back.height, back.id) == (2, forms[1].id)
    assert back.rollback.type == BlockchainUpdated.Rollback.MICROBLOCK
    gone = [each.transactions[-1].id for each in (forms[3], forms[2])]
    assert list(back.rollback.removed_transaction_ids) == gone
    assert (ahead.height, ahead.id) == (3, key_block.id)
    assert {each.id for each in taker.node.pool.transactions()} == set(gone)
    for peer in (maker, taker):
        peer.service.jobs.stop()
        peer.node.close()


async def test_a_filter_is_read_with_the_first_block(chain: PrivateChain) -> None:
    request = blocks_api_pb2.BlockRangeRequest(from_height=1, to_height=1)
    request.generator_address = b"no address"
    beyond = blocks_api_pb2.BlockRangeRequest(from_height=9, to_height=9)
    beyond.generator_address = b"no address"
    async with served(chain.node) as client:
        called = await client.call(RANGE, request.SerializeToString(), stream=True)
        assert called.code == "UNKNOWN"
        called = await client.call(RANGE, beyond.SerializeToString(), stream=True)
        assert (called.code, called.responses) == ("OK", [])


async def test_the_start_of_updates_is_compared_with_the_chain_first(chain: PrivateChain) -> None:
    request = blockchain_updates_pb2.SubscribeRequest(from_height=9, to_height=8)
    async with served(chain.node) as client:
        called = await client.call(SUBSCRIBE, request.SerializeToString(), stream=True)
    assert called.code == "INVALID_ARGUMENT"
    assert called.details.endswith("Requested start height exceeds current blockchain height")
