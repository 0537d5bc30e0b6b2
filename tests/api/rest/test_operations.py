"""The operator's routes under `/debug`, and the lists of peers."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest

from soliton.crypto import base58
from tests.api.chain import AMOUNT, OTHER_ADDRESS, RICH, RICH_ADDRESS, WITH_KEY, PrivateChain
from tests.api.client import Answer, call
from tests.node import forging


async def ask(chain: PrivateChain, target: str) -> Any:
    answer = await chain.get(target, **WITH_KEY)
    assert answer.status == 200, (target, answer.body)
    return answer.json()


@pytest.mark.parametrize(
    "path",
    ["state", "stateWaves/1", "info", "minerInfo", "configInfo?full=true", "nothing", "stateZbs/1"],
)
async def test_nothing_is_said_without_the_key(chain: PrivateChain, path: str) -> None:
    assert (await chain.get(f"/debug/{path}")).status == 403


async def test_balances_of_everybody(chain: PrivateChain) -> None:
    first = await ask(chain, "/debug/state")
    assert first[RICH_ADDRESS] > 0 and OTHER_ADDRESS not in first
    chain.send(chain.transfer())
    chain.mine()
    assert (await ask(chain, "/debug/state"))[OTHER_ADDRESS] == AMOUNT
    assert await ask(chain, "/debug/stateWaves/1") == first
    assert (await chain.get("/debug/stateWaves/x", **WITH_KEY)).status == 404


async def test_what_the_node_does(chain: PrivateChain) -> None:
    info = await ask(chain, "/debug/info")
    assert info["stateHeight"] == 1 and info["scoreObserverStats"]["localScore"] > 0
    mining = await ask(chain, "/debug/minerInfo")
    assert mining[0]["address"] == RICH_ADDRESS
    assert mining[0]["miningBalance"] > 0 and mining[0]["timestamp"] >= chain.now
    settings = await ask(chain, "/debug/configInfo?full=false")
    assert list(settings) == ["waves"]
    # Neither its password nor its seed.
    assert list(settings["waves"]["wallet"]) == ["file"]
    assert "soliton" in await ask(chain, "/debug/configInfo?full=true")
    assert (await chain.get("/debug/configInfo", **WITH_KEY)).status == 404


async def test_keys_of_the_settings_mine_and_are_not_shown(chain: PrivateChain) -> None:
    settings = chain.node.settings
    miner = msgspec.structs.replace(settings.miner, accounts=(RICH,))
    chain.node.settings = msgspec.structs.replace(settings, miner=miner)
    answer = await call(chain.app, "GET /debug/configInfo?full=true", headers=WITH_KEY)
    secret = RICH.private_key
    shown: Any = answer.json()
    for text in (base64.b64encode(secret).decode(), base58.encode(secret), secret.hex()):
        assert text not in str(shown)
    assert shown["waves"]["miner"]["accounts"] == [base58.encode(RICH.public_key)]
    await call(chain.app, f"DELETE /addresses/{RICH_ADDRESS}", headers=WITH_KEY)
    assert (await chain.get("/addresses")).json() == []
    (mining,) = await ask(chain, "/debug/minerInfo")
    assert mining["address"] == RICH_ADDRESS


async def test_blocks_are_taken_back(chain: PrivateChain) -> None:
    sent = chain.send(chain.transfer())
    chain.mine()
    chain.mine()
    body = {"rollbackTo": 1, "returnTransactionsToUtx": True}
    assert (await chain.post("/debug/rollback", body)).status == 403
    answer = await chain.post("/debug/rollback", body, WITH_KEY)
    assert answer.json() == {"BlockId": base58.encode(chain.node.chain.meta(1).id)}
    assert chain.node.chain.height == 1 and sent.id in chain.node.pool
    assert (await ask(chain, f"/addresses/balance/{OTHER_ADDRESS}"))["balance"] == 0
    chain.mine()
    assert (await ask(chain, f"/addresses/balance/{OTHER_ADDRESS}"))["balance"] == AMOUNT
    answer = await chain.post("/debug/rollback", body | {"rollbackTo": 9}, WITH_KEY)
    assert (answer.status, answer.body) == (400, b"Block at height not found")
    answer = await chain.post(
        "/debug/rollback", {"rollbackTo": 1, "returnTransactionsToUTX": False}, WITH_KEY
    )
    assert answer.status == 200 and sent.id not in chain.node.pool
    assert (await chain.get("/debug/rollback", **WITH_KEY)).status == 405
    wrong: Any = (await chain.post("/debug/rollback", {"rollbackTo": "x"}, WITH_KEY)).json()
    assert sorted(wrong["validationErrors"]) == ["obj.returnTransactionsToUtx", "obj.rollbackTo"]


@pytest.mark.parametrize(
    ("family", "lowest", "words"),
    [("waves", 2, "at the height 2"), ("zbs", 3, "at a height: 3")],
)
async def test_blocks_are_taken_back_so_far_as_the_settings_say(
    tmp_path: Path, family: str, lowest: int, words: str
) -> None:
    """As in the reference, which counts from the block below the last one
    (``database/RocksDBWriter.scala``; ZBS: ``database/Caches.scala``).
    """
    chain = PrivateChain(tmp_path, family=family)
    settings = chain.node.settings
    depth = msgspec.structs.replace(settings.db, max_rollback_depth=3)
    chain.node.settings = msgspec.structs.replace(settings, db=depth)
    while chain.node.chain.height < 6:
        chain.mine()

    async def rolled_back(height: int) -> Answer:
        body = {"rollbackTo": height, "returnTransactionsToUtx": False}
        return await chain.post("/debug/rollback", body, WITH_KEY)

    refused = await rolled_back(lowest - 1)
    assert (refused.status, refused.json()) == (
        400, {"error": 199, "message": f"Rollback is possible only to the block {words}"},
    )  # fmt: skip
    assert chain.node.chain.height == 6
    assert (await rolled_back(lowest)).status == 200
    assert chain.node.chain.height == lowest


@pytest.mark.parametrize(
    ("family", "words"),
    [("tn", "No such block {}"), ("zbs", "No block with signature: {} found in blockchain")],
)
async def test_blocks_are_taken_back_to_an_id(tmp_path: Path, family: str, words: str) -> None:
    chain = PrivateChain(tmp_path, family=family)
    chain.mine()
    name = base58.encode(chain.node.chain.last_block.id)
    chain.mine()

    async def rolled_back(to: str) -> Answer:
        return await call(chain.app, f"DELETE /debug/rollback-to/{to}", headers=WITH_KEY)

    unknown = "1" * 64
    refused = await rolled_back(unknown)
    assert (refused.status, refused.json()) == (
        400, {"error": 199, "message": words.format(unknown)},
    )  # fmt: skip
    no_id: Any = (await rolled_back("0")).json()
    assert no_id["error"] == 101
    # A form of the last block, which may grow again: nothing is taken back.
    early = base58.encode(chain.node.chain.last_block.id)
    chain.send(chain.transfer())
    forging.mine_micro(chain.node, RICH)
    assert (await rolled_back(early)).json() == {"BlockId": early}
    assert len(chain.node.chain.last_block.transactions) == 1
    assert (await rolled_back(name)).json() == {"BlockId": name}
    assert base58.encode(chain.node.chain.last_block.id) == name


async def test_small_things(chain: PrivateChain) -> None:
    answer = await chain.post("/debug/print", {"message": "here"}, WITH_KEY)
    assert (answer.status, answer.body) == (200, b"")
    for body, status in ((b"127.0.0.1:6868", 200), (b"", 400), (b"[", 400)):
        answer = await call(chain.app, "POST /debug/blacklist", body, WITH_KEY)
        assert answer.status == status, body


async def test_the_oldest_rows(oldest: PrivateChain) -> None:
    name = base58.encode(oldest.node.chain.meta(1).id)
    assert len(await ask(oldest, "/debug/blocks/5")) == 1
    assert (await ask(oldest, "/debug/historyInfo"))["lastBlockIds"] == [name]
    assert await ask(oldest, "/debug/stateZbs/1")
    holder = next(iter(await ask(oldest, "/debug/state")))
    portfolio = await ask(oldest, f"/debug/portfolios/{holder}?considerUnspent=false")
    assert portfolio["balance"] > 0 and portfolio["lease"] == {"in": 0, "out": 0}


async def test_peers(chain: PrivateChain) -> None:
    for path in ("all", "connected"):
        assert await ask(chain, f"/peers/{path}") == {"peers": []}
    for path in ("blacklisted", "suspended"):
        assert await ask(chain, f"/peers/{path}") == []
    body = {"host": "127.0.0.1", "port": 6868}
    assert (await chain.post("/peers/connect", body)).status == 403
    answer = await chain.post("/peers/connect", body, WITH_KEY)
    assert answer.json() == {"hostname": "127.0.0.1", "status": "Trying to connect"}
    wrong: Any = (await chain.post("/peers/connect", {"host": 1}, WITH_KEY)).json()
    assert sorted(wrong["validationErrors"]) == ["obj.host", "obj.port"]
    for port in (-1, 65536):
        wrong = await chain.post("/peers/connect", {"host": "127.0.0.1", "port": port}, WITH_KEY)
        message = f"port out of range:{port}"
        assert (wrong.status, wrong.plain()) == (400, {"error": 199, "message": message})
    answer = await call(chain.app, "POST /peers/clearblacklist", headers=WITH_KEY)
    assert answer.json() == {"result": "blacklist cleared"}
