"""Blocks and their two encodings: a header, the generator's signature and the transactions.

Versions 1 to 4 have a binary layout, version 5 is a protobuf message. A block's id is its signature
(versions 1 to 4) or the hash of its header (version 5).

What lives here: the records and their bytes. What does not: the valid version, generator, delay and
base target (``soliton.consensus``), JSON (the REST interface), microblocks.

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/block/serialization`` and
``protobuf/block/PBBlocks.scala``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from soliton.chain import fields, kinds, protobuf
from soliton.chain.addresses import PUBLIC_KEY_LENGTH
from soliton.chain.errors import FormatError, WrongChainId
from soliton.chain.fields import Field, Kind, MessageKind
from soliton.chain.finalization import VOTING, FinalizationVoting, combined
from soliton.chain.layouts import SIGNATURE_LENGTH, take
from soliton.chain.proto import block_pb2, transaction_pb2
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import merkle
from soliton.crypto.curve25519 import is_weak, verify
from soliton.crypto.curve25519 import sign as sign_bytes
from soliton.crypto.hashes import blake2b256
from soliton.steps import Steps, run_steps

GENESIS_VERSION: Final = 1
PLAIN_VERSION: Final = 2
NG_VERSION: Final = 3
REWARD_VERSION: Final = 4
PROTOBUF_VERSION: Final = 5

GENERATION_SIGNATURE_LENGTH: Final = 32
VRF_PROOF_LENGTH: Final = 96
BLOCK_HASH_LENGTH: Final = 32
MAX_FEATURE_VOTES: Final = 64
MAX_VOTE: Final = 2**15 - 1
_FIRST_NEGATIVE_VOTE: Final = 2**32 - 2**15
"""Votes are signed numbers of 16 bits, in a message as unsigned ones of 32. The reference node cuts
off other bits, so that the generator's signature is that of another header.
"""
NO_REWARD_VOTE: Final = -1
MAX_BLOCK_BYTES: Final = 4_194_304
"""The limit for parsing, far above the megabyte of transactions that a block may contain."""
MAX_TRANSACTIONS: Final = 65_535
"""The limit for parsing; the limit of a valid block is a rule (``soliton.ledger.apply``)."""

DECODED_IN_STEP: Final = 64
"""Transactions that are decoded in one step, some two milliseconds."""

_CONSENSUS_LENGTH: Final = 40
_HEADER: Final = struct.Struct(">Bq64siq32si")
_LENGTH_BYTES: Final = 4
"""The last field of the header: the length of the transactions."""
_TRAILER: Final = struct.Struct(">32s64s")
_PROTOBUF_FIRST_BYTE: Final = 0x0A
_SIGNATURE_TAG: Final = 0x12
_SIGNATURE_FIELD_BYTES: Final = 8
"""Tag and length of the signature, at most."""
_TRANSACTIONS_TAG: Final = 0x1A
_CANONICAL_TAGS: Final = (_PROTOBUF_FIRST_BYTE, _SIGNATURE_TAG)
_HEADER_FIELD: Final = 1
_SIGNATURE_FIELD: Final = 2
_TRANSACTIONS_FIELD: Final = 3


class ChallengedHeader(msgspec.Struct, frozen=True, gc=False):
    """The header values of a challenged block, which has a wrong state hash."""

    base_target: int
    generation_signature: bytes
    feature_votes: tuple[int, ...]
    timestamp: int
    generator: bytes
    reward_vote: int
    state_hash: bytes | None
    header_signature: bytes
    finalization_voting: FinalizationVoting | None = None


class BlockHeader(msgspec.Struct, frozen=True, gc=False):
    """The header of a block, which its generator signs.

    ``timestamp`` in ms; ``reference`` is the parent's id; ``generation_signature`` is a hash
    (versions 1 to 4) or a VRF proof (version 5); ``generator`` is a public key; ``reward_vote`` in
    wavelets, -1 for none. ``transactions_root``, ``state_hash`` and ``finalization_voting`` exist
    from version 5 on.
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
    finalization_voting: FinalizationVoting | None = None


Encoded = tuple[bytes, ...]
"""The ``SignedTransaction`` bytes of a block's transactions, in order."""


class Block(msgspec.Struct, frozen=True, gc=False):
    """A block. ``signed`` are the signed bytes, ``data`` the block's bytes as stored and sent."""

    header: BlockHeader
    signature: bytes
    transactions: tuple[AnyTransaction, ...]
    id: bytes
    signed: bytes
    data: bytes


class SignedHeader(msgspec.Struct, frozen=True, gc=False):
    """The parts of a block that can be checked before its transactions are decoded."""

    header: BlockHeader
    signature: bytes
    id: bytes
    signed: bytes


def decode(data: bytes, chain_id: int) -> Block:
    """Decode a block, legacy or protobuf.

    Raises a ``ChainError`` (``FormatError``, ``UnsupportedTransaction``, ``WrongChainId`` …).
    """
    return run_steps(decoding(data, chain_id))


def decoding(data: bytes, chain_id: int) -> Steps[Block]:
    """Do the same in steps of some transactions."""
    if len(data) > MAX_BLOCK_BYTES:
        raise FormatError(f"{len(data)} bytes are more than a block can have ({MAX_BLOCK_BYTES})")
    if not data:
        raise FormatError("no block in 0 bytes")
    decoding_form = _decoding_protobuf if data[0] == _PROTOBUF_FIRST_BYTE else _decoding_legacy
    return (yield from decoding_form(data, chain_id))


def canonical(data: bytes) -> bytes:
    """Return a block's message with its header first, then the signature, then the transactions,
    each once; an encoder may write them in any order, in several parts to be merged, with tags that
    are longer than necessary, and between unknown fields. Legacy blocks are returned as they are.

    Raises ``FormatError``. Unknown groups are refused, which the reference's library cannot read.
    """
    if not data or data[0] < PROTOBUF_VERSION or _is_canonical(data):
        return data
    message = protobuf.parse(block_pb2.Block, data)
    for each in (message, message.header, message.header.challenged_header):
        protobuf.refuse_unknown_groups(each)
    header = message.header
    header.DiscardUnknownFields()
    pieces = [protobuf.delimited(_HEADER_FIELD, protobuf.serialize(header))]
    pieces.append(protobuf.delimited(_SIGNATURE_FIELD, message.signature))
    encoded = map(protobuf.serialize, message.transactions)
    pieces += [protobuf.delimited(_TRANSACTIONS_FIELD, each) for each in encoded]
    return b"".join(pieces)


def _is_canonical(data: bytes) -> bool:
    offset, number = 0, 0
    while offset < len(data):
        wanted = _CANONICAL_TAGS[number] if number < len(_CANONICAL_TAGS) else _TRANSACTIONS_TAG
        if data[offset] != wanted:
            return False
        length, offset = protobuf.read_length(data, offset + 1)
        offset += length
        number += 1
    return number >= len(_CANONICAL_TAGS) and offset == len(data)


def decode_header(data: bytes, chain_id: int) -> tuple[BlockHeader, bytes]:
    """Decode only the header and the signature of a block; raise ``FormatError``."""
    if data[:1] == bytes((_PROTOBUF_FIRST_BYTE,)):
        # Header and signature come first; parsing the transactions would be expensive.
        length, start = protobuf.read_length(data, 1)
        end = start + length
        if data[end : end + 1] == bytes((_SIGNATURE_TAG,)):
            length, start = protobuf.read_length(data, end + 1)
            end = start + length
        else:
            # Another encoder may order the fields differently.
            end = len(data)
        message = protobuf.parse(block_pb2.Block, data[:end])
        return _read_header(message.header), message.signature
    header, signature, _ = _read_legacy_header(data, chain_id)
    return header, signature


def header_part(data: bytes) -> bytes | None:
    """Return the leading bytes of a block that ``decode_header`` needs, if ``data``, the beginning
    of the block, has all of them; ``None`` where more of the block is needed. Raises
    ``FormatError``.
    """
    if data[:1] != bytes((_PROTOBUF_FIRST_BYTE,)):
        # The signature of an old block is behind the transactions.
        return None
    length, start = protobuf.read_length(data, 1)
    end = start + length
    if data[end : end + 1] != bytes((_SIGNATURE_TAG,)) or len(data) < end + _SIGNATURE_FIELD_BYTES:
        return None
    length, start = protobuf.read_length(data, end + 1)
    return data[: start + length] if start + length <= len(data) else None


def without_transactions(data: bytes) -> bytes:
    """Return the bytes of a stored block without its transactions, of which ``decode_header`` reads
    the same header and signature. Raises ``FormatError``.
    """
    start, end = transactions_part(data)
    if data[:1] == bytes((_PROTOBUF_FIRST_BYTE,)):
        return data[:start]
    width = _count_width(data[0])
    length = width.to_bytes(_LENGTH_BYTES, "big")
    return data[: _HEADER.size - _LENGTH_BYTES] + length + bytes(width) + data[end:]


def decode_signed_header(data: bytes, chain_id: int) -> SignedHeader:
    """Decode the header with the signed bytes and the id, as ``decode`` does.

    Raises ``FormatError`` or ``WrongChainId``.
    """
    header, signature = decode_header(data, chain_id)
    if header.chain_id != chain_id:
        raise WrongChainId(chain_id, header.chain_id)
    if len(signature) != SIGNATURE_LENGTH:
        raise FormatError(f"signature of {len(signature)} bytes")
    if header.version < PROTOBUF_VERSION:
        return SignedHeader(header, signature, signature, data[:-SIGNATURE_LENGTH])
    signed = header_bytes(header)
    return SignedHeader(header, signature, blake2b256(signed), signed)


def id_of(header: BlockHeader, signature: bytes) -> bytes:
    """Return the id of the block with this header: its signature before version 5."""
    return signature if header.version < PROTOBUF_VERSION else blake2b256(header_bytes(header))


# --- versions 1 to 4 ------------------------------------------------------------------------------


def _decoding_legacy(data: bytes, chain_id: int) -> Steps[Block]:
    header, signature, length = _read_legacy_header(data, chain_id)
    content = take(data, _HEADER.size, length)
    width = _count_width(header.version)
    transactions = yield from reading_transactions(content, width, MAX_TRANSACTIONS, chain_id)
    return Block(header, signature, transactions, signature, data[:-SIGNATURE_LENGTH], data)


def _read_legacy_header(data: bytes, chain_id: int) -> tuple[BlockHeader, bytes, int]:
    """Return header, signature, and the length of the transactions between the header's parts."""
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


def reading_transactions(
    data: bytes, width: int, limit: int, chain_id: int
) -> Steps[tuple[AnyTransaction, ...]]:
    """Decode the transactions of a legacy block or microblock, at most ``limit``, in steps: a count
    of ``width`` bytes, and each transaction with its length. Raises a ``ChainError``.
    """
    count = int.from_bytes(take(data, 0, width), "big")
    if not count and len(data) == width:
        return ()
    if count > limit:
        raise FormatError(f"{count} transactions are more than {limit}")
    offset = width
    transactions = []
    for number in range(1, count + 1):
        length = int.from_bytes(take(data, offset, 4), "big", signed=True)
        offset += 4
        transactions.append(codec.decode_legacy(take(data, offset, length), chain_id))
        offset += length
        if number % DECODED_IN_STEP == 0:
            yield
    if offset != len(data):
        raise FormatError(f"{len(data) - offset} bytes after the transactions")
    return tuple(transactions)


def write_transactions(encoded: Sequence[bytes], width: int) -> bytes:
    """The inverse of ``reading_transactions``, of ``encoded`` transactions."""
    parts = [len(encoded).to_bytes(width, "big")]
    for data in encoded:
        parts += (len(data).to_bytes(4, "big"), data)
    return b"".join(parts)


def check_lengths(rows: Iterable[tuple[str, bytes, tuple[int, ...]]]) -> None:
    """Raise ``FormatError`` for a value of another length than those allowed."""
    for name, value, lengths in rows:
        if len(value) not in lengths:
            raise FormatError(f"{name} of {len(value)} bytes")


def _count_width(version: int) -> int:
    return 1 if version <= PLAIN_VERSION else 4


def _read_feature_votes(data: bytes, offset: int) -> tuple[tuple[int, ...], int]:
    count = int.from_bytes(take(data, offset, 4), "big", signed=True)
    if not 0 <= count <= MAX_FEATURE_VOTES:
        raise FormatError(f"{count} feature votes")
    votes = struct.unpack(f">{count}h", take(data, offset + 4, 2 * count))
    return votes, offset + 4 + 2 * count


def _legacy_signed_bytes(header: BlockHeader, transactions: tuple[AnyTransaction, ...]) -> bytes:
    encoded = tuple(map(codec.encode, transactions))
    body = write_transactions(encoded, _count_width(header.version))
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


def reading_messages(
    messages: Iterable[transaction_pb2.SignedTransaction], chain_id: int
) -> Steps[tuple[tuple[AnyTransaction, ...], Encoded]]:
    """Convert the transactions of a block or microblock of version 5 in steps, and encode them in
    deterministic form, whatever the order of fields in a peer's message. Raises a ``ChainError``.
    """
    transactions, encoded = [], []
    for number, each in enumerate(messages, 1):
        transaction = codec.from_message(each, chain_id)
        transactions.append(transaction)
        encoded.append(codec.encode_protobuf(transaction))
        if number % DECODED_IN_STEP == 0:
            yield
    return tuple(transactions), tuple(encoded)


def _decoding_protobuf(data: bytes, chain_id: int) -> Steps[Block]:
    message = protobuf.parse(block_pb2.Block, data)
    if message.header.chain_id != chain_id:
        raise WrongChainId(chain_id, message.header.chain_id)
    if len(message.transactions) > MAX_TRANSACTIONS:
        raise FormatError(
            f"{len(message.transactions)} transactions are more than {MAX_TRANSACTIONS}"
        )
    header = _read_header(message.header)
    signature = message.signature
    if len(signature) != SIGNATURE_LENGTH:
        raise FormatError(f"signature of {len(signature)} bytes")
    transactions, encoded = yield from reading_messages(message.transactions, chain_id)
    return assemble(header, transactions, signature, encoded)


_ANY: Final = Kind()
_HASH: Final = Kind(message=kinds.OPTIONAL_BYTES)
_VOTES: Final = Kind(
    message=MessageKind(
        lambda votes, _chain_id: tuple(votes), fill=lambda votes, value: votes.extend(value)
    )
)
_SHARED: Final = (
    Field("base_target", _ANY),
    Field("generation_signature", _ANY),
    Field("feature_votes", _VOTES),
    Field("timestamp", _ANY),
    Field("generator", _ANY),
    Field("reward_vote", _ANY),
    Field("state_hash", _HASH),
    Field("finalization_voting", VOTING),
)
"""The fields that the header of a challenged block shares with other headers."""
_CHALLENGED: Final = Kind(
    message=fields.message_of(ChallengedHeader, *_SHARED, Field("header_signature", _ANY))
)
_HEADER_FIELDS: Final = (
    *(Field(name, _ANY) for name in ("version", "chain_id", "reference", "transactions_root")),
    *_SHARED,
    Field("challenged", _CHALLENGED, path="challenged_header"),
)
_make_header: Final = fields.message_reader(BlockHeader, _HEADER_FIELDS)
_fill_header: Final = fields.message_writer(BlockHeader, _HEADER_FIELDS)


def _read_header(message: block_pb2.Block.Header) -> BlockHeader:
    check_lengths(
        (
            ("reference", message.reference, (BLOCK_HASH_LENGTH, SIGNATURE_LENGTH)),
            ("generator", message.generator, (PUBLIC_KEY_LENGTH,)),
            ("state hash", message.state_hash, (0, BLOCK_HASH_LENGTH)),
        )
    )
    if message.version < PROTOBUF_VERSION:
        raise FormatError(f"no protobuf block has version {message.version}")
    for votes in (message.feature_votes, message.challenged_header.feature_votes):
        if any(MAX_VOTE < vote < _FIRST_NEGATIVE_VOTE for vote in votes):
            raise FormatError("a vote for a feature has more than 16 bits")
    header: BlockHeader = _make_header(message, message.chain_id)
    return header


def header_bytes(header: BlockHeader) -> bytes:
    """Return the protobuf header, which is signed and hashed in version 5."""
    message = block_pb2.Block.Header()
    _fill_header(message, header)
    return protobuf.serialize(message)


def encode_protobuf(data: bytes, chain_id: int, *, transactions: bool = True) -> bytes:
    """Return the ``Block`` message of a stored block of any version, optionally without its
    transactions.
    """
    if data[0] == _PROTOBUF_FIRST_BYTE:
        if transactions:
            return data
        length, start = protobuf.read_length(data, 1)
        length, start = protobuf.read_length(data, start + length + 1)
        return data[: start + length]
    header, signature = decode_header(data, chain_id)
    pieces = [protobuf.delimited(_HEADER_FIELD, header_bytes(header))]
    pieces.append(protobuf.delimited(_SIGNATURE_FIELD, signature))
    if transactions:
        for piece in transaction_pieces(data):
            encoded = codec.encode_protobuf(codec.decode_legacy(piece, chain_id))
            pieces.append(protobuf.delimited(_TRANSACTIONS_FIELD, encoded))
    return b"".join(pieces)


def transactions_root(
    transactions: tuple[AnyTransaction, ...], encoded: Encoded | None = None
) -> bytes:
    """Return the Merkle root of the transactions."""
    if encoded is None:
        return merkle.root([codec.merkle_leaf(each) for each in transactions])
    pairs = zip(transactions, encoded, strict=True)
    return merkle.root([codec.merkle_leaf(each, data) for each, data in pairs])


def transaction_spans(data: bytes, start: int = 0) -> list[tuple[int, int]]:
    """Return offset and length of each transaction in a block's bytes, in block order; with
    ``start`` only those whose members of the message begin there or behind.

    The pieces can be decoded by ``codec.decode_legacy`` or ``codec.decode_protobuf``. Raises
    ``FormatError``.
    """
    if data[:1] == bytes((_PROTOBUF_FIRST_BYTE,)):
        return list(_protobuf_spans(data, start))
    offset = _HEADER.size
    width = _count_width(take(data, 0, 1)[0])
    count = int.from_bytes(take(data, offset, width), "big")
    offset += width
    spans = []
    for _ in range(count):
        length = int.from_bytes(take(data, offset, 4), "big")
        if offset >= start:
            spans.append((offset + 4, length))
        offset += 4 + length
    return spans


def _protobuf_spans(data: bytes, offset: int = 0) -> Iterator[tuple[int, int]]:
    while offset < len(data):
        tag = data[offset]
        length, offset = protobuf.read_length(data, offset + 1)
        if tag == _TRANSACTIONS_TAG:
            yield offset, length
        offset += length


def transaction_pieces(data: bytes) -> Iterator[bytes]:
    """Yield the bytes of each transaction in a block, lazily; raise ``FormatError``."""
    legacy = data[:1] != bytes((_PROTOBUF_FIRST_BYTE,))
    for offset, length in transaction_spans(data) if legacy else _protobuf_spans(data):
        yield data[offset : offset + length]


# --- building -------------------------------------------------------------------------------------


def signed_bytes(header: BlockHeader, transactions: tuple[AnyTransaction, ...]) -> bytes:
    """Return the bytes that the generator signs."""
    if header.version >= PROTOBUF_VERSION:
        return header_bytes(header)
    return _legacy_signed_bytes(header, transactions)


def assemble(
    header: BlockHeader,
    transactions: tuple[AnyTransaction, ...],
    signature: bytes,
    encoded: Encoded | None = None,
) -> Block:
    """Assemble a block, with its bytes and id."""
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
    """Assemble and sign a block."""
    signature = sign_bytes(private_key, signed_bytes(header, transactions), random)
    return assemble(header, transactions, signature, encoded)


def extended(
    block: Block,
    transactions: tuple[AnyTransaction, ...],
    state_hash: bytes | None,
    signature: bytes,
    encoded: Encoded | None = None,
    voting: FinalizationVoting | None = None,
) -> Block:
    """Return a block with appended transactions and the corresponding header; ``encoded`` are all
    its transactions, ``voting`` is that of the microblock.
    """
    longer = block.transactions + transactions
    header = block.header
    if header.version >= PROTOBUF_VERSION:
        header = msgspec.structs.replace(
            header,
            transactions_root=transactions_root(longer, encoded),
            state_hash=state_hash,
            finalization_voting=combined(header.finalization_voting, voting),
        )
    return assemble(header, longer, signature, encoded)


def grown(
    block: Block,
    transactions: tuple[AnyTransaction, ...],
    encoded: Iterable[bytes],
    root: bytes,
    state_hash: bytes | None,
    signature: bytes,
    voting: FinalizationVoting | None = None,
) -> Block:
    """Do the same for a block of version 5, in time proportional to the appended transactions:
    ``encoded`` are these alone, ``root`` is that of all.
    """
    header = msgspec.structs.replace(
        block.header,
        transactions_root=root,
        state_hash=state_hash,
        finalization_voting=combined(block.header.finalization_voting, voting),
    )
    signed = header_bytes(header)
    start, end = transactions_part(block.data)
    pieces = [protobuf.delimited(_HEADER_FIELD, signed)]
    pieces += (protobuf.delimited(_SIGNATURE_FIELD, signature), block.data[start:end])
    pieces += [protobuf.delimited(_TRANSACTIONS_FIELD, data) for data in encoded]
    longer = block.transactions + transactions
    return Block(header, signature, longer, blake2b256(signed), signed, b"".join(pieces))


def transactions_part(data: bytes) -> tuple[int, int]:
    """Return where a stored block's transactions, without their number, begin and end in its bytes.

    Raises ``FormatError``.
    """
    if data[:1] == bytes((_PROTOBUF_FIRST_BYTE,)):
        length, start = protobuf.read_length(data, 1)
        length, start = protobuf.read_length(data, start + length + 1)
        return start + length, len(data)
    length = int.from_bytes(take(data, _HEADER.size - _LENGTH_BYTES, _LENGTH_BYTES), "big")
    return _HEADER.size + _count_width(data[0]), _HEADER.size + length


def shortened_header(
    header: BlockHeader,
    transactions: tuple[AnyTransaction, ...],
    state_hash: bytes | None,
    voting: FinalizationVoting | None,
) -> BlockHeader:
    """Return the header that a block had with only these transactions, and this voting."""
    if header.version < PROTOBUF_VERSION:
        return header
    root = transactions_root(transactions)
    return msgspec.structs.replace(
        header, transactions_root=root, state_hash=state_hash, finalization_voting=voting
    )


def original_header(header: BlockHeader, challenged: ChallengedHeader) -> BlockHeader:
    """Return the header that the challenged generator signed."""
    signed = {field.attribute: getattr(challenged, field.attribute) for field in _SHARED}
    return msgspec.structs.replace(header, **signed, challenged=None)


def signature_is_valid(block: Block | SignedHeader) -> bool:
    """Whether the signatures of a block are valid; those of weak keys never are."""
    return not has_weak_key(block) and all(verify(*message) for message in signed_messages(block))


def has_weak_key(block: Block | SignedHeader) -> bool:
    """Whether a generator's key is weak: such keys verify any signature."""
    challenged = block.header.challenged
    return is_weak(block.header.generator) or (
        challenged is not None and is_weak(challenged.generator)
    )


def signed_messages(block: Block | SignedHeader) -> list[tuple[bytes, bytes, bytes]]:
    """Return public key, message and signature for each generator's signature of a block."""
    messages = [(block.header.generator, block.signed, block.signature)]
    challenged = block.header.challenged
    if challenged is not None:
        original = header_bytes(original_header(block.header, challenged))
        messages.append((challenged.generator, original, challenged.header_signature))
    return messages
