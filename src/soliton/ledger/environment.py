"""The parameters that a block is applied with, computed once before its first transaction.

``BlockEnvironment`` is the record: height, time, rules, the results of the parent, the reward and
its payouts. The functions here compute it from a header and the chain below, which they read only
through ``Ancestors``.

What lives here: the record, rewards and payouts, votes for features, bans, a block as scripts see
it. What does not: applying it (``apply``), checking its header (``headers``).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/``
``BlockchainUpdaterImpl.scala``, ``diffs/BlockDiffer.scala`` and
``transaction/smart/WavesEnvironment.scala``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Protocol

import msgspec

from soliton.chain import blocks
from soliton.chain.addresses import Address, from_public_key, parse_address
from soliton.chain.blocks import Block, BlockHeader
from soliton.chain.features import Feature
from soliton.chain.networks.model import Network
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.consensus import rewards
from soliton.consensus.generation import GenerationPeriod
from soliton.consensus.rewards import Shares
from soliton.ledger.edits import Edit
from soliton.ledger.generators import GeneratorSet, committed_at, ended_deposits
from soliton.ledger.patches import Patches
from soliton.ledger.rules_at import RuleBook, Rules, votes_needed, voting_window
from soliton.ledger.state import BANS, State, Status
from soliton.ride.environment import BlockInfo

Carry = tuple[tuple[AssetId | None, int], ...]
"""The part of a block's fees that the generator of the next block receives, by asset."""


class BlockMeta(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The metadata of a block: what is stored besides its bytes, after it has been applied.

    Amounts are in wavelets. ``score`` is the chain's score up to this block (big-endian bytes).
    ``sections`` maps the index of a state hash section to its hash, unless that is the empty hash.
    ``finalized_height`` is that of the last block that is final according to the votings up to this
    block, 0 if there was none.
    """

    id: bytes
    timestamp: int
    hit_source: bytes
    score: bytes
    carry: Carry
    reward: int
    reward_vote: int
    feature_votes: tuple[int, ...]
    total_fee: int
    total_waves: int
    generator: bytes
    size: int
    transaction_count: int
    snapshot_hash: bytes
    state_hash: bytes
    sections: dict[int, bytes]
    finalized_height: int = 0


class PastTransaction(msgspec.Struct, frozen=True, gc=False):
    """A transaction of the chain, with its height and status."""

    transaction: AnyTransaction
    height: int
    status: Status


class ChainView(Protocol):
    """The blocks below the current one, as far as scripts can read them."""

    def block(self, height: int, /) -> BlockInfo | None:
        """Return a block."""

    def transaction(self, transaction_id: bytes, /) -> PastTransaction | None:
        """Return a transaction."""

    def generating_balance(self, address: Address, height: int, /) -> int:
        """Return the smallest effective balance of an account in the blocks that count at a height,
        as far as they are below it; 0 while the account is banned.
        """

    def has_data(self, address: Address, /) -> bool:
        """Whether an account has ever had a data entry."""


class Ancestors(Protocol):
    """Read access to a chain, for the rules of the block on top of it."""

    @property
    def network(self) -> Network:
        """The network of the chain."""

    @property
    def rules(self) -> RuleBook:
        """The rules at every height."""

    @property
    def height(self) -> int:
        """The height of the last block."""

    @property
    def last_block(self) -> Block:
        """The last block."""

    @property
    def state(self) -> State:
        """The state after the last block."""

    @property
    def view(self) -> ChainView:
        """The chain as scripts see it."""

    def meta(self, height: int, /) -> BlockMeta:
        """Return the metadata of the block at a height."""

    def feature_votes(self, height: int, /) -> tuple[int, ...]:
        """Return the features that the block at a height votes for."""

    def generator_set(self, timestamp: int, /) -> GeneratorSet | None:
        """Return the generators of the next block, which has a timestamp (ms); ``None`` before
        deterministic finality.
        """

    def smallest_effective_balance(self, address: Address, bottom: int, top: int, /) -> int:
        """Return that of an account after the blocks ``bottom`` to ``top``, in wavelets."""


class Payout(msgspec.Struct, frozen=True):
    """A share of the block reward."""

    address: Address
    amount: int


class Reward(msgspec.Struct, frozen=True):
    """The reward set by votes, the amount minted including the boost, and its payouts."""

    voted: int = 0
    minted: int = 0
    payouts: tuple[Payout, ...] = ()


NO_REWARD = Reward()


class BlockEnvironment(msgspec.Struct, frozen=True):
    """The parameters that a block is applied with; ``parent`` is ``None`` for the genesis block.

    Scripts see ``last_block`` as the last one, and the chain ``below`` it. ``patch`` changes the
    state at the beginning of the block. ``approved`` are the features that the votes up to this
    block approve; ``bans`` are the heights at which blocks of an account were challenged, this one
    included. ``period`` is that of the block, and ``generators`` are those who may make it.
    ``penalties`` are the accounts that lose their deposit in it, ``released`` those that get it
    back.

    On a private chain ``edits`` change the state after the credits, proofs of the accounts in
    ``waived`` are not checked, and the generation signature need not be valid (``proven``).
    """

    height: int
    timestamp: int
    rules: Rules
    parent_rules: Rules
    parent: BlockMeta | None = None
    generator: bytes = b""
    hit_source: bytes = b""
    last_block: BlockInfo | None = None
    below: ChainView | None = None
    reward: Reward = NO_REWARD
    patch: Patches | None = None
    approved: tuple[int, ...] = ()
    bans: dict[Address, tuple[int, ...]] = {}
    period: GenerationPeriod | None = None
    generators: GeneratorSet | None = None
    penalties: tuple[Address, ...] = ()
    released: tuple[Address, ...] = ()
    edits: tuple[Edit, ...] = ()
    waived: frozenset[Address] = frozenset()
    proven: bool = True


def genesis_environment(block: Block, network: Network, rules: RuleBook) -> BlockEnvironment:
    """Return the environment of the first block."""
    reward = _genesis_reward(network, rules, block.header.generator)
    minted = network.genesis.initial_balance + reward.minted
    return BlockEnvironment(
        height=1,
        timestamp=block.header.timestamp,
        rules=rules.at(1),
        parent_rules=rules.at(0),
        generator=block.header.generator,
        hit_source=block.header.generation_signature,
        reward=msgspec.structs.replace(reward, minted=minted),
        approved=approved_features(network, rules, 1, lambda _: block.header.feature_votes),
        period=rules.period_at(1),
    )


def next_environment(chain: Ancestors, header: BlockHeader, hit_source: bytes) -> BlockEnvironment:
    """Return the environment of a block on top of the chain, whose header has this hit source."""
    height, book = chain.height + 1, chain.rules
    rules, reward = book.at(height), next_reward(chain, header.generator)
    visible = None
    if rules.has(Feature.SMART_ACCOUNTS):
        # Only scripts read it.
        visible = block_info(chain.network, book, height, header, height, hit_source, reward.voted)
    bans = {}
    if header.challenged is not None:
        banned = from_public_key(header.challenged.generator, header.chain_id)
        bans[banned] = (*chain.state.get(BANS, banned), height)
    period = book.period_at(height)
    return BlockEnvironment(
        height=height,
        timestamp=header.timestamp,
        rules=rules,
        parent_rules=book.at(height - 1),
        parent=chain.meta(height - 1),
        generator=header.generator,
        hit_source=hit_source,
        last_block=visible,
        below=chain.view,
        reward=reward,
        patch=book.patch_at(height),
        approved=approved_features(
            chain.network,
            book,
            height,
            lambda at: header.feature_votes if at == height else chain.feature_votes(at),
        ),
        bans=bans,
        period=period,
        generators=chain.generator_set(header.timestamp),
        penalties=_penalties(chain),
        released=() if period is None else _released(chain, period),
    )


def _penalties(chain: Ancestors) -> tuple[Address, ...]:
    """Return the accounts whose conflicting endorsements the last block shows."""
    voting = chain.last_block.header.finalization_voting
    period = chain.rules.period_at(chain.height)
    if voting is None or period is None:
        return ()
    indexes = [each.endorser_index for each in voting.conflicts]
    chain_id = chain.network.chain_id
    return tuple(committed_at(chain.state, period, each, chain_id).address for each in indexes)


def _released(chain: Ancestors, period: GenerationPeriod) -> tuple[Address, ...]:
    """Return the accounts whose deposit ends because a period begins with the next block."""
    before = chain.rules.period_at(chain.height)
    if before is None or before.start == period.start:
        return ()
    return ended_deposits(chain.state, before, chain.network.chain_id)


def pending_environment(chain: Ancestors, now: int) -> BlockEnvironment:
    """Return the environment of unconfirmed transactions at a time (ms); scripts see the last block
    of the chain.
    """
    height, view = chain.height + 1, chain.view
    return BlockEnvironment(
        height=height,
        timestamp=now,
        rules=chain.rules.at(height),
        parent_rules=chain.rules.at(height - 1),
        parent=chain.meta(height - 1),
        last_block=view.block(height - 1),
        below=view,
        period=chain.rules.period_at(height),
    )


# --- rewards --------------------------------------------------------------------------------------


def next_reward(chain: Ancestors, generator: bytes) -> Reward:
    """Return the reward of the next block, for a generator (by its public key)."""
    height, activations = chain.height + 1, chain.rules.activations()
    start = activations.get(Feature.BLOCK_REWARD)
    if start is None or height < start:
        return NO_REWARD
    return _shared_reward(
        chain.network, height, _voted_reward(chain, start), activations, generator
    )


def _genesis_reward(network: Network, rules: RuleBook, generator: bytes) -> Reward:
    """Return the reward of the first block, which only chains have that begin with feature 14 and
    without feature 18: wavesplatform/Waves
    ``node/src/main/scala/com/wavesplatform/state/BlockchainUpdaterImpl.scala``
    (``computeNextReward``).
    """
    if not rules.at(1).has(Feature.BLOCK_REWARD) or rules.at(1).has(Feature.CONSENSUS_IMPROVEMENTS):
        return NO_REWARD
    return _shared_reward(network, 1, network.rewards.initial, rules.activations(), generator)


def _shared_reward(
    network: Network, height: int, voted: int, activations: Mapping[int, int], generator: bytes
) -> Reward:
    if voted == 0:
        return NO_REWARD
    share = rewards.shares(height, voted, activations, network.functionality)
    factor = rewards.reward_multiplier(height, activations, network.functionality)
    parts = paid_shares(network, from_public_key(generator, network.chain_id), share)
    return Reward(voted, voted * factor, tuple(Payout(*part) for part in parts))


def _voted_reward(chain: Ancestors, start: int) -> int:
    parent, settings = chain.height, chain.network.rewards
    if chain.rules.activations().get(Feature.ADJUSTED_REWARD_DISTRIBUTION) == parent + 1:
        # Once, whatever the votes; later votes change it from there.
        return rewards.ADJUSTED.full
    # The genesis block has none. Votes can also reduce the reward to zero.
    first = parent + 1 <= max(start, 2)
    current = settings.initial if first else chain.meta(parent).reward
    voters = rewards.voting_heights(parent, chain.rules.activations(), settings)
    if voters is None:
        return current
    votes = (chain.meta(height).reward_vote for height in voters if height >= 1)
    return rewards.next_reward(current, votes, settings)


def paid_shares(network: Network, generator: Address, share: Shares) -> list[tuple[Address, int]]:
    """Return the accounts that share a reward, with their parts, without empty ones."""
    settings = network.functionality
    dao = _address(settings.dao_address, network.chain_id)
    xtn = _address(settings.xtn_buyback_address, network.chain_id)
    parts = ((generator, share.miner), (dao, share.dao), (xtn, share.xtn_buyback))
    return [(to, amount) for to, amount in parts if to is not None and amount > 0]


@lru_cache(64)
def _address(text: str | None, chain_id: int) -> Address | None:
    return None if text is None else parse_address(text, chain_id)


# --- votes ----------------------------------------------------------------------------------------


def approved_features(
    network: Network, rules: RuleBook, height: int, votes_at: Callable[[int], tuple[int, ...]]
) -> tuple[int, ...]:
    """Return the features that the votes up to the block at ``height`` approve.

    The vote of the last block of a window counts only for features with an earlier one.
    """
    settings = network.functionality
    window = voting_window(settings, height)
    if height % window != 0:
        return ()
    votes: Counter[int] = Counter()
    for each in range(max(1, height - window + 1), height):
        if found := votes_at(each):
            votes.update(found)
    last, needed = votes_at(height), votes_needed(settings, height)
    approved = {each for each, count in votes.items() if count + (each in last) >= needed}
    new = approved - rules.activations().keys()
    return tuple(sorted(each for each in new if 0 < each <= blocks.MAX_VOTE))


# --- what scripts see -----------------------------------------------------------------------------


def block_info(
    network: Network,
    book: RuleBook,
    next_height: int,
    header: BlockHeader,
    height: int,
    hit_source: bytes,
    reward: int,
) -> BlockInfo:
    """Return a block as scripts at ``next_height`` see it; ``reward`` is the one set by votes."""
    generator = from_public_key(header.generator, header.chain_id)
    return BlockInfo(
        timestamp=header.timestamp,
        height=height,
        base_target=header.base_target,
        generation_signature=header.generation_signature,
        generator=generator,
        generator_public_key=header.generator,
        vrf=hit_source if header.version >= blocks.PROTOBUF_VERSION else None,
        rewards=_rewards_seen(network, book, next_height, height, generator, reward),
    )


def _rewards_seen(
    network: Network, book: RuleBook, next_height: int, height: int, generator: Address, reward: int
) -> tuple[tuple[bytes, int], ...]:
    now, settings = book.at(next_height), network.functionality
    if not now.has(Feature.BLOCK_REWARD_DISTRIBUTION):
        return ()
    if now.has(Feature.CAPPED_REWARDS):
        share = rewards.shares(height, reward, book.activations(), settings)
    else:
        third = reward // 3
        others = (settings.dao_address is not None) + (settings.xtn_buyback_address is not None)
        share = Shares(reward - others * third, third, third)
    return tuple(sorted(paid_shares(network, generator, share)))
