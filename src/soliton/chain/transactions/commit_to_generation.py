"""Type 19, commit to generation: an announcement for the finality that the network is to get.

Only the format is known: no released node applies it.

Sources: wavesplatform/protobuf-schemas ``proto/waves/transaction.proto``;
wavesplatform/waves-transactions ``src/transactions/commit-to-generation.ts``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from soliton.chain.errors import ValueRuleError
from soliton.chain.json_kinds import BASE58, LONG
from soliton.chain.proto import transaction_pb2
from soliton.chain.transactions.checks import check_fee
from soliton.chain.transactions.model import (
    PROVEN_REQUEST,
    AnyTransaction,
    JsonField,
    ProtobufForm,
    TransactionType,
)

ENDORSER_KEY_LENGTH: Final = 48
COMMITMENT_LENGTH: Final = 96
MAX_U32: Final = 2**32 - 1


class CommitToGeneration(msgspec.Struct, frozen=True, gc=False):
    """The height where the period starts, a BLS12-381 public key, and the signature of the two
    under that key.
    """

    generation_period_start: int
    endorser_public_key: bytes
    commitment_signature: bytes


def _validate(transaction: AnyTransaction) -> None:
    payload: CommitToGeneration = transaction.payload
    check_fee(transaction)
    if not 0 <= payload.generation_period_start <= MAX_U32:
        raise ValueRuleError(f"no height: {payload.generation_period_start}")
    if len(payload.endorser_public_key) != ENDORSER_KEY_LENGTH:
        raise ValueRuleError(f"endorser public key of {len(payload.endorser_public_key)} bytes")
    if len(payload.commitment_signature) != COMMITMENT_LENGTH:
        raise ValueRuleError(f"commitment signature of {len(payload.commitment_signature)} bytes")


def _read(
    message: transaction_pb2.CommitToGenerationTransactionData, _chain_id: int
) -> dict[str, Any]:
    return {
        "generation_period_start": message.generation_period_start,
        "endorser_public_key": message.endorser_public_key,
        "commitment_signature": message.commitment_signature,
    }


def _write(
    message: transaction_pb2.CommitToGenerationTransactionData, payload: CommitToGeneration
) -> None:
    message.generation_period_start = payload.generation_period_start
    message.endorser_public_key = payload.endorser_public_key
    message.commitment_signature = payload.commitment_signature


TYPE = TransactionType(
    type_id=19,
    name="commit_to_generation",
    title="CommitToGenerationTransaction",
    payload=CommitToGeneration,
    max_version=1,
    binary={},
    protobuf=ProtobufForm("commit_to_generation", _read, _write),
    json=(
        JsonField("generationPeriodStart", "generation_period_start", LONG),
        JsonField("endorserPublicKey", "endorser_public_key", BASE58),
        JsonField("commitmentSignature", "commitment_signature", BASE58),
    ),
    validate=_validate,
    protobuf_since=1,
    request=PROVEN_REQUEST,
)
