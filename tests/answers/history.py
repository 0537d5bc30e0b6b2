"""A little history on a devnet: transactions of most types, and orders in every state.

What lives here: what is sent, and the names of what came of it. What does not: the requests that
are asked about it (``questions``).
"""

from __future__ import annotations

import time
from typing import Any

from soliton.chain import orders
from soliton.chain.addresses import address_text, from_public_key
from soliton.chain.orders import Order, Side
from soliton.crypto import base58
from soliton.crypto.keys import KeyPair, key_pair
from tests.e2e.programs import API_KEY, Program, call, eventually, is_mined

RICH = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"
OTHER = "3MMiWb5hjTXwst33rEaebQq8RnXZRFrTjuY"
DAPP = "3MFKG2pJN4wK7EHPMm7sMukn3TZ77cdvwRv"
RICH_KEYS = key_pair("waves private node seed with waves tokens")
OTHER_KEYS = key_pair("soliton devnet account 1")
COIN = 10**8
Members = dict[str, Any]
DAY = 86_400_000
DAPP_SOURCE = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}
@Callable(i)
func put(key: String, value: Int) = {
  if (value < 0) then throw("negative") else
  [IntegerEntry(key, value), ScriptTransfer(i.caller, 1, unit)]
}
@Callable(i)
func make() = {
  let asset = Issue("Made", "by a call", 1000, 2, true)
  ([asset, StringEntry("made", "yes"), Lease(i.caller, 1000)], asset.calculateAssetId())
}
"""
ASSET_SCRIPT = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE EXPRESSION #-}
{-# SCRIPT_TYPE ASSET #-}
true
"""


class History:
    """Sends transactions and orders, and keeps the ids by name."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.names: dict[str, Any] = {"rich": RICH, "other": OTHER, "dapp": DAPP}
        self.signed: dict[str, Any] = {}

    def send(self, known_as: str, type_id: int, sender: str = RICH, **members: Any) -> str:
        """A transaction signed by the node's wallet, on the chain."""
        draft = {"type": type_id, "sender": sender, "fee": COIN, **members}
        url = self.program.node_url
        signed = call(f"{url}/transactions/sign", draft, key=API_KEY)
        assert signed.status == 200, (draft, signed.body)
        answer = call(f"{url}/transactions/broadcast", signed.json())
        assert answer.status == 200, (draft, answer.body)
        found: str = answer.json()["id"]
        eventually(lambda: is_mined(url, found), known_as)
        self.names[known_as] = found
        self.signed[known_as] = signed.json()
        return found

    def keep(self, known_as: str, type_id: int, sender: str = RICH, **members: Any) -> None:
        """A transaction that is signed and not sent: the requests have it."""
        draft = {"type": type_id, "sender": sender, "fee": COIN, **members}
        answer = call(f"{self.program.node_url}/transactions/sign", draft, key=API_KEY)
        assert answer.status == 200, (draft, answer.body)
        self.signed[known_as] = answer.json()

    def compiled(self, source: str) -> str:
        answer = call(f"{self.program.node_url}/utils/script/compileCode", source)
        assert answer.status == 200, answer.body
        return str(answer.json()["script"])

    def order(
        self, name: str, keys: KeyPair, side: Side, amount: int, price: int, *, send: bool = True
    ) -> Any:
        """An order for the pair of the history, sent unless only kept."""
        now = time.time_ns() // 1_000_000
        draft = Order(
            version=3,
            chain_id=ord("R"),
            sender_public_key=keys.public_key,
            matcher_public_key=base58.decode(self.names["matcher"]),
            amount_asset=base58.decode(self.names["asset"]),
            price_asset=None,
            side=side,
            amount=amount,
            price=price,
            timestamp=now,
            expiration=now + 25 * DAY,
            matcher_fee=300_000,
        )
        signed = orders.to_json(orders.sign(orders.build(draft), keys.private_key))
        self.signed[name] = signed
        if send:
            answer = call(f"{self.program.matcher_url}/matcher/orderbook", signed)
            assert answer.status == 200, answer.body
            self.names[name] = answer.json()["message"]["id"]
        return signed


def make_history(program: Program) -> dict[str, Any]:
    """Send it all, and say what things are called."""
    history = History(program)
    transactions(history)
    trades(history)
    waiting(history)
    names = history.names
    names["signed"] = history.signed
    names["height"] = call(f"{program.node_url}/blocks/height").json()["height"]
    block = call(f"{program.node_url}/blocks/at/{names['height'] - 2}").json()
    names["block"] = block["id"]
    names["time"] = block["timestamp"]
    names["public key"] = base58.encode(RICH_KEYS.public_key)
    names["matcher address"] = address_text(
        from_public_key(base58.decode(names["matcher"]), ord("R"))
    )
    names["other public key"] = base58.encode(OTHER_KEYS.public_key)
    return names


def transactions(history: History) -> None:
    """Most types, in an order in which all apply."""
    send = history.send
    send("transfer", 4, version=3, recipient=OTHER, amount=COIN, attachment="")
    issued: Members = {"description": "", "decimals": 2, "reissuable": True}
    send("asset", 3, version=3, name="Silver", quantity=10**9, **issued)
    single: Members = {"quantity": 1, "decimals": 0, "reissuable": False, "description": "one"}
    send("nft", 3, version=3, name="Single", **single)
    history.names["script"] = history.compiled(ASSET_SCRIPT)
    script: Members = {"script": history.names["script"]}
    send("smart", 3, version=2, name="Smart", quantity=10**6, **issued, **script)
    asset = history.names["asset"]
    send("reissue", 5, version=3, assetId=asset, quantity=1_000, reissuable=True)
    send("burn", 6, version=3, assetId=asset, amount=500)
    send("alias", 10, version=3, alias="somebody", sender=OTHER)
    send("by alias", 4, version=2, recipient="alias:R:somebody", amount=10**6, assetId=asset)
    send("lease", 8, version=3, recipient=OTHER, amount=5 * COIN)
    send("ended lease", 8, version=2, recipient=OTHER, amount=COIN)
    send("lease cancel", 9, version=3, leaseId=history.names["ended lease"])
    items = [{"recipient": OTHER, "amount": 1_000}, {"recipient": DAPP, "amount": 2_000}]
    send("mass transfer", 11, version=2, transfers=items, attachment="", assetId=asset)
    entries = [
        {"key": "answer", "type": "integer", "value": 42},
        {"key": "flag", "type": "boolean", "value": True},
        {"key": "raw", "type": "binary", "value": "base64:AQL/"},
        {"key": "a/b c", "type": "string", "value": "text"},
    ]
    send("data", 12, version=2, data=entries)
    send("removal", 12, version=2, data=[{"key": "flag", "value": None}])
    send("sponsor", 14, version=2, assetId=asset, minSponsoredAssetFee=10)
    send("asset script", 15, version=2, assetId=history.names["smart"], **script)
    history.names["dapp script"] = history.compiled(DAPP_SOURCE)
    send("set script", 13, sender=DAPP, version=2, script=history.names["dapp script"])
    arguments = [{"type": "string", "value": "k"}, {"type": "integer", "value": 7}]
    called: Members = {"dApp": DAPP, "payment": [{"amount": 5, "assetId": None}]}
    send("invoke", 16, version=2, call={"function": "put", "args": arguments}, **called)
    issuing: Members = {"dApp": DAPP, "payment": [], "call": {"function": "make", "args": []}}
    send("issuing", 16, version=2, fee=11 * COIN, **issuing)
    failing = [{"type": "string", "value": "k"}, {"type": "integer", "value": -7}]
    history.keep("refused", 16, version=2, call={"function": "put", "args": failing}, **called)


def trades(history: History) -> None:
    """A trade that is settled, an order that rests, one that was cancelled."""
    program, order = history.program, history.order
    history.names["matcher"] = call(f"{program.matcher_url}/matcher").json()
    unit = 10**14
    order("filled", RICH_KEYS, Side.SELL, 1_000, unit)
    order("taking", OTHER_KEYS, Side.BUY, 400, unit)
    order("partly", OTHER_KEYS, Side.BUY, 900, unit)
    order("resting sell", RICH_KEYS, Side.SELL, 5_000, 2 * unit)
    order("cancelled", RICH_KEYS, Side.SELL, 700, 3 * unit)
    url = f"{program.matcher_url}/matcher/orders/cancel/{history.names['cancelled']}"
    assert call(url, {}, key=API_KEY).status == 200

    def settled() -> bool:
        names = history.names
        answers = [
            call(f"{program.matcher_url}/matcher/transactions/{names[name]}").json()
            for name in ("taking", "partly")
        ]
        return all(
            each and all(is_mined(program.node_url, item["id"]) for item in each)
            for each in answers
        )

    eventually(settled, "the trades on the chain")
    found = call(f"{program.matcher_url}/matcher/transactions/{history.names['taking']}").json()
    history.names["exchange"] = found[0]["id"]


def waiting(history: History) -> None:
    """What the requests send themselves."""
    keep = history.keep
    keep("new transfer", 4, version=3, recipient=OTHER, amount=3, attachment="")
    keep("new data", 12, version=2, data=[{"key": "new", "type": "integer", "value": 1}])
    keep("too much", 4, version=3, recipient=OTHER, amount=10**17, attachment="")
    keep("too cheap", 4, version=3, recipient=OTHER, amount=1, attachment="", fee=1)
    arguments = [{"type": "string", "value": "n"}, {"type": "integer", "value": 9}]
    called: Members = {"dApp": DAPP, "payment": []}
    keep("new invoke", 16, version=2, call={"function": "put", "args": arguments}, **called)
    keep("no function", 16, version=2, call={"function": "none", "args": []}, **called)
    history.order("new order", RICH_KEYS, Side.SELL, 10, 4 * 10**14, send=False)
    history.order("new buy", OTHER_KEYS, Side.BUY, 10, 10**13, send=False)
    history.order("dear order", OTHER_KEYS, Side.BUY, 10**9, 10**17, send=False)
