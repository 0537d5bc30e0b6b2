"""The examples of the documentation are answers that a chain gives: every documented route is asked
with the examples of its parameters and body, and answers in the shape of its example.

What lives here: a chain on which everything that is asked for is there. What does not: the values
of the examples that several routes share (``rest/test_examples.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest

from soliton.api.app import all_routes
from soliton.api.rest import devnet, examples, requests
from soliton.api.routes import Body, BodyKind, Route
from soliton.chain.addresses import Alias
from soliton.chain.transactions.create_alias import TYPE as ALIAS
from soliton.chain.transactions.create_alias import CreateAlias
from soliton.chain.transactions.lease import TYPE as LEASE
from soliton.chain.transactions.lease import Lease
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT
from soliton.chain.transactions.set_script import SetScript
from soliton.crypto import base58
from soliton.ride.compiler import compile_source
from soliton.web.parameters import TEXT, Parameter, Place
from tests.api.chain import OTHER, OTHER_ADDRESS, START, PrivateChain, address_of
from tests.api.client import KEY, call
from tests.api.rest.test_assets import issue

# Names of members that are values: addresses, ids, lengths.
NAMES = re.compile(r"[1-9A-HJ-NP-Za-km-z]{32,}|\d+")
DAPP = """{-# STDLIB_VERSION 5 #-}
{-# CONTENT_TYPE DAPP #-}
@Callable(i)
func send(to: String) = []
"""
KNOWN_TO_WALLETS = "0xbc0fc8572edec311291658e766f2d47f12cd8390"
PARTIAL = {
    "/debug/configInfo": "all settings, of which the example shows one",
    "/consensus/basetarget": "the newest generation leaves out the score",
    **dict.fromkeys(
        ("/blocks/child/{signature}", "/blocks/first"),
        "blocks have other members at the beginning and on other networks",
    ),
    **dict.fromkeys(
        ("/blockchain/finality", "/blocks/headers/finalized", "/generators/at/{height}"),
        "nobody has committed to generate on this chain, so its genesis block is the final one",
    ),
    **dict.fromkeys(
        ("/debug/stateChanges/address/{address}/limit/{limit}",),
        "the middle generation shows other members than the newest",
    ),
    **dict.fromkeys(
        ("/peers/all", "/peers/connected", "/peers/blacklisted", "/peers/suspended"),
        "a chain in one process has no peers",
    ),
}
"""Routes whose examples show what this chain does not have, or less than it has."""
FAMILIES = ("waves", "tn", "zbs")
NOT_ASKED = {
    **{route.path: "rest/test_devnet.py asks a chain that obeys" for route in devnet.ROUTES},
    "/transactions/broadcast": "rest/test_examples.py sends this transaction",
    "/node/stop": "the others would find a node that stops",
    "/debug/rollback": "the others would find another chain",
    "/debug/rollback-to/{id}": "the others would find another chain",
    "/debug/stateChanges/info/{id}": "rest/test_state_changes.py asks for a call of a dApp",
    **{
        route.path: "a signed transaction is taken once; rest/test_older_rows.py sends others"
        for route in requests.ROUTES
        if "/broadcast/" in route.path
    },
}
"""Routes that are left out, and why."""
ASKED = [
    route
    for route in all_routes()
    if route.documented
    and route.content_type == "application/json"
    and "DELETE" not in route.methods
    and route.path not in NOT_ASKED
]


class Documented:
    """A chain that has what the examples name, and the names that things have there."""

    def __init__(self, directory: Path, family: str) -> None:
        self.chain = chain = PrivateChain(directory, family=family)
        chain.now = START - 1
        chain.send(chain.transfer(to=examples.TRANSACTION["recipient"]))
        chain.mine()
        self.block = base58.encode(chain.node.chain.last_block.id)
        chain.send(chain.data(greeting="hello"))
        lease = Lease(address_of(OTHER, chain), 1_000)
        self.lease = base58.encode(chain.send(chain.sign(LEASE, lease, 3)).id)
        chain.send(chain.sign(ALIAS, CreateAlias(Alias(ord("R"), "somebody")), 3))
        self.asset = base58.encode(issue(chain, 10**6))
        self.nft = base58.encode(issue(chain, 1, nft=True))
        chain.send(chain.transfer(amount=10**10))
        script = compile_source(DAPP).script.source
        chain.send(chain.sign(SET_SCRIPT, SetScript(script), 2, keys=OTHER, fee=10**7))
        chain.mine()
        chain.send(chain.transfer())
        chain.mine()
        self.waiting = base58.encode(chain.send(chain.transfer()).id)

    def value(self, route: Route, parameter: Parameter, shown: object) -> str:
        """What an example stands for on this chain."""
        own = {
            ("/transactions/unconfirmed/info/{id}", "id"): self.waiting,
            ("/leasing/info/{id}", "id"): self.lease,
            ("/leasing/info", "id"): self.lease,
            ("/utils/script/evaluate/{address}", "address"): OTHER_ADDRESS,
            ("/addresses/scriptInfo/{address}/meta", "address"): OTHER_ADDRESS,
            ("/eth/abi/{address}", "address"): OTHER_ADDRESS,
            ("/assets/{assetId}/distribution/{height}/limit/{limit}", "height"): "3",
        }
        return own.get((route.path, parameter.name), self.names().get(str(shown), str(shown)))

    def names(self) -> dict[str, str]:
        """What the examples call things, and what they are called on this chain."""
        return {
            examples.BLOCK_ID: self.block,
            examples.ASSET_ID: self.asset,
            str(requests.EXAMPLES[3]["id"]): self.asset,
            str(requests.EXAMPLES[8]["id"]): self.lease,
            KNOWN_TO_WALLETS: "0x" + base58.decode(self.asset, 100)[:20].hex(),
        }

    def target(self, route: Route, instead: str | None = None) -> str:
        """What to ask; with something else ``instead`` of the names in the path."""
        path, pairs = route.path, []
        for parameter in route.parameters:
            shown = (
                parameter.example if isinstance(parameter.example, list) else [parameter.example]
            )
            values = [self.value(route, parameter, each) for each in shown]
            if parameter.place is Place.PATH:
                if instead is not None and parameter.kind is TEXT:
                    values = [instead]
                path = path.replace(f"{{{parameter.name}}}", quote(values[0], safe=""))
            elif parameter.required or parameter.repeated:
                pairs += [f"{parameter.name}={quote(value)}" for value in values]
        return path + (f"?{'&'.join(pairs)}" if pairs else "")

    def body(self, body: Body, more: dict[str, str]) -> bytes:
        if body.kind is BodyKind.TEXT:
            return str(body.example).encode()
        text = msgspec.json.encode(body.example).decode()
        for shown, own in {**self.names(), **more}.items():
            text = text.replace(f'"{shown}"', f'"{own}"')
        return text.encode()


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Documented]]:
    """A chain for each generation of the interface."""
    made = {name: Documented(tmp_path_factory.mktemp(name), name) for name in FAMILIES}
    yield made
    for each in made.values():
        each.chain.node.close()


def differences(answer: object, example: object, at: str = "$") -> Iterator[str]:
    """Where two values differ in their members or types; of lists the first items count."""
    if isinstance(answer, dict) and isinstance(example, dict):
        if any(NAMES.fullmatch(str(name)) for name in (*answer, *example)):
            yield from differences([*answer.values()], [*example.values()], at)
            return
        for name in sorted(answer.keys() | example.keys()):
            if name not in answer or name not in example:
                yield f"{at}.{name} only in the {'example' if name in example else 'answer'}"
            else:
                yield from differences(answer[name], example[name], f"{at}.{name}")
    elif isinstance(answer, list) and isinstance(example, list):
        if bool(answer) != bool(example):
            yield f"{at} is {answer!r:.30}, not {example!r:.30}"
        elif answer:
            yield from differences(answer[0], example[0], f"{at}[0]")
    elif type(answer) is not type(example):
        yield f"{at} is {answer!r:.30}, not {example!r:.30}"


@pytest.mark.parametrize("route", ASKED, ids=lambda route: f"{route.methods[0]} {route.path}")
async def test_a_chain_answers_so(documented: dict[str, Documented], route: Route) -> None:
    family = next(name for name in FAMILIES if route.is_of(name))
    chain = documented[family]
    line = f"{route.methods[0]} {chain.target(route)}"
    headers = {"x-api-key": KEY}
    body = b""
    if route.body is not None:
        headers["content-type"] = "application/json"
        others = {
            "/leasing/info": {examples.TRANSACTION_ID: chain.lease},
            "/alias/create": {"somebody": "somebody-else"},
        }
        body = chain.body(route.body, others.get(route.path, {}))
    answer = await call(chain.chain.app, line, body, headers)
    assert answer.status == 200, (line, answer.body)
    shown = msgspec.json.decode(msgspec.json.encode(route.example))
    found = list(differences(answer.json(), shown))
    assert bool(found) == (route.path in PARTIAL), found
