"""A headless Chromium, driven through its DevTools protocol.

What lives here: starting it, opening pages, running JavaScript in them, screenshots. What does not:
any check, and what a page holds.

Source: https://chromedevtools.github.io/devtools-protocol/ (domains Page, Runtime and Network).
"""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from websockets.sync.client import ClientConnection, connect

from tests.e2e.programs import call, eventually

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    # A process for each page that is opened costs more than the page.
    "--disable-site-isolation-trials",
    "--disable-features=RenderDocument",
    "--window-size=1280,1600",
    "--remote-debugging-port=0",
)
ANSWER_SECONDS = 60.0
_LEFT = ("navigated", "context")
MAX_ANSWER_BYTES = 64 * 1024 * 1024
_CONNECTION: Final[dict[str, Any]] = {
    "max_size": MAX_ANSWER_BYTES,
    # A test that waits for something else reads no answers to pings meanwhile.
    "ping_interval": None,
    "proxy": None,
}


def program() -> str | None:
    """Where Chromium is, if it is installed."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


MARKS: Final = [
    pytest.mark.slow,
    pytest.mark.skipif(program() is None, reason="Chromium is not installed"),
]
"""Of tests that need it."""


class Page:
    """One tab. ``errors`` has what went wrong in it: exceptions and blocked or failed requests."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._number = 0
        self.errors: list[str] = []
        self.requested: list[str] = []
        for domain in ("Page", "Runtime", "Log"):
            self.command(f"{domain}.enable")

    def note_requests(self) -> None:
        """Note in ``requested`` what is asked for from now on."""
        self.command("Network.enable")

    @property
    def devtools(self) -> str:
        """The address of the browser's DevTools."""
        host, port = self._connection.remote_address[:2]
        return f"http://{host}:{port}"

    def command(self, method: str, **parameters: Any) -> Any:
        """Send one command and give its result; events that come before it are noted."""
        answer = self._ask(method, parameters)
        assert "error" not in answer, answer
        return answer["result"]

    def _ask(self, method: str, parameters: dict[str, Any]) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        self._connection.send(json.dumps(message))
        while True:
            answer = json.loads(self._connection.recv(ANSWER_SECONDS))
            if answer.get("id") == self._number:
                return answer
            self._note(answer)

    def _note(self, event: Any) -> None:
        found = event["params"]
        match event["method"]:
            case "Runtime.exceptionThrown":
                self.errors.append(str(found["exceptionDetails"]))
            case "Log.entryAdded" if found["entry"]["level"] == "error":
                self.errors.append(f"{found['entry']['text']} {found['entry'].get('url', '')}")
            case "Network.requestWillBeSent":
                self.requested.append(found["request"]["url"])
            case _:
                pass

    def open(self, url: str) -> None:
        """Go to a page; what it shows may come later."""
        answer = self.command("Page.navigate", url=url)
        assert "errorText" not in answer, answer

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self.command(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, script: str) -> None:
        """Wait until an expression is true, on whichever page the tab is then.

        While it cannot be worked out, it is not true yet: what it reads may not be drawn.
        """
        raised = None

        def holds() -> bool:
            nonlocal raised
            now, raised = self._holds(script)
            return now

        try:
            eventually(holds, script)
        except AssertionError as error:
            if raised is not None:
                error.add_note(f"at last it raised {raised}")
            raise

    def _holds(self, script: str) -> tuple[bool, Any]:
        """Whether an expression is true now, and what it raised."""
        parameters = {"expression": f"Boolean({script})", "returnByValue": True}
        answer = self._ask("Runtime.evaluate", parameters)
        if "error" in answer:
            # The tab has left the page while the question was on its way.
            assert any(each in answer["error"]["message"] for each in _LEFT), answer
            return False, None
        result = answer["result"]
        return result["result"].get("value") is True, result.get("exceptionDetails")

    def screenshot(self, path: Path) -> None:
        """What the page looks like, as PNG."""
        answer = self.command("Page.captureScreenshot", format="png", optimizeForSpeed=True)
        path.write_bytes(base64.b64decode(answer["data"]))


@contextlib.contextmanager
def chromium(profile: Path) -> Iterator[str]:
    """A running browser with a new profile: the address of its DevTools."""
    found = program()
    assert found is not None
    process = subprocess.Popen(
        [found, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    note = profile / "DevToolsActivePort"
    try:
        eventually(
            lambda: (note.exists() and "\n" in note.read_text()) or process.poll() is not None,
            "Chromium",
        )
        yield f"http://127.0.0.1:{note.read_text().splitlines()[0]}"
    finally:
        process.terminate()
        try:
            process.wait(ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def page_of(devtools: str) -> Iterator[Page]:
    """A new tab of the browser."""
    request = urllib.request.Request(f"{devtools}/json/new?about:blank", method="PUT")
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
        made = json.loads(answer.read())
    try:
        with connect(made["webSocketDebuggerUrl"], **_CONNECTION) as connection:
            yield Page(connection)
    finally:
        call(f"{devtools}/json/close/{made['id']}")
