"""Texts of strangers over REST: whatever they hold, there is an answer at the deadline, others are
served meanwhile, and who sends them pays.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from soliton.api.app import build_app
from soliton.api.application import Application
from soliton.api.measuring import measured, measured_items
from soliton.api.texts import Texts
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT
from soliton.chain.transactions.set_script import SetScript
from soliton.node.rest_settings import ApiLimits
from soliton.parallel.killable import Killable
from soliton.ride.compiler import compile_source
from tests.api.chain import RICH_ADDRESS, PrivateChain, context_of
from tests.api.client import Answer, call

TEXT = {"Content-Type": "text/plain"}
JSON = {"Content-Type": "application/json"}
HEAD = "{-# STDLIB_VERSION 6 #-}\n"
DAPP = HEAD + "{-# CONTENT_TYPE DAPP #-}\n@Callable(i)\nfunc done() = []\n"
SCRIPT = b"base64:" + base64.b64encode(compile_source(HEAD + "true").script.source)
EVALUATE = f"/utils/script/evaluate/{RICH_ADDRESS}"
ASKED = {
    "/utils/script/compileCode": (HEAD.encode() + b"true", TEXT),
    "/utils/script/compileWithImports": (b'{"script":"true"}', JSON),
    "/utils/script/compile": (b"true", TEXT),
    "/utils/script/estimate": (SCRIPT, TEXT),
    "/utils/script/decompile": (SCRIPT, TEXT),
    EVALUATE: (b'{"expr":"1 + 1"}', JSON),
}
STRANGER = "10.0.0.1"
LIMITS = ApiLimits(client_percent=5, client_burst_ms=200)


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PrivateChain]:
    made = PrivateChain(tmp_path)
    script = compile_source(DAPP).script.source
    made.send(made.sign(SET_SCRIPT, SetScript(script), 2, fee=10_000_000))
    made.mine()
    yield made
    made.node.close()


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[Killable]:
    """Processes that take every text for one that never ends, in one call of C."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(Path.cwd()), *sys.path))))
    made = Killable("tests.api.stuck_worker", count=1)
    yield made
    made.close()


async def post(app: Application, route: str, host: str = "127.0.0.1") -> Answer:
    body, headers = ASKED[route]
    return await call(app, f"POST {route}", body, headers, host=host)


@pytest.mark.parametrize("route", ASKED)
async def test_every_route_with_a_text_ends_at_its_deadline(
    chain: PrivateChain, stuck: Killable, route: str
) -> None:
    app = build_app(replace(context_of(chain.node), texts=Texts(stuck, seconds=0.3)))
    for _ in range(2):
        answer = await post(app, route)
        assert (answer.status, answer.json()["error"]) == (503, 5031)  # type: ignore[index]
    # Nothing goes on unseen: the process is gone, or will be in a moment.
    async with asyncio.timeout(30):
        while stuck.process_ids():  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0.01)
    assert (await post(build_app(context_of(chain.node)), route)).status == 200


async def test_others_are_served_while_a_text_is_stuck(
    chain: PrivateChain, stuck: Killable
) -> None:
    app = build_app(replace(context_of(chain.node), texts=Texts(stuck, seconds=2)))
    running = asyncio.create_task(post(app, "/utils/script/decompile"))
    served = 0
    while not running.done():
        assert (await call(app, "GET /blocks/height")).status == 200
        served += 1
        await asyncio.sleep(0.01)
    assert served > 1


async def test_more_texts_than_there_are_places_for_are_refused(
    chain: PrivateChain, stuck: Killable
) -> None:
    texts = Texts(stuck, places=1, seconds=2)
    app = build_app(replace(context_of(chain.node), texts=texts))
    running = asyncio.create_task(post(app, "/utils/script/decompile"))
    await asyncio.sleep(0.1)
    answer = await post(app, "/utils/script/decompile")
    assert (answer.status, answer.json()["error"]) == (503, 5031)  # type: ignore[index]
    assert b"ask again later" in answer.body
    await running


@pytest.mark.parametrize("route", ["/utils/script/compileCode", EVALUATE])
async def test_who_sends_heavy_texts_pays(chain: PrivateChain, stuck: Killable, route: str) -> None:
    app = build_app(replace(context_of(chain.node), texts=Texts(stuck, seconds=0.5), limits=LIMITS))
    assert (await post(app, route, STRANGER)).status == 503
    # As soon as the process has been killed. Half a second of 5 % is ten seconds' worth.
    async with asyncio.timeout(30):
        while (answer := await call(app, "GET /blocks/height", host=STRANGER)).status != 429:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert int(answer.headers[b"retry-after"]) >= 4
    assert (await call(app, "GET /blocks/height", host="10.0.0.2")).status == 200


async def test_who_has_heavy_expressions_run_pays(chain: PrivateChain) -> None:
    doubling = "".join(f"func d{n}(x: Int) = d{n - 1}(x) + d{n - 1}(x)\n" for n in range(1, 60))
    body = b'{"expr":"func d0(x: Int) = x + 1\\n%sd59(1)"}' % doubling.replace("\n", "\\n").encode()
    limits = ApiLimits(client_percent=1, client_burst_ms=10)
    app = build_app(replace(context_of(chain.node), limits=limits))
    assert (await call(app, f"POST {EVALUATE}", body, JSON, host=STRANGER)).status == 200
    refused = await call(app, f"POST {EVALUATE}", body, JSON, host=STRANGER)
    assert refused.status == 429


async def test_steps_of_coroutines_and_of_streams_are_charged_and_waiting_is_not() -> None:
    charged: list[float] = []

    async def work() -> int:
        await asyncio.sleep(0.2)
        return 7

    async def items() -> AsyncIterator[int]:
        for number in range(3):
            await asyncio.sleep(0.1)
            yield number

    assert await measured(work(), charged.append) == 7
    assert [item async for item in measured_items(items(), charged.append)] == [0, 1, 2]
    assert len(charged) >= 6
    assert sum(charged) < 0.2


async def test_a_measured_coroutine_hears_that_it_is_cancelled() -> None:
    heard: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            heard.append("the end")

    async def waiting() -> None:
        await measured(work(), lambda _: None)

    task = asyncio.create_task(waiting())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert heard == ["the end"]
