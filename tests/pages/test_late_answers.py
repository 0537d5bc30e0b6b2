"""What the explorer shows does not move, whichever answer comes last, and when there is news."""

from __future__ import annotations

import time

import pytest

from tests.amounts import LONG
from tests.e2e import browser
from tests.e2e.browser import Page
from tests.pages.pages import (
    DRAWN,
    NARROW,
    READY,
    SMALL_JUMP,
    dress,
    go,
    held_back,
    jumped,
    patient,
)
from tests.pages.scenario import RICH, SECOND, Scenario, send, views

_ASKED = """
[...new Set(performance.getEntriesByType("resource").filter(each => each.initiatorType === "fetch")
  .map(each => new URL(each.name).pathname))]
"""
MANY_ANSWERS = (
    "account",
    "asset",
    *(("block", "call", "dapp", "home", "node", "rich") if LONG else ()),
)

pytestmark = browser.MARKS


@pytest.mark.parametrize("name", MANY_ANSWERS)
def test_whichever_answer_comes_last_moves_nothing(
    name: str, played_chain: Scenario, page: Page
) -> None:
    dress(page, NARROW, "light")
    fragment = views(played_chain)[name]
    with patient(page):
        go(page, played_chain.url, fragment)
        asked = page.run(_ASKED)
        assert asked
        moved = {}
        for path in asked:
            with held_back(page, path.replace("/", r"\/") + r"(\?|$)"):
                page.open("about:blank")
                page.open(f"{played_chain.url}/{fragment}")
                page.wait_for("window.release")
                # All the others have come by then.
                time.sleep(0.3)
                page.run("release()")
                page.wait_for(f"pending === 0 && {READY}")
                page.run(DRAWN)
                if jumped(page) >= SMALL_JUMP:
                    moved[path] = page.run("jumps")
    dress(page, 1280, "light")
    assert moved == {}


def test_news_of_an_account_moves_nothing(played_chain: Scenario, page: Page) -> None:
    dress(page, NARROW, "light")
    go(page, played_chain.url, f"#account/{SECOND}")
    top = "document.querySelector('.figures').getBoundingClientRect().top"
    before = page.run(top)
    send(
        played_chain.url, type=4, version=2, sender=RICH, recipient=SECOND, amount=1,
        fee=100_000, attachment="",
    )  # fmt: skip
    page.wait_for("document.querySelector('.hint button')")
    assert page.run(top) == before
    page.run("document.querySelector('.hint button').click()")
    page.wait_for(f"{READY} && !document.querySelector('.hint button')")
    dress(page, 1280, "light")
