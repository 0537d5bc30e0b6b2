"""Notices about transactions: payments, data entries, failed calls, executed orders.

What lives here: filters, and the notices of a block, as JSON members. What does not: storing them
(``outbox``), sending them (``delivery``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

import msgspec

from soliton.export.sources import ChainBlock, ChainTransaction, Members

ANY: Final = "any"
"""In place of an address: any dApp."""
NATIVE: Final = "WAVES"
"""The name of the chain's coin in filters; in notices it is ``null``, as in the REST API."""
COMPLETE: Final = frozenset((16, 18))
"""Types that need their outcome: sources have to include it."""

_GENESIS, _PAYMENT, _TRANSFER, _EXCHANGE, _MASS_TRANSFER = 1, 2, 4, 7, 11
_ALIAS_PREFIX: Final = "alias:"
_SUCCEEDED: Final = "succeeded"


class DataKeys(NamedTuple):
    """Entries of an account whose keys match a pattern with ``*`` and ``?``."""

    address: str
    pattern: str


class Interests(msgspec.Struct, frozen=True, kw_only=True):
    """A filter: payments to accounts or of assets, data entries, failed calls, executed orders."""

    payments_to: frozenset[str] = frozenset()
    transfers_of: frozenset[str] = frozenset()
    data: tuple[DataKeys, ...] = ()
    failed_invokes: frozenset[str] = frozenset()
    orders_of: frozenset[str] = frozenset()


class Notice(NamedTuple):
    """A notice, and the place of its transaction."""

    height: int
    behind: int
    """The index of its transaction in the block."""
    members: Members


class _Paid(NamedTuple):
    """A payment from one account to another."""

    sender: str | None
    recipient: str
    asset: str | None
    amount: int
    more: Members


def notices_of(
    block: ChainBlock, first: int, interests: Interests, address_of: Callable[[str], str]
) -> Iterator[Notice]:
    """Yield the notices of a block's transactions from index ``first`` on."""
    for index in range(first, len(block.transactions)):
        transaction = block.transactions[index]
        members = transaction.members
        place: Members = {
            "height": block.height,
            "block": block.id,
            "index": index,
            "transaction": members["id"],
            "type": members["type"],
            "sender": members.get("sender"),
            "timestamp": members["timestamp"],
        }
        for event, more in _events(transaction, interests, address_of):
            yield Notice(block.height, index, {"event": event, **place, **more})


def _events(
    transaction: ChainTransaction, interests: Interests, address_of: Callable[[str], str]
) -> Iterator[tuple[str, Members]]:
    members = transaction.members
    if members.get("applicationStatus", _SUCCEEDED) != _SUCCEEDED:
        if interests.failed_invokes:
            yield from _failed(members, interests, address_of)
        return
    if interests.payments_to or interests.transfers_of:
        for paid in _paid(members, address_of):
            recipient = _address(paid.recipient, address_of)
            matches = recipient in interests.payments_to
            if matches or (paid.asset or NATIVE) in interests.transfers_of:
                yield (
                    "payment",
                    {
                        "from": paid.sender,
                        "recipient": recipient,
                        "assetId": paid.asset,
                        "amount": paid.amount,
                        **paid.more,
                    },
                )
    for account in transaction.data if interests.data else ():
        for entry in account["data"]:
            if any(_matches(account["address"], entry["key"], each) for each in interests.data):
                yield "data", {"address": account["address"], "entry": entry}
    if interests.orders_of and members["type"] == _EXCHANGE:
        yield from _filled(members, interests.orders_of)


def _matches(address: str, key: str, filtered: DataKeys) -> bool:
    return filtered.address == address and fnmatchcase(key, filtered.pattern)


def _address(recipient: str, address_of: Callable[[str], str]) -> str:
    if recipient.startswith(_ALIAS_PREFIX):
        return address_of(recipient.rpartition(":")[2])
    return recipient


def _failed(
    members: Members, interests: Interests, address_of: Callable[[str], str]
) -> Iterator[tuple[str, Members]]:
    called = members.get("payload", members)
    if "dApp" not in called:
        return
    d_app = _address(called["dApp"], address_of)
    if not interests.failed_invokes & {ANY, d_app}:
        return
    changes = called.get("stateChanges") or {}
    yield (
        "failed-invoke",
        {
            "dApp": d_app,
            "status": members["applicationStatus"],
            "call": called.get("call"),
            "error": changes.get("error"),
        },
    )


def _filled(members: Members, accounts: frozenset[str]) -> Iterator[tuple[str, Members]]:
    for name in ("order1", "order2"):
        order = members[name]
        if order.get("sender") in accounts:
            yield (
                "order-filled",
                {
                    "account": order["sender"],
                    "order": order["id"],
                    "side": order["orderType"],
                    "assetPair": order["assetPair"],
                    "amount": members["amount"],
                    "price": members["price"],
                },
            )


def _paid(members: Members, address_of: Callable[[str], str]) -> Iterator[_Paid]:
    """Yield all payments of a successful transaction."""
    type_id, payload = members["type"], members.get("payload")
    sender = members.get("sender")
    if type_id in (_GENESIS, _PAYMENT):
        yield _Paid(sender, members["recipient"], None, members["amount"], {})
    elif type_id == _TRANSFER:
        memo = {"attachment": members.get("attachment")}
        yield _Paid(sender, members["recipient"], members["assetId"], members["amount"], memo)
    elif type_id == _MASS_TRANSFER:
        for position, each in enumerate(members["transfers"]):
            memo = {"attachment": members.get("attachment"), "position": position}
            yield _Paid(sender, each["recipient"], members["assetId"], each["amount"], memo)
    elif payload is not None and payload["type"] == "transfer":
        yield _Paid(sender, payload["recipient"], payload["asset"], payload["amount"], {})
    else:
        called = members if payload is None else payload
        if "dApp" in called:
            yield from _paid_by_call(sender, called, address_of)


def _paid_by_call(
    sender: str | None, outermost: Members, address_of: Callable[[str], str]
) -> Iterator[_Paid]:
    """Yield the payments of a call, the script's transfers, and those of nested calls."""
    waiting = [(sender, outermost)]
    while waiting:
        caller, call = waiting.pop()
        d_app = _address(call["dApp"], address_of)
        payments = call["payment"] if "payment" in call else call.get("payments")
        for each in payments or ():
            yield _Paid(caller, d_app, each["assetId"], each["amount"], {"by": "call"})
        changes = call.get("stateChanges") or {}
        for each in changes.get("transfers", ()):
            yield _Paid(d_app, each["address"], each["asset"], each["amount"], {"by": "script"})
        waiting += [(d_app, each) for each in reversed(changes.get("invokes", ()))]
