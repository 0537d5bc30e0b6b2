"""What the explorer shows does not move, whichever answer comes last, and when there is news."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from io import BufferedIOBase
from queue import SimpleQueue
from typing import Any

import pytest

from tests.amounts import LONG
from tests.e2e import browser
from tests.e2e.browser import Page
from tests.e2e.programs import call
from tests.pages.pages import NARROW, READY, SMALL_JUMP, dress, go, held_back, jumped, patient, text
from tests.pages.proxy import events, proxy
from tests.pages.scenario import RICH, SECOND, THIRD, Scenario, send, views

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


class Told:
    """A stream of the node that tells what a test gives it."""

    def __init__(self, url: str) -> None:
        self.last = call(f"{url}/blocks/headers/last").json()
        self.above = {**self.last, "height": self.last["height"] + 1, "id": "2" * 44}
        (self._known,) = call(f"{url}/transactions/address/{SECOND}/limit/1").json()[0]
        self._queue: SimpleQueue[bytes] = SimpleQueue()

    def transaction(self, block: dict[str, Any], **members: object) -> tuple[str, object]:
        """The account's newest one, but for members."""
        place = {"height": block["height"], "id": block["id"], "index": 0}
        return "transaction", {**place, "transaction": {**self._known, **members}}

    def tell(self, *told: tuple[str, object]) -> None:
        self._queue.put(events(*told))

    def tell_beginning(self, *told: tuple[str, object]) -> None:
        """The last block and what is told by then."""
        synced = {**self.last, "transactionCount": 0}
        self.tell(("block", self.last), *told, ("synced", synced))

    def end(self) -> None:
        self._queue.put(b"")

    def __call__(self, out: BufferedIOBase) -> None:
        while written := self._queue.get(timeout=SECONDS):
            out.write(written)


@contextlib.contextmanager
def account_of(told: Told, url: str, page: Page, late: str = "^$") -> Iterator[None]:
    """An account's view before the stream begins; some of its answers are late."""
    with held_back(page, late), proxy(url, {"/events": told}) as address:
        page.open("about:blank")
        page.open(f"{address}/#account/{SECOND}")
        page.wait_for("document.querySelector('.figures')")
        try:
            yield
        finally:
            page.open("about:blank")
            told.end()
    page.errors.clear()


def asks_for_balances(page: Page, times: int) -> None:
    page.wait_for(f"pending === 0 && {_BALANCES} >= {times}")
    page.run(_DRAWN)
    assert page.run(_BALANCES) == times


@pytest.mark.parametrize("late", ["^$", "transactions.address"])
def test_a_transaction_that_comes_behind_its_block_is_news(
    late: str, played_chain: Scenario, page: Page
) -> None:
    """As those of microblocks do; also where the history comes after the stream has begun."""
    told = Told(played_chain.url)
    with account_of(told, played_chain.url, page, late):
        told.tell_beginning()
        page.wait_for("document.getElementById('live').className === 'live'")
        page.run("release()")
        # Once for the view, and once since blocks may have come between that and the stream.
        asks_for_balances(page, 2)
        told.tell(("block", told.above))
        asks_for_balances(page, 3)
        # One that the history has, as after a rollback.
        told.tell(told.transaction(told.above))
        asks_for_balances(page, 4)
        told.tell(told.transaction(told.above, id="4" * 44, sender=THIRD, recipient=THIRD))
        page.run(_DRAWN)
        assert text(page, ".hint") == ""
        told.tell(told.transaction(told.above, id="3" * 44))
        page.wait_for("document.querySelector('.hint button')")
        asks_for_balances(page, 5)


def test_a_transaction_between_the_history_and_the_stream_is_news(
    played_chain: Scenario, page: Page
) -> None:
    told = Told(played_chain.url)
    with account_of(told, played_chain.url, page):
        page.wait_for("pending === 0")
        told.tell_beginning(told.transaction(told.last, id="3" * 44))
        page.wait_for("document.querySelector('.hint button')")
        asks_for_balances(page, 2)


def test_another_branch_as_high_as_the_one_before_is_seen(
    played_chain: Scenario, page: Page
) -> None:
    """A frame may see the heights before and after, and nothing between."""
    told = Told(played_chain.url)
    with account_of(told, played_chain.url, page):
        told.tell_beginning()
        asks_for_balances(page, 2)
        told.tell(("block", told.above))
        asks_for_balances(page, 3)
        left = ("rollback", {**told.last, "transactionCount": 0})
        told.tell(left, ("block", told.above))
        page.wait_for(f"{_BALANCES} > 3")
        assert text(page, ".hint") == ""
        told.tell(left, told.transaction(told.last, id="3" * 44), ("block", told.above))
        page.wait_for("document.querySelector('.hint button')")
