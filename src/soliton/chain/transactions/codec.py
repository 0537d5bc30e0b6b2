"""Transactions to bytes and JSON and back, for every type, through the declared forms.

What lives here: building, signing, the two binary encodings and JSON. What does not: the forms
themselves (one module per type), the rules on values (``TransactionType.validate``) and on state
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
    ProtobufForm,
    Transaction,
    TransactionType,
    WholeForm,
)
from soliton.chain.transactions.table import type_by_id, type_by_member
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.crypto.curve25519 import sign as sign_bytes
from soliton.crypto.hashes import blake2b256

MAX_TRANSACTION_BYTES: Final = 1_048_576
"""No transaction can be larger than the block that carries it."""
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
    """A transaction of these values, with its signed bytes and id.

    ``body`` are the signed bytes where these are there already. Raises ``UnsupportedTransaction``
    for a version that has no form, ``ValueRuleError`` for values that do not fit it because they
    break a rule, and ``FormatError`` for others that do not fit.
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
        return _written(kind, draft)
    except FormatError:
        # The rule that a value breaks says more than the field that it does not fit.
        kind.validate(draft)
        raise
    except ValueError as error:
        kind.validate(draft)
        version = draft.version
        raise FormatError(f"{kind.name} version {version} cannot be written: {error}") from error


def _written(kind: TransactionType, draft: AnyTransaction) -> bytes:
    form = kind.binary.get(draft.version)
    if form is not None:
        return form.head + form.codec.write(_values(form, draft))
    if is_protobuf(kind, draft.version) or is_below_versions(kind, draft.version):
        return protobuf.serialize(_body_message(kind, draft))
    raise UnsupportedTransaction(kind.type_id, draft.version)


def with_proofs(transaction: AnyTransaction, proofs: tuple[bytes, ...]) -> AnyTransaction:
    """The same transaction with other proofs."""
    make_id = type_by_id(transaction.type_id).make_id
    if make_id is None:
        return msgspec.structs.replace(transaction, proofs=proofs)
    transaction_id = make_id(transaction.version, transaction.body, proofs)
    return msgspec.structs.replace(transaction, proofs=proofs, id=transaction_id)


def sign(
    transaction: AnyTransaction, private_key: bytes, random: bytes | None = None
) -> AnyTransaction:
    """The transaction with one proof: the signature of its body."""
    return with_proofs(transaction, (sign_bytes(private_key, transaction.body, random),))


def is_protobuf(kind: TransactionType, version: int) -> bool:
    """Whether this version of the type is a protobuf message on the wire.

    Versions above the known ones (up to 127) are protobuf as well: some are in the history of
    mainnet.
    """
    return kind.protobuf_since is not None and kind.protobuf_since <= version <= MAX_VERSION


def is_below_versions(kind: TransactionType, version: int) -> bool:
    """Whether this is no version, of a type that can be written as if it were one of protobuf.

    Clients may ask for it, and are told by the rules that there is none.
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
    """The form in which the transaction is stored in blocks and sent to peers: legacy or protobuf,
    as its version.
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
    """A transaction from its legacy bytes.

    Raises ``FormatError`` for bytes that are no transaction (or more than one), ``AddressError``
    for a recipient that cannot be, ``UnsupportedTransaction`` for a type or version without a
    legacy form.
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
    if not kind.from_nobody:
        protobuf.write_amount(message.fee, transaction.fee_asset_id, transaction.fee)
    data = getattr(message, form.member)
    data.SetInParent()
    form.write(data, transaction.payload)
    return message


def encode_protobuf(transaction: AnyTransaction) -> bytes:
    """The deterministic ``SignedTransaction`` of any version: what block sizes are made of."""
    kind = type_by_id(transaction.type_id)
    if isinstance(kind.protobuf, WholeForm):
        signed = transaction_pb2.SignedTransaction()
        setattr(signed, kind.protobuf.member, kind.protobuf.write(transaction))
        return protobuf.serialize(signed)
    # The signed bytes of protobuf versions are the message itself, older versions need it made.
    body = transaction.body
    if not is_protobuf(kind, transaction.version):
        body = protobuf.serialize(_body_message(kind, transaction))
    proofs = [protobuf.delimited(_PROOFS_FIELD, proof) for proof in transaction.proofs]
    return protobuf.delimited(_TRANSACTION_FIELD, body) + b"".join(proofs)


def merkle_leaf(transaction: AnyTransaction, encoded: bytes | None = None) -> bytes:
    """What stands for the transaction in a block's Merkle tree: its ``SignedTransaction``
    (``encoded``, where that is known), or the bytes themselves of a type in another network's
    encoding.
    """
    form = type_by_id(transaction.type_id).protobuf
    if isinstance(form, WholeForm):
        return form.write(transaction)
    return encode_protobuf(transaction) if encoded is None else encoded


def decode_protobuf(data: bytes, chain_id: int) -> AnyTransaction:
    """A transaction from ``SignedTransaction`` bytes.

    Raises ``FormatError``, ``AddressError``, ``UnsupportedTransaction`` or ``WrongChainId``.
    """
    if len(data) > MAX_TRANSACTION_BYTES:
        raise FormatError(f"{len(data)} bytes are more than a transaction can have")
    return from_message(protobuf.parse(transaction_pb2.SignedTransaction, data), chain_id)


def decode_own(data: bytes, chain_id: int) -> AnyTransaction:
    """A transaction from ``SignedTransaction`` bytes that ``encode_protobuf`` has written.

    What was signed is in them as it is and need not be made again, which strangers' bytes cannot
    promise. Raises as ``decode_protobuf``.
    """
    signed = protobuf.parse(transaction_pb2.SignedTransaction, data)
    length, start = protobuf.read_length(data, 1)
    return from_message(signed, chain_id, data[start : start + length])


def from_message(
    signed: transaction_pb2.SignedTransaction, chain_id: int, own: bytes | None = None
) -> AnyTransaction:
    """A transaction from a parsed ``SignedTransaction``; raises as ``decode_protobuf``.

    ``own`` are the bytes of the ``Transaction`` in it if ``encode_protobuf`` has written them.
    """
    held = signed.WhichOneof("transaction")
    if held is None:
        raise FormatError("the message holds no transaction")
    if held != "waves_transaction":
        whole = type_by_member(held).protobuf
        assert isinstance(whole, WholeForm)
        return whole.read(getattr(signed, held), chain_id)
    message = signed.waves_transaction
    member = message.WhichOneof("data")
    if member is None:
        raise FormatError("the transaction has no data")
    kind = type_by_member(member)
    form = kind.protobuf
    assert isinstance(form, ProtobufForm)
    data = getattr(message, member)
    if form.strict and own is None:
        protobuf.refuse_unknown_fields(data)
    if message.chain_id != chain_id:
        raise WrongChainId(chain_id, message.chain_id)
    if not 0 < message.version <= MAX_VERSION and kind.versioned:
        raise UnsupportedTransaction(kind.type_id, message.version)
    nobody = kind.from_nobody
    sender_public_key, fee = message.sender_public_key, message.fee
    if not nobody and kind.sender is None and len(sender_public_key) != PUBLIC_KEY_LENGTH:
        raise FormatError(f"sender public key of {len(sender_public_key)} bytes")
    version = message.version if kind.versioned else 1
    return build(
        kind,
        form.read(data, chain_id),
        version=version,
        chain_id=chain_id,
        # Nobody sends coins that did not exist before, whatever a message says.
        sender_public_key=b"" if nobody else sender_public_key,
        fee=0 if nobody else fee.amount,
        fee_asset_id=None if nobody else protobuf.read_asset(fee.asset_id),
        timestamp=message.timestamp,
        proofs=() if nobody else tuple(signed.proofs),
        body=own if is_protobuf(kind, version) else None,
    )


# --- rules without state --------------------------------------------------------------------------


def validate(transaction: AnyTransaction) -> None:
    """The rules that need no state, in the reference order; raises ``ValueRuleError``."""
    type_by_id(transaction.type_id).validate(transaction)


def check_proofs(proofs: tuple[bytes, ...]) -> None:
    """At most 8 proofs of at most 64 bytes; raises ``ProofsError``."""
    if len(proofs) > MAX_PROOFS:
        raise ProofsError(f"Too many proofs ({len(proofs)}), only {MAX_PROOFS} allowed")
    for proof in proofs:
        if len(proof) > MAX_PROOF_BYTES:
            longest = max(map(len, proofs))
            raise ProofsError(f"Too large proof ({longest}), must be max {MAX_PROOF_BYTES} bytes")


class ProofsError(ValueRuleError):
    """Too many proofs, or too large ones."""


# --- JSON -----------------------------------------------------------------------------------------


def to_json(transaction: AnyTransaction) -> dict[str, Any]:
    """The transaction as the reference node prints it (without what only the chain knows, such as
    its height).
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
    if kind.from_nobody:
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
    """The sender's address in base58."""
    return address_text(from_public_key(transaction.sender_public_key, transaction.chain_id))
