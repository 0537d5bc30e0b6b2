"""The key layout of the store: every kind of record, its prefix, key and value.

| prefix | key | value |
|---|---|---|
| ``W`` | address | i64 balance in wavelets |
| ``A`` | address, asset id | i64 balance |
| ``L`` | address | i64 leased in, i64 leased out |
| ``D`` | address, data key | typed value |
| ``I`` | asset id | issuer, decimals, NFT flag |
| ``S`` | asset id | i64 sponsorship |
| ``N`` | alias | address |
| ``V`` | asset id | ``AssetVolume`` (MessagePack) |
| ``M`` | asset id | ``AssetName`` (MessagePack) |
| ``C`` | asset id | ``AssetScript`` (MessagePack) |
| ``E`` | first 20 bytes of an asset id | asset id |
| ``P`` | address | ``AccountScript`` (MessagePack) |
| ``l`` | lease id | ``LeaseInfo`` (MessagePack) |
| ``s`` | lease id | ``LeaseState`` (MessagePack) |
| ``O`` | order id | i64 volume, i64 fee |
| ``F`` | u16 feature | u32 height at which it was approved |
| ``X`` | address | u32 heights at which it was challenged |
| ``c`` | u32 first height of a period, u32 index | ``Commitment`` (MessagePack) |
| ``g`` | u32 first height of a period, name | u32 number: an index counted from 1, or their count |
| ``j`` | u32 first height of a period, u32 index | u32 height of a conflicting endorsement |
| ``G`` | address | i64 wavelets that are a deposit of commitments |
| ``h`` | address, u32 height | i64 balance, leased in, leased out, deposit if any |
| ``b`` | u32 height | the block's bytes |
| ``q`` | u32 height | the header of a block whose transactions were deleted (``headers``) |
| ``o`` | first 8 bytes of a block id | the u32 heights of such blocks, in place of ``i`` |
| ``m`` | u32 height | ``BlockMeta`` (MessagePack) |
| ``i`` | block id | u32 height |
| ``t`` | transaction id | u32 height, u16 index, u32 offset and length, u8 status, u32 complexity |
| ``a`` | address, u32 height, u16 index | transaction id |
| ``z`` | u32 height, u16 index | the transaction's state changes: keys and values (MessagePack) |
| ``r`` | u32 height, u16 index | the record of the transaction's dApp call (MessagePack) |
| ``n`` | address, u32 height, u16 number in the block | alias |
| ``k`` | address, u32 height, u32 number counted down | id of a lease from or to it |
| ``f`` | address, u32 height, u32 sequence of issue, asset id | empty: an NFT that it has held |
| ``d`` | asset id, address, u32 height | i64 balance after that block |
| ``x`` | u32 height | ``Replaced`` (MessagePack): replaced state that has no history of its own |
| ``y`` | u32 height | changes by hand, which other nodes would refuse (``ByHand``, MessagePack) |
| ``u`` | u32 height | undo record (MessagePack): the value of every key before the block |
| ``!`` | a name | facts about the store itself |

Numbers in keys are big-endian, so that keys sort by height.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from soliton.chain.addresses import ADDRESS_LENGTH, Address
from soliton.chain.values import DELETED_VALUE, AssetId, DataValue, read_value, value_bytes
from soliton.ledger.edits import ByHand
from soliton.ledger.environment import BlockMeta
from soliton.ledger.state import (
    ACCOUNT_SCRIPTS,
    ALIASES,
    APPROVALS,
    ASSET_BALANCES,
    ASSET_NAMES,
    ASSET_SCRIPTS,
    ASSET_VOLUMES,
    ASSETS,
    BANS,
    COMMITMENTS,
    CONFLICTS,
    DATA,
    DEPOSITS,
    ERC20,
    GENERATORS,
    LEASE_INFO,
    LEASE_STATES,
    LEASES,
    ORDER_FILLS,
    SPONSORSHIPS,
    WAVES,
    AccountScript,
    AssetInfo,
    AssetName,
    AssetScript,
    AssetVolume,
    Changes,
    Commitment,
    LeaseBalance,
    LeaseInfo,
    LeaseState,
    OrderFill,
    Status,
    Table,
)

LAYOUT_VERSION: Final = 3

BLOCK: Final = b"b"
HEADER: Final = b"q"
SHORT_ID: Final = b"o"
META: Final = b"m"
BLOCK_HEIGHT: Final = b"i"
TRANSACTION: Final = b"t"
ADDRESS_TRANSACTION: Final = b"a"
HISTORY: Final = b"h"
SNAPSHOT: Final = b"z"
CALL: Final = b"r"
ADDRESS_ALIAS: Final = b"n"
ADDRESS_LEASE: Final = b"k"
ADDRESS_NFT: Final = b"f"
ASSET_HISTORY: Final = b"d"
REPLACED: Final = b"x"
BY_HAND: Final = b"y"
UNDO: Final = b"u"
TIP: Final = b"!tip"
NETWORK: Final = b"!network"
VERSION: Final = b"!layout"
KEPT: Final = b"!kept"

KINDS: Final = {
    b"W": "a balance",
    b"A": "a balance of an asset",
    b"L": "an account's leases",
    b"D": "an entry of an account's data",
    b"I": "an asset",
    b"S": "a sponsorship",
    b"N": "an alias",
    b"V": "an asset's quantity",
    b"M": "an asset's name",
    b"C": "an asset's script",
    b"E": "the short id of an asset",
    b"P": "an account's script",
    b"l": "a lease",
    b"s": "the state of a lease",
    b"O": "the fills of an order",
    b"F": "an approved feature",
    b"X": "the challenges of an account",
    b"c": "a generator's commitment",
    b"g": "the index of a generator",
    b"j": "a conflicting endorsement",
    b"G": "a deposit of commitments",
    b"h": "the history of a balance",
    b"b": "the bytes of a block",
    b"q": "the header of a block",
    b"o": "the heights of blocks by the beginning of their ids",
    b"m": "what is known about a block",
    b"i": "the height of a block",
    b"t": "the place of a transaction",
    b"a": "an account's transaction",
    b"z": "what a transaction wrote",
    b"r": "what a called dApp did",
    b"n": "an account's alias",
    b"k": "an account's lease",
    b"f": "an account's NFT",
    b"d": "the history of an asset's balance",
    b"x": "what a block changed at its beginning, and what it replaced",
    b"y": "what was done by hand",
    b"u": "what a block replaced",
    b"!": "a fact about the store itself",
}
"""The kinds of records by prefix, for error messages."""

Rows = Iterator[tuple[bytes, bytes]]
"""Keys and values in the order of keys."""

HEIGHT_BYTES: Final = 4
LOCATION: Final = struct.Struct(">IHIIBI")
_HISTORY: Final = struct.Struct(">qqq")
_HISTORY_WITH_DEPOSIT: Final = struct.Struct(">qqqq")
HISTORY_SIZES: Final = (_HISTORY.size, _HISTORY_WITH_DEPOSIT.size)
_I64: Final = struct.Struct(">q")
_TWO_I64: Final = struct.Struct(">qq")
_ASSET_INFO: Final = struct.Struct(">32sB?II")


class Row(msgspec.Struct, frozen=True):
    """How a state table is stored: its prefix, and the codecs of keys and values."""

    prefix: bytes
    key: Callable[[Any], bytes]
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


def height_key(prefix: bytes, height: int) -> bytes:
    """Return the key of a record that belongs to a height."""
    return prefix + height.to_bytes(4, "big")


def short_id_key(block_id: bytes) -> bytes:
    """Return the key of the heights of blocks whose ids begin as this one."""
    return SHORT_ID + block_id[:8]


def decode_heights(raw: bytes) -> tuple[int, ...]:
    """Decode some heights; raises ``ValueError`` for another length."""
    if not raw or len(raw) % HEIGHT_BYTES:
        raise ValueError(f"heights of {len(raw)} bytes")
    return _decode_heights(raw)


def history_key(address: Address, height: int) -> bytes:
    """Return the key of an account's balance after a block."""
    return HISTORY + address + height.to_bytes(4, "big")


def encode_history(balance: int, leases: LeaseBalance, deposit: int) -> bytes:
    """Encode an account's balance after a block."""
    if deposit:
        return _HISTORY_WITH_DEPOSIT.pack(balance, *leases, deposit)
    return _HISTORY.pack(balance, *leases)


def decode_history(raw: bytes) -> tuple[int, LeaseBalance, int]:
    """Decode the balance, leases and deposit of an account after a block."""
    if len(raw) == _HISTORY.size:
        balance, lease_in, lease_out = _HISTORY.unpack(raw)
        return balance, LeaseBalance(lease_in, lease_out), 0
    balance, lease_in, lease_out, deposit = _HISTORY_WITH_DEPOSIT.unpack(raw)
    return balance, LeaseBalance(lease_in, lease_out), deposit


def place_key(height: int, index: int) -> bytes:
    """Return a transaction's position in the chain, as a part of keys."""
    return height.to_bytes(4, "big") + index.to_bytes(2, "big")


def _bytes_key(key: bytes) -> bytes:
    return key


def _decode_i64(raw: bytes) -> int:
    value: int = _I64.unpack(raw)[0]
    return value


def _encode_leases(leases: LeaseBalance) -> bytes:
    return _TWO_I64.pack(*leases)


def _decode_leases(raw: bytes) -> LeaseBalance:
    return LeaseBalance(*_TWO_I64.unpack(raw))


def _decode_data(raw: bytes) -> DataValue:
    return None if raw == DELETED_VALUE else read_value(raw, 0)[0]


def _encode_asset(info: AssetInfo) -> bytes:
    fixed = _ASSET_INFO.pack(info.issuer, info.decimals, info.nft, info.height, info.sequence)
    return fixed + info.origin


def _decode_asset(raw: bytes) -> AssetInfo:
    issuer, decimals, nft, height, sequence = _ASSET_INFO.unpack_from(raw)
    return AssetInfo(issuer, decimals, nft, raw[_ASSET_INFO.size :], height, sequence)


def _encode_volume(volume: AssetVolume) -> bytes:
    size = volume.quantity.bit_length() // 8 + 1
    return bytes((volume.reissuable,)) + volume.quantity.to_bytes(size, "big", signed=True)


def _decode_volume(raw: bytes) -> AssetVolume:
    return AssetVolume(raw[0] == 1, int.from_bytes(raw[1:], "big", signed=True))


def _optional(encode: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    return lambda value: b"" if value is None else encode(value)


def _packed(kind: type[Any]) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    """Return the MessagePack codecs of a record; ``None`` is stored as an empty value."""
    decode = msgspec.msgpack.Decoder(kind).decode
    return _optional(msgspec.msgpack.Encoder().encode), lambda raw: decode(raw) if raw else None


def _encode_heights(heights: tuple[int, ...]) -> bytes:
    return b"".join(height.to_bytes(4, "big") for height in heights)


def _decode_heights(raw: bytes) -> tuple[int, ...]:
    return tuple(int.from_bytes(raw[at : at + 4], "big") for at in range(0, len(raw), 4))


def _decode_fill(raw: bytes) -> OrderFill:
    return OrderFill(*_TWO_I64.unpack(raw))


def _decode_alias(raw: bytes) -> Address | None:
    return Address(raw) if raw else None


def _data_key(key: tuple[Address, str]) -> bytes:
    return key[0] + key[1].encode()


def decode_data_key(raw: bytes) -> tuple[Address, str]:
    """Address and data key from a stored key, prefix included."""
    return Address(raw[1 : 1 + ADDRESS_LENGTH]), raw[1 + ADDRESS_LENGTH :].decode()


def decode_asset_balance_key(raw: bytes) -> tuple[Address, AssetId]:
    """Address and asset id from a stored key, prefix included."""
    return Address(raw[1 : 1 + ADDRESS_LENGTH]), AssetId(raw[1 + ADDRESS_LENGTH :])


def _number(number: int) -> bytes:
    return number.to_bytes(4, "big")


def _decode_number(raw: bytes) -> int:
    return int.from_bytes(raw, "big")


def _numbers_key(key: tuple[int, int]) -> bytes:
    return _number(key[0]) + _number(key[1])


def _decode_numbers_key(raw: bytes) -> tuple[int, int]:
    return _decode_number(raw[1:5]), _decode_number(raw[5:])


def _decode_generator_key(raw: bytes) -> tuple[int, bytes]:
    return _decode_number(raw[1:5]), raw[5:]


def _decode_name_key(raw: bytes) -> str:
    return raw[1:].decode()


def _decode_bytes_key(raw: bytes) -> bytes:
    return raw[1:]


ROWS: Final[dict[Table[Any, Any], Row]] = {
    WAVES: Row(b"W", _bytes_key, _I64.pack, _decode_i64),
    ASSET_BALANCES: Row(b"A", lambda key: key[0] + key[1], _I64.pack, _decode_i64),
    LEASES: Row(b"L", _bytes_key, _encode_leases, _decode_leases),
    DATA: Row(b"D", _data_key, value_bytes, _decode_data),
    ASSETS: Row(b"I", _bytes_key, _encode_asset, _decode_asset),
    SPONSORSHIPS: Row(b"S", _bytes_key, _I64.pack, _decode_i64),
    ALIASES: Row(b"N", lambda name: name.encode(), _optional(bytes), _decode_alias),
    ASSET_VOLUMES: Row(b"V", _bytes_key, _encode_volume, _decode_volume),
    ASSET_NAMES: Row(b"M", _bytes_key, *_packed(AssetName)),
    ASSET_SCRIPTS: Row(b"C", _bytes_key, *_packed(AssetScript)),
    ERC20: Row(b"E", _bytes_key, bytes, bytes),
    ACCOUNT_SCRIPTS: Row(b"P", _bytes_key, *_packed(AccountScript)),
    LEASE_INFO: Row(b"l", _bytes_key, *_packed(LeaseInfo)),
    LEASE_STATES: Row(b"s", _bytes_key, *_packed(LeaseState)),
    ORDER_FILLS: Row(b"O", _bytes_key, lambda fill: _TWO_I64.pack(*fill), _decode_fill),
    APPROVALS: Row(
        b"F",
        lambda feature: feature.to_bytes(2, "big"),
        _number,
        _decode_number,
    ),
    BANS: Row(b"X", _bytes_key, _encode_heights, _decode_heights),
    COMMITMENTS: Row(b"c", _numbers_key, *_packed(Commitment)),
    GENERATORS: Row(b"g", lambda key: _number(key[0]) + key[1], _number, _decode_number),
    CONFLICTS: Row(b"j", _numbers_key, _number, _decode_number),
    DEPOSITS: Row(b"G", _bytes_key, _I64.pack, _decode_i64),
}


_KEY_DECODERS: Final[dict[Table[Any, Any], Callable[[bytes], Any]]] = {
    DATA: decode_data_key,
    ASSET_BALANCES: decode_asset_balance_key,
    ALIASES: _decode_name_key,
    COMMITMENTS: _decode_numbers_key,
    GENERATORS: _decode_generator_key,
    CONFLICTS: _decode_numbers_key,
}
_TABLES: Final = {row.prefix: table for table, row in ROWS.items()}

ASSET_PREFIXES: Final = tuple(
    ROWS[table].prefix for table in (ASSET_VOLUMES, ASSET_NAMES, ASSET_SCRIPTS, SPONSORSHIPS)
)
WITHOUT_HISTORY: Final = (
    DATA,
    ACCOUNT_SCRIPTS,
    ASSET_VOLUMES,
    ASSET_NAMES,
    ASSET_SCRIPTS,
    SPONSORSHIPS,
)
"""The tables whose previous values clients may request, but which have no history index."""

_pack: Final = msgspec.msgpack.Encoder().encode
_NO_CHANGES: Final = _pack([])
_unpack_written: Final = msgspec.msgpack.Decoder(list[bytes]).decode


def encode_changes(changes: Changes) -> bytes:
    """Encode state changes as a flat list of stored keys and values, alternating."""
    if not changes:
        return _NO_CHANGES
    written: list[bytes] = []
    for table, values in changes.items():
        row = ROWS[table]
        for key, value in values.items():
            written.append(row.prefix + row.key(key))
            written.append(row.encode(value))
    return _pack(written)


def decode_changes(raw: bytes) -> Changes:
    """Decode the result of ``encode_changes``."""
    changes: Changes = {}
    written = _unpack_written(raw)
    for raw_key, raw_value in zip(written[::2], written[1::2], strict=True):
        table = _TABLES[raw_key[:1]]
        key = _KEY_DECODERS.get(table, _decode_bytes_key)(raw_key)
        changes.setdefault(table, {})[key] = ROWS[table].decode(raw_value)
    return changes


class Replaced(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the records of a block's transactions do not contain: the changes before the first
    transaction (``initial``, as ``encode_changes``), the ``count`` of transactions in the key
    block, and the values of data, script and asset records ``before`` the block, keys and values
    alternating. If one record of an asset is present, all are.
    """

    initial: bytes
    count: int
    before: list[bytes | None]


def pairs(by_turns: list[bytes | None]) -> dict[bytes, bytes | None]:
    """Convert alternating keys and values to a dictionary."""
    keys = [each for each in by_turns[::2] if each is not None]
    return dict(zip(keys, by_turns[1::2], strict=True))


class TransactionLocation(msgspec.Struct, frozen=True, gc=False):
    """Where a transaction is: its block's height, its index, and its position in the block's bytes.
    Also its status, and the complexity that its scripts spent.
    """

    height: int
    index: int
    offset: int
    length: int
    status: int
    complexity: int


def encode_location(place: TransactionLocation) -> bytes:
    """Encode the location of a transaction."""
    return LOCATION.pack(
        place.height, place.index, place.offset, place.length, place.status, place.complexity
    )


def decode_location(raw: bytes) -> TransactionLocation:
    """Decode the location of a transaction; raises ``ValueError`` for a status that is none."""
    found = TransactionLocation(*LOCATION.unpack(raw))
    Status(found.status)
    return found


def decode_height(raw: bytes) -> int:
    """Decode a height; raises ``ValueError`` for another length."""
    if len(raw) != HEIGHT_BYTES:
        raise ValueError(f"a height of {len(raw)} bytes")
    return int.from_bytes(raw, "big")


def decode_tip(raw: bytes) -> int:
    """Decode the height of a chain; raises ``ValueError`` if it has no block: then there is no
    record.
    """
    height = decode_height(raw)
    if not height:
        raise ValueError("a chain of no blocks")
    return height


UndoRecord = list[tuple[bytes, bytes | None]]

encode: Final = msgspec.msgpack.Encoder().encode
decode_call: Final = msgspec.msgpack.Decoder(dict[str, object]).decode
decode_by_hand: Final = msgspec.msgpack.Decoder(ByHand).decode
decode_meta: Final = msgspec.msgpack.Decoder(BlockMeta).decode
decode_replaced: Final = msgspec.msgpack.Decoder(Replaced).decode
decode_undo: Final = msgspec.msgpack.Decoder(UndoRecord).decode
