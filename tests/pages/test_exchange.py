"""The exchange page in a real browser, on a devnet: orders that the page signs, matched and found
on the chain.
"""

from __future__ import annotations

import json
import time
from itertools import pairwise

import pytest

from soliton import Account, Matcher
from soliton.devnet.accounts import RICH_SEED, funded_accounts
from tests.e2e import browser
from tests.e2e.browser import Page
from tests.e2e.programs import Program, call, devnet, eventually
from tests.pages.crowd import LEVELS, crowd
from tests.pages.pages import (
    AUDITS,
    LOOKS,
    READY,
    SMALL_JUMP,
    axe_findings,
    dress,
    go,
    held_back,
    jumped,
    needs_axe,
    nothing_ran,
    prepared,
    save,
    second_tab,
    text,
    wrong_clock,
)
from tests.pages.scenario import NAMES, RICH, issue, send

SELLER, BUYER = funded_accounts(ord("R"))[:2]
LIVE = (
    "document.getElementById('live')?.className === 'live'"
    " && document.querySelectorAll('#asks tr').length"
)
COIN = 10**8
MINUTE = 60_000
TAKEN = "Order accepted: "
LOADING = "Loading\u2026"
CANDLES = """
window.fetch = (asked => async (path, ...more) => /candles/.test(path)
  ? new Response(JSON.stringify(Array.from({ length: 500 }, (_, at) =>
      [1.7e12 + at * 60000, "1.5", "2", "0.5", "1", String(at), String(at), 1])))
  : asked(path, ...more))(window.fetch);
"""
BEYOND = """
[...document.querySelectorAll("main section")].flatMap(section => {
  const edge = section.getBoundingClientRect().right;
  return [...section.querySelectorAll("input, select, button, p")]
    .filter(each => !each.closest(".levels, .list, .scroll, summary ~ *"))
    .filter(each => each.getBoundingClientRect().right > edge
      || each.tagName === "P" && each.scrollWidth > each.clientWidth)
    .map(each => each.outerHTML.slice(0, 100));
})
"""
_NO_POLLING = """
window.setInterval = (begin => (what, after, ...more) =>
  begin(what, after < 5000 ? after : 2 ** 30, ...more))(window.setInterval);
"""

pytestmark = browser.MARKS


@pytest.fixture(scope="module")
def asset(chain: Program) -> str:
    """With a name of markup, and a market that an order of the seller has opened."""
    url = chain.node_url
    found = issue(url, NAMES[0], decimals=8, quantity=10**6 * COIN)
    send(
        url, type=4, version=2, sender=RICH, recipient=SELLER.address, amount=1000 * COIN,
        assetId=found, fee=100_000, attachment="",
    )  # fmt: skip
    seller = Account.from_seed(SELLER.seed, "R")
    with Matcher(chain.matcher_url) as matcher:
        key = call(f"{chain.matcher_url}/matcher").json()
        for number in range(1, 6):
            price = 5 * COIN + number * 123_456
            matcher.place(seller.sell(number * COIN, found, price, None, matcher=key))
    return found


def sign_in(page: Page, seed: str) -> None:
    page.run(f"document.getElementById('seed').value = {json.dumps(seed)}")
    page.run("document.querySelector('#account form button').click()")
    page.wait_for("document.getElementById('balances')?.innerText.includes('to trade')")


def begin_order(page: Page, side: str, price: str, amount: str, kind: str = "limit") -> None:
    """Fill in the form and press the button."""
    page.run("document.getElementById('outcome').replaceChildren()")
    for name, value in (("price", price), ("amount", amount), ("kind", kind)):
        page.run(f"document.getElementById('{name}').value = {json.dumps(value)}")
    page.run(f"document.querySelector('.sides .{side}').click()")


def end_order(page: Page) -> str:
    """What the page says in the end."""
    page.wait_for("!document.querySelector('.sides button').disabled")
    return text(page, "#outcome")


def order(page: Page, side: str, price: str, amount: str, kind: str = "limit") -> str:
    begin_order(page, side, price, amount, kind)
    return end_order(page)


def test_orders_are_signed_matched_and_on_the_chain(chain: Program, asset: str, page: Page) -> None:
    go(page, chain.matcher_url, "", LIVE)
    assert text(page, "#pair") == f"{NAMES[0]} / WAVES"
    sign_in(page, SELLER.seed)
    assert text(page, "#own-address") == SELLER.address
    assert "985 <b>Gold</b> to trade" in text(page, "#balances")
    said = order(page, "sell", "2.5", "3")
    assert said.startswith(TAKEN), said
    page.wait_for("document.querySelector('#asks tr:last-child button')?.innerText === '2.5'")
    page.wait_for("document.querySelectorAll('#orders tbody tr').length === 6")

    go(page, chain.matcher_url, "", LIVE)
    page.wait_for("document.getElementById('seed')")
    sign_in(page, BUYER.seed)
    assert "no price" in order(page, "buy", "a lot", "1")
    assert "no amount" in order(page, "buy", "2.5", "0.123456789")
    assert "Not enough tradable balance" in order(page, "buy", "5000", "10000")
    page.run("document.querySelector('#asks tr:last-child button').click()")
    assert page.run("document.getElementById('price').value") == "2.5"
    said = order(page, "buy", "2.5", "1.25")
    assert said.startswith(TAKEN), said
    mine = said.removeprefix(TAKEN).strip()
    page.wait_for(
        f"document.querySelector('[data-order=\"{mine}\"]')?.innerText.includes('Filled')"
    )
    page.wait_for("document.querySelector('#trades td.buy')?.innerText === '2.5'")
    page.wait_for("document.querySelectorAll('#chart .body').length === 1")
    save(page, "exchange-matched.png")

    said = order(page, "buy", "1.5", "2")
    rests = said.removeprefix(TAKEN).strip()
    page.wait_for("document.querySelector('#bids tr button')?.innerText === '1.5'")
    page.wait_for(f"document.querySelector('[data-order=\"{rests}\"] .cancel')")
    page.run(f"document.querySelector('[data-order=\"{rests}\"] .cancel').click()")
    page.wait_for(
        f"document.querySelector('[data-order=\"{rests}\"]')?.innerText.includes('Cancelled')"
    )
    page.wait_for("document.querySelectorAll('#bids tr').length === 0")
    said = order(page, "buy", "3", "0.75", "market")
    assert said.startswith(TAKEN), said
    page.wait_for("document.querySelectorAll('#trades tr').length === 2")

    page.run(f"document.querySelector('[data-order=\"{mine}\"] .copy').click()")
    page.wait_for(f"document.querySelector('[data-order=\"{mine}\"] a.id')")
    nothing_ran(page)
    link = str(page.run(f"document.querySelector('[data-order=\"{mine}\"] a.id').href"))
    assert link.startswith(f"{chain.node_url}/#tx/")
    name = link.rpartition("/")[2]
    eventually(
        lambda: call(f"{chain.node_url}/transactions/info/{name}").status == 200, "the exchange"
    )
    page.open(link)
    page.wait_for(READY)
    page.wait_for("document.querySelector('.sentence').innerText.includes('at 2.5')")
    assert "bought 1.25" in text(page, ".sentence")
    save(page, "exchange-on-chain.png")
    assert page.errors == [] or all("400" in each for each in page.errors), page.errors


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_page_fits_into_the_window(
    chain: Program, asset: str, page: Page, width: int, scheme: str
) -> None:
    dress(page, width, scheme)
    go(page, chain.matcher_url, "", f"{LIVE} && document.getElementById('fee')")
    assert jumped(page) < SMALL_JUMP, page.run("jumps")
    sign_in(page, SELLER.seed)
    # The id of an order is long.
    told = order(page, "sell", "9", "1")
    assert told.startswith(TAKEN), told
    page.wait_for(f"document.getElementById('chart').textContent !== '{LOADING}'")
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.run(BEYOND) == []
    save(page, f"exchange-{width}-{scheme}.png")
    name = told.removeprefix(TAKEN).strip()
    row = f"document.querySelector('[data-order=\"{name}\"]')"
    page.wait_for(f"{row}?.querySelector('.cancel')")
    page.run(f"{row}.querySelector('.cancel').click()")
    page.wait_for(f"{row}?.innerText.includes('Cancelled')")
    dress(page, 1280, "light")


@needs_axe
@pytest.mark.parametrize(("width", "scheme", "only"), AUDITS)
def test_axe_finds_nothing(
    chain: Program, asset: str, page: Page, width: int, scheme: str, only: str
) -> None:
    dress(page, width, scheme)
    go(page, chain.matcher_url, "", LIVE)
    assert axe_findings(page, only) == []
    sign_in(page, SELLER.seed)
    page.wait_for("document.querySelector('#orders tbody tr')")
    page.wait_for("document.getElementById('fee')")
    assert axe_findings(page, only) == []
    dress(page, 1280, "light")


def test_levels_are_grouped_and_markets_searched(chain: Program, asset: str, page: Page) -> None:
    go(page, chain.matcher_url, "", LIVE)
    before = int(page.run("document.querySelectorAll('#asks tr').length"))
    assert before >= 5
    page.wait_for("document.querySelectorAll('#group option').length > 3")
    page.run(
        "(document.getElementById('group').value = '1',"
        " document.getElementById('group').dispatchEvent(new Event('change')))"
    )
    page.wait_for("document.querySelectorAll('#asks tr').length <= 2")
    assert text(page, "#asks tr td:last-child").startswith("1")
    page.run(
        "(document.getElementById('find').value = 'nothing like that',"
        " document.getElementById('find').dispatchEvent(new Event('input')))"
    )
    page.wait_for("document.getElementById('markets').innerText.includes('No such market')")
    nothing_ran(page)


def test_a_book_of_ten_thousand_levels_has_few_rows(chain: Program, asset: str, page: Page) -> None:
    with crowd(page):
        go(page, chain.matcher_url, "", LIVE)
        page.wait_for("document.getElementById('asks-box').ariaLabel.includes('levels')")
        page.wait_for(
            f"parseInt(document.getElementById('bids-box').ariaLabel.slice(6)) >= {LEVELS}"
        )
        rows = "document.querySelectorAll('#asks tr, #bids tr').length"
        assert int(page.run(rows)) < 100
        page.run("document.getElementById('asks-box').scrollTop = 0")
        page.wait_for("document.querySelector('#asks button').innerText === '20'")
        page.run("document.getElementById('bids-box').scrollTop = 1e9")
        page.wait_for("document.querySelector('#bids tr:last-child button').innerText === '0.5'")
        assert int(page.run(rows)) < 100
        # What comes behind the best must not move what is looked at.
        page.run("crowd('6', '1')")
        page.wait_for("document.getElementById('spread').innerText !== ''")
        assert page.run("document.querySelector('#bids tr:last-child button').innerText") == "0.5"
        page.wait_for("document.querySelectorAll('#depth-chart path').length === 2")
        assert (
            len(page.run("document.querySelector('#depth-chart .up').getAttribute('d')")) < 60_000
        )
        nothing_ran(page)


def test_a_market_has_an_address_terms_and_charts(chain: Program, asset: str, page: Page) -> None:
    go(page, chain.matcher_url, f"#{asset}", LIVE)
    page.wait_for(f"location.hash === '#{asset}/WAVES'")
    page.wait_for("document.getElementById('fee')?.innerText.includes('0.003 WAVES')")
    assert "0.00000001 WAVES" in text(page, "#terms")
    link = str(page.run("document.querySelector('#terms a').href"))
    assert link == f"{chain.node_url}/#asset/{asset}"
    page.wait_for("document.querySelector('#depth-chart path')")
    box = page.run(
        "(svg => [svg.viewBox.baseVal.width, svg.clientWidth])(document.getElementById('chart'))"
    )
    assert box[0] == box[1], "the chart is stretched"
    # All trades were at one price, or there were none.
    lines = page.run(
        "[...document.querySelectorAll('#chart .grid')].map(each => +each.getAttribute('y1'))"
    )
    assert all(one - other > 12 for one, other in pairwise(lines)), "prices stand on each other"


def test_the_chart_has_a_crosshair_and_is_looked_at_from_near(
    chain: Program, asset: str, page: Page
) -> None:
    with prepared(page, CANDLES):
        go(page, chain.matcher_url, f"#{asset}", LIVE)
        page.wait_for("document.querySelector('#chart .body')")
        assert "V 499" in text(page, "#under")
        count = "Number(document.getElementById('chart').dataset.candles)"
        before = page.run(count)
        page.run("document.querySelector('#zoom button:last-child').click()")
        page.wait_for(f"{count} < {before}")
        page.run("document.querySelector('#zoom button').click()")
        page.run("document.querySelector('#zoom button').click()")
        page.wait_for(f"{count} > {before}")
        left, top = page.run(
            "(box => [box.left, box.top])(document.getElementById('chart').getBoundingClientRect())"
        )
        page.command("Input.dispatchMouseEvent", type="mouseMoved", x=left + 9, y=top + 40)
        page.wait_for("document.querySelectorAll('#chart .cross').length === 2")
        oldest = int(text(page, "#under").rpartition("V ")[2])
        assert oldest < 490
        page.command("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
        page.wait_for("!document.querySelector('#chart .cross')")
        page.run("document.getElementById('chart').focus()")
        page.command("Input.dispatchKeyEvent", type="rawKeyDown", key="ArrowLeft")
        page.wait_for("document.querySelectorAll('#chart .cross').length === 2")
        # Keys may come faster than the page draws.
        page.run(
            """for (const key of ["ArrowLeft", "ArrowLeft", "ArrowRight", "ArrowLeft"])
            document.getElementById("chart").dispatchEvent(new KeyboardEvent("keydown", { key }))"""
        )
        page.wait_for("document.getElementById('under').innerText.endsWith('V 497')")
        nothing_ran(page)


def test_own_orders_of_all_markets(chain: Program, asset: str, page: Page) -> None:
    go(page, chain.matcher_url, "", LIVE)
    sign_in(page, SELLER.seed)
    for scope in ("all", "open", "market"):
        page.wait_for(f"document.querySelector('[data-scope={scope}]')")
        page.run(f"document.querySelector('[data-scope={scope}]').click()")
        page.wait_for(f"document.querySelector('[data-scope={scope}][aria-pressed=true]')")
        page.wait_for("document.querySelectorAll('#orders tbody tr').length >= 5")
    # Of the three for sale at 2.5, two were taken.
    assert "Partially filled" in text(page, "#orders")


def test_names_of_strangers_are_texts(chain: Program, asset: str, page: Page) -> None:
    rich = Account.from_seed(RICH_SEED, "R")
    made = [issue(chain.node_url, name, decimals=8, quantity=10 * COIN) for name in NAMES[1:]]
    with Matcher(chain.matcher_url) as matcher:
        key = call(f"{chain.matcher_url}/matcher").json()
        for each in made:
            matcher.place(rich.sell(COIN, each, COIN, None, matcher=key))
    dress(page, 360, "light")
    for each in made[::3]:
        go(page, chain.matcher_url, f"#{each}", LIVE)
        sign_in(page, RICH_SEED)
        page.wait_for("document.querySelector('#orders tbody tr')")
        page.wait_for("document.getElementById('fee')")
        nothing_ran(page)
        assert page.run("document.documentElement.scrollWidth") <= 360
    shown = text(page, "#markets")
    assert "\u25a1evil\u25a1" in shown and '"><script>x() / WAVES' in shown
    dress(page, 1280, "light")


def told_of(page: Page) -> dict[str, str]:
    """What stands where there is nothing to show."""
    return {
        name: str(page.run(f"document.getElementById('{name}').textContent"))
        for name in ("markets", "trades", "chart", "spread", "depth-chart")
    }


def test_nothing_is_said_of_what_is_not_known_yet(chain: Program, asset: str, page: Page) -> None:
    with held_back(page, "tickers"):
        page.open("about:blank")
        page.open(chain.matcher_url)
        page.wait_for("document.getElementById('chart')?.textContent && window.release")
        assert {*told_of(page).values()} == {LOADING}
        page.run("release()")
        page.wait_for(LIVE)
    other = opened_market(chain, "Other")
    with held_back(page, "trades|candles"):
        go(page, chain.matcher_url, f"#{asset}", LIVE)
        assert told_of(page)["trades"] == told_of(page)["chart"] == LOADING
        page.run("release()")
        page.wait_for(f"document.getElementById('chart').textContent !== '{LOADING}'")
        assert told_of(page)["trades"] != LOADING
        page.run("hold()")
        page.run(f"location.hash = '#{other}'")
        page.wait_for("document.getElementById('pair').innerText === 'Other / WAVES'")
        assert told_of(page)["trades"] == LOADING
        page.run("release()")
        page.wait_for("document.getElementById('trades').innerText === 'none yet'")
        page.wait_for("document.getElementById('chart').textContent === 'No trades yet.'")


@pytest.mark.parametrize("minutes", [-90, 90])
def test_orders_go_by_the_clock_of_the_matcher(
    chain: Program, asset: str, page: Page, minutes: int
) -> None:
    with wrong_clock(page, minutes):
        go(page, chain.matcher_url, f"#{asset}", LIVE)
        page.wait_for("document.getElementById('clock').innerText")
        told = "ahead of" if minutes < 0 else "behind"
        assert f"The matcher's clock is 1 h 30 min {told} this" in text(page, "#clock")
        sign_in(page, BUYER.seed)
        told = order(page, "buy", "1.1", "1")
        assert told.startswith(TAKEN), told
        row = f"document.querySelector('[data-order=\"{told.removeprefix(TAKEN).strip()}\"]')"
        page.wait_for(row)
        when = int(page.run(f"{row}.querySelector('time').dataset.ms"))
        assert abs(when - time.time() * 1000) < MINUTE
        assert " h" not in str(page.run(f"{row}.querySelector('time').innerText"))
        page.run(f"{row}.querySelector('.cancel').click()")
        page.wait_for(f"{row}?.innerText.includes('Cancelled')")
    assert page.errors == [] or all("400" in each for each in page.errors), page.errors


def test_an_order_shows_in_both_tabs(chain: Program, asset: str, page: Page) -> None:
    # By the account's stream, at once: neither tab asks from time to time.
    with second_tab(page) as other, prepared(page, _NO_POLLING), prepared(other, _NO_POLLING):
        for tab in (page, other):
            go(tab, chain.matcher_url, f"#{asset}", LIVE)
            sign_in(tab, BUYER.seed)
            tab.wait_for("document.querySelector('#orders [data-scope]')")
        told = order(page, "buy", "1.2", "1")
        assert told.startswith(TAKEN), told
        row = f"document.querySelector('[data-order=\"{told.removeprefix(TAKEN).strip()}\"]')"
        for tab in (page, other):
            tab.wait_for("document.querySelector('#bids tr button')?.innerText === '1.2'")
            tab.wait_for(f"{row}?.innerText.includes('Accepted')")
        other.run(f"{row}.querySelector('.cancel').click()")
        for tab in (page, other):
            tab.wait_for("document.querySelectorAll('#bids tr').length === 0")
            tab.wait_for(f"{row}?.innerText.includes('Cancelled')")
        assert other.errors == []


def opened_market(program: Program, name: str) -> str:
    """A new asset, and an order of it at 5."""
    made = issue(program.node_url, name, decimals=8, quantity=10 * COIN)
    with Matcher(program.matcher_url) as matcher:
        key = call(f"{program.matcher_url}/matcher").json()
        rich = Account.from_seed(RICH_SEED, "R")
        matcher.place(rich.sell(COIN, made, 5 * COIN, None, matcher=key))
    return made


def test_the_list_of_markets_moves_nothing(chain: Program, page: Page) -> None:
    several = [opened_market(chain, f"Market {number}") for number in range(6)]
    for width, scheme in LOOKS:
        dress(page, width, scheme)
        go(page, chain.matcher_url, f"#{several[0]}", LIVE)
        page.wait_for(
            f"document.querySelectorAll('#markets tr[data-symbol]').length >= {len(several)}"
        )
        assert jumped(page) < SMALL_JUMP, (width, page.run("jumps"))
    dress(page, 1280, "light")


def test_the_page_goes_on_after_a_restart(page: Page) -> None:
    with devnet() as program:
        page.open("about:blank")
        page.open(program.matcher_url)
        page.wait_for("document.getElementById('markets')?.innerText.includes('No markets yet')")
        page.wait_for("document.getElementById('depth-chart').textContent === 'No orders.'")
        assert told_of(page)["chart"] == "No trades yet."
        opened_market(program, "Before")
        port = program.matcher_url.rpartition(":")[2]
        go(page, program.matcher_url, "", LIVE)
        assert text(page, "#pair") == "Before / WAVES"
    page.wait_for("document.getElementById('live').className === 'broken'")
    with devnet("--matcher-port", port) as program:
        opened_market(program, "Behind")
        page.wait_for("document.getElementById('live').className === 'live'")
        page.wait_for("document.getElementById('pair').innerText === 'Behind / WAVES'")
        page.wait_for("document.querySelector('#asks button')?.innerText === '5'")
    page.errors.clear()
