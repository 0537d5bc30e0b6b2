"""What PyWaves (the distribution PyWaves-CE) makes of a node: `python walk.py URL`.

It runs in an environment of its own, because the library's requirements are not ours, and prints
one JSON object per line, as the scripts for node do. Every method that has to do with a node is
called; those that speak to a matcher or to the data service are not.
"""

from __future__ import annotations

import functools
import inspect
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import pywaves

OWNER, FRIEND, DAPP = (f"soliton devnet account {number}" for number in (8, 9, 10))
COIN = 10**8
SCRIPT_FEE = 1_000_000
DAPP_SOURCE = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}
func twice(n: Int) = n + n
@Callable(i)
func keep(n: Int) = [IntegerEntry("kept", twice(n)), IntegerEntry("paid", size(i.payments))]
@Callable(i)
func default() = [StringEntry("default", "called")]
"""
ASSET_SOURCE = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE EXPRESSION #-}
{-# SCRIPT_TYPE ASSET #-}
true
"""


CALLED: set[str] = set()


def recorded(kind: type) -> list[str]:
    """The public methods of a class of the library, which now note that they were called."""
    names = []
    for name, method in list(vars(kind).items()):
        if not name.startswith("_") and inspect.isfunction(method):
            names.append(f"{kind.__name__}.{name}")
            setattr(kind, name, _noting(names[-1], method))
    return names


def _noting(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def noting(*values: Any, **named: Any) -> Any:
        CALLED.add(name)
        return method(*values, **named)

    return noting


def tell(name: str, value: object) -> None:
    print(json.dumps({"name": name, "value": value}))


def put(name: str, sent: dict[str, Any]) -> dict[str, Any]:
    """Wait until what the library has sent is in the chain."""
    info: dict[str, Any] = {}
    if "id" in sent:
        limit = time.monotonic() + 30
        info = pywaves.tx(sent["id"])
        while "error" in info and time.monotonic() < limit:
            time.sleep(0.01)
            info = pywaves.tx(sent["id"])
    tell(name, {"sent": sent, "info": info})
    return sent


def above(height: int, owner: Any, friend: Any) -> None:
    """Wait for a block above a height; chains that mine when there is something to do get it."""
    while pywaves.height() <= height:
        owner.sendWaves(friend, 1)
        time.sleep(0.05)


def reads(owner: Any, friend: Any) -> None:
    height = pywaves.height()
    tell("height", height)
    tell("last", pywaves.lastblock())
    tell("block", pywaves.block(height))
    tell("genesis", pywaves.block(1))
    tell("no block", pywaves.block(height + 1_000))
    tell("no transaction", pywaves.tx("1" * 32))
    tell("addresses", [owner.address, friend.address])
    tell("valid", [pywaves.validateAddress(owner.address), pywaves.Address(owner.address).address])
    tell("balances", [owner.balance(), owner.balance(confirmations=1), owner.wavesBalance()])
    tell("of another chain", pywaves.Address(seed=OWNER, pywaves=mainnet()).aliases)


def mainnet() -> Any:
    """The library for another chain, with the same node."""
    other = pywaves.PyWaves()
    other.setNode(pywaves.getNode(), "mainnet", "W")
    return other


def coins_and_assets(owner: Any, friend: Any) -> None:
    put("send", owner.sendWaves(friend, 5, attachment="thanks"))
    transfers = [{"recipient": friend.address, "amount": amount} for amount in (1, 2, 3)]
    put("mass send", owner.massTransferWaves(transfers, attachment="many"))
    issued = put("issue", owner.issueAsset("Gold", "bars", 1_000, 2, reissuable=True))
    gold = pywaves.Asset(issued["id"])
    tell("asset", [gold.status(), gold.name.decode(), gold.quantity, gold.isSmart()])
    put("reissue", owner.reissueAsset(gold, 10, reissuable=True))
    put("burn", owner.burnAsset(gold, 4))
    put("send asset", owner.sendAsset(friend, gold, 40))
    put("mass send asset", owner.massTransferAssets(transfers, gold))
    put("sponsor", owner.sponsorAsset(gold.assetId, 3))
    put("sponsored fee", friend.sendAsset(owner, gold, 1, feeAsset=gold, txFee=3))
    above(pywaves.tx(gold.assetId)["height"] + 1, owner, friend)
    put("update", owner.updateAssetInfo(gold.assetId, "Silver", "coins"))
    made = put("issue smart", owner.issueSmartAsset("Smart", "", 10, ASSET_SOURCE))
    smart = pywaves.Asset(made["id"])
    tell("smart", [smart.status(), smart.isSmart()])
    put("asset script", owner.setAssetScript(smart, ASSET_SOURCE))
    tell("asset balances", [owner.balance(gold.assetId), friend.balance(gold.assetId)])
    tell("assets", sorted(owner.assets()) == sorted((gold.assetId, smart.assetId)))
    tell("described", "Gold" in str(owner) and "Smart" in str(smart))
    tell("coin", pywaves.Asset(pywaves.DEFAULT_CURRENCY).decimals)


def the_rest(owner: Any, friend: Any) -> None:
    put("alias", owner.createAlias("pywaves-user"))
    again = pywaves.Address(seed=OWNER)
    tell("aliases", [again.aliases, pywaves.Address(alias="pywaves-user").address])
    lent = put("lease", owner.lease(friend, 1_000))
    put("cancel lease", owner.leaseCancel(lent["id"]))
    entries = (
        ("integer", 42),
        ("boolean", True),
        ("string", "grüße"),
        ("binary", "bytes"),
    )
    data = [{"type": kind, "key": kind, "value": value} for kind, value in entries]
    put("data", owner.dataTransaction(data))
    put("delete", owner.deleteDataEntry("boolean"))
    oracle = pywaves.Oracle(seed=OWNER)
    put("oracle", oracle.storeData("price", "integer", 7))
    tell("oracle data", [oracle.getData("price"), oracle.getData(regex="pri.*"), oracle.getData()])


def scripts(owner: Any) -> None:
    dapp = pywaves.Address(seed=DAPP)
    put("set script", dapp.setScript(DAPP_SOURCE, txFee=SCRIPT_FEE))
    tell("script", dapp.script())
    argument = [{"type": "integer", "value": 21}]
    payments = [{"amount": 1, "assetId": None}]
    called = put("call", owner.invokeScript(dapp.address, "keep", argument, payments))
    put("default call", owner.invokeScript(dapp.address, None))
    tell("evaluated", pywaves.evaluateScript(dapp.address, json.dumps({"expr": "twice(4)"})))
    tell(
        "changes",
        [
            pywaves.stateChangeForTx(called["id"]),
            pywaves.stateChangesForAddress(dapp.address, 1),
        ],
    )
    compiled = pywaves.wrapper("/utils/script/compileCode", DAPP_SOURCE)["script"]
    put("compiled script", dapp.setCompiledScript(compiled[7:], txFee=SCRIPT_FEE))
    listed = owner.transactions(2)
    after = listed[0][0]["id"]
    tell("transactions", [listed, owner.transactions(1, after)])


def refusals(owner: Any, friend: Any) -> None:
    poor = pywaves.Address(seed="nobody has this seed")
    transfer = poor.txGenerator.generateSendWaves(friend, COIN, poor.publicKey)
    poor.signTx(transfer)
    tell("validated", pywaves.validateTx(json.dumps(transfer)))
    tell("refused", poor.broadcastTx(transfer))
    transfer["amount"] = 1
    tell("changed", poor.broadcastTx(transfer))
    sent = owner.sendWaves(friend, 7)
    tell("waited for", [sent["id"], pywaves.waitFor(sent["id"])["id"]])


def main(url: str) -> None:
    kinds = (pywaves.PyWaves, pywaves.Address, pywaves.Asset, pywaves.Oracle)
    methods = [name for kind in kinds for name in recorded(kind)]
    pywaves.setNode(url, "devnet", "R")
    owner, friend = pywaves.Address(seed=OWNER), pywaves.Address(seed=FRIEND)
    reads(owner, friend)
    coins_and_assets(owner, friend)
    the_rest(owner, friend)
    scripts(owner)
    refusals(owner, friend)
    tell("methods", {"all": methods, "called": sorted(CALLED)})


if __name__ == "__main__":
    main(sys.argv[1])
