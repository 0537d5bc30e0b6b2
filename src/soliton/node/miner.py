"""Making blocks: the slot of an account, and the contents.

``forging`` builds a complete, signed block from the transactions that still apply. It uses the
same ``BlockInProgress`` as validation, so a block made here has the state hash that every other
node computes.

What lives here: the earliest time and the block. What does not: scheduling (``mining``), the
formulas (``soliton.consensus.pos``).

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform``: ``mining/Miner.scala``,
``utx/UtxPoolImpl.scala`` (``pack``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from time import perf_counter
from typing import Final, Protocol

import msgspec

from soliton.chain import blocks, microblocks
from soliton.chain.addresses import Address, Alias, address_text, from_public_key
from soliton.chain.blocks import MAX_TRANSACTIONS, Block, BlockHeader
from soliton.chain.features import IMPLEMENTED
from soliton.chain.finalization import FinalizationVoting
from soliton.chain.layouts import SIGNATURE_LENGTH
from soliton.chain.microblocks import Microblock
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.table import type_by_id
from soliton.consensus import pos
from soliton.crypto import vrf
from soliton.crypto.curve25519 import sign
from soliton.crypto.hashes import blake2b256
from soliton.crypto.keys import KeyPair
from soliton.errors import InputError
from soliton.ledger import headers
from soliton.ledger.apply import BlockFull, BlockInProgress
from soliton.ledger.edits import Edit
from soliton.ledger.environment import next_environment
from soliton.ledger.errors import BlockRejected
from soliton.ledger.state import ALIASES
from soliton.node.chain_writer import ChainWriter
from soliton.node.remote_keys import AccountKey, RemoteKey
from soliton.node.settings import Settings
from soliton.steps import Steps, interruptible, pause
from soliton.storage.errors import NotKept

_MAX_PASSES: Final = 10
"""The order is by fees, so a transaction may come before the one that funds it: those that do not
apply are retried after the others, so often.
"""
_MAX_UNFIT: Final = 1_000
"""A block is full when so many transactions did not fit: looking for smaller ones takes time."""
_MAX_VAIN_WORK: Final = 10_000
"""After so much work of scripts (``apply.ScriptWork``) for candidates that it does not take, a
block takes only candidates without scripts. It is that of five calls of the maximum complexity.
"""
_STEP_TRANSACTIONS: Final = 32
"""They take about two milliseconds."""
_STEP_SECONDS: Final = 0.002
"""A step also ends after so long, since a few transactions with scripts, or one, take as long."""
_NOT_RANDOM: Final = bytes(vrf.RANDOM_BYTES)
_UNPROVEN: Final = b"unproven"
_UNSIGNED: Final = bytes(SIGNATURE_LENGTH)
"""A placeholder for a remote signature."""
_PROOF_HASHES: Final = 3
"""The length of a VRF proof, in hashes."""


def _never() -> bool:
    return False


def _no_voting(_: BlockHeader) -> None:
    return None


def late_after(clock: Callable[[], int], milliseconds: int) -> Callable[[], bool]:
    """Return whether that much time has passed since this call."""
    end = clock() + milliseconds
    return lambda: clock() >= end


class CannotMine(InputError):
    """The account may not make the next block, for example for its generating balance."""


class Trials(Protocol):
    """What is known of candidates from other blocks (``UtxPool``)."""

    @property
    def unproven(self) -> Collection[bytes]:
        """The ids of candidates whose signatures are not verified."""

    @property
    def scripted(self) -> Collection[bytes]:
        """The ids of candidates that run scripts."""

    def needs(self, transaction_id: bytes, /) -> int:
        """Return the complexity with which a candidate did not fit, or 0."""

    def charge(self, transaction_id: bytes, work: int, reason: str, needs: int = 0, /) -> None:
        """Record the work for a candidate that was not taken, and the complexity it needs if it is
        valid.
        """

    def miss(self, unminable: Mapping[bytes, str], /) -> None:
        """Record candidates that are invalid at the end of the last block, which stays as it is."""


class NoTrials:
    """Candidates that are not in a pool, of which nothing is known."""

    scripted: Collection[bytes] = ()

    def __init__(self, unproven: Collection[bytes] = ()) -> None:
        self.unproven = unproven

    def needs(self, _transaction_id: bytes, /) -> int:
        """Return 0."""
        return 0

    def charge(self, _transaction_id: bytes, _work: int, _reason: str, _needs: int = 0, /) -> None:
        """Do nothing."""

    def miss(self, _unminable: Mapping[bytes, str], /) -> None:
        """Do nothing."""


_NO_TRIALS: Final = NoTrials()


class Slot(msgspec.Struct, frozen=True):
    """An account's slot: the earliest time (ms) of its block, the generation signature, and the hit
    source for later blocks. On a private chain it need not be ``proven``.
    """

    account: AccountKey
    earliest: int
    generation_signature: bytes
    hit_source: bytes
    proven: bool = True


class Forged(msgspec.Struct, frozen=True):
    """A new block, its application, and the transactions that no longer apply, with the reasons.

    ``progress`` is ``None`` if the block must be applied again: before NG its generator gets all
    fees at the beginning, before they are known. ``micro_signature`` is set for a block that has
    grown, and ``voting`` is that of the microblock, if it has one.
    """

    block: Block
    progress: BlockInProgress | None
    invalid: Mapping[bytes, str]
    micro_signature: bytes = b""
    voting: FinalizationVoting | None = None


def next_slot(chain: ChainWriter, account: AccountKey, against: Address | None = None) -> Slot:
    """Return the account's slot for the next block; raises ``CannotMine``.

    In a challenge of a generator (``against``) the balances of both count.
    """
    if not chain.requires_proof_of_stake:
        return unproven_slot(chain, account)
    try:
        headers.check_generator(chain, account.public_key)
    except BlockRejected as error:
        raise CannotMine(error.reason) from error
    if against is None:
        _check_commitment(chain, account)
    rules = chain.rules.header_at(chain.height + 1)
    balance = chain.generating_balance(from_public_key(account.public_key, chain.network.chain_id))
    if balance <= 0 or balance < rules.minimum_generating_balance:
        raise CannotMine(
            f"generating balance {balance} is below {rules.minimum_generating_balance}"
        )
    if against is not None:
        balance += chain.generating_balance(against)
    parent = chain.last_block.header
    if rules.uses_vrf:
        signature = _proof(account, headers.hit_source(chain))
        counted = vrf.verify(account.public_key, headers.hit_source(chain), signature)
        if counted is None:
            raise CannotMine("the account's key makes no valid VRF proof")
    else:
        signature = pos.generation_signature(parent.generation_signature, account.public_key)
        counted = pos.generation_signature(headers.hit_source(chain), account.public_key)
    delay = pos.delay_ms(rules.pos, pos.hit(counted), parent.base_target, balance)
    source = counted if rules.uses_vrf else signature
    return Slot(account, parent.timestamp + delay, signature, source)


def _check_commitment(chain: ChainWriter, account: AccountKey) -> None:
    """Raise ``CannotMine`` if others have committed to make the next block."""
    generators = chain.generator_set(chain.last_block.header.timestamp)
    address = from_public_key(account.public_key, chain.network.chain_id)
    if generators is None or generators.allows(address):
        return
    own = next((each for each in generators.committed if each.address == address), None)
    text = address_text(address)
    if own is not None and own.conflict_height:
        raise CannotMine(
            f"{text} is conflict on {own.conflict_height}. Try to commit to generation on next "
            "period"
        )
    if own is not None:
        raise CannotMine(f"{text} has too little to generate, after its deposits")
    raise CannotMine(
        f"{text} has not committed to the generation period {generators.period.start} to "
        f"{generators.period.end}, and others have"
    )


def _proof(account: AccountKey, hit_source: bytes) -> bytes:
    if isinstance(account, RemoteKey):
        proof = account.proofs.get(hit_source)
        if proof is None:
            raise CannotMine("the signer has not proven the account's turn")
        return proof
    # The nonce is derived from the key and the input, so randomness adds nothing, and without it
    # chains are reproducible.
    return vrf.prove(account.private_key, hit_source, _NOT_RANDOM)


def unproven_slot(chain: ChainWriter, account: AccountKey) -> Slot:
    """Return a slot without a proof, at any time: for private chains only."""
    height = chain.height + 1
    below = chain.meta(chain.height).hit_source
    source = blake2b256(_UNPROVEN + below + height.to_bytes(4, "big"))
    return Slot(
        account, chain.last_block.header.timestamp, _PROOF_HASHES * source, source, proven=False
    )


def forging(
    chain: ChainWriter,
    slot: Slot,
    candidates: Iterable[AnyTransaction],
    now: int,
    reward_vote: int = blocks.NO_REWARD_VOTE,
    feature_votes: tuple[int, ...] = (),
    *,
    trials: Trials = _NO_TRIALS,
    most: int = MAX_TRANSACTIONS,
    edits: tuple[Edit, ...] = (),
) -> Steps[Forged]:
    """Make the slot's block, at ``now`` (ms) or the slot's earliest time if that is later, in steps
    of some transactions each, between which the chain must not change. With a remote key the
    signature is empty.

    Candidates are taken in order until the block is full or has ``most``; those that do not apply
    are in the result, unless some did not fit. Their signatures are already verified, except those
    that are unproven in their ``trials``. ``edits`` are manual changes of the state at the
    beginning.
    """
    timestamp = max(now, slot.earliest)
    header = header_of(chain, slot, timestamp)
    if header.version >= blocks.REWARD_VERSION:
        header = msgspec.structs.replace(header, reward_vote=reward_vote)
    if header.version >= blocks.NG_VERSION:
        header = msgspec.structs.replace(header, feature_votes=feature_votes)
    environment = next_environment(chain, header, slot.hit_source)
    if edits or chain.waived or not slot.proven:
        environment = msgspec.structs.replace(
            environment, edits=edits, waived=chain.waived, proven=slot.proven
        )
    progress = BlockInProgress(chain.state, environment)
    progress.begin()
    # Its generator alone may make the parent final.
    progress.vote(None)
    transactions, invalid = yield from interruptible(
        lambda: _take(progress, candidates, most, trials)
    )
    encoded = progress.encoded
    if header.version >= blocks.PROTOBUF_VERSION:
        root = blocks.transactions_root(transactions, encoded)
        header = msgspec.structs.replace(header, transactions_root=root)
    if environment.rules.state_hash_required:
        header = msgspec.structs.replace(header, state_hash=progress.snapshot_hash)
    signature = _UNSIGNED
    if isinstance(slot.account, KeyPair):
        signed = blocks.signed_bytes(header, transactions)
        signature = sign(slot.account.private_key, signed)
    block = blocks.assemble(header, transactions, signature, encoded)
    return Forged(block, progress if environment.parent_rules.ng else None, invalid)


def _take(
    progress: BlockInProgress,
    candidates: Iterable[AnyTransaction],
    max_count: int,
    trials: Trials,
    is_late: Callable[[], bool] = _never,
) -> tuple[tuple[AnyTransaction, ...], Mapping[bytes, str]]:
    """Apply candidates until the block is full; return those applied, and why others cannot be.

    One that does not fit waits for a later block, and those behind it are tried. This ends as soon
    as ``is_late``, unless there was none yet that applies or does not fit. It pauses between
    transactions, and scripts do while they run. Work in vain is recorded in the ``trials``, and is
    limited for one block.
    """
    taken: list[AnyTransaction] = []
    # Evaluated lazily: a transaction that leaves the pool meanwhile is no longer in ``unproven``.
    waiting: Iterator[tuple[AnyTransaction, bool]]
    waiting = ((transaction, transaction.id in trials.unproven) for transaction in candidates)
    reasons: dict[bytes, str] = {}
    unfit, tried, vain = _Unfit(progress), 0, 0
    for _ in range(_MAX_PASSES):
        failed: list[tuple[AnyTransaction, bool]] = []
        reasons.clear()
        since, before = perf_counter(), len(taken)
        for number, (transaction, verify) in enumerate(waiting, 1):
            if number % _STEP_TRANSACTIONS == 0 or perf_counter() - since > _STEP_SECONDS:
                pause()
                since = perf_counter()
            late = bool(taken or unfit.count) and is_late()
            if late or len(taken) >= max_count or tried >= _MAX_UNFIT:
                return tuple(taken), {}
            if unfit.holds_back(transaction):
                continue
            is_dear = vain > _MAX_VAIN_WORK and transaction.id in trials.scripted
            if is_dear or not progress.fits(trials.needs(transaction.id)):
                unfit.add(transaction)
                continue
            work = progress.work.done
            try:
                progress.add(transaction, verify_signature=verify)
            except BlockFull as full:
                if full.for_all:
                    return tuple(taken), {}
                unfit.add(transaction)
                tried += 1
                if full.complexity:
                    work = progress.work.done - work
                    vain += work
                    trials.charge(transaction.id, work, str(full), full.complexity)
            except (InputError, NotKept) as error:
                work = progress.work.done - work
                vain += work
                trials.charge(transaction.id, work + 1, str(error))
                failed.append((transaction, verify))
                reasons[transaction.id] = str(error)
            else:
                taken.append(transaction)
        if not failed or len(taken) == before:
            break
        waiting = iter(failed)
    # What does not apply may need one that did not fit.
    return tuple(taken), {} if unfit.count else reasons


class _Unfit:
    """The candidates that do not fit into a block, and the calls of dApps that wait with them.

    Without the earlier ones of its sender or its dApp a call might fail, and its sender would pay.
    All other transactions can be tried.
    """

    __slots__ = ("_accounts", "_progress", "count")

    def __init__(self, progress: BlockInProgress) -> None:
        self._accounts: set[Address] = set()
        self._progress = progress
        self.count = 0

    def add(self, transaction: AnyTransaction) -> None:
        """Count a transaction that does not fit."""
        self.count += 1
        self._accounts.add(_sender(transaction))
        called = self._called(transaction)
        if called is not None:
            self._accounts.add(called)

    def holds_back(self, transaction: AnyTransaction) -> bool:
        """Whether it is a call, and one of the same sender or dApp does not fit."""
        if not self._accounts:
            return False
        called = self._called(transaction)
        return called is not None and not self._accounts.isdisjoint((called, _sender(transaction)))

    def _called(self, transaction: AnyTransaction) -> Address | None:
        called = type_by_id(transaction.type_id).calls(transaction.payload)
        if isinstance(called, Alias):
            return self._progress.overlay.get(ALIASES, called.name)
        return called


def _sender(transaction: AnyTransaction) -> Address:
    return from_public_key(transaction.sender_public_key, transaction.chain_id)


def votes(settings: Settings, chain: ChainWriter) -> tuple[int, tuple[int, ...]]:
    """Return the votes of the next block: the reward, and the supported features that this version
    implements and that are not yet approved.
    """
    known, reward = chain.rules.activations(), settings.rewards_desired
    features = tuple(sorted(IMPLEMENTED.intersection(settings.features.supported) - set(known)))
    return blocks.NO_REWARD_VOTE if reward is None else reward, features


def header_of(chain: ChainWriter, slot: Slot, timestamp: int) -> BlockHeader:
    """Return the header of the slot's block at a time (ms), without votes and the hashes that
    depend on its transactions.
    """
    rules = chain.rules.header_at(chain.height + 1)
    parent = chain.last_block.header
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
            headers.great_grandparent_timestamp(chain),
            timestamp,
        ),
        generation_signature=slot.generation_signature,
        generator=slot.account.public_key,
    )


def forging_micro(
    chain: ChainWriter,
    account: AccountKey,
    candidates: Iterable[AnyTransaction],
    max_count: int,
    *,
    trials: Trials = _NO_TRIALS,
    is_late: Callable[[], bool] = _never,
    voting_of: Callable[[BlockHeader], FinalizationVoting | None] = _no_voting,
) -> Steps[Forged | None]:
    """Extend the last block, which the account has made, by more transactions, in steps as above.

    Return ``None`` when no candidate applies or the last block takes no more. Candidates are taken
    in order, at most ``max_count``, and after the first one until ``is_late``. ``voting_of``
    returns the voting of the microblock, by the header of the last block; alone it makes none.
    """
    progress = chain.liquid_progress()
    last = chain.last_block
    if progress is None or last.header.generator != account.public_key:
        return None
    taken, invalid = yield from interruptible(
        lambda: _take(progress, candidates, max_count, trials, is_late)
    )
    if not taken:
        trials.miss(invalid)
        return None
    # As in the reference: endorsements that come while transactions are tried are in it.
    voting = voting_of(last.header)
    progress.vote(voting)
    state_hash = None if last.header.state_hash is None else progress.snapshot_hash
    encoded = None if progress.encoded is None else progress.encoded[-len(taken) :]
    unsigned = chain.longer(taken, state_hash, _UNSIGNED, encoded, voting)
    if isinstance(account, RemoteKey):
        return Forged(unsigned, progress, invalid, voting=voting)
    signature = sign(account.private_key, unsigned.signed)
    block = chain.longer(taken, state_hash, signature, encoded, voting)
    micro = microblock_of(block, last.id, len(taken), voting=voting)
    return Forged(block, progress, invalid, sign(account.private_key, micro.signed), voting)


def microblock_of(
    block: Block,
    reference: bytes,
    added: int,
    signature: bytes = b"",
    voting: FinalizationVoting | None = None,
) -> Microblock:
    """Return the microblock that extends the form with the id ``reference`` to this block by
    ``added`` transactions and its own ``voting``.
    """
    return microblocks.assemble(
        version=block.header.version,
        reference=reference,
        total_signature=block.signature,
        generator=block.header.generator,
        transactions=block.transactions[len(block.transactions) - added :],
        signature=signature,
        total_block_id=block.id,
        state_hash=block.header.state_hash,
        finalization_voting=voting,
    )
