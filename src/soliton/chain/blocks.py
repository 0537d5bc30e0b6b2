"""Blocks: a header, the generator's signature and the transactions; their two encodings.

Versions 1 to 4 have a binary layout of their own, version 5 is a protobuf message. A block's id is
its signature (versions 1 to 4) or the hash of its header (version 5).

What lives here: the records and their bytes. What does not: which version, generator, delay or base
target is right (``soliton.consensus``), JSON (the REST interface), microblocks.

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/block/serialization`` and
``protobuf/block/PBBlocks.scala``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import msgspec

from soliton.chain import protobuf
from soliton.chain.errors import FormatError, WrongChainId
from soliton.chain.layouts import SIGNATURE_LENGTH, take
from soliton.chain.proto import block_pb2
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import merkle
from soliton.crypto.curve25519 import is_weak, verify
from soliton.crypto.curve25519 import sign as sign_bytes
from soliton.crypto.hashes import blake2b256

GENESIS_VERSION: Final = 1
PLAIN_VERSION: Final = 2
NG_VERSION: Final = 3
REWARD_VERSION: Final = 4
PROTOBUF_VERSION: Final = 5

GENERATION_SIGNATURE_LENGTH: Final = 32
VRF_PROOF_LENGTH: Final = 96
BLOCK_HASH_LENGTH: Final = 32
MAX_FEATURE_VOTES: Final = 64
NO_REWARD_VOTE: Final = -1
MAX_BLOCK_BYTES: Final = 4_194_304
"""Far above the megabyte of transactions that a block may carry; nothing larger is parsed."""
MAX_TRANSACTIONS: Final = 65_535
"""A bound for parsing; how many a block may hold is a rule (``soliton.ledger.apply``)."""

_CONSENSUS_LENGTH: Final = 40
_HEADER: Final = struct.Struct(">Bq64siq32si")
_TRAILER: Final = struct.Struct(">32s64s")
_PROTOBUF_FIRST_BYTE: Final = 0x0A
_TRANSACTIONS_TAG: Final = 0x1A
_HEADER_FIELD: Final = 1
_SIGNATURE_FIELD: Final = 2
_TRANSACTIONS_FIELD: Final = 3


class ChallengedHeader(msgspec.Struct, frozen=True, gc=False):
    """The header values of a block whose generator put a wrong state hash into it."""

    base_target: int
    generation_signature: bytes
    feature_votes: tuple[int, ...]
    timestamp: int
    generator: bytes
    reward_vote: int
    state_hash: bytes | None
    header_signature: bytes


class BlockHeader(msgspec.Struct, frozen=True, gc=False):
    """What a generator signs about a block.

    ``timestamp`` in ms; ``reference`` is the parent's id; ``generation_signature`` is a hash
    (versions 1 to 4) or a VRF proof (version 5); ``generator`` is a public key; ``reward_vote`` in
    wavelets, -1 for none. ``transactions_root`` and ``state_hash`` exist from version 5 on.
    """

    version: int
    chain_id: int
    timestamp: int
    reference: bytes
    base_target: int
    generation_signature: bytes
    generator: bytes
    feature_votes: tuple[int, ...] = ()
    reward_vote: int = NO_REWARD_VOTE
    transactions_root: bytes = b""
    state_hash: bytes | None = None
    challenged: ChallengedHeader | None = None


Encoded = tuple[bytes, ...]
"""The ``SignedTransaction`` bytes of a block's transactions, in order."""


class Block(msgspec.Struct, frozen=True, gc=False):
    """A whole block. ``signed`` are the bytes under the signature, ``data`` the block's bytes as
    stored and sent.
    """

    header: BlockHeader
    signature: bytes
    transactions: tuple[AnyTransaction, ...]
    id: bytes
    signed: bytes
    data: bytes


def decode(data: bytes, chain_id: int) -> Block:
    """A block from its bytes, legacy or protobuf.

    Raises a ``ChainError`` (``FormatError``, ``UnsupportedTransaction``, ``WrongChainId`` …) for
    anything else.
    """
    if len(data) > MAX_BLOCK_BYTES:
        raise FormatError(f"{len(data)} bytes are more than a block can have ({MAX_BLOCK_BYTES})")
    if not data:
        raise FormatError("no block in 0 bytes")
    return (_decode_protobuf if data[0] == _PROTOBUF_FIRST_BYTE else _decode_legacy)(data, chain_id)


def decode_header(data: bytes, chain_id: int) -> tuple[BlockHeader, bytes]:
    """The header and the signature of a block's bytes, its transactions left unread.

    Raises ``FormatError`` for bytes that are no block.
    """
    if data[:1] == bytes((_PROTOBUF_FIRST_BYTE,)):
        # Header and signature come first, and the transactions are what is long.
        length, start = protobuf.read_length(data, 1)
        length, start = protobuf.read_length(data, start + length + 1)
        message = protobuf.parse(block_pb2.Block, data[: start + length])
        return _read_header(message.header), message.signature
    header, signature, _ = _read_legacy_header(data, chain_id)
    return header, signature


# --- versions 1 to 4 ------------------------------------------------------------------------------


def _decode_legacy(data: bytes, chain_id: int) -> Block:
    header, signature, length = _read_legacy_header(data, chain_id)
    content = take(data, _HEADER.size, length)
    transactions = _read_transactions(content, header.version, chain_id)
    return Block(header, signature, transactions, signature, data[:-SIGNATURE_LENGTH], data)


def _read_legacy_header(data: bytes, chain_id: int) -> tuple[BlockHeader, bytes, int]:
    """Header, signature, and the length of the transactions between the header's two parts."""
    try:
        version, timestamp, reference, consensus, base_target, generation_signature, length = (
            _HEADER.unpack_from(data)
        )
    except struct.error as error:
        raise FormatError(f"a block header needs {_HEADER.size} bytes") from error
    if not GENESIS_VERSION <= version <= REWARD_VERSION:
        raise FormatError(f"no legacy block has version {version}")
    if consensus != _CONSENSUS_LENGTH:
        raise FormatError(f"consensus part of {consensus} bytes")
    if length < 0:
        raise FormatError(f"transactions of {length} bytes")
    offset = _HEADER.size + length
    feature_votes: tuple[int, ...] = ()
    reward_vote = NO_REWARD_VOTE
    if version >= NG_VERSION:
        feature_votes, offset = _read_feature_votes(data, offset)
    if version >= REWARD_VERSION:
        reward_vote = int.from_bytes(take(data, offset, 8), "big", signed=True)
        offset += 8
    if len(data) != offset + _TRAILER.size:
        raise FormatError(f"{len(data) - offset} bytes at the end, {_TRAILER.size} expected")
    generator, signature = _TRAILER.unpack_from(data, offset)
    header = BlockHeader(
        version,
        chain_id,
        timestamp,
        reference,
        base_target,
        generation_signature,
        generator,
        feature_votes,
        reward_vote,
    )
    return header, signature, length


def _read_transactions(data: bytes, version: int, chain_id: int) -> tuple[AnyTransaction, ...]:
    width = 1 if version <= PLAIN_VERSION else 4
    count = int.from_bytes(take(data, 0, width), "big")
    if count > MAX_TRANSACTIONS:
        raise FormatError(f"{count} transactions are more than {MAX_TRANSACTIONS}")
    offset = width
    transactions = []
    for _ in range(count):
        length = int.from_bytes(take(data, offset, 4), "big", signed=True)
        offset += 4
        transactions.append(codec.decode_legacy(take(data, offset, length), chain_id))
        offset += length
    if offset != len(data):
        raise FormatError(f"{len(data) - offset} bytes after the transactions")
    return tuple(transactions)


def _read_feature_votes(data: bytes, offset: int) -> tuple[tuple[int, ...], int]:
    count = int.from_bytes(take(data, offset, 4), "big", signed=True)
    if not 0 <= count <= MAX_FEATURE_VOTES:
        raise FormatError(f"{count} feature votes")
    votes = struct.unpack(f">{count}h", take(data, offset + 4, 2 * count))
    return votes, offset + 4 + 2 * count


def _legacy_signed_bytes(header: BlockHeader, transactions: tuple[AnyTransaction, ...]) -> bytes:
    width = 1 if header.version <= PLAIN_VERSION else 4
    parts = [len(transactions).to_bytes(width, "big")]
    for transaction in transactions:
        data = codec.encode(transaction)
        parts += (len(data).to_bytes(4, "big"), data)
    body = b"".join(parts)
    start = _HEADER.pack(
        header.version,
        header.timestamp,
        header.reference,
        _CONSENSUS_LENGTH,
        header.base_target,
        header.generation_signature,
        len(body),
    )
    votes = b""
    if header.version >= NG_VERSION:
        count = len(header.feature_votes)
        votes = struct.pack(f">i{count}h", count, *header.feature_votes)
    if header.version >= REWARD_VERSION:
        votes += header.reward_vote.to_bytes(8, "big", signed=True)
    return start + body + votes + header.generator


# --- version 5 ------------------------------------------------------------------------------------


def _decode_protobuf(data: bytes, chain_id: int) -> Block:
    message = protobuf.parse(block_pb2.Block, data)
    if message.header.chain_id != chain_id:
        raise WrongChainId(chain_id, message.header.chain_id)
    if len(message.transactions) > MAX_TRANSACTIONS:
        raise FormatError(
            f"{len(message.transactions)} transactions are more than {MAX_TRANSACTIONS}"
        )
    header = _read_header(message.header)
    transactions = tuple(codec.from_message(item, chain_id) for item in message.transactions)
    signature = message.signature
    if len(signature) != SIGNATURE_LENGTH:
        raise FormatError(f"signature of {len(signature)} bytes")
    # What is stored is the deterministic form, whatever order of fields a peer chose.
    return assemble(header, transactions, signature)


def _read_header(message: block_pb2.Block.Header) -> BlockHeader:
    for name, value, lengths in (
        ("reference", message.reference, (BLOCK_HASH_LENGTH, SIGNATURE_LENGTH)),
        ("generator", message.generator, (32,)),
        ("state hash", message.state_hash, (0, BLOCK_HASH_LENGTH)),
    ):
        if len(value) not in lengths:
            raise FormatError(f"{name} of {len(value)} bytes")
    if message.version < PROTOBUF_VERSION:
        raise FormatError(f"no protobuf block has version {message.version}")
    return BlockHeader(
        version=message.version,
        chain_id=message.chain_id,
        timestamp=message.timestamp,
        reference=message.reference,
        base_target=message.base_target,
        generation_signature=message.generation_signature,
        generator=message.generator,
        feature_votes=tuple(message.feature_votes),
        reward_vote=message.reward_vote,
        transactions_root=message.transactions_root,
        state_hash=message.state_hash or None,
        challenged=_read_challenged(message.challenged_header)
        if message.HasField("challenged_header")
        else None,
    )


def _read_challenged(message: block_pb2.Block.Header.ChallengedHeader) -> ChallengedHeader:
    return ChallengedHeader(
        base_target=message.base_target,
        generation_signature=message.generation_signature,
        feature_votes=tuple(message.feature_votes),
        timestamp=message.timestamp,
        generator=message.generator,
        reward_vote=message.reward_vote,
        state_hash=message.state_hash or None,
        header_signature=message.header_signature,
    )


def _header_message(header: BlockHeader) -> block_pb2.Block.Header:
    message = block_pb2.Block.Header(
        chain_id=header.chain_id,
        reference=header.reference,
        base_target=header.base_target,
        generation_signature=header.generation_signature,
        feature_votes=header.feature_votes,
        timestamp=header.timestamp,
        version=header.version,
        generator=header.generator,
        reward_vote=header.reward_vote,
        transactions_root=header.transactions_root,
        state_hash=header.state_hash or b"",
    )
    challenged = header.challenged
    if challenged is not None:
        target = message.challenged_header
        target.base_target = challenged.base_target
        target.generation_signature = challenged.generation_signature
        target.feature_votes.extend(challenged.feature_votes)
        target.timestamp = challenged.timestamp
        target.generator = challenged.generator
        target.reward_vote = challenged.reward_vote
        target.state_hash = challenged.state_hash or b""
        target.header_signature = challenged.header_signature
    return message


def header_bytes(header: BlockHeader) -> bytes:
    """The protobuf header: what is signed and hashed in version 5."""
    return protobuf.serialize(_header_message(header))


def transactions_root(
    transactions: tuple[AnyTransaction, ...], encoded: Encoded | None = None
) -> bytes:
    """The Merkle root over the transactions."""
    if encoded is None:
        return merkle.root([codec.merkle_leaf(each) for each in transactions])
    pairs = zip(transactions, encoded, strict=True)
    return merkle.root([codec.merkle_leaf(each, data) for each, data in pairs])


def transaction_spans(data: bytes) -> list[tuple[int, int]]:
    """Where each transaction is in a block's bytes: offset and length, in block order.

    The pieces are what ``codec.decode_legacy`` or ``codec.decode_protobuf`` take. Raises
    ``FormatError``.
    """
    if data[:1] == bytes((_PROTOBUF_FIRST_BYTE,)):
        return list(_protobuf_spans(data))
    offset = _HEADER.size
    width = 1 if take(data, 0, 1)[0] <= PLAIN_VERSION else 4
    count = int.from_bytes(take(data, offset, width), "big")
    offset += width
    spans = []
    for _ in range(count):
        length = int.from_bytes(take(data, offset, 4), "big")
        spans.append((offset + 4, length))
        offset += 4 + length
    return spans


def _protobuf_spans(data: bytes) -> Iterator[tuple[int, int]]:
    offset = 0
    while offset < len(data):
        tag = data[offset]
        length, offset = protobuf.read_length(data, offset + 1)
        if tag == _TRANSACTIONS_TAG:
            yield offset, length
        offset += length


def transaction_pieces(data: bytes) -> Iterator[bytes]:
    """The bytes of each transaction in a block's, found when they are asked for; raises as
    ``transaction_spans``.
    """
    legacy = data[:1] != bytes((_PROTOBUF_FIRST_BYTE,))
    for offset, length in transaction_spans(data) if legacy else _protobuf_spans(data):
        yield data[offset : offset + length]


# --- building -------------------------------------------------------------------------------------


def signed_bytes(header: BlockHeader, transactions: tuple[AnyTransaction, ...]) -> bytes:
    """The bytes that the generator signs."""
    if header.version >= PROTOBUF_VERSION:
        return header_bytes(header)
    return _legacy_signed_bytes(header, transactions)


def assemble(
    header: BlockHeader,
    transactions: tuple[AnyTransaction, ...],
    signature: bytes,
    encoded: Encoded | None = None,
) -> Block:
    """The block of these parts, with its bytes and id."""
    signed = signed_bytes(header, transactions)
    if header.version < PROTOBUF_VERSION:
        return Block(header, signature, transactions, signature, signed, signed + signature)
    pieces = [protobuf.delimited(_HEADER_FIELD, signed)]
    pieces.append(protobuf.delimited(_SIGNATURE_FIELD, signature))
    if encoded is None:
        encoded = tuple(map(codec.encode_protobuf, transactions))
    pieces += [protobuf.delimited(_TRANSACTIONS_FIELD, data) for data in encoded]
    return Block(header, signature, transactions, blake2b256(signed), signed, b"".join(pieces))


def sign(
    header: BlockHeader,
    transactions: tuple[AnyTransaction, ...],
    private_key: bytes,
    random: bytes | None = None,
    encoded: Encoded | None = None,
) -> Block:
    """The block of these parts, signed by its generator."""
    signature = sign_bytes(private_key, signed_bytes(header, transactions), random)
    return assemble(header, transactions, signature, encoded)


def extended(
    block: Block,
    transactions: tuple[AnyTransaction, ...],
    state_hash: bytes | None,
    signature: bytes,
    encoded: Encoded | None = None,
) -> Block:
    """A block with more transactions at its end and what its header and signature become;
    ``encoded`` are all of them.
    """
    longer = block.transactions + transactions
    header = block.header
    if header.version >= PROTOBUF_VERSION:
        header = msgspec.structs.replace(
            header, transactions_root=transactions_root(longer, encoded), state_hash=state_hash
        )
    return assemble(header, longer, signature, encoded)


def original_header(header: BlockHeader, challenged: ChallengedHeader) -> BlockHeader:
    """The header that the challenged generator signed."""
    return msgspec.structs.replace(
        header,
        base_target=challenged.base_target,
        generation_signature=challenged.generation_signature,
        feature_votes=challenged.feature_votes,
        timestamp=challenged.timestamp,
        generator=challenged.generator,
        reward_vote=challenged.reward_vote,
        state_hash=challenged.state_hash,
        challenged=None,
    )


def signature_is_valid(block: Block) -> bool:
    """Whether the signatures of a block are right; a weak generator's key never is."""
    return not has_weak_key(block) and all(verify(*message) for message in signed_messages(block))


def has_weak_key(block: Block) -> bool:
    """Whether one of the generators' keys is among those that verify anything."""
    challenged = block.header.challenged
    return is_weak(block.header.generator) or (
        challenged is not None and is_weak(challenged.generator)
    )


def signed_messages(block: Block) -> list[tuple[bytes, bytes, bytes]]:
    """Public key, message and signature for each generator's signature of a block."""
    messages = [(block.header.generator, block.signed, block.signature)]
    challenged = block.header.challenged
    if challenged is not None:
        original = header_bytes(original_header(block.header, challenged))
        messages.append((challenged.generator, original, challenged.header_signature))
    return messages
