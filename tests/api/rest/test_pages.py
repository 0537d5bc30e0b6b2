"""Lists page by page: in either order, from link to link, each item once."""

from __future__ import annotations

import re
from typing import Any

import pytest

from soliton.chain.values import AssetId
from soliton.crypto import base58
from tests.api.chain import OTHER_ADDRESS, RICH, RICH_ADDRESS, PrivateChain
from tests.api.rest.test_assets import give, issue
from tests.node import forging

NEXT = re.compile(r'<([^>]+)>; rel="next"')


async def pages(chain: PrivateChain, target: str) -> list[Any]:
    """The answers from a target on, as long as each leads to another."""
    found = []
    while True:
        answer = await chain.get(target)
        assert answer.status == 200, answer.body
        found.append(answer.json())
        link = answer.headers.get(b"link")
        if link is None:
            return found
        match = NEXT.fullmatch(link.decode())
        assert match is not None
        target = match[1]


@pytest.mark.parametrize(("order", "limit"), [("asc", 2), ("desc", 3), ("desc", 7), ("asc", 100)])
async def test_transactions(chain: PrivateChain, order: str, limit: int) -> None:
    names = []
    for count in (3, 1, 2):
        names += [base58.encode(chain.send(chain.transfer()).id) for _ in range(count)]
        chain.mine()
    names.append(base58.encode(chain.send(chain.transfer()).id))
    forging.mine_micro(chain.node, RICH)
    target = f"/transactions/address/{OTHER_ADDRESS}/limit/{limit}?order={order}"
    answers = await pages(chain, target)
    found = [item["id"] for (page,) in answers for item in page]
    assert found == (names if order == "asc" else names[::-1])
    assert [len(page) for (page,) in answers[:-1]] == [limit] * (len(answers) - 1)
    assert len(answers) == -(-len(names) // limit)
    usual = await pages(chain, f"/transactions/address/{OTHER_ADDRESS}/limit/{limit}")
    assert [item["id"] for (page,) in usual for item in page] == names[::-1]


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_nfts(chain: PrivateChain, order: str) -> None:
    names = [base58.encode(issue(chain, 1, nft=True)) for _ in range(5)]
    give(chain, AssetId(base58.decode(names.pop(2), 100)), 1)
    answers = await pages(chain, f"/assets/nft/{RICH_ADDRESS}/limit/2?order={order}")
    found = [item["assetId"] for page in answers for item in page]
    assert found == (names if order == "asc" else names[::-1]) and len(answers) == 2


async def test_holders(chain: PrivateChain) -> None:
    asset_id = issue(chain, 10)
    give(chain, asset_id, 4)
    chain.mine()
    height = chain.node.chain.height - 1
    path = f"/assets/{base58.encode(asset_id)}/distribution/{height}/limit/1"
    answers = await pages(chain, path)
    assert {name: value for page in answers for name, value in page["items"].items()} == {
        RICH_ADDRESS: 6,
        OTHER_ADDRESS: 4,
    }


@pytest.mark.parametrize("order", ["", "up", "ASC"])
async def test_an_order_that_there_is_not(chain: PrivateChain, order: str) -> None:
    answer = await chain.get(f"/transactions/address/{OTHER_ADDRESS}/limit/1?order={order}")
    assert answer.status == 404


async def test_no_page_of_nothing(chain: PrivateChain) -> None:
    chain.send(chain.transfer())
    chain.mine()
    answer = await chain.get(f"/transactions/address/{OTHER_ADDRESS}/limit/0")
    assert answer.json() == [[]] and b"link" not in answer.headers
