"""A chain made by the reference node: every answer that was recorded from it, against ours.

Every block is applied with its scripts. The recorder asked one or two blocks later, which are empty
and not recorded; what differs for that or for another reason is named here, route by route, and
told at the end of the run with how many answers are equal of how many.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from soliton.chain import blocks
from soliton.chain.features import DESCRIPTIONS
from soliton.node.chain_writer import ChainWriter
from tests.api.chain import PrivateChain
from tests.node import recorded
from tests.vectors import report

TOP: Final = 82
LATER_GENERATOR: Final = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"
"""It made the two blocks after the recorded ones: its balance is another one by then."""
SCRIPT_TEXT: Final = "scriptText"
OF_A_DAPP: Final = "DApp("
"""In the texts of dApps the reference prints addresses of its memory, different each time."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Rule:
    """What is not compared of a route, and why.

    ``ignored`` members are taken out of both answers; ``asked_now`` changes the recorded one to
    what it would have been at the last height that is here; ``unordered`` sorts lists; ``left_out``
    says of which rows nothing is compared.
    """

    why: str = ""
    ignored: tuple[str, ...] = ()
    asked_now: Callable[[Any], Any] = lambda body: body
    unordered: bool = False
    left_out: Callable[[Row], bool] = lambda _row: False


def _without(body: Any, names: tuple[str, ...]) -> Any:
    if not names:
        return body
    return {name: value for name, value in body.items() if name not in names}


def _asked_earlier(body: Any) -> Any:
    return [
        item | {"confirmations": max(0, TOP - item["height"])} if "height" in item else item
        for item in body
    ]


def _with_later_features(body: Any) -> Any:
    """The recorded version of the reference has the features up to 23."""
    later = [
        {
            "id": feature,
            "description": DESCRIPTIONS[feature],
            "blockchainStatus": "VOTING",
            "nodeStatus": "IMPLEMENTED",
            "supportingBlocks": 0,
        }
        for feature in (24, 25, 26)
    ]
    return body | {"features": body["features"] + later}


def _without_text_of_dapp(body: Any) -> Any:
    text = body[SCRIPT_TEXT]
    return body | {SCRIPT_TEXT: ""} if text is not None and text.startswith(OF_A_DAPP) else body


def _of_this_version(body: Any) -> Any:
    """The recorded reference is of version 1.5.7."""
    return body | {"version": body["version"].replace("1.5.7", "1.6.6")}


_MINER: Final = Rule(
    "the generator of the two blocks that are not recorded",
    left_out=lambda row: LATER_GENERATOR in row["path"],
)
_LATER: Final = Rule("asked at height 84", left_out=lambda _row: True)
RULES: Final[dict[str, Rule]] = {
    "/activation/status": Rule("asked at height 84", ("height",), _with_later_features),
    "/blockchain/rewards": Rule("asked at height 84", ("height", "totalWavesAmount", "votes")),
    "/blocks/headers/last": _LATER,
    "/addresses/balance/{}": _MINER,
    "/addresses/balance/details/{}": _MINER,
    "/addresses/effectiveBalance/{}": _MINER,
    "/addresses/scriptInfo/{}": Rule("scriptText of dApps", asked_now=_without_text_of_dapp),
    "/assets/{}/distribution/{}/limit/{}": Rule(
        "pages of the reference go by the order of first use, ours by that of addresses",
        ("lastItem",),
    ),
    "/debug/stateHash/{}": Rule(asked_now=_of_this_version),
    "/node/version": Rule(asked_now=_of_this_version),
    "/eth/abi/{}": Rule("functions come in the order of a hash table", unordered=True),
    "/eth/assets": Rule(
        "the recorder asked for ids of another kind", left_out=lambda row: row["status"] == 500
    ),
    "/transactions/snapshot/{}": Rule(
        "accounts come in the order of a hash table; the recorded version has no commitments",
        ("nextCommittedGenerators",),
        unordered=True,
    ),
    "/transactions/status": Rule("asked one block later", asked_now=_asked_earlier),
}
"""Routes without a rule are compared as they are."""
ROUTES: Final = {
    "/activation/status": 1,
    "/addresses": 1,
    "/addresses/balance/details/{}": 790,
    "/addresses/balance/{}": 790,
    "/addresses/data/{}": 790,
    "/addresses/effectiveBalance/{}": 790,
    "/addresses/scriptInfo/{}": 790,
    "/addresses/scriptInfo/{}/meta": 790,
    "/addresses/validate/{}": 790,
    "/alias/by-address/{}": 790,
    "/alias/by-alias/{}": 27,
    "/assets/balance/{}": 790,
    "/assets/details/{}": 58,
    "/assets/nft/{}/limit/{}": 790,
    "/assets/{}/distribution": 58,
    "/assets/{}/distribution/{}/limit/{}": 58,
    "/blockchain/rewards": 1,
    "/blockchain/rewards/{}": 82,
    "/blocks/at/{}": 82,
    "/blocks/delay/{}/{}": 79,
    "/blocks/headers/at/{}": 82,
    "/blocks/headers/last": 1,
    "/blocks/headers/{}": 82,
    "/blocks/height/{}": 82,
    "/blocks/heightByTimestamp/{}": 82,
    "/debug/stateHash/{}": 82,
    "/eth/abi/{}": 790,
    "/eth/assets": 58,
    "/leasing/active/{}": 790,
    "/leasing/info/{}": 14,
    "/node/version": 1,
    "/transactions/address/{}/limit/{}": 790,
    "/transactions/info/{}": 510,
    "/transactions/merkleProof": 510,
    "/transactions/snapshot/{}": 510,
    "/transactions/status": 510,
}
"""Every route with how many answers of it were recorded."""


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared / "golden" / "waves-r"


@pytest.fixture(scope="module")
def replayed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateChain]:
    made = PrivateChain(tmp_path_factory.mktemp("node"), config=folder / "network.conf")
    node = made.node
    node.chain = ChainWriter(node.network, node.store)
    for data in recorded.records(folder / "blocks-2-82.bin"):
        node.chain.append(blocks.decode(data, ord("R")))
        node.store.flush()
    assert node.chain.height == TOP
    made.now = 2_000_000_000_000
    yield made
    node.close()


@pytest.fixture(scope="module")
def answers(folder: Path) -> dict[str, list[Row]]:
    """All recorded answers, by route."""
    found: dict[str, list[Row]] = {}
    for path in sorted(folder.glob("*.jsonl.gz")):
        for row in recorded.lines(path):
            found.setdefault(route_of(row["path"]), []).append(row)
    for name, route in (("blocks", "/blocks/at"), ("statehash", "/debug/stateHash")):
        found[f"{route}/{{}}"] = [
            {"path": f"{route}/{body['height']}", "status": 200, "body": body}
            for body in recorded.load(folder / f"{name}.json.gz")
        ]
    return found


def route_of(path: str) -> str:
    """The path without its parameters."""
    path = path.partition("?")[0]
    if path.startswith("/alias/by-alias/"):
        return "/alias/by-alias/{}"
    path = re.sub(r"/[1-9A-HJ-NP-Za-km-z]{26,}", "/{}", path)
    return re.sub(r"/\d+", "/{}", path)


def test_no_answer_is_passed_over(answers: dict[str, list[Row]]) -> None:
    assert {route: len(rows) for route, rows in answers.items()} == ROUTES
    assert set(RULES) <= set(ROUTES)


def in_order(value: object) -> object:
    """Lists sorted, all the way down."""
    if isinstance(value, dict):
        return {key: in_order(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted(map(in_order, value), key=json.dumps)
    return value


@pytest.mark.parametrize("route", ROUTES)
async def test_answers(route: str, replayed: PrivateChain, answers: dict[str, list[Row]]) -> None:
    rule = RULES.get(route, Rule())
    rows = answers[route]
    compared = [row for row in rows if not rule.left_out(row)]
    different: list[object] = []
    for row in compared:
        answer = await replayed.get(row["path"])
        body: Any = answer.json() if answer.body else ""
        ours = _without(body, rule.ignored)
        theirs = _without(rule.asked_now(row["body"]), rule.ignored)
        if rule.unordered:
            ours, theirs = in_order(ours), in_order(theirs)
        if (answer.status, ours) != (row["status"], theirs):
            different.append((row["path"], theirs, answer.status, ours))
    assert not different, (len(different), different[:2])
    report.compared(f"golden {route}", len(compared), len(rows), rule.why)


def test_every_type_of_transaction_is_among_them(answers: dict[str, list[Row]]) -> None:
    types = Counter(row["body"]["type"] for row in answers["/transactions/info/{}"])
    assert set(types) == {1, *range(3, 19)}
