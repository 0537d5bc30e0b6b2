"""Visitors who are faster than a page: keys and clicks within one frame, answers that come after a
newer question, a market or an account that is left while something is on its way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from soliton import Account, Matcher
from soliton.client.order import Order
from soliton.devnet.accounts import RICH_SEED, funded_accounts
from tests.e2e import browser
from tests.e2e.browser import Page
from tests.e2e.programs import Program, balance, call, height, signed_transfer
from tests.pages.held import a_moment, come, hold, in_our_hands, let_go
from tests.pages.pages import go, nothing_ran, prepared, text
from tests.pages.scenario import DAPP, FIRST, RICH, SECOND, issue, send
from tests.pages.test_devnet_controls import HELPERS
from tests.pages.test_exchange import (
    CANDLES,
    LIVE,
    TAKEN,
    begin_order,
    end_order,
    order,
    sign_in,
)

BUYER, OTHER = funded_accounts(ord("R"))[4:6]
COIN = 10**8
BURST = 45
"""Transactions of one block: more than the page keeps of the newest."""
_KEYS = """for (const [key, shiftKey] of %s)
  document.getElementById("chart").dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey }))"""
_WHEEL = """for (let at = 0; at < 7; at += 1)
  document.getElementById("chart").dispatchEvent(
    new WheelEvent("wheel", { deltaX: -3, cancelable: true }))"""

pytestmark = browser.MARKS


@pytest.fixture
def page(page: Page) -> Iterator[Page]:
    with in_our_hands(page):
        yield page
    nothing_ran(page)
    page.open("about:blank")


@pytest.fixture(scope="module")
def markets(chain: Program) -> tuple[str, str]:
    """Two assets with a market of an offer each."""
    made = tuple(
        issue(chain.node_url, name, decimals=8, quantity=1000 * COIN) for name in ("Iron", "Zinc")
    )
    for each in made:
        sell(chain, each, 5 * COIN)
    return made[0], made[1]


def sell(chain: Program, asset: str, price: int) -> Order:
    rich = Account.from_seed(RICH_SEED, "R")
    with Matcher(chain.matcher_url) as matcher:
        made = rich.sell(COIN, asset, price, None, matcher=matcher.public_key())
        matcher.place(made)
    return made


def bids(chain: Program, asset: str) -> list[tuple[int, int]]:
    """Prices and amounts, as the matcher tells them."""
    found = call(f"{chain.matcher_url}/matcher/orderbook/{asset}/WAVES").json()["bids"]
    return [(each["price"], each["amount"]) for each in found]


def trade_as(page: Page, chain: Program, asset: str, seed: str) -> None:
    go(page, chain.matcher_url, f"#{asset}", LIVE)
    sign_in(page, seed)
    page.wait_for("document.querySelector('#orders [data-scope]')")


def row_of(name: str) -> str:
    return f"document.querySelector('[data-order=\"{name}\"]')"


def take_back(page: Page, name: str) -> None:
    page.wait_for(f"{row_of(name)}?.querySelector('.cancel')")
    page.run(f"{row_of(name)}.querySelector('.cancel').click()")
    page.wait_for(f"{row_of(name)}?.innerText.includes('Cancelled')")


# --- the exchange ---------------------------------------------------------------------------------


def test_an_order_is_what_was_written_when_its_button_was_pressed(
    chain: Program, markets: tuple[str, str], page: Page
) -> None:
    trade_as(page, chain, markets[0], BUYER.seed)
    hold(page, "calculateFee")
    begin_order(page, "buy", "1.5", "2")
    come(page)
    for name, value in (("kind", "market"), ("price", "4"), ("amount", "7")):
        page.run(f"document.getElementById('{name}').value = '{value}'")
    let_go(page)
    said = end_order(page)
    assert said.startswith(TAKEN), said
    assert bids(chain, markets[0]) == [(150_000_000, 200_000_000)]
    name = said.removeprefix(TAKEN).strip()
    with Matcher(chain.matcher_url) as matcher:
        found = matcher.order(Account.from_seed(BUYER.seed, "R"), name)
    assert (found.order_type, found.status) == ("limit", "Accepted")
    take_back(page, name)


def test_an_order_goes_on_while_another_market_is_looked_at(
    chain: Program, markets: tuple[str, str], page: Page
) -> None:
    trade_as(page, chain, markets[0], BUYER.seed)
    hold(page, "calculateFee")
    begin_order(page, "buy", "1.25", "3")
    come(page)
    page.run(f"location.hash = '#{markets[1]}'")
    page.wait_for("document.getElementById('pair').innerText === 'Zinc / WAVES'")
    assert page.run(
        "[...document.querySelectorAll('.sides button')].map(each => each.disabled)"
    ) == [True, True]
    let_go(page)
    said = end_order(page)
    assert said.startswith(f"Iron / WAVES: {TAKEN}"), said
    assert bids(chain, markets[0]) == [(125_000_000, 300_000_000)]
    assert bids(chain, markets[1]) == []
    page.run(f"location.hash = '#{markets[0]}'")
    take_back(page, said.rpartition(" ")[2])


def test_an_account_that_is_forgotten_sends_nothing_more(
    chain: Program, markets: tuple[str, str], page: Page
) -> None:
    trade_as(page, chain, markets[0], BUYER.seed)
    hold(page, "calculateFee")
    begin_order(page, "buy", "1.75", "1")
    come(page)
    page.run("document.querySelector('#own-address + .copy').click()")
    page.wait_for("document.getElementById('seed')")
    let_go(page)
    page.wait_for("document.getElementById('outcome').innerText.includes('was not sent')")
    assert BUYER.address[:7] in text(page, "#outcome")
    assert bids(chain, markets[0]) == []


def test_who_signs_in_goes_on_with_it_in_another_market(
    chain: Program, markets: tuple[str, str], page: Page
) -> None:
    go(page, chain.matcher_url, f"#{markets[0]}", LIVE)
    page.run("document.getElementById('seed').value = 'half a phr'")
    page.run(f"location.hash = '#{markets[1]}'")
    page.wait_for("document.getElementById('pair').innerText === 'Zinc / WAVES'")
    assert page.run("document.getElementById('seed').value") == "half a phr"


def test_an_older_answer_about_orders_is_dropped(
    chain: Program, markets: tuple[str, str], page: Page
) -> None:
    trade_as(page, chain, markets[0], BUYER.seed)
    said = order(page, "buy", "1.1", "1")
    assert said.startswith(TAKEN), said
    name = said.removeprefix(TAKEN).strip()
    page.wait_for(f"{row_of(name)}?.querySelector('.cancel')")
    hold(page, "/publicKey/")
    page.run("document.querySelector('[data-scope=market]').click()")
    come(page)
    take_back(page, name)
    # It would be put right by the next answer: what is shown is looked at each time.
    page.run(f"""window.seen = [];
        new MutationObserver(() => seen.push({row_of(name)}.innerText.includes("Cancelled")))
          .observe(document.getElementById("orders"), {{ childList: true, subtree: true }})""")
    let_go(page)
    page.run("document.querySelector('[data-scope=market]').click()")
    page.wait_for("seen.length > 0")
    assert page.run("seen.every(each => each)") is True


def test_the_keyboard_stays_where_it_is_when_the_orders_are_drawn_anew(
    chain: Program, markets: tuple[str, str], page: Page
) -> None:
    trade_as(page, chain, markets[0], BUYER.seed)
    name = order(page, "buy", "1.1", "1").removeprefix(TAKEN).strip()
    page.wait_for(f"{row_of(name)}?.querySelector('.cancel')")
    page.run(f"{row_of(name)}.querySelector('.cancel').focus()")
    with Matcher(chain.matcher_url) as matcher:
        buyer = Account.from_seed(BUYER.seed, "R")
        other = buyer.buy(COIN, markets[0], COIN, None, matcher=matcher.public_key())
        matcher.place(other)
        page.wait_for(row_of(other.id))
        held = "document.activeElement.closest('tr')?.dataset.order"
        assert page.run(held) == name
        matcher.cancel(buyer, other)
    page.wait_for(f"{row_of(other.id)}?.innerText.includes('Cancelled')")
    assert page.run(held) == name
    take_back(page, name)


def test_keys_and_a_wheel_count_from_where_the_chart_is(
    chain: Program, markets: tuple[str, str], page: Page
) -> None:
    with prepared(page, CANDLES):
        go(page, chain.matcher_url, f"#{markets[0]}", LIVE)
        page.wait_for("document.getElementById('under').innerText.endsWith('V 499')")
        # There is nothing newer to go to: that must not be saved up.
        right, left = ["ArrowRight", True], ["ArrowLeft", True]
        page.run(_KEYS % json.dumps([right, right, right, left, ["ArrowLeft", False]]))
        page.wait_for("document.getElementById('under').innerText.endsWith('V 494')")
        # A slow wheel comes in steps of less than a candle.
        page.run("document.getElementById('chart').dispatchEvent(new Event('blur'))")
        page.run(_WHEEL)
        page.run(_KEYS % json.dumps([["ArrowLeft", False]]))
        page.wait_for("document.getElementById('under').innerText.endsWith('V 492')")


def test_the_pointer_goes_on_telling_of_a_book_that_changes(
    chain: Program, markets: tuple[str, str], page: Page
) -> None:
    go(page, chain.matcher_url, f"#{markets[1]}", LIVE)
    page.wait_for("document.querySelector('#depth-chart path.up')")
    page.run("document.getElementById('depth-chart').scrollIntoView()")
    left, top, width = page.run(
        "(box => [box.left, box.top, box.width])"
        "(document.getElementById('depth-chart').getBoundingClientRect())"
    )
    page.command("Input.dispatchMouseEvent", type="mouseMoved", x=left + width * 0.7, y=top + 20)
    page.wait_for("document.getElementById('depth-words').innerText.startsWith('1 ask')")
    sell(chain, markets[1], 5 * COIN)
    page.wait_for("document.getElementById('depth-words').innerText.startsWith('2 ask')")
    assert page.run("document.querySelectorAll('#depth-chart .cross').length") == 1
    page.command("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    page.wait_for("document.querySelectorAll('#depth-chart .cross').length === 0")


# --- the explorer ---------------------------------------------------------------------------------


def test_who_has_gone_on_is_not_brought_back(chain: Program, page: Page) -> None:
    send(chain.node_url, type=10, version=2, sender=SECOND, alias="gone-on", fee=100_000)
    for fragment, asked in (
        ("#search/gone-on", "/alias/by-alias/"),
        ("#alias/gone-on", "/alias/by-alias/"),
    ):
        go(page, chain.node_url)
        hold(page, asked)
        page.run(f"location.hash = '{fragment}'")
        come(page)
        page.run("location.hash = '#node'")
        page.wait_for("document.querySelector('main h1')?.innerText === 'Node'")
        let_go(page)
        assert page.run("location.hash") == "#node", fragment
        assert text(page, "main h1") == "Node"


def test_a_transaction_that_comes_again_elsewhere_is_said_to_be_there(
    chain: Program, page: Page
) -> None:
    url = chain.node_url
    taken = call(f"{url}/devnet/snapshots", "").json()["id"]
    signed = signed_transfer(url, RICH, FIRST, 5_000_001)
    call(f"{url}/transactions/broadcast", signed)
    link = f"document.querySelector('.tall .feed a[href=\"#tx/{signed['id']}\"]')"
    go(page, url)
    page.wait_for(link)
    before = height(url)
    # All of it within one frame.
    page.run("holdFrames()")
    call(f"{url}/devnet/snapshots/{taken}/revert", "")
    call(f"{url}/devnet/mine?blocks=3", "")
    assert call(f"{url}/transactions/broadcast", signed).status == 200
    after = call(f"{url}/transactions/info/{signed['id']}").json()["height"]
    assert after > before
    a_moment(page)
    page.run("letFramesGo()")
    page.wait_for(f"{link}.closest('li').querySelector('.when').innerText === '{after}'")


def test_a_transaction_that_is_cut_off_is_not_confirmed(chain: Program, page: Page) -> None:
    url = chain.node_url
    taken = call(f"{url}/devnet/snapshots", "").json()["id"]
    signed = signed_transfer(url, RICH, FIRST, 5_000_002)
    call(f"{url}/transactions/broadcast", signed)
    go(page, url, f"#tx/{signed['id']}")
    assert "Succeeded" in text(page, ".facts")
    page.run("holdFrames()")
    call(f"{url}/devnet/snapshots/{taken}/revert", "")
    call(f"{url}/devnet/mine?blocks=4", "")
    assert call(f"{url}/transactions/info/{signed['id']}").status == 404
    a_moment(page)
    page.run("letFramesGo()")
    page.wait_for("document.querySelector('main h1').innerText === 'Not found'")
    page.errors.clear()


def test_one_of_a_burst_is_seen_in_its_block(chain: Program, page: Page) -> None:
    url = chain.node_url
    call(f"{url}/devnet/mining?mode=manual", "")
    try:
        first = signed_transfer(url, RICH, FIRST, 1, fee=9_000_000)
        rest = [signed_transfer(url, RICH, FIRST, 2 + at) for at in range(BURST)]
        for each in (first, *rest):
            assert call(f"{url}/transactions/broadcast", each).status == 200
        go(page, url, f"#tx/{first['id']}")
        assert "Waiting for a block." in text(page, ".facts")
        page.run("holdFrames()")
        call(f"{url}/devnet/mine", "")
        block = call(f"{url}/blocks/last").json()
        assert block["transactionCount"] == BURST + 1
        assert block["transactions"][0]["id"] == first["id"]
        a_moment(page)
        page.run("letFramesGo()")
        page.wait_for("document.querySelector('.facts').innerText.includes('Succeeded')")
    finally:
        call(f"{url}/devnet/mining?mode=instant", "")


def test_a_balance_is_that_of_the_last_block(chain: Program, page: Page) -> None:
    url = chain.node_url
    go(page, url, f"#account/{SECOND}")
    hold(page, "/addresses/balance/details/")
    for amount in (3, 50_000_000):
        send(
            url, type=4, version=2, sender=RICH, recipient=SECOND, amount=amount, fee=100_000,
            attachment="",
        )  # fmt: skip
        come(page)
    a_moment(page)
    let_go(page)
    wanted = f"{balance(url, SECOND) / COIN:.8f}".rstrip("0")
    page.wait_for(
        f"document.querySelector('.figures dd').innerText.replaceAll('\\u202f', '') === '{wanted}'"
    )


# --- controls of a devnet -------------------------------------------------------------------------


def test_what_is_deployed_is_what_was_compiled(chain: Program, page: Page) -> None:
    go(page, chain.node_url, "#deploy")
    page.run(HELPERS)
    page.wait_for("document.querySelector('#verdict').innerText.includes('Compiled. Complexity')")
    hold(page, "compileCode")
    area = "document.querySelector('.editor')"
    page.run(f"type({area}, {json.dumps(DAPP)})")
    come(page)
    # The answer about the text before comes when somebody has written on, and nobody has asked yet.
    wrong = json.dumps(DAPP.replace("plusOne(n))", "plusTwo(n))"))
    compiled = "document.querySelector('#verdict').innerText.includes('Compiled. Complexity')"
    open_ = "!document.querySelector('main form button').disabled"
    assert page.run(
        f"(async () => {{ type({area}, {wrong}); letGo();"
        " await new Promise(done => { setTimeout(done, 100); });"
        f" return [{open_}]; }})()"
    ) == [False]
    page.wait_for("document.querySelector('#verdict').innerText.includes('line 10')")
    assert page.run(f"[{compiled}, {open_}]") == [False, False]


def test_a_busy_node_is_asked_again_to_compile(chain: Program, page: Page) -> None:
    busy_once = """
    window.fetch = (fetched => async (path, ...more) => {
      if (window.busy || !String(path).includes("compileCode")) return fetched(path, ...more);
      window.busy = true;
      return new Response('{"error": 5031, "message": "busy"}', { status: 503 });
    })(window.fetch);
    """
    with prepared(page, busy_once):
        go(page, chain.node_url, "#deploy")
        page.wait_for("document.querySelector('#verdict').innerText.includes('Compiled.')")
        assert page.run("window.busy")


def click_twice(page: Page, selector: str) -> None:
    """A double click, as a mouse makes it."""
    page.run(f"{selector}.scrollIntoView({{ block: 'center' }})")
    x, y = page.run(
        "(box => [box.left + box.width / 2, box.top + box.height / 2])"
        f"({selector}.getBoundingClientRect())"
    )
    for count in (1, 2):
        for kind in ("mousePressed", "mouseReleased"):
            page.command(
                "Input.dispatchMouseEvent",
                type=kind, x=x, y=y, button="left", buttons=1, clickCount=count,
            )  # fmt: skip


def test_a_double_click_does_not_begin_anew(chain: Program, page: Page) -> None:
    url = chain.node_url
    go(page, url, "#devnet")
    page.run(HELPERS)
    before = call(f"{url}/devnet").json()["resets"]
    click_twice(page, "button('Reset the chain')")
    page.wait_for("button('Really reset the chain?')")
    assert page.run("document.activeElement.textContent") == "Really reset the chain?"
    a_moment(page)
    assert call(f"{url}/devnet").json()["resets"] == before
    # Nor do two presses of a key.
    page.run("document.activeElement.blur()")
    page.wait_for("button('Reset the chain')")
    page.run("button('Reset the chain').focus()")
    for _ in range(2):
        for kind in ("keyDown", "keyUp"):
            letter = {"text": "\r"} if kind == "keyDown" else {}
            page.command(
                "Input.dispatchKeyEvent", type=kind, key="Enter", windowsVirtualKeyCode=13, **letter
            )
    page.wait_for("button('Really reset the chain?')")
    a_moment(page)
    assert call(f"{url}/devnet").json()["resets"] == before
