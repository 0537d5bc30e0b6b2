"""Metadata of transactions: addresses behind keys and aliases, results of calls.

What lives here: ``TransactionMetadata``. What does not: the state changes of a transaction
(``state_updates``).

Source: wavesplatform/Waves ``grpc-server/src/main/scala/com/wavesplatform/events/events.scala``
(``TransactionMetadata``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from soliton.chain.addresses import Address, Alias, Recipient, from_public_key
from soliton.chain.function_calls import DEFAULT_CALL, FunctionCall, read_call_json
from soliton.chain.protobuf import write_amount
from soliton.chain.transactions import (
    ethereum,
    exchange,
    invoke_script,
    lease,
    mass_transfer,
    transfer,
)
from soliton.chain.transactions.ethereum import EthereumTransfer
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.grpc_api.invoke_results import Record, arguments, invoke_result
from soliton.grpc_api.proto.events_pb2 import TransactionMetadata
from soliton.ledger.state import ALIASES, ERC20, State


class Context:
    """The context of a transaction: the state in its block, and the stored record of a call."""

    __slots__ = ("record", "state")

    def __init__(self, state: State, record: Record | None) -> None:
        self.state = state
        self.record = record or {}

    def address(self, recipient: Recipient) -> Address:
        """Return the address of a recipient."""
        if isinstance(recipient, Alias):
            found = self.state.get(ALIASES, recipient.name)
            return found if found is not None else Address(b"")
        return recipient


def metadata_of(transaction: AnyTransaction, context: Context) -> TransactionMetadata:
    """Return the metadata of a transaction in a block."""
    made = TransactionMetadata()
    key = transaction.sender_public_key
    if key:
        made.sender_address = from_public_key(key, transaction.chain_id)
    fill = _FILLERS.get(transaction.type_id)
    if fill is not None:
        fill(made, transaction, context)
    return made


def _transfer(made: TransactionMetadata, transaction: AnyTransaction, context: Context) -> None:
    made.transfer.recipient_address = context.address(transaction.payload.recipient)


def _mass_transfer(
    made: TransactionMetadata, transaction: AnyTransaction, context: Context
) -> None:
    made.mass_transfer.SetInParent()
    made.mass_transfer.recipients_addresses.extend(
        context.address(each.recipient) for each in transaction.payload.transfers
    )


def _exchange(made: TransactionMetadata, transaction: AnyTransaction, _context: Context) -> None:
    for order in transaction.payload.orders:
        key = order.sender_public_key
        made.exchange.order_ids.append(order.id)
        made.exchange.order_sender_addresses.append(from_public_key(key, transaction.chain_id))
        made.exchange.order_sender_public_keys.append(key)


def _lease(made: TransactionMetadata, transaction: AnyTransaction, context: Context) -> None:
    made.lease.recipient_address = context.address(transaction.payload.recipient)


def _invoke(made: TransactionMetadata, transaction: AnyTransaction, context: Context) -> None:
    payload = transaction.payload
    call = payload.call or DEFAULT_CALL
    _fill_call(made.invoke_script, context.address(payload.d_app), call, context)
    for payment in payload.payments:
        write_amount(made.invoke_script.payments.add(), payment.asset_id, payment.amount)


def _fill_call(
    made: TransactionMetadata.InvokeScriptMetadata,
    d_app: Address,
    call: FunctionCall,
    context: Context,
) -> None:
    made.d_app_address = d_app
    made.function_name = call.function
    made.arguments.extend(arguments(call.args))
    changes = context.record.get("stateChanges")
    if changes is not None:
        made.result.CopyFrom(invoke_result(changes, context.state, d_app[1]))


def _ethereum(made: TransactionMetadata, transaction: AnyTransaction, context: Context) -> None:
    metadata = made.ethereum
    metadata.timestamp = transaction.timestamp
    metadata.fee = transaction.fee
    metadata.sender_public_key = transaction.sender_public_key
    action = transaction.payload.action
    if isinstance(action, EthereumTransfer):
        metadata.transfer.recipient_address = action.recipient
        token = None if action.token is None else context.state.get(ERC20, action.token)
        write_amount(metadata.transfer.amount, token, action.amount)
        return
    call = read_call_json(context.record.get("call"), transaction.chain_id) or DEFAULT_CALL
    _fill_call(metadata.invoke, action.d_app, call, context)
    for payment in context.record.get("payment", ()):
        asset = payment["assetId"]
        name = None if asset is None else base58.decode(asset)
        write_amount(metadata.invoke.payments.add(), name, payment["amount"])


_Filler = Callable[[TransactionMetadata, AnyTransaction, Context], None]
_FILLERS: Final[dict[int, _Filler]] = {
    transfer.TYPE.type_id: _transfer,
    mass_transfer.TYPE.type_id: _mass_transfer,
    exchange.TYPE.type_id: _exchange,
    lease.TYPE.type_id: _lease,
    invoke_script.TYPE.type_id: _invoke,
    ethereum.TYPE_ID: _ethereum,
}
"""The types with metadata beyond the sender."""
