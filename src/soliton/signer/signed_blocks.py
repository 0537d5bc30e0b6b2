"""Double-signing protection: one block on each parent, one microblock on each form of a block.

Two blocks of one generator on the same parent, or two microblocks on the same form, are
conflicting histories signed by one key. This record of what was signed prevents that. Signing is
idempotent: the same request gets the same signatures, since the first answer may have been lost.

What lives here: the record. What does not: the bytes and the signing (``generating``), the lines
(``records``).
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.signer.records import Entry, MarkKind

MAX_REORGANIZATIONS: Final = 100
"""How many heights below the highest one are kept, the protocol's limit of a rollback. Below them
nothing is signed.
"""


class OnParent(msgspec.Struct):
    """The line of the block on a parent, and that of its newest microblock."""

    block: Entry
    micro: Entry | None = None

    @property
    def form(self) -> str:
        """The id of the form that the next microblock extends."""
        mark = (self.micro or self.block).mark
        return "" if mark is None else mark.form


class SignedBlocks:
    """What was signed, by the public keys of generators."""

    def __init__(self) -> None:
        self._by_key: dict[str, dict[str, OnParent]] = {}
        self._highest: dict[str, int] = {}

    def on_parent(self, key: str, parent: str) -> OnParent | None:
        """Return what the key has signed on a parent."""
        return self._by_key.get(key, {}).get(parent)

    def highest(self, key: str) -> int:
        """Return the greatest height of a block that the key has signed, 0 for none."""
        return self._highest.get(key, 0)

    def apply(self, entry: Entry) -> None:
        """Apply a line of the journal, if it is about a block."""
        mark = entry.mark
        if mark is None:
            return
        of_key = self._by_key.setdefault(mark.key, {})
        if mark.kind is MarkKind.MICROBLOCK:
            # A microblock of a forgotten block is too old to be extended.
            if (found := of_key.get(mark.parent)) is not None:
                found.micro = entry
            return
        of_key[mark.parent] = OnParent(entry)
        if mark.height > self.highest(mark.key):
            self._highest[mark.key] = mark.height
            self._forget(of_key, mark.height - MAX_REORGANIZATIONS)

    @staticmethod
    def _forget(of_key: dict[str, OnParent], height: int) -> None:
        for parent, it in list(of_key.items()):
            if it.block.mark is not None and it.block.mark.height <= height:
                del of_key[parent]

    def kept(self) -> tuple[Entry, ...]:
        """Return the lines for a checkpoint."""
        return tuple(
            each
            for of_key in self._by_key.values()
            for it in of_key.values()
            for each in (it.block, it.micro)
            if each is not None
        )

    def restore(self, kept: tuple[Entry, ...]) -> None:
        """Restore the lines of a checkpoint."""
        self._by_key.clear()
        self._highest.clear()
        for each in kept:
            self.apply(each)
