"""Type 3, issue: a new asset; its id is the transaction's.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/assets/IssueTransaction.scala``,
``transaction/serialization/impl/IssueTxSerializer.scala`` and
``transaction/validation/impl/IssueTxValidator.scala``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from soliton.chain.errors import InvalidDecimals, NonPositiveAmount, ValueRuleError
from soliton.chain.json_kinds import BASE58_SCHEMA, BOOLEAN, BYTE, LONG, SCRIPT_OF_ISSUE, TEXT
from soliton.chain.layouts import BOOL, BYTES16, I64, OPTIONAL_SCRIPT, PUBLIC_KEY, U8, Field
from soliton.chain.proto import transaction_pb2
from soliton.chain.transactions.checks import check_asset_script, check_asset_texts, check_fee
from soliton.chain.transactions.model import (
    AnyTransaction,
    Auth,
    BinaryForm,
    JsonField,
    ProtobufForm,
    RequestForm,
    TransactionType,
)
from soliton.crypto import base58

MAX_DECIMALS: Final = 8


class Issue(msgspec.Struct, frozen=True, gc=False):
    """``quantity`` of a new asset, in its smallest units, of which ``10 ** decimals`` are one.

    ``name`` and ``description`` are bytes: those of the first years are not always text.
    """

    name: bytes
    description: bytes
    quantity: int
    decimals: int
    reissuable: bool
    script: bytes | None = None


def _validate(transaction: AnyTransaction) -> None:
    payload: Issue = transaction.payload
    check_fee(transaction)
    if payload.quantity <= 0:
        raise NonPositiveAmount(payload.quantity, "assets")
    if not 0 <= payload.decimals <= MAX_DECIMALS:
        raise InvalidDecimals(payload.decimals)
    check_asset_texts(payload.name, payload.description)
    if transaction.version == 1 and payload.script is not None:
        raise ValueRuleError("Script not supported")
    check_asset_script(payload.script)


def _read(message: transaction_pb2.IssueTransactionData, _chain_id: int) -> dict[str, Any]:
    return {
        "name": message.name.encode(),
        "description": message.description.encode(),
        "quantity": message.amount,
        "decimals": message.decimals,
        "reissuable": message.reissuable,
        "script": message.script or None,
    }


def _write(message: transaction_pb2.IssueTransactionData, payload: Issue) -> None:
    message.name = payload.name.decode(errors="replace")
    message.description = payload.description.decode(errors="replace")
    message.amount = payload.quantity
    message.decimals = payload.decimals
    message.reissuable = payload.reissuable
    message.script = payload.script or b""


def _derived_json(transaction: AnyTransaction) -> dict[str, Any]:
    return {"assetId": base58.encode(transaction.id)}


_FIELDS: Final = (
    Field("sender_public_key", PUBLIC_KEY),
    Field("name", BYTES16),
    Field("description", BYTES16),
    Field("quantity", I64),
    Field("decimals", U8),
    Field("reissuable", BOOL),
    Field("fee", I64),
    Field("timestamp", I64),
)

TYPE = TransactionType(
    type_id=3,
    name="issue",
    title="IssueTransaction",
    payload=Issue,
    max_version=3,
    binary={
        1: BinaryForm(b"\3", _FIELDS, Auth.SIGNATURE_FIRST),
        2: BinaryForm(
            b"\3\2",
            (Field("chain_id", U8), *_FIELDS, Field("script", OPTIONAL_SCRIPT)),
            Auth.PROOFS,
            lead=b"\0",
        ),
    },
    protobuf=ProtobufForm("issue", _read, _write),
    json=(
        JsonField("name", "name", TEXT),
        JsonField("quantity", "quantity", LONG),
        JsonField("reissuable", "reissuable", BOOLEAN),
        JsonField("decimals", "decimals", BYTE),
        JsonField("description", "description", TEXT),
        JsonField("script", "script", SCRIPT_OF_ISSUE, default=None, since=2),
    ),
    validate=_validate,
    protobuf_since=3,
    signature_versions=frozenset({1}),
    chain_id_versions=frozenset({2}),
    derived_json=_derived_json,
    derived_schemas={"assetId": BASE58_SCHEMA},
    request=RequestForm(default_version=3),
)
