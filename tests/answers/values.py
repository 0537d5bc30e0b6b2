"""What is put into requests: the values of a history, and values that nothing has.

What lives here: data by the names of parameters and by paths. What does not: which requests are
made of it (``questions``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from soliton.crypto import base58, curve25519
from tests.answers.history import OTHER_KEYS

UNKNOWN_ID = "7VEr4T9icqopHWLawGAZ7AQiJbjAcnzXn65ekYvbpwnN"
FOREIGN = "3P274YB5qseSE9DTTL3bpSjosZrYBPDpJ8k"
BAD = ("abc", "-1", "0", "99999999999999999999", "1.5", "0OIl", UNKNOWN_ID, FOREIGN, "ä b", "null")
ADDRESSED = {"address", "signerAddress"}
FORM = "application/x-www-form-urlencoded"
TEXT = "text/plain"


def good_values(service: str, path: str, name: str, names: Mapping[str, Any]) -> list[str]:
    """Values that a parameter takes; the first is the usual one."""
    height = str(names["height"] - 2)
    if name == "id":
        return ids_of(path, names)
    table: dict[str, list[str]] = {
        "address": [names["rich"], names["other"], names["dapp"], names["matcher address"]],
        "signerAddress": [names["rich"], names["other"]],
        "publicKey": [names["public key"], names["other public key"], names["matcher"]],
        "amount": [names["asset"], "WAVES"],
        "price": ["WAVES", names["asset"]],
        "asset": [names["asset"], "WAVES"],
        "assetId": [names["asset"], names["smart"], names["nft"], "WAVES"],
        "orderId": [names[each] for each in ("partly", "filled", "cancelled", "resting sell")],
        "height": [height, "1", "2"],
        "from": ["1", "3"],
        "to": ["5", "8"],
        "confirmations": ["0", "2"],
        "limit": ["3", "100"],
        "count": ["1", "4"],
        "length": ["8", "32"],
        "timestamp": [str(names["time"]), "1"],
        "key": ["answer", "a/b c", "raw"],
        "matches": ["an.*", "[a-f]+", "(a", ".*"],
        "alias": ["somebody", "nobody"],
        "after": [names["transfer"], names["other"]],
        "order": ["asc", "desc"],
        "depth": ["1", "100"],
        "interval": ["1m", "1h", "1d"],
        "since": ["0", str(names["time"])],
        "until": [str(names["time"] + 86_400_000)],
        "timeout": ["0"],
        "maxAge": ["100000000"],
        "trace": ["true", "false"],
        "full": ["true", "false"],
        "compact": ["true", "false"],
        "assetScript": ["true", "false"],
        "activeOnly": ["true", "false"],
        "closedOnly": ["true", "false"],
        "unconfirmed": ["true", "false"],
        "events": ["block"],
        "type": ["4"],
        "lastEventId": ["x"],
    }
    return table[name]


def ids_of(path: str, names: Mapping[str, Any]) -> list[str]:
    """Of blocks, leases, assets or transactions, as the path asks for it."""
    if path.startswith("/blocks"):
        return [names["block"], names["transfer"]]
    if path.startswith("/leasing"):
        return [names["lease"], names["ended lease"]]
    if path.startswith("/eth/assets"):
        return ["0x" + base58.decode(names["asset"])[:20].hex()]
    if path.startswith("/assets"):
        return [names["asset"], names["nft"], names["smart"]]
    return [names[name] for name in names["signed"] if name in names]


def bodies_of(path: str, names: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Bodies for a path, each with its type."""
    kind = "application/json"
    for body in _json_bodies(path, names):
        yield kind, json.dumps(body)
    if path.startswith(("/utils/script", "/utils/hash")):
        for text in _texts(names):
            yield TEXT, text
    if path.startswith(("/transactions/", "/assets/", "/leasing/")):
        identity = ids_of(path, names)[0]
        yield FORM, f"id={identity}&id={UNKNOWN_ID}"
        yield FORM, "id="
    if path.startswith("/addresses/data"):
        yield FORM, "key=answer&key=none"


def _texts(names: Mapping[str, Any]) -> Iterator[str]:
    yield names["script"]
    yield names["dapp script"]
    yield "true"
    yield "{-# STDLIB_VERSION 6 #-}\nlet a = 1\na == 2 || sigVerify(base58'', base58'', base58'')"
    yield "{-# STDLIB_VERSION 10 #-}\n{-# CONTENT_TYPE DAPP #-}\n@Callable(i)\nfunc f() = []"
    yield "let a ="
    yield "unknown(1)"
    yield "base64:AAAA"


def _json_bodies(path: str, names: Mapping[str, Any]) -> Iterator[object]:
    identities = ids_of(path, names)
    if path == "/eth":
        yield from _ethereum(names)
    elif path == "/addresses/balance":
        yield {"addresses": [names["rich"], names["other"]]}
        yield {"addresses": [names["rich"]], "height": 2, "asset": names["asset"]}
        yield {"addresses": [names["rich"], "abc"]}
    elif path.startswith("/addresses/data"):
        yield {"keys": ["answer", "none"]}
        yield {"keys": [1]}
    elif path.startswith("/utils/script/evaluate"):
        for text in ("1 + 1", "true", 'throw("x")', 'getInteger(this, "k")', 'put("k", 3)', "+"):
            yield {"expr": text}
        yield {"call": {"function": "put", "args": [{"type": "string", "value": "k"}]}}
    elif path == "/utils/script/compileWithImports":
        yield {"script": "true", "imports": {}}
        yield {"script": "{-# IMPORT a #-}\nf()", "imports": {"a": "func f() = true"}}
    elif path.startswith("/matcher"):
        yield from _matcher_bodies(names)
    elif path == "/data":
        values: list[object] = [1, True, "text", [1, 2], None, 1.5, [300], {}]
        for value in values:
            yield {"seed": "no", "data": [{"key": "k", "value": value}]}
        yield {"seed": "", "data": []}
        yield {"seed": "s", "data": [{"key": "k", "value": "x", "type": "integer"}], "more": 1}
    else:
        yield {"ids": identities[:3]}
        yield {"ids": [UNKNOWN_ID, "abc"]}
        yield {"id": identities[0]}


def _matcher_bodies(names: Mapping[str, Any]) -> Iterator[object]:
    owner = names["other public key"]
    for name in ("partly", "cancelled", "filled"):
        identity = names[name]
        message = base58.decode(owner) + base58.decode(identity)
        signature = base58.encode(curve25519.sign(OTHER_KEYS.private_key, message, bytes(64)))
        yield {"sender": owner, "orderId": identity, "signature": signature}
        yield {"sender": owner, "orderId": identity, "signature": signature[:-1]}
    yield {"sender": owner, "timestamp": names["time"], "signature": UNKNOWN_ID}
    yield {"orderType": "buy", "amount": 100, "price": 10**14}
    yield [names["partly"]]
    yield 0.5


def _ethereum(names: Mapping[str, Any]) -> Iterator[object]:
    account = "0x" + base58.decode(names["rich"])[2:22].hex()
    token = "0x" + base58.decode(names["asset"])[:20].hex()
    balance_of = "0x70a08231" + account[2:].rjust(64, "0")
    calls: list[tuple[str, list[object]]] = [
        ("eth_chainId", []),
        ("net_version", []),
        ("eth_blockNumber", []),
        ("eth_getTransactionCount", [account, "latest"]),
        ("eth_getBlockByNumber", ["0x2", False]),
        ("eth_getBlockByNumber", ["latest", True]),
        ("eth_getBlockByHash", ["0x" + "00" * 32, False]),
        ("eth_getBalance", [account, "latest"]),
        ("eth_getBalance", ["0x1"]),
        ("eth_sendRawTransaction", ["0x00"]),
        ("eth_getTransactionReceipt", ["0x" + base58.decode(names["transfer"]).hex()]),
        ("eth_getTransactionByHash", ["0x" + base58.decode(names["transfer"]).hex()]),
        ("eth_call", [{"to": token, "data": balance_of}, "latest"]),
        ("eth_call", [{"to": token, "data": "0x313ce567"}, "latest"]),
        ("eth_estimateGas", [{"to": token, "data": balance_of}]),
        ("eth_gasPrice", []),
        ("eth_getCode", [token, "latest"]),
        ("eth_accounts", []),
        ("eth_getLogs", []),
        ("eth_syncing", []),
        ("eth_nothing", []),
    ]
    for number, (method, parameters) in enumerate(calls):
        yield {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
    yield [{"jsonrpc": "2.0", "id": 1, "method": "eth_chainId"}]
