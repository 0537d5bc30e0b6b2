"""``/livez``, ``/readyz`` and ``/metrics`` of every service, through its own port."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from soliton.api import metrics as of_node
from soliton.chain import networks
from soliton.cli.watching import Address, watched
from soliton.data_service.app import DataService, DataServiceSettings
from soliton.data_service.errors import DatabaseAway
from soliton.data_service.metrics import METRICS as OF_DATA_SERVICE
from soliton.data_service.pool import Pool
from soliton.errors import EnvironmentProblem
from soliton.export.errors import DatabaseAway as ExportAway
from soliton.export.metrics import METRICS as OF_FOLLOWERS
from soliton.export.metrics import Progress
from soliton.export.running import Export
from soliton.matcher.rest.app import build_app as build_matcher
from soliton.matcher.rest.metrics import METRICS as OF_MATCHER
from soliton.signer.app import SignerSettings
from soliton.signer.app import build_app as build_signer
from soliton.signer.metrics import METRICS as OF_SIGNER
from soliton.web.monitoring import (
    HTTP_METRICS,
    PATHS,
    PROCESS_METRICS,
    SERVICE_METRICS,
    Metric,
    MonitorService,
    figures,
)
from tests.api.chain import PrivateChain
from tests.api.client import Answer, call
from tests.cli import metrics_page
from tests.matcher.kit import FakeNode, running, settings_in
from tests.signer.kept import BOT, PASSWORD, Place

COMMON: tuple[Metric[Any], ...] = (*SERVICE_METRICS, *HTTP_METRICS, *PROCESS_METRICS)
_NAME = re.compile(r"soliton(_[a-z0-9]+)+|process(_[a-z0-9]+)+")


def exposed(text: str) -> dict[str, str]:
    """Names and kinds of what an answer declares."""
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))


def check(text: str, *tables: Iterable[Metric[Any]]) -> None:
    """All metrics of these tables, and no others, with names as Prometheus advises."""
    found = exposed(text)
    assert found == {metric.name: metric.kind for table in tables for metric in table}
    for name, kind in found.items():
        assert _NAME.fullmatch(name), name
        assert (kind == "counter") == name.endswith("_total"), name
        assert kind != "histogram" or name.endswith("_seconds"), name


async def ready(app: Any, status: int = 200) -> Any:
    answer: Answer = await call(app, "GET /readyz")
    assert answer.status == status, answer.body
    found: Any = answer.json()
    assert found["status"] == ("ready" if status == 200 else "unready")
    assert bool(found["reasons"]) == (status != 200)
    return found


def test_the_page_has_what_the_services_expose() -> None:
    text = metrics_page.PATH.read_text(encoding="utf-8")
    assert text == metrics_page.page(), "run: python -m tests.cli.metrics_page"


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PrivateChain]:
    made = PrivateChain(tmp_path)
    yield made
    made.node.close()


async def test_node(chain: PrivateChain) -> None:
    text = (await chain.get("/metrics")).body.decode()
    check(text, of_node.METRICS, HTTP_METRICS, PROCESS_METRICS)


async def test_matcher(tmp_path: Path) -> None:
    node = FakeNode()
    async with running(settings_in(tmp_path), node) as matcher:
        app = build_matcher(matcher).gate
        assert (await call(app, "GET /livez")).json() == {"status": "alive"}
        assert (await ready(app))["offset"] == matcher.offsets.current
        matcher.session.trusted.clear()
        app = build_matcher(matcher).gate
        assert "lacks blocks" in (await ready(app, 503))["reasons"][0]
        matcher.session.trusted.set()
        await call(app, "GET /matcher/orderbook/WAVES/WAVES/status")
        text = (await call(app, "GET /metrics")).body.decode()
        check(text, COMMON, OF_MATCHER)
        assert 'route="/matcher/orderbook/{amount}/{price}/status"' in text
        assert "WAVES/WAVES" not in text
    assert "stops" in (await ready(build_matcher(matcher).gate, 503))["reasons"][0]


async def test_signer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("soliton.web.monitoring.FRESH_SECONDS", 0)
    app = Place(tmp_path).app()
    try:
        locked = await ready(app, 503)
        assert (locked["unlocked"], locked["keys"]) == (0, 2)
        body = msgspec.json.encode({"password": PASSWORD, "seconds": 60})
        assert (
            await call(app, "POST /keys/unlock", body, {"Host": "signer.test", **BOT})
        ).status == 200
        assert (await ready(app))["unlocked"] == 2
        text = (await call(app, "GET /metrics")).body.decode()
        check(text, COMMON, OF_SIGNER)
        assert 'soliton_signer_audit_lines_total{event="unlock"} 1' in text
        assert 'soliton_http_requests_total{methods="POST",route="/keys/unlock"} 1' in text
    finally:
        app.close()


async def test_a_signer_without_keys_needs_its_node() -> None:
    app = build_signer(SignerSettings("http://127.0.0.1:1", networks.load("devnet")))
    assert "node does not answer" in (await ready(app, 503))["reasons"][0]
    check((await call(app, "GET /metrics")).body.decode(), COMMON)
    app.close()


class AwayPool(Pool):
    """A database that is there, or not."""

    def __init__(self) -> None:
        super().__init__("")
        self.rows: list[dict[str, Any]] | None = None

    async def fetch(self, statement: str, parameters: Any = ()) -> list[dict[str, Any]]:
        del statement, parameters
        if self.rows is None:
            raise DatabaseAway("connection refused")
        return self.rows


async def test_data_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("soliton.web.monitoring.FRESH_SECONDS", 0)
    pool = AwayPool()
    app = DataService(pool, DataServiceSettings(max_block_age=60))
    assert (await call(app, "GET /livez")).status == 200
    assert "connection refused" in (await ready(app, 503))["reasons"][0]
    pool.rows = []
    assert "no blocks" in (await ready(app, 503))["reasons"][0]
    pool.rows = [{"height": 7, "at": 1_000.0}]
    assert "--max-block-age" in (await ready(app, 503))["reasons"][0]
    pool.rows = [{"height": 7, "at": 4e9}]
    assert (await ready(app))["height"] == 7
    await call(app, "GET /v0/assets/WAVES")
    text = (await call(app, "GET /metrics")).body.decode()
    check(text, COMMON, OF_DATA_SERVICE)
    assert "soliton_data_service_height 7" in text and 'route="/assets/{id}"' in text


async def test_metrics_are_of_now_where_nobody_asks_for_readiness() -> None:
    pool = AwayPool()
    pool.rows = [{"height": 7, "at": 4e9}]
    app = DataService(pool, DataServiceSettings())
    await call(app, "GET /metrics")
    await asyncio.sleep(0)
    text = (await call(app, "GET /metrics")).body.decode()
    assert "soliton_data_service_database_up 1" in text
    assert "soliton_data_service_height 7" in text


class _Source:
    def refresh(self) -> int:
        return 30


def test_an_export_serves_its_progress(capsys: pytest.CaptureFixture[str]) -> None:
    progress, stopped = Progress(), threading.Event()
    seen: list[httpx.Response] = []

    def unreachable() -> Any:
        if progress.failures:
            found = re.search(r"http://\S+(?=/metrics)", capsys.readouterr().err)
            assert found is not None
            seen.extend(httpx.get(found[0] + path, timeout=60) for path in PATHS)
            stopped.set()
        raise ExportAway("the database is away")

    with watched("export", progress, Address("127.0.0.1", 0)):
        source: Any = _Source()
        Export(source, unreachable, stopped, lambda _: None, progress=progress).run()
    alive, unready, metrics = seen
    assert alive.status_code == 200 and unready.status_code == 503
    assert unready.json()["reasons"] == ["waiting: the database is away"]
    assert "\nsoliton_follower_failures_total 1\n" in metrics.text


async def test_follower() -> None:
    progress = Progress()
    progress.height, progress.chain_height, progress.notices_waiting = 3, 20, 5
    app = MonitorService("notify", progress.check, partial(figures, OF_FOLLOWERS, progress))
    assert "17 blocks" in (await ready(app, 503))["reasons"][0]
    check((await call(app, "GET /metrics")).body.decode(), COMMON, OF_FOLLOWERS)
    assert (await call(app, "POST /metrics")).status == 405
    assert (await call(app, "GET /else")).status == 404


def test_an_address_that_is_taken_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = Address("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(EnvironmentProblem), watched("export", Progress(), where):
            raise AssertionError("not reached")
