"""Records of calls of dApps, which clients see with the transaction.

What lives here: the record made when a block is applied: the state changes of the dApp, and the
call of an Ethereum wallet with its names decoded. What does not: storing it (``soliton.storage``),
and the present state of leases (``soliton.api``): a record holds their ids, and the nonce and alias
of new ones, which are stored nowhere else.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/
TransactionJsonSerializer.scala``.
"""

from __future__ import annotations

from soliton.chain.addresses import Alias
from soliton.chain.function_calls import call_json
from soliton.chain.transactions.ethereum import Ethereum, EthereumCall
from soliton.chain.transactions.invoke_script import PAYMENTS
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.ledger.script_results import Lease
from soliton.ledger.state import State
from soliton.ledger.state_changes import JsonObject, StateChanges, to_json
from soliton.ledger.wallet_calls import wallet_call


def call_record(
    transaction: AnyTransaction, changes: StateChanges | None, *states: State
) -> JsonObject | None:
    """Return the record of a transaction's call, ``None`` for one without a call.

    A wallet's selector is looked up in all ``states``: the dApp's script may be in any of them.
    """
    if changes is None:
        return None
    record: JsonObject = {"stateChanges": to_json(changes, _only_id)}
    payload = transaction.payload
    if isinstance(payload, Ethereum) and isinstance(payload.action, EthereumCall):
        for state in states:
            call = wallet_call(payload.action, state)
            if call is not None:
                record["call"] = call_json(call.call)
                record["payment"] = PAYMENTS.json.write(call.payments)
                break
    return record


def _only_id(lease: Lease) -> JsonObject:
    record: JsonObject = {"id": base58.encode(lease.id)}
    if lease.nonce:
        record["nonce"] = lease.nonce
    if isinstance(lease.recipient, Alias):
        record["alias"] = lease.recipient.name
    return record
