"""JSON without a bottom ends nobody, also while scripts run in threads: these let Python's stack
grow, and that of C does not grow with it.
"""

from __future__ import annotations

import http.client
import threading
import time

import pytest

from tests.api.chain import RICH_ADDRESS
from tests.e2e.programs import API_KEY, call, devnet, eventually, is_mined

SECONDS = 6.0
SOURCE = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
func step(a: Int, b: Int) = if (sigVerify(base58'', base58'', base58'')) then a else a + b
@Callable(i)
func heavy(n: Int) = [IntegerEntry("n", FOLD<50>([1, 2, 3, 4, 5, 6, 7, 8, 9], n, step))]
"""
CALL = b'{"call":{"function":"heavy","args":[{"type":"integer","value":1}]}}'
DEEP = (b"[" * 400_000, b'{"a":' * 150_000, b'[{"a":' * 100_000)
ROUTES = ("/eth", "/transactions/broadcast", "/transactions/calculateFee")
HEADERS = {"content-type": "application/json"}


def keep_asking(port: int, path: str, body: bytes, until: float, statuses: list[int]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    while time.monotonic() < until:
        connection.request("POST", path, body, HEADERS)
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
    connection.close()


@pytest.mark.slow
def test_deep_json_while_scripts_run() -> None:
    with devnet() as program:
        node = program.node_url
        port = int(node.rsplit(":", 1)[1])
        compiled = call(f"{node}/utils/script/compileCode", SOURCE).json()
        script = {
            "type": 13, "version": 2, "sender": RICH_ADDRESS,
            "script": compiled["script"], "fee": 10_000_000,
        }  # fmt: skip
        signed = call(f"{node}/transactions/sign", script, key=API_KEY).json()
        assert call(f"{node}/transactions/broadcast", signed).status == 200
        eventually(lambda: is_mined(node, signed["id"]), "the dApp")
        evaluated: list[int] = []
        refused: list[int] = []
        until = time.monotonic() + SECONDS
        asked = [(f"/utils/script/evaluate/{RICH_ADDRESS}", CALL, evaluated)] * 3
        asked += [(path, body, refused) for path, body in zip(ROUTES, DEEP, strict=True)]
        threads = [
            threading.Thread(target=keep_asking, args=(port, path, body, until, statuses))
            for path, body, statuses in asked
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert program.process.poll() is None, program.output
        # JSON-RPC tells its faults with 200.
        assert set(refused) == {200, 400}
        assert len(refused) > 10
        assert 200 in evaluated
