"""Checks of a block's header against the chain.

What lives here: collecting the inputs of the formulas. What does not: the formulas
(``soliton.consensus``).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/Blockchain.scala`` and
``consensus/PoSSelector.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.chain.addresses import Address, address_text, from_public_key
from soliton.chain.blocks import BlockHeader
from soliton.chain.features import Feature
from soliton.consensus import header_check, pos
from soliton.consensus.header_check import ConsensusError, FromFuture, Parent
from soliton.ledger.environment import Ancestors
from soliton.ledger.errors import BlockFromFuture, BlockRejected, UnknownFeatures
from soliton.ledger.generators import Committed, GeneratorSet, Member, committed_to
from soliton.ledger.scripts import account_script
from soliton.ledger.state import is_banned_between

HIT_SOURCE_DEPTH: Final = 100
_SECOND: Final = 2


def check_header(
    chain: Ancestors,
    header: BlockHeader,
    block_id: bytes,
    now: int | None,
    *,
    settled: bool = False,
) -> bytes:
    """Check a header on top of the chain and return the new block's hit source.

    ``now`` (ms) bounds the block's time; ``None`` for history. With ``settled`` the block builds on
    an earlier version of the last block: generating balances are computed without that block, which
    is an upper bound. Raises ``BlockRejected``.
    """
    check_generator(chain, header.generator)
    if not settled:
        _check_commitment(chain, header)
    rules = chain.rules.header_at(chain.height + 1)
    parent = parent_of(chain, header, chain.height - 1 if settled else None)
    try:
        return header_check.check_header(header, block_id, parent, rules, now)
    except FromFuture as error:
        raise BlockFromFuture(chain.height + 1, str(error)) from error
    except ConsensusError as error:
        raise BlockRejected(chain.height + 1, str(error)) from error


def check_generator(chain: Ancestors, generator: bytes) -> None:
    """Raise ``BlockRejected`` for an account with a script, which may not mine before feature 17.

    Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/mining/Miner.scala``
    (``isAllowedForMining``).
    """
    if not chain.rules.at(chain.height).scripted_generators_refused:
        return
    address = from_public_key(generator, chain.network.chain_id)
    if account_script(address, chain.state) is not None:
        raise BlockRejected(
            chain.height + 1,
            f"Account({address_text(address)}) is scripted and not allowed to forge blocks",
        )


def _check_commitment(chain: Ancestors, header: BlockHeader) -> None:
    """Raise ``BlockRejected`` if others than the generator may make the block.

    A challenge is made by anyone; that of the challenged block is checked with that.
    """
    generators = chain.generator_set(header.timestamp)
    if generators is None or header.challenged is not None:
        return
    address = from_public_key(header.generator, chain.network.chain_id)
    if not generators.allows(address):
        allowed = ", ".join(address_text(each.address) for each in generators.members)
        raise BlockRejected(
            chain.height + 1,
            f"{address_text(address)} is not allowed to generate a block, allowed: {allowed}. If "
            "this is your node: commit to generation for the next period",
        )


def make_generator_set(
    chain: Ancestors,
    height: int,
    timestamp: int,
    committed: tuple[Committed, ...] | None = None,
) -> GeneratorSet | None:
    """Return the generators of the block at a height, at most the next one, which has a timestamp
    (ms); ``None`` before deterministic finality. Those whose conflict that very block shows are no
    members. Chains cache that of the next block (``Ancestors.generator_set``).

    ``committed`` are those who have committed to its period, if they are known.
    """
    period = chain.rules.period_at(height)
    if period is None:
        return None
    if committed is None:
        committed = committed_to(chain.state, period, chain.network.chain_id, height)
    rules = chain.rules.at(height - 1)
    enforced = timestamp >= rules.minimal_generating_balance_after
    members = []
    for index, each in enumerate(committed):
        if each.conflict_height:
            continue
        balance = generating_balance(chain, each.address, height - 1)
        if balance >= rules.minimum_generating_balance or not enforced:
            members.append(Member(index, each.address, each.endorser_key, balance))
    return GeneratorSet(period, committed, tuple(members))


def check_features(chain: Ancestors) -> None:
    """Raise ``UnknownFeatures`` if one is active that this version does not implement."""
    height = chain.height + 1
    unknown = chain.rules.at(height).unknown_features
    if unknown:
        raise UnknownFeatures(
            height, f"features {list(unknown)} are active there, a newer version is needed"
        )


def hit_source(chain: Ancestors) -> bytes:
    """Return the hit source that decides who may mine on top of the last block."""
    height = chain.height
    if chain.rules.at(height).pos is not pos.NXT and height > HIT_SOURCE_DEPTH:
        height -= HIT_SOURCE_DEPTH
    return chain.meta(height).hit_source


def great_grandparent_timestamp(chain: Ancestors) -> int | None:
    """Return the time of the block two below the last one, for the base target."""
    height = chain.height
    return chain.meta(height - 2).timestamp if height > 2 else None


def parent_of(chain: Ancestors, header: BlockHeader, top: int | None = None) -> Parent:
    """Return the parent data that the check of this header needs; balances are computed from the
    blocks up to ``top`` (default: the last one).

    The generator of a challenge mines with the balances of both generators.
    """

    def balance(generator: bytes) -> int:
        address = from_public_key(generator, chain.network.chain_id)
        return generating_balance(chain, address, chain.height, top)

    challenged = header.challenged
    return Parent(
        height=chain.height,
        header=chain.last_block.header,
        hit_source=hit_source(chain),
        great_grandparent_timestamp=great_grandparent_timestamp(chain),
        generating_balance=balance(header.generator),
        challenged_balance=0 if challenged is None else balance(challenged.generator),
    )


def generating_balance(
    chain: Ancestors, address: Address, height: int, top: int | None = None
) -> int:
    """Return the generating balance of an account, in wavelets, on top of the block at ``height``,
    computed from the blocks up to ``top`` (default: ``height``).

    It is 0 while a block that challenged one of the account's is in the window. Before feature 17
    the genesis block does not count for the third one (``height2Fix`` in wavesplatform/Waves
    ``node/src/main/scala/com/wavesplatform/state/SnapshotBlockchain.scala``).
    """
    rules = chain.rules.at(height)
    bottom = max(1, height - rules.generating_balance_depth + 1)
    if height == _SECOND and not chain.rules.at(1).has(Feature.RIDE_V6):
        bottom = _SECOND
    if rules.state_hash_required and is_banned_between(chain.state, address, bottom, height):
        return 0
    return chain.smallest_effective_balance(
        address, bottom, height if top is None else max(bottom, top)
    )
