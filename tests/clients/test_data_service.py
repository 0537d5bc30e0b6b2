"""Every method of the ecosystem's client of the data service, against ours as a program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.clients.scripts import NEEDS_NODE, run_script
from tests.data_service.conftest import folder, postgres, recorded_dsn
from tests.e2e.programs import Program, started
from tests.node import recorded

__all__ = ["folder", "postgres", "recorded_dsn"]

pytestmark = [
    *NEEDS_NODE,
    pytest.mark.skipif(
        not (Path(__file__).parent / "node_modules/@waves/data-service-client-js").is_dir(),
        reason="@waves/data-service-client-js is missing (`make clients` installs it)",
    ),
]


def url_of(program: Program) -> str:
    return program.output.partition("data service on ")[2].split()[0]


def test_each_method(folder: Path, recorded_dsn: str) -> None:
    rows = recorded.lines(folder / "transactions-info.jsonl.gz")
    told: list[dict[str, Any]] = [row["body"] for row in rows if row["status"] == 200]
    of = {kind: [each for each in told if each["type"] == kind] for kind in (4, 7, 10, 11)}
    exchange = next(t for t in of[7] if t["applicationStatus"] == "succeeded")
    pair = [
        exchange["order1"]["assetPair"][name] or "WAVES" for name in ("amountAsset", "priceAsset")
    ]
    names = {
        "asset": next(each for each in pair if each != "WAVES"),
        "matcher": exchange["sender"],
        "pair": "/".join(pair),
        "exchange": exchange["id"],
        "time": exchange["timestamp"],
        "transfer": of[4][0]["id"],
        "sender": of[4][0]["sender"],
        "massTransfer": of[11][0]["id"],
        "alias": of[10][0]["alias"],
        "owner": of[10][0]["sender"],
    }
    arguments = ("data-service", "--dsn", recorded_dsn, "--port", 0)
    with started(*arguments, until="data service on") as program:
        found = run_script("data_service.js", f"{url_of(program)}/v0", json.dumps(names))
    assert [each["id"] for each in found["asset"]] == ["WAVES"]
    assert found["assets"] == ["WAVES", names["asset"], None]
    assert found["many assets"] == [names["asset"]] * 60
    assert found["tickers"] == found["ticker"] == ["WAVES"]
    assert found["pairs"][0]["txsCount"] > 0 and found["pairs"][1] is None
    assert found["exchange"]["id"] == names["exchange"]
    assert set(found["exchanges"]) == {each["id"] for each in of[7]}
    matched = [each["id"] for each in of[7] if each["sender"] == names["matcher"]]
    assert sorted(found["exchange pages"]) == sorted(matched)
    assert found["transfer"]["id"] == names["transfer"]
    sent = [each["id"] for each in of[4] if each["sender"] == names["sender"]]
    assert sorted(found["transfer pages"]) == sorted(sent)
    assert len(found["mass transfer"]["transfers"]) == of[11][0]["transferCount"]
    assert sorted(found["mass transfer pages"]) == sorted(each["id"] for each in of[11])
    alias = {"alias": names["alias"], "address": names["owner"]}
    assert found["alias"] == alias
    assert found["aliases"] == [alias, None]
    assert alias in found["aliases of"]
    assert sum(each["txsCount"] for each in found["candles"]) > 0
    assert "N of candles is more then allowed of 1440" in found["refusal"]
    assert found["methods"] == ["GET", "POST"]
