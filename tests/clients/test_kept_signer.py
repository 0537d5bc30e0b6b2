"""A signer that keeps keys, asked by programs with ``@waves/waves-transactions``: the library makes
each thing without a key, the signer signs it, the library verifies it, and a node takes it.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from soliton.chain.json_kinds import encode_base64
from soliton.keystore.keys import phrase
from soliton.ride.compiler import compile_source
from soliton.signer.settings import SERVER_LIMITS
from soliton.web.clock import wall_clock
from soliton.web.server import serve
from tests.clients.scripts import NEEDS_NODE, run_script
from tests.clients.test_waves_signer import ASSET, DAPP
from tests.e2e.programs import devnet
from tests.keystore.stores import keep
from tests.signer.kept import KEYS, PASSWORD, Place

RULES: Final = """
[[rule]]
name = "all"
signs = [
  3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
  "order", "cancelOrder", "auth", "customData", "wavesAuth",
]
keys = "any"
callers = ["bot"]
recipients = "any"
amounts = "any"
quantities = "any"
fees = "any"
calls = "any"
data-keys = "any"
pairs = "any"
matchers = "any"
hosts = "any"
scripts = true
unbound-chain = true
"""
VERSIONS: Final = {3: 3, 4: 3, 5: 3, 6: 3, 7: 3, 8: 3, 9: 3, 10: 3, 11: 2, 12: 2, 13: 2, 14: 2}
VERSIONS_OF_LATER: Final = {15: 2, 16: 2, 17: 1}

pytestmark = NEEDS_NODE


@contextmanager
def kept(place: Place, node_url: str, **more: Any) -> Iterator[str]:
    """A signer of a place, in an event loop of its own; its address."""
    ready, stop = threading.Event(), asyncio.Event()
    found: list[str] = []
    loops: list[asyncio.AbstractEventLoop] = []

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        app = place.app(node_url, clock=wall_clock, **more)
        server = await serve(app, "127.0.0.1", 0, SERVER_LIMITS, close=app.close)
        found.append(f"http://127.0.0.1:{server.port}")
        ready.set()
        await stop.wait()
        await server.stop()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    try:
        assert ready.wait(60)
        yield found[0]
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join(60)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("kept")
    accounts = {"owner": "soliton devnet account 7", "friend": "soliton devnet account 8"}
    keep(directory / "keys", PASSWORD, {name: phrase(text) for name, text in accounts.items()})
    scripts = {
        name: encode_base64(compile_source(source).script.source)
        for name, source in (("dapp", DAPP), ("asset", ASSET))
    }
    with devnet() as program, kept(Place(directory, RULES), program.node_url) as url:
        unlock(url)
        arguments = url, program.node_url, KEYS["bot"], json.dumps(scripts)
        return run_script("kept_signer.js", *arguments)


def unlock(url: str) -> None:
    import httpx

    body = {"password": PASSWORD}
    answer = httpx.post(
        f"{url}/keys/unlock", json=body, headers={"X-API-Key": KEYS["bot"]}, timeout=60
    )
    assert answer.status_code == 200


def test_the_library_and_the_node_take_every_type_and_version(told: Any) -> None:
    forms = {(each["type"], each["version"]) for each in told.values() if "type" in each}
    wanted = {
        (type_id, version)
        for type_id, most in (VERSIONS | VERSIONS_OF_LATER).items()
        for version in range(1, most + 1)
    }
    assert forms == wanted
    for name, each in told.items():
        if "type" in each:
            assert each["status"] == "succeeded", name


def test_the_library_verifies_each_signature(told: Any) -> None:
    verdicts = {name: each["verdict"] for name, each in told.items()}
    # Of the oldest versions the library knows no signed bytes; the node has taken these.
    unknown = {name for name, verdict in verdicts.items() if verdict == "unknown"}
    assert all(told[name]["version"] == 1 for name in unknown) and len(unknown) == 8
    assert {name: verdict for name, verdict in verdicts.items() if verdict is not True} == (
        dict.fromkeys(unknown, "unknown")
    )


def test_ids_and_hashes_are_those_of_the_library(told: Any) -> None:
    assert {name for name, each in told.items() if each["same"] is False} == set()


def test_orders_and_messages_are_all_there(told: Any) -> None:
    names = {f"{side} order {version}" for side in ("buy", "sell") for version in (1, 2, 3, 4)}
    names |= {"cancel order", "auth", "wavesAuth", "custom data 1", "custom data 2", "text"}
    assert names <= told.keys()
