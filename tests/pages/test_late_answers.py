"""What the explorer shows does not move, whichever answer comes last, and when there is news."""

from __future__ import annotations

import threading
import time
from io import BufferedIOBase

import pytest

from tests.amounts import LONG
from tests.e2e import browser
from tests.e2e.browser import Page
from tests.e2e.programs import call
from tests.pages.pages import NARROW, READY, SMALL_JUMP, dress, go, held_back, jumped, patient, text
from tests.pages.proxy import events, proxy
from tests.pages.scenario import RICH, SECOND, Scenario, send, views

_ASKED = """
[...new Set(performance.getEntriesByType("resource").filter(each => each.initiatorType === "fetch")
  .map(each => new URL(each.name).pathname))]
"""
_BALANCES = """
performance.getEntriesByType("resource").filter(each => /balance.details/.test(each.name)).length
"""
_DRAWN = "new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))"
MANY_ANSWERS = (
    "account",
    "asset",
    *(("block", "call", "dapp", "home", "node", "rich") if LONG else ()),
)
SECONDS = 60

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
                page.run(_DRAWN)
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


def test_a_transaction_that_comes_behind_its_block_is_news(
    played_chain: Scenario, page: Page
) -> None:
    """As those of microblocks do; the first one is in the history and in the stream."""
    url = played_chain.url
    last = call(f"{url}/blocks/headers/last").json()
    block = {**last, "height": last["height"] + 1, "id": "2" * 44}
    place = {"height": block["height"], "id": block["id"], "index": 0}
    (known,) = call(f"{url}/transactions/address/{SECOND}/limit/1").json()[0]
    old, new = (
        ("transaction", {**place, "transaction": each})
        for each in (known, {**known, "id": "3" * 44})
    )

    def stream(out: BufferedIOBase) -> None:
        out.write(events(("block", last), ("synced", {**last, "transactionCount": 0})))
        for step, told in zip(steps, (("block", block), old, new), strict=True):
            step.wait(SECONDS)
            out.write(events(told))
        over.wait(SECONDS)

    steps, over = [threading.Event() for _ in range(3)], threading.Event()
    with held_back(page, "^$"), proxy(url, {"/events": stream}) as address:
        go(page, address, f"#account/{SECOND}")
        for step in steps:
            assert text(page, ".hint") == ""
            step.set()
            page.run(_DRAWN)
        page.wait_for("document.querySelector('.hint button')")
        # Once for the view, for the block and for the news.
        page.wait_for(f"pending === 0 && {_BALANCES} >= 3")
        assert page.run(_BALANCES) == 3
        page.open("about:blank")
        over.set()
    page.errors.clear()
