"""Workers: real processes around a real node."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
import urllib.request
from pathlib import Path

import pytest

from soliton.cli.rest_api import api_context
from soliton.cli.workers import start_workers
from soliton.crypto.keys import key_pair
from soliton.devnet.accounts import RICH_SEED
from soliton.node.node import Node
from soliton.node.settings import load_settings
from soliton.node.wallet import Wallet
from tests.e2e.programs import Program, eventually


async def test_workers_follow_are_replaced_and_end(tmp_path: Path) -> None:
    settings = load_settings(
        network="devnet",
        data_dir=tmp_path,
        overrides={"rest-api.port": 0, "rest-api.workers": 2},
    )
    node = Node(settings, Wallet.open(None, None, RICH_SEED.encode()), durable=False)
    service = await start_workers(node, api_context(node))

    def ask(path: str) -> object:
        url = f"http://127.0.0.1:{service.port}{path}"
        with urllib.request.urlopen(url, timeout=60) as response:
            return json.loads(response.read())

    def heights_asked() -> int:
        url = f"http://127.0.0.1:{service.port}/metrics"
        with urllib.request.urlopen(url, timeout=60) as response:
            lines = dict(line.rpartition(" ")[::2] for line in response.read().decode().split("\n"))
        return int(lines['soliton_http_requests_total{methods="GET",route="/blocks/height"}'])

    async def asked(path: str, times: int = 8) -> list[object]:
        """Each time over a new connection, so that both workers are asked."""
        return [await asyncio.to_thread(ask, path) for _ in range(times)]

    try:
        assert await asked("/blocks/height") == [{"height": 1}] * 8
        node.mine(key_pair(RICH_SEED))
        assert await asked("/blocks/height") == [{"height": 2}] * 8
        assert await asked("/transactions/unconfirmed/size", 2) == [{"size": 0}] * 2
        assert [await asyncio.to_thread(heights_asked) for _ in range(4)] == [16] * 4
        before = service.process_ids()
        assert len(before) == 2
        os.kill(before[0], signal.SIGKILL)
        for _ in range(400):
            now = service.process_ids()
            if len(now) == 2 and before[0] not in now:
                break
            await asyncio.sleep(0.05)
        node.mine(key_pair(RICH_SEED))
        assert {"height": 3} in await asked("/blocks/height")
        # What the one that was killed has counted is not forgotten.
        assert await asyncio.to_thread(heights_asked) == 24
        after = service.process_ids()
        assert len(after) == 2 and before[1] in after
    finally:
        await service.stop()
        node.close()
    for process_id in {*before, *after}:
        with pytest.raises(ProcessLookupError):
            os.kill(process_id, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 0.2, 0.4, 0.7])
def test_a_node_that_is_killed_at_its_start_leaves_no_traceback(
    tmp_path: Path, seconds: float
) -> None:
    """Its workers find out at different moments of their own start."""
    ports = ("--port", 0, "--signer-port", 0, "--matcher-port", 0)
    program = Program(("devnet", "--workers", 2, *ports), {"TMPDIR": str(tmp_path)}, anew=True)
    try:
        eventually(lambda: any(tmp_path.glob("soliton-workers-*")), "the workers' directory")
        time.sleep(seconds)
        program.kill()
    finally:
        program.close()
    # A worker to which its parent had told nothing yet ends in Python's own way.
    if program.output.count("Traceback") != program.output.count("pickle.load(from_parent)"):
        pytest.fail(program.output)
