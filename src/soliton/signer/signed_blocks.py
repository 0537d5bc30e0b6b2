"""Double-signing protection: one block on each parent, one microblock on each form of a block.

Two blocks of one generator on the same parent, or two microblocks on the same form, are
conflicting histories signed by one key. This record of what was signed prevents that. Signing is
idempotent: the same request gets the same signatures, since the first answer may have been lost.

A parent is never forgotten because of anything that a node says, such as a height. The newest
blocks are kept as a whole, of older ones only a digest of the parent: nothing is signed on it
again. Their number is bounded, and a digest makes room only once it is old by the signer's own
clock; a key that has signed more blocks than that waits.

What lives here: the record. What does not: the bytes and the signing (``generating``), the lines
(``records``).
"""

from __future__ import annotations

import base64
import hashlib
from typing import Final

import msgspec

from soliton.signer.journal import AuditProblem
from soliton.signer.records import Entry, MarkKind, OldParents

MAX_WHOLE: Final = 100
"""Limit on the blocks of a key that are kept as a whole: a node can ask for their signatures again,
and add microblocks to them. It is the protocol's limit of a rollback.
"""
MAX_PARENTS: Final = 200_000
"""Limit on the parents of a key."""
KEPT_MS: Final = 7 * 24 * 60 * 60 * 1_000
"""How long a parent is kept at least. Within this time no network makes ``MAX_PARENTS`` blocks."""
_DIGEST_BYTES: Final = 16
_TIME_BYTES: Final = 6
_RECORD_BYTES: Final = _DIGEST_BYTES + _TIME_BYTES


class OnParent(msgspec.Struct):
    """The line of the block on a parent, and that of its newest microblock."""

    block: Entry
    micro: Entry | None = None

    @property
    def form(self) -> str:
        """The id of the form that the next microblock extends."""
        mark = (self.micro or self.block).mark
        return "" if mark is None else mark.form


class _OfKey:
    """What one key has signed, the oldest first."""

    __slots__ = ("old", "whole")

    def __init__(self) -> None:
        self.whole: dict[str, OnParent] = {}
        self.old: dict[bytes, int] = {}
        """Digests of parents, with the times of their lines."""

    def add(self, parent: str, entry: Entry) -> None:
        self.whole[parent] = OnParent(entry)
        while len(self.whole) > MAX_WHOLE:
            oldest = next(iter(self.whole))
            self.old[_digest(oldest)] = self.whole.pop(oldest).block.time
        while len(self.whole) + len(self.old) > MAX_PARENTS:
            del self.old[next(iter(self.old))]


class SignedBlocks:
    """What was signed, by the public keys of generators."""

    def __init__(self) -> None:
        self._by_key: dict[str, _OfKey] = {}

    def on_parent(self, key: str, parent: str) -> OnParent | None:
        """Return what the key has signed on a parent, if that is kept as a whole."""
        of_key = self._by_key.get(key)
        return None if of_key is None else of_key.whole.get(parent)

    def is_old(self, key: str, parent: str) -> bool:
        """Whether the key has signed a block on a parent of which only the digest is kept."""
        of_key = self._by_key.get(key)
        return of_key is not None and _digest(parent) in of_key.old

    def has_room(self, key: str, now: int) -> bool:
        """Whether another parent can be kept; ``now`` is a time of the signer's clock in
        milliseconds.
        """
        of_key = self._by_key.get(key)
        if of_key is None or len(of_key.whole) + len(of_key.old) < MAX_PARENTS:
            return True
        return next(iter(of_key.old.values()), now) <= now - KEPT_MS

    def apply(self, entry: Entry) -> None:
        """Apply a line of the journal, if it is about a block."""
        mark = entry.mark
        if mark is None:
            return
        of_key = self._by_key.setdefault(mark.key, _OfKey())
        if mark.kind is MarkKind.BLOCK:
            of_key.add(mark.parent, entry)
        elif (found := of_key.whole.get(mark.parent)) is not None:
            found.micro = entry

    def kept(self) -> tuple[Entry, ...]:
        """Return the lines for a checkpoint."""
        return tuple(
            each
            for of_key in self._by_key.values()
            for it in of_key.whole.values()
            for each in (it.block, it.micro)
            if each is not None
        )

    def old_parents(self) -> tuple[OldParents, ...]:
        """Return the digests for a checkpoint."""
        return tuple(
            OldParents(
                key,
                base64.b64encode(
                    b"".join(
                        digest + time.to_bytes(_TIME_BYTES, "big")
                        for digest, time in of_key.old.items()
                    )
                ).decode(),
            )
            for key, of_key in self._by_key.items()
            if of_key.old
        )

    def restore(self, kept: tuple[Entry, ...], old: tuple[OldParents, ...]) -> None:
        """Restore the lines and digests of a checkpoint; raises ``AuditProblem``."""
        self._by_key.clear()
        for parents in old:
            of_key = self._by_key.setdefault(parents.key, _OfKey())
            data = _records_of(parents)
            for start in range(0, len(data), _RECORD_BYTES):
                middle = start + _DIGEST_BYTES
                time = int.from_bytes(data[middle : start + _RECORD_BYTES], "big")
                of_key.old[data[start:middle]] = time
        for each in kept:
            self.apply(each)


def _records_of(parents: OldParents) -> bytes:
    try:
        data = base64.b64decode(parents.records, validate=True)
    except ValueError:
        data = b"?"
    if len(data) % _RECORD_BYTES:
        raise AuditProblem("the log's last checkpoint has parents of blocks that cannot be read")
    return data


def _digest(parent: str) -> bytes:
    return hashlib.blake2b(parent.encode(), digest_size=_DIGEST_BYTES).digest()
