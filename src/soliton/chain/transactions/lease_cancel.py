"""Type 9, lease cancel: ends a lease.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/lease/LeaseCancelTransaction.scala``,
``transaction/serialization/impl/LeaseCancelTxSerializer.scala`` and
``transaction/validation/impl/LeaseCancelTxValidator.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain.errors import ValueRuleError
from soliton.chain.fields import Field, Kind
from soliton.chain.json_kinds import BASE58_SCHEMA, JsonKind, expect_string
from soliton.chain.layouts import DIGEST, DIGEST_LENGTH
from soliton.chain.transactions import checks, model
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error

_MAX_ID_CHARS: Final = 44


class LeaseCancel(msgspec.Struct, frozen=True, gc=False):
    """Ends a lease."""

    lease_id: bytes


def _validate(transaction: AnyTransaction) -> None:
    checks.check_fee(transaction)
    lease_id: bytes = transaction.payload.lease_id
    if len(lease_id) != DIGEST_LENGTH:
        raise ValueRuleError(
            f"Lease id={base58.encode(lease_id)} has invalid length = {len(lease_id)} byte(s) "
            f"while expecting {DIGEST_LENGTH}"
        )


def _read_id(value: object, _chain_id: int) -> bytes:
    try:
        return base58.decode(expect_string(value), _MAX_ID_CHARS)
    except Base58Error as error:
        raise ValueRuleError("invalid.leaseTx") from error


_LEASE_ID: Final = Kind(JsonKind(_read_id, base58.encode, BASE58_SCHEMA), DIGEST, ride="ByteVector")
_LAYOUT = "sender_public_key fee timestamp lease_id"

TYPE = model.TransactionType(
    type_id=9,
    name="lease_cancel",
    title="LeaseCancelTransaction",
    payload=LeaseCancel,
    max_version=3,
    fields=(Field("lease_id", _LEASE_ID, aliases=("txId",)),),
    binary={
        1: model.BinaryForm(b"\x09", _LAYOUT, model.Auth.SIGNATURE_LAST),
        2: model.BinaryForm(b"\x09\2", f"chain_id {_LAYOUT}", model.Auth.PROOFS, lead=b"\0"),
    },
    protobuf=model.ProtobufForm("lease_cancel"),
    ride=model.RideForm("leaseId"),
    validate=_validate,
    protobuf_since=3,
    signature_versions=frozenset({1}),
    chain_id_versions=frozenset({2}),
)
