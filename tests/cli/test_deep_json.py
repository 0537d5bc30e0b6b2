"""JSON without a bottom ends nobody, also while scripts run in threads: these let Python's stack
grow, and that of C does not grow with it.
"""

from __future__ import annotations

import http.client
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.amounts import times
from tests.api.chain import RICH_ADDRESS
from tests.e2e.programs import API_KEY, WAIT_SECONDS, call, devnet, eventually, is_mined

COUNT = times(5, 40)
"""How many of each are answered while scripts run."""
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


def ask(port: int, path: str, body: bytes) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS)
    try:
        connection.request("POST", path, body, HEADERS)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
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
        over = threading.Event()

        def evaluate() -> None:
            while not over.is_set():
                evaluated.append(ask(port, f"/utils/script/evaluate/{RICH_ADDRESS}", CALL))

        def send_deep(path: str, body: bytes) -> list[int]:
            return [ask(port, path, body) for _ in range(COUNT)]

        with ThreadPoolExecutor(6) as pool:
            running = [pool.submit(evaluate) for _ in range(3)]
            try:
                eventually(lambda: 200 in evaluated, "an evaluation")
                refused = [*pool.map(send_deep, ROUTES, DEEP)]
            finally:
                over.set()
            for each in running:
                each.result()
        assert program.process.poll() is None, program.output
        # JSON-RPC tells its faults with 200.
        assert refused == [[200] * COUNT, [400] * COUNT, [400] * COUNT]
