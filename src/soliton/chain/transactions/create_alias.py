"""Type 10, create alias: a short name for the sender's account.

The id of versions 1 and 2 is the hash of the alias alone, so claiming an alias twice gives the same
id.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/CreateAliasTransaction.scala`` and
``transaction/serialization/impl/CreateAliasTxSerializer.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain import layouts
from soliton.chain.addresses import ALIAS_VERSION, Alias, make_alias
from soliton.chain.errors import FormatError
from soliton.chain.fields import Field, Kind, MessageKind
from soliton.chain.json_kinds import JsonKind, expect_string
from soliton.chain.json_schemas import TEXT_SCHEMA
from soliton.chain.layouts import Variable, take, take_u16
from soliton.chain.transactions import checks, model
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto.hashes import blake2b256

_TYPE_BYTE: Final = b"\x0a"
_FIRST_PROTOBUF_VERSION: Final = 3
_KEY_LENGTH: Final = 32


class CreateAlias(msgspec.Struct, frozen=True, gc=False):
    """The alias, which is not validated before the other rules are checked."""

    alias: Alias


def _make_id(version: int, body: bytes, _proofs: tuple[bytes, ...]) -> bytes:
    if version >= _FIRST_PROTOBUF_VERSION:
        return blake2b256(body)
    length_at = version + _KEY_LENGTH  # the head has one byte in version 1, two in version 2
    start = length_at + 2
    return blake2b256(_TYPE_BYTE + body[start : start + take_u16(body, length_at)])


def _validate(transaction: AnyTransaction) -> None:
    alias: Alias = transaction.payload.alias
    checks.check_fee(transaction)
    make_alias(alias.name, alias.chain_id)
    checks.check_chain(alias, transaction)


def _name_of(alias: Alias) -> str:
    return alias.name


def _read_alias(data: bytes, offset: int) -> tuple[Alias, int]:
    length = take_u16(data, offset)
    if take(data, offset + 2, 1)[0] != ALIAS_VERSION:
        raise FormatError(f"no alias at offset {offset + 2}")
    alias, end = layouts.RECIPIENT.read(data, offset + 2)
    if end != offset + 2 + length:
        raise FormatError(f"an alias of {end - offset - 2} bytes in a field of {length}")
    return alias, end


def _write_alias(alias: Alias) -> bytes:
    if len(alias.name) > layouts.MAX_BYTES16:
        raise FormatError(f"a name of {len(alias.name)} characters")
    return layouts.write_bytes16(alias.to_bytes())


_ALIAS: Final = Kind(
    JsonKind(lambda value, chain_id: Alias(chain_id, expect_string(value)), _name_of, TEXT_SCHEMA),
    Variable(_read_alias, _write_alias),
    MessageKind(lambda name, chain_id: Alias(chain_id, name), _name_of),
)
_LAYOUT = "sender_public_key alias fee timestamp"

TYPE = model.TransactionType(
    type_id=10,
    name="create_alias",
    title="CreateAliasTransaction",
    payload=CreateAlias,
    max_version=3,
    fields=(Field("alias", _ALIAS),),
    binary={
        1: model.BinaryForm(_TYPE_BYTE, _LAYOUT, model.Auth.SIGNATURE_LAST),
        2: model.BinaryForm(_TYPE_BYTE + b"\2", _LAYOUT, model.Auth.PROOFS, lead=b"\0"),
    },
    protobuf=model.ProtobufForm("create_alias", strict=False),
    ride=model.RideForm(
        "alias", extra={"alias": model.RideField("String", lambda payload: payload.alias.name)}
    ),
    validate=_validate,
    protobuf_since=_FIRST_PROTOBUF_VERSION,
    make_id=_make_id,
    signature_versions=frozenset({1}),
    request=model.RequestForm(fee_required=False),
)
