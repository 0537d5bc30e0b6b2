"""Type 13, set script: a dApp or a verifier for the sender's account, or none any more.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/smart/SetScriptTransaction.scala`` and
``transaction/serialization/impl/SetScriptTxSerializer.scala``.
"""

from __future__ import annotations

from typing import Any

import msgspec

from soliton.chain.json_kinds import SCRIPT
from soliton.chain.layouts import I64, OPTIONAL_SCRIPT, PUBLIC_KEY, U8, Field
from soliton.chain.proto import transaction_pb2
from soliton.chain.transactions.checks import check_fee
from soliton.chain.transactions.model import (
    PROVEN_REQUEST,
    AnyTransaction,
    Auth,
    BinaryForm,
    JsonField,
    ProtobufForm,
    TransactionType,
)


class SetScript(msgspec.Struct, frozen=True, gc=False):
    """The serialised script; ``None`` removes the one that is there."""

    script: bytes | None


def _validate(transaction: AnyTransaction) -> None:
    check_fee(transaction)


def _read(message: transaction_pb2.SetScriptTransactionData, _chain_id: int) -> dict[str, Any]:
    return {"script": message.script or None}


def _write(message: transaction_pb2.SetScriptTransactionData, payload: SetScript) -> None:
    message.script = payload.script or b""


TYPE = TransactionType(
    type_id=13,
    name="set_script",
    title="SetScriptTransaction",
    payload=SetScript,
    max_version=2,
    binary={
        1: BinaryForm(
            b"\x0d\1",
            (
                Field("chain_id", U8),
                Field("sender_public_key", PUBLIC_KEY),
                Field("script", OPTIONAL_SCRIPT),
                Field("fee", I64),
                Field("timestamp", I64),
            ),
            Auth.PROOFS,
            lead=b"\0",
        )
    },
    protobuf=ProtobufForm("set_script", _read, _write),
    json=(JsonField("script", "script", SCRIPT, default=None),),
    validate=_validate,
    protobuf_since=2,
    chain_id_versions=frozenset({1}),
    request=PROVEN_REQUEST,
)
