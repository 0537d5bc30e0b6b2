"""Applying one block to a state.

Start reading at ``check_block``: header, signature, then ``apply_block`` with the generator's
credits, each transaction, and the hashes. The miner uses the same ``BlockInProgress`` to select
transactions and to compute the state hash of its block.

What lives here: the state transition of a block. What does not: the parameters that it is applied
with (``environment``), the check of the header (``headers``), the rules of one transaction
(``transactions``), storing the result.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/diffs/BlockDiffer.scala``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec

from soliton.chain import blocks
from soliton.chain.addresses import Address, from_public_key
from soliton.chain.blocks import Block, BlockHeader, ChallengedHeader, Encoded
from soliton.chain.features import Feature
from soliton.chain.finalization import GENERATION_DEPOSIT, FinalizationVoting
from soliton.chain.snapshots import LazySnapshots, Snapshot
from soliton.chain.snapshots import Status as SnapshotStatus
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.crypto import signatures
from soliton.crypto.curve25519 import SignedMessage
from soliton.errors import InputError
from soliton.ledger import fees, finality, generators, headers
from soliton.ledger.context import Context
from soliton.ledger.editing import apply_edits
from soliton.ledger.environment import (
    Ancestors,
    BlockEnvironment,
    Carry,
    PastTransaction,
    next_environment,
)
from soliton.ledger.errors import (
    BlockRejected,
    SnapshotRejected,
    TransactionInBlockRejected,
    TransactionRejected,
    WrongStateHash,
)
from soliton.ledger.from_snapshots import overlay_of
from soliton.ledger.generators import GeneratorSet
from soliton.ledger.hashes import (
    EMPTY_HASH,
    StateHash,
    legacy_hash,
    next_snapshot_hash,
    skips_unchanged,
)
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import rules_of
from soliton.ledger.state import APPROVALS, BANS, Changes, Overlay, State, Status, touched_accounts
from soliton.ledger.state_changes import StateChanges
from soliton.ledger.transactions import apply_transaction
from soliton.ride.observation import Observer
from soliton.steps import Steps, interruptible, pause, run_steps

STEP_TRANSACTIONS: Final = 8
"""Transactions per step, which take some two milliseconds, or more with scripts."""

LEAST_BYTES: Final = 109
"""A block with less room is full, as in ``mining/TxEstimators.scala`` of the reference."""

SnapshotsOfBlock = Sequence[Snapshot] | LazySnapshots
"""One for each transaction of a block or microblock."""
_ELIDED: Final = Snapshot(status=SnapshotStatus.ELIDED)
_ABSENT: Final = object()


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """The outcome of a transaction of a block.

    ``touched`` are the accounts that the transaction itself changed; ``changes`` also include the
    generator's part of the fee. ``complexity`` is the script complexity that clients see;
    ``state_changes`` are those of the dApp that it called.
    """

    status: Status
    complexity: int
    touched: tuple[Address, ...]
    changes: Changes
    state_changes: StateChanges | None = None


class AppliedBlock(msgspec.Struct, frozen=True):
    """The outcome of a block, or of one more microblock of it.

    ``changes`` are relative to the state before it; ``outcomes`` are those of its transactions, in
    order; hashes, ``carry`` and ``total_fee`` are those of the whole block so far. ``unverified``
    are signatures that the caller must verify. ``finalized_height`` is that of the last block that
    is final according to the votings so far, 0 if none is. ``edited`` are the changes by hand,
    which added ``minted`` wavelets; ``initial`` are all changes before the first transaction.
    """

    height: int
    changes: Changes
    outcomes: tuple[Outcome, ...]
    snapshot_hash: bytes
    state_hash: StateHash
    carry: Carry
    total_fee: int
    unverified: tuple[SignedMessage, ...] = ()
    finalized_height: int = 0
    edited: Changes = {}
    minted: int = 0
    initial: Changes = {}


def checking_block(
    chain: Ancestors,
    block: Block,
    *,
    now: int | None = None,
    verify_signatures: bool = True,
    hit_source: bytes | None = None,
    snapshots: SnapshotsOfBlock | None = None,
) -> Steps[BlockInProgress]:
    """Check a block on top of a chain completely and apply it, in steps of some transactions.

    ``now`` (ms) bounds the block's time; ``None`` for history. Without ``verify_signatures`` the
    caller verifies the block's signature and those in the outcome's ``unverified``. With a
    ``hit_source`` the caller has already checked the header, which returned it. The chain must not
    change between the steps. With ``snapshots`` transactions are not executed: their changes are
    taken from the snapshots, except in a challenge. Raises ``BlockRejected``.
    """
    height, header = chain.height + 1, block.header
    headers.check_features(chain)
    if hit_source is None:
        hit_source = headers.check_header(chain, header, block.id, now)
    if blocks.has_weak_key(block) or (verify_signatures and not blocks.signature_is_valid(block)):
        raise BlockRejected(height, "invalid signature of the generator")
    encoded: Encoded | None = None
    if header.version >= blocks.PROTOBUF_VERSION:
        encoded = yield from _encoding(block.transactions)
        root = blocks.transactions_root(block.transactions, encoded)
        yield
        if root != header.transactions_root:
            raise BlockRejected(height, f"transactions root is not {root.hex()}")
    if header.challenged is not None:
        yield from _checking_challenge(chain, block, header.challenged, now)
    claims = _voting_claims(chain, header)
    if verify_signatures:
        yield from checking_claims(height, claims)
    environment = next_environment(chain, header, hit_source)
    progress = yield from applying_block(
        chain.state,
        block,
        environment,
        verify_signatures=verify_signatures,
        snapshots=snapshots,
        encoded=encoded,
    )
    if not verify_signatures:
        progress.claim(claims)
    return progress


def _voting_claims(chain: Ancestors, header: BlockHeader) -> list[SignedMessage]:
    """Check the voting of the next block; return its signatures, which are still to be verified."""
    return finality.check_voting(
        header,
        chain.height + 1,
        chain.generator_set(header.timestamp),
        lambda height: chain.meta(height).id,
        chain.network.functionality.max_valid_endorsers,
    )


def checking_claims(height: int, claims: Iterable[SignedMessage]) -> Steps[None]:
    """Raise ``BlockRejected`` for an invalid signature of a voting; each takes a step."""
    for claim in claims:
        yield
        if not signatures.verify(*claim):
            raise BlockRejected(height, "invalid signature of an endorsement")


def _encoding(transactions: Sequence[AnyTransaction]) -> Steps[Encoded]:
    encoded = []
    for number, each in enumerate(transactions, 1):
        encoded.append(codec.encode_protobuf(each))
        if number % blocks.DECODED_IN_STEP == 0:
            yield
    return tuple(encoded)


def check_block(
    chain: Ancestors, block: Block, *, now: int | None = None, verify_signatures: bool = True
) -> BlockInProgress:
    """Check and apply a block without interruption; see ``checking_block``."""
    return run_steps(checking_block(chain, block, now=now, verify_signatures=verify_signatures))


def _checking_challenge(
    chain: Ancestors, block: Block, challenged: ChallengedHeader, now: int | None
) -> Steps[None]:
    """Refuse a challenge unless the state hash is the only fault of the challenged block."""
    height = chain.height + 1
    original = blocks.assemble(
        blocks.original_header(block.header, challenged),
        block.transactions,
        challenged.header_signature,
    )
    try:
        hit_source = headers.check_header(chain, original.header, original.id, now)
        yield from checking_claims(height, _voting_claims(chain, original.header))
        environment = next_environment(chain, original.header, hit_source)
        # Signatures are verified here: a block with an invalid one cannot be challenged.
        yield from applying_block(chain.state, original, environment)
    except WrongStateHash:
        return
    except BlockRejected as error:
        raise BlockRejected(height, f"invalid block challenge: {error.reason}") from error
    raise BlockRejected(height, "invalid block challenge: the state hash was right")


def applying_block(
    state: State,
    block: Block,
    environment: BlockEnvironment,
    *,
    verify_signatures: bool = True,
    snapshots: SnapshotsOfBlock | None = None,
    encoded: Encoded | None = None,
) -> Steps[BlockInProgress]:
    """Apply a block to the state after its parent, in steps.

    The caller checks the header and the block's own signature; without ``verify_signatures`` also
    those in the outcome's ``unverified``. In a block that challenges another one, transactions that
    cannot be applied are elided, and signatures are always verified. ``encoded`` are its
    transactions in protobuf, if they are known. Raises ``BlockRejected``.
    """
    progress = BlockInProgress(state, environment)
    progress.begin(block.transactions)
    progress.vote(block.header.finalization_voting)
    elide = block.header.challenged is not None
    if snapshots is not None:
        yield from progress.adding_snapshots(block.transactions, snapshots, elide=elide)
    elif block.transactions:
        yield from progress.adding(
            block.transactions, verify_signatures=verify_signatures, elide=elide, encoded=encoded
        )
    progress.check_state_hash(block.header.state_hash)
    return progress


def apply_block(
    state: State, block: Block, environment: BlockEnvironment, *, verify_signatures: bool = True
) -> BlockInProgress:
    """Apply a block without interruption; see ``applying_block``."""
    return run_steps(applying_block(state, block, environment, verify_signatures=verify_signatures))


class Replaced(msgspec.Struct, frozen=True):
    """What a part of a block replaced in its application: the values of the keys that the part has
    written (``_ABSENT`` where there was none), and the numbers and the hash before it. ``count`` is
    the number of transactions before it.
    """

    count: int
    values: Changes
    carry: dict[AssetId | None, int]
    complexity: int
    encoded: int
    total_fee: int
    transactions_bytes: int
    snapshot_hash: bytes
    generators: GeneratorSet | None
    is_final: bool


class BlockFull(InputError):
    """The transaction exceeds a limit of the block, as do all others if it is full ``for_all``."""

    def __init__(self, limit: str, *, for_all: bool = False, complexity: int = 0) -> None:
        """``complexity`` is that of the transaction, if the block has too little left."""
        super().__init__(f"Limit of txs was reached: {limit}")
        self.for_all = for_all
        self.complexity = complexity


class ScriptWork:
    """What the scripts of a block call while they run: it counts their pauses, of which a call of
    the maximum complexity has some 2,000, and leaves the scripts for other work.
    """

    __slots__ = ("done",)

    def __init__(self) -> None:
        self.done = 0

    def __call__(self) -> None:
        self.done += 1
        pause()


class BlockInProgress:
    """A block whose transactions are being applied one by one.

    It can be continued after ``finish``: a microblock is one more step of the same block.
    """

    __slots__ = (
        "_applied",
        "_carry",
        "_complexity",
        "_context",
        "_encoded",
        "_generator",
        "_is_final",
        "_originals",
        "_outcomes",
        "_state",
        "_step",
        "_total_fee",
        "_transactions_bytes",
        "edited",
        "environment",
        "generators",
        "initial",
        "minted",
        "overlay",
        "snapshot_hash",
        "work",
    )

    def __init__(self, state: State, environment: BlockEnvironment) -> None:
        self.environment = environment
        height, parent = environment.height, environment.parent
        self._state = state
        self._generator = from_public_key(environment.generator, environment.rules.chain_id)
        self._applied: dict[bytes, PastTransaction] = {}
        self.work = ScriptWork()
        self._context = Context(environment, self._applied, watch=self.work)
        self._carry: dict[AssetId | None, int] = {}
        self._complexity = 0
        self._encoded: list[bytes] = []
        self._is_final = False
        self._originals: Changes = {}
        self._outcomes: list[Outcome] = []
        self._step = Overlay(state, height)
        self._total_fee = 0
        self._transactions_bytes = 0
        self.edited: Changes = {}
        self.generators = environment.generators
        self.initial: Changes = {}
        self.minted = 0
        self.overlay = Overlay(state, height)
        self.snapshot_hash = EMPTY_HASH if parent is None else parent.snapshot_hash

    def copy(self) -> BlockInProgress:
        """Return an independent copy, for an attempt that may fail."""
        twin = object.__new__(BlockInProgress)
        for name in self.__slots__:
            setattr(twin, name, getattr(self, name))
        twin._carry = dict(self._carry)
        twin._applied = dict(self._applied)
        twin._context = msgspec.structs.replace(
            self._context,
            applied=twin._applied,
            unverified=list(self._context.unverified),
        )
        twin._originals = {table: dict(values) for table, values in self._originals.items()}
        twin._encoded = list(self._encoded)
        twin._outcomes = list(self._outcomes)
        twin._step, twin.overlay = (Overlay(self._state, self.height) for _ in range(2))
        twin._step.merge(self._step)
        twin.overlay.merge(self.overlay)
        return twin

    def replaced_by(self, changes: Changes) -> Replaced:
        """Return what a part of the block with these changes, which follows now, will replace."""
        before = self.overlay.changes
        return Replaced(
            len(self.overlay.transaction_ids),
            {
                table: {key: before.get(table, {}).get(key, _ABSENT) for key in written}
                for table, written in changes.items()
            },
            dict(self._carry),
            self._complexity,
            len(self._encoded),
            self._total_fee,
            self._transactions_bytes,
            self.snapshot_hash,
            self.generators,
            self._is_final,
        )

    def take_back(self, replaced: Replaced) -> None:
        """Remove the last part of the block, which replaced this; it has been finished."""
        for table, values in replaced.values.items():
            written, originals = self.overlay.changes[table], self._originals.get(table, {})
            for key, value in values.items():
                if value is _ABSENT:
                    del written[key]
                    originals.pop(key, None)
                else:
                    written[key] = value
            if not written:
                del self.overlay.changes[table]
                self._originals.pop(table, None)
        ids = self.overlay.transaction_ids
        while len(ids) > replaced.count:
            self._applied.pop(ids.popitem()[0], None)
        del self._encoded[replaced.encoded :]
        self._carry = dict(replaced.carry)
        self._complexity, self._total_fee = replaced.complexity, replaced.total_fee
        self._transactions_bytes = replaced.transactions_bytes
        self.snapshot_hash = replaced.snapshot_hash
        self.generators, self._is_final = replaced.generators, replaced.is_final

    @property
    def height(self) -> int:
        """The height of the block."""
        return self.environment.height

    @property
    def encoded(self) -> Encoded | None:
        """The ``SignedTransaction`` of each transaction so far, if all have been encoded."""
        complete = len(self._encoded) == len(self.overlay.transaction_ids)
        return tuple(self._encoded) if complete else None

    def begin(self, transactions: Iterable[AnyTransaction] = ()) -> None:
        """Apply what precedes the first transaction: votes and bans, a patch of the state, credits
        (fees carried over, all fees before NG, shares of the reward), and changes by hand.
        """
        environment = self.environment
        for feature in environment.approved:
            self._step.put(APPROVALS, feature, self.height)
        for address, heights in environment.bans.items():
            self._step.put(BANS, address, heights)
        self._unlock_deposits()
        rules, parent = environment.parent_rules, environment.parent
        portfolio = Portfolio()
        if parent is not None and (rules.sponsorship or rules.ng_carry):
            for asset_id, amount in parent.carry:
                portfolio.add(self._generator, asset_id, amount)
        if not rules.ng:
            for transaction in transactions:
                portfolio.add(self._generator, transaction.fee_asset_id, transaction.fee)
        for payout in environment.reward.payouts:
            portfolio.add(payout.address, None, payout.amount)
        for address in environment.penalties:
            portfolio.add(address, None, -GENERATION_DEPOSIT)
        if not (portfolio.waves or portfolio.assets or environment.patch or environment.edits):
            return
        initial = Overlay(self.overlay, self.height)
        if environment.patch is not None:
            environment.patch(initial)
        try:
            portfolio.write(initial)
        except TransactionRejected as error:
            raise BlockRejected(self.height, f"credits to its generator: {error}") from error
        if environment.edits:
            edited = Overlay(initial, self.height)
            self.minted = apply_edits(environment.edits, edited, self._context)
            self.edited = edited.changes
            initial.merge(edited)
        if initial.changes:
            # The hash of the genesis block is only about its transactions.
            if parent is not None:
                self.snapshot_hash = next_snapshot_hash(self.snapshot_hash, initial.changes)
            self._merge(initial)
            self.initial = initial.changes

    def _unlock_deposits(self) -> None:
        """End deposits, which no hash contains."""
        ended = (*self.environment.penalties, *self.environment.released)
        if ended:
            unlocked = Overlay(self.overlay, self.height)
            generators.unlock(unlocked, ended)
            self._merge(unlocked)

    def vote(self, voting: FinalizationVoting | None) -> None:
        """Count the voting of the key block or of a microblock, which the caller has checked."""
        period = self.environment.period
        if self.generators is None or period is None:
            return
        conflicting = finality.conflicting_indexes(voting)
        if conflicting:
            marks = Overlay(self.overlay, self.height)
            generators.add_conflicts(marks, period, conflicting, self.height)
            self._merge(marks)
            self.generators = self.generators.without(conflicting)
        # A block that was final once stays so, whatever conflicts later microblocks show.
        self._is_final = self._is_final or finality.is_final(
            self.generators, self._generator, voting
        )

    def claim(self, claims: Iterable[SignedMessage]) -> None:
        """Add signatures that the caller of ``finish`` must verify."""
        self._context.unverified.extend(claims)

    @property
    def finalized_height(self) -> int:
        """The height of the last block that is final according to the votings so far, or 0."""
        if self._is_final:
            return self.height - 1
        parent = self.environment.parent
        return 0 if parent is None else parent.finalized_height

    def adding(
        self,
        transactions: Iterable[AnyTransaction],
        *,
        verify_signatures: bool,
        verified: Collection[bytes] = (),
        elide: bool = False,
        encoded: Encoded | None = None,
    ) -> Steps[None]:
        """Apply the transactions of a block or microblock, in steps of some transactions, or of a
        part of one that runs scripts; ``verified`` are the ids of those whose signatures are known
        to be valid. Raises ``TransactionInBlockRejected``.
        """
        # A transaction with an invalid signature is elided as well.
        verify_signatures = verify_signatures or elide

        def add_all() -> None:
            for number, transaction in enumerate(transactions, 1):
                try:
                    codec.validate(transaction)
                    verify = verify_signatures and transaction.id not in verified
                    known = None if encoded is None else encoded[number - 1]
                    self.add(transaction, verify_signature=verify, encoded=known)
                except InputError as error:
                    if not elide:
                        raise TransactionInBlockRejected(self.height, transaction, error) from error
                    self._elide(transaction)
                if number % STEP_TRANSACTIONS == 0:
                    pause()

        yield from interruptible(add_all)

    def fits(self, complexity: int) -> bool:
        """Whether the block has room for scripts of this complexity."""
        limit = self.environment.parent_rules.max_complexity
        return limit is None or self._complexity + complexity <= limit

    def add(
        self,
        transaction: AnyTransaction,
        *,
        verify_signature: bool = True,
        encoded: bytes | None = None,
    ) -> None:
        """Apply one more transaction; raises as ``apply_transaction`` does, or ``BlockFull``.

        Scripts call ``soliton.steps.pause``.
        """
        counted = _check_room(self, transaction, encoded)
        applied = apply_transaction(
            transaction, self.overlay, self._context, verify_signature=verify_signature
        )
        changes, status = applied.changes, applied.status
        complexity = self._complexity + applied.complexity
        limit = self.environment.parent_rules.max_complexity
        if limit is not None and complexity > limit:
            raise BlockFull(f"complexity {complexity} of {limit}", complexity=applied.complexity)
        touched = touched_accounts(changes.changes)
        self._share_fee(transaction, changes)
        mark = b"" if status is Status.SUCCEEDED else transaction.id + bytes((status,))
        self.snapshot_hash = next_snapshot_hash(self.snapshot_hash, changes.changes, mark)
        self._merge(changes)
        self._outcomes.append(
            Outcome(status, applied.spent, touched, changes.changes, applied.state_changes)
        )
        self._applied[transaction.id] = PastTransaction(transaction, self.height, status)
        self._transactions_bytes += len(counted)
        if counted and self.environment.rules.has(Feature.BLOCK_V5):
            self._encoded.append(counted)
        self._complexity = complexity

    def adding_snapshots(
        self,
        transactions: Sequence[AnyTransaction],
        snapshots: SnapshotsOfBlock,
        *,
        elide: bool = False,
    ) -> Steps[None]:
        """Apply transactions according to their snapshots, in steps; raise ``SnapshotRejected``."""
        if len(snapshots) != len(transactions):
            counts = f"{len(snapshots)} snapshots of {len(transactions)} transactions"
            raise SnapshotRejected(self.height, counts)
        remaining = iter(snapshots)
        for number, transaction in enumerate(transactions, 1):
            try:
                self._add_snapshot(transaction, next(remaining), elide=elide)
            except InputError as error:
                raise SnapshotRejected(self.height, str(error)) from error
            if number % STEP_TRANSACTIONS == 0:
                yield

    def _add_snapshot(
        self, transaction: AnyTransaction, snapshot: Snapshot, *, elide: bool
    ) -> None:
        status = Status(snapshot.status)
        if status is Status.ELIDED:
            if not elide or snapshot != _ELIDED:
                raise TransactionRejected("a transaction is elided that cannot be, or has changes")
            self._elide(transaction)
            return
        rules, ng = self.environment.rules, self.environment.parent_rules.ng
        is_known = self.overlay.transaction_height(transaction.id) is not None
        if is_known and rules_of(transaction.type_id).unique(rules):
            raise TransactionRejected("a transaction is on the chain already")
        asset_id, fee = fees.generator_fee(transaction, self.overlay, rules)
        part = fees.current_part(fee) if ng else 0
        burnt = fee - part if asset_id is None else 0
        changes = overlay_of(snapshot, transaction, self.overlay, self._context, burnt)
        if asset_id is None:
            self._total_fee += fee
        if ng and fee != part:
            self._carry[asset_id] = self._carry.get(asset_id, 0) + fee - part
        mark = b"" if status is Status.SUCCEEDED else transaction.id + bytes((status,))
        self.snapshot_hash = next_snapshot_hash(self.snapshot_hash, changes.changes, mark)
        self._merge(changes)
        touched = touched_accounts(changes.changes)
        self._outcomes.append(Outcome(status, 0, touched, changes.changes))
        self._applied[transaction.id] = PastTransaction(transaction, self.height, status)

    def _elide(self, transaction: AnyTransaction) -> None:
        """Include a transaction without effect: only its id is recorded."""
        mark = Overlay(self.overlay, self.height)
        mark.record_transaction(transaction.id)
        status = transaction.id + bytes((Status.ELIDED,))
        self.snapshot_hash = next_snapshot_hash(self.snapshot_hash, {}, status)
        self._merge(mark)
        self._outcomes.append(Outcome(Status.ELIDED, 0, (), {}))

    def _merge(self, above: Overlay) -> None:
        for table, written in above.changes.items():
            if not skips_unchanged(table):
                continue
            # The legacy hash omits balances that are the same as before the block.
            originals = self._originals.setdefault(table, {})
            for key in written:
                if key not in originals:
                    originals[key] = self._state.get(table, key)
        self._step.merge(above)
        self.overlay.merge(above)

    def _share_fee(self, transaction: AnyTransaction, changes: Overlay) -> None:
        rules = self.environment.rules
        asset_id, fee = fees.generator_fee(transaction, self.overlay, rules)
        if asset_id is None:
            self._total_fee += fee
        if not self.environment.parent_rules.ng:
            return
        part = fees.current_part(fee)
        portfolio = Portfolio()
        portfolio.add(self._generator, asset_id, part)
        portfolio.write(changes)
        if fee != part:
            self._carry[asset_id] = self._carry.get(asset_id, 0) + fee - part

    def check_state_hash(self, claimed: bytes | None) -> None:
        """Raise ``WrongStateHash`` if the hash of a header is not the computed one, or missing
        where it is required.
        """
        if claimed is None and self.environment.rules.state_hash_required and self.height > 1:
            raise WrongStateHash(self.height, "the header must hold a state hash")
        if claimed is not None and claimed != self.snapshot_hash:
            raise WrongStateHash(
                self.height,
                f"state hash {claimed.hex()} is not the computed {self.snapshot_hash.hex()}",
            )

    def finish(self) -> AppliedBlock:
        """Return the outcome since the last ``finish``; the hashes are those of the whole block."""
        parent, step = self.environment.parent, self._step
        outcomes, self._outcomes = tuple(self._outcomes), []
        unverified = self._context.unverified
        if unverified:
            self._context = msgspec.structs.replace(self._context, unverified=[])
        self._step = Overlay(self._state, self.height)
        previous = b"" if parent is None else parent.state_hash
        return AppliedBlock(
            height=self.height,
            changes=step.changes,
            outcomes=outcomes,
            snapshot_hash=self.snapshot_hash,
            state_hash=legacy_hash(
                previous, self._originals, self.overlay.changes, self._generator_balances()
            ),
            carry=tuple(self._carry.items()),
            total_fee=self._total_fee,
            unverified=tuple(unverified),
            finalized_height=self.finalized_height,
            edited=self.edited,
            minted=self.minted,
            initial=self.initial,
        )

    def _generator_balances(self) -> list[int] | None:
        if not self.environment.rules.has(Feature.DETERMINISTIC_FINALITY):
            return None
        members = () if self.generators is None else self.generators.members
        return [each.balance for each in members]


def _check_room(
    block: BlockInProgress, transaction: AnyTransaction, encoded: bytes | None
) -> bytes:
    """Return the bytes that count towards the block's limit; raise ``BlockFull``."""
    limits, count = block.environment.parent_rules, len(block.overlay.transaction_ids)
    if limits.max_transactions is not None and count >= limits.max_transactions:
        raise BlockFull(f"{limits.max_transactions}", for_all=True)
    if limits.max_transactions_bytes is None:
        return b""
    if not block.environment.rules.has(Feature.BLOCK_V5):
        counted = codec.encode(transaction)
    else:
        counted = codec.encode_protobuf(transaction) if encoded is None else encoded
    left = limits.max_transactions_bytes - block._transactions_bytes
    if len(counted) > left:
        raise BlockFull(f"{limits.max_transactions_bytes} bytes", for_all=left < LEAST_BYTES)
    return counted


def observe(block: BlockInProgress, transaction: AnyTransaction, observer: Observer) -> Outcome:
    """Run the scripts of a block's next transaction for an observer; the block is not changed.

    Raises the same errors as ``BlockInProgress.add``.
    """
    twin = block.copy()
    twin._context = msgspec.structs.replace(twin._context, observer=observer)
    twin.add(transaction, verify_signature=False)
    return twin._outcomes[-1]
