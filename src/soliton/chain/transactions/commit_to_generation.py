"""Type 19, commit to generation: for the planned deterministic finality.

Only the format is known; no released node applies it.

Sources: wavesplatform/protobuf-schemas ``proto/waves/transaction.proto``;
wavesplatform/waves-transactions ``src/transactions/commit-to-generation.ts``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain import kinds
from soliton.chain.errors import ValueRuleError
from soliton.chain.fields import Field
from soliton.chain.transactions import checks, model
from soliton.chain.transactions.model import AnyTransaction

ENDORSER_KEY_LENGTH: Final = 48
COMMITMENT_LENGTH: Final = 96
MAX_U32: Final = 2**32 - 1


class CommitToGeneration(msgspec.Struct, frozen=True, gc=False):
    """The first height of the period, a BLS12-381 public key, and the signature of both with that
    key.
    """

    generation_period_start: int
    endorser_public_key: bytes
    commitment_signature: bytes


def _validate(transaction: AnyTransaction) -> None:
    payload: CommitToGeneration = transaction.payload
    checks.check_fee(transaction)
    if not 0 <= payload.generation_period_start <= MAX_U32:
        raise ValueRuleError(f"no height: {payload.generation_period_start}")
    if len(payload.endorser_public_key) != ENDORSER_KEY_LENGTH:
        raise ValueRuleError(f"endorser public key of {len(payload.endorser_public_key)} bytes")
    if len(payload.commitment_signature) != COMMITMENT_LENGTH:
        raise ValueRuleError(f"commitment signature of {len(payload.commitment_signature)} bytes")


TYPE = model.TransactionType(
    type_id=19,
    name="commit_to_generation",
    title="CommitToGenerationTransaction",
    payload=CommitToGeneration,
    max_version=1,
    fields=(
        Field("generation_period_start", kinds.LONG),
        Field("endorser_public_key", kinds.BYTES),
        Field("commitment_signature", kinds.BYTES),
    ),
    binary={},
    protobuf=model.ProtobufForm("commit_to_generation"),
    validate=_validate,
    protobuf_since=1,
    request=model.PROVEN_REQUEST,
)
