"""Answers about the chain have a tag, and are not sent again to who has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton.api.app import all_routes
from soliton.api.etags import is_known
from tests.api.chain import OTHER_ADDRESS, RICH, RICH_ADDRESS, PrivateChain
from tests.node import forging

STRINGS = "application/json;large-significand-format=string"


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PrivateChain]:
    made = PrivateChain(tmp_path)
    yield made
    made.node.close()


async def test_the_tag_is_the_last_block(chain: PrivateChain) -> None:
    target = f"/addresses/balance/{OTHER_ADDRESS}"
    first = await chain.get(target)
    tag = first.headers[b"etag"].decode()
    header: object = (await chain.get("/blocks/headers/last")).json()
    assert isinstance(header, dict) and tag == f'"{header["id"]}"'
    again = await chain.get(target, **{"if-none-match": tag})
    assert (again.status, again.body, again.headers[b"etag"].decode()) == (304, b"", tag)
    assert again.headers[b"content-length"] == b"0"
    chain.send(chain.transfer())
    # What waits in the pool is not on the chain.
    assert (await chain.get(target, **{"if-none-match": tag})).status == 304
    chain.mine()
    changed = await chain.get(target, **{"if-none-match": tag})
    assert changed.status == 200 and changed.headers[b"etag"].decode() != tag
    chain.send(chain.transfer())
    before = changed.headers[b"etag"].decode()
    forging.mine_micro(chain.node, RICH)
    assert (await chain.get(target, **{"if-none-match": before})).status == 200


async def test_forms_of_numbers_have_their_own(chain: PrivateChain) -> None:
    target = f"/addresses/balance/{RICH_ADDRESS}"
    plain, strings = await chain.get(target), await chain.get(target, accept=STRINGS)
    assert plain.headers[b"etag"] != strings.headers[b"etag"]
    mixed = await chain.get(
        target, accept=STRINGS, **{"if-none-match": plain.headers[b"etag"].decode()}
    )
    assert mixed.status == 200


@pytest.mark.parametrize(
    "target",
    ["/node/status", "/transactions/unconfirmed/size", "/addresses", "/utils/time", "/blocks/at/99",
     "/addresses/balance/x", "/transactions/status?id=1"],
)  # fmt: skip
async def test_what_has_no_tag(chain: PrivateChain, target: str) -> None:
    answer = await chain.get(target, **{"if-none-match": "*"}) if "node" in target else None
    assert answer is None or answer.status == 200
    assert b"etag" not in (await chain.get(target)).headers


@pytest.mark.parametrize(
    ("header", "known"),
    [
        ('"a"', True), ('W/"a"', True), ('"b", "a"', True), ('"b",W/"a"', True), ("*", True),
        (" * ", True), ('"b"', False), ("a", False), ("", False), ('"a', False),
    ],
)  # fmt: skip
def test_comparing(header: str, known: bool) -> None:
    assert is_known(header.encode(), b'"a"') is known


def test_routes_of_the_chain() -> None:
    found = {route.path for route in all_routes() if route.has_tag}
    assert {"/blocks/last", "/transactions/info/{id}", "/assets/details/{assetId}"} <= found
    for path in ("/addresses", "/node/status", "/peers/all", "/wallet/seed", "/events"):
        assert path not in found
