"""The header of a block whose transactions were deleted, without what its metadata hold.

A header has a hundred bytes of its own at most; the rest are ids and keys that the metadata of the
block and its parent hold already. These are cut out, and put back when the header is read.

What lives here: the record. What does not: blocks (``soliton.chain.blocks``).
"""

from __future__ import annotations

import msgspec

from soliton.ledger.environment import BlockMeta


class _Header(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The bytes that are left, and where each known part was: its place among the bytes that were
    left before it was cut out, ``None`` if it was not there.
    """

    rest: bytes
    places: list[int | None]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Header).decode


def _known(meta: BlockMeta, parent: BlockMeta) -> tuple[bytes, ...]:
    return meta.id, parent.id, meta.generator, meta.hit_source


def encode_header(header: bytes, meta: BlockMeta, parent: BlockMeta) -> bytes:
    """Return the record of a header, the bytes of a block without transactions."""
    rest, places = header, list[int | None]()
    for part in _known(meta, parent):
        place = rest.find(part) if part else -1
        if place < 0:
            places.append(None)
            continue
        places.append(place)
        rest = rest[:place] + rest[place + len(part) :]
    return _encode(_Header(rest, places))


def decode_header(raw: bytes, meta: BlockMeta, parent: BlockMeta) -> bytes:
    """Return the bytes of a header; raises ``ValueError`` for a record that is none."""
    record = _decode(raw)
    rest = record.rest
    known = _known(meta, parent)
    if len(record.places) != len(known):
        raise ValueError(f"a header with {len(record.places)} parts")
    for part, place in zip(reversed(known), reversed(record.places), strict=True):
        if place is None:
            continue
        if not 0 <= place <= len(rest):
            raise ValueError(f"a part of a header at {place}")
        rest = rest[:place] + part + rest[place:]
    return rest
