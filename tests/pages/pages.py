"""A browser at the pages: opening views, noting what a policy had to refuse, asking axe-core.

What lives here: that. What does not: the browser (``tests.e2e.browser``), any check of a view.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.amounts import LONG
from tests.e2e import browser
from tests.e2e.browser import Page
from tests.vectors import REPOSITORY

_NAMED = os.environ.get("SOLITON_SCREENSHOTS", REPOSITORY / "tests" / "output" if LONG else "")
SCREENSHOTS = Path(_NAMED) if _NAMED else None
"""Where they are kept: with ``make test-all``, or where somebody names a place."""
NARROW = 360
"""Pixels."""
LOOKS = [(360, "light"), (360, "dark"), (1280, "light"), (2560, "dark")]
SMALL_JUMP = 0.02
"""Layout shift score (web.dev/cls) that nobody sees; what is below 0.1 is called good."""
_PATIENT = """
window.setTimeout = (begin => (what, after, ...more) =>
  begin(what, [250, 1500].includes(after) ? 60000 : after, ...more))(window.setTimeout);
"""
"""These two are the waits of views for what they show (``parts.js``)."""
AUDITS = [(1280, "light", ""), (1280, "dark", "color-contrast"), (NARROW, "light", "")]
"""Looks that axe-core is asked about, and by which rule, where not by all. Colours are the same in
all windows; of what axe-core looks at, only colours differ between the schemes.
"""
AXE = REPOSITORY / "tests" / "clients" / "node_modules" / "axe-core" / "axe.min.js"
needs_axe = pytest.mark.skipif(not AXE.exists(), reason="`make clients` was not run: no axe-core")
_ASK_AXE = """
axe.run(document, %s).then(found => found.violations.flatMap(each => each.nodes.map(node =>
  `${each.id} (${each.impact}): ${node.target.join(" ")}: ${node.failureSummary}`)))
"""
_CLOCK = """
window.wrong = MILLISECONDS;
window.Date = class extends Date {
  static right = Date.now;
  static now() { return this.right() + wrong; }
  constructor(...given) { super(...(given.length ? given : [Date.now()])); }
};
"""
_HASTY = """
for (const name of ["setTimeout", "setInterval"])
  window[name] = (begin => (what, after, ...more) =>
    begin(what, after === WAIT ? 200 : after, ...more))(window[name]);
"""
_HELD = """
let gate;
window.pending = window.held = 0;
window.hold = () => { gate = new Promise(done => { window.release = done; }); };
hold();
window.fetch = (asked => async (path, ...more) => {
  pending++;
  try {
    if (/PATTERN/.test(path)) {
      held++;
      await gate;
      held--;
    }
    return await asked(path, ...more);
  } finally {
    pending--;
  }
})(window.fetch);
"""
_CLIPPED = """
[...document.querySelectorAll("main .scroll")].filter(each => each.scrollWidth > each.clientWidth)
  .map(each => each.ariaLabel)
"""
_NAMELESS = """
[...document.querySelectorAll("main table")]
  .map(table => [table, ...table.querySelectorAll("thead, tbody, tr, th, td")])
  .filter(parts => parts.some(each => !getComputedStyle(each).display.startsWith("table")))
  .flatMap(parts => parts.filter(each => !each.getAttribute("role")).map(each => each.outerHTML))
"""
_NOTES = """
window.violations = [];
addEventListener("securitypolicyviolation", each =>
  violations.push(`${each.violatedDirective} ${each.blockedURI} ${each.sample}`));
window.jumps = [];
new PerformanceObserver(found => jumps.push(...found.getEntries().map(each => [each.value,
  ...each.sources.map(({ node }) =>
    `${node?.nodeName} ${node?.id} ${node?.className} ${node?.textContent?.slice(0, 60)}`)])))
  .observe({ type: "layout-shift", buffered: true });
window.alert = text => { window.pwned = text; };
"""
READY = (
    "document.querySelector('main h1') && !document.querySelector('[aria-busy]')"
    " && document.getElementById('live').className === 'live'"
)
DRAWN = "new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))"
"""What came before is drawn by then."""

LISTED = (
    """[...document.querySelectorAll("#transactions a[href^='#tx/']")].map(each => each.hash)"""
)
"""Where the transactions of the home view lead to."""


@contextlib.contextmanager
def visitor(devtools: str) -> Iterator[Page]:
    """A tab whose pages note in ``violations`` what their policy refused."""
    with browser.page_of(devtools) as page:
        page.command("Page.addScriptToEvaluateOnNewDocument", source=_NOTES)
        yield page


@contextlib.contextmanager
def second_tab(page: Page) -> Iterator[Page]:
    """One more tab of a visitor, in a window beside: both are looked at."""
    with visitor(page.devtools) as other:
        look_at(page)
        look_at(other)
        yield other
    look_at(page, seen=False)
    page.command("Page.bringToFront")


def look_at(page: Page, *, seen: bool = True) -> None:
    """Whether a tab is looked at though another one is in front."""
    page.command("Emulation.setFocusEmulationEnabled", enabled=seen)


def go(page: Page, url: str, fragment: str = "", ready: str = READY) -> None:
    """Open a view anew, and wait until all of it is there."""
    page.open("about:blank")
    page.open(f"{url}/{fragment}")
    page.wait_for(ready)


def go_on(page: Page, fragment: str) -> None:
    """Go to another view of the explorer that is open, and wait until all of it is there."""
    page.run("document.querySelector('main h1').dataset.left = 'yes'")
    page.run(f"location.hash = {json.dumps(fragment)}")
    page.wait_for(f"!document.querySelector('[data-left]') && {READY}")


def dress(page: Page, width: int, scheme: str) -> None:
    """How wide the window is, and whether the visitor likes it dark."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.command("Emulation.setEmulatedMedia", features=features)
    page.command(
        "Emulation.setDeviceMetricsOverride",
        width=width, height=1200, deviceScaleFactor=1, mobile=False,
    )  # fmt: skip


def save(page: Page, name: str) -> None:
    """Keep what the page looks like, for people who ask for it."""
    if SCREENSHOTS is not None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(SCREENSHOTS / name)


def looks(page: Page, name: str) -> None:
    """What is open fits into narrow and wide windows, light and dark; that is kept for people."""
    for width, scheme in LOOKS:
        dress(page, width, scheme)
        page.wait_for(f"document.documentElement.scrollWidth <= {width}")
        assert clipped(page) == [], (name, width)
        save(page, f"{name}-{width}-{scheme}.png")
    dress(page, 1280, "light")


def text(page: Page, selector: str = "main") -> str:
    """What a visitor reads there."""
    return str(page.run(f"document.querySelector({json.dumps(selector)}).innerText"))


@cache
def _axe() -> str:
    return AXE.read_text(encoding="utf-8")


def clipped(page: Page) -> list[str]:
    """Tables of which only a part is seen."""
    return [str(each) for each in page.run(_CLIPPED)]


def axe_findings(page: Page, only: str = "") -> list[str]:
    """What axe-core says against the page as it is, by all rules or one; the driver brings it, past
    the policy. Parts of tables that are laid out as blocks and do not say what they are count, too:
    axe-core asks the browser that it runs in, and others forget it.
    """
    nameless = [f"no role: {each[:100]}" for each in page.run(_NAMELESS)]
    if page.run("typeof window.axe") == "undefined":
        page.run(f"{_axe()};\ntypeof axe")
    options = {"runOnly": [only]} if only else {}
    return nameless + [str(each) for each in page.run(_ASK_AXE % json.dumps(options))]


@contextlib.contextmanager
def prepared(page: Page, script: str) -> Iterator[None]:
    """Run a script before those of every page that is opened meanwhile."""
    added = page.command("Page.addScriptToEvaluateOnNewDocument", source=script)
    try:
        yield
    finally:
        page.command("Page.removeScriptToEvaluateOnNewDocument", identifier=added["identifier"])


@contextlib.contextmanager
def held_back(page: Page, pattern: str) -> Iterator[None]:
    """Requests whose path has a pattern go out when the page is told ``release()``; after
    ``hold()`` others have to wait again. ``held`` wait, ``pending`` are not answered.
    """
    with prepared(page, _HELD.replace("PATTERN", pattern)):
        yield


@contextlib.contextmanager
def patient(page: Page) -> Iterator[None]:
    """Views that wait for what they show as long as it takes, however busy the machine is."""
    with prepared(page, _PATIENT):
        yield


@contextlib.contextmanager
def hasty(page: Page, milliseconds: int) -> Iterator[None]:
    """Views whose waits and intervals of just that long are short."""
    with prepared(page, _HASTY.replace("WAIT", str(milliseconds))):
        yield


@contextlib.contextmanager
def wrong_clock(page: Page, minutes: int) -> Iterator[None]:
    """A visitor whose machine is so far ahead; ``wrong`` of the page sets it while it is open."""
    with prepared(page, _CLOCK.replace("MILLISECONDS", str(minutes * 60_000))):
        yield


def jumped(page: Page) -> float:
    """By how much what was seen has been moved by what came."""
    return float(page.run("jumps.reduce((sum, each) => sum + each[0], 0)"))


def nothing_ran(page: Page) -> None:
    """No script of a stranger, and nothing that the policy had to stop."""
    assert page.run("violations") == []
    assert page.run("typeof window.pwned") == "undefined"
    assert page.run("document.querySelectorAll('main img, main iframe, main script').length") == 0
