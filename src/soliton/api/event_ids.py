"""Event ids: places on a chain from which a client can resume its stream.

An id has the height of a block, the number of its transactions that the client has received, and
the number that it has been told of; a digest of the block's identity and of the received
transactions; and the first bytes of the ids of some earlier blocks, which tell a client on an
abandoned fork how far to roll back. An id is complete: the node keeps no state about its clients,
and a client can resume at another node.

What lives here: the text form, and finding a place on a chain. What does not: events
(``event_stream``).
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
"""How far back a client can resume: as far as the store can roll back by default."""
MAX_ID_CHARS: Final = 128

_DIGEST_BYTES: Final = 12
_BEGINNING_BYTES: Final = 6
_STEPS_BACK: Final = (1, 2, 4, 8, 16, 32, 64, 100)
"""Distances of the earlier blocks in an id. No node switches to a fork of over 100 blocks."""
_PARTS: Final = 5
_MAX_DIGITS: Final = 10


class UnknownPlace(InputError):
    """An id that is malformed, too old, or has no block in common with this chain."""


class Place(NamedTuple):
    """The place after ``offset`` transactions of a block. Places of one chain are ordered."""

    height: int
    offset: int


class BlockBytes:
    """The transactions of one block, and digests of its prefixes.

    The digest covers only what does not change while the block grows.
    """

    __slots__ = ("_below", "_hashed", "_hasher", "_start", "data", "height", "spans")

    def __init__(self, chain: Blockchain, height: int) -> None:
        """Read the block at a height; raises ``KeyError`` if there is none."""
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
        """Reload the block if it has grown."""
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

    def event_id(self, count: int, known: int) -> str:
        """The id of the place after ``count`` transactions, for a client that was told that the
        block has ``known``.
        """
        digest = urlsafe_b64encode(self.digest(count)).decode()
        return f"{self.height}.{count}.{known}.{digest}.{self._below}"


def _data(chain: Blockchain, height: int) -> bytes:
    found = chain.last_block.data if height == chain.height else chain.store.block_data(height)
    if found is None:
        raise KeyError(height)
    return found


class Found(NamedTuple):
    """Where to resume: the place, the number of the block's transactions that the client was told
    of, and whether the client has to roll back to the place first.
    """

    place: Place
    known: int
    back: bool


def oldest_events(chain: Blockchain) -> int:
    """The lowest height that events can be asked from."""
    return max(chain.height - MAX_HISTORY_BLOCKS, chain.store.kept.blocks_from)


def find_place(chain: Blockchain, text: str) -> Found:
    """Where to resume after an event; raises ``UnknownPlace``."""
    place, known, digest, below = _parse(text)
    oldest = oldest_events(chain)
    if oldest <= place.height <= chain.height:
        block = BlockBytes(chain, place.height)
        if place.offset <= len(block.spans) and block.digest(place.offset) == digest:
            return Found(place, max(place.offset, min(known, len(block.spans))), False)
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
    height, count, known = (_number(part) for part in parts[:3])
    try:
        digest, joined = (urlsafe_b64decode(part.encode()) for part in parts[3:])
    except ValueError as error:
        raise UnknownPlace("this is no id of an event") from error
    starts = range(0, len(joined), _BEGINNING_BYTES)
    below = [joined[at : at + _BEGINNING_BYTES] for at in starts]
    if any(len(each) != _BEGINNING_BYTES for each in below):
        raise UnknownPlace("this is no id of an event")
    return Place(height, count), known, digest, below


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS):
        raise UnknownPlace("this is no id of an event")
    return int(text)
