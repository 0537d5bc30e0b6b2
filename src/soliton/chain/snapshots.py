"""Snapshots: what a transaction changed, as light nodes send and receive it in place of rules.

All values are those after the transaction, not differences.

What lives here: the records and their messages. What does not: how they come from changes of the
state and how they are hashed (``soliton.ledger``).

Sources: wavesplatform/protobuf-schemas ``proto/waves/transaction_state_snapshot.proto``;
wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/protobuf/PBSnapshots.scala``.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final

import msgspec

from soliton.chain import protobuf
from soliton.chain.addresses import PUBLIC_KEY_LENGTH, Address, check_address
from soliton.chain.errors import FormatError
from soliton.chain.layouts import DIGEST_LENGTH
from soliton.chain.proto import state_snapshot_pb2, transaction_state_snapshot_pb2
from soliton.chain.values import AssetId, DataEntry

MAX_SNAPSHOT_BYTES: Final = 16_777_216
"""Of a whole block's snapshots; far above what a block's transactions can change."""
MAX_VOLUME_BYTES: Final = 32
"""Volumes fit in 64 bits, but for a few of the first years that overflowed."""

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


# --- messages to values ---------------------------------------------------------------------------


def decode(data: bytes, chain_id: int) -> Snapshot:
    """A snapshot from its bytes; raises ``FormatError`` or ``AddressError``."""
    _check_size(data)
    return from_message(protobuf.parse(_Message, data), chain_id)


def decode_block(data: bytes, chain_id: int) -> BlockSnapshot:
    """The snapshots of a block; raises ``FormatError`` or ``AddressError``."""
    _check_size(data)
    message = protobuf.parse(state_snapshot_pb2.BlockSnapshot, data)
    return BlockSnapshot(message.block_id, _snapshots(message.snapshots, chain_id))


def decode_microblock(data: bytes, chain_id: int) -> BlockSnapshot:
    """The snapshots of a microblock; raises ``FormatError`` or ``AddressError``."""
    _check_size(data)
    message = protobuf.parse(state_snapshot_pb2.MicroBlockSnapshot, data)
    return BlockSnapshot(message.total_block_id, _snapshots(message.snapshots, chain_id))


def _check_size(data: bytes) -> None:
    if len(data) > MAX_SNAPSHOT_BYTES:
        raise FormatError(f"{len(data)} bytes are more than snapshots can have")


def _snapshots(messages: Iterable[_Message], chain_id: int) -> tuple[Snapshot, ...]:
    return tuple(from_message(message, chain_id) for message in messages)


def from_message(message: _Message, chain_id: int) -> Snapshot:
    """A snapshot from its message; raises ``FormatError`` or ``AddressError``."""
    return Snapshot(
        balances=tuple(
            Balance(
                check_address(item.address, chain_id),
                protobuf.read_asset(item.amount.asset_id),
                item.amount.amount,
            )
            for item in message.balances
        ),
        lease_balances=tuple(
            LeaseBalance(check_address(item.address, chain_id), getattr(item, "in"), item.out)
            for item in message.lease_balances
        ),
        new_leases=tuple(
            NewLease(
                _digest(item.lease_id),
                _public_key(item.sender_public_key),
                check_address(item.recipient_address, chain_id),
                item.amount,
            )
            for item in message.new_leases
        ),
        cancelled_leases=tuple(_digest(item.lease_id) for item in message.cancelled_leases),
        new_assets=_new_assets(message),
        asset_volumes=tuple(
            AssetVolume(_digest(item.asset_id), item.reissuable, _volume(item.volume))
            for item in message.asset_volumes
        ),
        asset_names=tuple(
            AssetName(_digest(item.asset_id), item.name.encode(), item.description.encode())
            for item in message.asset_names_and_descriptions
        ),
        order_fills=tuple(
            OrderFill(_digest(item.order_id), item.volume, item.fee) for item in message.order_fills
        ),
        account_data=tuple(
            AccountData(
                check_address(item.address, chain_id),
                tuple(map(protobuf.read_data_entry, item.entries)),
            )
            for item in message.account_data
        ),
        sponsorships=tuple(
            Sponsorship(_digest(item.asset_id), item.min_fee) for item in message.sponsorships
        ),
        status=_status(message.transaction_status),
        asset_script=_asset_script(message),
        alias=_alias(message, chain_id),
        account_script=_account_script(message),
        generation_commitment=_commitment(message),
    )


def _new_assets(message: _Message) -> tuple[NewAsset, ...]:
    return tuple(
        NewAsset(
            _digest(item.asset_id), _public_key(item.issuer_public_key), item.decimals, item.nft
        )
        for item in message.asset_statics
    )


def _asset_script(message: _Message) -> AssetScript | None:
    if not message.HasField("asset_scripts"):
        return None
    item = message.asset_scripts
    return AssetScript(_digest(item.asset_id), item.script)


def _alias(message: _Message, chain_id: int) -> NewAlias | None:
    if not message.HasField("aliases"):
        return None
    return NewAlias(check_address(message.aliases.address, chain_id), message.aliases.alias)


def _account_script(message: _Message) -> AccountScript | None:
    if not message.HasField("account_scripts"):
        return None
    item = message.account_scripts
    return AccountScript(_public_key(item.sender_public_key), item.script, item.verifier_complexity)


def _commitment(message: _Message) -> GenerationCommitment | None:
    if not message.HasField("generation_commitment"):
        return None
    item = message.generation_commitment
    return GenerationCommitment(_public_key(item.sender_public_key), item.endorser_public_key)


def _status(number: int) -> Status:
    try:
        return Status(number)
    except ValueError as error:
        raise FormatError(f"unknown status {number} of a transaction") from error


def _digest(data: bytes) -> bytes:
    if len(data) != DIGEST_LENGTH:
        raise FormatError(f"id of {len(data)} bytes")
    return data


def _public_key(data: bytes) -> bytes:
    if len(data) not in (PUBLIC_KEY_LENGTH, 2 * PUBLIC_KEY_LENGTH):
        raise FormatError(f"public key of {len(data)} bytes")
    return data


def _volume(data: bytes) -> int:
    if not 0 < len(data) <= MAX_VOLUME_BYTES:
        raise FormatError(f"volume of {len(data)} bytes")
    return int.from_bytes(data, "big", signed=True)


# --- values to messages ---------------------------------------------------------------------------


def encode(snapshot: Snapshot) -> bytes:
    """The deterministic bytes of a snapshot."""
    return protobuf.serialize(to_message(snapshot))


def encode_block(block: BlockSnapshot) -> bytes:
    """The bytes of a block's snapshots."""
    message = state_snapshot_pb2.BlockSnapshot(block_id=block.block_id)
    message.snapshots.extend(map(to_message, block.snapshots))
    return protobuf.serialize(message)


def encode_microblock(block: BlockSnapshot) -> bytes:
    """The bytes of a microblock's snapshots."""
    message = state_snapshot_pb2.MicroBlockSnapshot(total_block_id=block.block_id)
    message.snapshots.extend(map(to_message, block.snapshots))
    return protobuf.serialize(message)


def volume_bytes(quantity: int) -> bytes:
    """Big-endian two's complement, as short as possible."""
    positive = quantity if quantity >= 0 else ~quantity
    return quantity.to_bytes(positive.bit_length() // 8 + 1, "big", signed=True)


def to_message(snapshot: Snapshot) -> _Message:
    """The message of a snapshot."""
    message = _Message(
        cancelled_leases=[_Message.CancelledLease(lease_id=i) for i in snapshot.cancelled_leases],
        transaction_status=int(snapshot.status),  # type: ignore[arg-type]  # nominal in the stub
    )
    _write_accounts(message, snapshot)
    _write_assets(message, snapshot)
    for lease in snapshot.new_leases:
        message.new_leases.add(
            lease_id=lease.lease_id,
            sender_public_key=lease.sender_public_key,
            recipient_address=lease.recipient,
            amount=lease.amount,
        )
    for fill in snapshot.order_fills:
        message.order_fills.add(order_id=fill.order_id, volume=fill.volume, fee=fill.fee)
    commitment = snapshot.generation_commitment
    if commitment is not None:
        target = message.generation_commitment
        target.sender_public_key = commitment.sender_public_key
        target.endorser_public_key = commitment.endorser_public_key
    return message


def _write_accounts(message: _Message, snapshot: Snapshot) -> None:
    for balance in snapshot.balances:
        target = message.balances.add(address=balance.address)
        protobuf.write_amount(target.amount, balance.asset_id, balance.amount)
    for lease in snapshot.lease_balances:
        numbers = {"in": lease.lease_in, "out": lease.lease_out}
        message.lease_balances.add(address=lease.address, **numbers)
    for data in snapshot.account_data:
        entries = message.account_data.add(address=data.address).entries
        for entry in data.entries:
            protobuf.write_data_entry(entries.add(), entry)
    if snapshot.alias is not None:
        message.aliases.address = snapshot.alias.address
        message.aliases.alias = snapshot.alias.name
    script = snapshot.account_script
    if script is not None:
        message.account_scripts.sender_public_key = script.public_key
        message.account_scripts.script = script.script
        message.account_scripts.verifier_complexity = script.verifier_complexity


def _write_assets(message: _Message, snapshot: Snapshot) -> None:
    for asset in snapshot.new_assets:
        message.asset_statics.add(
            asset_id=asset.asset_id,
            issuer_public_key=asset.issuer,
            decimals=asset.decimals,
            nft=asset.nft,
        )
    for volume in snapshot.asset_volumes:
        message.asset_volumes.add(
            asset_id=volume.asset_id,
            reissuable=volume.reissuable,
            volume=volume_bytes(volume.quantity),
        )
    for named in snapshot.asset_names:
        message.asset_names_and_descriptions.add(
            asset_id=named.asset_id,
            name=named.name.decode(errors="replace"),
            description=named.description.decode(errors="replace"),
        )
    if snapshot.asset_script is not None:
        message.asset_scripts.asset_id = snapshot.asset_script.asset_id
        message.asset_scripts.script = snapshot.asset_script.script
    for sponsored in snapshot.sponsorships:
        message.sponsorships.add(asset_id=sponsored.asset_id, min_fee=sponsored.min_fee)
