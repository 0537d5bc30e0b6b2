"""Encoding and decoding of transactions of all types, through their declared formats.

What lives here: building, signing, the two binary encodings and JSON. What does not: the formats
(one module per type), the rules on values (``TransactionType.validate``) and on state
(``soliton.ledger``).

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/TransactionParsers.scala``,
``transaction/serialization/impl`` and ``protobuf/transaction/PBTransactions.scala``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from soliton.chain import protobuf
from soliton.chain.addresses import PUBLIC_KEY_LENGTH, address_text, from_public_key
from soliton.chain.errors import (
    FormatError,
    UnsupportedTransaction,
    ValueRuleError,
    WrongChainId,
)
from soliton.chain.layouts import SIGNATURE_LENGTH, read_proofs, take, write_proofs
from soliton.chain.proto import transaction_pb2
from soliton.chain.transactions.model import (
    MAX_PROOF_BYTES,
    MAX_PROOFS,
    AnyTransaction,
    Auth,
    BinaryForm,
    ForeignForm,
    ProtobufForm,
    Transaction,
    TransactionType,
)
from soliton.chain.transactions.table import type_by_id, type_by_member
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.crypto.curve25519 import sign as sign_bytes
from soliton.crypto.hashes import blake2b256

MAX_TRANSACTION_BYTES: Final = 1_048_576
"""The limit for decoding; no transaction can be larger than its block."""
MAX_VERSION: Final = 127
_TRANSACTION_FIELD: Final = 1
_PROOFS_FIELD: Final = 2


def build(
    kind: TransactionType,
    payload: object,
    *,
    version: int,
    chain_id: int,
    sender_public_key: bytes,
    fee: int,
    timestamp: int,
    fee_asset_id: AssetId | None = None,
    proofs: tuple[bytes, ...] = (),
    body: bytes | None = None,
) -> AnyTransaction:
    """Return a transaction with its signed bytes and id.

    ``body`` are the signed bytes if they are already known. Raises ``UnsupportedTransaction`` for a
    version without a format, ``ValueRuleError`` for values that do not fit it because they violate
    a rule, and ``FormatError`` for other values that do not fit.
    """
    if kind.sender is not None:
        sender_public_key = kind.sender(payload)
    if body is None:
        draft: AnyTransaction = Transaction(
            kind.type_id,
            version,
            chain_id,
            sender_public_key,
            fee,
            fee_asset_id,
            timestamp,
            payload,
            proofs,
            b"",
            b"",
        )
        body = _make_body(kind, draft)
    return Transaction(
        kind.type_id,
        version,
        chain_id,
        sender_public_key,
        fee,
        fee_asset_id,
        timestamp,
        payload,
        proofs,
        body,
        _make_id(kind, version, body, proofs),
    )


def _make_body(kind: TransactionType, draft: AnyTransaction) -> bytes:
    try:
        return _encode_body(kind, draft)
    except FormatError:
        # The error of a violated rule is more specific than that of a field.
        kind.validate(draft)
        raise
    except ValueError as error:
        kind.validate(draft)
        version = draft.version
        raise FormatError(f"{kind.name} version {version} cannot be written: {error}") from error


def _encode_body(kind: TransactionType, draft: AnyTransaction) -> bytes:
    form = kind.binary.get(draft.version)
    if form is not None:
        return form.head + form.codec.write(_values(form, draft))
    if is_protobuf(kind, draft.version) or is_version_zero_or_less(kind, draft.version):
        return protobuf.serialize(_body_message(kind, draft))
    raise UnsupportedTransaction(kind.type_id, draft.version)


def with_proofs(transaction: AnyTransaction, proofs: tuple[bytes, ...]) -> AnyTransaction:
    """Return the transaction with other proofs."""
    make_id = type_by_id(transaction.type_id).make_id
    if make_id is None:
        return msgspec.structs.replace(transaction, proofs=proofs)
    transaction_id = make_id(transaction.version, transaction.body, proofs)
    return msgspec.structs.replace(transaction, proofs=proofs, id=transaction_id)


def sign(
    transaction: AnyTransaction, private_key: bytes, random: bytes | None = None
) -> AnyTransaction:
    """Return the transaction with one proof, the signature of its body."""
    return with_proofs(transaction, (sign_bytes(private_key, transaction.body, random),))


def is_protobuf(kind: TransactionType, version: int) -> bool:
    """Whether this version of the type is a protobuf message on the wire.

    Versions above the known ones (up to 127) are protobuf as well; mainnet contains some.
    """
    return kind.protobuf_since is not None and kind.protobuf_since <= version <= MAX_VERSION


def is_version_zero_or_less(kind: TransactionType, version: int) -> bool:
    """Whether this is an invalid version below 1 of a type with a protobuf format.

    It can be encoded, so that clients receive the error of the rules for it.
    """
    return kind.protobuf_since is not None and version < 1


def _make_id(kind: TransactionType, version: int, body: bytes, proofs: tuple[bytes, ...]) -> bytes:
    return blake2b256(body) if kind.make_id is None else kind.make_id(version, body, proofs)


def _values(form: BinaryForm, transaction: AnyTransaction) -> dict[str, Any]:
    payload = transaction.payload
    values = {name: getattr(payload, name) for name in form.members}
    values["sender_public_key"] = transaction.sender_public_key
    values["fee"] = transaction.fee
    values["fee_asset_id"] = transaction.fee_asset_id
    values["timestamp"] = transaction.timestamp
    values["chain_id"] = transaction.chain_id
    return values


# --- legacy binary --------------------------------------------------------------------------------


def encode(transaction: AnyTransaction) -> bytes:
    """Encode a transaction as in blocks and on the wire: legacy or protobuf, depending on its
    version.
    """
    kind = type_by_id(transaction.type_id)
    form = kind.binary.get(transaction.version)
    if form is None:
        return encode_protobuf(transaction)
    body, proofs = transaction.body, transaction.proofs
    match form.auth:
        case Auth.NONE:
            return body
        case Auth.PROOFS:
            return form.lead + body + write_proofs(proofs)
        case Auth.SIGNATURE_FIRST:
            return body[:1] + _signature(proofs) + body
        case Auth.SIGNATURE_LAST:
            return form.stored_head + body[len(form.head) :] + _signature(proofs)


def _signature(proofs: tuple[bytes, ...]) -> bytes:
    if len(proofs) != 1 or len(proofs[0]) != SIGNATURE_LENGTH:
        raise FormatError(f"this version holds one signature of {SIGNATURE_LENGTH} bytes")
    return proofs[0]


def decode_legacy(data: bytes, chain_id: int) -> AnyTransaction:
    """Decode a transaction from its legacy bytes.

    Raises ``FormatError`` for malformed or trailing bytes, ``AddressError`` for an invalid
    recipient, and ``UnsupportedTransaction`` for a type or version without a legacy format.
    """
    if len(data) < 3:
        raise FormatError(f"no transaction in {len(data)} bytes")
    if data[0] == 0:
        kind, version = type_by_id(data[1]), data[2]
    else:
        kind = type_by_id(data[0])
        first = kind.binary.get(1)
        version = data[1] if first is not None and first.auth is Auth.PROOFS else 1
    form = kind.binary.get(version)
    if form is None:
        raise UnsupportedTransaction(kind.type_id, version)
    return _decode_form(kind, version, form, data, chain_id)


def _decode_form(
    kind: TransactionType, version: int, form: BinaryForm, data: bytes, chain_id: int
) -> AnyTransaction:
    proofs: tuple[bytes, ...] = ()
    if form.auth is Auth.SIGNATURE_FIRST:
        proofs = (take(data, 1, SIGNATURE_LENGTH),)
        head_at = 1 + SIGNATURE_LENGTH
    else:
        head_at = len(form.lead)
    start = head_at + len(form.stored_head)
    lead = form.head[:1] if form.auth is Auth.SIGNATURE_FIRST else form.lead
    if data[head_at:start] != form.stored_head or not data.startswith(lead):
        raise FormatError(f"{kind.name} version {version} does not begin as it should")
    values, end = form.codec.read(data, start)
    body = form.head + data[start:end]
    if form.auth is Auth.PROOFS:
        proofs, end = read_proofs(data, end)
    elif form.auth is Auth.SIGNATURE_LAST:
        proofs = (take(data, end, SIGNATURE_LENGTH),)
        end += SIGNATURE_LENGTH
    if end != len(data):
        raise FormatError(f"{len(data) - end} bytes after the transaction")
    sender_public_key = values.pop("sender_public_key", b"")
    fee = values.pop("fee", 0)
    fee_asset_id = values.pop("fee_asset_id", None)
    timestamp = values.pop("timestamp")
    chain_id = values.pop("chain_id", chain_id)
    if form.bind is not None:
        form.bind(values, chain_id)
    payload = kind.payload(**values)
    return Transaction(
        kind.type_id,
        version,
        chain_id,
        sender_public_key if kind.sender is None else kind.sender(payload),
        fee,
        fee_asset_id,
        timestamp,
        payload,
        proofs,
        body,
        _make_id(kind, version, body, proofs),
    )


# --- protobuf -------------------------------------------------------------------------------------


def _body_message(
    kind: TransactionType, transaction: AnyTransaction
) -> transaction_pb2.Transaction:
    form = kind.protobuf
    if not isinstance(form, ProtobufForm):
        raise FormatError(f"{kind.name} is only made from its own bytes")
    message = transaction_pb2.Transaction()
    message.chain_id = transaction.chain_id
    message.sender_public_key = transaction.sender_public_key
    message.timestamp = transaction.timestamp
    message.version = transaction.version
    if not kind.senderless:
        protobuf.write_amount(message.fee, transaction.fee_asset_id, transaction.fee)
    data = getattr(message, form.member)
    data.SetInParent()
    form.write(data, transaction.payload)
    return message


def encode_protobuf(transaction: AnyTransaction) -> bytes:
    """Return the deterministic ``SignedTransaction`` of any version, which block sizes count."""
    kind = type_by_id(transaction.type_id)
    if isinstance(kind.protobuf, ForeignForm):
        signed = transaction_pb2.SignedTransaction()
        setattr(signed, kind.protobuf.member, kind.protobuf.write(transaction))
        return protobuf.serialize(signed)
    # The signed bytes of protobuf versions are the message itself.
    body = transaction.body
    if not is_protobuf(kind, transaction.version):
        body = protobuf.serialize(_body_message(kind, transaction))
    proofs = [protobuf.delimited(_PROOFS_FIELD, proof) for proof in transaction.proofs]
    return protobuf.delimited(_TRANSACTION_FIELD, body) + b"".join(proofs)


def merkle_leaf(transaction: AnyTransaction, encoded: bytes | None = None) -> bytes:
    """Return the transaction's leaf in a block's Merkle tree: its ``SignedTransaction``
    (``encoded``, if that is known), or the foreign bytes of a type with a ``ForeignForm``.
    """
    form = type_by_id(transaction.type_id).protobuf
    if isinstance(form, ForeignForm):
        return form.write(transaction)
    return encode_protobuf(transaction) if encoded is None else encoded


def decode_protobuf(data: bytes, chain_id: int) -> AnyTransaction:
    """Decode a ``SignedTransaction``.

    Raises ``FormatError``, ``AddressError``, ``UnsupportedTransaction`` or ``WrongChainId``.
    """
    if len(data) > MAX_TRANSACTION_BYTES:
        raise FormatError(f"{len(data)} bytes are more than a transaction can have")
    return from_message(protobuf.parse(transaction_pb2.SignedTransaction, data), chain_id)


def decode_trusted(data: bytes, chain_id: int) -> AnyTransaction:
    """Decode a ``SignedTransaction`` that ``encode_protobuf`` has written.

    Its ``Transaction`` is known to be in deterministic form, so the signed bytes are not encoded
    again. Raises the same errors as ``decode_protobuf``.
    """
    signed = protobuf.parse(transaction_pb2.SignedTransaction, data)
    length, start = protobuf.read_length(data, 1)
    return from_message(signed, chain_id, data[start : start + length])


def from_message(
    signed: transaction_pb2.SignedTransaction, chain_id: int, trusted: bytes | None = None
) -> AnyTransaction:
    """Convert a parsed ``SignedTransaction``; raise the same errors as ``decode_protobuf``.

    ``trusted`` are the bytes of its ``Transaction`` if ``encode_protobuf`` has written them.
    """
    outer = signed.WhichOneof("transaction")
    if outer is None:
        raise FormatError("the message holds no transaction")
    if outer != "waves_transaction":
        foreign = type_by_member(outer).protobuf
        assert isinstance(foreign, ForeignForm)
        return foreign.read(getattr(signed, outer), chain_id)
    message = signed.waves_transaction
    member = message.WhichOneof("data")
    if member is None:
        raise FormatError("the transaction has no data")
    kind = type_by_member(member)
    form = kind.protobuf
    assert isinstance(form, ProtobufForm)
    data = getattr(message, member)
    if form.strict and trusted is None:
        protobuf.refuse_unknown_fields(data)
    if message.chain_id != chain_id:
        raise WrongChainId(chain_id, message.chain_id)
    version = message.version
    if not kind.versioned:
        version = 1
    elif not 0 < version <= MAX_VERSION:
        raise UnsupportedTransaction(kind.type_id, version)
    senderless = kind.senderless
    sender_public_key, fee = message.sender_public_key, message.fee
    if not senderless and kind.sender is None and len(sender_public_key) != PUBLIC_KEY_LENGTH:
        raise FormatError(f"sender public key of {len(sender_public_key)} bytes")
    return build(
        kind,
        form.read(data, chain_id),
        version=version,
        chain_id=chain_id,
        # A genesis transaction has no sender; these members of its message are ignored.
        sender_public_key=b"" if senderless else sender_public_key,
        fee=0 if senderless else fee.amount,
        fee_asset_id=None if senderless else protobuf.read_asset(fee.asset_id),
        timestamp=message.timestamp,
        proofs=() if senderless else tuple(signed.proofs),
        body=trusted if is_protobuf(kind, version) else None,
    )


# --- rules without state --------------------------------------------------------------------------


def validate(transaction: AnyTransaction) -> None:
    """Check the rules that need no state, in the reference order; raise ``ValueRuleError``."""
    type_by_id(transaction.type_id).validate(transaction)


def check_proofs(proofs: tuple[bytes, ...]) -> None:
    """Raise ``ProofsError`` unless there are at most 8 proofs of at most 64 bytes."""
    if len(proofs) > MAX_PROOFS:
        raise ProofsError(f"Too many proofs ({len(proofs)}), only {MAX_PROOFS} allowed")
    for proof in proofs:
        if len(proof) > MAX_PROOF_BYTES:
            longest = max(map(len, proofs))
            raise ProofsError(f"Too large proof ({longest}), must be max {MAX_PROOF_BYTES} bytes")


class ProofsError(ValueRuleError):
    """There are too many proofs, or too large ones."""


# --- JSON -----------------------------------------------------------------------------------------


def to_json(transaction: AnyTransaction) -> dict[str, Any]:
    """Return the transaction in the JSON of the reference node, without members that depend on the
    chain, such as its height.
    """
    kind = type_by_id(transaction.type_id)
    asset = transaction.fee_asset_id
    out: dict[str, Any] = {
        "type": kind.type_id,
        "id": base58.encode(transaction.id),
        "fee": transaction.fee,
        "feeAssetId": None if asset is None else base58.encode(asset),
        "timestamp": transaction.timestamp,
    }
    if kind.versioned:
        out["version"] = transaction.version
    version = transaction.version
    if is_protobuf(kind, version) or version in kind.chain_id_versions:
        out["chainId"] = transaction.chain_id
    if kind.senderless:
        del out["feeAssetId"]
        out["signature"] = out["id"]
    else:
        out["sender"] = sender_text(transaction)
        out["senderPublicKey"] = address_text(transaction.sender_public_key)
        if isinstance(kind.protobuf, ProtobufForm):
            proofs = [base58.encode(proof) for proof in transaction.proofs]
            out["proofs"] = proofs
            if version in kind.signature_versions:
                out["signature"] = proofs[0] if proofs else ""
    out |= kind.write_json(transaction.payload, version)
    if kind.derived_json is not None:
        out.update(kind.derived_json(transaction))
    if kind.repeats_fee_asset:
        out["feeAsset"] = out["feeAssetId"]
    return out


def sender_text(transaction: AnyTransaction) -> str:
    """Return the sender's address in base58."""
    return address_text(from_public_key(transaction.sender_public_key, transaction.chain_id))
