"""Type 3, issue: creates an asset; its id is the transaction's.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/assets/IssueTransaction.scala``,
``transaction/serialization/impl/IssueTxSerializer.scala`` and
``transaction/validation/impl/IssueTxValidator.scala``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from soliton.chain import kinds
from soliton.chain.errors import InvalidDecimals, NonPositiveAmount, ValueRuleError
from soliton.chain.fields import Field
from soliton.chain.json_kinds import BASE58_SCHEMA
from soliton.chain.transactions import checks, model
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58

MAX_DECIMALS: Final = 8


class Issue(msgspec.Struct, frozen=True, gc=False):
    """Issues ``quantity`` smallest units of a new asset, of which ``10 ** decimals`` are one.

    ``name`` and ``description`` are bytes, because early ones are not always valid text.
    """

    name: bytes
    description: bytes
    quantity: int
    decimals: int
    reissuable: bool
    script: bytes | None = None


def _validate(transaction: AnyTransaction) -> None:
    payload: Issue = transaction.payload
    checks.check_fee(transaction)
    if payload.quantity <= 0:
        raise NonPositiveAmount(payload.quantity, "assets")
    if not 0 <= payload.decimals <= MAX_DECIMALS:
        raise InvalidDecimals(payload.decimals)
    checks.check_asset_texts(payload.name, payload.description)
    if transaction.version == 1 and payload.script is not None:
        raise ValueRuleError("Script not supported")
    checks.check_asset_script(payload.script)


def _derived_json(transaction: AnyTransaction) -> dict[str, Any]:
    return {"assetId": base58.encode(transaction.id)}


_LAYOUT = "sender_public_key name description quantity decimals reissuable fee timestamp"

TYPE = model.TransactionType(
    type_id=3,
    name="issue",
    title="IssueTransaction",
    payload=Issue,
    max_version=3,
    fields=(
        Field("name", kinds.TEXT),
        Field("quantity", kinds.LONG, path="amount"),
        Field("reissuable", kinds.BOOLEAN),
        Field("decimals", kinds.BYTE),
        Field("description", kinds.TEXT),
        Field("script", kinds.SCRIPT_OF_ISSUE, default=None, since=2),
    ),
    binary={
        1: model.BinaryForm(b"\3", _LAYOUT, model.Auth.SIGNATURE_FIRST),
        2: model.BinaryForm(b"\3\2", f"chain_id {_LAYOUT} script", model.Auth.PROOFS, lead=b"\0"),
    },
    protobuf=model.ProtobufForm("issue"),
    ride=model.RideForm("quantity name description reissuable decimals script"),
    creates=lambda payload: ((None, payload.quantity),),
    validate=_validate,
    protobuf_since=3,
    signature_versions=frozenset({1}),
    chain_id_versions=frozenset({2}),
    derived_json=_derived_json,
    derived_schemas={"assetId": BASE58_SCHEMA},
    request=model.RequestForm(default_version=3),
)
