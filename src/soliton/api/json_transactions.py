"""Transactions as the REST API shows them, with what only the chain knows about them.

What lives here: height and outcome, and what the state adds to some types, with its schemas
(``OF_STATE``): the status of a lease, the lease that a cancel ends, what an Ethereum transaction
does. What does not: a transaction's own
JSON (``soliton.chain.transactions.codec``), which transactions are asked for
(``rest.transactions``).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/
TransactionJsonSerializer.scala``; 0bsnetwork/Zbs ``src/main/scala/com/zbsnetwork/api/http/
TransactionsApiRoute.scala`` for the oldest generation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from soliton.api import state_schemas
from soliton.api.state_schemas import APPLICATION_STATUSES
from soliton.api.translate import OLDEST
from soliton.chain.addresses import Address, Alias, address_text, from_public_key
from soliton.chain.json_schemas import Named, Schema, described, or_null
from soliton.chain.transactions import ethereum, invoke_script, lease, lease_cancel, mass_transfer
from soliton.chain.transactions.codec import to_json
from soliton.chain.transactions.ethereum import EthereumTransfer
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.table import type_by_id
from soliton.crypto import base58
from soliton.ledger.state import ALIASES, ERC20, LEASE_INFO, LEASE_STATES, State
from soliton.ledger.transactions import Applied
from soliton.node.blockchain import Blockchain, FoundTransaction
from soliton.node.call_records import call_record

Members = dict[str, object]

MIDDLE: Final = "tn"
"""The network family whose interface is the generation between the oldest and the newest."""


def confirmed_json(found: FoundTransaction, chain: Blockchain) -> Members:
    """A transaction of the chain with its height and what came of it."""
    members: Members = to_json(found.transaction)
    members["height"] = found.height
    members |= outcome(found.height, found.status, found.complexity, chain)
    called = _called(found.transaction, chain)
    return members | _state_members(found.transaction, chain.store, chain, called)


def listed_json(found: FoundTransaction, chain: Blockchain, address: Address) -> Members:
    """The same in the list of an account's transactions: of a mass transfer that somebody else
    sent, the account's own lines only.
    """
    members = confirmed_json(found, chain)
    transaction = found.transaction
    for holder in (members, members.get("payload")):
        changes = holder.get("stateChanges") if isinstance(holder, dict) else None
        if isinstance(changes, dict):
            _drop_compiled(changes)
    of_state = OF_STATE.get(transaction.type_id)
    sender = from_public_key(transaction.sender_public_key, transaction.chain_id)
    if of_state is not None and of_state.listed is not None and sender != address:
        members |= of_state.listed(transaction, address, members, chain)
    return members


def _own_lines(
    transaction: AnyTransaction, address: Address, members: Members, chain: Blockchain
) -> Members:
    own = [_is_to(item.recipient, address, chain) for item in transaction.payload.transfers]
    shown = members["transfers"]
    assert isinstance(shown, list)
    return {"transfers": [item for item, mine in zip(shown, own, strict=True) if mine]}


def _drop_compiled(changes: Members) -> None:
    """Issues in lists lack the member that is always null elsewhere, as in the reference."""
    issues, calls = changes["issues"], changes["invokes"]
    assert isinstance(issues, list) and isinstance(calls, list)
    for issue in issues:
        del issue["compiledScript"]
    for call in calls:
        _drop_compiled(call["stateChanges"])


def _is_to(recipient: Address | Alias, address: Address, chain: Blockchain) -> bool:
    if isinstance(recipient, Alias):
        return chain.store.get(ALIASES, recipient.name) == address
    return recipient == address


def unconfirmed_json(transaction: AnyTransaction, chain: Blockchain) -> Members:
    """A transaction that waits for a block."""
    members: Members = to_json(transaction)
    of_state = OF_STATE.get(transaction.type_id)
    if of_state is not None and of_state.while_waiting:
        members |= of_state.members(transaction, chain.store, chain, {})
    return members


def validated_json(transaction: AnyTransaction, applied: Applied, chain: Blockchain) -> Members:
    """A transaction as it would be on top of the chain."""
    members: Members = to_json(transaction)
    members["height"] = chain.height
    members |= outcome(chain.height, 0, applied.complexity, chain)
    return members | effects_json(transaction, applied, chain)


def effects_json(transaction: AnyTransaction, applied: Applied, chain: Blockchain) -> Members:
    """What the state adds to a transaction that is applied on top of the chain."""
    state = applied.changes
    called = call_record(transaction, applied.state_changes, state) or {}
    return _state_members(transaction, state, chain, called)


def outcome(height: int, status: int, complexity: int, chain: Blockchain) -> Members:
    """What came of a transaction, as far as the generation tells."""
    members: Members = {}
    family = chain.network.family
    if family == OLDEST:
        return members
    if chain.rules.at(height).uses_vrf:
        members["applicationStatus"] = APPLICATION_STATUSES[status]
    if family != MIDDLE:
        members["spentComplexity"] = complexity
    return members


def _state_members(
    transaction: AnyTransaction, state: State, chain: Blockchain, called: Members
) -> Members:
    """``called`` is what is kept of a call, nothing of one that was not carried out."""
    of_state = OF_STATE.get(transaction.type_id)
    return {} if of_state is None else of_state.members(transaction, state, chain, called)


def _no_members(
    _transaction: AnyTransaction, _state: State, _chain: Blockchain, _called: Members
) -> Members:
    return {}


def _lease_members(
    transaction: AnyTransaction, state: State, _chain: Blockchain, _called: Members
) -> Members:
    found = state.get(LEASE_STATES, transaction.id)
    return {"status": "active" if found is not None and found.active else "canceled"}


def _cancel_members(
    transaction: AnyTransaction, state: State, chain: Blockchain, _called: Members
) -> Members:
    lease_id = transaction.payload.lease_id
    if chain.network.family in (OLDEST, MIDDLE):
        found = chain.transaction(lease_id)
        return {"lease": None if found is None else to_json(found.transaction)}
    return {"lease": lease_json(lease_id, state, chain.network.chain_id)}


def _call_members(
    _transaction: AnyTransaction, state: State, chain: Blockchain, called: Members
) -> Members:
    if chain.network.family == OLDEST:
        return {}
    return {"stateChanges": _state_changes(called, state, chain)}


def _called(transaction: AnyTransaction, chain: Blockchain) -> Members:
    """What is kept of the call of a transaction on the chain."""
    if type_by_id(transaction.type_id).calls(transaction.payload) is None:
        return {}
    location = chain.store.transaction_location(transaction.id)
    return {} if location is None else chain.store.call_record(location) or {}


def _state_changes(called: Members, state: State, chain: Blockchain) -> object:
    """What the dApp did, with what has become of leases."""
    changes = called.get("stateChanges")
    return with_leases(changes, state, chain) if isinstance(changes, dict) else None


def with_leases(changes: Members, state: State, chain: Blockchain) -> Members:
    """State changes in which leases have their ids only, with all that is known about these."""

    def leases(name: str) -> list[Members]:
        items = changes[name]
        assert isinstance(items, list)
        return [
            lease_json(base58.decode(item["id"]), state, chain.network.chain_id) for item in items
        ]

    calls = changes["invokes"]
    assert isinstance(calls, list)
    return changes | {
        "leases": leases("leases"),
        "leaseCancels": leases("leaseCancels"),
        "invokes": [
            call | {"stateChanges": with_leases(call["stateChanges"], state, chain)}
            for call in calls
        ],
    }


def _ethereum_members(
    transaction: AnyTransaction, state: State, chain: Blockchain, called: Members
) -> Members:
    action = transaction.payload.action
    if isinstance(action, EthereumTransfer):
        asset_id = None if action.token is None else state.get(ERC20, action.token)
        payload: Members = {
            "type": "transfer",
            "recipient": address_text(action.recipient),
            "asset": None if asset_id is None else base58.encode(asset_id),
            "amount": action.amount,
        }
    else:
        payload = {
            "type": "invocation",
            "dApp": address_text(action.d_app),
            "call": called.get("call"),
            "payment": called.get("payment", []),
            "stateChanges": _state_changes(called, state, chain),
        }
    return {"payload": payload}


def lease_json(lease_id: bytes, state: State, chain_id: int) -> Members:
    """A lease and what became of it; of one that there is not, only the id."""
    info, status = state.get(LEASE_INFO, lease_id), state.get(LEASE_STATES, lease_id)
    members: Members = {"id": base58.encode(lease_id)}
    if info is None or status is None:
        empty = ("originTransactionId", "sender", "recipient", "amount", "height")
        members |= dict.fromkeys(empty)
        return members | {"status": "canceled", "cancelHeight": None, "cancelTransactionId": None}
    ended_by = status.transaction_id
    return members | {
        "originTransactionId": base58.encode(info.origin),
        "sender": address_text(from_public_key(info.sender, chain_id)),
        "recipient": address_text(info.recipient),
        "amount": info.amount,
        "height": info.height,
        "status": "active" if status.active else "canceled",
        "cancelHeight": None if status.active else status.height,
        "cancelTransactionId": base58.encode(ended_by) if ended_by else None,
    }


class OfState(msgspec.Struct, frozen=True):
    """What the interface tells of a type that only the state knows.

    ``members(transaction, state, chain, called)`` are shown of those on the chain, and also
    ``while_waiting``; ``confirmed`` and ``sometimes`` are their schemas. ``listed`` changes the
    members in the lists of others than the sender.
    """

    members: Callable[[AnyTransaction, State, Blockchain, Members], Members] = _no_members
    confirmed: Mapping[str, Schema | Named] = {}
    sometimes: Mapping[str, Schema | Named] = {}
    while_waiting: bool = False
    listed: Callable[[AnyTransaction, Address, Members, Blockchain], Members] | None = None


OF_STATE: Final[Mapping[int, OfState]] = {
    lease.TYPE.type_id: OfState(
        _lease_members, {"status": {"type": "string", "enum": ["active", "canceled"]}}
    ),
    lease_cancel.TYPE.type_id: OfState(
        _cancel_members,
        sometimes={
            "lease": or_null(
                {
                    "anyOf": [
                        state_schemas.LEASE,
                        {"$ref": f"#/components/schemas/{lease.TYPE.title}"},
                    ]
                }
            )
        },
        while_waiting=True,
    ),
    mass_transfer.TYPE.type_id: OfState(listed=_own_lines),
    invoke_script.TYPE.type_id: OfState(
        _call_members,
        {
            "stateChanges": described(
                or_null(state_schemas.STATE_CHANGES), "Null where no dApp was called"
            )
        },
    ),
    ethereum.TYPE_ID: OfState(
        _ethereum_members,
        {"payload": {"oneOf": [state_schemas.TRANSFER_PAYLOAD, state_schemas.CALL_PAYLOAD]}},
    ),
}
"""One row for each type of which the state knows more; a new type needs none."""
