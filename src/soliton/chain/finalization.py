"""Endorsements of blocks, and the votings in headers and microblocks that collect them.

A committed generator endorses the parent of the last key block with its BLS key. A voting has the
indexes of those who endorsed it, one aggregate of their signatures, and whole endorsements that
conflict with the chain.

What lives here: the records, their bytes and their signed message. What does not: who may endorse,
and when a block is final (``soliton.ledger``).

Sources: wavesplatform/protobuf-schemas ``proto/waves/block.proto``; wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/block/{BlockEndorsement,FinalizationVoting}.scala``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from soliton.chain import fields, kinds, protobuf
from soliton.chain.errors import FormatError
from soliton.chain.fields import Field, Kind, MessageKind
from soliton.chain.proto import block_pb2
from soliton.crypto import bls
from soliton.crypto.bls import SIGNATURE_LENGTH

MAX_ENDORSERS: Final = 65_535
"""The limit for parsing; a network allows at most some hundred endorsers in a voting."""
MAX_ENDORSEMENT_BYTES: Final = 512
"""The limit of a single endorsement: two block ids, two numbers and a signature take 244."""
GENERATION_DEPOSIT: Final = 10_000_000_000
"""What a commitment to generation locks, in wavelets: until the end of the period, or for good
after a conflicting endorsement.
"""
_HEIGHT_BYTES: Final = 4
_HEIGHT_BITS: Final = 2 ** (8 * _HEIGHT_BYTES) - 1


class BlockEndorsement(msgspec.Struct, frozen=True, gc=False):
    """A generator's endorsement of a block.

    ``endorser_index`` is its place among the generators that committed to the period, and
    ``finalized_id`` the block that it knows to be final, at ``finalized_height``.
    """

    endorser_index: int
    finalized_id: bytes
    finalized_height: int
    endorsed_id: bytes
    signature: bytes


class FinalizationVoting(msgspec.Struct, frozen=True, gc=False):
    """The endorsements of a block's parent.

    The endorsers with these indexes have all signed the block at ``finalized_height``;
    ``aggregate`` is the sum of their signatures, ``None`` if there are none. ``conflicts`` are
    endorsements that name another final block.
    """

    endorser_indexes: tuple[int, ...]
    finalized_height: int
    aggregate: bytes | None
    conflicts: tuple[BlockEndorsement, ...] = ()


def endorsement_message(finalized_id: bytes, finalized_height: int, endorsed_id: bytes) -> bytes:
    """Return the bytes that an endorser signs."""
    height = (finalized_height & _HEIGHT_BITS).to_bytes(_HEIGHT_BYTES, "big")
    return finalized_id + height + endorsed_id


def message_of(endorsement: BlockEndorsement) -> bytes:
    """Return the bytes that an endorsement's signature is of."""
    return endorsement_message(
        endorsement.finalized_id, endorsement.finalized_height, endorsement.endorsed_id
    )


def sign_endorsement(
    secret_key: bytes,
    endorser_index: int,
    finalized_id: bytes,
    finalized_height: int,
    endorsed_id: bytes,
) -> BlockEndorsement:
    """Return the endorsement of a block, signed with a BLS key."""
    message = endorsement_message(finalized_id, finalized_height, endorsed_id)
    return BlockEndorsement(
        endorser_index, finalized_id, finalized_height, endorsed_id, bls.sign(secret_key, message)
    )


def combined(
    old: FinalizationVoting | None, new: FinalizationVoting | None
) -> FinalizationVoting | None:
    """Return the voting of a block that had an ``old`` one when a microblock brings a ``new``
    one, which has all endorsers, but only further conflicts.
    """
    if old is None or new is None:
        return old if new is None else new
    return msgspec.structs.replace(new, conflicts=old.conflicts + new.conflicts)


def added(
    old: FinalizationVoting | None, total: FinalizationVoting | None
) -> FinalizationVoting | None:
    """Return the voting of the microblock that turns an ``old`` voting into the ``total`` one: the
    opposite of ``combined``; ``None`` if nothing has changed.
    """
    if total is None or total == old:
        return None
    known = 0 if old is None else len(old.conflicts)
    return msgspec.structs.replace(total, conflicts=total.conflicts[known:])


# --- messages -------------------------------------------------------------------------------------


def _signature(data: bytes, _chain_id: int) -> bytes:
    if len(data) != SIGNATURE_LENGTH:
        raise FormatError(f"endorsement signature of {len(data)} bytes")
    return data


def _aggregate(data: bytes, chain_id: int) -> bytes | None:
    return _signature(data, chain_id) if data else None


def _indexes(numbers: Sequence[int], _chain_id: int) -> tuple[int, ...]:
    if len(numbers) > MAX_ENDORSERS:
        raise FormatError(f"{len(numbers)} endorsers are more than {MAX_ENDORSERS}")
    return tuple(numbers)


_ANY: Final = Kind()
_ENDORSEMENT_FIELDS: Final = (
    Field("endorser_index", _ANY),
    Field("finalized_id", _ANY, path="finalized_block_id"),
    Field("finalized_height", _ANY, path="finalized_block_height"),
    Field("endorsed_id", _ANY, path="endorsed_block_id"),
    Field("signature", Kind(message=MessageKind(_signature))),
)
_read_endorsement: Final = fields.message_reader(BlockEndorsement, _ENDORSEMENT_FIELDS)
_fill_endorsement: Final = fields.message_writer(BlockEndorsement, _ENDORSEMENT_FIELDS)
_ENDORSEMENTS: Final = fields.messages_of(BlockEndorsement, _ENDORSEMENT_FIELDS)


def _conflicts(messages: Any, chain_id: int) -> tuple[BlockEndorsement, ...]:  # noqa: ANN401 - a repeated member
    if len(messages) > MAX_ENDORSERS:
        raise FormatError(f"{len(messages)} endorsements are more than {MAX_ENDORSERS}")
    return tuple(_read_endorsement(each, chain_id) for each in messages)


_VOTING_FIELDS: Final = (
    Field(
        "endorser_indexes",
        Kind(message=MessageKind(_indexes, fill=lambda numbers, value: numbers.extend(value))),
    ),
    Field("finalized_height", _ANY, path="finalized_block_height"),
    Field(
        "aggregate",
        Kind(message=MessageKind(_aggregate, kinds.OPTIONAL_BYTES.write)),
        path="aggregated_endorsement_signature",
    ),
    Field(
        "conflicts",
        Kind(message=MessageKind(_conflicts, fill=_ENDORSEMENTS.fill)),
        path="conflict_endorsements",
    ),
)
VOTING: Final = Kind(message=fields.message_of(FinalizationVoting, *_VOTING_FIELDS))
"""An optional voting in a message."""
read_voting: Final = fields.message_reader(FinalizationVoting, _VOTING_FIELDS)
fill_voting: Final = fields.message_writer(FinalizationVoting, _VOTING_FIELDS)


def encode_voting(voting: FinalizationVoting) -> bytes:
    """Encode a voting."""
    message = block_pb2.FinalizationVoting()
    fill_voting(message, voting)
    return protobuf.serialize(message)


def encoded_voting(voting: FinalizationVoting | None) -> bytes:
    """Encode a voting that may be missing; it has at least one byte otherwise."""
    return b"" if voting is None else encode_voting(voting)


def decoded_voting(data: bytes) -> FinalizationVoting | None:
    """The inverse of ``encoded_voting``."""
    return decode_voting(data) if data else None


def decode_voting(data: bytes) -> FinalizationVoting:
    """Decode a voting; raise ``FormatError``."""
    voting: FinalizationVoting = read_voting(protobuf.parse(block_pb2.FinalizationVoting, data), 0)
    return voting


def encode_endorsement(endorsement: BlockEndorsement) -> bytes:
    """Encode an endorsement as peers send it."""
    message = block_pb2.EndorseBlock()
    _fill_endorsement(message, endorsement)
    return protobuf.serialize(message)


def decode_endorsement(data: bytes) -> BlockEndorsement:
    """Decode an endorsement; raise ``FormatError``."""
    if len(data) > MAX_ENDORSEMENT_BYTES:
        raise FormatError(f"{len(data)} bytes are more than an endorsement can have")
    endorsement: BlockEndorsement = _read_endorsement(
        protobuf.parse(block_pb2.EndorseBlock, data), 0
    )
    return endorsement
