"""Snapshots: the state changes of a transaction, which light nodes exchange instead of executing.

All values are those after the transaction, not differences.

What lives here: the records and their messages. What does not: conversion from and to changes of
the state, and hashing (``soliton.ledger``).

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
"""The limit for the snapshots of a block; far above what its transactions can change."""
MAX_BYTES_OF_ONE: Final = 1_048_576
"""The limit for the snapshot of one transaction; the largest contain a script or account data.
Empty members take two bytes there, and a hundred when decoded.
"""
MAX_VOLUME_BYTES: Final = 32
"""Volumes fit in 64 bits, except for a few that overflowed in early history."""

_ID_FIELD: Final = 1
_SNAPSHOTS_FIELD: Final = 2
_ID_FIRST_BYTE: Final = 0x0A
_MAX_ID_BYTES: Final = 64

_Message = transaction_state_snapshot_pb2.TransactionStateSnapshot


class Status(IntEnum):
    """The status of a transaction."""

    SUCCEEDED = 0
    FAILED = 1
    ELIDED = 2


class Balance(msgspec.Struct, frozen=True, gc=False):
    """An account's balance of an asset (``None``: the native coin)."""

    address: Address
    asset_id: AssetId | None
    amount: int


class LeaseBalance(msgspec.Struct, frozen=True, gc=False):
    """Wavelets leased to an account and by it."""

    address: Address
    lease_in: int
    lease_out: int


class NewLease(msgspec.Struct, frozen=True, gc=False):
    """A new lease."""

    lease_id: bytes
    sender_public_key: bytes
    recipient: Address
    amount: int


class NewAsset(msgspec.Struct, frozen=True, gc=False):
    """The constant properties of a new asset; ``issuer`` is a public key."""

    asset_id: AssetId
    issuer: bytes
    decimals: int
    nft: bool


class AssetVolume(msgspec.Struct, frozen=True, gc=False):
    """The quantity of an asset, and whether it can be increased."""

    asset_id: AssetId
    reissuable: bool
    quantity: int


class AssetName(msgspec.Struct, frozen=True, gc=False):
    """The name and description of an asset."""

    asset_id: AssetId
    name: bytes
    description: bytes


class AssetScript(msgspec.Struct, frozen=True, gc=False):
    """The script of a smart asset."""

    asset_id: AssetId
    script: bytes


class NewAlias(msgspec.Struct, frozen=True, gc=False):
    """A new alias of an account."""

    address: Address
    name: str


class OrderFill(msgspec.Struct, frozen=True, gc=False):
    """The executed amount of an order, and the matcher fee that was paid."""

    order_id: bytes
    volume: int
    fee: int


class AccountScript(msgspec.Struct, frozen=True, gc=False):
    """The script of an account, empty if it was removed."""

    public_key: bytes
    script: bytes
    verifier_complexity: int


class AccountData(msgspec.Struct, frozen=True, gc=False):
    """Entries of an account's data storage."""

    address: Address
    entries: tuple[DataEntry, ...]


class Sponsorship(msgspec.Struct, frozen=True, gc=False):
    """The amount of an asset that is worth a unit of fees; 0 if it is not sponsored."""

    asset_id: AssetId
    min_fee: int


class GenerationCommitment(msgspec.Struct, frozen=True, gc=False):
    """A generator's key for endorsements."""

    sender_public_key: bytes
    endorser_public_key: bytes


class Snapshot(msgspec.Struct, frozen=True, gc=False):
    """The state changes of one transaction."""

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
    """The snapshots of a block's transactions, in order.

    For a microblock the id is that of the resulting block.
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
    """Return the big-endian two's complement of minimal length."""
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
"""Converts a message to a snapshot; raises ``FormatError`` or ``AddressError``."""
_fill: Final = fields.message_writer(Snapshot, _FIELDS)


def to_message(snapshot: Snapshot) -> _Message:
    """Return the message of a snapshot."""
    message = _Message()
    _fill(message, snapshot)
    return message


def encode(snapshot: Snapshot) -> bytes:
    """Return the deterministic bytes of a snapshot."""
    return protobuf.serialize(to_message(snapshot))


def decode(data: bytes, chain_id: int) -> Snapshot:
    """Decode a snapshot; raise ``FormatError`` or ``AddressError``."""
    return from_message(_parsed(_Message, data), chain_id)


def encode_block(block: BlockSnapshot) -> bytes:
    """Encode the snapshots of a block."""
    message = state_snapshot_pb2.BlockSnapshot(block_id=block.block_id)
    message.snapshots.extend(map(to_message, block.snapshots))
    return protobuf.serialize(message)


class BlockSnapshotEncoder:
    """Encodes the snapshots of a block, which are added one by one."""

    __slots__ = ("_message",)

    def __init__(self, block_id: bytes) -> None:
        self._message = state_snapshot_pb2.BlockSnapshot(block_id=block_id)

    def add(self, snapshot: Snapshot) -> None:
        """Add the snapshot of the next transaction."""
        _fill(self._message.snapshots.add(), snapshot)

    def encode(self) -> bytes:
        """Return the bytes of all snapshots."""
        return protobuf.serialize(self._message)


def decode_block(data: bytes, chain_id: int) -> BlockSnapshot:
    """Decode the snapshots of a block; raise ``FormatError`` or ``AddressError``."""
    message = _parsed(state_snapshot_pb2.BlockSnapshot, data)
    return BlockSnapshot(message.block_id, _snapshots(message.snapshots, chain_id))


def encode_microblock(block: BlockSnapshot) -> bytes:
    """Encode the snapshots of a microblock."""
    message = state_snapshot_pb2.MicroBlockSnapshot(total_block_id=block.block_id)
    message.snapshots.extend(map(to_message, block.snapshots))
    return protobuf.serialize(message)


def decode_microblock(data: bytes, chain_id: int) -> BlockSnapshot:
    """Decode the snapshots of a microblock; raise ``FormatError`` or ``AddressError``."""
    message = _parsed(state_snapshot_pb2.MicroBlockSnapshot, data)
    return BlockSnapshot(message.total_block_id, _snapshots(message.snapshots, chain_id))


class LazySnapshots:
    """The snapshots of a block or microblock, decoded lazily, because those of a block may take
    long. Iterating raises ``FormatError`` or ``AddressError``.
    """

    __slots__ = ("_chain_id", "_data", "_spans", "block_id")

    def __init__(self, data: bytes, chain_id: int) -> None:
        """Raises ``FormatError`` if the bytes are not such a message."""
        if len(data) > MAX_SNAPSHOT_BYTES:
            raise FormatError(f"{len(data)} bytes are more than snapshots can have")
        self._data, self._chain_id = data, chain_id
        self.block_id = b""
        self._spans: list[tuple[int, int]] = []
        # The message of a microblock has the same form.
        for field, start, end in protobuf.spans(data):
            if field == _ID_FIELD:
                self.block_id = data[start:end]
            elif field == _SNAPSHOTS_FIELD:
                self._add_span(start, end)

    def _add_span(self, start: int, end: int) -> None:
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
    """Return the block id of encoded snapshots, which all encoders write first, without decoding
    the rest. Raises ``FormatError``.
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
