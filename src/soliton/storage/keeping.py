"""What a store keeps of a chain: all of it, all blocks, or the state with the last blocks.

The state after the last block, the headers of all blocks, and where each transaction was are always
kept: the next block needs them. A mode says what is kept beside them, and the store's record
``Kept`` says what is there now: deleting what a mode does not keep takes its time
(``soliton.storage.pruning``).

What lives here: the modes, the record, and which changes of mode are possible. What does not:
deleting (``pruning``), the keys of the settings (``soliton.node.settings``).
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.storage.errors import NotKept, WrongMode

ARCHIVE: Final = "archive"
"""Everything."""
FULL: Final = "full"
"""All blocks and what their transactions changed, without balances of long ago."""
PRUNED: Final = "pruned"
"""The state, all headers, and the last blocks."""
MODES: Final = (ARCHIVE, FULL, PRUNED)

GENERATING_BLOCKS: Final = 1_000
"""The blocks over which a generating balance is the smallest."""
NETWORK_ROLLBACK: Final = 100
"""The most blocks that the network itself gives up for a better chain."""
LEAST_BLOCKS: Final = GENERATING_BLOCKS + NETWORK_ROLLBACK
"""The least number of last blocks that a pruned store keeps, and of blocks below the lowest one
that can be rolled back to whose balances are kept.
"""
DEFAULT_BLOCKS: Final = 2_000
DEFAULT_INTERVAL: Final = 500
MODE_KEY: Final = "db.mode"
ADDRESS_KEY: Final = "db.store-transactions-by-address"
LEASE_KEY: Final = "db.store-lease-states-by-address"
CALL_KEY: Final = "db.store-invoke-script-results"


class Keeping(msgspec.Struct, frozen=True):
    """What the operator wants kept; ``None`` stands for what the store has.

    ``blocks`` are the last blocks of a pruned store, ``rollback_depth`` those that can be rolled
    back, and deletion waits until ``interval`` blocks can go at once.
    """

    mode: str | None = None
    blocks: int = DEFAULT_BLOCKS
    rollback_depth: int = DEFAULT_BLOCKS
    interval: int = 0
    by_address: bool | None = None
    by_lease: bool | None = None
    calls: bool | None = None

    @property
    def last_blocks(self) -> int:
        """How many last blocks keep their transactions in a pruned store."""
        return max(self.blocks, self.rollback_depth + 1, LEAST_BLOCKS)

    @property
    def last_balances(self) -> int:
        """For how many last blocks the balances after them are kept, unless all are."""
        return max(self.blocks, self.rollback_depth + LEAST_BLOCKS)


class Kept(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a store keeps: the transactions of the blocks from ``blocks_from`` on, the balances
    after the blocks from ``balances_from`` on, what the transactions of the blocks from
    ``changes_from`` on changed (all, except in a pruned store), transactions and leases by account,
    and what called dApps did.
    """

    mode: str = ARCHIVE
    blocks_from: int = 1
    balances_from: int = 1
    changes_from: int = 1
    by_address: bool = True
    by_lease: bool = True
    calls: bool = True

    @property
    def text(self) -> str:
        """A line for the operator."""
        return (
            f"mode {self.mode}: transactions from height {self.blocks_from} on, balances from "
            f"height {self.balances_from} on"
        )

    @property
    def wanted(self) -> Keeping:
        """The settings of a new store that keeps the same."""
        return Keeping(
            self.mode, by_address=self.by_address, by_lease=self.by_lease, calls=self.calls
        )

    @property
    def lowest_rollback(self) -> int:
        """The lowest height that can be rolled back to, as far as it follows from here."""
        below = self.balances_from + GENERATING_BLOCKS if self.balances_from > 1 else 1
        return max(below, self.blocks_from)

    def need_block(self, height: int) -> None:
        """Raise ``NotKept`` if the transactions of the block at a height were deleted."""
        # The first block is kept: it identifies the chain.
        if 1 < height < self.blocks_from:
            raise NotKept(
                f"the transactions of block {height}",
                f"{self._only()} those from height {self.blocks_from} on",
                f"{MODE_KEY} = {FULL}",
            )

    def need_balances(self, height: int) -> None:
        """Raise ``NotKept`` if balances after the block at a height were deleted."""
        if max(1, height) < self.balances_from:
            raise NotKept(
                f"what accounts had at height {height}",
                f"{self._only()} balances from height {self.balances_from} on",
                f"{MODE_KEY} = {ARCHIVE}",
            )

    def need_state_hash(self, height: int) -> None:
        """Raise ``NotKept`` if the state hash of the block at a height was deleted."""
        if 1 < height < self.blocks_from:
            raise NotKept(
                f"the state hash at height {height}",
                f"{self._only()} those from height {self.blocks_from} on",
                f"{MODE_KEY} = {FULL}",
            )

    def need_changes(self, height: int) -> None:
        """Raise ``NotKept`` if what the transactions of a block changed was deleted."""
        if height < self.changes_from:
            raise NotKept(
                f"what block {height} changed",
                f"{self._only()} that from height {self.changes_from} on",
                f"{MODE_KEY} = {FULL}",
            )

    def need_replaced(self, height: int) -> None:
        """Raise ``NotKept`` if what a block replaced was deleted, or balances before it."""
        if 1 < self.balances_from >= height:
            raise NotKept(
                f"what block {height} replaced",
                f"{self._only()} that from height {self.balances_from + 1} on",
                f"{MODE_KEY} = {ARCHIVE}",
            )

    def need_by_address(self) -> None:
        """Raise ``NotKept`` if transactions are not listed by account."""
        if not self.by_address:
            setting = f"{MODE_KEY} = {FULL}" if self.mode == PRUNED else f"{ADDRESS_KEY} = yes"
            raise NotKept("the list of an account's transactions", "", setting)

    def need_by_lease(self) -> None:
        """Raise ``NotKept`` if leases are not listed by account."""
        if not self.by_lease:
            raise NotKept("the list of an account's leases", "", f"{LEASE_KEY} = yes")

    def need_calls(self) -> None:
        """Raise ``NotKept`` if what called dApps did is not kept."""
        if not self.calls:
            raise NotKept("what a called dApp did", "", f"{CALL_KEY} = yes")

    def _only(self) -> str:
        return f"this node, whose mode is {self.mode}, has"

    def changed_to(self, keeping: Keeping) -> Kept:
        """Return what is kept from now on; raises ``WrongMode`` for what was deleted before."""
        mode = self.mode if keeping.mode is None else keeping.mode
        if mode != PRUNED and (self.blocks_from > 1 or self.changes_from > 1):
            self._refuse(f"{MODE_KEY} = {mode}", "the transactions of its first blocks")
        if mode == ARCHIVE and self.balances_from > 1:
            self._refuse(f"{MODE_KEY} = {mode}", "the balances of its first blocks")
        by_address = self._switched(
            keeping.by_address, self.by_address, ADDRESS_KEY, "transactions by account", mode
        )
        return msgspec.structs.replace(
            self,
            mode=mode,
            by_address=by_address,
            by_lease=self._switched(
                keeping.by_lease, self.by_lease, LEASE_KEY, "leases by account"
            ),
            calls=self._switched(keeping.calls, self.calls, CALL_KEY, "what called dApps did"),
        )

    def _switched(
        self, wanted: bool | None, present: bool, key: str, what: str, mode: str = ""
    ) -> bool:
        if mode == PRUNED:
            # A list that ends somewhere would look like a whole one.
            wanted = False
        if wanted is None:
            return present
        if wanted and not present:
            self._refuse(f"{key} = yes", what)
        return wanted

    def _refuse(self, setting: str, what: str) -> None:
        raise WrongMode(
            f"{setting} needs what this store has deleted, {what}: remove the setting, or choose "
            "another directory and import or synchronize the chain anew"
        )


class KeptNow:
    """What is kept at present, for a store and its branches."""

    __slots__ = ("value",)

    def __init__(self, value: Kept) -> None:
        self.value = value


EVERYTHING: Final = Kept()
AS_IT_IS: Final = Keeping()
"""The settings that change nothing."""
encode_kept: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Kept).decode


def decode_kept(raw: bytes) -> Kept:
    """Decode the record; raises ``ValueError``."""
    kept = _decode(raw)
    if kept.mode not in MODES or min(kept.blocks_from, kept.balances_from, kept.changes_from) < 1:
        raise ValueError(f"{kept} is nothing that a store can keep")
    return kept
