"""Routes under /blocks, on the newest and on the oldest generation of the interface."""

from __future__ import annotations

from typing import Any

import pytest

from soliton.crypto import base58
from tests.api.chain import RICH_ADDRESS, START, PrivateChain
from tests.api.client import call

GENESIS_TIME = 1_566_817_216_027


def error(code: int, message: str) -> dict[str, object]:
    return {"error": code, "message": message}


NO_BLOCK = error(301, "block does not exist")
TOO_BIG = error(10, "Too big sequence requested")


@pytest.fixture
def grown(chain: PrivateChain) -> PrivateChain:
    """Heights 1 to 4; a transfer in block 3."""
    chain.mine()
    chain.send(chain.transfer())
    chain.mine()
    chain.tick(99)
    chain.mine()
    return chain


async def body(chain: PrivateChain, target: str) -> Any:
    answer = await chain.get(target)
    assert answer.status == 200, answer.body
    return answer.json()


async def test_a_block_by_all_its_names(grown: PrivateChain) -> None:
    block = await body(grown, "/blocks/at/3")
    assert block["height"] == 3 and block["transactionCount"] == 1
    assert block["fee"] == block["totalFee"] == 100_000
    assert block["transactions"][0]["applicationStatus"] == "succeeded"
    assert "height" not in block["transactions"][0]
    assert await body(grown, f"/blocks/{block['id']}") == block
    assert await body(grown, "/blocks/seq/3/3") == [block]
    assert await body(grown, f"/blocks/address/{RICH_ADDRESS}/3/3") == [block]
    assert await body(grown, f"/blocks/height/{block['id']}") == {"height": 3}
    header = {name: block[name] for name in block if name not in ("fee", "transactions")}
    assert await body(grown, "/blocks/headers/at/3") == header
    assert await body(grown, f"/blocks/headers/{block['id']}") == header
    assert await body(grown, "/blocks/headers/seq/3/3") == [header]


async def test_the_last_block(grown: PrivateChain) -> None:
    assert await body(grown, "/blocks/height") == {"height": 4}
    assert await body(grown, "/blocks/last") == await body(grown, "/blocks/at/4")
    assert await body(grown, "/blocks/headers/last") == await body(grown, "/blocks/headers/at/4")


async def test_ranges(grown: PrivateChain) -> None:
    for path in ("seq", "headers/seq"):
        whole = await body(grown, f"/blocks/{path}/1/9")
        assert [block["height"] for block in whole] == [1, 2, 3, 4]
        assert await body(grown, f"/blocks/{path}/5/9") == []
        assert await body(grown, f"/blocks/{path}/0/0") == whole[3:]
        for span in ("4/3", "1/101", "0/100"):
            answer = await grown.get(f"/blocks/{path}/{span}")
            assert (answer.status, answer.json()) == (400, TOO_BIG)
        assert len(await body(grown, f"/blocks/{path}/1/100")) == 4
    mined = await body(grown, f"/blocks/address/{RICH_ADDRESS}/0/99")
    assert [block["height"] for block in mined] == [4]
    mined = await body(grown, f"/blocks/address/{RICH_ADDRESS}/1/99")
    assert [block["height"] for block in mined] == [2, 3, 4]


async def test_times(grown: PrivateChain) -> None:
    timestamps = [block["timestamp"] for block in await body(grown, "/blocks/headers/seq/1/4")]
    name = (await body(grown, "/blocks/headers/at/4"))["id"]
    for count, first in ((0, 2), (1, 2), (2, 1), (3, 0), (9, 0)):
        mean = (timestamps[3] - timestamps[first]) // (3 - first)
        assert await body(grown, f"/blocks/delay/{name}/{count}") == {"delay": mean}
    for timestamp, height in (
        (GENESIS_TIME, 1), (GENESIS_TIME + 1, 1), (timestamps[1] - 1, 1), (timestamps[1], 2),
        (timestamps[3] - 1, 3), (timestamps[3], 4), (grown.now, 4),
    ):  # fmt: skip
        assert await body(grown, f"/blocks/heightByTimestamp/{timestamp}") == {"height": height}


ERRORS: list[tuple[str, int, object]] = [
    ("/blocks/at/5", 404, NO_BLOCK),
    ("/blocks/at/0", 404, NO_BLOCK),
    ("/blocks/headers/at/5", 404, NO_BLOCK),
    (f"/blocks/{'1' * 32}", 404, NO_BLOCK),
    (f"/blocks/headers/{'1' * 64}", 404, NO_BLOCK),
    (f"/blocks/height/{'1' * 64}", 404, NO_BLOCK),
    (f"/blocks/delay/{'1' * 32}/1", 404, NO_BLOCK),
    (f"/blocks/delay/{'1' * 32}/10001", 400,
     error(10, "Too big sequence requested: max limit is 10000 entries")),
    (f"/blocks/heightByTimestamp/{GENESIS_TIME - 1}", 400,
     error(199, "Indicated timestamp is before the start of the blockchain")),
    (f"/blocks/heightByTimestamp/{START * 2}", 400,
     error(199, "Indicated timestamp belongs to the future")),
    *((f"/blocks/{path}", 400,
       error(4002, f"{name} has invalid length {length}. Length can either be 32 or 64"))
      for path, name, length in (
        ("first", "first", 4), ("at/abc", "at", 2), ("at/-1", "at", 2), ("seq/a/b", "seq", 3),
        ("headers/at/x", "at", 2), ("abc", "abc", 3), ("headers/abc", "abc", 3),
        ("height/abc", "abc", 3), ("signature/abc", "signature", 7))),
    ("/blocks/0", 400, error(4002, "requirement failed: Wrong char '0' in Base58 string '0'")),
    ("/blocks/address/x/1/2", 400, error(102, "invalid address")),
    (f"/blocks/address/{RICH_ADDRESS}/1/101", 400, TOO_BIG),
]  # fmt: skip


@pytest.mark.parametrize(("target", "status", "expected"), ERRORS)
async def test_errors(
    chain: PrivateChain, target: str, status: int, expected: dict[str, Any]
) -> None:
    answer = await chain.get(target)
    found = answer.json()
    if expected["error"] == 4002 and "length" in expected["message"]:
        # Words that happen to be base58 have the length of what they decode to.
        assert isinstance(found, dict)
        name = expected["message"].split(" ", 1)[0]
        length = len(base58.decode(name))
        expected = error(4002, f"{name} has invalid length {length}. Length can either be 32 or 64")
    assert (answer.status, found) == (status, expected)


@pytest.mark.parametrize("target", ["/blocks", "/blocks/1/2/3/4", f"/blocks/{'1' * 32}/x"])
async def test_what_no_route_takes(chain: PrivateChain, target: str) -> None:
    assert (await chain.get(target)).status == 404


async def test_post_is_the_404(chain: PrivateChain) -> None:
    assert (await call(chain.app, "POST /blocks/height")).status == 404


async def test_the_oldest_generation(oldest: PrivateChain) -> None:
    genesis = await body(oldest, "/blocks/first")
    assert genesis == await body(oldest, "/blocks/at/1")
    name = genesis["signature"]
    assert await body(oldest, f"/blocks/signature/{name}") == genesis
    assert "reward" not in genesis and "rewardShares" not in genesis
    no_height = {"status": "error", "details": "No block for this height"}
    bad = error(101, "invalid signature")
    cases: list[tuple[str, int, object]] = [
        ("/blocks/at/2", 200, no_height),
        ("/blocks/headers/at/2", 200, no_height),
        (f"/blocks/child/{name}", 200, {"status": "error", "details": "No child blocks"}),
        ("/blocks/signature/0", 400, bad),
        ("/blocks/height/0", 400, bad),
        ("/blocks/height/abc", 404, NO_BLOCK),
        (f"/blocks/delay/{name}/0", 400, error(199, "Block count should be positive")),
        (f"/blocks/delay/{name}/1", 400, error(199, "Cannot go 1 blocks back")),
        ("/blocks/seq/0/1", 200, [genesis]),
    ]
    for target, status, expected in cases:
        answer = await oldest.get(target)
        assert (target, answer.status, answer.json()) == (target, status, expected)
    assert (await oldest.get(f"/blocks/{name}")).status == 404
    assert (await oldest.get("/blocks/at/abc")).status == 404


async def test_the_middle_generation(tmp_path_factory: pytest.TempPathFactory) -> None:
    chain = PrivateChain(tmp_path_factory.mktemp("node"), "tn-testnet")
    assert (await chain.get("/blocks/first")).status == 200
    missing = await chain.get("/blocks/at/2")
    assert (missing.status, missing.body) == (404, b"")
    chain.node.close()


async def test_what_is_about_a_header_reads_no_transactions(
    chain: PrivateChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(4):
        chain.mine()
    paths = (
        "/blocks/headers/seq/2/4", "/blocks/headers/at/3", "/debug/stateHash/3",
        f"/blocks/headers/{base58.encode(chain.node.chain.meta(3).id)}", "/activation/status",
        f"/consensus/basetarget/{base58.encode(chain.node.chain.meta(3).id)}",
    )  # fmt: skip
    expected = [(await chain.get(path)).body for path in paths]

    def refuse(*_args: object) -> None:
        raise AssertionError("a whole block is read")

    monkeypatch.setattr(type(chain.node.chain.store), "block_data", refuse)
    assert [(await chain.get(path)).body for path in paths] == expected
