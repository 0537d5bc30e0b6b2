"""Type 13, set script: sets or removes the dApp or verifier of the sender's account.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/smart/SetScriptTransaction.scala`` and
``transaction/serialization/impl/SetScriptTxSerializer.scala``.
"""

from __future__ import annotations

import msgspec

from soliton.chain import kinds
from soliton.chain.fields import Field
from soliton.chain.transactions import checks, model


class SetScript(msgspec.Struct, frozen=True, gc=False):
    """The serialised script; ``None`` removes the present one."""

    script: bytes | None


TYPE = model.TransactionType(
    type_id=13,
    name="set_script",
    title="SetScriptTransaction",
    payload=SetScript,
    max_version=2,
    fields=(Field("script", kinds.SCRIPT, default=None),),
    binary={
        1: model.BinaryForm(
            b"\x0d\1",
            "chain_id sender_public_key script fee timestamp",
            model.Auth.PROOFS,
            lead=b"\0",
        )
    },
    protobuf=model.ProtobufForm("set_script"),
    ride=model.RideForm("script"),
    validate=checks.check_fee,
    protobuf_since=2,
    chain_id_versions=frozenset({1}),
    request=model.PROVEN_REQUEST,
)
