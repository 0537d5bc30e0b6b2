"""Making a signed data transaction from typed entries, and its JSON for client and node.

What lives here: the fee, the signature, the order of members. What does not: reading requests
(``request``) and broadcasting (``node_client``).

Sources: 0bsnetwork/zbs-transactions ``src/transactions/data.ts`` (members and their order, fee),
wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/transaction/DataTransaction.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.chain.errors import ChainError
from soliton.chain.json_kinds import data_entry_json
from soliton.chain.networks import Network
from soliton.chain.transactions import codec
from soliton.chain.transactions.data import (
    MAX_KEY_BYTES,
    MAX_VALUE_BYTES,
    TYPE,
    Data,
)
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import DataEntry
from soliton.crypto import base58
from soliton.signer.errors import RULE_BROKEN, RequestRefused
from soliton.signer.request import SigningRequest

VERSION: Final = 1
BYTES_PER_FEE: Final = 1_024


def data_fee(network: Network, body_length: int) -> int:
    """Return the fee: the network's base fee of a data transaction for each started KiB of its
    signed bytes.

    On networks where further KiB are cheaper than the first (``zbs-*``) that is more than the
    minimum above 1 KiB; it is what the public signer of that network pays.
    """
    return network.fees.base[TYPE.type_id] * (1 + (body_length - 1) // BYTES_PER_FEE)


def sign_data(request: SigningRequest, network: Network, timestamp: int) -> AnyTransaction:
    """Return the signed transaction; raises ``RequestRefused`` when the entries break a rule."""
    for index, entry in enumerate(request.entries):
        _check_entry(entry, f"data[{index}]")
    fault: str
    try:
        draft = _build(request, network, network.fees.base[TYPE.type_id], timestamp)
        fee = data_fee(network, len(draft.body))
        transaction = draft if fee == draft.fee else _build(request, network, fee, timestamp)
        codec.validate(transaction)
    except ChainError as error:
        fault = str(error)
    else:
        return codec.sign(transaction, request.account.private_key)
    raise RequestRefused(RULE_BROKEN, fault, "data")


def _check_entry(entry: DataEntry, path: str) -> None:
    if not entry.key:
        raise RequestRefused(RULE_BROKEN, f"{path}.key is empty", f"{path}.key")
    if len(entry.key.encode()) > MAX_KEY_BYTES:
        message = f"{path}.key is longer than {MAX_KEY_BYTES} bytes"
        raise RequestRefused(RULE_BROKEN, message, f"{path}.key")
    size = 0
    if isinstance(entry.value, str):
        size = len(entry.value.encode())
    elif isinstance(entry.value, bytes):
        size = len(entry.value)
    if size > MAX_VALUE_BYTES:
        message = f"{path}.value has {size} bytes; a value holds {MAX_VALUE_BYTES}"
        raise RequestRefused(RULE_BROKEN, message, f"{path}.value")


def _build(request: SigningRequest, network: Network, fee: int, timestamp: int) -> AnyTransaction:
    return codec.build(
        TYPE,
        Data(request.entries),
        version=VERSION,
        chain_id=network.chain_id,
        sender_public_key=request.account.public_key,
        fee=fee,
        timestamp=timestamp,
    )


def to_json(transaction: AnyTransaction) -> dict[str, object]:
    """Return the JSON for the client and the node. The order of members is part of the format."""
    return {
        "type": transaction.type_id,
        "version": transaction.version,
        "senderPublicKey": base58.encode(transaction.sender_public_key),
        "fee": transaction.fee,
        "timestamp": transaction.timestamp,
        "proofs": [base58.encode(proof) for proof in transaction.proofs],
        "id": base58.encode(transaction.id),
        "data": [_entry_json(entry) for entry in transaction.payload.entries],
    }


def _entry_json(entry: DataEntry) -> dict[str, object]:
    written = data_entry_json(entry)
    return {name: written[name] for name in ("type", "key", "value")}
