"""Transactions sent to the reference node by gRPC, good ones and bad ones, sent here in the same
order; and what the pool said in between.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from tests.api.chain import PrivateChain
from tests.grpc_api.serving import Called, Client, served
from tests.grpc_api.test_recorded_calls import difference, replayed
from tests.node import recorded
from tests.vectors import report

__all__ = ["replayed"]

NOW = 1_795_351_200_000
"""A moment after the recording: orders run out, and times may lie so far ahead."""
SENDING = "waves.node.grpc.TransactionsApi/Broadcast"


async def test_what_is_sent_is_taken_or_refused_as_recorded(
    shared: Path, replayed: PrivateChain
) -> None:
    rows = recorded.lines(shared / "golden" / "grpc-r" / "pool.jsonl.gz")
    replayed.now = NOW
    faults: dict[str, tuple[object, ...]] = {}
    async with served(replayed.node) as client:
        for row in rows:
            found = await ask(client, row)
            if row["method"] == "Broadcast":
                fault = sent_otherwise(row, found)
            else:
                fault = difference(in_any_order(row), settled(row, found))
            if fault:
                faults[row["note"]] = fault
    report.compared("golden pool", len(rows) - len(faults), len(rows), "see OTHERWISE")
    assert {name: fault for name, fault in faults.items() if name not in OTHERWISE} == {}
    assert OTHERWISE.keys() == faults.keys()


_BYTE = "the reference takes the lowest byte of the number"
_WORDS = "an exception of the reference's JVM, or words for what no message of ours can be"
_WAITS = "rests on a transaction that waits in the pool: taken here, as by REST"
OTHERWISE = {
    **dict.fromkeys(("chain id 338", "chain id -174", "transfer version 259"), _BYTE),
    **dict.fromkeys(
        (
            *("fee asset 1 byte", "asset 2 bytes", "no amount", "no recipient", "duplicate key"),
            *("reissue WAVES", "burn WAVES", "sponsor WAVES", "garbage call", "invoke expression"),
            *("call with leading byte 7", "ethereum garbage", "ethereum empty"),
        ),
        _WORDS,
    ),
    **dict.fromkeys(
        (
            *("exchange no asset", "exchange sell first", "exchange price", "exchange amount"),
            *("exchange other matcher", "exchange bad order signature", "at the end"),
        ),
        _WAITS,
    ),
}
"""What is answered in another way, and why: always a refusal in both, but for the last reason."""


async def ask(client: Client, row: dict[str, Any]) -> Called:
    path, data = f"/{row['service']}/{row['method']}", base64.b64decode(row["request"])
    return await client.call(path, data, stream=row["stream"])


def sent_otherwise(row: dict[str, Any], found: Called) -> tuple[object, ...]:
    """What is not as recorded: status, number, and the beginning of the words."""
    number, expected = (each.get("error-code") for each in (found.trailers, row["trailers"]))
    if found.code != row["code"] or number != expected:
        return row["code"], expected, row["details"][:90], found.code, number, found.details[:90]
    if found.responses != [base64.b64decode(each) for each in row["responses"]]:
        return ("another answer",)
    if number is not None and found.details[:40] != row["details"][:40]:
        return row["details"][:120], found.details[:120]
    return ()


def in_any_order(row: dict[str, Any]) -> dict[str, Any]:
    """The pool's order is its own."""
    if row["method"] == "GetUnconfirmed":
        row["responses"].sort()
    return row


def settled(row: dict[str, Any], found: Called) -> Called:
    """The same of an answer."""
    if row["method"] == "GetUnconfirmed":
        found.responses.sort(key=base64.b64encode)
    return found
