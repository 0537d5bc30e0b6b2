"""Blocks and transactions of the original node of a fork.

A block is assembled from the node's JSON, and must have the id that the node reports and its
generator's signature: omissions and changes are detected.

What lives here: blocks, their metadata, the places of transactions. What does not: the state
(``state``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from soliton.api.state_schemas import APPLICATION_STATUSES
from soliton.chain import blocks
from soliton.chain.addresses import Address
from soliton.chain.blocks import Block, BlockHeader
from soliton.chain.networks.model import Network
from soliton.chain.transactions import json_reader
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.table import type_by_id
from soliton.consensus import pos, rewards
from soliton.crypto import base58
from soliton.devnet.fork.calls import Members, call_record
from soliton.devnet.fork.remote import Height, Remote
from soliton.errors import SolitonError
from soliton.ledger.environment import BlockMeta
from soliton.ledger.hashes import EMPTY_HASH
from soliton.storage.errors import NotBelow
from soliton.storage.layout import TransactionLocation

PAGE: Final = 100
"""Transactions per request."""


class RemoteBlock(msgspec.Struct, frozen=True):
    """A block of the node with the JSON that it was read from."""

    block: Block
    height: int
    members: Mapping[str, Any]


class _Place(msgspec.Struct, frozen=True, rename="camel"):
    height: Height
    application_status: str = APPLICATION_STATUSES[0]
    spent_complexity: int = 0
    state_changes: dict[str, Any] | None = None
    payload: dict[str, Any] | None = None


class Placed(NamedTuple):
    """The metadata of a transaction."""

    height: int
    status: int
    complexity: int
    call: Members | None
    """The record of its dApp call, if it made one."""


class _Found(msgspec.Struct, frozen=True):
    height: Height


class _Named(msgspec.Struct, frozen=True):
    id: str


class _Rewards(msgspec.Struct, frozen=True, rename="camel"):
    total_waves_amount: int


class History:
    """The blocks of a node up to a height."""

    def __init__(self, remote: Remote, chain_id: int) -> None:
        self._remote = remote
        self._chain_id = chain_id

    def last(self) -> RemoteBlock:
        """The last block."""
        return self._read("/blocks/last", None)

    def block(self, height: int) -> RemoteBlock:
        """The block at a height."""
        return self._read(f"/blocks/at/{height}", height)

    def _read(self, path: str, height: int | None) -> RemoteBlock:
        row = self._remote.ask(path, dict[str, Any])
        try:
            found = block_of(row, self._chain_id)
            at = int(row["height"])
            named = base58.decode(row["id"])
        except (SolitonError, LookupError, TypeError, ValueError) as error:
            text = f"its block cannot be put together: {error!r}"
            raise self._remote.trouble(path, text) from error
        if height not in (None, at):
            raise self._remote.trouble(path, f"answers with the block of height {at}")
        root = found.header.version >= blocks.PROTOBUF_VERSION
        if root and blocks.transactions_root(found.transactions) != found.header.transactions_root:
            raise self._remote.trouble(
                path, "the block's transactions are not those it was made of"
            )
        if found.id != named or not blocks.signature_is_valid(found):
            text = f"block {row['id']} is not what its generator has signed"
            raise self._remote.trouble(path, text)
        return RemoteBlock(found, at, row)

    def meta(self, found: RemoteBlock, network: Network) -> BlockMeta:
        """Return the metadata of a block. Its fees are already in the balances; state hash and
        score of the chain are not available.
        """
        row, header, path = found.members, found.block.header, f"/blocks/at/{found.height}"
        source = header.generation_signature
        if header.version >= blocks.PROTOBUF_VERSION:
            source = self._remote.binary(path, str(row.get("VRF")), 32)
        activations = network.functionality.pre_activated_features
        factor = rewards.reward_multiplier(found.height, activations, network.functionality)
        paid, fee = row.get("reward", 0), row.get("totalFee", 0)
        if type(paid) is not int or type(fee) is not int:
            raise self._remote.trouble(path, "the reward or the fees are no numbers")
        score = pos.block_score(header.base_target)
        return BlockMeta(
            id=found.block.id,
            timestamp=header.timestamp,
            hit_source=source,
            score=score.to_bytes((score.bit_length() + 7) // 8, "big"),
            carry=(),
            reward=max(0, paid) // factor,
            reward_vote=header.reward_vote,
            feature_votes=header.feature_votes,
            total_fee=fee,
            total_waves=self._supply(found.height),
            generator=header.generator,
            size=len(found.block.data),
            transaction_count=len(found.block.transactions),
            snapshot_hash=header.state_hash or self._hash_of_first(path, row),
            state_hash=EMPTY_HASH,
            sections={},
        )

    def _hash_of_first(self, path: str, row: Mapping[str, Any]) -> bytes:
        """Return the state hash of the first block, which its bytes do not include."""
        text = row.get("stateHash")
        return EMPTY_HASH if text is None else self._remote.binary(path, str(text), 32)

    def _supply(self, height: int) -> int:
        """Return the total supply of the coin after a block, 0 for the first block."""
        if height == 1:
            return 0
        return self._remote.ask(f"/blockchain/rewards/{height}", _Rewards).total_waves_amount

    def height_of(self, block_id: bytes) -> int | None:
        """Return the height of the block with an id."""
        found = self._remote.find(f"/blocks/height/{base58.encode(block_id)}", _Found)
        return None if found is None else found.height

    def place(self, transaction_id: bytes, top: int) -> Placed | None:
        """Return the metadata of a transaction, ``None`` if it is above height ``top``."""
        path = f"/transactions/info/{base58.encode(transaction_id)}"
        found = self._remote.find(path, _Place)
        if found is None or found.height > top:
            return None
        if found.application_status not in APPLICATION_STATUSES:
            raise self._remote.trouble(path, f"a status {found.application_status[:40]!r}")
        status = APPLICATION_STATUSES.index(found.application_status)
        info = {"stateChanges": found.state_changes} if found.payload is None else found.payload
        call = call_record(self._remote, path, info)
        return Placed(found.height, status, max(0, found.spent_complexity), call)

    def transactions_of(self, address: Address, after: bytes) -> list[bytes]:
        """Return a page of the ids of an account's transactions, the newest first, after one."""
        path = f"/transactions/address/{base58.encode(address)}/limit/{PAGE}"
        if after:
            path += f"?after={base58.encode(after)}"
        pages = self._remote.page(path, list[_Named], 1)
        rows = pages[0] if pages else []
        if len(rows) > PAGE:
            text = f"answers with {len(rows)} transactions where at most {PAGE} are due"
            raise self._remote.trouble(path, text)
        return [self._remote.binary(path, each.id, 32, 64) for each in rows]


def location_in(
    data: bytes, chain_id: int, transaction_id: bytes, place: Placed
) -> TransactionLocation:
    """Return the place of a transaction in a block's bytes; raises ``NotBelow`` if it is absent."""
    height, status, complexity, _ = place
    block = blocks.decode(data, chain_id)
    spans = blocks.transaction_spans(data)
    for index, (each, span) in enumerate(zip(block.transactions, spans, strict=True)):
        if each.id == transaction_id:
            return TransactionLocation(height, index, *span, status, complexity)
    raise NotBelow(f"transaction {base58.encode(transaction_id)} is not in block {height}")


def calling_id(data: bytes, chain_id: int, index: int) -> bytes | None:
    """Return the id of a transaction of a block, if it calls a dApp."""
    transactions = blocks.decode(data, chain_id).transactions
    if index >= len(transactions):
        return None
    made = transactions[index]
    return None if type_by_id(made.type_id).calls(made.payload) is None else made.id


def block_of(row: Mapping[str, Any], chain_id: int) -> Block:
    """Return the block of a node's JSON; raises various errors for invalid ones."""
    consensus, version = row["nxt-consensus"], row["version"]
    if row.get("challengedHeader"):
        raise NotBelow("a block that challenges another one is not shown as a whole")
    protobuf = version >= blocks.PROTOBUF_VERSION
    state_hash = row.get("stateHash") if protobuf else None
    header = BlockHeader(
        version=version,
        chain_id=chain_id,
        timestamp=row["timestamp"],
        reference=base58.decode(row["reference"]),
        base_target=consensus["base-target"],
        generation_signature=base58.decode(consensus["generation-signature"]),
        generator=base58.decode(row["generatorPublicKey"]),
        feature_votes=tuple(row.get("features") or ()),
        reward_vote=row.get("desiredReward", blocks.NO_REWARD_VOTE),
        transactions_root=base58.decode(row["transactionsRoot"]) if protobuf else b"",
        state_hash=base58.decode(state_hash) if state_hash else None,
    )
    transactions = tuple(transaction_of(each, chain_id) for each in row["transactions"])
    return blocks.assemble(header, transactions, base58.decode(row["signature"]))


def transaction_of(row: Mapping[str, Any], chain_id: int) -> AnyTransaction:
    """Return the transaction of a node's JSON; raises various errors for invalid ones."""
    return json_reader.read_shown(row, chain_id)
