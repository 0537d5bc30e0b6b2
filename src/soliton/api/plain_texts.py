"""Plain transfers as JSON text, directly from a block's bytes.

Large blocks are mostly transfers of the chain's coin from one account to another. Their texts
differ in a few members, so they are formatted with a template, which takes half the time of
building a record and a dictionary. Templates are made from ``codec.to_json`` of a sample; all other
transactions use ``codec.to_json`` itself. A test compares both.

What lives here: this fast path. What does not: JSON forms (``soliton.chain.transactions``), whole
blocks (``block_texts``).
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

import msgspec

from soliton.chain import protobuf
from soliton.chain.addresses import (
    PUBLIC_KEY_HASH_LENGTH,
    PUBLIC_KEY_LENGTH,
    address_text,
    from_public_key,
    from_public_key_hash,
)
from soliton.chain.proto import transaction_pb2
from soliton.chain.transactions import codec, transfer
from soliton.chain.transactions.transfer import Transfer
from soliton.crypto import base58
from soliton.crypto.hashes import blake2b256

_VERSIONS: Final = (2, 3)
_TEXT: Final = "%s"
_NUMBER: Final = msgspec.Raw(b"%d")
_PLACES: Final[dict[str, object]] = {
    "id": _TEXT,
    "fee": _NUMBER,
    "timestamp": _NUMBER,
    "sender": _TEXT,
    "senderPublicKey": _TEXT,
    "proofs": [_TEXT],
    "recipient": _TEXT,
    "amount": _NUMBER,
    "attachment": _TEXT,
}
"""The members that differ between plain transfers of one version, in order."""
_parse = transaction_pb2.SignedTransaction.FromString


class PlainText(NamedTuple):
    """A transfer's id, its fee in wavelets, and its JSON without the closing brace."""

    id: bytes
    fee: int
    text: str


def plain_text(data: bytes, chain_id: int) -> PlainText | None:
    """The plain transfer in bytes of ``codec.encode_protobuf``; ``None`` if it is another one."""
    signed = _parse(data)
    message = signed.waves_transaction
    proofs, version = signed.proofs, message.version
    if message.WhichOneof("data") != "transfer" or version not in _VERSIONS or len(proofs) != 1:
        return None
    payload, fee, key = message.transfer, message.fee, message.sender_public_key
    amount, key_hash = payload.amount, payload.recipient.public_key_hash
    if fee.asset_id or amount.asset_id or message.chain_id != chain_id:
        return None
    if len(key_hash) != PUBLIC_KEY_HASH_LENGTH or len(key) != PUBLIC_KEY_LENGTH:
        return None
    recipient = from_public_key_hash(key_hash, chain_id)
    form = transfer.TYPE.binary.get(version)
    if form is None:
        length, start = protobuf.read_length(data, 1)
        body = data[start : start + length]
    else:
        values = {
            "sender_public_key": key,
            "asset_id": None,
            "fee_asset_id": None,
            "timestamp": message.timestamp,
            "amount": amount.amount,
            "fee": fee.amount,
            "recipient": recipient,
            "attachment": payload.attachment,
        }
        body = form.head + form.codec.write(values)
    transaction_id = blake2b256(body)
    text = _template(version, chain_id) % (
        base58.encode(transaction_id),
        fee.amount,
        message.timestamp,
        address_text(from_public_key(key, chain_id)),
        address_text(key),
        base58.encode(proofs[0]),
        address_text(recipient),
        amount.amount,
        base58.encode(payload.attachment),
    )
    return PlainText(transaction_id, fee.amount, text)


@cache
def _template(version: int, chain_id: int) -> str:
    """The format string for the plain transfers of a version."""
    key = bytes(PUBLIC_KEY_LENGTH)
    sample = codec.build(
        transfer.TYPE,
        Transfer(from_public_key(key, chain_id), None, 1, b""),
        version=version,
        chain_id=chain_id,
        sender_public_key=key,
        fee=1,
        timestamp=1,
    )
    members = codec.to_json(sample)
    assert [name for name in members if name in _PLACES] == list(_PLACES), "they are in order"
    return msgspec.json.encode(members | _PLACES).decode()[:-1]
