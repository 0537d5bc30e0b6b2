"""Type 20, greeting: what it is and how it is written (the chain side)."""

from __future__ import annotations

import msgspec

from soliton.chain import kinds
from soliton.chain.addresses import Recipient
from soliton.chain.errors import ValueRuleError
from soliton.chain.fields import Field
from soliton.chain.transactions import model
from soliton.chain.transactions.model import AnyTransaction

MAX_CHARS = 20


class Greeting(msgspec.Struct, frozen=True, gc=False):
    """Words for somebody."""

    recipient: Recipient
    words: str


def _validate(transaction: AnyTransaction) -> None:
    if not 0 < len(transaction.payload.words) <= MAX_CHARS:
        raise ValueRuleError("a greeting has 1 to 20 characters")


TYPE = model.TransactionType(
    type_id=20,
    name="greeting",
    title="GreetingTransaction",
    payload=Greeting,
    max_version=2,
    fields=(Field("recipient", kinds.RECIPIENT), Field("words", kinds.STRING)),
    binary={
        1: model.BinaryForm(
            b"\x14\1",
            "sender_public_key recipient words fee timestamp",
            model.Auth.PROOFS,
            lead=b"\0",
        )
    },
    protobuf=model.ProtobufForm("greeting"),
    ride=model.RideForm("recipient words"),
    validate=_validate,
    protobuf_since=2,
)
