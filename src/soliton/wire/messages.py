"""The messages of the peer protocol, one record for each.

Messages of a fixed form are decoded here completely. Blocks, transactions and snapshots stay bytes:
decoding them is expensive, so the receiver decides when to do it, with ``soliton.chain``.

What lives here: the records and their payloads. What does not: codes and limits (``kinds``), frames
(``frames``).

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/network/{BasicMessagesRepo,messages,MicroBlockInv}.scala``.
"""

from __future__ import annotations

import ipaddress
import struct
from typing import Final, Self

import msgspec

from soliton.chain.addresses import from_public_key
from soliton.crypto import curve25519
from soliton.wire.errors import PeerFault
from soliton.wire.handshake import MAX_PORT, PeerAddress

DIGEST_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
KEY_BYTES: Final = 32
BLOCK_ID_BYTES: Final = (DIGEST_BYTES, SIGNATURE_BYTES)
"""A block id is a digest from block version 5 on, and a signature before."""
MAX_LISTED_ID_BYTES: Final = 127
MAX_PEERS: Final = 1_000
MAX_IDS: Final = 200
_COUNT: Final = struct.Struct(">i")
_PEER_BYTES: Final = 8


class GetPeers(msgspec.Struct, frozen=True):
    """Requests addresses of other nodes."""

    @classmethod
    def decode(cls, payload: bytes) -> GetPeers:
        """Accepts only an empty payload."""
        if payload:
            raise PeerFault(f"{len(payload)} bytes instead of an empty payload")
        return cls()

    def encode(self) -> bytes:
        """Return an empty payload."""
        return b""


class Peers(msgspec.Struct, frozen=True):
    """Addresses of other nodes; the protocol carries only IPv4."""

    addresses: tuple[PeerAddress, ...]

    @classmethod
    def decode(cls, payload: bytes) -> Peers:
        """Parse a payload."""
        count = _count(payload, _PEER_BYTES)
        found = []
        for offset in range(4, 4 + count * _PEER_BYTES, _PEER_BYTES):
            (port,) = _COUNT.unpack_from(payload, offset + 4)
            if not 0 <= port <= MAX_PORT:
                raise PeerFault(f"a peer at port {port}")
            found.append(PeerAddress(ipaddress.IPv4Address(payload[offset : offset + 4]), port))
        return cls(tuple(found))

    def encode(self) -> bytes:
        """Return the payload, with the first 1,000 IPv4 addresses."""
        kept = [each for each in self.addresses if each.ip.version == 4][:MAX_PEERS]
        parts = [each.ip.packed + _COUNT.pack(each.port) for each in kept]
        return _COUNT.pack(len(kept)) + b"".join(parts)


class _Signatures(msgspec.Struct, frozen=True):
    """A list of block signatures, which are the ids of blocks before version 5."""

    ids: tuple[bytes, ...]

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Parse a payload."""
        count = _count(payload, SIGNATURE_BYTES)
        starts = range(4, 4 + count * SIGNATURE_BYTES, SIGNATURE_BYTES)
        return cls(tuple(payload[start : start + SIGNATURE_BYTES] for start in starts))

    def encode(self) -> bytes:
        """Return the payload; all ids must have the length of a signature."""
        return _COUNT.pack(len(self.ids)) + b"".join(self.ids)


class GetSignatures(_Signatures, frozen=True):
    """Requests, from a peer before 1.2, the blocks after the first of these that it knows; newest
    first.
    """


class Signatures(_Signatures, frozen=True):
    """The response to ``GetSignatures``: the common block and those after it, oldest first."""


class _BlockIds(msgspec.Struct, frozen=True):
    ids: tuple[bytes, ...]

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Parse a payload."""
        return cls(_read_ids(payload))

    def encode(self) -> bytes:
        """Return the payload."""
        return _COUNT.pack(len(self.ids)) + b"".join(
            bytes((len(each),)) + each for each in self.ids
        )


def _read_ids(payload: bytes) -> tuple[bytes, ...]:
    if len(payload) < 4:
        raise PeerFault("a list without a count")
    (count,) = _COUNT.unpack_from(payload)
    # An id takes at least two bytes, so an impossible count is refused before the loop.
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
    """Requests the blocks after the first of these that the peer knows; newest first."""


class BlockIds(_BlockIds, frozen=True):
    """The response to ``GetBlockIds``: the common block and those after it, oldest first."""


class Score(msgspec.Struct, frozen=True):
    """The score of the sender's chain."""

    score: int

    @classmethod
    def decode(cls, payload: bytes) -> Score:
        """Parse a payload, which is read as an unsigned number."""
        return cls(int.from_bytes(payload, "big"))

    def encode(self) -> bytes:
        """Return the payload: two's complement of minimal length."""
        return self.score.to_bytes(self.score.bit_length() // 8 + 1, "big")


class _BlockRequest(msgspec.Struct, frozen=True):
    """Requests something by the id of a block."""

    block_id: bytes

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Parse a payload."""
        if len(payload) not in BLOCK_ID_BYTES:
            raise PeerFault(f"a block id of {len(payload)} bytes")
        return cls(payload)

    def encode(self) -> bytes:
        """Return the payload."""
        return self.block_id


class GetBlock(_BlockRequest, frozen=True):
    """Requests a block."""


class GetBlockSnapshot(_BlockRequest, frozen=True):
    """Requests the state changes of a block's transactions."""


class _MicroblockRequest(msgspec.Struct, frozen=True):
    """Requests something by the total id of a microblock."""

    block_id: bytes

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Parse a payload. Other nodes accept ids of any length, although none of those exist."""
        return cls(payload)

    def encode(self) -> bytes:
        """Return the payload."""
        return self.block_id


class GetMicroblock(_MicroblockRequest, frozen=True):
    """Requests the microblock that gives the last block this id."""


class GetMicroblockSnapshot(_MicroblockRequest, frozen=True):
    """Requests the state changes of that microblock's transactions."""


class _Opaque(msgspec.Struct, frozen=True):
    """A message whose payload is not decoded here."""

    data: bytes

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Accepts any payload that is not empty."""
        if not payload:
            raise PeerFault("a message without content")
        return cls(payload)

    def encode(self) -> bytes:
        """Return the payload."""
        return self.data


class LegacyBlock(_Opaque, frozen=True):
    """A block of version 1 to 4."""


class ProtobufBlock(_Opaque, frozen=True):
    """A block of version 5."""


class LegacyTransaction(_Opaque, frozen=True):
    """A transaction in its legacy binary form."""


class ProtobufTransaction(_Opaque, frozen=True):
    """A transaction as a protobuf message."""


class LegacyMicroblock(_Opaque, frozen=True):
    """A microblock of version 3 or 4."""


class ProtobufMicroblock(_Opaque, frozen=True):
    """A microblock of version 5; some nodes also send older ones in this form."""


class BlockSnapshot(_Opaque, frozen=True):
    """The state changes of a block's transactions."""


class MicroblockSnapshot(_Opaque, frozen=True):
    """The state changes of a microblock's transactions."""


class EndorseBlock(_Opaque, frozen=True):
    """A generator's endorsement of a block, on networks with deterministic finality."""


class MicroblockInv(msgspec.Struct, frozen=True):
    """Announces that the sender has a microblock: its generator, the id that it gives the last
    block (``total_id``) and the id of the block that it extends (``reference``).
    """

    generator: bytes
    total_id: bytes
    reference: bytes
    signature: bytes

    @classmethod
    def decode(cls, payload: bytes) -> MicroblockInv:
        """Parse a payload."""
        id_bytes, odd = divmod(len(payload) - KEY_BYTES - SIGNATURE_BYTES, 2)
        if odd or id_bytes not in BLOCK_ID_BYTES:
            raise PeerFault(f"an announcement of {len(payload)} bytes")
        middle = KEY_BYTES + id_bytes
        end = middle + id_bytes
        return cls(
            payload[:KEY_BYTES], payload[KEY_BYTES:middle], payload[middle:end], payload[end:]
        )

    def encode(self) -> bytes:
        """Return the payload."""
        return self.generator + self.total_id + self.reference + self.signature

    def signed_bytes(self, chain_id: int) -> bytes:
        """Return what the generator signs: its address and both ids."""
        return from_public_key(self.generator, chain_id) + self.total_id + self.reference

    def is_signed(self, chain_id: int) -> bool:
        """Whether the signature is valid."""
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
"""Any message of the protocol."""


def announce(
    private_key: bytes,
    generator: bytes,
    total_id: bytes,
    reference: bytes,
    chain_id: int,
    random: bytes | None = None,
) -> MicroblockInv:
    """Return the signed announcement of a microblock; ``random`` (64 bytes) seeds the signature."""
    draft = MicroblockInv(generator, total_id, reference, b"")
    signature = curve25519.sign(private_key, draft.signed_bytes(chain_id), random)
    return MicroblockInv(generator, total_id, reference, signature)


def _count(payload: bytes, item_bytes: int) -> int:
    """Return the count that precedes a list of fixed-size items, which must fill the payload."""
    if len(payload) < 4:
        raise PeerFault("a list without a count")
    count: int = _COUNT.unpack_from(payload)[0]
    if count < 0 or len(payload) != 4 + count * item_bytes:
        raise PeerFault(f"a list of {count} in {len(payload)} bytes")
    return count
