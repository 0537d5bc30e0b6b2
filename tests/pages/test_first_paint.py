"""What a visitor sees before any script has come: the frame of a page, in its style."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest

from tests.e2e import browser
from tests.e2e.browser import Page
from tests.e2e.programs import Program
from tests.pages.pages import NARROW, SMALL_JUMP, dress, jumped
from tests.pages.proxy import Gate, proxy

PAINTED = "performance.getEntriesByName('first-contentful-paint').length > 0"
_SEEN = """[...document.querySelectorAll("header a, h1, h2, button, th")]
  .filter(each => each.checkVisibility({ visibilityProperty: true })).map(each => each.innerText)"""

pytestmark = browser.MARKS


@contextlib.contextmanager
def without(page: Page, *scripts: str) -> Iterator[None]:
    """Scripts that do not come."""
    page.command("Network.enable")
    page.command("Network.setBlockedURLs", urls=[f"*/{each}" for each in scripts])
    try:
        yield
    finally:
        page.command("Network.setBlockedURLs", urls=[])
        page.command("Network.disable")
        page.errors.clear()


@contextlib.contextmanager
def held(page: Page, script: str) -> Iterator[None]:
    """A script for which the browser waits all the time."""
    page.command("Fetch.enable", patterns=[{"urlPattern": f"*/{script}"}])
    try:
        yield
        page.open("about:blank")
    finally:
        page.command("Fetch.disable")


def opened(page: Page, url: str) -> list[str]:
    page.open("about:blank")
    page.open(url)
    page.wait_for(f"document.readyState === 'complete' && {PAINTED}")
    assert page.run("violations") == []
    assert page.run("getComputedStyle(document.querySelector('header')).display") == "flex"
    assert page.run("document.documentElement.scrollWidth") <= NARROW
    return [str(each) for each in page.run(_SEEN)]


def test_the_frame_of_each_page_is_painted_without_scripts(chain: Program, page: Page) -> None:
    dress(page, NARROW, "light")
    with without(page, "*.js"):
        for url, wanted in (
            (f"{chain.node_url}/", {"Search", "API", "Blocks", "Transactions", "Height"}),
            (f"{chain.matcher_url}/", {"API", "Markets", "Order book", "Trades", "Your orders"}),
            (f"{chain.signer_url}/", {"Signer", "Try it", "Errors", "Limits"}),
        ):
            assert wanted <= set(opened(page, url)), url


def test_what_stands_above_the_first_script_waits_for_nothing(chain: Program, page: Page) -> None:
    with held(page, "begin.js"):
        for url, wanted in (
            (f"{chain.node_url}/", {"Search", "API", "Node"}),
            (f"{chain.matcher_url}/", {"API", "Metrics"}),
            (f"{chain.signer_url}/", {"Signer", "Try it", "Sign and broadcast"}),
        ):
            page.open("about:blank")
            page.open(url)
            page.wait_for(PAINTED)
            assert wanted <= set(page.run(_SEEN)), url
            assert page.run("document.readyState") == "loading"


def test_a_view_that_a_link_names_never_shows_the_frame_of_another(
    chain: Program, page: Page
) -> None:
    dress(page, NARROW, "light")
    with without(page, "explorer.js"):
        assert "Transactions" in opened(page, f"{chain.node_url}/")
        assert "Transactions" not in opened(page, f"{chain.node_url}/#node")


@pytest.mark.parametrize(
    ("port", "cut", "script", "ready"),
    [
        ("node", b"<main", "explorer.js", "#blocks tr"),
        *(
            ("matcher", cut, "exchange.js", "#sign-in")
            for cut in (
                b"<main",
                b'<section class="candles"',
                b'<section id="book"',
                b"<footer",
            )
        ),
        ("signer", b"<h2><code>POST", "signer.js", "#parts [aria-current]"),
    ],
)
def test_a_page_that_comes_in_pieces_is_whole_and_does_not_move(
    port: str, cut: bytes, script: str, ready: str, chain: Program, page: Page
) -> None:
    dress(page, NARROW, "light")
    gate = Gate(cut)
    with proxy(getattr(chain, f"{port}_url"), {"/events": None}, gate) as url:
        page.open("about:blank")
        page.errors.clear()
        page.open(f"{url}/")
        fetched = (
            f"performance.getEntriesByType('resource').some(each => /{script}/.test(each.name))"
        )
        page.wait_for(f"{PAINTED} && {fetched}")
        # What is there by now is painted, and the script would run if it did not wait.
        time.sleep(0.3)
        assert page.run("document.readyState") == "loading"
        gate.opened.set()
        page.wait_for(f"document.querySelector('{ready}')")
        assert jumped(page) < SMALL_JUMP, page.run("jumps")
        assert [each for each in page.errors if "TypeError" in each] == []
        page.open("about:blank")
    page.errors.clear()
