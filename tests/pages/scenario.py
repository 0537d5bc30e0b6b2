"""A chain with something of everything, for the pages to show: assets with names that nobody should
choose, a dApp that calls itself, data, leases, aliases.

What lives here: making it, through the REST interface and the wallet of a devnet. What does not:
any check.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from soliton.crypto import base58
from soliton.devnet.accounts import funded_accounts
from tests.e2e.programs import API_KEY, call, eventually, is_mined

RICH = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"
FIRST, SECOND, THIRD = (each.address for each in funded_accounts(ord("R"))[:3])

NAMES = (
    "<b>Gold</b>",
    '"><script>x()',
    "</script><p>",
    "'-alert(1)-'",
    "javascript:x()",
    "\u202eevil\u202c",
    "a\u200b\u200bb\ufeff!",
    "{{7*7}}${1}",
    "&lt;i&gt;&#x41;",
    "new\nline\r\t\0",
)
"""Of assets, 4 to 16 bytes each: markup, scripts, turned and unseen letters."""
PAYLOAD = (
    "<img src=x onerror=\"window.pwned='img'\"><svg/onload=window.pwned='svg'>"
    "<script>window.pwned='script'</script><iframe srcdoc=\"<script>parent.pwned=1</script>\">"
    "<a href=\"javascript:window.pwned='link'\">x</a><style>*{display:none}</style>"
    "\u202e\u2066\u200f]]>--><!--"
)

DAPP = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}

func plusOne(n: Int) = n + 1

@Callable(i)
func put(key: String, n: Int, flag: Boolean, bytes: ByteVector, list: List[Int]) =
  if (n < 0) then throw("no negative numbers: " + key)
  else ([IntegerEntry(key, plusOne(n)), BooleanEntry("flag", flag), BinaryEntry("bytes", bytes)], n)

@Callable(i)
func outer(n: Int) = {
  strict r = this.invoke("put", ["inner", n, true, base16'00ff', [1, 2]], [])
  match r {
    case m: Int => ([StringEntry("outer", "done"), ScriptTransfer(i.caller, 5, unit)], m)
    case _ => throw("no number")
  }
}
"""


@dataclass(frozen=True)
class Scenario:
    """Ids of what was made."""

    url: str
    assets: list[str]
    transfer: str
    call: str
    data: str
    lease: str
    mass: str


def send(url: str, **members: Any) -> str:
    """A transaction signed by the node's wallet, once it is in a block: its id."""
    signed = call(f"{url}/transactions/sign", members, key=API_KEY)
    assert signed.status == 200, signed.body
    sent = call(f"{url}/transactions/broadcast", signed.json())
    assert sent.status == 200, sent.body
    name = str(sent.json()["id"])
    eventually(lambda: is_mined(url, name), "the transaction in a block")
    return name


def issue(url: str, name: str, **members: Any) -> str:
    """A new asset: its id."""
    wanted = {"quantity": 2**63 - 1, "decimals": 2, "reissuable": True, "fee": 100_000_000}
    return send(
        url, type=3, version=3, sender=RICH, name=name, description=PAYLOAD, **(wanted | members)
    )


def compiled_script(url: str, source: str) -> str:
    """A compiled script; a busy machine may have to be asked again."""
    answers = [call(f"{url}/utils/script/compileCode", source)]

    def done() -> bool:
        if answers[-1].status == 503:
            answers.append(call(f"{url}/utils/script/compileCode", source))
        return answers[-1].status == 200

    eventually(done, "a compiled script")
    return str(answers[-1].json()["script"])


def played(url: str) -> Scenario:
    """All of it, on a devnet."""
    assets = [issue(url, name, decimals=at % 9) for at, name in enumerate(NAMES)]
    transfer = send(
        url, type=4, version=2, sender=RICH, recipient=SECOND, amount=123_456_789_012_345_678,
        assetId=assets[0], fee=100_000, attachment=base58.encode(PAYLOAD.encode()[:140]),
    )  # fmt: skip
    mass = send(
        url, type=11, version=1, sender=RICH, fee=300_000, assetId=assets[5], attachment="",
        transfers=[{"recipient": each, "amount": 7 * 10**at}
                   for at, each in enumerate((FIRST, SECOND, THIRD))],
    )  # fmt: skip
    send(url, type=10, version=2, sender=SECOND, alias="hal-9000", fee=100_000)
    send(
        url, type=4, version=2, sender=RICH, recipient="alias:R:hal-9000", amount=2 * 10**16 // 7,
        fee=100_000, attachment="",
    )  # fmt: skip
    lease = send(
        url, type=8, version=2, sender=SECOND, recipient=RICH, amount=5_000_000_000, fee=100_000
    )
    data = send(
        url, type=12, version=2, sender=SECOND, fee=5_000_000,
        data=[
            {"key": PAYLOAD[:100], "type": "string", "value": PAYLOAD * 3},
            {"key": "\u202etxt", "type": "integer", "value": -(2**63)},
            {"key": "large", "type": "string", "value": "x<" * 15_000},
            {"key": "flag", "type": "boolean", "value": False},
            {"key": "bytes", "type": "binary",
             "value": "base64:" + base64.b64encode(bytes(range(256))).decode()},
        ],
    )  # fmt: skip
    compiled = compiled_script(url, DAPP)
    send(url, type=13, version=1, sender=FIRST, script=compiled, fee=2_000_000)
    invoke = {"type": 16, "version": 1, "sender": RICH, "dApp": FIRST, "fee": 900_000}
    invoke |= {"feeAssetId": None, "payment": []}
    outer = send(
        url, **invoke, call={"function": "outer", "args": [{"type": "integer", "value": 7}]}
    )
    return Scenario(url, assets, transfer, outer, data, lease, mass)


def views(scenario: Scenario) -> dict[str, str]:
    """Every view with what strangers wrote."""
    return {
        "home": "",
        "node": "#node",
        "block": "#block/2",
        "call": f"#tx/{scenario.call}",
        "transfer": f"#tx/{scenario.transfer}",
        "data": f"#tx/{scenario.data}",
        "mass": f"#tx/{scenario.mass}",
        "lease": f"#tx/{scenario.lease}",
        "issue": f"#tx/{scenario.assets[1]}",
        "asset": f"#asset/{scenario.assets[2]}",
        "dapp": f"#account/{FIRST}",
        "account": f"#account/{SECOND}",
        "rich": f"#account/{RICH}",
        "alias": "#alias/hal-9000",
        "names": "#search/a",
    }
