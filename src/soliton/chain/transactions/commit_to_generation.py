"""Type 19, commit to generation: a generator announces that it will make blocks in the next period.

Sources: wavesplatform/protobuf-schemas ``proto/waves/transaction.proto``; wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/CommitToGenerationTransaction.scala``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from soliton.chain import kinds
from soliton.chain.errors import ValueRuleError
from soliton.chain.fields import Field
from soliton.chain.finalization import GENERATION_DEPOSIT
from soliton.chain.transactions import checks, model
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58, bls

MAX_HEIGHT: Final = 2**31 - 1
_HEIGHT_BYTES: Final = 4


class CommitToGeneration(msgspec.Struct, frozen=True, gc=False):
    """The first height of the period, a BLS12-381 public key, and the signature of both with that
    key.
    """

    generation_period_start: int
    endorser_public_key: bytes
    commitment_signature: bytes


def commitment_message(endorser_public_key: bytes, period_start: int) -> bytes:
    """Return the bytes that the key for endorsements signs, as a proof of its possession."""
    return endorser_public_key + period_start.to_bytes(_HEIGHT_BYTES, "big")


def commitment(private_key: bytes, period_start: int) -> CommitToGeneration:
    """Return the commitment of the account with a Curve25519 private key to a period, whose key for
    endorsements is derived from that key as the reference node does it.
    """
    secret = bls.generate_key(private_key)
    public = bls.public_key_of(secret)
    signature = bls.sign(secret, commitment_message(public, period_start))
    return CommitToGeneration(period_start, public, signature)


def _spends(_payload: CommitToGeneration) -> tuple[tuple[None, int]]:
    """The deposit comes back, but until then the sender cannot use it, and may lose it."""
    return ((None, GENERATION_DEPOSIT),)


def _validate(transaction: AnyTransaction) -> None:
    payload: CommitToGeneration = transaction.payload
    checks.check_fee(transaction)
    _check_height(payload.generation_period_start)
    _check_length("public key", payload.endorser_public_key, bls.PUBLIC_KEY_LENGTH)
    _check_length("signature", payload.commitment_signature, bls.SIGNATURE_LENGTH)


def _check_height(height: int) -> None:
    if not 0 <= height <= MAX_HEIGHT:
        raise ValueRuleError(f"no height: {height}")


def _check_length(name: str, value: bytes, expected: int) -> None:
    if len(value) != expected:
        raise ValueRuleError(f"Unexpected BLS {name} length: {len(value)}, expected {expected}")


def _complete(obj: Mapping[str, object], wallet: model.Completing) -> dict[str, object]:
    """Add the members that the reference node takes from its wallet and its chain."""
    members: dict[str, object] = {
        "fee": wallet.least_fee,
        "generationPeriodStart": wallet.period_start,
    }
    members |= {name: value for name, value in obj.items() if value is not None}
    start = members["generationPeriodStart"]
    if {"endorserPublicKey", "commitmentSignature"} <= members.keys():
        return members
    if type(start) is not int:
        # Reading the request says what is wrong with that alone.
        return {"endorserPublicKey": "", "commitmentSignature": "", **members}
    _check_height(start)
    payload = commitment(wallet.private_key(), start)
    return {
        "endorserPublicKey": base58.encode(payload.endorser_public_key),
        "commitmentSignature": base58.encode(payload.commitment_signature),
        **members,
    }


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
    ride=model.RideForm("endorserPublicKey generationPeriodStart commitmentSignature", since=9),
    validate=_validate,
    protobuf_since=1,
    request=model.PROVEN_REQUEST,
    spends=_spends,
    complete=_complete,
)
