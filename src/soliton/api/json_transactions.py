"""Transactions in the JSON of the REST API, with members that depend on the chain's state.

What lives here: height and outcome, and the members that the state adds to some types, with their
schemas (``STATE_MEMBERS``): the status of a lease, the lease that a cancel ends, the action of an
Ethereum transaction. What does not: a transaction's own JSON
(``soliton.chain.transactions.codec``), the routes (``rest.transactions``).

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
from soliton.ledger.state import ALIASES, ERC20, LEASE_INFO, LEASE_STATES, State, Status
from soliton.ledger.transactions import Applied
from soliton.node.blockchain import Blockchain, FoundTransaction
from soliton.node.call_records import call_record

Members = dict[str, object]

MIDDLE: Final = "tn"
"""The network family with the middle generation of the interface."""


def confirmed_json(found: FoundTransaction, chain: Blockchain) -> Members:
    """A confirmed transaction with its height and outcome."""
    members: Members = to_json(found.transaction)
    members["height"] = found.height
    members |= outcome(found.height, found.status, found.complexity, chain)
    record = _call_record(found.transaction, chain)
    members |= _state_members(found.transaction, chain.store, chain, record)
    if found.status == Status.ELIDED and "payload" in members:
        # What the transaction does is found out when it is applied.
        members["payload"] = {}
    return members


def listed_json(found: FoundTransaction, chain: Blockchain, address: Address) -> Members:
    """A confirmed transaction in the list of an account's transactions. A mass transfer of another
    sender has only the transfers to the account.
    """
    members = confirmed_json(found, chain)
    transaction = found.transaction
    for holder in (members, members.get("payload")):
        changes = holder.get("stateChanges") if isinstance(holder, dict) else None
        if isinstance(changes, dict):
            _drop_compiled(changes)
    extra = STATE_MEMBERS.get(transaction.type_id)
    sender = from_public_key(transaction.sender_public_key, transaction.chain_id)
    if extra is not None and extra.listed is not None and sender != address:
        members |= extra.listed(transaction, address, members, chain)
    return members


def _own_lines(
    transaction: AnyTransaction, address: Address, members: Members, chain: Blockchain
) -> Members:
    own = [_is_to(item.recipient, address, chain) for item in transaction.payload.transfers]
    shown = members["transfers"]
    assert isinstance(shown, list)
    return {"transfers": [item for item, mine in zip(shown, own, strict=True) if mine]}


def _drop_compiled(changes: Members) -> None:
    """Remove ``compiledScript``, which is null elsewhere and, as in the reference, not in lists."""
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
    """An unconfirmed transaction."""
    members: Members = to_json(transaction)
    extra = STATE_MEMBERS.get(transaction.type_id)
    if extra is not None and extra.while_unconfirmed:
        members |= extra.members(transaction, chain.store, chain, {})
    return members


def validated_json(transaction: AnyTransaction, applied: Applied, chain: Blockchain) -> Members:
    """A transaction as if it were applied at the tip."""
    members: Members = to_json(transaction)
    members["height"] = chain.height
    members |= outcome(chain.height, 0, applied.complexity, chain)
    return members | effects_json(transaction, applied, chain)


def effects_json(transaction: AnyTransaction, applied: Applied, chain: Blockchain) -> Members:
    """The members that the state adds to a transaction that is applied at the tip."""
    state = applied.changes
    record = call_record(transaction, applied.state_changes, state) or {}
    return _state_members(transaction, state, chain, record)


def outcome(height: int, status: int, complexity: int, chain: Blockchain) -> Members:
    """The outcome of a transaction; older generations have fewer members."""
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
    transaction: AnyTransaction, state: State, chain: Blockchain, record: Members
) -> Members:
    """``record`` is the stored call record, empty if no call was executed."""
    extra = STATE_MEMBERS.get(transaction.type_id)
    return {} if extra is None else extra.members(transaction, state, chain, record)


def _no_members(
    _transaction: AnyTransaction, _state: State, _chain: Blockchain, _record: Members
) -> Members:
    return {}


def _lease_members(
    transaction: AnyTransaction, state: State, _chain: Blockchain, _record: Members
) -> Members:
    found = state.get(LEASE_STATES, transaction.id)
    return {"status": "active" if found is not None and found.active else "canceled"}


def _cancel_members(
    transaction: AnyTransaction, state: State, chain: Blockchain, _record: Members
) -> Members:
    lease_id = transaction.payload.lease_id
    if chain.network.family in (OLDEST, MIDDLE):
        found = chain.transaction(lease_id)
        return {"lease": None if found is None else to_json(found.transaction)}
    return {"lease": lease_json(lease_id, state, chain.network.chain_id)}


def _call_members(
    _transaction: AnyTransaction, state: State, chain: Blockchain, record: Members
) -> Members:
    if chain.network.family == OLDEST:
        return {}
    return {"stateChanges": _state_changes(record, state, chain)}


def _call_record(transaction: AnyTransaction, chain: Blockchain) -> Members:
    """The stored call record of a confirmed transaction."""
    if type_by_id(transaction.type_id).calls(transaction.payload) is None:
        return {}
    location = chain.store.transaction_location(transaction.id)
    return {} if location is None else chain.store.call_record(location) or {}


def _state_changes(record: Members, state: State, chain: Blockchain) -> object:
    """The state changes of a call, with the current details of leases."""
    changes = record.get("stateChanges")
    return with_leases(changes, state, chain) if isinstance(changes, dict) else None


def with_leases(changes: Members, state: State, chain: Blockchain) -> Members:
    """Replace the leases of recorded state changes, which have only ids, by their details."""

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
    transaction: AnyTransaction, state: State, chain: Blockchain, record: Members
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
            "call": record.get("call"),
            "payment": record.get("payment", []),
            "stateChanges": _state_changes(record, state, chain),
        }
    return {"payload": payload}


def lease_json(lease_id: bytes, state: State, chain_id: int) -> Members:
    """The details of a lease; all members but the id are null if there is none."""
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


class StateMembers(msgspec.Struct, frozen=True):
    """Members of a transaction type that depend on the state.

    ``members(transaction, state, chain, record)`` returns those of a confirmed transaction, and
    also of an unconfirmed one if ``while_unconfirmed``. ``confirmed`` and ``sometimes`` are their
    schemas. ``listed`` returns members to replace in the lists of accounts other than the sender.
    """

    members: Callable[[AnyTransaction, State, Blockchain, Members], Members] = _no_members
    confirmed: Mapping[str, Schema | Named] = {}
    sometimes: Mapping[str, Schema | Named] = {}
    while_unconfirmed: bool = False
    listed: Callable[[AnyTransaction, Address, Members, Blockchain], Members] | None = None


STATE_MEMBERS: Final[Mapping[int, StateMembers]] = {
    lease.TYPE.type_id: StateMembers(
        _lease_members, {"status": {"type": "string", "enum": ["active", "canceled"]}}
    ),
    lease_cancel.TYPE.type_id: StateMembers(
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
        while_unconfirmed=True,
    ),
    mass_transfer.TYPE.type_id: StateMembers(listed=_own_lines),
    invoke_script.TYPE.type_id: StateMembers(
        _call_members,
        {
            "stateChanges": described(
                or_null(state_schemas.STATE_CHANGES), "Null where no dApp was called"
            )
        },
    ),
    ethereum.TYPE_ID: StateMembers(
        _ethereum_members,
        {"payload": {"oneOf": [*state_schemas.PAYLOADS]}},
    ),
}
"""One row for each type with such members; a new type needs none."""
