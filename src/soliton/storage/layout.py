"""The key layout of the store: every kind of record, its prefix, key and value. This is the one
place that knows.

| prefix | key | value |
|---|---|---|
| ``W`` | address | i64 balance in wavelets |
| ``A`` | address, asset id | i64 balance |
| ``L`` | address | i64 leased in, i64 leased out |
| ``D`` | address, data key | typed value |
| ``I`` | asset id | issuer, decimals, NFT flag |
| ``S`` | asset id | i64 sponsorship |
| ``N`` | alias | address |
| ``h`` | address, u32 height | i64 balance, leased in, leased out after that block |
| ``b`` | u32 height | the block's bytes |
| ``m`` | u32 height | ``BlockMeta`` (MessagePack) |
| ``i`` | block id | u32 height |
| ``t`` | transaction id | u32 height, u32 offset and u32 length in the block's bytes, u8 status |
| ``a`` | address, u32 height, u16 index | transaction id |
| ``u`` | u32 height | undo record (MessagePack): what every key held before the block |
| ``!`` | a name | facts about the store itself |

Numbers in keys are big-endian, so that keys sort by height.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

import msgspec

from soliton.chain.addresses import ADDRESS_LENGTH, Address
from soliton.chain.values import DELETED_VALUE, DataValue, read_value, value_bytes
from soliton.ledger.state import (
    ALIASES,
    ASSET_BALANCES,
    ASSETS,
    DATA,
    LEASES,
    SPONSORSHIPS,
    WAVES,
    AssetInfo,
    LeaseBalance,
    Table,
)

LAYOUT_VERSION: Final = 1

BLOCK: Final = b"b"
META: Final = b"m"
BLOCK_HEIGHT: Final = b"i"
TRANSACTION: Final = b"t"
ADDRESS_TRANSACTION: Final = b"a"
HISTORY: Final = b"h"
UNDO: Final = b"u"
TIP: Final = b"!tip"
NETWORK: Final = b"!network"
VERSION: Final = b"!layout"

LOCATION: Final = struct.Struct(">IIIB")
HISTORY_VALUE: Final = struct.Struct(">qqq")
_I64: Final = struct.Struct(">q")
_TWO_I64: Final = struct.Struct(">qq")
_ASSET_INFO: Final = struct.Struct(">32sB?")


class Row(msgspec.Struct, frozen=True):
    """How one state table is kept: its prefix and the two codecs."""

    prefix: bytes
    key: Callable[[Any], bytes]
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


def height_key(prefix: bytes, height: int) -> bytes:
    """The key of a record that belongs to a height."""
    return prefix + height.to_bytes(4, "big")


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
    return _ASSET_INFO.pack(info.issuer, info.decimals, info.nft)


def _decode_asset(raw: bytes) -> AssetInfo:
    return AssetInfo(*_ASSET_INFO.unpack(raw))


def _data_key(key: tuple[Address, str]) -> bytes:
    return key[0] + key[1].encode()


def decode_data_key(raw: bytes) -> tuple[Address, str]:
    """Address and data key from a stored key, prefix included."""
    return Address(raw[1 : 1 + ADDRESS_LENGTH]), raw[1 + ADDRESS_LENGTH :].decode()


ROWS: Final[dict[Table[Any, Any], Row]] = {
    WAVES: Row(b"W", _bytes_key, _I64.pack, _decode_i64),
    ASSET_BALANCES: Row(b"A", lambda key: key[0] + key[1], _I64.pack, _decode_i64),
    LEASES: Row(b"L", _bytes_key, _encode_leases, _decode_leases),
    DATA: Row(b"D", _data_key, value_bytes, _decode_data),
    ASSETS: Row(b"I", _bytes_key, _encode_asset, _decode_asset),
    SPONSORSHIPS: Row(b"S", _bytes_key, _I64.pack, _decode_i64),
    ALIASES: Row(b"N", lambda name: name.encode(), bytes, Address),
}


class BlockMeta(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is kept about a block besides its bytes: the results of having applied it.

    Amounts in wavelets, ``score`` is the chain's score up to this block (big-endian bytes),
    ``sections`` maps the index of a state hash section to its hash where that is not the empty one.
    """

    id: bytes
    timestamp: int
    hit_source: bytes
    score: bytes
    carry: tuple[tuple[bytes | None, int], ...]
    reward: int
    reward_vote: int
    total_fee: int
    total_waves: int
    generator: bytes
    size: int
    transaction_count: int
    snapshot_hash: bytes
    state_hash: bytes
    sections: dict[int, bytes]


UndoRecord = list[tuple[bytes, bytes | None]]

encode_meta: Final = msgspec.msgpack.Encoder().encode
decode_meta: Final = msgspec.msgpack.Decoder(BlockMeta).decode
decode_undo: Final = msgspec.msgpack.Decoder(UndoRecord).decode
