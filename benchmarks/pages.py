"""How quick the pages are in headless Chromium: ``python benchmarks/pages.py``.

Prints the time to the first paint of explorer, exchange and signer from a devnet on loopback,
beside the floor, a line of text of the same server, and the time to the first data; what they
weigh, compressed; the frames while the explorer watches 1,000 events a second for some seconds,
beside a page at rest; and the frames while somebody scrolls through a book of ten thousand levels
to a side that changes all the time.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from io import BufferedIOBase
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from _devnet import Devnet, running  # noqa: E402

from soliton import Account, Matcher  # noqa: E402
from soliton.devnet.accounts import funded_accounts  # noqa: E402
from soliton.pages.files import modules_of, shipped, version  # noqa: E402
from tests.e2e import browser  # noqa: E402
from tests.e2e.browser import Page  # noqa: E402
from tests.e2e.programs import call, eventually  # noqa: E402
from tests.pages.crowd import LEVELS, crowd  # noqa: E402
from tests.pages.pages import go, prepared, visitor  # noqa: E402
from tests.pages.proxy import proxy  # noqa: E402
from tests.pages.scenario import RICH, issue, send  # noqa: E402

LOADS = 9
SETTLED_SECONDS = 0.5
EVENTS = 1_000
SECONDS = 8
BAR_PAINT_MS = 150
BAR_BYTES = 120_000
BAR_FRAME_MS = 50
COIN = 10**8
PAGES = {
    "explorer": ("explorer.js", ("style.css",)),
    "exchange": ("exchange.js", ("style.css", "exchange.css")),
    "signer": ("signer.js", ("style.css", "signer.css")),
}
FRAMES = """
window.frames_ = [];
(function step(before) {
  requestAnimationFrame(now => { frames_.push(now - before); step(now); });
})(performance.now());
true
"""
SCROLL = """
(function () {
  const boxes = ["asks-box", "bids-box"].map(each => document.getElementById(each));
  let at = 0;
  (function step() {
    at += 1;
    boxes.forEach(box => { box.scrollTop = (at * 97) % box.scrollHeight; });
    crowd((11 + at % 500 / 1000).toFixed(8), String(1 + at % 9));
    requestAnimationFrame(step);
  })();
})(); true
"""
SEEN = f"import('/pages/{version()}/live.js').then(found => found.live.seen)"
DATA = """
(function step() {
  if (document.querySelector("#blocks tr, main article h1, #markets tr[data-symbol]")) {
    window.data_ = performance.now();
  } else requestAnimationFrame(step);
})(); true
"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def main() -> None:
    """All four."""
    if browser.program() is None:
        raise SystemExit("Chromium is not installed")
    with running() as devnet, tempfile.TemporaryDirectory() as folder:
        asset = market(devnet)
        with visitor(Path(folder)) as page:
            paints(page, devnet)
            weights()
            events(page, devnet)
            scrolling(page, devnet, asset)


def market(devnet: Devnet) -> str:
    """An asset with an order in its book."""
    seller = funded_accounts(ord("R"))[0]
    asset = issue(devnet.url, "Gold", decimals=8, quantity=10**6 * COIN)
    send(
        devnet.url, type=4, version=2, sender=RICH, recipient=seller.address, amount=1000 * COIN,
        assetId=asset, fee=100_000, attachment="",
    )  # fmt: skip
    key = call(f"{devnet.matcher_url}/matcher").json()
    with Matcher(devnet.matcher_url) as matcher:
        matcher.place(
            Account.from_seed(seller.seed, "R").sell(COIN, asset, 5 * COIN, None, matcher=key)
        )
    return asset


def paints(page: Page, devnet: Devnet) -> None:
    """First contentful paint, by turns with the floor, with nothing in the browser's cache."""
    page.command("Network.setCacheDisabled", cacheDisabled=True)
    urls = {
        "floor: the matcher's list of routes as text": f"{devnet.matcher_url}/matcher",
        "explorer": f"{devnet.url}/",
        "explorer's view of the node": f"{devnet.url}/#node",
        "exchange": f"{devnet.matcher_url}/",
        "signer": f"{devnet.signer_url}/",
    }
    found: dict[str, list[float]] = {name: [] for name in urls}
    filled: dict[str, list[float]] = {name: [] for name in urls if name.startswith("ex")}
    with prepared(page, DATA):
        for _ in range(LOADS):
            for name, url in urls.items():
                # What the page before leaves behind is not waited for by a visitor of this one.
                page.open("about:blank")
                time.sleep(SETTLED_SECONDS)
                page.open(url)
                page.wait_for(PAINT)
                found[name].append(float(page.run(PAINT)))
                if name in filled:
                    page.wait_for("window.data_")
                    filled[name].append(float(page.run("data_")))
    for name, times in found.items():
        print(f"first paint, {name}: {spread(times)}; bar {BAR_PAINT_MS}")
    for name, times in filled.items():
        print(f"first data, {name}: {spread(times)}")
    page.command("Network.setCacheDisabled", cacheDisabled=False)


def spread(times: list[float]) -> str:
    """The median, and between what."""
    return f"{statistics.median(times):.0f} ms ({min(times):.0f} to {max(times):.0f})"


def weights() -> None:
    """Scripts and styles, as they are sent."""
    for name, (entry, more) in PAGES.items():
        names = {entry, *modules_of(entry), *more, "begin.js"}
        packed = sum(len(shipped()[each].packed) for each in names)
        weight = f"{packed / 1000:.1f} KB in {len(names)} files (bar {BAR_BYTES // 1000})"
        print(f"weight, {name}: {weight}")


def events(page: Page, devnet: Devnet) -> None:
    """The home view under a stream of transactions."""
    height = call(f"{devnet.url}/blocks/height").json()["height"]
    sample = call(f"{devnet.url}/blocks/at/{height}").json()
    transaction = sample["transactions"][0]

    def stream(out: BufferedIOBase) -> None:
        tell(out, "synced", {"height": height, "id": sample["id"]})
        began, sent = time.monotonic(), 0
        while time.monotonic() - began < 3 * SECONDS:
            due = int((time.monotonic() - began) * EVENTS)
            for number in range(sent, due):
                each = transaction | {"id": f"{number // 2:044d}", "type": 4, "recipient": RICH}
                name = ("unconfirmed", "transaction")[number % 2]
                tell(out, name, {"height": height, "transaction": each | {"amount": number}})
            sent = due
            out.flush()
            time.sleep(0.01)

    page.open("about:blank")
    told("floor: an empty page", frames(page))
    with proxy(devnet.url, {"/events": stream}) as url:
        go(page, url)
        eventually(lambda: page.run("document.querySelectorAll('.feed li').length > 5"), "events")
        before, began = int(page.run(SEEN)), time.monotonic()
        found = frames(page)
        rate = (int(page.run(SEEN)) - before) / (time.monotonic() - began)
        told(f"{rate:,.0f} events a second", found)
        page.open("about:blank")


def tell(out: BufferedIOBase, name: str, data: dict[str, object]) -> None:
    """One event of a stream."""
    out.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())


def scrolling(page: Page, devnet: Devnet, asset: str) -> None:
    """Both sides of a long book at once, with a change in each frame."""
    with crowd(page):
        go(
            page,
            devnet.matcher_url,
            f"#{asset}",
            "document.getElementById('live')?.className === 'live'",
        )
        page.wait_for("window.crowd && document.querySelectorAll('#bids tr').length > 5")
        page.run(SCROLL)
        told(f"a book of {2 * LEVELS:,} levels, scrolled and changed in each frame", frames(page))


def frames(page: Page) -> list[float]:
    """The milliseconds of each frame for some seconds."""
    page.run(FRAMES)
    time.sleep(SECONDS)
    return [float(each) for each in page.run("frames_.slice(2)")]


def told(name: str, found: list[float]) -> None:
    """What frames were like."""
    late = sum(each > BAR_FRAME_MS for each in found)
    print(
        f"frames, {name}: {len(found)} in {SECONDS} s, median {statistics.median(found):.1f} ms,"
        f" longest {max(found):.1f} ms, {late} over {BAR_FRAME_MS} ms"
    )


if __name__ == "__main__":
    main()
