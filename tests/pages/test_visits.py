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
from tests.e2e.programs import Program
from tests.pages.pages import READY, go, nothing_ran, text
from tests.pages.proxy import proxy
from tests.pages.scenario import FIRST, PAYLOAD, RICH, send

KEYS = {"Tab": 9, "Enter": 13}
CROWD = 100_000
HARD = PAYLOAD + "\n'\"\\ $(id) `id` %s {0} \u2028 \u00e4 \U0001f600"
SECONDS = 60
TEXTS = (
    "import(document.querySelector('link[rel=stylesheet]').href"
    ".replace('style.css', 'snippets.js')).then(found => found.texts('/echo', %s))"
)

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
    page.command("Network.emulateNetworkConditions", offline=True, **none)
    page.run("location.hash = '#block/1'")
    page.wait_for("document.querySelector('main h1')?.innerText === 'That did not work'")
    page.command("Network.emulateNetworkConditions", offline=False, **none)
    page.run("document.querySelector('main button').click()")
    page.wait_for(f"{READY} && document.querySelector('main h1').innerText === 'Block 1'")
    assert page.run("kept") is True
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
