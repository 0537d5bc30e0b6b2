"""Trading on a private chain with the ecosystem's libraries: orders of all versions are placed,
matched, partly filled and cancelled; the exchanges come onto the chain, and balances are right to
the last unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import pytest

from soliton.chain.addresses import address_text, from_public_key
from soliton.crypto import base58
from tests.clients.scripts import HERE, NEEDS_NODE, run_client, run_script
from tests.e2e.programs import Program, balance, call, devnet, eventually, is_mined

COIN: Final = 10**8
FEE: Final = 300_000
ISSUE_FEE: Final = 10**8
START: Final = 1_000_000 * COIN
CHAIN_ID: Final = ord("R")
PYTHON: Final = HERE / "python" / ".venv" / "bin" / "python"

Changes = Counter[tuple[str, str | None]]


@pytest.fixture
def chain() -> Iterator[Program]:
    with devnet() as program:
        yield program


def exchanges_of(chain: Program, order_ids: list[str]) -> list[dict[str, Any]]:
    """The exchange transactions of orders, once all of them are on the chain."""
    found = {
        transaction["id"]: transaction
        for order_id in order_ids
        for transaction in call(f"{chain.matcher_url}/matcher/transactions/{order_id}").json()
    }
    for transaction_id in found:
        eventually(partial(is_mined, chain.node_url, transaction_id), transaction_id)
    return [
        {
            **call(f"{chain.node_url}/transactions/info/{transaction_id}").json(),
            "assetDecimalsPrice": found[transaction_id]["assetDecimalsPrice"],
        }
        for transaction_id in found
    ]


def changes_of(transactions: list[dict[str, Any]]) -> Changes:
    """What exchanges change, worked out from what was agreed: by account and asset."""
    changes: Changes = Counter()
    for transaction in transactions:
        amount, price = transaction["amount"], transaction["assetDecimalsPrice"]
        matcher = transaction["sender"]
        changes[matcher, None] -= transaction["fee"]
        for order in (transaction["order1"], transaction["order2"]):
            buys = order["orderType"] == "buy"
            gold = order["assetPair"]["amountAsset"]
            fee = transaction["buyMatcherFee" if buys else "sellMatcherFee"]
            # A part of the order pays its part of the fee.
            assert fee == order["matcherFee"] * amount // order["amount"]
            sign = 1 if buys else -1
            changes[order["sender"], gold] += sign * amount
            changes[order["sender"], None] -= sign * (amount * price // COIN) + fee
            changes[matcher, None] += fee
    return changes


def asset_balance(chain: Program, address: str, asset: str) -> int:
    found: int = call(f"{chain.node_url}/assets/balance/{address}/{asset}").json()["balance"]
    return found


def test_the_table_of_changes() -> None:
    """The arithmetic of this test, on a case that was worked out by hand."""
    common = {"amount": 3 * COIN, "matcherFee": FEE, "assetPair": {"amountAsset": "G"}}
    orders = [{"orderType": kind, "sender": kind, **common} for kind in ("buy", "sell")]
    transaction = {
        "amount": COIN,
        "assetDecimalsPrice": 2 * COIN + 1,
        "sender": "m",
        "fee": FEE,
        "buyMatcherFee": 100_000,
        "sellMatcherFee": 100_000,
        "order1": orders[0],
        "order2": orders[1],
    }
    assert changes_of([transaction]) == {
        ("m", None): 200_000 - FEE,
        ("buy", "G"): COIN,
        ("buy", None): -2 * COIN - 1 - 100_000,
        ("sell", "G"): -COIN,
        ("sell", None): 2 * COIN + 1 - 100_000,
    }


@pytest.mark.slow
@pytest.mark.skipif(NEEDS_NODE[1].args[0], reason=NEEDS_NODE[1].kwargs["reason"])
@pytest.mark.skipif(NEEDS_NODE[2].args[0], reason=NEEDS_NODE[2].kwargs["reason"])
def test_waves_transactions(chain: Program) -> None:
    matcher = call(f"{chain.matcher_url}/matcher").json()
    matcher_address = address_text(from_public_key(base58.decode(matcher), CHAIN_ID))
    before = balance(chain.node_url, matcher_address)
    told = run_script("matcher.js", chain.node_url, chain.matcher_url)
    asset = told["asset"]
    for version in (1, 2, 3, 4):
        _check_version(told[f"version {version}"], version)
    sold, dear, dearest, market = told["market"]
    assert {level["price"]: level["amount"] for level in told["book"]["asks"]} == {
        2 * COIN: COIN // 2,
        3 * COIN: COIN,
    }
    modes = told["modes"]
    assert [name for name, answer in modes.items() if answer["accepted"]] == ["assetDecimals"]
    for name in ("undefined", "fixedDecimals", "default"):
        assert modes[name]["error"] == 9440512
        assert "price mode fixedDecimals" in modes[name]["message"]
        assert 'set priceMode to "assetDecimals"' in modes[name]["message"]
    codes = {name: answer["error"] for name, answer in told["refused"].items()}
    assert codes == {
        "duplicate": 3148040,
        "fee": 9441542,
        "poor": 3147270,
        "stranger": 9437193,
    }
    ids = [order_id for v in (1, 2, 3, 4) for order_id in told[f"version {v}"]["ids"]]
    exchanged = exchanges_of(chain, [*ids, sold, dear, dearest, market])
    assert len(exchanged) == 4 + 2
    changes = changes_of(exchanged)
    seller, buyer = told["addresses"]
    node = chain.node_url
    assert balance(node, buyer) == START + changes[buyer, None]
    assert balance(node, seller) == START - ISSUE_FEE + changes[seller, None]
    assert asset_balance(chain, buyer, asset) == changes[buyer, asset] == 55 * COIN // 10
    assert asset_balance(chain, seller, asset) == 1_000 * COIN - 55 * COIN // 10
    assert balance(node, matcher_address) == before + changes[matcher_address, None]
    # What rests is reserved, and nothing else: 1.5 of the asset, and what remains of the fees.
    public_key = exchanged[0]["order1" if exchanged[0]["order1"]["sender"] == seller else "order2"]
    path = f"/matcher/balance/reserved/{public_key['senderPublicKey']}"
    reserved = call(chain.matcher_url + path, key="waves-private-node").json()
    assert reserved == {asset: 15 * COIN // 10, "WAVES": FEE // 2 + FEE}


def _check_version(told: dict[str, Any], version: int) -> None:
    offered = told["offered"]
    assert offered["status"] == "OrderAccepted" and offered["message"]["version"] == version
    assert offered["message"]["id"] == told["ids"][0]
    assert told["filled"] == {"status": "Filled", "filledAmount": COIN, "filledFee": FEE}
    partly = {"filledAmount": COIN, "filledFee": FEE // 3}
    assert told["partly"] == {"status": "PartiallyFilled", **partly}
    assert told["cancelled"]["status"] == "OrderCanceled"
    assert told["again"]["error"] == 9437194
    assert told["after"] == {"status": "Cancelled", **partly}


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason=f"{PYTHON} is missing (`make clients` installs it)")
def test_pywaves(chain: Program) -> None:
    program = str(HERE / "python" / "trade.py")
    told = run_client(str(PYTHON), program, chain.node_url, chain.matcher_url)
    asset, seller, buyer = told["asset"], told["seller"], told["buyer"]
    assert told["statuses"] == ["PartiallyFilled", "Filled", "Cancelled", "NotFound"]
    assert told["history"] == ["Cancelled"]
    assert told["markets"] == 1 and told["book"] == {"asks": [], "bids": 1}
    assert told["same book"] is True and told["cancelled by id"] is True
    assert told["cancelled"] == 0
    exchanged = exchanges_of(chain, told["ids"])
    assert len(exchanged) == 1
    changes = changes_of(exchanged)
    assert balance(chain.node_url, buyer) == START + changes[buyer, None]
    assert balance(chain.node_url, seller) == START - ISSUE_FEE + changes[seller, None]
    assert asset_balance(chain, buyer, asset) == changes[buyer, asset] == 2 * COIN
    free = call(
        f"{chain.matcher_url}/matcher/orderbook/{asset}/WAVES/tradableBalance/{buyer}"
    ).json()
    assert told["tradable"] == [free[asset], free["WAVES"]]
