"""Type 20, greeting: what it is and how it is written (the chain side)."""

from __future__ import annotations

import msgspec

from soliton.chain.addresses import Recipient
from soliton.chain.errors import ValueRuleError
from soliton.chain.json_kinds import RECIPIENT, STRING
from soliton.chain.layouts import (
    I64,
    PUBLIC_KEY,
    Field,
    Variable,
    take,
    take_u16,
    text,
    write_bytes16,
)
from soliton.chain.layouts import RECIPIENT as RECIPIENT_BYTES
from soliton.chain.transactions.model import (
    AnyTransaction,
    Auth,
    BinaryForm,
    JsonField,
    ProtobufForm,
    TransactionType,
)

MAX_CHARS = 20


class Greeting(msgspec.Struct, frozen=True, gc=False):
    """Words for somebody."""

    recipient: Recipient
    words: str


def _validate(transaction: AnyTransaction) -> None:
    if not 0 < len(transaction.payload.words) <= MAX_CHARS:
        raise ValueRuleError("a greeting has 1 to 20 characters")


def _read_words(data: bytes, offset: int) -> tuple[str, int]:
    length = take_u16(data, offset)
    return text(take(data, offset + 2, length)), offset + 2 + length


TYPE = TransactionType(
    type_id=20,
    name="greeting",
    title="GreetingTransaction",
    payload=Greeting,
    max_version=1,
    binary={
        1: BinaryForm(
            b"\x14\1",
            (
                Field("sender_public_key", PUBLIC_KEY),
                Field("recipient", RECIPIENT_BYTES),
                Field("words", Variable(_read_words, lambda words: write_bytes16(words.encode()))),
                Field("fee", I64),
                Field("timestamp", I64),
            ),
            Auth.PROOFS,
            lead=b"\0",
        )
    },
    protobuf=ProtobufForm("greeting", lambda _message, _chain_id: {}, lambda _message, _p: None),
    json=(JsonField("recipient", "recipient", RECIPIENT), JsonField("words", "words", STRING)),
    validate=_validate,
)
