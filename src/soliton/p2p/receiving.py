"""What peers send, put on the node's chain: extensions, single blocks, microblocks.

Blocks are put together on a branch beside the chain, in steps with others in between, while another
process verifies signatures, if there are many. What is good is adopted in one atomic step; of what
is bad nothing was ever seen.

What lives here: where a branch begins, when it is adopted, and what an outcome says about the peer.
What does not: the rules (``soliton.node.chain_writer`` and below), who is asked (``core``).

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
from soliton.chain.snapshots import Unread
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
    WrongStateHash,
)
from soliton.ledger.state import Changes
from soliton.node import miner
from soliton.node.chain_writer import ChainWriter
from soliton.node.challenger import CannotChallenge, challenging
from soliton.node.mining import check_base_target, mining_accounts
from soliton.node.node import Node
from soliton.parallel.beside import Batch, Beside
from soliton.storage.errors import StorageProblem

ADOPTED_TRANSACTIONS: Final = 3_000
ADOPTED_BLOCKS: Final = 100
"""So many of what only makes the chain longer are put on it together."""
MANY_BLOCKS: Final = 50
"""After fewer of them at once nobody is far behind any more."""

T = TypeVar("T")
Work = Generator[Future[None] | None, None, T]
"""Work in steps; one that gives a future goes on when that is done."""


class Verdict(Enum):
    """What became of something that a peer sent."""

    APPLIED = auto()
    KNOWN = auto()
    """It is on the chain already, or no better than what is: nobody did wrong."""
    NOT_OURS = auto()
    """It does not build on what we have: a matter of who was faster."""
    EARLY = auto()
    """Its time has not come."""
    INVALID = auto()
    WRONG_STATE_HASH = auto()
    """The same; but for its state hash it may be good."""
    BAD_SIGNATURE = auto()
    MOVED = auto()
    """Our chain changed meanwhile: it may be tried again at once."""
    NOT_WRITTEN = auto()
    """Our disk refused: it may be tried again later."""


class Outcome(msgspec.Struct, frozen=True):
    """A verdict and its reason; ``height`` of the chain or of the block that was refused, whose
    ``block_id`` is empty where it may come again; ``depth``: blocks of ours that were given up;
    ``due``: when (ms) an early block may be taken.
    """

    verdict: Verdict
    reason: str = ""
    height: int = 0
    block_id: bytes = b""
    depth: int = 0
    due: int = 0


class _Stop(Exception):
    """An outcome that ends the work."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


class _Came(NamedTuple):
    """A block whose transactions are not read before its header was found good; with what came of
    them in place of execution, where that was asked for.
    """

    head: SignedHeader
    data: bytes
    snapshots: bytes | None = None
    is_signed: Callable[[], Work[bool]] | None = None
    """Is to be asked before anything else of it is, where its signature is being checked."""


class Receiver:
    """Puts on a node's chain what peers send."""

    def __init__(
        self,
        node: Node,
        clock: Callable[[], int],
        *,
        alone: bool = False,
    ) -> None:
        """``clock`` gives the network's time in ms; ``alone``: start no process."""
        self._node = node
        self._chain = node.chain
        self._clock = clock
        self._alone = alone
        self._beside = Beside(starts=not alone)
        self.is_busy = False
        """Whether something is being put on the chain: nobody mines meanwhile."""

    def close(self) -> None:
        """Let the process beside end."""
        self._beside.close()

    def _rest(self) -> None:
        """The same until there are many signatures again."""
        self._beside.close()
        self._beside = Beside(starts=not self._alone)

    def extension(
        self, data: Sequence[bytes], max_rollback: int, snapshots: Sequence[bytes] = ()
    ) -> Work[Outcome]:
        """Blocks in the order of the chain that a peer says is better than ours; none of them is
        executed where it sent ``snapshots``.
        """
        if len(data) < MANY_BLOCKS:
            self._rest()
        else:
            self._beside.begin()
        return (yield from self._working(self._extension(data, snapshots, max_rollback)))

    def block(self, data: bytes) -> Work[Outcome]:
        """A block that a peer has just heard of or made itself."""
        try:
            came = self._came(data)
        except ChainError as error:
            return _unreadable(error)
        self._rest()
        return (yield from self._working(self._block(came)))

    def _came(self, data: bytes, snapshots: bytes | None = None) -> _Came:
        head = blocks.decode_signed_header(data, self._chain.network.chain_id)
        return _Came(head, data, snapshots)

    def challenge(self, wrong: Block) -> Work[Block]:
        """A block of an account of ours that challenges one with a wrong state hash, which came on
        our last block, in place of it, or as a longer form of it. It is not on the chain yet.

        Raises ``CannotChallenge``.
        """
        chain, reference = self._chain, wrong.header.reference
        if not self._node.settings.miner.enable:
            raise CannotChallenge("this node does not mine")
        if self._node.settings.light:
            raise CannotChallenge("this node does not execute transactions")
        self.is_busy = True
        try:
            height = chain.height
            if reference == chain.last_block.id:
                branch = chain.branch(height)
            elif reference == chain.last_block.header.reference and height > 1:
                branch = chain.branch(height - 1)
            elif (form := chain.liquid_form(reference)) is not None:
                branch = chain.branch(height - 1)
                yield from self._put(branch, self._came(form.data))
            else:
                raise CannotChallenge("our chain has moved meanwhile")
            # A signer would have to be waited for: those who hold their keys challenge.
            accounts = [it for it in mining_accounts(self._node) if isinstance(it, KeyPair)]
            votes = miner.votes(self._node.settings, chain)
            return (yield from challenging(branch, wrong, accounts, *votes))
        except _Stop as stop:
            raise CannotChallenge(stop.outcome.reason) from stop
        finally:
            self.is_busy = False

    def _working(self, work: Work[Outcome]) -> Work[Outcome]:
        self.is_busy = True
        try:
            self._node.disk.check()
            return (yield from work)
        except _Stop as stop:
            return stop.outcome
        except StorageProblem as problem:
            return Outcome(Verdict.NOT_WRITTEN, str(problem))
        finally:
            self.is_busy = False

    # --- where it belongs -------------------------------------------------------------------------

    def _extension(
        self, data: Sequence[bytes], snapshots: Sequence[bytes], max_rollback: int
    ) -> Work[Outcome]:
        chain = self._chain
        new: list[_Came] = []
        for each, told in zip_longest(data, snapshots):
            try:
                came = self._came(each, told)
            except ChainError as error:
                return _unreadable(error)
            if new or chain.height_of(came.head.id) is None:
                new.append(came)
            yield None
        if not new:
            return Outcome(Verdict.KNOWN)
        height = chain.height_of(new[0].head.header.reference)
        if height is None:
            return Outcome(Verdict.INVALID, "its chain and ours have no block in common")
        depth = chain.height - height
        if depth > max_rollback:
            return Outcome(Verdict.NOT_OURS, f"its chain parts from ours {depth} blocks ago")
        if depth and not self._is_better(height, new):
            return Outcome(Verdict.KNOWN, "its chain has not the score that it says")
        if new[0].head.header.reference == chain.last_block.id:
            # Each when its turn comes: others are checked while the first ones are applied.
            yield from self._switch(self._being_checked(new), height)
            return Outcome(Verdict.APPLIED, height=chain.height)
        forged = yield from self._first_forged([each.head for each in new])
        if forged is not None and (depth or forged == 0):
            return _forgery(height + 1 + forged)
        yield from self._switch(new[:forged], height)
        if forged is not None:
            return _forgery(height + 1 + forged)
        return Outcome(Verdict.APPLIED, depth=depth, height=chain.height)

    def _being_checked(self, new: Sequence[_Came]) -> list[_Came]:
        """The same, while their generators' signatures are checked, the first ones first."""
        batch = self._beside.batch()
        found, count = [], 0
        for came in new:
            messages = blocks.signed_messages(came.head)
            batch.gather(messages)
            places = range(count, count + len(messages))
            found.append(came._replace(is_signed=partial(_are_valid, batch, came.head, places)))
            count += len(messages)
        batch.hurry()
        return found

    def _first_forged(self, heads: Sequence[SignedHeader]) -> Work[int | None]:
        """The place of the first block that its generator has not signed: found before any
        transaction is read.
        """
        for place, head in enumerate(heads):
            if blocks.has_weak_key(head):
                return place
        signed = _Signed(self._beside.batch())
        for place, head in enumerate(heads):
            signed.add(place, blocks.signed_messages(head))
        return (yield from signed.first_invalid())

    def _is_better(self, height: int, new: Sequence[_Came]) -> bool:
        """Whether blocks above a height make a better chain than those that are there."""
        chain = self._chain
        score = int.from_bytes(chain.meta(height).score, "big")
        score += sum(pos.block_score(each.head.header.base_target) for each in new)
        return score > int.from_bytes(chain.meta(chain.height).score, "big")

    def _block(self, came: _Came) -> Work[Outcome]:
        chain, head = self._chain, came.head
        if chain.height_of(head.id) is not None:
            return Outcome(Verdict.KNOWN)
        if not blocks.signature_is_valid(head):
            return Outcome(Verdict.BAD_SIGNATURE, "invalid signature of a block")
        reference, last = head.header.reference, chain.last_block
        if reference == last.id or chain.knows_liquid(reference):
            yield from self._switch((came,), chain.height)
            return Outcome(Verdict.APPLIED, height=chain.height)
        if reference != last.header.reference or chain.height == 1:
            return Outcome(Verdict.NOT_OURS, "it builds on another block than our last one")
        if head.header.timestamp >= last.header.timestamp:
            return Outcome(Verdict.KNOWN, "our last block is older")
        yield from self._switch((came,), chain.height - 1)
        return Outcome(Verdict.APPLIED, height=chain.height, depth=1)

    # --- branches ---------------------------------------------------------------------------------

    def _switch(self, new: Sequence[_Came], height: int) -> Work[None]:
        """Let new blocks, which are signed, stand above our block at a height; a bad one raises
        ``_Stop``.
        """
        chain = self._chain
        head = new[0].head
        form = chain.liquid_form(head.header.reference)
        if form is not None and form.id != chain.last_block.id:
            # Our last block ends with an earlier form. That is put together again, which costs
            # more than to see whether the header can be right.
            try:
                headers.check_header(chain, head.header, head.id, self._clock(), settled=True)
            except BlockRejected as error:
                raise _Stop(_refusal(chain.height + 1, head, head.id, error)) from error
            yield from self._adopt_above(height - 1, (self._came(form.data), *new), known=1)
            return
        if chain.height > height:
            yield from self._adopt_above(height, new)
            return
        while new:
            taken = yield from self._adopt_above(chain.height, new, ADOPTED_BLOCKS)
            new = new[taken:]

    def _adopt_above(
        self, height: int, new: Sequence[_Came], most: int = 0, known: int = 0
    ) -> Work[int]:
        """Put blocks on a branch above a height and adopt it: how many were put, where no more than
        ``most`` are wanted at once. Of a branch that only makes the chain longer what comes before
        a bad block is kept. The first ``known`` are good.
        """
        chain = self._chain
        last = chain.last_block
        branch = chain.branch(height)
        signed = _Signed(self._beside.batch())
        refused: Outcome | None = None
        put: list[Block] = []
        changes: Changes | None = None
        count = 0
        for place, came in enumerate(new):
            try:
                block, applied = yield from self._put(branch, came)
            except _Stop as stop:
                refused = stop.outcome
                break
            put.append(block)
            # Of several blocks this is not worth the while: everything is checked again.
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
            # The branch has what stands on it.
            branch = chain.branch(height)
            for each in new[:place_of_bad]:
                yield from self._put(branch, each)
        forward = last.id == chain.last_block.id and height == chain.height
        if refused is not None and not (forward and put):
            raise _Stop(refused)
        if chain.last_block.id != last.id:
            raise _Stop(Outcome(Verdict.MOVED, "our chain has moved meanwhile"))
        with self._node.writing():
            removed = chain.adopt(branch, height)
        self._follow(put, removed, None if removed else changes)
        if refused is not None:
            raise _Stop(refused)
        return len(put)

    def _put(self, branch: ChainWriter, came: _Came) -> Work[tuple[Block, AppliedBlock]]:
        """Put a block on a branch, its header first: the block, and what it does, of which the
        signatures are still to be verified.

        Raises ``_Stop`` with the reason for a block that is bad.
        """
        height, now = branch.height + 1, self._clock()
        if came.is_signed is not None and not (yield from came.is_signed()):
            raise _Stop(_forgery(height))
        if came.head.header.reference != branch.last_block.id:
            # It may be good elsewhere.
            raise _Stop(Outcome(Verdict.INVALID, "it does not follow the block before it", height))
        try:
            hit_source = branch.check_header(came.head, now)
            check_base_target(self._node, branch, came.head.header.base_target)
        except BlockRejected as error:
            raise _Stop(_refusal(height, came.head, came.head.id, error)) from error
        try:
            block = blocks.decode(came.data, self._chain.network.chain_id)
        except ChainError as error:
            raise _Stop(_unreadable(error, height)) from error
        try:
            told = None if came.snapshots is None else self._unread(came.snapshots)
            applied = yield from branch.appending(block, hit_source, now=now, snapshots=told)
        except InputError as error:
            # With other snapshots it may be good.
            bad_id = _id_of_whole(block) if came.snapshots is None else b""
            raise _Stop(_refusal(height, came.head, bad_id, error)) from error
        return block, applied

    def _unread(self, data: bytes) -> Unread:
        return Unread(data, self._chain.network.chain_id)

    def _follow(
        self, new: Sequence[Block], removed: Sequence[Block], changes: Changes | None
    ) -> None:
        """Let the node follow what the chain has done; ``changes`` of the state, where known."""
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
    ) -> tuple[Microblock | None, Outcome]:
        """A microblock that was asked for, and its ``snapshots`` where these were."""
        chain, node = self._chain, self._node
        try:
            micro = microblocks.decode(data, chain.network.chain_id)
        except ChainError as error:
            return None, Outcome(Verdict.INVALID, f"it cannot be read: {error}")
        last = chain.last_block
        if micro.reference != last.id:
            return micro, Outcome(Verdict.NOT_OURS, "it builds on another form of the last block")
        if micro.generator != last.header.generator:
            return micro, Outcome(Verdict.INVALID, "somebody else has made the last block")
        if not microblocks.signature_is_valid(micro):
            return micro, Outcome(Verdict.BAD_SIGNATURE, "invalid signature of a microblock")
        try:
            node.disk.check()
            told = None if snapshots is None else self._unread(snapshots)
            with node.writing():
                chain.extend(
                    micro.transactions,
                    micro.state_hash,
                    micro.total_signature,
                    micro.signature,
                    verified=self._verified(micro),
                    snapshots=told,
                )
        except StorageProblem as problem:
            return micro, Outcome(Verdict.NOT_WRITTEN, str(problem))
        except WrongStateHash as error:
            return micro, Outcome(Verdict.WRONG_STATE_HASH, str(error), chain.height)
        except (SnapshotRejected, ChainError) as error:
            return micro, Outcome(Verdict.WRONG_STATE_HASH, str(error), chain.height)
        except InputError as error:
            return micro, Outcome(Verdict.INVALID, str(error), chain.height, micro.total_block_id)
        node.follow_chain(micro.transactions, changes=chain.liquid_changes())
        node.settle_in_turns()
        return micro, Outcome(Verdict.APPLIED, height=chain.height)

    def _verified(self, micro: Microblock) -> set[bytes]:
        """The ids of those whose signatures were verified when they came into the pool."""
        pool = self._node.pool
        # Who is impersonated there may send without a signature.
        if self._chain.waived:
            return set()
        same = {each.id for each in micro.transactions if pool.get(each.id) == each}
        return same.difference(pool.unproven)


class _Signed:
    """What is signed in some blocks, each of which has a place."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._places: list[int] = []

    def add(self, place: int, messages: Sequence[SignedMessage]) -> None:
        """Have these of a block checked."""
        self._batch.add(messages)
        self._places += [place] * len(messages)

    def first_invalid(self) -> Work[int | None]:
        """The place of the first block with a wrong signature."""
        verdicts = yield from self._batch.checking()
        pairs = zip(self._places, verdicts, strict=True)
        return next((place for place, is_valid in pairs if not is_valid), None)


def _are_valid(batch: Batch, head: SignedHeader, places: range) -> Work[bool]:
    """Whether a block's signatures, which have these places in a batch, are right."""
    if blocks.has_weak_key(head):
        return False
    for place in places:
        if not (yield from batch.is_valid(place)):
            return False
    return True


def _refusal(height: int, head: SignedHeader, block_id: bytes, error: InputError) -> Outcome:
    if isinstance(error, BlockFromFuture):
        due = head.header.timestamp - MAX_TIME_DRIFT_MS
        return Outcome(Verdict.EARLY, str(error), height, due=due)
    wrong_hash = isinstance(error, WrongStateHash)
    verdict = Verdict.WRONG_STATE_HASH if wrong_hash else Verdict.INVALID
    return Outcome(verdict, str(error), height, block_id)


def _id_of_whole(block: Block) -> bytes:
    """The id of a block, which is signed, unless it stands for another body: anybody can put that
    below the id of a good block.
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
    """That of a block whose header its generator has not signed: the id may come again."""
    return Outcome(Verdict.INVALID, str(BlockRejected(height, "invalid signature")), height)
