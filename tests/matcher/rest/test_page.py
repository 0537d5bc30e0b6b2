"""The market page in a real browser: books and trades as they happen, nothing from elsewhere."""

from __future__ import annotations

import asyncio

from soliton.matcher.settings import WebSockets
from tests.e2e.browser import MARKS, Page, page_of
from tests.matcher.fakes import ALICE, BOB, buy, sell
from tests.matcher.websocket.streams import Place, served
from tests.pages.pages import save

pytestmark = MARKS
MINUTE = 60_000


async def trade(place: Place, count: int) -> None:
    """Executions minute by minute, at prices that go up and down."""
    for number in range(count):
        price = (200 + number * 7 % 23) * 10**6
        await place.api.place(sell(BOB, 10**8 + number, price, timestamp=place.core.time))
        await place.api.place(buy(ALICE, 10**8, price, timestamp=place.core.time))
        place.core.time += MINUTE


async def quote(place: Place) -> None:
    """Some levels on both sides."""
    for number in range(1, 9):
        bid, ask = (190 - number) * 10**6, (230 + number) * 10**6
        await place.api.place(buy(ALICE, number * 10**7, bid, timestamp=place.core.time))
        await place.api.place(sell(BOB, number * 10**7, ask, timestamp=place.core.time))


def look(page: Page, place: Place, loop: asyncio.AbstractEventLoop) -> None:
    """What a visitor sees, from the first glance to a trade that happens meanwhile."""
    page.open(f"http://127.0.0.1:{place.port}/")
    page.wait_for("document.getElementById('live')?.textContent === 'live'")
    page.wait_for("document.querySelectorAll('#bids tr').length === 8")
    assert page.run("document.getElementById('pair').textContent") == "Gold / WAVES"
    page.wait_for("document.querySelectorAll('#trades tr').length === 50")
    rising = "document.querySelector('#chart .body.up')?.getAttribute('d').split('M').length"
    page.wait_for(f"{rising} > 6")
    page.wait_for("Number(document.getElementById('chart').dataset.candles) > 5")
    save(page, "matcher-page.png")
    first = "document.querySelector('#bids button')?.textContent"
    assert page.run(first) == "1.89"
    order = buy(ALICE, 10**8, 195 * 10**6, timestamp=place.core.time)
    asyncio.run_coroutine_threadsafe(place.api.place(order), loop).result(10)
    page.wait_for(f"{first} === '1.95'")
    order = sell(BOB, 10**8, 195 * 10**6, timestamp=place.core.time)
    asyncio.run_coroutine_threadsafe(place.api.place(order), loop).result(10)
    page.wait_for(f"{first} === '1.89'")
    sold = "document.querySelector('#trades td.sell')?.textContent"
    page.wait_for(f"{sold} === '1.95'")
    page.run("document.querySelector('#intervals button:nth-child(3)').click()")
    page.wait_for("Number(document.getElementById('chart').dataset.candles) <= 3")
    assert page.errors == []
    own = f"http://127.0.0.1:{place.port}/"
    assert all(url.startswith((own, "data:", "ws:")) for url in page.requested), page.requested


async def test_the_page_shows_the_market_as_it_moves(devtools: str) -> None:
    settings = WebSockets(messages_interval_ms=20)
    async with served(web_sockets=settings) as place:
        await trade(place, 60)
        await quote(place)
        loop = asyncio.get_running_loop()

        def visit() -> None:
            with page_of(devtools) as page:
                page.note_requests()
                look(page, place, loop)

        await asyncio.to_thread(visit)


async def test_the_documentation_can_be_tried_out(devtools: str) -> None:
    async with served() as place:

        def visit() -> None:
            with page_of(devtools) as page:
                page.open(f"http://127.0.0.1:{place.port}/api-docs/index.html")
                page.wait_for("document.querySelectorAll('.opblock-tag').length >= 10")
                save(page, "matcher-documentation.png")
                assert page.errors == []

        await asyncio.to_thread(visit)
