"""Blocks, transactions and scripts in the messages of the gRPC interfaces.

What lives here: messages of several services. What does not: requests.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from soliton.api.json_blocks import reward_shares
from soliton.caching import WeightedCache
from soliton.chain import blocks
from soliton.chain.features import Feature
from soliton.chain.layouts import DIGEST_LENGTH
from soliton.chain.proto.block_pb2 import Block
from soliton.chain.proto.transaction_pb2 import SignedTransaction
from soliton.chain.protobuf import delimited
from soliton.chain.transactions import codec, genesis
from soliton.chain.transactions.model import AnyTransaction
from soliton.grpc_api.proto.blocks_api_pb2 import BlockWithHeight
from soliton.grpc_api.proto.reward_share_pb2 import RewardShare
from soliton.node.blockchain import Blockchain
from soliton.ride.script import parse_script
from soliton.ride.tree_text import tree_text

__all__ = [
    "DIGEST_LENGTH",
    "block_message",
    "block_with_height",
    "reward_messages",
    "script_text",
    "signed_transaction",
    "vrf_of",
]

_BLOCK_FIELD: Final = 1
_TEXTS_KEPT: Final = 64
MAX_CACHED_BYTES: Final = 32 * 1024 * 1024
_MAX_CACHED_BLOCK_BYTES: Final = 64 * 1024
"""Larger blocks of version 5, which are stored as they are sent, take longer to hash than to read.
"""
_ENTRY_BYTES: Final = 512
_cached_blocks: Final[WeightedCache[tuple[str, int, bool, bytes], bytes]] = WeightedCache(
    MAX_CACHED_BYTES
)


def block_with_height(chain: Blockchain, height: int, *, transactions: bool) -> bytes:
    """Return a ``BlockWithHeight``, with the stored bytes unchanged."""
    data = chain.store.block_data(height)
    assert data is not None, "the caller has checked the height"
    # Its bytes name all blocks below, so VRF and rewards follow from them.
    key = chain.network.name, height, transactions, data
    is_legacy = data[0] < blocks.PROTOBUF_VERSION
    is_cached = is_legacy or len(data) <= _MAX_CACHED_BLOCK_BYTES
    if is_cached and (known := _cached_blocks.get(key)) is not None:
        return known
    block = block_message(chain, height, data, transactions=transactions)
    rest = BlockWithHeight(
        height=height, vrf=vrf_of(chain, height, data), reward_shares=reward_messages(chain, height)
    )
    found = delimited(_BLOCK_FIELD, block) + rest.SerializeToString()
    if is_cached:
        _cached_blocks.put(key, found, _ENTRY_BYTES + len(data) + len(found))
    return found


def block_message(
    chain: Blockchain, height: int, data: bytes, *, transactions: bool = True
) -> bytes:
    """Return a ``Block`` from its stored bytes."""
    chain_id = chain.network.chain_id
    if height > 1:
        return blocks.encode_protobuf(data, chain_id, transactions=transactions)
    block = chain.block_at(height)
    message = Block.FromString(blocks.encode_protobuf(data, block.header.chain_id))
    del message.transactions[:]
    if transactions:
        message.transactions.extend(map(signed_transaction, block.transactions))
    if chain.rules.at(1).has(Feature.LIGHT_NODE):
        # The stored bytes of this block have no state hash, but the reference shows it.
        message.header.state_hash = chain.meta(1).snapshot_hash
    return message.SerializeToString()


def vrf_of(chain: Blockchain, height: int, data: bytes) -> bytes:
    """Return the VRF of a block with these bytes, empty before version 5."""
    return b"" if data[0] < blocks.PROTOBUF_VERSION else chain.meta(height).hit_source


def reward_messages(chain: Blockchain, height: int) -> list[RewardShare]:
    """Return the shares of a block's reward, by address."""
    return [
        RewardShare(address=address, reward=amount)
        for address, amount in reward_shares(chain, height, chain.meta(height))
    ]


def signed_transaction(transaction: AnyTransaction) -> SignedTransaction:
    """Return the message of a transaction."""
    if transaction.type_id == genesis.TYPE.type_id:
        # In the reference it has no version, and its id in place of a signature.
        signed = SignedTransaction.FromString(codec.encode_protobuf(transaction))
        signed.waves_transaction.ClearField("version")
        signed.proofs.append(transaction.id)
        return signed
    return SignedTransaction.FromString(codec.encode_protobuf(transaction))


@lru_cache(_TEXTS_KEPT)
def script_text(script: bytes) -> str:
    """Return a script as a text of its tree; the reference prints objects of its own."""
    return tree_text(parse_script(script))
