"""An account's view keeps up with the chain, whatever comes first and whatever is taken back: it
reads balances again, and says what its history lacks.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from io import BufferedIOBase
from queue import SimpleQueue
from typing import Any

import pytest

from tests.e2e import browser
from tests.e2e.browser import Page
from tests.e2e.programs import call
from tests.pages.pages import DRAWN, hasty, held_back, prepared, text
from tests.pages.proxy import Stream, events, proxy
from tests.pages.scenario import SECOND, THIRD, Scenario

BALANCES = """
performance.getEntriesByType("resource").filter(each => /balance.details/.test(each.name)).length
"""
REFUSED = """
performance.getEntriesByType("resource")
  .filter(each => each.initiatorType === "fetch" && /events/.test(each.name)).length
"""
"""Questions why a stream was refused."""
NEWS = "New transactions. Show them"
ALIAS = "alias:R:hal-9000"
ROLLED_BACK = "The chain rolled back. Show the present history"
FAILING = """
window.failing = false;
window.failed = 0;
window.fetch = (asked => async (path, ...more) => {
  if (failing && /PATTERN/.test(path)) {
    window.failed++;
    throw new TypeError("the network is away");
  }
  return asked(path, ...more);
})(window.fetch);
"""
SECONDS = 60

pytestmark = browser.MARKS


class Told:
    """A stream of the node that tells what a test gives it, of a chain whose last block is made up
    so that what is known of the account stands below it; and its newest transaction.
    """

    def __init__(self, url: str) -> None:
        header = call(f"{url}/blocks/headers/last").json()
        self.last = {**header, "height": header["height"] + 1, "id": "1" * 44}
        self.above = {**self.last, "height": self.last["height"] + 1, "id": "2" * 44}
        (self.known,) = call(f"{url}/transactions/address/{SECOND}/limit/1").json()[0]
        self.newest: dict[str, Any] | None = self.known
        self._queue: SimpleQueue[bytes] = SimpleQueue()
        self.made_up: dict[str, Stream | int | None] = {
            "/events": self.stream,
            f"/transactions/address/{SECOND}/limit/1": self.answer,
        }

    def transaction(self, block: dict[str, Any], **members: object) -> tuple[str, object]:
        """The one that is known, but for members."""
        place = {"height": block["height"], "id": block["id"], "index": 0}
        return "transaction", {**place, "transaction": {**self.known, **members}}

    def own(self, block: dict[str, Any], name: str = "3") -> tuple[str, object]:
        """A new one of the account, which is its newest from now on."""
        self.newest = {**self.known, "id": name * 44, "height": block["height"]}
        return self.transaction(block, id=name * 44)

    def others(self, block: dict[str, Any], *numbers: int) -> list[tuple[str, object]]:
        return [
            self.transaction(block, id=f"{number:044}", sender=THIRD, recipient=THIRD)
            for number in numbers
        ]

    def tell(self, *told: tuple[str, object]) -> None:
        self._queue.put(events(*told))

    def tell_beginning(self, *told: tuple[str, object]) -> None:
        """The last block and what is told by then."""
        synced = {**self.last, "transactionCount": 0}
        self.tell(("block", self.last), *told, ("synced", synced))

    def end(self) -> None:
        self._queue.put(b"")

    def stream(self, out: BufferedIOBase) -> None:
        while written := self._queue.get(timeout=SECONDS):
            out.write(written)

    def answer(self, out: BufferedIOBase) -> None:
        out.write(json.dumps([[self.newest] if self.newest else []]).encode())


@contextlib.contextmanager
def account_of(told: Told, url: str, page: Page, late: str = "^$") -> Iterator[None]:
    """An account's view before the stream begins; some of its answers are late."""
    with held_back(page, late), proxy(url, told.made_up) as address:
        page.open("about:blank")
        page.open(f"{address}/#account/{SECOND}")
        page.wait_for("document.querySelector('.figures')")
        try:
            yield
        finally:
            page.open("about:blank")
            told.end()
    page.errors.clear()


def hints(page: Page, words: str) -> None:
    page.wait_for(f"document.querySelector('.hint').innerText === '{words}'")


def asks_for_balances(page: Page, times: int) -> None:
    page.wait_for(f"pending === held && {BALANCES} >= {times}")
    page.run(DRAWN)
    assert page.run(BALANCES) == times


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
        told.tell(*told.others(told.above, 100))
        page.run(DRAWN)
        assert text(page, ".hint") == ""
        told.tell(told.own(told.above))
        hints(page, NEWS)
        asks_for_balances(page, 5)


def test_a_transaction_between_the_history_and_the_stream_is_news(
    played_chain: Scenario, page: Page
) -> None:
    told = Told(played_chain.url)
    with account_of(told, played_chain.url, page):
        page.wait_for("pending === 0")
        told.tell_beginning(told.own(told.last))
        hints(page, NEWS)
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
        left = ("rollback", told.last)
        told.tell(left, ("block", told.above))
        page.wait_for(f"{BALANCES} > 3")
        assert text(page, ".hint") == ""
        told.tell(left, told.own(told.last), ("block", told.above))
        hints(page, NEWS)
        # What was news is taken back, by a rollback of the block and by one of a microblock.
        told.newest = told.known
        told.tell(("rollback", {**told.last, "transactionCount": 0}))
        hints(page, "")
        told.tell(told.own(told.last, "5"))
        hints(page, NEWS)
        told.newest = told.known
        told.tell(("rollback", {**told.last, "transactionCount": 0}))
        hints(page, "")


def test_a_history_that_a_rollback_has_changed_says_so(played_chain: Scenario, page: Page) -> None:
    told = Told(played_chain.url)
    with account_of(told, played_chain.url, page):
        told.tell_beginning()
        asks_for_balances(page, 2)
        below = {**told.last, "height": told.known["height"] - 1}
        # It has been rolled back to that, and has all of it again.
        told.tell(("rollback", below), ("block", told.last))
        page.wait_for(f"pending === 0 && {BALANCES} > 2")
        assert text(page, ".hint") == ""
        told.newest = None
        told.tell(("rollback", below))
        hints(page, ROLLED_BACK)
        told.newest = told.known
        told.tell(("block", told.last), told.transaction(told.last))
        hints(page, "")
        # The same transaction, higher.
        told.newest = {**told.known, "height": told.above["height"]}
        told.tell(("block", told.above), told.transaction(told.above))
        hints(page, ROLLED_BACK)


@pytest.mark.parametrize("removed", ["a block", "a microblock"])
def test_a_rollback_while_the_view_opens(removed: str, played_chain: Scenario, page: Page) -> None:
    told = Told(played_chain.url)
    with account_of(told, played_chain.url, page, "balance.details"):
        page.run("release()")
        told.tell_beginning(("block", told.above), told.own(told.above))
        hints(page, NEWS)
        asks_for_balances(page, 2)
        page.run("location.hash = '#node'")
        page.wait_for("document.querySelector('h1').innerText === 'Node'")
        page.run("hold()")
        page.run(f"location.hash = '#account/{SECOND}'")
        page.wait_for("held > 0")
        if removed == "a block":
            told.tell(("rollback", told.last), ("block", told.above))
        else:
            told.tell(("rollback", {**told.above, "transactionCount": 0}))
        page.run(DRAWN)
        page.run("release()")
        page.wait_for("document.querySelector('h1').innerText === 'Account'")
        asks_for_balances(page, 4)


def test_what_could_not_be_asked_for_is_asked_for_again(played_chain: Scenario, page: Page) -> None:
    """Not at once: others' transactions are no reason."""
    told = Told(played_chain.url)
    failing = FAILING.replace("PATTERN", "balance.details")
    with prepared(page, failing), account_of(told, played_chain.url, page):
        told.tell_beginning()
        asks_for_balances(page, 2)
        page.run("failing = true")
        told.tell(("block", told.above))
        page.wait_for("failed > 0")
        for number in range(100, 105):
            told.tell(*told.others(told.above, number))
            page.run(DRAWN)
        assert page.run("failed") < 4
        page.run("failing = false")
        asks_for_balances(page, 3)


def test_answers_that_are_none(played_chain: Scenario, page: Page) -> None:
    """As those of a proxy before the node may be: they are asked for again, too."""
    told = Told(played_chain.url)
    wrong = FAILING.replace("PATTERN", "balance.details").replace(
        'throw new TypeError("the network is away")',
        'return new Response("<p>Later", { headers: { "Content-Type": "text/html" } })',
    )
    with prepared(page, wrong), account_of(told, played_chain.url, page):
        told.tell_beginning()
        asks_for_balances(page, 2)
        page.run("failing = true")
        told.tell(("block", told.above))
        page.wait_for("failed > 0")
        page.run("failing = false")
        asks_for_balances(page, 3)
        assert [each for each in page.errors if "TypeError" in each] == []


def test_a_history_that_did_not_come_has_no_news(played_chain: Scenario, page: Page) -> None:
    told = Told(played_chain.url)
    failing = FAILING.replace("PATTERN", "transactions.address.*20").replace("false", "true", 1)
    more = "[...document.querySelectorAll('button')].find(each => /older/.test(each.innerText))"
    with prepared(page, failing), account_of(told, played_chain.url, page):
        told.tell_beginning(told.transaction(told.last))
        asks_for_balances(page, 2)
        assert text(page, ".hint") == ""
        page.run("failing = false")
        page.run(f"{more}.click()")
        page.wait_for("document.querySelector('.feed li')")
        told.tell(told.own(told.last))
        hints(page, NEWS)


def test_news_before_a_burst_of_others(played_chain: Scenario, page: Page) -> None:
    """More than the view keeps of the stream, in one frame and while an answer is on its way."""
    told = Told(played_chain.url)
    with account_of(told, played_chain.url, page, "balance.details"):
        page.run("release()")
        told.tell_beginning(*told.others(told.last, 50))
        asks_for_balances(page, 2)
        page.run("hold()")
        told.tell(("block", told.above))
        page.wait_for("held > 0")
        told.tell(told.own(told.above), *told.others(told.above, *range(100, 140)))
        page.run(DRAWN)
        page.run("release()")
        hints(page, NEWS)
        told.newest = told.known
        told.tell(("rollback", told.last))
        hints(page, "")
        told.tell(("block", told.above), told.own(told.above), *told.others(told.above, 200, 201))
        hints(page, NEWS)


def test_an_account_that_was_left_is_not_asked_about(played_chain: Scenario, page: Page) -> None:
    told = Told(played_chain.url)
    with account_of(told, played_chain.url, page, "balance.details"):
        page.run("release()")
        told.tell_beginning()
        asks_for_balances(page, 2)
        page.run("hold()")
        told.tell(("block", told.above))
        page.wait_for("held > 0")
        page.run("location.hash = '#node'")
        page.wait_for("document.querySelector('h1').innerText === 'Node'")
        told.tell(("block", {**told.above, "height": told.above["height"] + 1, "id": "7" * 44}))
        page.run(DRAWN)
        page.run("release()")
        asks_for_balances(page, 3)


@pytest.mark.parametrize("role", ["alias", "order1"])
def test_who_is_paid_by_an_alias_or_trades_hears_of_it(
    role: str, played_chain: Scenario, page: Page
) -> None:
    """Also where it is told of before the aliases are known."""
    member = {"recipient": ALIAS} if role == "alias" else {role: {"sender": SECOND}}
    told = Told(played_chain.url)
    payment = told.transaction(
        told.last, sender=THIRD, id="3" * 44, **{"recipient": THIRD, **member}
    )
    with account_of(told, played_chain.url, page, "alias.by-address"):
        page.wait_for("held > 0")
        # So many that no older ones are looked for, of which some are paid by the alias.
        told.tell_beginning(*told.others(told.last, *range(100, 112)))
        asks_for_balances(page, 2)
        told.own(told.last)
        told.tell(payment)
        page.run(DRAWN)
        page.run("release()")
        asks_for_balances(page, 3)
        hints(page, NEWS)


def test_a_refusal_that_passes_is_no_other_chain(played_chain: Scenario, page: Page) -> None:
    """As by a node that is busy, when its stream breaks and is asked for again."""
    told = Told(played_chain.url)
    broken, over = threading.Event(), threading.Event()
    state = "document.getElementById('live').className"

    def stream(out: BufferedIOBase) -> None:
        synced = {**told.last, "transactionCount": 0}
        out.write(b"id: here\n" + events(("block", told.last), ("synced", synced)))
        (over if broken.is_set() else broken).wait(SECONDS)

    told.made_up["/events"] = stream
    with hasty(page, 2_000), account_of(told, played_chain.url, page):
        page.wait_for(f"{state} === 'live'")
        told.made_up["/events"] = 503
        broken.set()
        page.wait_for(f"{REFUSED} > 0")
        told.made_up["/events"] = stream
        page.wait_for(f"{state} === 'live'")
        assert "another chain" not in text(page, "#notice")
        page.open("about:blank")
        over.set()
