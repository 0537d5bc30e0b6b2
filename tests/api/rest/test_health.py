"""What watchers ask: whether the node lives, whether it wants requests, all its figures."""

from __future__ import annotations

import re
from typing import Any

import pytest

from soliton.api.metrics import METRICS
from soliton.web.monitoring import HTTP_METRICS, PROCESS_METRICS, Metric
from tests.api.chain import RICH, PrivateChain
from tests.node import forging

ABOUT_CONNECTIONS = (
    "messages_total", "bytes_total", "blocks_received_total", "forks_total", "blames_total",
    "lag_blocks", "faulty_forks", "sync_blocks_per_second",
)  # fmt: skip
SAMPLE = re.compile(r'([a-z][a-z0-9_]+)(?:\{((?:[a-z]+="[^"]*",?)+)\})? (-?[0-9.e+-]+)')
HISTOGRAM_PARTS = re.compile("_(bucket|sum|count)$")


async def figures(chain: PrivateChain) -> dict[str, float]:
    """All samples, by name and labels; the text has to be well-formed."""
    answer = await chain.get("/metrics")
    assert answer.content_type == "text/plain; version=0.0.4; charset=utf-8"
    found: dict[str, float] = {}
    declared = ""
    lines = answer.body.decode().split("\n")
    assert lines.pop() == ""
    for line in lines:
        if line.startswith("# HELP "):
            declared = line.split(" ")[2]
            continue
        if line.startswith("# TYPE "):
            assert line.split(" ")[2] == declared
            continue
        match = SAMPLE.fullmatch(line)
        assert match is not None and HISTOGRAM_PARTS.sub("", match[1]) == declared, line
        assert line.rpartition(" ")[0] not in found
        found[line.rpartition(" ")[0]] = float(match[3])
    return found


async def test_every_figure_is_shown_and_documented(chain: PrivateChain) -> None:
    await chain.get("/blocks/at/9")
    await chain.get("/blocks/height")
    shown = {HISTOGRAM_PARTS.sub("", name.partition("{")[0]) for name in await figures(chain)}
    all_metrics: tuple[Metric[Any], ...] = (*METRICS, *HTTP_METRICS, *PROCESS_METRICS)
    named = {metric.name for metric in all_metrics}
    # A node without connections has nothing to tell of them.
    without_samples = {f"soliton_p2p_{name}" for name in ABOUT_CONNECTIONS}
    assert without_samples <= named
    assert shown == named - without_samples
    for metric in all_metrics:
        assert (metric.kind == "counter") == metric.name.endswith("_total")


async def test_figures_follow_the_node(chain: PrivateChain) -> None:
    chain.mine()
    chain.send(chain.transfer())
    chain.send(chain.transfer())
    before = await figures(chain)
    assert before["soliton_pool_transactions"] == 2 and before["soliton_pool_bytes"] > 100
    forging.mine_micro(chain.node, RICH)
    chain.mine()
    forging.roll_back(chain.node, 2, keep=False)
    now = await figures(chain)
    for name, value in {
        "soliton_chain_height": 2,
        "soliton_chain_blocks_total": 2,
        "soliton_chain_microblocks_total": 1,
        "soliton_chain_transactions_total": 2,
        "soliton_chain_rollbacks_total": 1,
        "soliton_pool_transactions": 0,
        "soliton_pool_bytes": 0,
        "soliton_pool_accepted_total": 2,
        'soliton_pool_left_total{why="mined"}': 2,
        'soliton_pool_left_total{why="invalid"}': 0,
    }.items():
        assert now[name] == value, name
    assert now["process_cpu_seconds_total"] > 0 and now["soliton_store_bytes"] > 0


async def test_requests_and_errors_are_counted(chain: PrivateChain) -> None:
    for target in ("/blocks/at/1", "/blocks/at/2", "/blocks/at/x", "/nowhere", "/blocks/at/3"):
        await chain.get(target)
    now = await figures(chain)
    assert now['soliton_http_requests_total{methods="GET",route="/blocks/at/{height}"}'] == 3
    assert now['soliton_http_errors_total{status="404"}'] == 3
    assert now['soliton_http_errors_total{status="400"}'] == 1
    times = "soliton_http_request_duration_seconds"
    labels = 'methods="GET",route="/blocks/at/{height}"'
    buckets = [value for name, value in now.items() if name.startswith(f"{times}_bucket{{{labels}")]
    assert buckets == sorted(buckets) and buckets[-1] == 3
    assert now[f"{times}_count{{{labels}}}"] == 3 and now[f"{times}_sum{{{labels}}}"] > 0
    # Paths of strangers are no labels: what no route matches has one of its own.
    assert now[f'{times}_count{{methods="",route=""}}'] == 1


async def test_liveness(chain: PrivateChain) -> None:
    assert (await chain.get("/livez")).json() == {"status": "alive"}


async def test_readiness(chain: PrivateChain, monkeypatch: pytest.MonkeyPatch) -> None:
    chain.mine()
    chain.tick(5_999)
    ready: Any = (await chain.get("/readyz?maxAge=5")).json()
    assert ready == {"status": "ready", "reasons": [], "height": 2, "lastBlockAge": 5, "lag": 0}
    old = await chain.get("/readyz?maxAge=4")
    assert (old.status, old.json()) == (503, {
        "status": "unready", "reasons": ["the last block is 5 s old"], "height": 2,
        "lastBlockAge": 5, "lag": 0})  # fmt: skip
    chain.tick(594_001)
    assert (await chain.get("/readyz")).status == 200
    chain.tick(1_000)
    behind = await chain.get("/readyz")
    assert behind.status == 503
    answer: Any = behind.json()
    (reason,) = answer["reasons"]
    assert reason.startswith("the last block is 601 s old, and rest-api.max-block-age is 600 s")
    assert (await chain.get("/readyz?maxAge=700")).status == 200
    chain.mine()
    monkeypatch.setattr(chain.node.pool, "_max_count", 1)
    chain.send(chain.transfer())
    full: Any = (await chain.get("/readyz")).json()
    assert full["reasons"] == ["the pool of unconfirmed transactions is full"]
    chain.mine()
    assert (await chain.get("/readyz")).status == 200
    chain.node.request_stop()
    stops: Any = (await chain.get("/readyz")).json()
    assert stops["reasons"] == ["the node stops"]
