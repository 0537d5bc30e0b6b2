"""Questions about some rows, as the database plans them: none goes through a whole table.

Small tables are read whole whatever indexes they have, so such plans are forbidden here: where one
is left, there is no index that helps.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import psycopg
import pytest

from soliton.data_service.app import DataService, DataServiceSettings
from soliton.data_service.pool import Parameters, Pool, Row
from soliton.web.server import serve

ID = "3" * 32
ACCOUNT = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"
TIMES = "timeStart=1&timeEnd=1000000&interval=1m"
QUESTIONS = [
    "/assets/WAVES",
    f"/assets?ids={ID}",
    "/assets?ticker=abc",
    "/aliases/abc",
    "/aliases?aliases=a,b",
    f"/aliases?address={ACCOUNT}",
    f"/pairs/{ID}/WAVES?matcher={ACCOUNT}",
    f"/pairs?pairs={ID}/WAVES&matcher={ACCOUNT}",
    f"/matchers/{ACCOUNT}/candles/WAVES/WAVES?{TIMES}",
    f"/matchers/{ACCOUNT}/last_candle/WAVES/WAVES?{TIMES}",
    f"/matchers/{ACCOUNT}/rates?pairs=WAVES/WAVES",
    f"/transactions/all/{ID}",
    f"/transactions/transfer/{ID}",
    f"/transactions/all?sender={ACCOUNT}",
    f"/transactions/transfer?sender={ACCOUNT}",
    f"/transactions/transfer?recipient={ACCOUNT}",
    f"/transactions/transfer?assetId={ID}",
    f"/transactions/mass-transfer?recipient={ACCOUNT}",
    f"/transactions/exchange?orderId={ID}",
    f"/transactions/exchange?sender={ACCOUNT}",
    f"/transactions/exchange?amountAsset={ID}&priceAsset=WAVES",
    f"/transactions/lease?recipient={ACCOUNT}",
    "/transactions/data?key=abc",
    "/transactions/data?type=integer&value=5",
    f"/transactions/invoke-script?dapp={ACCOUNT}",
    "/transactions/invoke-script?function=abc",
    "/transactions/ethereum-like?function=abc",
    "/transactions/set-script?script=base64:AAAA",
    "/transactions/transfer?timeStart=1&timeEnd=1000",
    "/transactions/transfer?blockTimeStart=1&blockTimeEnd=1000",
    "/transactions/all?limit=1",
]


EMPTY = ("txs",)
"""All transactions are in tables that inherit from this one."""


class Planned(Pool):
    """Answers as the pool does, and keeps the plan of each statement."""

    def __init__(self, dsn: str) -> None:
        super().__init__(dsn, 1)
        self.whole: list[str] = []
        self._plans = psycopg.connect(dsn, autocommit=True)
        self._plans.execute("SET enable_seqscan TO off")

    async def fetch(self, statement: str, parameters: Parameters = ()) -> list[Row]:
        asked = f"EXPLAIN (FORMAT JSON) {statement}".encode()
        (((plan,),),) = self._plans.execute(asked, parameters).fetchall()
        self.whole += _whole(plan["Plan"])
        return await super().fetch(statement, parameters)

    async def close(self) -> None:
        self._plans.close()
        await super().close()


def _whole(node: dict[str, Any], *, is_ordered: bool = False) -> Iterator[str]:
    """The tables of a plan that are read without a condition on an index. Below a limit, an index
    may be read in its order, unless rows of it are left out.
    """
    kind, conditions = node["Node Type"], ("Index Cond", "Recheck Cond", "TID Cond")
    has_index = any(each in node for each in conditions)
    if (
        node.get("Relation Name") not in (None, *EMPTY)
        and not has_index
        and not (is_ordered and "Filter" not in node)
    ):
        yield f"{kind} on {node['Relation Name']} {node.get('Filter', '')}"
    is_ordered = kind == "Limit" or (is_ordered and kind in ("Append", "Merge Append", "Result"))
    for each in node.get("Plans", ()):
        yield from _whole(each, is_ordered=is_ordered)


@pytest.fixture
async def pool(recorded_dsn: str) -> AsyncIterator[Planned]:
    made = Planned(recorded_dsn)
    yield made
    await made.close()


@pytest.mark.parametrize("question", QUESTIONS)
async def test_no_table_is_read_whole(pool: Planned, question: str) -> None:
    running = await serve(DataService(pool, DataServiceSettings()), "127.0.0.1", 0)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}", timeout=60) as client:
        answer = await client.get(question)
    await running.stop()
    assert answer.status_code in (200, 404)
    assert not pool.whole
