"""Web applications on servers of their own, in a real browser: the ecosystem's libraries, bundled
as such applications bundle them, speak to a node, a matcher and a signer of another origin.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from soliton.devnet.accounts import funded_accounts
from soliton.node.settings import api_key_hash_text
from tests.clients.scripts import HERE, NEEDS_NODE
from tests.e2e import browser
from tests.e2e.browser import Page
from tests.e2e.origins import origin_of
from tests.e2e.programs import API_KEY, Program, devnet, eventually, is_mined, started

BUNDLER: Final = HERE / "node_modules" / ".bin" / "esbuild"
BUNDLE_SECONDS: Final = 60
COIN: Final = 10**8
SENDER, RECIPIENT = funded_accounts(ord("R"))[7:9]
PAGE: Final = '<!doctype html><title>A wallet</title><script src="/bundle.js"></script>'

pytestmark = [
    *NEEDS_NODE,
    *browser.MARKS,
    pytest.mark.skipif(
        not BUNDLER.exists(), reason="esbuild is missing (`make clients` installs it)"
    ),
]


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with the page of a web application, and nothing else."""
    directory = tmp_path_factory.mktemp("application")
    directory.joinpath("index.html").write_text(PAGE, encoding="utf-8")
    subprocess.run(
        [
            str(BUNDLER),
            str(HERE / "browser.js"),
            "--bundle",
            "--platform=browser",
            "--log-level=error",
            f"--outfile={directory / 'bundle.js'}",
        ],
        check=True,
        timeout=BUNDLE_SECONDS,
    )
    with origin_of(directory) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module", params=[0, 2], ids=["alone", "workers"])
def chain(request: pytest.FixtureRequest) -> Iterator[Program]:
    with devnet("--workers", request.param) as program:
        yield program


@pytest.fixture
def page(origin: str, devtools: str) -> Iterator[Page]:
    with browser.page_of(devtools) as page:
        page.open(f"{origin}/")
        page.wait_for("window.visits")
        yield page


def visit(page: Page, name: str, *arguments: str) -> Any:
    """What a function of ``browser.js`` gives."""
    return page.run(f"visits.{name}(...{json.dumps(arguments)})")


def nothing_was_blocked(page: Page) -> None:
    """The browser let the page have every answer; refusals are among them."""
    assert [each for each in page.errors if "CORS" in each or "Exception" in each] == []


def test_node_api_js(chain: Program, page: Page) -> None:
    told = visit(page, "nodeApi", chain.node_url, SENDER.seed, RECIPIENT.address)
    assert told["height"] >= 1 and told["paid"] == 7
    assert told["sent"]["id"] == told["info"]["id"] and told["info"]["amount"] == 7
    assert told["details"]["address"] == SENDER.address
    # Not a TypeError, which is what a page gets of an answer that it may not read.
    assert (told["refused"]["error"], told["unknown"]["error"]) == (112, 4001)
    nothing_was_blocked(page)


def test_signer(chain: Program, page: Page) -> None:
    told = visit(page, "signer", chain.node_url, SENDER.seed, RECIPIENT.address)
    assert told["user"]["address"] == SENDER.address
    assert told["sent"]["amount"] == 11 and told["confirmed"]["id"] == told["sent"]["id"]
    assert is_mined(chain.node_url, told["sent"]["id"])
    assert int(told["balances"][0]["amount"]) > COIN
    assert "accepted" not in told["refused"]
    assert "Failed to fetch" not in told["refused"]["message"], told["refused"]
    nothing_was_blocked(page)


def test_matcher(chain: Program, page: Page) -> None:
    told = visit(page, "matcher", chain.node_url, chain.matcher_url, SENDER.seed)
    assert told["placed"]["status"] == "OrderAccepted"
    assert told["book"]["asks"] == told["kept"]["asks"] == [{"amount": COIN, "price": 2 * COIN}]
    assert told["cancelled"]["status"] == "OrderCanceled"
    assert (told["history"]["status"], told["history"]["body"]["error"]) == (400, 1_051_904)
    nothing_was_blocked(page)


def test_signing_service(chain: Program, page: Page) -> None:
    told = visit(page, "service", chain.signer_url, SENDER.seed)
    name = told["signed"]["id"]
    eventually(lambda: is_mined(chain.node_url, name), "the transaction in a block")
    assert told["refused"]["status"] == 400 and told["refused"]["body"]["error"]
    nothing_was_blocked(page)


def test_event_source(chain: Program, page: Page) -> None:
    """A stream, with credentials as without."""
    page.run(
        "window.seen = []; for (const withCredentials of [false, true]) "
        f'new EventSource("{chain.node_url}/events", {{withCredentials}})'
        '.addEventListener("synced", () => seen.push(withCredentials)); true'
    )
    page.wait_for("seen.length === 2")
    nothing_was_blocked(page)


def test_api_key_stays_at_home(chain: Program, page: Page, tmp_path: Path) -> None:
    """Pages of other origins may send one only where the settings say so."""

    def asked(url: str) -> Any:
        request = f'fetch("{url}/wallet/seed", {{headers: {{"X-API-Key": "{API_KEY}"}}}})'
        return page.run(f"{request}.then(answer => answer.status, error => error.name)")

    assert asked(chain.node_url) == "TypeError"
    settings = tmp_path / "node.conf"
    key_hash = api_key_hash_text(API_KEY)
    settings.write_text(
        f"waves.rest-api {{ port = 0, api-key-different-host = yes, api-key-hash = {key_hash} }}\n"
    )
    command = ("run", "--network", "devnet", "--config", settings, "--data-dir", tmp_path / "node")
    with started(*command, until="REST API on") as node:
        assert asked(node.node_url) == 200
