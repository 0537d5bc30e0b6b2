"""Names of places on a chain: the ``id`` of an event, from which a client can go on later.

An id says how far a client has come: a block's height, how many of the block's transactions it
knows and how many it has been told that there are; a digest of what identifies the block and of the
transactions that it knows; and, so that a client on an abandoned fork can be told how far to go
back, the beginnings of the ids of some blocks below. It
holds all that is needed to go on: the node remembers nothing about its clients, and another node of
the network can take over.

What lives here: the text, and finding a place on a chain. What does not: events (``feed``).
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from typing import Final, NamedTuple

from soliton.chain.blocks import decode_header, transaction_spans
from soliton.errors import InputError
from soliton.node.blockchain import Blockchain
from soliton.storage.damage import UNREADABLE, unreadable
from soliton.storage.layout import BLOCK, height_key

MAX_HISTORY_BLOCKS: Final = 10_000
"""So far back a client can go on; as far as the store can take blocks back by default."""
MAX_ID_CHARS: Final = 128

_DIGEST_BYTES: Final = 12
_BEGINNING_BYTES: Final = 6
_STEPS_BACK: Final = (1, 2, 4, 8, 16, 32, 64, 100)
"""Which blocks below are named: near ones closely; no node follows a fork of over 100 blocks."""
_PARTS: Final = 5
_MAX_DIGITS: Final = 10


class UnknownPlace(InputError):
    """An id that is none, is too old, or belongs to no chain that has blocks in common with ours
    where the id names them.
    """


class Place(NamedTuple):
    """Behind so many transactions of the block at a height; places of one chain have an order."""

    height: int
    behind: int


class BlockBytes:
    """The transactions of one block, with digests of the first of them.

    The digest covers what does not change while the block grows.
    """

    __slots__ = ("_below", "_hashed", "_hasher", "_start", "data", "height", "spans")

    def __init__(self, chain: Blockchain, height: int) -> None:
        """The block at a height of the chain; raises ``KeyError`` where there is none."""
        self.height = height
        data = _data(chain, height)
        try:
            header, _ = decode_header(data, chain.network.chain_id)
            self.spans = transaction_spans(data)
        except UNREADABLE as error:
            raise unreadable(height_key(BLOCK, height), error) from error
        self._start = blake2b(digest_size=_DIGEST_BYTES)
        for part in (header.reference, header.generator, header.generation_signature):
            self._start.update(part)
        self._start.update(header.timestamp.to_bytes(8, "big"))
        self._hasher = self._start.copy()
        self._hashed = 0
        steps = [step for step in _STEPS_BACK if step < height]
        found = [chain.meta(height - step).id[:_BEGINNING_BYTES] for step in steps]
        self._below = urlsafe_b64encode(b"".join(found)).decode()
        self.data = data

    def follow(self, chain: Blockchain) -> None:
        """Take over the block's present form, which is longer or the same."""
        if self.height == chain.height:
            if self.data is chain.last_block.data:
                return
        elif len(self.data) == chain.meta(self.height).size:
            return
        self.data = _data(chain, self.height)
        self.spans = transaction_spans(self.data)

    def piece(self, index: int) -> bytes:
        """The bytes of a transaction."""
        offset, length = self.spans[index]
        return self.data[offset : offset + length]

    def digest(self, count: int) -> bytes:
        """The digest of the block with its first ``count`` transactions."""
        if count < self._hashed:
            self._hasher, self._hashed = self._start.copy(), 0
        for index in range(self._hashed, count):
            self._hasher.update(self.piece(index))
        self._hashed = count
        return self._hasher.copy().digest()

    def event_id(self, count: int, told: int) -> str:
        """The id of the place behind ``count`` transactions of the block, of which the client was
        told that it has ``told``.
        """
        digest = urlsafe_b64encode(self.digest(count)).decode()
        return f"{self.height}.{count}.{told}.{digest}.{self._below}"


def _data(chain: Blockchain, height: int) -> bytes:
    found = chain.last_block.data if height == chain.height else chain.store.block_data(height)
    if found is None:
        raise KeyError(height)
    return found


class Found(NamedTuple):
    """Where to go on: the place, how many transactions the client has been told that the block has,
    and whether it has to go back to there first.
    """

    place: Place
    told: int
    back: bool


def find_place(chain: Blockchain, text: str) -> Found:
    """Where to go on behind an event; raises ``UnknownPlace``."""
    place, told, digest, below = _parse(text)
    oldest = max(1, chain.height - MAX_HISTORY_BLOCKS)
    if oldest <= place.height <= chain.height:
        block = BlockBytes(chain, place.height)
        if place.behind <= len(block.spans) and block.digest(place.behind) == digest:
            return Found(place, max(place.behind, min(told, len(block.spans))), False)
    for step, beginning in zip(_STEPS_BACK, below, strict=False):
        height = place.height - step
        if oldest <= height <= chain.height and chain.meta(height).id.startswith(beginning):
            count = chain.meta(height).transaction_count
            return Found(Place(height, count), count, True)
    if place.height < oldest:
        raise UnknownPlace(f"the event is too old: events go back to height {oldest}")
    raise UnknownPlace("the event belongs to no block of this chain, nor do those below it")


def _parse(text: str) -> tuple[Place, int, bytes, list[bytes]]:
    parts = text.split(".")
    if len(text) > MAX_ID_CHARS or len(parts) != _PARTS:
        raise UnknownPlace("this is no id of an event")
    height, count, told = (_number(part) for part in parts[:3])
    try:
        digest, joined = (urlsafe_b64decode(part.encode()) for part in parts[3:])
    except ValueError as error:
        raise UnknownPlace("this is no id of an event") from error
    starts = range(0, len(joined), _BEGINNING_BYTES)
    below = [joined[at : at + _BEGINNING_BYTES] for at in starts]
    if any(len(each) != _BEGINNING_BYTES for each in below):
        raise UnknownPlace("this is no id of an event")
    return Place(height, count), told, digest, below


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS):
        raise UnknownPlace("this is no id of an event")
    return int(text)
