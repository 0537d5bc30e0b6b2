"""The interactive pages in a real browser: what they show, and calls made from them.

Screenshots are left in the test's temporary directory; `SOLITON_SCREENSHOTS` names another one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from soliton.devnet.accounts import funded_accounts
from tests.e2e import browser
from tests.e2e.browser import Page
from tests.e2e.programs import API_KEY, Program, call, eventually, is_mined

RICH = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"
TRANSFER = {
    "type": 4,
    "version": 2,
    "sender": RICH,
    "recipient": funded_accounts(ord("R"))[0].address,
    "amount": 100_000_000,
    "fee": 100_000,
    "attachment": "",
}
HELPERS = """
window.shown = element => element && element.getClientRects().length > 0;
window.operation = (method, path) => [...document.querySelectorAll(`.opblock-${method}`)].find(
  each => each.querySelector("[data-path]").dataset.path === path);
window.type = (element, text) => {
  const kind = element.tagName === "TEXTAREA" ? HTMLTextAreaElement : HTMLInputElement;
  Object.getOwnPropertyDescriptor(kind.prototype, "value").set.call(element, text);
  element.dispatchEvent(new Event("input", {bubbles: true}));
  element.dispatchEvent(new Event("change", {bubbles: true}));
};
true
"""
FOLLOW = """
window.seen = [];
window.follow = target => {
  window.source = new EventSource(target);
  for (const name of ["synced", "block", "transaction"])
    source.addEventListener(name, event => seen.push([name, event.lastEventId]));
};
true
"""

pytestmark = browser.MARKS


@pytest.fixture
def page(devtools: str) -> Iterator[Page]:
    with browser.page_of(devtools) as page:
        page.note_requests()
        yield page


@pytest.fixture
def screenshots(tmp_path: Path) -> Path:
    directory = Path(os.environ.get("SOLITON_SCREENSHOTS", tmp_path))
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def open_api_page(page: Page, url: str) -> None:
    page.open(f"{url}/")
    page.wait_for('document.querySelector("#swagger-ui-link")')
    page.run('document.querySelector("#swagger-ui-link").click()')
    page.wait_for('document.querySelectorAll(".opblock-tag-section").length > 3')
    page.run(HELPERS)


def open_all_groups(page: Page) -> None:
    """The page begins with its groups closed."""
    page.run(
        'document.querySelectorAll(".opblock-tag-section:not(.is-open) .opblock-tag")'
        ".forEach(each => each.click())"
    )
    page.wait_for('document.querySelectorAll(".opblock").length > 20')


def authorise(page: Page, key: str) -> None:
    page.run('document.querySelector(".btn.authorize").click()')
    page.wait_for('shown(document.querySelector(".auth-container input"))')
    page.run(f'type(document.querySelector(".auth-container input"), {json.dumps(key)})')
    page.run('document.querySelector(".auth-btn-wrapper .authorize").click()')
    page.wait_for('document.querySelector(".auth-container").innerText.includes("Authorized")')
    page.run('document.querySelector(".btn-done").click()')
    page.wait_for('!document.querySelector(".auth-container")')


def execute(page: Page, method: str, path: str, body: Any = None) -> tuple[str, str]:
    """Fill in and send one operation as a visitor does: the status and the body that it shows."""
    which = f'operation("{method}", "{path}")'
    page.run(f'{which}.querySelector(".opblock-summary-control").click()')
    page.wait_for(f'shown({which}.querySelector(".execute"))')
    if body is not None:
        text = json.dumps(json.dumps(body))
        page.wait_for(f'shown({which}.querySelector(".body-param__text"))')
        page.run(f'type({which}.querySelector(".body-param__text"), {text})')
    answer = f'{which}.querySelector(".live-responses-table .response")'
    # An answer to an earlier call stays until it is cleared.
    page.run(f'{which}.querySelector(".btn-clear")?.click()')
    page.wait_for(f"!{answer}")
    page.run(f'{which}.querySelector(".execute").click()')
    page.wait_for(f"shown({answer})")
    status = page.run(f'{answer}.querySelector(".response-col_status").innerText')
    text = page.run(f'{answer}.querySelector(".response-col_description code").innerText')
    return str(status).split()[0], str(text)


def close(page: Page, method: str, path: str) -> None:
    page.run(f'operation("{method}", "{path}").querySelector(".opblock-summary-control").click()')
    page.wait_for(f'!operation("{method}", "{path}").querySelector(".execute")')


def test_api_page_signs_and_broadcasts(chain: Program, page: Page, screenshots: Path) -> None:
    url = chain.node_url
    open_api_page(page, url)
    page.screenshot(screenshots / "api-page.png")
    open_all_groups(page)
    document = call(f"{url}/api-docs/openapi.json").json()
    methods = ("get", "post", "put", "delete")
    wanted = {(name, path) for path, each in document["paths"].items() for name in each}
    shown = page.run(
        '[...document.querySelectorAll(".opblock")].map(each => '
        '[each.querySelector(".opblock-summary-method").innerText.toLowerCase(), '
        'each.querySelector("[data-path]").dataset.path])'
    )
    assert {tuple(each) for each in shown} == {each for each in wanted if each[0] in methods}

    status, text = execute(page, "get", "/blocks/height")
    assert (status, set(json.loads(text))) == ("200", {"height"})
    assert execute(page, "post", "/transactions/sign", TRANSFER)[0] == "403"
    close(page, "post", "/transactions/sign")
    authorise(page, API_KEY)
    status, text = execute(page, "post", "/transactions/sign", TRANSFER)
    assert status == "200", text
    signed = json.loads(text)
    assert signed["amount"] == TRANSFER["amount"] and len(signed["proofs"]) == 1
    page.run('operation("post", "/transactions/sign").scrollIntoView()')
    page.screenshot(screenshots / "api-sign.png")
    status, text = execute(page, "post", "/transactions/broadcast", signed)
    assert status == "200", text
    assert json.loads(text)["id"] == signed["id"]
    page.run('operation("post", "/transactions/broadcast").scrollIntoView()')
    page.screenshot(screenshots / "api-broadcast.png")
    eventually(lambda: is_mined(url, signed["id"]), "the transaction in a block")
    comes_from_the_node_alone(page, url)


def comes_from_the_node_alone(page: Page, url: str) -> None:
    """Nothing was asked of another host, and nothing failed but the call without the key."""
    foreign = [
        each for each in page.requested if not each.startswith((url, "data:", "about:", "blob:"))
    ]
    assert foreign == []
    assert [each for each in page.errors if "403" not in each] == []


def test_signer_page_stores_data(chain: Program, page: Page, screenshots: Path) -> None:
    url = chain.signer_url
    page.open(f"{url}/")
    page.wait_for('document.querySelector("#form button")')
    page.run(HELPERS)
    page.screenshot(screenshots / "signer-page.png")
    assert page.run('document.querySelector("h1").innerText') == "Signer"
    seed = funded_accounts(ord("R"))[1].seed
    data = [{"key": "from the browser", "value": 9_007_199_254_740_993}]
    page.run(f'type(document.querySelector("#seed"), {json.dumps(seed)})')
    page.run(f'type(document.querySelector("#data"), {json.dumps(json.dumps(data))})')
    page.run('document.querySelector("#form button").click()')
    page.wait_for('shown(document.querySelector("#answer"))')
    assert page.run('document.querySelector("#status").innerText').startswith("200")
    text = page.run('document.querySelector("#answer").innerText')
    answer = json.loads(text)
    assert answer["data"] == [{"type": "integer", **data[0]}]
    page.screenshot(screenshots / "signer-answer.png")
    eventually(lambda: is_mined(chain.node_url, answer["id"]), "the transaction in a block")
    comes_from_the_node_alone(page, url)
    assert seed not in text


def test_event_source_follows_the_chain(chain: Program, page: Page) -> None:
    """A browser's own client: it understands the stream, and goes on where it was cut off."""
    url = chain.node_url
    page.open(f"{url}/node/status")
    page.run(FOLLOW)
    page.run(f'follow("/events?address={RICH}")')
    page.wait_for('seen.some(each => each[0] === "synced")')
    first = send_transfer(url, 1)
    page.wait_for('seen.filter(each => each[0] === "transaction").length === 1')
    last = page.run('source.close(); seen.findLast(each => each[0] === "transaction")[1]')
    second = send_transfer(url, 2)
    assert first != second
    page.run(f'seen.length = 0; follow("/events?lastEventId=" + {json.dumps(last)})')
    page.wait_for('seen.some(each => each[0] === "synced")')
    names = page.run("seen.map(each => each[0])")
    assert names == ["block", "transaction", "synced"]


def send_transfer(url: str, amount: int) -> str:
    """A transfer that is in a block when this returns: its id."""
    signed = call(f"{url}/transactions/sign", TRANSFER | {"amount": amount}, key=API_KEY).json()
    name = str(call(f"{url}/transactions/broadcast", signed).json()["id"])
    eventually(lambda: is_mined(url, name), "the transaction in a block")
    return name
