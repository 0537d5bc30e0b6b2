"""Blocks in the JSON of the REST API.

What lives here: headers, and transactions within blocks. What does not: single transactions
(``json_transactions``), whole blocks (``block_texts``), the routes (``rest.blocks``).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/block/serialization/
BlockSerializer.scala`` and ``api/BlockMeta.scala``;
0bsnetwork/Zbs ``src/main/scala/com/zbsnetwork/block/Block.scala`` for the oldest generation, all of
whose members are here together with newer ones.
"""

from __future__ import annotations

from typing import Final

from soliton.api.json_transactions import Members
from soliton.api.state_schemas import APPLICATION_STATUSES
from soliton.api.translate import OLDEST
from soliton.chain.addresses import address_text, from_public_key, parse_address
from soliton.chain.blocks import (
    GENESIS_VERSION,
    NG_VERSION,
    PROTOBUF_VERSION,
    REWARD_VERSION,
    BlockHeader,
    ChallengedHeader,
)
from soliton.chain.features import Feature
from soliton.chain.finalization import FinalizationVoting
from soliton.chain.transactions.codec import to_json
from soliton.chain.transactions.model import AnyTransaction
from soliton.consensus import rewards
from soliton.crypto import base58
from soliton.ledger.environment import BlockMeta
from soliton.node.blockchain import Blockchain

_WITHOUT_STATUS: Final = frozenset(range(GENESIS_VERSION, PROTOBUF_VERSION))
"""Versions of blocks whose transactions have no ``applicationStatus``."""


def header_json(chain: Blockchain, height: int) -> Members:
    """The header of the block at a height; raises ``KeyError`` if there is none."""
    meta = chain.meta(height)
    header, signature = chain.header_at(height)
    return _header_members(chain, height, meta, header, signature)


def transaction_json(chain: Blockchain, transaction: AnyTransaction, header: Members) -> Members:
    """A transaction within the block with this header."""
    members: Members = to_json(transaction)
    if header["version"] not in _WITHOUT_STATUS:
        members["applicationStatus"] = application_status(chain, transaction.id)
    return members


def application_status(chain: Blockchain, transaction_id: bytes) -> str:
    """The ``applicationStatus`` of a transaction of a block."""
    location = chain.store.transaction_location(transaction_id)
    return APPLICATION_STATUSES[0 if location is None else location.status]


def _header_members(
    chain: Blockchain, height: int, meta: BlockMeta, header: BlockHeader, signature: bytes
) -> Members:
    block_id = base58.encode(meta.id)
    members: Members = {
        "version": header.version,
        "timestamp": header.timestamp,
        "reference": base58.encode(header.reference),
        "nxt-consensus": {
            "base-target": header.base_target,
            "generation-signature": base58.encode(header.generation_signature),
        },
    }
    if header.version >= PROTOBUF_VERSION:
        members["transactionsRoot"] = base58.encode(header.transactions_root)
    members["id"] = block_id
    members |= _vote_members(header, header.version, chain.network.chain_id)
    if height == 1 and chain.rules.at(1).has(Feature.LIGHT_NODE):
        # The bytes of the genesis block do not have it, but the reference shows it.
        members["stateHash"] = base58.encode(meta.snapshot_hash)
    if header.challenged is not None:
        members["challengedHeader"] = {
            "headerSignature": base58.encode(header.challenged.header_signature),
            **_vote_members(header.challenged, header.version, chain.network.chain_id),
            **_voting_members(header.challenged.finalization_voting),
        }
    members |= _voting_members(header.finalization_voting)
    members["signature"] = base58.encode(signature)
    members["blocksize"] = meta.size
    members["transactionCount"] = meta.transaction_count
    members["height"] = height
    members["totalFee"] = meta.total_fee
    if chain.network.family != OLDEST:
        members |= _reward_members(chain, height, meta)
    if header.version >= PROTOBUF_VERSION:
        members["VRF"] = base58.encode(meta.hit_source)
    return members


def _vote_members(header: BlockHeader | ChallengedHeader, version: int, chain_id: int) -> Members:
    """The generator of a header and its votes."""
    members: Members = {}
    if version >= NG_VERSION:
        members["features"] = header.feature_votes
    if version >= REWARD_VERSION:
        members["desiredReward"] = header.reward_vote
    members["generator"] = address_text(from_public_key(header.generator, chain_id))
    members["generatorPublicKey"] = base58.encode(header.generator)
    if header.state_hash is not None:
        members["stateHash"] = base58.encode(header.state_hash)
    return members


def _voting_members(voting: FinalizationVoting | None) -> Members:
    """The finalization voting of a header; what is empty is left out."""
    if voting is None:
        return {}
    members: Members = {}
    if voting.endorser_indexes:
        members["endorserIndexes"] = voting.endorser_indexes
    if voting.aggregate is not None:
        members["aggregatedEndorsementSignature"] = base58.encode(voting.aggregate)
    if voting.finalized_height > 0:
        members["finalizedHeight"] = voting.finalized_height
    if voting.conflicts:
        members["conflictEndorsements"] = [
            {
                "endorserIndex": each.endorser_index,
                "finalizedBlockId": base58.encode(each.finalized_id),
                "finalizedHeight": each.finalized_height,
                "endorsedBlockId": base58.encode(each.endorsed_id),
                "signature": base58.encode(each.signature),
            }
            for each in voting.conflicts
        ]
    return {"finalizationVoting": members}


def _reward_members(chain: Blockchain, height: int, meta: BlockMeta) -> Members:
    settings = chain.network.functionality
    factor = rewards.reward_multiplier(height, chain.rules.activations(), settings)
    shares = reward_shares(chain, height, meta)
    return {
        "reward": meta.reward * factor,
        "rewardShares": {address_text(to): amount for to, amount in shares},
    }


def reward_shares(chain: Blockchain, height: int, meta: BlockMeta) -> list[tuple[bytes, int]]:
    """The shares of a block's reward above zero, sorted by address."""
    if meta.reward == 0:
        return []
    settings, chain_id = chain.network.functionality, chain.network.chain_id
    parts = rewards.shares(height, meta.reward, chain.rules.activations(), settings)
    shares = [(bytes(from_public_key(meta.generator, chain_id)), parts.miner)]
    if settings.dao_address is not None:
        shares.append((parse_address(settings.dao_address, chain_id), parts.dao))
    if settings.xtn_buyback_address is not None:
        shares.append((parse_address(settings.xtn_buyback_address, chain_id), parts.xtn_buyback))
    return sorted((to, amount) for to, amount in shares if amount > 0)
