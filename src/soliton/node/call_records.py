"""What clients see of the dApp that a transaction called.

What lives here: the record that is kept of a call when its block is applied: what the dApp did, and
what an Ethereum wallet called by the names of its dApp. What does not: where it is kept
(``soliton.storage``), and what has become of leases since (``soliton.api``): of these only the ids
are kept, with what nothing else tells, the number and the alias that were given for a new one.

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
    """The record of a transaction's call, ``None`` for one that called nobody.

    The words of a wallet are looked for in all ``states``: a selector stands for the same function
    in whichever of them the dApp has it.
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
