"""What visitors do to the explorer beside looking: they go back and forth without a mouse, lose the
connection, copy, run what it tells them to run, and open accounts that somebody has filled.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import BufferedIOBase

import pytest

from tests.e2e import browser
from tests.e2e.browser import Page
from tests.e2e.programs import Program, eventually
from tests.pages.pages import (
    READY,
    dress,
    go,
    look_at,
    nothing_ran,
    second_tab,
    text,
    wrong_clock,
)
from tests.pages.proxy import Stream, proxy
from tests.pages.scenario import FIRST, PAYLOAD, RICH, send

KEYS = {"Tab": 9, "Enter": 13}
CROWD = 100_000
HARD = PAYLOAD + "\n'\"\\ $(id) `id` %s {0} \u2028 \u00e4 \U0001f600"
SECONDS = 60
MINUTE = 60_000
TOLD, DEEPER = "1" * 32, "2" * 32
DEEP = "[" * 1_000 + "]" * 1_000
LARGE = '{"a":' * 5_400 + "0" + "}" * 5_400
_MODULE = "import(document.querySelector('link[rel=modulepreload]').href.replace(/[^/]*$/, '%s'))"
TEXTS = _MODULE % "snippets.js" + ".then(found => found.texts('/echo', %s))"
SKEW = _MODULE % "format.js" + ".then(found => found.now() - Date.now())"

pytestmark = browser.MARKS


@pytest.fixture(scope="module")
def transfer(chain: Program) -> str:
    return send(
        chain.node_url, type=4, version=2, sender=RICH, recipient=FIRST, amount=5, fee=100_000,
        attachment="",
    )  # fmt: skip


def press(page: Page, key: str) -> None:
    for kind in ("keyDown", "keyUp"):
        letter = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
        page.command(
            "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=KEYS[key], **letter
        )


def tab_to(page: Page, condition: str) -> None:
    """Press Tab until the element that has the focus, ``on``, is the wanted one."""
    for _ in range(60):
        press(page, "Tab")
        if page.run(f"(on => Boolean({condition}))(document.activeElement)"):
            return
    raise AssertionError(f"no Tab led to: {condition}")


def ran(arguments: list[str]) -> str:
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_keyboard_alone_leads_to_a_transaction_and_back(
    chain: Program, transfer: str, page: Page
) -> None:
    go(page, chain.node_url)
    page.wait_for(f"document.querySelector('.feed a[href=\"#tx/{transfer}\"]')")
    tab_to(page, f"on.getAttribute('href') === '#tx/{transfer}'")
    press(page, "Enter")
    page.wait_for(f"{READY} && document.querySelector('h1').innerText === 'Transfer'")
    assert page.run("document.activeElement.tagName") == "H1"
    tab_to(page, "on.tagName === 'SUMMARY'")
    press(page, "Enter")
    page.wait_for("document.activeElement.parentElement.open")
    page.run("history.back()")
    page.wait_for(f"{READY} && document.getElementById('height')")
    page.run("history.forward()")
    page.wait_for(f"{READY} && document.querySelector('h1').innerText === 'Transfer'")


def test_an_id_is_copied(chain: Program, transfer: str, page: Page) -> None:
    allowed = ["clipboardReadWrite", "clipboardSanitizedWrite"]
    page.command("Browser.grantPermissions", permissions=allowed, origin=chain.node_url)
    go(page, chain.node_url, f"#tx/{transfer}")
    page.command("Page.bringToFront")
    page.run("document.querySelector('.facts .copy').click()")
    page.wait_for("document.querySelector('.facts .copy').innerText === 'Copied'")
    assert page.run("navigator.clipboard.readText()") == transfer


def test_what_it_says_to_run_runs(chain: Program, transfer: str, page: Page) -> None:
    go(page, chain.node_url, f"#tx/{transfer}")
    page.run("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    page.wait_for("document.querySelectorAll('.snippets pre').length >= 3")
    shell, script, program = page.run(
        "[...document.querySelectorAll('.snippets pre')].slice(0, 3).map(each => each.textContent)"
    )
    if shutil.which("curl"):
        assert json.loads(ran(["sh", "-c", shell]))["id"] == transfer
    assert transfer in ran([sys.executable, "-c", program])
    told = "(async () => { const told = []; const console = { log: each => told.push(each) };"
    assert page.run(f"{told} {script}; return told[0].id; }})()") == transfer


class _Echo(BaseHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.heard.append(body)  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_texts_of_strangers_stay_texts_in_what_it_says_to_run(chain: Program, page: Page) -> None:
    go(page, chain.node_url)
    found = page.run(TEXTS % json.dumps({"call": HARD}))
    server = HTTPServer(("127.0.0.1", 0), _Echo)
    server.heard = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        here = f"http://127.0.0.1:{server.server_port}"
        made = {name: each.replace(chain.node_url, here) for name, each in found.items()}
        if shutil.which("curl"):
            ran(["sh", "-c", made["curl"]])
        ran([sys.executable, "-c", made["Python"]])
        node = shutil.which("node")
        if node:
            ran([node, "--input-type=module", "-e", made["JavaScript"]])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    heard = [json.loads(each) for each in server.heard]  # type: ignore[attr-defined]
    assert heard == [{"call": HARD}] * (3 if node else 2)


def test_without_a_connection_it_says_so_and_goes_on(chain: Program, page: Page) -> None:
    go(page, chain.node_url)
    page.run("window.kept = true")
    none = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    page.command("Network.enable")
    page.command("Network.emulateNetworkConditions", offline=True, **none)
    page.run("location.hash = '#block/1'")
    page.wait_for("document.querySelector('main h1')?.innerText === 'Something went wrong'")
    page.command("Network.emulateNetworkConditions", offline=False, **none)
    page.command("Network.disable")
    page.run("document.querySelector('main button').click()")
    page.wait_for(f"{READY} && document.querySelector('main h1').innerText === 'Block 1'")
    assert page.run("kept") is True
    page.errors.clear()


@pytest.mark.parametrize("minutes", [-90, 90])
def test_ages_go_by_the_clock_of_the_node(
    chain: Program, transfer: str, page: Page, minutes: int
) -> None:
    age = "document.querySelector('.facts time').innerText"
    with wrong_clock(page, minutes):
        go(page, chain.node_url, f"#tx/{transfer}")
        told = f"The node's clock is 1 h 30 min {'ahead of' if minutes < 0 else 'behind'} this"
        page.wait_for(f"document.getElementById('notice').innerText.includes({json.dumps(told)})")
        assert " h" not in str(page.run(age))
        # Somebody reads that, and sets the clock.
        page.run("window.wrong = 0")
        eventually(lambda: abs(int(page.run(SKEW))) < MINUTE, "the right time")
        assert " h" not in str(page.run(age))
        assert page.run("document.getElementById('notice').hidden") is True


def test_two_tabs_go_on_at_once(chain: Program, page: Page) -> None:
    def sent(amount: int) -> str:
        name = send(
            chain.node_url, type=4, version=2, sender=RICH, recipient=FIRST, amount=amount,
            fee=100_000, attachment="",
        )  # fmt: skip
        return f"document.querySelector('.tall .feed a[href=\"#tx/{name}\"]')"

    with second_tab(page) as other:
        for tab in (page, other):
            go(tab, chain.node_url)
        row = sent(6)
        for tab in (page, other):
            tab.wait_for(row)
        # One is left for the other, and looked at again.
        look_at(page, seen=False)
        page.wait_for("document.visibilityState === 'hidden'")
        row = sent(7)
        other.wait_for(row)
        assert page.run(f"{row} === null") is True
        page.command("Page.bringToFront")
        page.wait_for(row)
        assert other.errors == []


def test_json_that_somebody_wrote_is_text(chain: Program, page: Page) -> None:
    name = send(
        chain.node_url, type=12, version=2, sender=FIRST, fee=7_000_000,
        data=[{"key": "deep", "type": "string", "value": DEEP},
              {"key": "large", "type": "string", "value": LARGE}],
    )  # fmt: skip
    dress(page, 360, "light")
    go(page, chain.node_url, f"#tx/{name}")
    page.run("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    page.wait_for("document.querySelectorAll('.snippets pre').length >= 3")
    shown = page.run("document.querySelector('details pre').textContent")
    assert [each["value"] for each in json.loads(shown)["data"]] == [DEEP, LARGE]
    assert page.run("document.documentElement.scrollWidth") <= 360
    go(page, chain.node_url, f"#account/{FIRST}")
    page.wait_for("document.querySelectorAll('[aria-label=Data] tbody tr').length === 2")
    assert DEEP[:100] in text(page, "[aria-label=Data]")
    assert len(text(page)) < 10_000
    assert page.run("document.documentElement.scrollWidth") <= 360
    dress(page, 1280, "light")
    nothing_ran(page)
    assert page.errors == []


def test_answers_that_go_too_deep_are_not_written_out(chain: Program, page: Page) -> None:
    told = {"id": TOLD, "type": 99, "sender": FIRST, "fee": 1, "height": 1, "timestamp": 1}
    body = json.dumps(told)[:-1]

    def answer(depth: int) -> Stream:
        def write(out: BufferedIOBase) -> None:
            out.write(f'{body}, "more": {"[" * depth}{"]" * depth}}}'.encode())

        return write

    made_up: dict[str, Stream | None] = {"/events": None}
    made_up |= {f"/transactions/info/{TOLD}": answer(2_000)}
    made_up |= {f"/transactions/info/{DEEPER}": answer(1_000_000)}
    with proxy(chain.node_url, made_up) as url:
        go(page, url, f"#tx/{TOLD}")
        assert text(page, "h1") == "Type 99"
        page.run("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        page.wait_for("document.querySelector('details .trouble')")
        assert "1000 levels deep" in text(page, "details .trouble")
        page.run(f"location.hash = '#tx/{DEEPER}'")
        page.wait_for("document.querySelector('main > article > .trouble')")
        assert "is not valid" in text(page, "main > article > .trouble")
        page.open("about:blank")
    page.errors.clear()


def test_an_account_that_somebody_has_filled(chain: Program, page: Page) -> None:
    entries = [
        {"key": f"{number:06d} {PAYLOAD[:30]}", "type": "integer", "value": number}
        for number in range(CROWD)
    ]

    def crowd(out: BufferedIOBase) -> None:
        out.write(json.dumps(entries).encode())

    with proxy(chain.node_url, {"/events": None, f"/addresses/data/{FIRST}": crowd}) as url:
        go(page, url, f"#account/{FIRST}")
        rows = "document.querySelectorAll('[aria-label=Data] tbody tr').length"
        page.wait_for(rows)
        assert int(page.run(rows)) <= 1_000
        field = "document.querySelector('main input[type=search]')"
        page.run(f"{field}.value = '099999'; {field}.dispatchEvent(new Event('input'))")
        page.wait_for(f"{rows} === 1")
        assert "99999" in text(page, "[aria-label=Data] tbody").replace("\u202f", "")
        nothing_ran(page)
        page.open("about:blank")
    page.errors.clear()
