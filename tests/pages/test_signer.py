"""The signer's page in a real browser, beside a devnet: a pending transfer is approved, sent and
mined; keys, rules and the log are looked at; words of strangers stay words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from soliton.devnet.accounts import funded_accounts
from soliton.keystore.keys import phrase
from tests.clients.test_kept_signer import kept, unlock
from tests.e2e import browser
from tests.e2e.browser import Page
from tests.e2e.origins import origin_of
from tests.e2e.programs import Program, call, eventually, is_mined
from tests.keystore.stores import keep
from tests.pages.held import a_moment
from tests.pages.pages import (
    AUDITS,
    axe_findings,
    dress,
    looks,
    needs_axe,
    nothing_ran,
    save,
    text,
    wrong_clock,
)
from tests.pages.scenario import PAYLOAD
from tests.signer.kept import KEYS, PASSWORD, Place

OWNER, FRIEND = funded_accounts(ord("R"))[6:8]
COIN: Final = 10**8
RULES: Final = """
[[rule]]
name = "approved"
signs = ["transfer", "data", "auth", "invoke_script"]
keys = "any"
callers = ["bot"]
recipients = "any"
amounts = "any"
fees = "any"
calls = "any"
data-keys = "any"
hosts = "any"
windows = [
  { amounts = "WAVES", most = 2_000_000_000, within = "1d" },
  { signatures = true, most = 40, within = "1h", per = "caller" },
]
approvals = { of = ["alice", "bob"], needed = 2, within = "1h" }

[[rule]]
name = "signed-in"
signs = ["wavesAuth"]
keys = "any"
callers = ["bot"]
"""
LISTED = "document.querySelector('.waiting') && !document.querySelector('[aria-busy]')"

pytestmark = browser.MARKS


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server with an empty page."""
    directory = tmp_path_factory.mktemp("elsewhere")
    (directory / "index.html").write_text("<!doctype html><title>A dApp</title>")
    with origin_of(directory) as port:
        yield port


@pytest.fixture(scope="module")
def signer(
    chain: Program, elsewhere: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("kept")
    keep(directory / "keys", PASSWORD, {"owner": phrase(OWNER.seed)})
    origins = (f"http://localhost:{elsewhere}",)
    with kept(Place(directory, RULES), chain.node_url, origins=origins) as url:
        unlock(url)
        yield url


def ask(signer: str, kind: str, value: dict[str, Any], path: str = "/sign") -> dict[str, Any]:
    """Have something signed by the bot, which needs approval: what waits."""
    answer = call(f"{signer}{path}", {"key": "owner", kind: value}, key=KEYS["bot"])
    assert answer.status == 202, answer.body
    told: dict[str, Any] = answer.json()
    return told


def transfer(signer: str, amount: int) -> dict[str, Any]:
    wanted = {"type": 4, "version": 3, "recipient": FRIEND.address, "amount": amount}
    return ask(signer, "transaction", {**wanted, "fee": 100_000}, "/sign-and-broadcast")


def log_in(page: Page, signer: str, key: str, fragment: str = "") -> None:
    page.open("about:blank")
    page.open(f"{signer}/{fragment}")
    page.wait_for("document.getElementById('log-in')")
    page.run(f"document.getElementById('api-key').value = {json.dumps(key)}")
    page.run("document.querySelector('#log-in button').click()")


def card(name: str) -> str:
    return f"document.querySelector('[data-pending=\"{name}\"]')"


def test_a_pending_transfer_is_approved_and_mined(chain: Program, signer: str, page: Page) -> None:
    pending = transfer(signer, 5 * COIN)
    name = pending["pending"]
    log_in(page, signer, "a wrong key")
    page.wait_for("document.querySelector('#log-in .bad').innerText.includes('API key')")
    log_in(page, signer, KEYS["alice"])
    page.wait_for(f"{LISTED} && {card(name)}")
    shown = text(page, f'[data-pending="{name}"]')
    assert "0 of 2 approvals" in shown
    assert f"transfer (version 3) of 5 WAVES to {FRIEND.address}" in shown
    assert "5 WAVES and 0.001 WAVES of fees" in shown
    assert "within 1 d: 0 WAVES before, 5 WAVES after, 20 WAVES at most" in shown
    assert f"{OWNER.address}: 1000000 WAVES before, 999994.999 WAVES after (-5.001 WAVES)" in shown
    assert "rule approved, line 2" in shown
    save(page, "signer-queue.png")
    page.run(f"{card(name)}.querySelector('.approve').click()")
    page.wait_for(f"{card(name)}?.innerText.includes('1 of 2 approvals')")
    page.wait_for(f"{card(name)}.innerText.includes('You approved it.')")
    log_in(page, signer, KEYS["bob"])
    page.wait_for(f"{LISTED} && {card(name)}")
    page.run(f"{card(name)}.querySelector('.approve').focus()")
    page.command("Input.dispatchKeyEvent", type="char", text="\r")
    page.wait_for(
        f"!{card(name)} && document.querySelector('#decided')?.innerText.includes('sign')"
    )
    decided = text(page, "#decided")
    assert "signed" in decided and "broadcast" in decided and "alice bob" in decided
    link = str(page.run("document.querySelector('#decided a.id').href"))
    assert link == f"{chain.node_url}/#tx/{pending['ids'][0]}"
    eventually(lambda: is_mined(chain.node_url, pending["ids"][0]), "the transfer in a block")
    nothing_ran(page)


def test_words_of_strangers_stay_words(chain: Program, signer: str, page: Page) -> None:
    entries = [{"key": PAYLOAD[:100], "type": "string", "value": PAYLOAD}]
    data = ask(
        signer, "transaction", {"type": 12, "version": 2, "fee": 500_000, "data": entries}
    )["pending"]  # fmt: skip
    named = {"function": PAYLOAD[:60], "args": [{"type": "string", "value": PAYLOAD}]}
    invoke = {"type": 16, "version": 2, "fee": 500_000, "dApp": FRIEND.address, "payment": []}
    ask(signer, "transaction", {**invoke, "call": named})
    ask(signer, "auth", {"host": PAYLOAD[:200], "data": PAYLOAD})
    log_in(page, signer, KEYS["alice"])
    page.wait_for(f"{LISTED} && {card(data)} && document.querySelectorAll('.waiting').length > 2")
    assert "<img src=x onerror=" in text(page, "#waiting")
    nothing_ran(page)
    looks(page, "signer-queue")
    page.run(f"{card(data)}.querySelector('.refuse').click()")
    page.wait_for("document.activeElement.innerText === 'Refuse'")
    page.run("document.activeElement.click()")
    page.wait_for(f"!{card(data)}")
    assert "refused by alice" in text(page, "#decided")
    nothing_ran(page)


def test_times_go_by_the_clock_of_the_signer(signer: str, page: Page) -> None:
    name = transfer(signer, COIN)["pending"]
    for minutes in (-90, 90):
        with wrong_clock(page, minutes):
            log_in(page, signer, KEYS["alice"])
            page.wait_for(f"{LISTED} && {card(name)}")
            asked, over = page.run(
                f"[...{card(name)}.querySelectorAll('h2 time')].map(each => each.innerText)"
            )
            assert " h" not in asked, asked
            assert over.startswith("in 59 min") or over in ("in 1 h", "in 60 min"), over


def test_keys_rules_and_the_log(signer: str, page: Page) -> None:
    log_in(page, signer, KEYS["bot"], "#keys")
    page.wait_for("document.querySelector('#keys td')")
    assert "owner" in text(page, "#keys") and "unlocked for" in text(page, "#keys")
    page.run("document.querySelector('#keys td:last-child button').click()")
    page.wait_for("document.querySelector('#keys td:nth-child(2)').innerText === 'locked'")
    page.run(f"document.getElementById('password').value = {json.dumps(PASSWORD)}")
    page.run("document.querySelector('#unlock button').click()")
    page.wait_for("document.querySelector('#keys').innerText.includes('unlocked for')")
    assert page.run("document.getElementById('password').value") == ""
    for part in ("keys", "write"):
        page.run(f"location.hash = '#{part}'")
        page.wait_for(f"document.querySelector('nav [href=\"#{part}\"][aria-current]')")
        page.wait_for("!document.querySelector('[aria-busy]')")
        looks(page, f"signer-{part}")

    page.run("location.hash = '#audit'")
    page.wait_for("document.querySelector('#lines td')")
    assert "Not verified" in text(page, "#verified")
    page.run("document.getElementById('verify').click()")
    page.wait_for("document.querySelector('#verified').innerText.includes('as they were written')")
    listed = text(page, "#lines")
    assert all(word in listed for word in ("unlock", "lock", "ask", "approve", "sign", "start"))
    looks(page, "signer-audit")
    page.run("document.querySelector('#lines a.rule').click()")
    page.wait_for("document.querySelector('.listing-lines .chosen')")
    assert "[[rule]]" in text(page, ".listing-lines .chosen")
    looks(page, "signer-rules")
    for fragment in ("#queue", "#write", "#nothing"):
        page.run(f"location.hash = '{fragment}'")
        page.wait_for("!document.querySelector('[aria-busy]')")
    page.wait_for("document.getElementById('title').innerText === 'Nothing here'")
    page.run("document.getElementById('log-out').click()")
    page.wait_for("document.getElementById('log-in')")
    looks(page, "signer-log-in")
    left = str(page.run("document.documentElement.outerHTML + document.cookie + location.href"))
    assert KEYS["bot"] not in left and PASSWORD not in left
    assert page.run("Object.keys(localStorage).length + Object.keys(sessionStorage).length") == 0
    nothing_ran(page)


def test_older_lines_of_the_log_come_once(signer: str, page: Page) -> None:
    alias = {"type": 10, "version": 3, "alias": "no-rule-for-it", "fee": 100_000}
    wanted = {"key": "owner", "transaction": alias}
    for _ in range(60):
        assert call(f"{signer}/sign", wanted, key=KEYS["bot"]).status == 403
    log_in(page, signer, KEYS["bot"], "#audit")
    rows = "[...document.querySelectorAll('#lines tbody tr')]"
    page.wait_for(f"{rows}.length === 50")
    older = "[...document.querySelectorAll('button')].find(e => e.innerText === 'Older entries')"
    page.run(f"{older}.click(), {older}.click()")
    page.wait_for(f"{rows}.length > 50")
    a_moment(page)
    shown = [int(each) for each in page.run(f"{rows}.map(each => each.cells[0].innerText)")]
    told = call(f"{signer}/audit?limit=100", key=KEYS["bot"]).json()["lines"]
    assert shown == [each["number"] for each in told][: len(shown)]
    nothing_ran(page)


def test_a_key_that_is_pressed_twice_refuses_nothing(signer: str, page: Page) -> None:
    name = transfer(signer, COIN)["pending"]
    log_in(page, signer, KEYS["alice"])
    page.wait_for(f"{LISTED} && {card(name)}")
    page.run(f"{card(name)}.querySelector('.refuse').focus()")
    for _ in range(2):
        page.command("Input.dispatchKeyEvent", type="char", text="\r")
    page.wait_for("document.activeElement.innerText === 'Refuse'")
    a_moment(page)
    assert call(f"{signer}/pending/{name}", key=KEYS["alice"]).json()["state"] == "waiting"
    nothing_ran(page)


@needs_axe
@pytest.mark.parametrize(("width", "scheme", "only"), AUDITS)
def test_axe_finds_nothing(signer: str, page: Page, width: int, scheme: str, only: str) -> None:
    transfer(signer, COIN)
    dress(page, width, scheme)
    page.open("about:blank")
    page.open(f"{signer}/")
    page.wait_for("document.getElementById('log-in')")
    assert axe_findings(page, only) == []
    log_in(page, signer, KEYS["alice"])
    page.wait_for(LISTED)
    assert axe_findings(page, only) == []
    log_in(page, signer, KEYS["bot"], "#audit")
    for fragment, found in (
        ("#audit", "#lines td"),
        ("#keys", "#keys td"),
        ("#rules/2", ".listing-lines .chosen"),
        ("#write", "#form"),
    ):
        page.run(f"location.hash = '{fragment}'")
        page.wait_for(f"document.querySelector('{found}')?.getClientRects().length")
        assert axe_findings(page, only) == [], fragment
    dress(page, 1280, "light")


VISIT: Final = """
(async () => {
  try {
    const { ProviderSoliton } = await import(PLACE + "/pages/provider.js");
    const provider = new ProviderSoliton(PLACE, { apiKey: () => SECRET, key: "owner" });
    await provider.connect({ NODE_URL: "", NETWORK_BYTE: 82 });
    const user = await provider.login();
    return { user, auth: await provider.signWavesAuth(7) };
  } catch (error) {
    return { refused: error.message };
  }
})()
"""


def test_a_page_of_a_listed_origin_signs(elsewhere: int, signer: str, page: Page) -> None:
    script = VISIT.replace("PLACE", json.dumps(signer)).replace("SECRET", json.dumps(KEYS["bot"]))
    told = {}
    for host in ("localhost", "127.0.0.1"):
        page.open(f"http://{host}:{elsewhere}/")
        page.wait_for("document.title === 'A dApp'")
        told[host] = page.run(script)
    assert told["localhost"]["user"]["address"] == OWNER.address
    assert told["localhost"]["auth"]["timestamp"] == 7
    assert "does it let this page ask" in told["127.0.0.1"]["refused"]


LEAVE: Final = """
(async () => {
  const { ProviderSoliton } = await import(PLACE + "/pages/provider.js");
  const provider = new ProviderSoliton(PLACE, { apiKey: () => SECRET });
  await provider.connect({ NODE_URL: "", NETWORK_BYTE: 82 });
  const heard = [];
  provider.on("login", () => heard.push("login"));
  const late = provider.login().then(() => "in", error => error.message);
  await provider.logout();
  return [await late, provider.user, heard];
})()
"""


def test_who_logs_out_is_not_logged_in_by_a_late_answer(
    elsewhere: int, signer: str, page: Page
) -> None:
    page.open(f"http://localhost:{elsewhere}/")
    page.wait_for("document.title === 'A dApp'")
    script = LEAVE.replace("PLACE", json.dumps(signer)).replace("SECRET", json.dumps(KEYS["bot"]))
    assert page.run(script) == ["The login changed in the meantime.", None, []]
