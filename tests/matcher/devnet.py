"""A private chain with a matcher, an asset on it, and the order that opens its market."""

from __future__ import annotations

import time

from soliton.chain import orders
from soliton.chain.addresses import address_text, from_public_key
from soliton.chain.orders import Order, Side
from soliton.crypto import base58
from soliton.crypto.keys import key_pair
from tests.e2e.programs import API_KEY, Program, call, eventually, is_mined

RICH = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"
BUYER = "3MMiWb5hjTXwst33rEaebQq8RnXZRFrTjuY"
BUYER_SEED, RICH_SEED = "soliton devnet account 1", "waves private node seed with waves tokens"
SYMBOL = "Silver/WAVES"
COIN = 10**8
FEE = 300_000


def issue_silver(chain: Program) -> str:
    """An asset with two decimals, all of it the rich account's."""
    issue = {
        "type": 3,
        "version": 2,
        "sender": RICH,
        "name": "Silver",
        "description": "",
        "quantity": 10**9,
        "decimals": 2,
        "reissuable": False,
        "fee": COIN,
    }
    signed = call(f"{chain.node_url}/transactions/sign", issue, key=API_KEY).json()
    issued: str = call(f"{chain.node_url}/transactions/broadcast", signed).json()["id"]
    eventually(lambda: is_mined(chain.node_url, issued), "the issue")
    return issued


def fund(chain: Program, public_key: str) -> None:
    """Send a matcher's account coins for the fees of exchanges, as the how-to asks for."""
    payment = {
        "type": 4,
        "version": 2,
        "sender": RICH,
        "recipient": address_text(from_public_key(base58.decode(public_key), ord("R"))),
        "amount": COIN,
        "fee": 100_000,
        "attachment": "",
    }
    signed = call(f"{chain.node_url}/transactions/sign", payment, key=API_KEY).json()
    sent: str = call(f"{chain.node_url}/transactions/broadcast", signed).json()["id"]
    eventually(lambda: is_mined(chain.node_url, sent), "the coins")


def open_market(chain: Program, asset: str) -> str:
    """A market opens with its first order, which is none of ccxt's: 10 are offered for 2.5 each."""
    keys, matcher = key_pair(RICH_SEED), call(f"{chain.matcher_url}/matcher").json()
    now = time.time_ns() // 1_000_000
    draft = Order(
        version=3,
        chain_id=ord("R"),
        sender_public_key=keys.public_key,
        matcher_public_key=base58.decode(matcher),
        amount_asset=base58.decode(asset),
        price_asset=None,
        side=Side.SELL,
        amount=1_000,
        price=25 * 10**13,
        timestamp=now,
        expiration=now + 3_600_000,
        matcher_fee=FEE,
    )
    order = orders.to_json(orders.sign(orders.build(draft), keys.private_key))
    answer = call(f"{chain.matcher_url}/matcher/orderbook", order)
    assert answer.status == 200, answer.body
    return str(answer.json()["message"]["id"])
