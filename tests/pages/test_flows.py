"""What the pages tell is what the chain and the matcher say: every kind of transaction, blocks,
accounts, assets, books and trades, each compared with the REST interface.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from io import BufferedIOBase
from itertools import accumulate

import pytest

from soliton import Account, Matcher, Node
from soliton.client.ethereum import EthereumAccount
from soliton.client.transaction import Transaction
from soliton.devnet.accounts import RICH_SEED, funded_accounts
from tests.e2e import browser
from tests.e2e.browser import Page
from tests.e2e.programs import API_KEY, Program, balance, call, eventually, height, signed_transfer
from tests.pages.pages import LISTED, READY, go, go_on, hasty, nothing_ran, text
from tests.pages.proxy import events, proxy
from tests.pages.scenario import DAPP, RICH, compiled_script
from tests.pages.test_devnet_controls import HELPERS, press, said, write
from tests.pages.test_exchange import LIVE, sign_in

SELLER, BUYER, HOLDER, DAPP_OWNER = funded_accounts(ord("R"))[3:7]
RICH_ACCOUNT = Account.from_seed(RICH_SEED, "R")
COIN = 10**8
PAGE = 20
"""Transactions of an account that come at once."""
MANY = 45
SECONDS = 60
TRUE = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE EXPRESSION #-}
{-# SCRIPT_TYPE ASSET #-}
true
"""
OLDER = (
    "[...document.querySelectorAll('button')].find(e => e.innerText === 'Show older transactions')"
)
_ROWS = """
[...document.querySelectorAll(%s)].map(row =>
  [...row.cells].map(cell => cell.innerText.split("\\n")[0].trim()))
"""

pytestmark = browser.MARKS


def amount(units: int, decimals: int = 8) -> str:
    """As people read it: groups of three digits, no zeros at the end."""
    whole, rest = divmod(units, 10**decimals)
    fraction = str(rest).rjust(decimals, "0").rstrip("0") if decimals else ""
    return f"{whole:,}".replace(",", " ") + (f".{fraction}" if fraction else "")


def short(name: str) -> str:
    return f"{name[:7]}…{name[-5:]}"


def read(page: Page, selector: str = "main") -> str:
    """What a visitor reads, with plain spaces."""
    return plain(text(page, selector))


def plain(words: str) -> str:
    return words.replace("\u202f", " ").replace("\u00a0", " ")


def rows(page: Page, selector: str) -> list[list[str]]:
    """The first lines of a table's cells."""
    found = page.run(_ROWS % json.dumps(selector))
    return [[plain(str(cell)) for cell in row] for row in found]


def facts(page: Page) -> dict[str, str]:
    """Names and values of a view."""
    found = page.run(
        "[...document.querySelectorAll('.facts > div')].map("
        "each => [...each.children].map(part => part.innerText))"
    )
    return {name: plain(str(value)) for name, value in found}


Kinds = dict[str, tuple[str, str]]
"""Transactions by what they are: ids, and what happened in words."""


@pytest.fixture(scope="module")
def kinds(chain: Program) -> Kinds:
    found: Kinds = {}
    with Node(chain.node_url) as node:

        def add(kind: str, made: Transaction, words: str) -> str:
            name = node.send(made).wait().id
            found[kind] = (name, f"{words}.")
            return name

        copper = of_assets(chain, add)
        of_accounts(chain, add)
        wallet = EthereumAccount("07" * 32, "R")
        node.send(RICH_ACCOUNT.transfer(wallet.address, 10 * COIN)).wait()
        words = f"sent 1 WAVES to {short(HOLDER.address)} from an Ethereum wallet"
        made = wallet.transfer(HOLDER.address, COIN)
        add("ethereum", made, f"{short(wallet.address)} {words}")
    found["exchange"] = exchanged(chain, copper)
    first = call(f"{chain.node_url}/blocks/at/1").json()["transactions"][0]
    words = f"{short(first['recipient'])} began with {amount(first['amount'])} WAVES."
    found["genesis"] = (first["id"], words)
    return found


def of_assets(chain: Program, add: Callable[[str, Transaction, str], str]) -> str:
    """All that happens to assets; the id of one with three decimals."""
    rich, who = RICH_ACCOUNT, short(RICH)
    one, other = SELLER.address, BUYER.address
    made = rich.issue("Copper", 5_000_000, 3, reissuable=True)
    copper = add("issue", made, f"{who} issued 5 000 Copper")
    add("reissue", rich.reissue(copper, 1_500), f"{who} issued 1.5 Copper more")
    add("burn", rich.burn(copper, 250), f"{who} burned 0.25 Copper")
    made = rich.transfer(one, 2_001, copper)
    add("transfer", made, f"{who} sent 2.001 Copper to {short(one)}")
    made = rich.mass_transfer([(one, 1_000), (other, 2_000)], copper)
    add("mass", made, f"{who} sent 3 Copper to 2 accounts")
    add("sponsorship", rich.sponsor(copper, 7), f"{who} takes fees of 0.007 Copper")
    add("no sponsorship", rich.sponsor(copper, None), f"{who} takes no more fees in Copper")
    script = compiled_script(chain.node_url, TRUE)
    made = rich.issue("Lead", 1_000, script=script)
    lead = add("scripted issue", made, f"{who} issued 1 000 Lead")
    made = rich.set_asset_script(lead, script)
    add("asset script", made, f"{who} set the script of Lead")
    return copper


def of_accounts(chain: Program, add: Callable[[str, Transaction, str], str]) -> None:
    """All that happens to accounts."""
    rich, who = RICH_ACCOUNT, short(RICH)
    owner = Account.from_seed(DAPP_OWNER.seed, "R")
    made = rich.lease(HOLDER.address, 1_250_000_000)
    lease = add("lease", made, f"{who} leased 12.5 WAVES to {short(HOLDER.address)}")
    add("end of lease", rich.cancel_lease(lease), f"{who} ended the lease {short(lease)}")
    add("alias", rich.alias("kinds-of-all"), f"{who} took the alias kinds-of-all")
    add("data", rich.data({"a": 1, "b": "two"}), f"{who} wrote 2 data entries")
    made = owner.set_script(compiled_script(chain.node_url, DAPP))
    add("script", made, f"{short(owner.address)} set the script of the account")
    made = rich.invoke(owner.address, "outer", 4)
    add("call", made, f"{who} called outer of {short(owner.address)}")


def exchanged(chain: Program, copper: str) -> tuple[str, str]:
    """An exchange on the chain."""
    one, other = (Account.from_seed(each.seed, "R") for each in (SELLER, BUYER))
    with Matcher(chain.matcher_url) as matcher:
        key = matcher.public_key()
        # Three decimals of the amount make up for five of the price.
        price = 2 * COIN * 10**5
        matcher.place(one.sell(1_500, copper, price, None, matcher=key))
        taken = matcher.place(other.buy(1_500, copper, price, None, matcher=key))
        eventually(lambda: bool(matcher.order_transactions(taken)), "the exchange")
        name = matcher.order_transactions(taken)[0].id
    place = f"{chain.node_url}/transactions/info/{name}"
    eventually(lambda: call(place).status == 200, "the exchange in a block")
    words = f"bought 1.5 Copper from {short(one.address)} at 2 WAVES."
    return name, f"{short(other.address)} {words}"


def test_every_kind_of_transaction_is_told_in_a_sentence(
    chain: Program, kinds: Kinds, page: Page
) -> None:
    go(page, chain.node_url)
    for kind, (name, words) in kinds.items():
        go_on(page, f"#tx/{name}")
        assert read(page, ".sentence") == words, kind
        told = call(f"{chain.node_url}/transactions/info/{name}").json()
        shown = facts(page)
        assert shown["Id"].split()[0] == name
        assert shown["Status"].startswith("Succeeded."), kind
        assert shown["Block"] == str(told["height"])
        assert shown["Fee"] == f"{amount(told['fee'])} WAVES", kind
        if kind != "genesis":
            assert shown["Sender"] == told["sender"]
    nothing_ran(page)


def test_balances_after_a_transaction_are_those_of_the_chain(
    chain: Program, kinds: Kinds, page: Page
) -> None:
    name = kinds["exchange"][0]
    go(page, chain.node_url, f"#tx/{name}")
    told = call(f"{chain.node_url}/transactions/snapshot/{name}").json()["balances"]
    table = "[aria-label='Balances after the transaction'] tbody tr"
    page.wait_for(f"document.querySelectorAll({json.dumps(table)}).length === {len(told)}")
    assert rows(page, table) == [
        [
            short(each["address"]),
            amount(each["balance"], 8 if each["asset"] is None else 3),
            "WAVES" if each["asset"] is None else "Copper",
        ]
        for each in told
    ]


def test_orders_of_an_exchange_have_the_price_of_one(
    chain: Program, kinds: Kinds, page: Page
) -> None:
    name = kinds["exchange"][0]
    go(page, chain.node_url, f"#tx/{name}")
    told = call(f"{chain.node_url}/transactions/info/{name}").json()
    both = (told["order1"], told["order2"])
    # Of version 3: two coins for one of an asset with three decimals are so many units.
    assert [(each["version"], each["price"]) for each in both] == [(3, 2 * COIN * 10**5)] * 2
    assert rows(page, "[aria-label=Orders] tbody tr") == [
        [each["orderType"], short(each["sender"]), "1.5", "2", each["id"]] for each in both
    ]


def test_a_block_is_told_as_it_is(chain: Program, kinds: Kinds, page: Page) -> None:
    name = kinds["mass"][0]
    place = call(f"{chain.node_url}/transactions/info/{name}").json()["height"]
    told = call(f"{chain.node_url}/blocks/at/{place}").json()
    go(page, chain.node_url, f"#block/{place}")
    assert text(page, "h1") == f"Block {place}"
    shown = facts(page)
    assert shown["Id"].split()[0] == told["id"]
    assert shown["Generator"] == told["generator"]
    assert shown["Transactions"] == amount(told["transactionCount"], 0)
    assert shown["Fees"] == f"{amount(told['totalFee'])} WAVES"
    assert shown["Size"] == f"{amount(told['blocksize'], 0)} bytes"
    assert shown["Version"] == str(told["version"])
    assert shown["Base target"] == str(told["nxt-consensus"]["base-target"])
    (row,) = rows(page, "[aria-label='Transactions of the block'] tbody tr")
    assert row[:2] == ["Mass transfer", kinds["mass"][1].removesuffix(".")]
    assert row[3] == short(name)
    page.run("document.querySelector('.steps a').click()")
    page.wait_for(f"document.querySelector('h1').innerText === 'Block {place - 1}'")
    # There is nothing below the first one, and nothing above the last one.
    go(page, chain.node_url, "#block/1")
    assert "Below it" not in facts(page) and "Below" not in text(page, ".steps")
    go(page, chain.node_url, f"#block/{height(chain.node_url)}")
    page.wait_for("!document.querySelector('.steps').innerText.includes('Above')")


def test_an_account_is_told_as_it_is(chain: Program, kinds: Kinds, page: Page) -> None:
    url = chain.node_url
    holder = Account.from_seed(HOLDER.seed, "R")
    with Node(url) as node:
        token = node.send(holder.issue("The only one", 1)).wait().id
        coins = node.send(holder.issue("Some more", 12_345_678, 4, reissuable=True)).wait().id
        node.send(holder.alias("the-holder")).wait()
        lease = node.send(holder.lease(RICH, 3 * COIN)).wait().id
        node.send(holder.data({"one": 1, "yes": True})).wait()
        for number in range(MANY):
            node.send(holder.transfer(RICH, number + 1)).wait()
    go(page, url, f"#account/{HOLDER.address}")
    told = call(f"{url}/addresses/balance/details/{HOLDER.address}").json()
    figures = "[...document.querySelectorAll('.figures dd')].map(each => each.innerText)"
    assert [plain(each) for each in page.run(figures)] == [
        amount(told[name]) for name in ("regular", "available", "effective", "generating")
    ]
    page.wait_for("document.querySelector('[aria-label=Assets] tbody tr')")
    assert [row[1] for row in rows(page, "[aria-label=Assets] tbody tr") if row[0] == "Some more"] \
        == ["1 234.5678"]  # fmt: skip
    tokens = "[...document.querySelectorAll('main p a')].find(each => each.title === '%s')"
    page.wait_for(tokens % token)
    assert page.run(f"({tokens % token}).innerText") == "The only one"
    assert coins != token
    page.wait_for("document.body.innerText.includes('Aliases: the-holder')")
    leases = {row[4]: row for row in rows(page, "[aria-label='Active leases'] tbody tr")}
    assert leases[short(lease)][:3] == ["to", short(RICH), "3"]
    page.wait_for("document.querySelectorAll('[aria-label=Data] tbody tr').length === 2")
    # The history, to its end.
    history = call(f"{url}/transactions/address/{HOLDER.address}/limit/1000").json()[0]
    links = "[...document.querySelectorAll('.feed .kind a')].map(each => each.title)"
    for shown in range(PAGE, len(history) + PAGE, PAGE):
        page.wait_for(f"{links}.length === {min(shown, len(history))}")
        page.run(f"({OLDER})?.click()")
    assert page.run(links) == [each["id"] for each in history]
    assert page.run(f"Boolean({OLDER})") is False
    nothing_ran(page)


def test_an_asset_is_told_as_it_is(chain: Program, kinds: Kinds, page: Page) -> None:
    url, asset = chain.node_url, kinds["issue"][0]
    call(f"{url}/devnet/mine", "")
    go(page, url, f"#asset/{asset}")
    told = call(f"{url}/assets/details/{asset}").json()
    shown = facts(page)
    assert text(page, "h1") == "Copper"
    assert shown["Quantity"] == amount(told["quantity"], 3) == "5 001.25"
    assert (shown["Decimals"], shown["Reissuable"]) == ("3", "yes")
    assert shown["Issuer"] == told["issuer"]
    assert shown["Issued"].endswith(f"in block {told['issueHeight']}")
    page.wait_for("document.querySelector('[aria-label=Holders] tbody tr')")
    items = call(f"{url}/assets/{asset}/distribution/{height(url) - 1}/limit/100").json()["items"]
    wanted = sorted(items.items(), key=lambda each: -each[1])
    assert rows(page, "[aria-label=Holders] tbody tr") == [
        [short(name), amount(units, 3)] for name, units in wanted
    ]
    go(page, url, f"#tx/{kinds['asset script'][0]}")
    page.wait_for("document.querySelector('.sentence .asset')")
    page.run("document.querySelector('.sentence .asset').click()")
    page.wait_for(f"{READY} && document.querySelector('h1').innerText === 'Lead'")
    assert facts(page)["Script"].startswith("yes")


# --- the stream -----------------------------------------------------------------------------------


def test_microblocks_grow_the_last_block(chain: Program, page: Page) -> None:
    url = chain.node_url
    last = call(f"{url}/blocks/headers/last").json()
    grown = {"height": last["height"], "id": "2" * 44, "transactionCount": 7, "added": 2}
    synced = {"height": last["height"], "id": grown["id"], "transactionCount": 7}

    def stream(out: BufferedIOBase) -> None:
        told = (("block", last), ("microblock", grown), ("microblock", grown), ("synced", synced))
        out.write(events(*told))
        over.wait(SECONDS)

    over = threading.Event()
    with proxy(url, {"/events": stream}) as place:
        go(page, place)
        page.wait_for("document.querySelector('#blocks tr.fresh')")
        row = rows(page, "#blocks tr")[0]
        assert (row[0].split()[0], row[3]) == (str(last["height"]), "7")
        assert page.run("document.querySelector('#blocks tr').title") == "grew 2 times"
        page.open("about:blank")
        over.set()
    page.errors.clear()


def test_transactions_that_are_taken_off_the_last_block_are_listed_no_more(
    chain: Program, page: Page
) -> None:
    url = chain.node_url
    last = call(f"{url}/blocks/headers/last").json()
    place = {"height": last["height"], "id": last["id"]}
    sample = call(f"{url}/blocks/at/1").json()["transactions"][0]
    ids = ["3" * 44, "4" * 44]
    told = [
        ("block", {**last, "transactionCount": 2}),
        *(
            ("transaction", {**place, "index": at, "transaction": {**sample, "id": each}})
            for at, each in enumerate(ids)
        ),
        ("synced", {**place, "transactionCount": 2}),
    ]

    def stream(out: BufferedIOBase) -> None:
        out.write(events(*told))
        seen.wait(SECONDS)
        out.write(events(("rollback", {**place, "transactionCount": 1})))
        over.wait(SECONDS)

    seen, over = threading.Event(), threading.Event()
    with proxy(url, {"/events": stream}) as address:
        go(page, address)
        page.wait_for(f"{LISTED}.includes('#tx/{ids[1]}')")
        seen.set()
        page.wait_for(f"!{LISTED}.includes('#tx/{ids[1]}')")
        assert f"#tx/{ids[0]}" in page.run(LISTED)
        words = f"Transactions were removed from the block at height {last['height']}."
        assert words in text(page, "#notice")
        page.open("about:blank")
        over.set()
    page.errors.clear()


def test_a_stream_that_the_node_ends_goes_on(chain: Program, page: Page) -> None:
    url = chain.node_url
    last = call(f"{url}/blocks/headers/last").json()
    synced = {"height": last["height"], "id": last["id"], "transactionCount": 0}
    began: list[BufferedIOBase] = []
    over = threading.Event()

    def stream(out: BufferedIOBase) -> None:
        began.append(out)
        out.write(b"retry: 100\n\n" + events(("block", last), ("synced", synced)))
        if len(began) == 1:
            out.write(events(("closed", {"reason": "it reads <b>too slowly"})))
            return
        over.wait(SECONDS)

    with proxy(url, {"/events": stream}) as place:
        go(page, place)
        page.wait_for("document.getElementById('notice').innerText.includes('closed the stream')")
        assert "it reads <b>too slowly. Reconnecting" in text(page, "#notice")
        eventually(lambda: len(began) == 2, "another stream")
        page.wait_for("document.getElementById('live').className === 'live'")
        page.open("about:blank")
        over.set()
    page.errors.clear()
    nothing_ran(page)


def test_the_node_page_goes_on_with_its_node(chain: Program, page: Page) -> None:
    url = chain.node_url
    with hasty(page, 10_000):
        go(page, url, "#node")
    table = "[aria-label='Generators of the last blocks'] tbody tr"
    page.wait_for(f"document.querySelector({json.dumps(table)})")
    page.run(f"document.querySelector({json.dumps(table + ' a')}).focus()")
    before = int(rows(page, table)[0][1])
    call(f"{url}/devnet/mine?blocks=2", "")
    page.wait_for(f"document.querySelector('.facts').innerText.includes('{height(url)}')")
    wanted = [before + 2, 100]
    found = f"Number(document.querySelector({json.dumps(table)}).cells[1].innerText)"
    page.wait_for(f"{found} === {min(wanted)}")
    assert page.run("document.activeElement.title") == RICH
    nothing_ran(page)


# --- the devnet -----------------------------------------------------------------------------------


def test_how_blocks_come_is_changed(chain: Program, page: Page) -> None:
    url = chain.node_url
    go(page, url, "#devnet")
    page.run(HELPERS)
    for mode, words in (("manual", "on request"), ("interval", "every 3600 s")):
        write(page, "Mining mode", mode)
        write(page, "Interval, seconds", "3600")
        press(page, "Change")
        said(page, f"mining mode: {mode}")
        page.wait_for(f"document.querySelector('.figures').innerText.includes({json.dumps(words)})")
        assert call(f"{url}/devnet").json()["mining"]["mode"] == mode
    before = height(url)
    call(f"{url}/transactions/broadcast", signed_transfer(url, RICH, HOLDER.address, 1))
    assert height(url) == before
    call(f"{url}/devnet/mining?mode=instant", "")
    write(page, "Blocks", "3")
    write(page, "Interval, ms", "60000")
    press(page, "Mine")
    said(page, "mined 3 blocks")
    times = [
        call(f"{url}/blocks/headers/at/{height(url) - back}").json()["timestamp"] for back in (1, 0)
    ]
    assert times[1] - times[0] == 60_000
    file = str(page.run("document.querySelector('a[download]').href"))
    assert file.startswith(url) and call(file).status == 200


def test_another_api_key_is_used(chain: Program, page: Page) -> None:
    url = chain.node_url
    go(page, url, "#devnet")
    page.run(HELPERS)
    write(page, "API key", "a wrong one")
    press(page, "Use")
    said(page, "changed the API key")
    page.run("location.hash = '#deploy'")
    page.wait_for("document.querySelector('#verdict')?.innerText.includes('Compiled. Complexity')")
    page.run(HELPERS)
    press(page, "Deploy")
    page.wait_for("document.querySelector('main').innerText.includes('API key is not correct')")
    page.run("location.hash = '#devnet'")
    page.wait_for("document.querySelector('main h1').innerText === 'Devnet'")
    page.run(HELPERS)
    write(page, "API key", API_KEY)
    press(page, "Use")
    page.run("location.hash = '#deploy'")
    page.wait_for("document.querySelector('#verdict')?.innerText.includes('Compiled. Complexity')")
    page.run(HELPERS)
    press(page, "Deploy")
    page.wait_for("document.querySelector('main').innerText.includes('Deployed on')")
    page.errors.clear()


# --- the exchange ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def market(chain: Program) -> str:
    """An asset with trades at three prices, and three levels on each side of its book."""
    seller, buyer = (Account.from_seed(each.seed, "R") for each in (SELLER, BUYER))
    with Node(chain.node_url) as node, Matcher(chain.matcher_url) as matcher:
        asset = node.send(seller.issue("Tin ore", 1_000 * COIN, 8)).wait().id
        key = matcher.public_key()
        for number in range(1, 4):
            price = 2 * COIN + number * COIN // 10
            matcher.place(seller.sell(number * COIN, asset, price, None, matcher=key))
            taken = buyer.buy(number * COIN, asset, price, None, matcher=key)
            matcher.place(taken)
            eventually(lambda: matcher.order_status(taken).status == "Filled", "a trade")  # noqa: B023
        for number in range(1, 4):
            price = number * COIN // 8
            matcher.place(seller.sell(number * COIN, asset, 3 * COIN + price, None, matcher=key))
            matcher.place(buyer.buy(number * COIN // 4, asset, 2 * COIN - price, None, matcher=key))
    return str(asset)


def test_book_trades_and_candles_are_those_of_the_matcher(
    chain: Program, market: str, page: Page
) -> None:
    url = chain.matcher_url
    go(page, url, f"#{market}", f"{LIVE} && document.querySelectorAll('#trades tr').length === 3")
    page.wait_for("document.querySelectorAll('#bids tr').length === 3")
    book = call(f"{url}/matcher/orderbook/{market}/WAVES").json()
    for side, name in (("asks", "#asks tr"), ("bids", "#bids tr")):
        levels = book[side]
        sums = accumulate(each["amount"] for each in levels)
        wanted = [
            [amount(each["price"]), amount(each["amount"]), amount(total)]
            for each, total in zip(levels, sums, strict=True)
        ]
        assert rows(page, name) == (wanted[::-1] if side == "asks" else wanted), side
    trades = call(f"{url}/api/v1/trades/{market}/WAVES?limit=50").json()
    shown = rows(page, "#trades tr")
    assert [row[1:] for row in shown] == [
        [amount(round(float(each["price"]) * COIN)), amount(round(float(each["amount"]) * COIN))]
        for each in reversed(trades)
    ]
    for name in ("5m", "1h", "1d", "1m"):
        page.run(f"[...document.querySelectorAll('#intervals button')].find("
                 f"each => each.innerText === '{name}').click()")  # fmt: skip
        candle = call(f"{url}/api/v1/candles/{market}/WAVES?interval={name}&limit=500").json()[-1]
        words = " · ".join(
            f"{letter} {value}" for letter, value in zip("OHLCV", candle[1:6], strict=True)
        )
        page.wait_for(f"document.getElementById('under').innerText.endsWith({json.dumps(words)})")
        pressed = "document.querySelector('#intervals [aria-pressed=true]').innerText"
        assert page.run(pressed) == name


def test_a_market_is_found_and_balances_are_those_of_the_matcher(
    chain: Program, market: str, page: Page
) -> None:
    url = chain.matcher_url
    go(page, url, f"#{market}", LIVE)
    for words in ("tin ore", market):
        page.run(
            f"(document.getElementById('find').value = '{words}',"
            " document.getElementById('find').dispatchEvent(new Event('input')))"
        )
        page.wait_for("document.querySelectorAll('#markets tr').length === 1")
        assert "Tin ore / WAVES" in text(page, "#markets")
    sign_in(page, BUYER.seed)
    path = f"{url}/matcher/orderbook/{market}/WAVES/tradableBalance/{BUYER.address}"
    told = call(path).json()
    assert read(page, "#balances").split("\n") == [
        f"{amount(told[market])} Tin ore to trade", "", f"{amount(told['WAVES'])} WAVES to trade"
    ]  # fmt: skip
    assert told["WAVES"] < balance(chain.node_url, BUYER.address)
    nothing_ran(page)
