"""Notices about transactions: payments, data entries, failed calls, executed orders.

What lives here: filters, and the notices of a block, as JSON members. What does not: storing them
(``outbox``), sending them (``delivery``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

import msgspec

from soliton.chain.payments import NEEDS_OUTCOME, SUCCEEDED, Paid, address_in, payments_in
from soliton.export.sources import ChainBlock, ChainTransaction, Members

ANY: Final = "any"
"""In place of an address: any dApp."""
NATIVE: Final = "WAVES"
"""The name of the chain's coin in filters; in notices it is ``null``, as in the REST API."""
COMPLETE: Final = NEEDS_OUTCOME
"""Types that need their outcome: sources have to include it."""

_EXCHANGE: Final = 7


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
    if members.get("applicationStatus", SUCCEEDED) != SUCCEEDED:
        if interests.failed_invokes:
            yield from _failed(members, interests, address_of)
        return
    if interests.payments_to or interests.transfers_of:
        for paid in payments_in(members, address_of):
            matches = paid.recipient in interests.payments_to
            if matches or (paid.asset or NATIVE) in interests.transfers_of:
                yield (
                    "payment",
                    {
                        "from": paid.sender,
                        "recipient": paid.recipient,
                        "assetId": paid.asset,
                        "amount": paid.amount,
                        **_more(paid),
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


def _failed(
    members: Members, interests: Interests, address_of: Callable[[str], str]
) -> Iterator[tuple[str, Members]]:
    called = members.get("payload", members)
    if "dApp" not in called:
        return
    d_app = address_in(called["dApp"], address_of)
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


def _more(paid: Paid) -> Members:
    """What a notice says of a payment besides the accounts and the amount."""
    if paid.kind in ("call", "script"):
        return {"by": paid.kind}
    if paid.kind == "mass-transfer":
        return {"attachment": paid.attachment, "position": paid.position}
    return {"attachment": paid.attachment} if paid.kind == "transfer" else {}
