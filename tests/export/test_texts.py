"""Texts and times that strangers choose, as PostgreSQL takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from soliton.export.database import ChainFacts, Database
from soliton.export.sources import ChainBlock, ChainTransaction
from soliton.export.steps import Position, Step
from tests.export.postgres import Server

ADDRESS = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"
# A character 0 becomes a backslash and a 0, as in the reference; everything else stays.
TEXTS = (
    ("a\0b", r"a\0b"),
    (r"\u0000", r"\u0000"),
    ("\\\0", r"\\0"),
    (r"\\u0000", r"\\u0000"),
    ('"\0\\', r'"\0' + "\\"),
)


def write(dsn: str, transactions: Sequence[dict[str, Any]]) -> None:
    """A block with these, as a source tells of them."""
    common = {"fee": 1, "timestamp": 1, "sender": ADDRESS, "senderPublicKey": "k", "proofs": ["p"]}
    told = [
        ChainTransaction({**common, "id": str(number), **each}, {})
        for number, each in enumerate(transactions)
    ]
    block = ChainBlock(1, "block", "parent", "key", 1, None, told)
    database = Database.open(dsn, ChainFacts("devnet", ord("D"), lambda alias: alias))
    try:
        database.write(Step(blocks=[block]), Position([], [], None))
    finally:
        database.close()


@pytest.mark.parametrize(("text", "held"), TEXTS)
def test_a_text_within_json(postgres: Server, dsn: str, text: str, held: str) -> None:
    listed = [{"type": "string", "value": text}]
    call = {"function": "f", "args": [{"type": "list", "value": listed}]}
    invocation = {"type": 16, "dApp": ADDRESS, "call": call, "payment": [], "feeAssetId": None}
    write(dsn, [invocation, {"type": 99, "note": text}])
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT arg_value_list FROM txs_16_args").fetchall() == [
            ([{"type": "string", "value": held}],)
        ]
        assert connection.execute("SELECT body ->> 'note' FROM txs_other").fetchall() == [(held,)]


@pytest.mark.parametrize(("timestamp", "year"), [(-(2**63), 1), (0, 1970), (2**63 - 1, 9999)])
def test_a_time_that_no_date_has(postgres: Server, dsn: str, timestamp: int, year: int) -> None:
    write(dsn, [{"type": 99, "timestamp": timestamp}])
    with psycopg.connect(dsn) as connection:
        found = connection.execute("SELECT date_part('year', time_stamp) FROM txs").fetchall()
    assert found == [(year,)]
