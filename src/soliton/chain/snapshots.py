"""Snapshots: what a transaction changed, as light nodes send and receive it in place of rules.

All values are those after the transaction, not differences.

What lives here: the records and their messages. What does not: how they come from changes of the
state and how they are hashed (``soliton.ledger``).

Sources: wavesplatform/protobuf-schemas ``proto/waves/transaction_state_snapshot.proto``;
wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/protobuf/PBSnapshots.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import Any, Final

import msgspec

from soliton.chain import fields, kinds, protobuf
from soliton.chain.addresses import PUBLIC_KEY_LENGTH, Address, check_address
from soliton.chain.blocks import MAX_TRANSACTIONS
from soliton.chain.errors import FormatError
from soliton.chain.fields import Field, Kind, MessageKind
from soliton.chain.layouts import DIGEST_LENGTH
from soliton.chain.proto import state_snapshot_pb2, transaction_state_snapshot_pb2
from soliton.chain.values import AssetId, DataEntry

MAX_SNAPSHOT_BYTES: Final = 16_777_216
"""Of a whole block's snapshots; far above what a block's transactions can change."""
MAX_BYTES_OF_ONE: Final = 1_048_576
"""Of the snapshot of one transaction; the largest hold a script or the data of an account. Members
that are empty take two bytes there, and a hundred once they are read.
"""
MAX_VOLUME_BYTES: Final = 32
"""Volumes fit in 64 bits, but for a few of the first years that overflowed."""

_ID_FIELD: Final = 1
_SNAPSHOTS_FIELD: Final = 2
_ID_FIRST_BYTE: Final = 0x0A
_MAX_ID_BYTES: Final = 64

_Message = transaction_state_snapshot_pb2.TransactionStateSnapshot


class Status(IntEnum):
    """What became of a transaction."""

    SUCCEEDED = 0
    FAILED = 1
    ELIDED = 2


class Balance(msgspec.Struct, frozen=True, gc=False):
    """How much of an asset (``None``: the native coin) an account has."""

    address: Address
    asset_id: AssetId | None
    amount: int


class LeaseBalance(msgspec.Struct, frozen=True, gc=False):
    """Wavelets leased to an account and by it."""

    address: Address
    lease_in: int
    lease_out: int


class NewLease(msgspec.Struct, frozen=True, gc=False):
    """A lease that began."""

    lease_id: bytes
    sender_public_key: bytes
    recipient: Address
    amount: int


class NewAsset(msgspec.Struct, frozen=True, gc=False):
    """What never changes about an asset; ``issuer`` is a public key."""

    asset_id: AssetId
    issuer: bytes
    decimals: int
    nft: bool


class AssetVolume(msgspec.Struct, frozen=True, gc=False):
    """How much of an asset there is, and whether there can be more."""

    asset_id: AssetId
    reissuable: bool
    quantity: int


class AssetName(msgspec.Struct, frozen=True, gc=False):
    """What an asset is called."""

    asset_id: AssetId
    name: bytes
    description: bytes


class AssetScript(msgspec.Struct, frozen=True, gc=False):
    """The script of a smart asset."""

    asset_id: AssetId
    script: bytes


class NewAlias(msgspec.Struct, frozen=True, gc=False):
    """A name that an account took."""

    address: Address
    name: str


class OrderFill(msgspec.Struct, frozen=True, gc=False):
    """How much of an order was executed, and how much of its matcher fee was paid."""

    order_id: bytes
    volume: int
    fee: int


class AccountScript(msgspec.Struct, frozen=True, gc=False):
    """The script of an account; empty when it was removed."""

    public_key: bytes
    script: bytes
    verifier_complexity: int


class AccountData(msgspec.Struct, frozen=True, gc=False):
    """Entries of an account's data storage."""

    address: Address
    entries: tuple[DataEntry, ...]


class Sponsorship(msgspec.Struct, frozen=True, gc=False):
    """What an asset's smallest fee is worth a unit of; 0 when it is not sponsored."""

    asset_id: AssetId
    min_fee: int


class GenerationCommitment(msgspec.Struct, frozen=True, gc=False):
    """A generator's key for endorsements."""

    sender_public_key: bytes
    endorser_public_key: bytes


class Snapshot(msgspec.Struct, frozen=True, gc=False):
    """What one transaction changed."""

    balances: tuple[Balance, ...] = ()
    lease_balances: tuple[LeaseBalance, ...] = ()
    new_leases: tuple[NewLease, ...] = ()
    cancelled_leases: tuple[bytes, ...] = ()
    new_assets: tuple[NewAsset, ...] = ()
    asset_volumes: tuple[AssetVolume, ...] = ()
    asset_names: tuple[AssetName, ...] = ()
    asset_script: AssetScript | None = None
    alias: NewAlias | None = None
    order_fills: tuple[OrderFill, ...] = ()
    account_script: AccountScript | None = None
    account_data: tuple[AccountData, ...] = ()
    sponsorships: tuple[Sponsorship, ...] = ()
    status: Status = Status.SUCCEEDED
    generation_commitment: GenerationCommitment | None = None


class BlockSnapshot(msgspec.Struct, frozen=True, gc=False):
    """The snapshots of a block's transactions, in their order.

    For a microblock the id is that of the whole block that results.
    """

    block_id: bytes
    snapshots: tuple[Snapshot, ...]


# --- kinds of members -----------------------------------------------------------------------------


def _status(number: int, _chain_id: int) -> Status:
    try:
        return Status(number)
    except ValueError as error:
        raise FormatError(f"unknown status {number} of a transaction") from error


def _digest(data: bytes, _chain_id: int) -> bytes:
    if len(data) != DIGEST_LENGTH:
        raise FormatError(f"id of {len(data)} bytes")
    return data


def _public_key(data: bytes, _chain_id: int) -> bytes:
    if len(data) not in (PUBLIC_KEY_LENGTH, 2 * PUBLIC_KEY_LENGTH):
        raise FormatError(f"public key of {len(data)} bytes")
    return data


def _volume(data: bytes, _chain_id: int) -> int:
    if not 0 < len(data) <= MAX_VOLUME_BYTES:
        raise FormatError(f"volume of {len(data)} bytes")
    return int.from_bytes(data, "big", signed=True)


def volume_bytes(quantity: int) -> bytes:
    """Big-endian two's complement, as short as possible."""
    positive = quantity if quantity >= 0 else ~quantity
    return quantity.to_bytes(positive.bit_length() // 8 + 1, "big", signed=True)


def _read_cancelled(messages: Iterable[Any], chain_id: int) -> tuple[bytes, ...]:
    return tuple(_digest(message.lease_id, chain_id) for message in messages)


def _fill_cancelled(messages: Any, lease_ids: Iterable[bytes]) -> None:  # noqa: ANN401 - a repeated member
    for lease_id in lease_ids:
        messages.add(lease_id=lease_id)


_ANY: Final = Kind()
_ADDRESS: Final = Kind(message=MessageKind(check_address))
_DIGEST: Final = Kind(message=MessageKind(_digest))
_KEY: Final = Kind(message=MessageKind(_public_key))
_ASSET: Final = Field("asset_id", _DIGEST)
_OWNER: Final = Field("address", _ADDRESS)


def _one(record: type, *members: Field) -> Kind:
    return Kind(message=fields.message_of(record, *members))


def _many(record: type, *members: Field) -> Kind:
    return Kind(message=fields.messages_of(record, members))


_FIELDS: Final = (
    Field(
        "balances",
        _many(
            Balance,
            _OWNER,
            Field("asset_id", kinds.ASSET, path="amount.asset_id"),
            Field("amount", _ANY, path="amount.amount"),
        ),
    ),
    Field(
        "lease_balances",
        _many(
            LeaseBalance,
            _OWNER,
            Field("lease_in", _ANY, path="in"),
            Field("lease_out", _ANY, path="out"),
        ),
    ),
    Field(
        "new_leases",
        _many(
            NewLease,
            Field("lease_id", _DIGEST),
            Field("sender_public_key", _KEY),
            Field("recipient", _ADDRESS, path="recipient_address"),
            Field("amount", _ANY),
        ),
    ),
    Field("cancelled_leases", Kind(message=MessageKind(_read_cancelled, fill=_fill_cancelled))),
    Field(
        "new_assets",
        _many(
            NewAsset,
            _ASSET,
            Field("issuer", _KEY, path="issuer_public_key"),
            Field("decimals", _ANY),
            Field("nft", _ANY),
        ),
        path="asset_statics",
    ),
    Field(
        "asset_volumes",
        _many(
            AssetVolume,
            _ASSET,
            Field("reissuable", _ANY),
            Field("quantity", Kind(message=MessageKind(_volume, volume_bytes)), path="volume"),
        ),
    ),
    Field(
        "asset_names",
        _many(AssetName, _ASSET, Field("name", kinds.TEXT), Field("description", kinds.TEXT)),
        path="asset_names_and_descriptions",
    ),
    Field("asset_script", _one(AssetScript, _ASSET, Field("script", _ANY)), path="asset_scripts"),
    Field("alias", _one(NewAlias, _OWNER, Field("name", _ANY, path="alias")), path="aliases"),
    Field(
        "order_fills",
        _many(OrderFill, Field("order_id", _DIGEST), Field("volume", _ANY), Field("fee", _ANY)),
    ),
    Field(
        "account_script",
        _one(
            AccountScript,
            Field("public_key", _KEY, path="sender_public_key"),
            Field("script", _ANY),
            Field("verifier_complexity", _ANY),
        ),
        path="account_scripts",
    ),
    Field("account_data", _many(AccountData, _OWNER, Field("entries", kinds.DATA_ENTRIES))),
    Field("sponsorships", _many(Sponsorship, _ASSET, Field("min_fee", _ANY))),
    Field("status", Kind(message=MessageKind(_status, int)), path="transaction_status"),
    Field(
        "generation_commitment",
        _one(
            GenerationCommitment,
            Field("sender_public_key", _KEY),
            Field("endorser_public_key", _ANY),
        ),
    ),
)


# --- snapshots ------------------------------------------------------------------------------------

from_message: Callable[[_Message, int], Snapshot] = fields.message_reader(Snapshot, _FIELDS)
"""A snapshot from its message; raises ``FormatError`` or ``AddressError``."""
_fill: Final = fields.message_writer(Snapshot, _FIELDS)


def to_message(snapshot: Snapshot) -> _Message:
    """The message of a snapshot."""
    message = _Message()
    _fill(message, snapshot)
    return message


def encode(snapshot: Snapshot) -> bytes:
    """The deterministic bytes of a snapshot."""
    return protobuf.serialize(to_message(snapshot))


def decode(data: bytes, chain_id: int) -> Snapshot:
    """A snapshot from its bytes; raises ``FormatError`` or ``AddressError``."""
    return from_message(_parsed(_Message, data), chain_id)


def encode_block(block: BlockSnapshot) -> bytes:
    """The bytes of a block's snapshots."""
    message = state_snapshot_pb2.BlockSnapshot(block_id=block.block_id)
    message.snapshots.extend(map(to_message, block.snapshots))
    return protobuf.serialize(message)


class BlockSnapshots:
    """The bytes of a block's snapshots, put together one by one."""

    __slots__ = ("_message",)

    def __init__(self, block_id: bytes) -> None:
        self._message = state_snapshot_pb2.BlockSnapshot(block_id=block_id)

    def add(self, snapshot: Snapshot) -> None:
        """That of the next transaction."""
        _fill(self._message.snapshots.add(), snapshot)

    def encode(self) -> bytes:
        """All of them."""
        return protobuf.serialize(self._message)


def decode_block(data: bytes, chain_id: int) -> BlockSnapshot:
    """The snapshots of a block; raises ``FormatError`` or ``AddressError``."""
    message = _parsed(state_snapshot_pb2.BlockSnapshot, data)
    return BlockSnapshot(message.block_id, _snapshots(message.snapshots, chain_id))


def encode_microblock(block: BlockSnapshot) -> bytes:
    """The bytes of a microblock's snapshots."""
    message = state_snapshot_pb2.MicroBlockSnapshot(total_block_id=block.block_id)
    message.snapshots.extend(map(to_message, block.snapshots))
    return protobuf.serialize(message)


def decode_microblock(data: bytes, chain_id: int) -> BlockSnapshot:
    """The snapshots of a microblock; raises ``FormatError`` or ``AddressError``."""
    message = _parsed(state_snapshot_pb2.MicroBlockSnapshot, data)
    return BlockSnapshot(message.total_block_id, _snapshots(message.snapshots, chain_id))


class Unread:
    """The snapshots of a block or microblock, of which each is read when its turn comes: a whole
    block's take their time. Iterating raises ``FormatError`` or ``AddressError``.
    """

    __slots__ = ("_chain_id", "_data", "_spans", "block_id")

    def __init__(self, data: bytes, chain_id: int) -> None:
        """Raises ``FormatError`` for bytes that are no such message."""
        if len(data) > MAX_SNAPSHOT_BYTES:
            raise FormatError(f"{len(data)} bytes are more than snapshots can have")
        self._data, self._chain_id = data, chain_id
        self.block_id = b""
        self._spans: list[tuple[int, int]] = []
        # Those of a microblock have the same form.
        for field, start, end in protobuf.spans(data):
            if field == _ID_FIELD:
                self.block_id = data[start:end]
            elif field == _SNAPSHOTS_FIELD:
                self._note(start, end)

    def _note(self, start: int, end: int) -> None:
        if len(self._spans) == MAX_TRANSACTIONS:
            raise FormatError(f"snapshots of more than {MAX_TRANSACTIONS} transactions")
        if end - start > MAX_BYTES_OF_ONE:
            raise FormatError(f"a snapshot of {end - start} bytes, above {MAX_BYTES_OF_ONE}")
        self._spans.append((start, end))

    def __len__(self) -> int:
        return len(self._spans)

    def __iter__(self) -> Iterator[Snapshot]:
        return (decode(self._data[start:end], self._chain_id) for start, end in self._spans)


def peek_id(data: bytes) -> bytes:
    """The id of the block that snapshots belong to, from their bytes as peers send them, where it
    stands first, as everybody writes it. Nothing else is read; raises ``FormatError``.
    """
    size = data[1] if len(data) > 1 and data[0] == _ID_FIRST_BYTE else 0
    if not 0 < size <= _MAX_ID_BYTES or len(data) < 2 + size:
        raise FormatError("snapshots that do not begin with the id of a block")
    return data[2 : 2 + size]


def _parsed(kind: type[protobuf.M], data: bytes) -> protobuf.M:
    if len(data) > MAX_SNAPSHOT_BYTES:
        raise FormatError(f"{len(data)} bytes are more than snapshots can have")
    return protobuf.parse(kind, data)


def _snapshots(messages: Iterable[_Message], chain_id: int) -> tuple[Snapshot, ...]:
    return tuple(from_message(message, chain_id) for message in messages)
