"""The last block while it grows: its forms, of which only the longest is kept whole.

A form is the key block with its first microblocks. Of each microblock the difference that it made
is kept, so that memory grows with the transactions and not with the forms, and so that a form can
be longer or shorter by one microblock in time proportional to that.

What lives here: the forms in memory. What does not: the store, and which forms are wanted
(``chain_writer``).

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/NgState.scala``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, pairwise
from typing import NamedTuple

import msgspec

from soliton.chain import blocks
from soliton.chain.blocks import Block, BlockHeader
from soliton.chain.finalization import FinalizationVoting, added
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto.merkle import GrowingTree
from soliton.ledger.apply import AppliedBlock, BlockInProgress, Outcome, Replaced
from soliton.ledger.state import Changes


class _Form(msgspec.Struct, frozen=True):
    """A form: its header, signature and number of transactions, the outcomes and changes of its
    last part, and what that part replaced (``None``: the key block).
    """

    header: BlockHeader
    signature: bytes
    count: int
    outcomes: tuple[Outcome, ...]
    changes: Changes
    replaced: Replaced | None


class Part(NamedTuple):
    """What a microblock added: transactions, state hash and signature of the longer block, and its
    own voting.
    """

    transactions: tuple[AnyTransaction, ...]
    state_hash: bytes | None
    signature: bytes
    voting: FinalizationVoting | None


class LiquidBlock:
    """A last block that can grow; a key block without microblocks at first."""

    __slots__ = ("_forms", "_tree", "block", "progress")

    def __init__(self, block: Block, progress: BlockInProgress, applied: AppliedBlock) -> None:
        self.block = block
        """The longest form."""
        self.progress = progress
        """The application of the longest form; not to be changed from outside."""
        self._tree: GrowingTree | None = None
        first = _Form(
            block.header,
            block.signature,
            len(block.transactions),
            applied.outcomes,
            applied.changes,
            None,
        )
        self._forms: dict[bytes, _Form] = {block.id: first}

    @property
    def ids(self) -> tuple[bytes, ...]:
        """The ids of all forms, the shortest first."""
        return tuple(self._forms)

    def __contains__(self, block_id: bytes) -> bool:
        return block_id in self._forms

    def form(self, block_id: bytes) -> Block | None:
        """Return the form with this id, assembled anew."""
        found = self._forms.get(block_id)
        if found is None or block_id == self.block.id:
            return None if found is None else self.block
        encoded = self.progress.encoded if _is_message(self.block) else None
        return blocks.assemble(
            found.header,
            self.block.transactions[: found.count],
            found.signature,
            None if encoded is None else encoded[: found.count],
        )

    def outcomes(self, block_id: bytes) -> list[tuple[Outcome, ...]]:
        """Return the outcomes of the transactions of a form, by part; empty for an unknown id."""
        if block_id not in self._forms:
            return []
        place = self.ids.index(block_id)
        return [each.outcomes for each in islice(self._forms.values(), place + 1)]

    def last_changes(self) -> Changes:
        """Return the changes of the last part."""
        return self._forms[self.block.id].changes

    def changes_above(self, block_id: bytes) -> list[Changes]:
        """Return the changes of each part that is not in a form; none for an unknown id."""
        if block_id not in self._forms:
            return []
        place = self.ids.index(block_id)
        return [each.changes for each in islice(self._forms.values(), place + 1, None)]

    def parts_above(self, block_id: bytes) -> list[Part]:
        """Return the parts that are not in a form, in order; none for an unknown id."""
        if block_id not in self._forms:
            return []
        found = list(islice(self._forms.values(), self.ids.index(block_id), None))
        return [
            Part(
                self.block.transactions[before.count : each.count],
                each.header.state_hash,
                each.signature,
                added(before.header.finalization_voting, each.header.finalization_voting),
            )
            for before, each in pairwise(found)
        ]

    def longer(
        self,
        transactions: tuple[AnyTransaction, ...],
        state_hash: bytes | None,
        signature: bytes,
        encoded: Sequence[bytes] | None = None,
        voting: FinalizationVoting | None = None,
    ) -> Block:
        """Return the block with appended transactions; ``encoded`` are these in protobuf, if they
        are known, and ``voting`` is that of the microblock. Nothing is changed.
        """
        if not _is_message(self.block):
            return blocks.extended(self.block, transactions, state_hash, signature)
        if encoded is None:
            encoded = tuple(map(codec.encode_protobuf, transactions))
        tree = self._grown_tree()
        size = len(tree)
        tree.append(map(codec.merkle_leaf, transactions, encoded))
        root = tree.root()
        tree.cut(size)
        return blocks.grown(self.block, transactions, encoded, root, state_hash, signature, voting)

    def _grown_tree(self) -> GrowingTree:
        if self._tree is None:
            self._tree = GrowingTree()
        known, block = len(self._tree), self.block
        if known < len(block.transactions):
            pieces = self.progress.encoded or tuple(blocks.transaction_pieces(block.data))
            self._tree.append(map(codec.merkle_leaf, block.transactions[known:], pieces[known:]))
        return self._tree

    def grow(self, total: Block, progress: BlockInProgress, applied: AppliedBlock) -> None:
        """Append a part: the block is now ``total``."""
        self._forms[total.id] = _Form(
            total.header,
            total.signature,
            len(total.transactions),
            applied.outcomes,
            applied.changes,
            self.progress.replaced_by(applied.changes),
        )
        self.block, self.progress = total, progress

    def shorten(self) -> None:
        """Remove the last part, which is not the key block."""
        before = self.ids[-2]
        shorter = self.form(before)
        _, last = self._forms.popitem()
        assert shorter is not None and last.replaced is not None, "there is a shorter form"
        self.progress.take_back(last.replaced)
        self.block = shorter
        if self._tree is not None:
            self._tree.cut(len(shorter.transactions))


def _is_message(block: Block) -> bool:
    return block.header.version >= blocks.PROTOBUF_VERSION
