"""Type 12, data: writes entries to the sender's data storage.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/DataTransactionDiff.scala`` and
``transaction/validation/impl/DataTxValidator.scala`` (sizes).
"""

from __future__ import annotations

from typing import Final

from soliton.chain.addresses import from_public_key
from soliton.chain.errors import TooBigCount
from soliton.chain.features import Feature
from soliton.chain.proto import transaction_pb2
from soliton.chain.protobuf import serialize, write_data_entry
from soliton.chain.transactions import codec
from soliton.chain.transactions.data import (
    MAX_BYTES_V1,
    MAX_ENTRIES,
    MAX_KEY_CHARS_V1,
    MAX_PAYLOAD_BYTES,
    MAX_PROTOBUF_BYTES,
    Data,
)
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import payload_size
from soliton.ledger.context import Context, TypeRules
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common
from soliton.ledger.rules_at import Rules
from soliton.ledger.state import DATA, Overlay

_BYTES_PER_FEE_UNIT: Final = 1_024


def _activation(_transaction: AnyTransaction, context: Context) -> None:
    common.require_feature(Feature.DATA_TRANSACTION, context.rules)


def _minimum_fee(transaction: AnyTransaction, rules: Rules) -> int:
    size = _charged_size(transaction, rules)
    # An empty payload costs the base fee: the quotient is truncated towards zero.
    further = max(0, size - 1) // _BYTES_PER_FEE_UNIT
    return rules.fees.base[12] + further * rules.fees.unit


def _charged_size(transaction: AnyTransaction, rules: Rules) -> int:
    payload: Data = transaction.payload
    if rules.has(Feature.RIDE_V6):
        return payload_size(payload.entries)
    if transaction.version >= 2:
        return _protobuf_size(payload)
    if rules.has(Feature.SMART_ACCOUNTS):
        return len(transaction.body)
    return len(codec.encode(transaction))


def _protobuf_size(payload: Data) -> int:
    message = transaction_pb2.DataTransactionData()
    for entry in payload.entries:
        write_data_entry(message.data.add(), entry)
    return len(serialize(message))


def _check_size(transaction: AnyTransaction, rules: Rules) -> None:
    payload: Data = transaction.payload
    if rules.has(Feature.RIDE_V6):
        fits = payload_size(payload.entries) <= MAX_PAYLOAD_BYTES
    elif transaction.version >= 2:
        # Higher versions, which were possible before feature 22, are not measured.
        fits = transaction.version > 2 or _protobuf_size(payload) <= MAX_PROTOBUF_BYTES
    else:
        # Keys of version 1 are counted in UTF-16 units, as the JVM does.
        fits = len(codec.encode(transaction)) <= MAX_BYTES_V1 and all(
            len(entry.key.encode("utf-16-le")) // 2 <= MAX_KEY_CHARS_V1 for entry in payload.entries
        )
    if not fits:
        raise TooBigCount(MAX_ENTRIES)


def _apply(
    transaction: AnyTransaction, overlay: Overlay, _portfolio: Portfolio, context: Context
) -> None:
    _check_size(transaction, context.rules)
    sender = from_public_key(transaction.sender_public_key, transaction.chain_id)
    for entry in transaction.payload.entries:
        overlay.put(DATA, (sender, entry.key), entry.value)


RULES = TypeRules(_activation, _minimum_fee, None, _apply)
