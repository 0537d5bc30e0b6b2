"""The record of a call, from what a node tells of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from soliton.devnet.fork.calls import call_record
from soliton.devnet.fork.remote import Remote, RemoteTrouble
from soliton.storage import layout
from tests.node.test_recorded_chains import plain, told_of_transactions
from tests.vectors import report

REMOTE = Remote("http://127.0.0.1:1")
CHANGES = (
    *("data", "transfers", "issues", "reissues", "burns", "sponsorFees"),
    *("leases", "leaseCancels", "invokes"),
)


def test_what_the_reference_tells_is_kept_as_it_is(shared: Path) -> None:
    kinds: set[str] = set()
    told = told_of_transactions(shared / "golden" / "waves-r")
    for body in told.values():
        payload = body.get("payload", body)
        record = call_record(REMOTE, "/", payload)
        changes = payload.get("stateChanges")
        if changes is None:
            assert record is None
            continue
        assert record is not None
        assert layout.decode_call(layout.encode(record)) == record
        assert record["stateChanges"] == plain(changes)
        kinds |= {name for name, made in changes.items() if made}
        if "payload" in body:
            kinds.add("payload")
            assert (record["call"], record["payment"]) == (payload["call"], payload["payment"])
    assert kinds == {*CHANGES, "error", "payload"}
    report.ran("golden/waves-r/calls", len(told))


def entry(value: object) -> dict[str, Any]:
    return {"data": [{"key": "n", "type": "integer", "value": value}]}


def call(depth: int) -> dict[str, Any]:
    changes: dict[str, Any] = {name: [] for name in CHANGES}
    for _ in range(depth):
        inner = changes
        made = {
            "dApp": "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF",
            "call": {"function": "f", "args": []},
            "payment": [],
            "stateChanges": inner,
        }
        changes = {name: [] for name in CHANGES} | {"invokes": [made]}
    return changes


@pytest.mark.parametrize(
    "lie",
    [
        entry(2**63),
        entry(-(2**70)),
        entry(1.5),
        entry({}),
        {"data": None},
        {"leases": [{"id": "0" * 32}]},
        {"leaseCancels": [{"id": "1" * 2_000}]},
        {"transfers": [{"address": "", "amount": 1, "asset": None}]},
        {"invokes": [{}]},
        {"error": "no"},
    ],
    ids=range(10),
)
def test_what_cannot_be_is_named(lie: dict[str, Any]) -> None:
    told = {"stateChanges": call(0) | lie}
    with pytest.raises(RemoteTrouble, match="/transactions/info/x: what a dApp did cannot be"):
        call_record(REMOTE, "/transactions/info/x", told)


def test_calls_deeper_than_any_are_named() -> None:
    with pytest.raises(RemoteTrouble, match="/transactions/info/x: what a dApp did cannot be"):
        call_record(REMOTE, "/transactions/info/x", {"stateChanges": call(100_000)})


def test_a_hundred_calls_within_one_another_are_kept() -> None:
    told = {"stateChanges": call(100)}
    assert msgspec.to_builtins(call_record(REMOTE, "/", told)) == told
