"""Applying what peers send: extensions, single blocks, microblocks.

Blocks are applied to a branch of the chain, in steps between which the event loop serves other
work, while another process verifies signatures, if there are many. A valid branch is adopted in one
atomic step; an invalid one is dropped without effect.

What lives here: where a branch begins, when it is adopted, and the verdict on the peer's data. What
does not: the rules (``soliton.node.chain_writer`` and below), choosing peers (``core``).

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/appender/{ExtensionAppender,BlockAppender,MicroblockAppender}.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from enum import Enum, auto
from functools import partial
from itertools import zip_longest
from typing import Final, NamedTuple, TypeVar

import msgspec

from soliton.chain import blocks, microblocks
from soliton.chain.blocks import Block, SignedHeader
from soliton.chain.errors import ChainError
from soliton.chain.microblocks import Microblock
from soliton.chain.snapshots import LazySnapshots
from soliton.consensus import pos
from soliton.consensus.header_check import MAX_TIME_DRIFT_MS
from soliton.crypto.curve25519 import SignedMessage
from soliton.crypto.keys import KeyPair
from soliton.errors import InputError
from soliton.ledger import headers
from soliton.ledger.apply import AppliedBlock
from soliton.ledger.errors import (
    BlockFromFuture,
    BlockRejected,
    SnapshotRejected,
    UnknownFeatures,
    WrongStateHash,
)
from soliton.ledger.state import Changes
from soliton.node import miner
from soliton.node.chain_writer import ChainWriter
from soliton.node.challenger import CannotChallenge, challenging
from soliton.node.mining import check_base_target
from soliton.node.node import Node
from soliton.parallel.bulk_verifier import Batch, BulkVerifier
from soliton.storage.errors import NotKept, StorageProblem

ADOPTED_TRANSACTIONS: Final = 3_000
ADOPTED_BLOCKS: Final = 100
"""Limits of a batch of blocks that only extend the chain, adopted together."""
PROGRESS_MS: Final = 15_000
"""For so long after blocks of peers mining waits for the rest of a better chain."""
MAX_REFUSED: Final = 1_000
"""Places, of a generator on a parent, that are known to have an invalid block."""
MANY_BLOCKS: Final = 50
"""An extension with fewer blocks ends a long synchronization."""

T = TypeVar("T")
Work = Generator[Future[None] | None, None, T]
"""Work in steps; when a step yields a future, the next step waits for it."""


class Verdict(Enum):
    """The outcome of applying something that a peer sent."""

    APPLIED = auto()
    KNOWN = auto()
    """It is already on the chain, or no better than the chain; no fault of the peer."""
    NOT_OURS = auto()
    """It does not build on our chain; no fault of the peer."""
    EARLY = auto()
    """Its timestamp is in the future."""
    INVALID = auto()
    WRONG_STATE_HASH = auto()
    """It is invalid, perhaps only for its state hash."""
    BAD_SIGNATURE = auto()
    MOVED = auto()
    """Our chain has changed meanwhile: retry at once."""
    NOT_WRITTEN = auto()
    """Our store could not be written: retry later."""


class Outcome(msgspec.Struct, frozen=True):
    """A verdict and its reason. ``height`` is that of the chain or of the refused block, whose
    ``block_id`` is empty if it may be sent again. ``depth`` is the number of own blocks removed,
    ``due`` the time (ms) from which an early block is valid.
    """

    verdict: Verdict
    reason: str = ""
    height: int = 0
    block_id: bytes = b""
    depth: int = 0
    due: int = 0


REFUSED: Final = (Verdict.INVALID, Verdict.WRONG_STATE_HASH)
_MOVED: Final = Outcome(Verdict.MOVED, "our chain has moved meanwhile")


class _Stop(Exception):
    """Ends the work with an outcome."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


class _Received(NamedTuple):
    """A received block: its transactions are decoded only after its header was checked. Light nodes
    also have the ``snapshots`` of its transactions.
    """

    head: SignedHeader
    data: bytes
    snapshots: bytes | None = None
    is_signed: Callable[[], Work[bool]] | None = None
    """Returns whether its signature is valid, if that is being verified concurrently."""


class Receiver:
    """Applies what peers send to a node's chain."""

    def __init__(
        self,
        node: Node,
        clock: Callable[[], int],
        *,
        alone: bool = False,
    ) -> None:
        """``clock`` returns the time in ms; ``alone`` starts no process."""
        self._node = node
        self._chain = node.chain
        self._clock = clock
        self._alone = alone
        self._verifier = BulkVerifier(starts=not alone)
        self._works = 0
        self._extensions = 0
        self._refused: dict[tuple[bytes, bytes], None] = {}
        self._progressed_at = -PROGRESS_MS

    @property
    def is_alone(self) -> bool:
        """Whether no other process may be started."""
        return self._alone

    @property
    def is_busy(self) -> bool:
        """Whether something is being applied."""
        return self._works > 0

    @property
    def is_catching_up(self) -> bool:
        """Whether a better chain is being applied, and blocks of peers have come to ours lately.
        Mining pauses meanwhile, but never for a block that only claims to be valid.
        """
        return self._extensions > 0 and self._clock() - self._progressed_at < PROGRESS_MS

    def close(self) -> None:
        """End the verifying process."""
        self._verifier.close()

    def _rest(self) -> None:
        """End the verifying process until there are many signatures again."""
        if self._works:
            return
        self._verifier.close()
        self._verifier = BulkVerifier(starts=not self._alone)

    def extension(
        self,
        data: Sequence[bytes],
        max_rollback: int,
        snapshots: Sequence[bytes] = (),
        base: bytes = b"",
    ) -> Work[Outcome]:
        """Apply consecutive blocks of a peer's better chain; with ``snapshots`` without executing
        them. ``base`` is the block below them that was ours when they were requested.
        """
        if len(data) < MANY_BLOCKS:
            self._rest()
        else:
            self._verifier.begin()
        self._extensions += 1
        try:
            return (yield from self._working(self._extension(data, snapshots, max_rollback, base)))
        finally:
            self._extensions -= 1

    def block(self, data: bytes) -> Work[Outcome]:
        """Apply a single new block."""
        try:
            received = self._received(data)
        except ChainError as error:
            return _unreadable(error)
        self._rest()
        return (yield from self._working(self._block(received)))

    def _received(self, data: bytes, snapshots: bytes | None = None) -> _Received:
        head = blocks.decode_signed_header(data, self._chain.network.chain_id)
        return _Received(head, data, snapshots)

    def challenge(self, wrong: Block) -> Work[Block]:
        """Make a block that challenges one with a wrong state hash, which was received on top of
        the last block, in place of it, or as a longer form of it. It is not appended.

        Raises ``CannotChallenge``.
        """
        chain, reference = self._chain, wrong.header.reference
        if not self._node.settings.miner.enable:
            raise CannotChallenge("this node does not mine")
        if self._node.settings.light:
            raise CannotChallenge("this node does not execute transactions")
        self._works += 1
        try:
            height, form = chain.height, chain.liquid_form(reference)
            on_top = reference == chain.last_block.id
            in_place = reference == chain.last_block.header.reference and height > 1
            if not (on_top or in_place or form is not None):
                raise CannotChallenge("our chain has moved meanwhile")
            branch = chain.branch(height if on_top else height - 1)
            form = None if on_top or in_place else form
            return (yield from self._undisturbed(self._challenging(branch, form, wrong)))
        except _Stop as stop:
            raise CannotChallenge(stop.outcome.reason) from stop
        finally:
            self._works -= 1

    def _challenging(self, branch: ChainWriter, form: Block | None, wrong: Block) -> Work[Block]:
        if form is not None:
            yield from self._put(branch, self._received(form.data))
        # Only local keys: a remote signer would take too long.
        accounts = [it for it in self._node.mining_accounts() if isinstance(it, KeyPair)]
        votes = miner.votes(self._node.settings, self._chain)
        return (yield from challenging(branch, wrong, accounts, *votes))

    def _undisturbed(self, work: Work[T]) -> Work[T]:
        """Do work that reads our chain, as long as nothing else changes that: own blocks do not
        wait for it. Raises ``_Stop`` when the chain moves.
        """
        written = self._chain.store.written
        while True:
            try:
                wanted = next(work)
            except StopIteration as end:
                result: T = end.value
                return result
            yield wanted
            if self._chain.store.written != written:
                work.close()
                raise _Stop(_MOVED)

    def _working(self, work: Work[Outcome]) -> Work[Outcome]:
        self._works += 1
        try:
            self._node.disk.check()
            return (yield from work)
        except _Stop as stop:
            return stop.outcome
        except StorageProblem as problem:
            self._note(problem)
            return Outcome(Verdict.NOT_WRITTEN, str(problem))
        finally:
            self._works -= 1

    def _note(self, problem: StorageProblem) -> None:
        """Tell the operator, and try again less and less often, if a block needs what this node has
        deleted.
        """
        if isinstance(problem, NotKept):
            self._node.disk.failed(problem)

    # --- placement --------------------------------------------------------------------------------

    def _extension(
        self, data: Sequence[bytes], snapshots: Sequence[bytes], max_rollback: int, base: bytes
    ) -> Work[Outcome]:
        chain = self._chain
        new: list[_Received] = []
        for each, encoded in zip_longest(data, snapshots):
            try:
                received = self._received(each, encoded)
            except ChainError as error:
                return _unreadable(error)
            if new or chain.height_of(received.head.id) is None:
                new.append(received)
            yield None
        if not new:
            return Outcome(Verdict.KNOWN)
        height = chain.height_of(new[0].head.header.reference)
        if height is None and new[0].head.header.reference == base:
            return _MOVED
        if height is None:
            return Outcome(Verdict.INVALID, "its chain and ours have no block in common")
        depth = chain.height - height
        if depth > max_rollback:
            return Outcome(Verdict.NOT_OURS, f"its chain parts from ours {depth} blocks ago")
        if height < chain.finalized_height:
            words = f"its chain lacks our final block at height {chain.finalized_height}"
            return Outcome(Verdict.NOT_OURS, words)
        for at, each in enumerate(new, height + 1):
            # Scores, which divide by it, are compared before the header is checked.
            if each.head.header.base_target <= 0:
                return Outcome(Verdict.INVALID, f"block at height {at}: no base target", at)
        if depth and not self._is_better(height, new):
            return Outcome(Verdict.KNOWN, "its chain has not the score that it says")
        if new[0].head.header.reference == chain.last_block.id:
            # Pipelined: later signatures are verified while the first blocks are applied.
            yield from self._switch(self._being_checked(new), height)
            return Outcome(Verdict.APPLIED, height=chain.height)
        heads = [each.head for each in new]
        forged = yield from self._undisturbed(self._first_forged(heads))
        if forged is not None and (depth or forged == 0):
            return _forgery(height + 1 + forged)
        yield from self._switch(new[:forged], height)
        if forged is not None:
            return _forgery(height + 1 + forged)
        return Outcome(Verdict.APPLIED, depth=depth, height=chain.height)

    def _being_checked(self, new: Sequence[_Received]) -> list[_Received]:
        """Start verifying the generators' signatures, in order, and return the blocks with
        ``is_signed``.
        """
        batch = self._verifier.batch()
        found, count = [], 0
        for received in new:
            messages = blocks.signed_messages(received.head)
            batch.gather(messages)
            places = range(count, count + len(messages))
            found.append(
                received._replace(is_signed=partial(_are_valid, batch, received.head, places))
            )
            count += len(messages)
        batch.hurry()
        return found

    def _first_forged(self, heads: Sequence[SignedHeader]) -> Work[int | None]:
        """Return the index of the first block with an invalid generator's signature, before any
        transaction is decoded.
        """
        for place, head in enumerate(heads):
            if blocks.has_weak_key(head):
                return place
        signed = _Signed(self._verifier.batch())
        for place, head in enumerate(heads):
            signed.add(place, blocks.signed_messages(head))
        return (yield from signed.first_invalid())

    def _is_better(self, height: int, new: Sequence[_Received]) -> bool:
        """Whether new blocks above a height make a better chain than the present ones."""
        chain = self._chain
        score = int.from_bytes(chain.meta(height).score, "big")
        score += sum(pos.block_score(each.head.header.base_target) for each in new)
        return score > int.from_bytes(chain.meta(chain.height).score, "big")

    def _block(self, received: _Received) -> Work[Outcome]:
        chain, head = self._chain, received.head
        if chain.height_of(head.id) is not None:
            return Outcome(Verdict.KNOWN)
        place = (head.header.reference, head.header.generator)
        if place in self._refused:
            # Whoever signs invalid blocks can sign any number of them.
            return Outcome(Verdict.KNOWN, "its generator has signed an invalid block in its place")
        if not blocks.signature_is_valid(head):
            return Outcome(Verdict.BAD_SIGNATURE, "invalid signature of a block")
        try:
            return (yield from self._put_on_top(received))
        except _Stop as stop:
            # Without an id the fault may be another one's than the generator's.
            if stop.outcome.verdict in REFUSED and stop.outcome.block_id:
                self._refused[place] = None
                if len(self._refused) > MAX_REFUSED:
                    del self._refused[next(iter(self._refused))]
            raise

    def _put_on_top(self, received: _Received) -> Work[Outcome]:
        chain, head = self._chain, received.head
        reference, last = head.header.reference, chain.last_block
        if reference == last.id or chain.knows_liquid(reference):
            yield from self._switch((received,), chain.height)
            return Outcome(Verdict.APPLIED, height=chain.height)
        if reference != last.header.reference or chain.height == 1:
            return Outcome(Verdict.NOT_OURS, "it builds on another block than our last one")
        if head.header.timestamp >= last.header.timestamp:
            return Outcome(Verdict.KNOWN, "our last block is older")
        yield from self._switch((received,), chain.height - 1)
        return Outcome(Verdict.APPLIED, height=chain.height, depth=1)

    # --- branches ---------------------------------------------------------------------------------

    def _switch(self, new: Sequence[_Received], height: int) -> Work[None]:
        """Switch to new blocks, with verified signatures, above our block at a height; raises
        ``_Stop`` for an invalid one.
        """
        chain = self._chain
        head = new[0].head
        form = chain.liquid_form(head.header.reference)
        if form is not None and form.id != chain.last_block.id:
            # They build on an earlier form of our last block, which has to be applied again. Check
            # the header first, which is cheaper.
            try:
                headers.check_header(chain, head.header, head.id, self._clock(), settled=True)
            except BlockRejected as error:
                raise _Stop(_refusal(chain.height + 1, head, head.id, error)) from error
            yield from self._adopt_above(height - 1, (self._received(form.data), *new), known=1)
            return
        if chain.height > height:
            yield from self._adopt_above(height, new)
            return
        while new:
            taken = yield from self._adopt_above(chain.height, new, ADOPTED_BLOCKS)
            new = new[taken:]

    def _adopt_above(
        self, height: int, new: Sequence[_Received], most: int = 0, known: int = 0
    ) -> Work[int]:
        """Apply blocks to a branch above a height, at most ``most`` (0: all), adopt it, and return
        their number. If the branch only extends the chain, the blocks before an invalid one are
        kept. The first ``known`` are already verified: an earlier form of our last block.
        """
        branch = self._chain.branch(height)
        return (yield from self._undisturbed(self._adopting(branch, height, new, most, known)))

    def _adopting(
        self, branch: ChainWriter, height: int, new: Sequence[_Received], most: int, known: int
    ) -> Work[int]:
        chain = self._chain
        signed = _Signed(self._verifier.batch())
        refused: Outcome | None = None
        put: list[Block] = []
        changes: Changes | None = None
        count = 0
        for place, received in enumerate(new):
            try:
                block, applied = yield from self._put(branch, received)
            except _Stop as stop:
                refused = stop.outcome
                break
            put.append(block)
            # Only for a single block; after several the pool is rechecked completely.
            changes = None if place else applied.changes
            count += len(block.transactions)
            if place >= known:
                signed.add(place, applied.unverified)
            yield None
            if most and (len(put) >= most or count >= ADOPTED_TRANSACTIONS):
                break
        place_of_bad = yield from signed.first_invalid()
        if place_of_bad is not None:
            at = height + 1 + place_of_bad
            wrong = BlockRejected(at, "invalid signature")
            bad_id = _id_of_whole(put[place_of_bad])
            refused = _refusal(at, new[place_of_bad].head, bad_id, wrong)
            del put[place_of_bad:]
            # The branch contains later blocks.
            branch = chain.branch(height)
            for each in new[:place_of_bad]:
                yield from self._put(branch, each)
        if refused is not None and not (height == chain.height and put):
            raise _Stop(refused)
        with self._node.writing():
            removed = chain.adopt(branch, height, shortened=bool(known))
        self._follow(put, removed, None if removed else changes)
        self._progressed_at = self._clock()
        if refused is not None:
            raise _Stop(refused)
        return len(put)

    def _put(self, branch: ChainWriter, received: _Received) -> Work[tuple[Block, AppliedBlock]]:
        """Apply a block to a branch, checking its header first. The signatures of its transactions
        are still to be verified.

        Raises ``_Stop`` with the reason for an invalid block.
        """
        height, now = branch.height + 1, self._clock()
        if received.is_signed is not None and not (yield from received.is_signed()):
            raise _Stop(_forgery(height))
        if received.head.header.reference != branch.last_block.id:
            # It may be valid elsewhere.
            raise _Stop(Outcome(Verdict.INVALID, "it does not follow the block before it", height))
        try:
            hit_source = branch.check_header(received.head, now)
            check_base_target(self._node, branch, received.head.header.base_target)
        except BlockRejected as error:
            raise _Stop(_refusal(height, received.head, received.head.id, error)) from error
        try:
            block = yield from blocks.decoding(received.data, self._chain.network.chain_id)
        except ChainError as error:
            raise _Stop(_unreadable(error, height)) from error
        if block.header != received.head.header or block.signature != received.head.signature:
            # Headers that are repeated behind the transactions are merged into the first one, which
            # is all that was checked.
            raise _Stop(_forgery(height))
        try:
            snapshots = None if received.snapshots is None else self._unread(received.snapshots)
            applied = yield from branch.appending(block, hit_source, now=now, snapshots=snapshots)
        except InputError as error:
            # It may be valid with other snapshots.
            bad_id = _id_of_whole(block) if received.snapshots is None else b""
            raise _Stop(_refusal(height, received.head, bad_id, error)) from error
        return block, applied

    def _unread(self, data: bytes) -> LazySnapshots:
        return LazySnapshots(data, self._chain.network.chain_id)

    def _follow(
        self, new: Sequence[Block], removed: Sequence[Block], changes: Changes | None
    ) -> None:
        """Update the node after the chain has changed; ``changes`` of the state, if known."""
        mined = tuple(each for block in new for each in block.transactions)
        ids = {each.id for each in mined} if removed else set()
        returned = [
            each for block in reversed(removed) for each in block.transactions if each.id not in ids
        ]
        self._node.follow_chain(mined, returned=returned, changes=changes)
        self._node.settle_in_turns()

    # --- microblocks ------------------------------------------------------------------------------

    def microblock(
        self, data: bytes, snapshots: bytes | None = None
    ) -> Work[tuple[Microblock | None, Outcome]]:
        """Apply a requested microblock, with its ``snapshots`` on a light node."""
        try:
            micro = yield from microblocks.decoding(data, self._chain.network.chain_id)
        except ChainError as error:
            return None, Outcome(Verdict.INVALID, f"it cannot be read: {error}")
        # First, as in the reference: whatever it builds on, a forged one is the sender's fault.
        if not microblocks.signature_is_valid(micro):
            return micro, Outcome(Verdict.BAD_SIGNATURE, "invalid signature of a microblock")
        self._works += 1
        try:
            return micro, (yield from self._extend(micro, snapshots))
        except _Stop as stop:
            return micro, stop.outcome
        finally:
            self._works -= 1

    def _extend(self, micro: Microblock, snapshots: bytes | None) -> Work[Outcome]:
        chain, node = self._chain, self._node
        last = chain.last_block
        if micro.reference != last.id:
            return Outcome(Verdict.NOT_OURS, "it builds on another form of the last block")
        if micro.generator != last.header.generator:
            return Outcome(Verdict.INVALID, "somebody else has made the last block")
        try:
            node.disk.check()
            unread = None if snapshots is None else self._unread(snapshots)
            longer = yield from self._undisturbed(
                chain.extending(
                    micro.transactions,
                    micro.state_hash,
                    micro.total_signature,
                    voting=micro.finalization_voting,
                    verified=self._verified(micro),
                    snapshots=unread,
                )
            )
            with node.writing():
                chain.lengthen(longer, micro.signature, micro.finalization_voting)
        except StorageProblem as problem:
            self._note(problem)
            return Outcome(Verdict.NOT_WRITTEN, str(problem))
        except WrongStateHash as error:
            return Outcome(Verdict.WRONG_STATE_HASH, str(error), chain.height)
        except (SnapshotRejected, ChainError) as error:
            return Outcome(Verdict.WRONG_STATE_HASH, str(error), chain.height)
        except InputError as error:
            return Outcome(Verdict.INVALID, str(error), chain.height, micro.total_block_id)
        node.follow_chain(micro.transactions, changes=chain.last_changes())
        node.settle_in_turns()
        return Outcome(Verdict.APPLIED, height=chain.height)

    def _verified(self, micro: Microblock) -> set[bytes]:
        """Return the ids of transactions whose signatures the pool has verified."""
        pool = self._node.pool
        # Impersonated accounts send without signatures.
        if self._chain.waived:
            return set()
        same = {each.id for each in micro.transactions if pool.get(each.id) == each}
        return same.difference(pool.unproven)


class _Signed:
    """The signatures of some blocks, which are numbered by places."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._places: list[int] = []

    def add(self, place: int, messages: Sequence[SignedMessage]) -> None:
        """Add the signatures of a block."""
        self._batch.add(messages)
        self._places += [place] * len(messages)

    def first_invalid(self) -> Work[int | None]:
        """Return the place of the first block with an invalid signature."""
        verdicts = yield from self._batch.checking()
        pairs = zip(self._places, verdicts, strict=True)
        return next((place for place, is_valid in pairs if not is_valid), None)


def _are_valid(batch: Batch, head: SignedHeader, places: range) -> Work[bool]:
    """Whether a block's signatures, at these places in a batch, are valid."""
    if blocks.has_weak_key(head):
        return False
    for place in places:
        if not (yield from batch.is_valid(place)):
            return False
    return True


def _refusal(height: int, head: SignedHeader, block_id: bytes, error: InputError) -> Outcome:
    if isinstance(error, BlockFromFuture):
        due = head.header.timestamp - MAX_TIME_DRIFT_MS + 1
        return Outcome(Verdict.EARLY, str(error), height, due=due)
    if isinstance(error, UnknownFeatures):
        # The peer is right: this version is too old.
        return Outcome(Verdict.KNOWN, str(error), height)
    wrong_hash = isinstance(error, WrongStateHash)
    verdict = Verdict.WRONG_STATE_HASH if wrong_hash else Verdict.INVALID
    return Outcome(verdict, str(error), height, block_id)


def _id_of_whole(block: Block) -> bytes:
    """Return the id of a signed block; empty if the body does not belong to the header, since
    anybody can combine the header of a valid block with another body.
    """
    header = block.header
    if header.version >= blocks.PROTOBUF_VERSION:
        root = blocks.transactions_root(block.transactions)
        if root != header.transactions_root:
            return b""
    return block.id


def _unreadable(error: ChainError, height: int = 0) -> Outcome:
    return Outcome(Verdict.INVALID, f"a block cannot be read: {error}", height)


def _forgery(height: int) -> Outcome:
    """Return the outcome of an invalid signature, without the id, which may be a valid block's."""
    return Outcome(Verdict.INVALID, str(BlockRejected(height, "invalid signature")), height)
