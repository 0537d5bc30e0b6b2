"""Blocks, transactions and balances of the chain, as scripts may ask for them.

What lives here: the answers from what is stored, and how a block looks to scripts. What does not:
the state and the block under way, which the ledger knows itself (``soliton.ledger``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/smart/WavesEnvironment.scala``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from soliton.chain import blocks
from soliton.chain.addresses import Address, from_public_key
from soliton.chain.blocks import BlockHeader
from soliton.chain.features import Feature
from soliton.consensus.rewards import Shares, shares
from soliton.ledger.context import PastTransaction
from soliton.ledger.state import BANS, Status
from soliton.ride.environment import BlockInfo
from soliton.storage.indexes import minimum_effective_balance

if TYPE_CHECKING:
    from soliton.node.chain import Chain


class StoredChain:
    """What a chain holds, for scripts."""

    __slots__ = ("_chain",)

    def __init__(self, chain: Chain) -> None:
        self._chain = chain

    def block(self, height: int, /) -> BlockInfo | None:
        """The block at a height."""
        chain = self._chain
        if not 1 <= height <= chain.height:
            return None
        header = chain.last_block.header if height == chain.height else None
        header = header or chain.block_at(height).header
        meta = chain.meta(height)
        return self.describe(header, height, meta.hit_source, meta.reward)

    def describe(
        self, header: BlockHeader, height: int, hit_source: bytes, reward: int
    ) -> BlockInfo:
        """A block as scripts see it; ``reward`` is what it mints before boost and shares."""
        generator = from_public_key(header.generator, header.chain_id)
        return BlockInfo(
            timestamp=header.timestamp,
            height=height,
            base_target=header.base_target,
            generation_signature=header.generation_signature,
            generator=generator,
            generator_public_key=header.generator,
            vrf=hit_source if header.version >= blocks.PROTOBUF_VERSION else None,
            rewards=self._rewards(height, generator, reward),
        )

    def _rewards(
        self, height: int, generator: Address, reward: int
    ) -> tuple[tuple[bytes, int], ...]:
        chain = self._chain
        activations, dao, xtn = chain.rules.activations(), chain.dao, chain.xtn
        now = chain.rules.at(chain.height + 1)
        if not now.has(Feature.BLOCK_REWARD_DISTRIBUTION):
            return ()
        if now.has(Feature.CAPPED_REWARDS):
            share = shares(height, reward, activations, chain.network.functionality)
        else:
            third = reward // 3
            others = (dao is not None) + (xtn is not None)
            share = Shares(reward - others * third, third, third)
        parts = ((generator, share.miner), (dao, share.dao), (xtn, share.xtn_buyback))
        return tuple(sorted((to, amount) for to, amount in parts if to is not None and amount > 0))

    def transaction(self, transaction_id: bytes, /) -> PastTransaction | None:
        """A transaction."""
        found = self._chain.transaction(transaction_id)
        if found is None:
            return None
        return PastTransaction(found.transaction, found.height, Status(found.status))

    def generating_balance(self, address: Address, height: int, /) -> int:
        """The smallest effective balance of an account in the blocks that count at a height, as
        far as they are stored below it; 0 while it is banned.
        """
        chain = self._chain
        rules = chain.rules.at(height)
        bottom = max(1, height - rules.generating_balance_depth + 1)
        if rules.state_hash_required and any(
            bottom <= banned <= height for banned in chain.store.get(BANS, address)
        ):
            return 0
        top = max(bottom, height - 1)
        return minimum_effective_balance(chain.store, address, bottom, top)

    def has_data(self, address: Address, /) -> bool:
        """Whether an account ever had an entry in its data storage."""
        return self._chain.store.had_data(address)
