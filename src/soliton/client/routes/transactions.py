"""Routes about transactions on the chain, in the pool, and of accounts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from soliton.client import records
from soliton.client.errors import NodeBroken
from soliton.client.making import Whom
from soliton.client.records import (
    Fee,
    MerkleProof,
    Simulation,
    SizeRecord,
    Status,
    TransactionInfo,
    Validation,
)
from soliton.client.routes.accounts import address_of
from soliton.client.steps import (
    JSON,
    Core,
    Pages,
    Request,
    Steps,
    ask,
    check_same,
    get,
    key_headers,
    post,
    query,
    segment,
)
from soliton.client.transaction import Transaction

PAGE: Final = 1_000
T = TypeVar("T", Status, TransactionInfo, MerkleProof)

Json = dict[str, Any]
Sent = Transaction | Mapping[str, Any]
"""A transaction, or its JSON object."""


def transaction(core: Core, transaction_id: str) -> Steps[TransactionInfo]:
    """A confirmed transaction; raises ``NotFound``."""
    return _one(core, "/transactions/info", transaction_id)


def transactions(core: Core, ids: Iterable[str]) -> Steps[list[TransactionInfo]]:
    """Several confirmed transactions."""
    asked = list(ids)
    rows = yield from post(core, "/transactions/info", {"ids": asked}, list[Json])
    return _of_these(_records(rows), asked)


def status(core: Core, transaction_id: str) -> Steps[Status]:
    """The status of a transaction."""
    found = yield from statuses(core, [transaction_id])
    if not found:
        raise NodeBroken("invalid response from the node: it has no status")
    return found[0]


def statuses(core: Core, ids: Iterable[str]) -> Steps[list[Status]]:
    """The statuses of several transactions."""
    asked = list(ids)
    rows = yield from post(core, "/transactions/status", {"ids": asked}, list[Status])
    return _of_these(rows, asked)


def history(core: Core, account: Whom, limit: int = PAGE) -> Pages[TransactionInfo]:
    """The transactions of an account, the newest first, requested in pages of ``limit``."""

    def page(after: str | None) -> Steps[tuple[list[TransactionInfo], str | None]]:
        path = f"/transactions/address/{address_of(account)}/limit/{int(limit)}"
        reply = yield from get(core, path + query(after=after), list[list[Json]])
        rows = _records(reply[0]) if reply else []
        return rows, rows[-1].id if len(rows) == limit else None

    return page


def unconfirmed(core: Core) -> Steps[list[TransactionInfo]]:
    """All unconfirmed transactions."""
    return _records((yield from get(core, "/transactions/unconfirmed", list[Json])))


def unconfirmed_size(core: Core) -> Steps[int]:
    """The number of unconfirmed transactions."""
    reply = yield from get(core, "/transactions/unconfirmed/size", SizeRecord)
    return reply.size


def unconfirmed_transaction(core: Core, transaction_id: str) -> Steps[TransactionInfo]:
    """An unconfirmed transaction; raises ``NotFound``."""
    return _one(core, "/transactions/unconfirmed/info", transaction_id)


def merkle_proofs(core: Core, ids: Iterable[str]) -> Steps[list[MerkleProof]]:
    """The Merkle proofs of transactions in their blocks."""
    asked = list(ids)
    rows = yield from post(core, "/transactions/merkleProof", {"ids": asked}, list[MerkleProof])
    return _of_these(rows, asked)


def snapshot(core: Core, transaction_id: str) -> Steps[Json]:
    """The state changes of a transaction."""
    return get(core, f"/transactions/snapshot/{segment(transaction_id)}", Json)


def least_fee(core: Core, sent: Sent) -> Steps[Fee]:
    """The minimum fee of a transaction, scripts and sponsorship included, in the asset it pays
    with.
    """
    return post(core, "/transactions/calculateFee", _json(sent), Fee)


def validate(core: Core, sent: Sent) -> Steps[Validation]:
    """Validate a signed transaction without sending it. Some nodes require the API key."""
    body, headers = msgspec.json.encode(_json(sent)), JSON + key_headers(core)
    return ask(core, Request("POST", "/debug/validate", body, headers), Validation)


def simulate(core: Core, sent: Sent, *, unconfirmed: bool = True) -> Steps[Simulation]:
    """Simulate a transaction, signed or not, on top of the chain and of the ``unconfirmed``
    transactions. Raises ``NotFound`` for nodes other than Soliton's.
    """
    path = "/transactions/simulate" + query(unconfirmed=None if unconfirmed else False)
    fields = dict(_json(sent))
    if isinstance(sent, Transaction) and not sent.is_signed:
        # Without proofs, the node simulates it as if its sender had signed it.
        fields.pop("proofs", None)
    return (yield from post(core, path, fields, Simulation))


def _json(sent: Sent) -> Mapping[str, Any]:
    return sent.to_json() if isinstance(sent, Transaction) else sent


def _one(core: Core, path: str, transaction_id: str) -> Steps[TransactionInfo]:
    found = _records([(yield from get(core, f"{path}/{segment(transaction_id)}", Json))])[0]
    check_same("a transaction", found.id, transaction_id)
    return found


def _of_these(rows: list[T], ids: list[str]) -> list[T]:
    """Return the rows, which are about some of the ids, in any order."""
    asked = set(ids)
    for each in rows:
        if each.id not in asked:
            raise NodeBroken(f"invalid response from the node: nobody asked for {each.id[:100]}")
    return rows


def _records(rows: list[Json]) -> list[TransactionInfo]:
    try:
        return [records.transaction_info(row) for row in rows]
    except msgspec.ValidationError as error:
        raise NodeBroken(f"invalid response from the node: {error}") from error
