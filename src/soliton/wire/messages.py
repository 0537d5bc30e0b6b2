"""What peers say to each other: one record for each message.

Messages of a fixed form are read here to their last byte. What a message carries of the chain
(blocks, transactions, snapshots) stays bytes: reading that costs time, and whoever wants it reads
it with ``soliton.chain``.

What lives here: the records and their payloads. What does not: codes and limits (``kinds``), frames
(``frames``).

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/network/{BasicMessagesRepo,messages,MicroBlockInv}.scala``.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Sequence
from typing import Final

import msgspec

from soliton.chain.addresses import from_public_key
from soliton.crypto import curve25519
from soliton.wire.errors import PeerFault
from soliton.wire.handshake import MAX_PORT, PeerAddress

DIGEST_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
KEY_BYTES: Final = 32
BLOCK_ID_BYTES: Final = (DIGEST_BYTES, SIGNATURE_BYTES)
"""Ids of blocks are digests from version 5 on, and signatures before."""
MAX_LISTED_ID_BYTES: Final = 127
MAX_PEERS: Final = 1_000
MAX_IDS: Final = 200
_COUNT: Final = struct.Struct(">i")
_PEER_BYTES: Final = 8


class GetPeers(msgspec.Struct, frozen=True):
    """Asks for addresses of other nodes."""

    @classmethod
    def decode(cls, payload: bytes) -> GetPeers:
        """The message of an empty payload."""
        if payload:
            raise PeerFault(f"{len(payload)} bytes where none belong")
        return cls()

    def encode(self) -> bytes:
        """An empty payload."""
        return b""


class Peers(msgspec.Struct, frozen=True):
    """Addresses of other nodes; the protocol has room for IPv4 alone."""

    addresses: tuple[PeerAddress, ...]

    @classmethod
    def decode(cls, payload: bytes) -> Peers:
        """The message of a payload."""
        count = _count(payload, _PEER_BYTES)
        found = []
        for offset in range(4, 4 + count * _PEER_BYTES, _PEER_BYTES):
            (port,) = _COUNT.unpack_from(payload, offset + 4)
            if not 0 <= port <= MAX_PORT:
                raise PeerFault(f"a peer at port {port}")
            found.append(PeerAddress(ipaddress.IPv4Address(payload[offset : offset + 4]), port))
        return cls(tuple(found))

    def encode(self) -> bytes:
        """The payload, with the first 1,000 addresses that it can hold."""
        kept = [each for each in self.addresses if each.ip.version == 4][:MAX_PEERS]
        parts = [each.ip.packed + _COUNT.pack(each.port) for each in kept]
        return _COUNT.pack(len(kept)) + b"".join(parts)


class _Signatures(msgspec.Struct, frozen=True):
    """Block signatures, which were the ids of blocks."""

    ids: tuple[bytes, ...]

    def encode(self) -> bytes:
        """The payload; all ids have the length of a signature."""
        return _COUNT.pack(len(self.ids)) + b"".join(self.ids)


def _read_signatures(payload: bytes) -> tuple[bytes, ...]:
    count = _count(payload, SIGNATURE_BYTES)
    ends = range(4 + SIGNATURE_BYTES, 5 + count * SIGNATURE_BYTES, SIGNATURE_BYTES)
    return tuple(payload[end - SIGNATURE_BYTES : end] for end in ends)


class GetSignatures(_Signatures, frozen=True):
    """Asks a peer before 1.2 what comes after the first of these blocks that it knows; the newest
    stands first.
    """

    @classmethod
    def decode(cls, payload: bytes) -> GetSignatures:
        """The message of a payload."""
        return cls(_read_signatures(payload))


class Signatures(_Signatures, frozen=True):
    """Answers ``GetSignatures``: the common block and those after it, the oldest first."""

    @classmethod
    def decode(cls, payload: bytes) -> Signatures:
        """The message of a payload."""
        return cls(_read_signatures(payload))


class _BlockIds(msgspec.Struct, frozen=True):
    ids: tuple[bytes, ...]

    def encode(self) -> bytes:
        """The payload."""
        return _COUNT.pack(len(self.ids)) + b"".join(
            bytes((len(each),)) + each for each in self.ids
        )


def _read_ids(payload: bytes) -> tuple[bytes, ...]:
    if len(payload) < 4:
        raise PeerFault("a list without a count")
    (count,) = _COUNT.unpack_from(payload)
    # Each takes two bytes at the least: a list that says more is not begun.
    if not 0 <= 2 * count <= len(payload) - 4:
        raise PeerFault(f"a list of {count} ids in {len(payload)} bytes")
    found, offset = [], 4
    for _ in range(count):
        length = payload[offset] if offset < len(payload) else 0
        if not 0 < length <= MAX_LISTED_ID_BYTES:
            raise PeerFault(f"an id of {length} bytes")
        found.append(payload[offset + 1 : offset + 1 + length])
        offset += 1 + length
    if offset != len(payload):
        raise PeerFault("a list that does not end with its payload")
    return tuple(found)


class GetBlockIds(_BlockIds, frozen=True):
    """Asks what comes after the first of these blocks that a peer knows, the newest first."""

    @classmethod
    def decode(cls, payload: bytes) -> GetBlockIds:
        """The message of a payload."""
        return cls(_read_ids(payload))


class BlockIds(_BlockIds, frozen=True):
    """Answers ``GetBlockIds``: the common block and those after it, the oldest first."""

    @classmethod
    def decode(cls, payload: bytes) -> BlockIds:
        """The message of a payload."""
        return cls(_read_ids(payload))


class Score(msgspec.Struct, frozen=True):
    """How much work is in its sender's chain."""

    score: int

    @classmethod
    def decode(cls, payload: bytes) -> Score:
        """The message of a payload, which is a magnitude without a sign."""
        return cls(int.from_bytes(payload, "big"))

    def encode(self) -> bytes:
        """The payload: two's complement, as short as it can be."""
        return self.score.to_bytes(self.score.bit_length() // 8 + 1, "big")


class _Request(msgspec.Struct, frozen=True):
    """Asks for something by the id of a block."""

    block_id: bytes

    def encode(self) -> bytes:
        """The payload."""
        return self.block_id


def _read_id(payload: bytes) -> bytes:
    if len(payload) not in BLOCK_ID_BYTES:
        raise PeerFault(f"a block id of {len(payload)} bytes")
    return payload


class GetBlock(_Request, frozen=True):
    """Asks for a block."""

    @classmethod
    def decode(cls, payload: bytes) -> GetBlock:
        """The message of a payload."""
        return cls(_read_id(payload))


class GetBlockSnapshot(_Request, frozen=True):
    """Asks for what the transactions of a block changed."""

    @classmethod
    def decode(cls, payload: bytes) -> GetBlockSnapshot:
        """The message of a payload."""
        return cls(_read_id(payload))


class GetMicroblock(_Request, frozen=True):
    """Asks for the microblock that makes the last block the one with this id."""

    @classmethod
    def decode(cls, payload: bytes) -> GetMicroblock:
        """The message of a payload; other nodes take ids of any length, which nobody has."""
        return cls(payload)


class GetMicroblockSnapshot(_Request, frozen=True):
    """Asks for what the transactions of that microblock changed."""

    @classmethod
    def decode(cls, payload: bytes) -> GetMicroblockSnapshot:
        """The message of a payload; other nodes take ids of any length, which nobody has."""
        return cls(payload)


class _Carried(msgspec.Struct, frozen=True):
    data: bytes

    def encode(self) -> bytes:
        """The payload."""
        return self.data


def _read_data(payload: bytes) -> bytes:
    if not payload:
        raise PeerFault("a message without content")
    return payload


class LegacyBlock(_Carried, frozen=True):
    """A block of version 1 to 4."""

    @classmethod
    def decode(cls, payload: bytes) -> LegacyBlock:
        """The message of a payload."""
        return cls(_read_data(payload))


class ProtobufBlock(_Carried, frozen=True):
    """A block of version 5."""

    @classmethod
    def decode(cls, payload: bytes) -> ProtobufBlock:
        """The message of a payload."""
        return cls(_read_data(payload))


class LegacyTransaction(_Carried, frozen=True):
    """A transaction in its binary form."""

    @classmethod
    def decode(cls, payload: bytes) -> LegacyTransaction:
        """The message of a payload."""
        return cls(_read_data(payload))


class ProtobufTransaction(_Carried, frozen=True):
    """A transaction as a protobuf message."""

    @classmethod
    def decode(cls, payload: bytes) -> ProtobufTransaction:
        """The message of a payload."""
        return cls(_read_data(payload))


class LegacyMicroblock(_Carried, frozen=True):
    """A microblock of version 3 or 4."""

    @classmethod
    def decode(cls, payload: bytes) -> LegacyMicroblock:
        """The message of a payload."""
        return cls(_read_data(payload))


class ProtobufMicroblock(_Carried, frozen=True):
    """A microblock of version 5; some nodes send older ones like this, too."""

    @classmethod
    def decode(cls, payload: bytes) -> ProtobufMicroblock:
        """The message of a payload."""
        return cls(_read_data(payload))


class BlockSnapshot(_Carried, frozen=True):
    """What the transactions of a block changed."""

    @classmethod
    def decode(cls, payload: bytes) -> BlockSnapshot:
        """The message of a payload."""
        return cls(_read_data(payload))


class MicroblockSnapshot(_Carried, frozen=True):
    """What the transactions of a microblock changed."""

    @classmethod
    def decode(cls, payload: bytes) -> MicroblockSnapshot:
        """The message of a payload."""
        return cls(_read_data(payload))


class EndorseBlock(_Carried, frozen=True):
    """A generator's endorsement of a block, of networks with deterministic finality."""

    @classmethod
    def decode(cls, payload: bytes) -> EndorseBlock:
        """The message of a payload."""
        return cls(_read_data(payload))


class MicroblockInv(msgspec.Struct, frozen=True):
    """Says that its sender has a microblock: who made it, which block it makes the last one become
    (``total_id``) and which it extends (``reference``).
    """

    generator: bytes
    total_id: bytes
    reference: bytes
    signature: bytes

    @classmethod
    def decode(cls, payload: bytes) -> MicroblockInv:
        """The message of a payload."""
        id_bytes, odd = divmod(len(payload) - KEY_BYTES - SIGNATURE_BYTES, 2)
        if odd or id_bytes not in BLOCK_ID_BYTES:
            raise PeerFault(f"an announcement of {len(payload)} bytes")
        middle = KEY_BYTES + id_bytes
        end = middle + id_bytes
        return cls(
            payload[:KEY_BYTES], payload[KEY_BYTES:middle], payload[middle:end], payload[end:]
        )

    def encode(self) -> bytes:
        """The payload."""
        return self.generator + self.total_id + self.reference + self.signature

    def signed_bytes(self, chain_id: int) -> bytes:
        """What the generator signs: its address and both ids."""
        return from_public_key(self.generator, chain_id) + self.total_id + self.reference

    def is_signed(self, chain_id: int) -> bool:
        """Whether the signature holds."""
        return curve25519.verify(self.generator, self.signed_bytes(chain_id), self.signature)


Message = (
    GetPeers
    | Peers
    | GetSignatures
    | Signatures
    | GetBlock
    | LegacyBlock
    | Score
    | LegacyTransaction
    | MicroblockInv
    | GetMicroblock
    | LegacyMicroblock
    | ProtobufBlock
    | ProtobufMicroblock
    | ProtobufTransaction
    | GetBlockIds
    | BlockIds
    | GetBlockSnapshot
    | GetMicroblockSnapshot
    | BlockSnapshot
    | MicroblockSnapshot
    | EndorseBlock
)
"""Anything that one peer says to another."""


def announce(
    private_key: bytes,
    generator: bytes,
    total_id: bytes,
    reference: bytes,
    chain_id: int,
    random: bytes | None = None,
) -> MicroblockInv:
    """The announcement of an own microblock; ``random`` (64 bytes) goes into the signature."""
    draft = MicroblockInv(generator, total_id, reference, b"")
    signature = curve25519.sign(private_key, draft.signed_bytes(chain_id), random)
    return MicroblockInv(generator, total_id, reference, signature)


def have_signatures(ids: Sequence[bytes]) -> bool:
    """Whether ids can travel in the messages of peers before 1.2."""
    return all(len(each) == SIGNATURE_BYTES for each in ids)


def _count(payload: bytes, each: int) -> int:
    """The count at the beginning of a list of items of ``each`` bytes, which fill the payload."""
    if len(payload) < 4:
        raise PeerFault("a list without a count")
    count: int = _COUNT.unpack_from(payload)[0]
    if count < 0 or len(payload) != 4 + count * each:
        raise PeerFault(f"a list of {count} in {len(payload)} bytes")
    return count
