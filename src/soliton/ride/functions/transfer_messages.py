"""``transferTransactionFromProto``: a transfer as a script reads it from bytes.

What lives here: reading the message, with fewer checks than for transactions of the chain: of
numbers that are one byte in the reference, only the lowest eight bits count, ids of assets may be
of any length, and the sender may be a wallet. What does not: transfers on the chain
(``chain_data``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/protobuf/transaction/PBTransactions.scala``
(``createVanilla``) and ``transaction/transfer/TransferTransaction.scala`` (``create``, whose chain
id is that of the node unless it is given).
"""

from __future__ import annotations

from typing import Final

from soliton.chain import addresses, protobuf
from soliton.chain.errors import ChainError, FormatError
from soliton.chain.proto.transaction_pb2 import SignedTransaction, Transaction
from soliton.chain.transactions.checks import MAX_ATTACHMENT_BYTES
from soliton.chain.transactions.codec import check_proofs
from soliton.chain.transactions.model import MAX_PROOFS
from soliton.crypto.hashes import blake2b256
from soliton.ride import bindings
from soliton.ride.environment import CallContext
from soliton.ride.errors import NativeCrash
from soliton.ride.values import UNIT, Value

_BYTE: Final = 256
_LEGACY_HEADS: Final = {1: b"\4", 2: b"\4\2"}
_KEY_LENGTHS: Final = (0, addresses.PUBLIC_KEY_LENGTH, addresses.ETHEREUM_KEY_LENGTH)


def transfer_from_protobuf(context: CallContext, data: bytes, view: bindings.View) -> Value:
    """Return the object of a transfer, or ``UNIT`` for anything but a valid one of this chain."""
    chain_id = context.environment.chain_id
    try:
        signed = protobuf.parse(SignedTransaction, data)
        payload = _payload(signed, chain_id)
    except ChainError:
        return UNIT
    message = signed.waves_transaction
    key, version = message.sender_public_key, _signed_byte(message.version)
    if not key:
        raise NativeCrash("the sender of the transfer is missing")
    fee_asset = message.fee.asset_id or None
    body = _body(message, payload, version, chain_id)
    envelope = bindings.Envelope(
        blake2b256(body),
        message.timestamp,
        addresses.from_public_key(key, chain_id),
        key,
        message.fee.amount,
        version,
        body,
        tuple(signed.proofs),
    )
    return bindings.stand_in("TransferTransaction", payload, envelope, view, fee_asset)


def _payload(signed: SignedTransaction, chain_id: int) -> bindings.Transfer:
    """Check a message and return its transfer; raise ``ChainError``."""
    message = signed.waves_transaction
    if message.WhichOneof("data") != "transfer" or message.chain_id % _BYTE != chain_id:
        raise FormatError("no transfer of this chain")
    data = message.transfer
    protobuf.refuse_unknown_fields(data)
    if not (data.HasField("recipient") and data.HasField("amount")):
        raise FormatError("a member of the transfer is missing")
    check_proofs(tuple(signed.proofs[: MAX_PROOFS + 1]))
    if len(message.sender_public_key) not in _KEY_LENGTHS:
        raise FormatError(f"a public key of {len(message.sender_public_key)} bytes")
    if data.amount.amount <= 0 or message.fee.amount <= 0:
        raise FormatError("an amount that is not positive")
    if len(data.attachment) > MAX_ATTACHMENT_BYTES:
        raise FormatError(f"an attachment of {len(data.attachment)} bytes")
    recipient = protobuf.read_recipient(data.recipient, chain_id)
    asset_id = data.amount.asset_id or None
    return bindings.Transfer(recipient, asset_id, data.amount.amount, data.attachment)


def _signed_byte(number: int) -> int:
    low = number % _BYTE
    return low - _BYTE if low >= _BYTE // 2 else low


def _body(message: Transaction, payload: bindings.Transfer, version: int, chain_id: int) -> bytes:
    """Return the signed bytes of a transfer, without what the reader has ignored."""
    head = _LEGACY_HEADS.get(version)
    if head is None:
        return _protobuf_body(message, payload, version, chain_id)
    recipient = payload.recipient
    target = recipient.to_bytes() if isinstance(recipient, addresses.Alias) else recipient
    numbers = (message.timestamp, payload.amount, message.fee.amount)
    return b"".join(
        (
            head,
            message.sender_public_key,
            _legacy_asset(payload.asset_id),
            _legacy_asset(message.fee.asset_id or None),
            *(number.to_bytes(8, "big", signed=True) for number in numbers),
            target,
            len(payload.attachment).to_bytes(2, "big"),
            payload.attachment,
        )
    )


def _legacy_asset(asset_id: bytes | None) -> bytes:
    return b"\0" if asset_id is None else b"\1" + asset_id


def _protobuf_body(
    message: Transaction, payload: bindings.Transfer, version: int, chain_id: int
) -> bytes:
    clean = Transaction()
    clean.chain_id = chain_id
    clean.sender_public_key = message.sender_public_key
    clean.timestamp = message.timestamp
    clean.version = version
    protobuf.write_amount(clean.fee, message.fee.asset_id or None, message.fee.amount)
    transfer = clean.transfer
    protobuf.write_recipient(transfer.recipient, payload.recipient)
    protobuf.write_amount(transfer.amount, payload.asset_id, payload.amount)
    transfer.attachment = payload.attachment
    return protobuf.serialize(clean)
