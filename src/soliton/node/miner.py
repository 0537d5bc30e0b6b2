"""Making blocks: when an account may, and what goes in.

``forge`` builds a complete, signed block from the transactions that still apply. It goes through
the same ``BlockInProgress`` as validation, so a block made here has the state hash that every other
node computes.

What lives here: the earliest time and the block. What does not: the decision to mine now (the
node), the formulas (``soliton.consensus.pos``).

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/mining/Miner.scala``.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from time import perf_counter
from typing import Final, TypeVar

import msgspec

from soliton.chain import blocks
from soliton.chain.addresses import from_public_key
from soliton.chain.blocks import MAX_TRANSACTIONS, Block, BlockHeader, Encoded
from soliton.chain.layouts import SIGNATURE_LENGTH
from soliton.chain.transactions.model import AnyTransaction
from soliton.consensus import pos
from soliton.crypto import vrf
from soliton.crypto.curve25519 import sign
from soliton.crypto.keys import KeyPair
from soliton.errors import InputError
from soliton.ledger.apply import BlockFull, BlockInProgress
from soliton.node.chain import Chain

_MAX_PASSES: Final = 10
"""Fees decide the order, so a transaction may come before the one that brings its funds: what does
not apply is tried again after the others, this often."""


_STEP_TRANSACTIONS: Final = 32
"""They take about two milliseconds."""
_STEP_SECONDS: Final = 0.002
"""With scripts a few of them, or one, may take as long: a step ends with the one that does."""

T = TypeVar("T")
Steps = Generator[None, None, T]
"""Work that can be interrupted between its steps, and what it comes to."""


class CannotMine(InputError):
    """The account may not make the next block: its generating balance is too small."""


class Slot(msgspec.Struct, frozen=True):
    """An account's turn: the earliest time (ms) of its block, its generation signature, and the
    hit source that the block leaves to later ones.
    """

    account: KeyPair
    earliest: int
    generation_signature: bytes
    hit_source: bytes


class Forged(msgspec.Struct, frozen=True):
    """A new block, its application, and the transactions that no longer apply, with the reasons.

    ``progress`` is ``None`` where the block must be applied once more: before NG its generator gets
    all fees at the beginning, when nobody knows yet which transactions it will hold.
    """

    block: Block
    progress: BlockInProgress | None
    invalid: Mapping[bytes, str]


def next_slot(chain: Chain, account: KeyPair) -> Slot:
    """When the account may make the block on top of the chain; raises ``CannotMine``."""
    rules = chain.header_rules()
    balance = chain.generating_balance(from_public_key(account.public_key, chain.network.chain_id))
    if balance <= 0 or balance < rules.minimum_generating_balance:
        raise CannotMine(
            f"generating balance {balance} is below {rules.minimum_generating_balance}"
        )
    parent = chain.last_block.header
    if rules.uses_vrf:
        signature = vrf.prove(account.private_key, chain.hit_source())
        counted = vrf.verify(account.public_key, chain.hit_source(), signature)
        if counted is None:
            raise CannotMine("the account's key makes no valid VRF proof")
    else:
        signature = pos.generation_signature(parent.generation_signature, account.public_key)
        counted = pos.generation_signature(chain.hit_source(), account.public_key)
    delay = pos.delay_ms(rules.pos, pos.hit(counted), parent.base_target, balance)
    source = counted if rules.uses_vrf else signature
    return Slot(account, parent.timestamp + delay, signature, source)


def forge(
    chain: Chain,
    slot: Slot,
    candidates: Iterable[AnyTransaction],
    now: int,
    reward_vote: int = blocks.NO_REWARD_VOTE,
    feature_votes: tuple[int, ...] = (),
    *,
    unproven: Collection[bytes] = (),
) -> Forged:
    """The block that the slot's account makes at ``now`` (ms) or, if that is too early, at its
    earliest time.

    Candidates are taken in order until the block is full; those that do not apply are named in the
    result. Signatures have been verified but for those that are ``unproven`` (``UtxPool``).
    """
    steps = forging(chain, slot, candidates, now, reward_vote, feature_votes, unproven=unproven)
    return to_the_end(steps)


def forging(
    chain: Chain,
    slot: Slot,
    candidates: Iterable[AnyTransaction],
    now: int,
    reward_vote: int = blocks.NO_REWARD_VOTE,
    feature_votes: tuple[int, ...] = (),
    *,
    unproven: Collection[bytes] = (),
    most: int = MAX_TRANSACTIONS,
) -> Steps[Forged]:
    """The same in steps of some transactions each, between which the chain must stay as it is; with
    ``most`` of them in the block.
    """
    timestamp = max(now, slot.earliest)
    height = chain.height + 1
    rules, parent_rules = chain.rules.at(height), chain.rules.at(height - 1)
    empty = _header(chain, slot, timestamp, (), b"")
    progress = BlockInProgress(
        chain.store,
        slot.account.public_key,
        timestamp,
        chain.parent_block(),
        rules,
        parent_rules,
        chain.scripts,
        chain.view.describe(empty, height, slot.hit_source, chain.next_reward()),
        chain.view,
    )
    progress.begin((), chain.payouts(slot.account.public_key), chain.patch())
    transactions, invalid = yield from _take(progress, candidates, most, unproven)
    encoded = progress.encoded
    header = _header(chain, slot, timestamp, transactions, progress.snapshot_hash, encoded)
    header = msgspec.structs.replace(
        header,
        reward_vote=reward_vote if header.version >= blocks.REWARD_VERSION else header.reward_vote,
        feature_votes=feature_votes if header.version >= blocks.NG_VERSION else (),
    )
    block = blocks.sign(header, transactions, slot.account.private_key, encoded=encoded)
    return Forged(block, progress if parent_rules.ng else None, invalid)


def to_the_end(steps: Steps[T]) -> T:
    """Do all steps at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def _take(
    progress: BlockInProgress,
    candidates: Iterable[AnyTransaction],
    max_count: int,
    unproven: Collection[bytes],
) -> Steps[tuple[tuple[AnyTransaction, ...], Mapping[bytes, str]]]:
    """Apply candidates until the block is full: those that went in, and why others cannot."""
    taken: list[AnyTransaction] = []
    # Asked when each is reached: what leaves the pool meanwhile is not among the unproven any more.
    waiting: Iterator[tuple[AnyTransaction, bool]]
    waiting = ((transaction, transaction.id in unproven) for transaction in candidates)
    reasons: dict[bytes, str] = {}
    for _ in range(_MAX_PASSES):
        failed: list[tuple[AnyTransaction, bool]] = []
        reasons.clear()
        since, number = perf_counter(), 0
        for number, (transaction, verify) in enumerate(waiting, 1):
            if number % _STEP_TRANSACTIONS == 0 or perf_counter() - since > _STEP_SECONDS:
                yield
                since = perf_counter()
            if len(taken) >= max_count:
                return tuple(taken), {}
            try:
                progress.add(transaction, verify_signature=verify)
            except BlockFull:
                return tuple(taken), {}
            except InputError as error:
                failed.append((transaction, verify))
                reasons[transaction.id] = str(error)
            else:
                taken.append(transaction)
        if len(failed) in (0, number):
            break
        waiting = iter(failed)
    return tuple(taken), reasons


def _header(
    chain: Chain,
    slot: Slot,
    timestamp: int,
    transactions: tuple[AnyTransaction, ...],
    state_hash: bytes,
    encoded: Encoded | None = None,
) -> BlockHeader:
    rules = chain.header_rules()
    parent = chain.last_block.header
    protobuf = rules.version >= blocks.PROTOBUF_VERSION
    return BlockHeader(
        version=rules.version,
        chain_id=chain.network.chain_id,
        timestamp=timestamp,
        reference=chain.last_block.id,
        base_target=pos.next_base_target(
            rules.pos,
            rules.target_delay_seconds,
            chain.height,
            parent.base_target,
            parent.timestamp,
            chain.great_grandparent_timestamp(),
            timestamp,
        ),
        generation_signature=slot.generation_signature,
        generator=slot.account.public_key,
        transactions_root=blocks.transactions_root(transactions, encoded) if protobuf else b"",
        state_hash=state_hash if rules.state_hash_required else None,
    )


def forge_micro(
    chain: Chain,
    account: KeyPair,
    candidates: Iterable[AnyTransaction],
    max_count: int,
    *,
    unproven: Collection[bytes] = (),
) -> Forged | None:
    """The last block, which the account has made, with more transactions at its end.

    ``None`` when no candidate applies or the last block takes no more. Candidates are taken in
    order, at most ``max_count``; ``unproven`` as in ``forge``.
    """
    return to_the_end(forging_micro(chain, account, candidates, max_count, unproven=unproven))


def forging_micro(
    chain: Chain,
    account: KeyPair,
    candidates: Iterable[AnyTransaction],
    max_count: int,
    *,
    unproven: Collection[bytes] = (),
) -> Steps[Forged | None]:
    """The same in steps, between which the chain must stay as it is."""
    progress = chain.liquid_progress()
    last = chain.last_block
    if progress is None or last.header.generator != account.public_key:
        return None
    taken, invalid = yield from _take(progress, candidates, max_count, unproven)
    if not taken:
        return None
    state_hash = None if last.header.state_hash is None else progress.snapshot_hash
    encoded = progress.encoded
    unsigned = blocks.extended(last, taken, state_hash, bytes(SIGNATURE_LENGTH), encoded)
    signature = sign(account.private_key, unsigned.signed)
    block = blocks.extended(last, taken, state_hash, signature, encoded)
    return Forged(block, progress, invalid)
