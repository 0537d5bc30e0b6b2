"""Microblocks and their two encodings: a generator's additions to its block between key blocks.

A microblock of version 3 or 4 has a binary layout, one of version 5 is a protobuf message on the
wire (some nodes send older ones as messages too). The signed bytes are the binary layout in all
versions.

What lives here: the record and its bytes. What does not: extending a block (``blocks.extended``),
announcements (``soliton.wire``).

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/block/serialization/MicroBlockSerializer.scala`` and
``protobuf/block/PBMicroBlocks.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain import protobuf
from soliton.chain.blocks import (
    BLOCK_HASH_LENGTH,
    MAX_BLOCK_BYTES,
    NG_VERSION,
    PROTOBUF_VERSION,
    Encoded,
    check_lengths,
    reading_messages,
    reading_transactions,
    write_transactions,
)
from soliton.chain.errors import FormatError
from soliton.chain.finalization import (
    FinalizationVoting,
    encoded_voting,
    fill_voting,
    read_voting,
)
from soliton.chain.layouts import SIGNATURE_LENGTH, take
from soliton.chain.proto import block_pb2
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto.curve25519 import is_weak, verify
from soliton.crypto.curve25519 import sign as sign_bytes
from soliton.steps import Steps, run_steps

MAX_TRANSACTIONS: Final = 500
"""The limit of a microblock that is made, or read in binary form; messages are not counted.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/block/validation/``
``Validators.scala``, which ``protobuf/block/PBMicroBlocks.scala`` does not ask.
"""
MAX_VERSION: Final = 127

_KEY_LENGTH: Final = 32
_COUNT_WIDTH: Final = 4
_PROTOBUF_FIRST_BYTE: Final = 0x0A


class Microblock(msgspec.Struct, frozen=True, gc=False):
    """A microblock. ``signed`` are the signed bytes.

    ``reference`` is the id of the block that it extends, ``total_signature`` the generator's
    signature of the resulting block and ``total_block_id`` the id of that (the same in versions 3
    and 4). ``generator`` is a public key. ``finalization_voting`` has all endorsers so far, and
    only those conflicts that are not in the block that it extends.
    """

    version: int
    reference: bytes
    total_signature: bytes
    generator: bytes
    transactions: tuple[AnyTransaction, ...]
    signature: bytes
    total_block_id: bytes
    state_hash: bytes | None
    signed: bytes
    finalization_voting: FinalizationVoting | None = None


def decode(data: bytes, chain_id: int) -> Microblock:
    """Decode a microblock as peers send it, legacy or protobuf; raise a ``ChainError``."""
    return run_steps(decoding(data, chain_id))


def decoding(data: bytes, chain_id: int) -> Steps[Microblock]:
    """Do the same in steps of some transactions."""
    if len(data) > MAX_BLOCK_BYTES:
        raise FormatError(f"{len(data)} bytes are more than a block can have ({MAX_BLOCK_BYTES})")
    if data[:1] == bytes((_PROTOBUF_FIRST_BYTE,)):
        return (yield from _decoding_protobuf(data, chain_id))
    return (yield from _decoding_legacy(data, chain_id))


def encode(microblock: Microblock) -> bytes:
    """Encode a microblock as peers send it: legacy or protobuf, depending on its version."""
    if microblock.version < PROTOBUF_VERSION:
        return microblock.signed + microblock.signature
    return encode_protobuf(microblock)


def encode_protobuf(microblock: Microblock) -> bytes:
    """Encode a microblock of any version as a message."""
    return protobuf.serialize(_message(microblock))


def assemble(
    *,
    version: int,
    reference: bytes,
    total_signature: bytes,
    generator: bytes,
    transactions: tuple[AnyTransaction, ...],
    signature: bytes = b"",
    total_block_id: bytes = b"",
    state_hash: bytes | None = None,
    encoded: Encoded | None = None,
    finalization_voting: FinalizationVoting | None = None,
) -> Microblock:
    """Assemble a microblock, with its signed bytes; ``encoded`` are its transactions in protobuf,
    if they are known.
    """
    if version < PROTOBUF_VERSION:
        total_block_id = total_signature
    if version < PROTOBUF_VERSION:
        encoded = tuple(map(codec.encode, transactions))
    elif encoded is None:
        encoded = tuple(map(codec.encode_protobuf, transactions))
    body = write_transactions(encoded, _COUNT_WIDTH)
    signed = b"".join(
        (
            bytes((version,)),
            reference,
            total_signature,
            len(body).to_bytes(4, "big"),
            body,
            generator,
            state_hash or b"",
            encoded_voting(finalization_voting),
        )
    )
    return Microblock(
        version,
        reference,
        total_signature,
        generator,
        transactions,
        signature,
        total_block_id,
        state_hash,
        signed,
        finalization_voting,
    )


def sign(microblock: Microblock, private_key: bytes, random: bytes | None = None) -> Microblock:
    """Return the microblock with its generator's signature."""
    signature = sign_bytes(private_key, microblock.signed, random)
    return msgspec.structs.replace(microblock, signature=signature)


def signature_is_valid(microblock: Microblock) -> bool:
    """Whether the generator's signature is valid; that of a weak key never is."""
    return not is_weak(microblock.generator) and verify(
        microblock.generator, microblock.signed, microblock.signature
    )


# --- versions 3 and 4 -----------------------------------------------------------------------------


def _decoding_legacy(data: bytes, chain_id: int) -> Steps[Microblock]:
    version = take(data, 0, 1)[0]
    if not NG_VERSION <= version < PROTOBUF_VERSION:
        raise FormatError(f"no legacy microblock has version {version}")
    reference = take(data, 1, SIGNATURE_LENGTH)
    total_signature = take(data, 1 + SIGNATURE_LENGTH, SIGNATURE_LENGTH)
    offset = 1 + 2 * SIGNATURE_LENGTH
    length = int.from_bytes(take(data, offset, 4), "big", signed=True)
    content = take(data, offset + 4, length)
    offset += 4 + length
    generator = take(data, offset, _KEY_LENGTH)
    signature = take(data, offset + _KEY_LENGTH, SIGNATURE_LENGTH)
    offset += _KEY_LENGTH + SIGNATURE_LENGTH
    if offset != len(data):
        raise FormatError(f"{len(data) - offset} bytes after the microblock")
    transactions = yield from reading_transactions(
        content, _COUNT_WIDTH, MAX_TRANSACTIONS, chain_id
    )
    return Microblock(
        version,
        reference,
        total_signature,
        generator,
        transactions,
        signature,
        total_signature,
        None,
        data[:-SIGNATURE_LENGTH],
    )


# --- protobuf -------------------------------------------------------------------------------------


def _decoding_protobuf(data: bytes, chain_id: int) -> Steps[Microblock]:
    outer = protobuf.parse(block_pb2.SignedMicroBlock, data)
    message = outer.micro_block
    check_lengths(
        (
            ("reference", message.reference, (BLOCK_HASH_LENGTH, SIGNATURE_LENGTH)),
            ("total signature", message.updated_block_signature, (SIGNATURE_LENGTH,)),
            ("generator", message.sender_public_key, (_KEY_LENGTH,)),
            ("signature", outer.signature, (SIGNATURE_LENGTH,)),
            ("total block id", outer.total_block_id, (BLOCK_HASH_LENGTH, SIGNATURE_LENGTH)),
            ("state hash", message.state_hash, (0, BLOCK_HASH_LENGTH)),
        )
    )
    if not NG_VERSION <= message.version <= MAX_VERSION:
        raise FormatError(f"no protobuf microblock has version {message.version}")
    transactions, encoded = yield from reading_messages(message.transactions, chain_id)
    return assemble(
        version=message.version,
        reference=message.reference,
        total_signature=message.updated_block_signature,
        generator=message.sender_public_key,
        transactions=transactions,
        signature=outer.signature,
        total_block_id=outer.total_block_id,
        state_hash=message.state_hash or None,
        encoded=encoded,
        finalization_voting=read_voting(message.finalization_voting, chain_id)
        if message.HasField("finalization_voting")
        else None,
    )


def _message(microblock: Microblock) -> block_pb2.SignedMicroBlock:
    outer = block_pb2.SignedMicroBlock(
        signature=microblock.signature, total_block_id=microblock.total_block_id
    )
    message = outer.micro_block
    message.version = microblock.version
    message.reference = microblock.reference
    message.updated_block_signature = microblock.total_signature
    message.sender_public_key = microblock.generator
    message.state_hash = microblock.state_hash or b""
    if microblock.finalization_voting is not None:
        fill_voting(message.finalization_voting, microblock.finalization_voting)
    for transaction in microblock.transactions:
        message.transactions.add().MergeFromString(codec.encode_protobuf(transaction))
    return outer


def peek_total_id(data: bytes) -> bytes:
    """Return the total block id of an encoded microblock without decoding the rest.

    Raises a ``ChainError``.
    """
    if data[:1] == bytes((_PROTOBUF_FIRST_BYTE,)):
        return protobuf.parse(block_pb2.SignedMicroBlock, data).total_block_id
    return take(data, 1 + SIGNATURE_LENGTH, SIGNATURE_LENGTH)
