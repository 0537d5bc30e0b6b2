"""The controls of a devnet, pressed in a real browser: blocks, time, snapshots, money, scripts."""

from __future__ import annotations

import json

import pytest

from soliton import Account, Node
from soliton.devnet.accounts import funded_accounts
from tests.e2e import browser
from tests.e2e.browser import Page
from tests.e2e.programs import Program, balance, call, height
from tests.pages.pages import (
    AUDITS,
    LOOKS,
    axe_findings,
    clipped,
    dress,
    go,
    looks,
    needs_axe,
    nothing_ran,
    save,
    text,
)
from tests.pages.scenario import DAPP, RICH, send

FIRST, SECOND = (each.address for each in funded_accounts(ord("R"))[:2])
STRANGER = "3M1R3cdbQKk7r43m2CwwE27SwRLFTrDJ4TR"
HOUR = 3_600_000
COIN = 10**8

pytestmark = browser.MARKS
HELPERS = """
window.button = words => [...document.querySelectorAll("main button")]
  .find(each => each.textContent === words && !each.disabled);
window.field = (words, number = 0) => [...document.querySelectorAll("main label")]
  .filter(each => each.textContent.startsWith(words))[number]
  .querySelector("input, select, textarea");
window.type = (element, text) => {
  element.value = text;
  element.dispatchEvent(new Event("input", { bubbles: true }));
  element.dispatchEvent(new Event("change", { bubbles: true }));
};
true
"""


def open_view(page: Page, url: str, fragment: str) -> None:
    go(page, url, fragment)
    page.run(HELPERS)


def write(page: Page, label: str, words: str, number: int = 0) -> None:
    page.run(f"type(field({json.dumps(label)}, {number}), {json.dumps(words)})")


def press(page: Page, words: str) -> None:
    page.wait_for(f"button({json.dumps(words)})")
    page.run(f"button({json.dumps(words)}).click()")


def said(page: Page, words: str) -> None:
    """Wait until the page has noted it, as the last thing that was done."""
    first = "document.querySelector('main section:last-child .feed li')"
    page.wait_for(f"{first}?.innerText.includes({json.dumps(words)})")


def test_blocks_and_snapshots(chain: Program, page: Page) -> None:
    url = chain.node_url
    open_view(page, url, "#devnet")
    before = height(url)
    write(page, "Blocks", "3")
    press(page, "Mine")
    said(page, "mined 3 blocks")
    assert height(url) == before + 3
    press(page, "Take a snapshot")
    said(page, "took snapshot 0x")
    write(page, "Blocks", "2")
    press(page, "Mine")
    said(page, "mined 2 blocks")
    press(page, "Revert to it")
    said(page, "reverted to snapshot")
    assert height(url) == before + 3
    page.wait_for("document.getElementById('notice').innerText.includes('rolled back 2 blocks')")
    press(page, "Delete")
    page.wait_for("document.querySelector('main').innerText.includes('No snapshots yet')")


def test_what_nobody_signs_has_the_time_of_the_chain(chain: Program, page: Page) -> None:
    url = chain.node_url
    somebody = Account.from_seed("in no wallet of the node", "R")
    send(
        url, type=4, version=2, sender=RICH, recipient=somebody.address, amount=10 * COIN,
        fee=100_000, attachment="",
    )  # fmt: skip
    with Node(url) as node:
        node.send(somebody.alias("somebody-else")).wait()
    call(f"{url}/devnet/clock?travel={5 * HOUR}", "")
    open_view(page, url, "#deploy")
    page.wait_for("document.querySelector('#verdict').innerText.includes('Compiled. Complexity')")
    page.wait_for("document.getElementById('notice').innerText.includes('5 h ahead')")
    write(page, "Account", somebody.address)
    press(page, "Deploy")
    page.wait_for("document.querySelector('main').innerText.includes('Deployed on')")
    newest = call(f"{url}/transactions/address/{somebody.address}/limit/1").json()[0][0]
    assert newest["type"] == 13
    assert abs(newest["timestamp"] - call(f"{url}/devnet/clock").json()["time"]) < HOUR


def test_time(chain: Program, page: Page) -> None:
    url = chain.node_url
    open_view(page, url, "#devnet")
    write(page, "Unit", str(HOUR))
    write(page, "Forward by", "5")
    before = call(f"{url}/devnet/clock").json()["time"]
    press(page, "Travel")
    said(page, "travelled 5 h")
    assert call(f"{url}/devnet/clock").json()["time"] >= before + 5 * HOUR
    press(page, "Freeze the clock")
    said(page, "froze the clock")
    stood = call(f"{url}/devnet/clock").json()["time"]
    assert call(f"{url}/devnet/clock").json()["time"] == stood
    press(page, "Resume the clock")
    said(page, "resumed the clock")
    write(page, "Blocks", "1")
    press(page, "Mine")
    page.wait_for("document.getElementById('notice').innerText.includes(\"clock is\")")


def test_money_and_whom_nobody_asks_for_proofs(chain: Program, page: Page) -> None:
    url = chain.node_url
    open_view(page, url, "#devnet")
    write(page, "Account", STRANGER)
    write(page, "WAVES to add", "12.5")
    press(page, "Fund")
    said(page, "gave 12.5")
    assert balance(url, STRANGER) == 1_250_000_000
    press(page, "Fund")
    page.wait_for("[...document.querySelectorAll('.feed li')].filter("
                  "each => each.innerText.includes('gave 12.5')).length === 2")  # fmt: skip
    assert balance(url, STRANGER) == 2_500_000_000
    write(page, "WAVES to add", "1,5x")
    press(page, "Fund")
    said(page, "is no amount")
    write(page, "WAVES to add", "1")
    write(page, "Account", "nobody")
    press(page, "Fund")
    page.wait_for("document.querySelector('.feed li .bad')")
    write(page, "Account", STRANGER, 1)
    press(page, "Impersonate")
    said(page, "impersonates ")
    assert call(f"{url}/devnet").json()["impersonated"] == [STRANGER]
    press(page, "Stop impersonating")
    said(page, "stopped impersonating")
    assert call(f"{url}/devnet").json()["impersonated"] == []


def test_a_script_is_written_deployed_and_called(chain: Program, page: Page) -> None:
    url = chain.node_url
    open_view(page, url, "#deploy")
    area = "document.querySelector('.editor')"
    page.wait_for("document.querySelector('#verdict').innerText.includes('Compiled. Complexity')")
    page.run(f"type({area}, {json.dumps(DAPP.replace('plusOne(n))', 'plusTwo(n))'))})")
    page.wait_for("document.querySelector('#verdict').innerText.includes('line 10')")
    assert "plusTwo" in text(page, "mark")
    save(page, "explorer-diagnostics.png")
    page.wait_for("document.querySelector('main form button').disabled")
    page.run(f"type({area}, {json.dumps(DAPP)})")
    press(page, "Deploy")
    page.wait_for("document.querySelector('main').innerText.includes('Deployed on')")
    assert call(f"{url}/addresses/scriptInfo/{FIRST}").json()["script"] is not None

    open_view(page, url, f"#call/{FIRST}/put")
    write(page, "key", "answer")
    write(page, "n", "-3")
    write(page, "list", "1\n2\n")
    write(page, "Caller", SECOND)
    press(page, "Simulate")
    page.wait_for("document.querySelector('main').innerText.includes('would be rejected')")
    shown = text(page)
    assert "no negative numbers: answer" in shown
    write(page, "n", "many")
    press(page, "Simulate")
    page.wait_for("document.querySelector('main').innerText.includes('is no Int')")
    write(page, "n", str(2**63 - 2))
    write(page, "bytes", "base64:AP8=")
    press(page, "Simulate")
    page.wait_for(
        "document.querySelector('main').innerText.includes('The transaction would succeed')"
    )
    assert call(f"{url}/addresses/data/{FIRST}").json() == []
    press(page, "Send")
    page.wait_for("document.querySelector('main').innerText.includes('Sent: ')")
    save(page, "explorer-called.png")
    data = {each["key"]: each["value"] for each in call(f"{url}/addresses/data/{FIRST}").json()}
    assert data == {"answer": 2**63 - 1, "bytes": "base64:AP8=", "flag": True}
    write(page, "n", "-3")
    press(page, "Send")
    page.wait_for("document.querySelector('.fault')?.innerText.includes('line ')")
    assert "throw(" in text(page, ".fault")
    looks(page, "explorer-fault")
    nothing_ran(page)


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_controls_fit_into_the_window(
    chain: Program, page: Page, width: int, scheme: str
) -> None:
    dress(page, width, scheme)
    call(f"{chain.node_url}/devnet/snapshots", "")
    for fragment in ("#devnet", "#deploy", f"#call/{FIRST}"):
        go(page, chain.node_url, fragment)
        assert page.run("document.documentElement.scrollWidth") <= width, fragment
        assert clipped(page) == [], fragment
        save(page, f"explorer-{fragment[1:5]}-{width}-{scheme}.png")
    dress(page, 1280, "light")


@needs_axe
@pytest.mark.parametrize(("width", "scheme", "only"), AUDITS)
def test_axe_finds_nothing(chain: Program, page: Page, width: int, scheme: str, only: str) -> None:
    call(f"{chain.node_url}/devnet/snapshots", "")
    dress(page, width, scheme)
    for fragment in ("#devnet", "#deploy", f"#call/{FIRST}"):
        go(page, chain.node_url, fragment)
        assert axe_findings(page, only) == [], fragment
    dress(page, 1280, "light")


def test_a_new_beginning_is_asked_for_twice(chain: Program, page: Page) -> None:
    url = chain.node_url
    open_view(page, url, "#devnet")
    before = call(f"{url}/devnet").json()["resets"]
    press(page, "Reset the chain")
    assert call(f"{url}/devnet").json()["resets"] == before
    press(page, "Really reset the chain?")
    said(page, "reset the chain")
    assert call(f"{url}/devnet").json()["resets"] == before + 1
    page.wait_for("document.getElementById('live').className === 'live'")
    page.wait_for(f"document.querySelector('.figures dd').innerText === '{height(url)}'")
