"""The explorer in a real browser, on a devnet: every view, live, with names of strangers."""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass, field
from io import BufferedIOBase
from pathlib import Path

import pytest

from soliton.devnet.accounts import funded_accounts
from tests.e2e import browser
from tests.e2e.browser import Page
from tests.e2e.programs import API_KEY, Program, call, devnet, eventually, height, started
from tests.pages.pages import (
    AXE,
    LISTED,
    LOOKS,
    NARROW,
    READY,
    SMALL_JUMP,
    axe_findings,
    clipped,
    dress,
    go,
    go_on,
    hasty,
    jumped,
    looks,
    needs_axe,
    nothing_ran,
    patient,
    save,
    text,
)
from tests.pages.proxy import proxy
from tests.pages.scenario import (
    FIRST,
    NAMES,
    PAYLOAD,
    RICH,
    SECOND,
    THIRD,
    Scenario,
    compiled_script,
    send,
    views,
)

FOURTH = funded_accounts(ord("R"))[3].address
pytestmark = browser.MARKS
CHANGES_ITS_MIND = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}

@Callable(i)
func keep() = [BooleanEntry("kept", true)]

@Callable(i)
func late() = if (CHECKS || !isDefined(getBoolean(this, "kept"))) then []
  else throw("it is kept <b>")
""".replace(
    "CHECKS",
    " || ".join(f"sigVerify(base58'{number}', base58'', base58'')" for number in range(1, 8)),
)
"""A function that costs enough to fail in a block, once the other one was called."""
AUDITED = {"home", "node", "block", "call", "data", "asset", "dapp", "account", "names", "search"}
AUDITED |= {"mass", "rich"}
COLOURED = {"home", "node", "call", "dapp"}
"""Views with all colours that there are."""
FILL = (
    "(document.getElementById('query').value = %r,"
    " document.querySelector('#search button').click())"
)


def test_no_view_runs_what_strangers_wrote(
    chain: Program, played_chain: Scenario, page: Page
) -> None:
    page.note_requests()
    go(page, played_chain.url)
    for name, fragment in views(played_chain).items():
        if fragment:
            go_on(page, fragment)
        page.run("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        page.wait_for("!document.querySelector('[aria-busy], .pending')")
        nothing_ran(page)
        links = page.run(
            "[...document.querySelectorAll('a')].map(each => each.getAttribute('href'))"
            ".filter(each => !/^(#|api-docs\\/)/.test(each))"
        )
        assert [each for each in links if each != f"{chain.matcher_url}/#{fragment[7:]}"] == [], (
            name
        )
    errors = [each for each in page.errors if "404" not in each]
    assert errors == []
    foreign = [
        each for each in page.requested
        if not each.startswith((played_chain.url, "data:", "about:", "blob:"))
    ]  # fmt: skip
    assert foreign == []
    page.command("Network.disable")


@dataclass
class Look:
    """What a visitor with a window of some width sees of the views, each by its name: what has
    jumped while it came, what is too wide in one look, what axe-core says of it.
    """

    jumps: dict[str, object] = field(default_factory=dict)
    beyond: dict[str, object] = field(default_factory=dict)
    findings: dict[str, list[str]] = field(default_factory=dict)


Seen = dict[int, Look]


@pytest.fixture(scope="module")
def seen(played_chain: Scenario, page: Page) -> Seen:
    """Every view, opened once in a narrow window and once in a wide one."""
    return {width: look(played_chain, page, width) for width in (NARROW, 1280)}


def look(scenario: Scenario, page: Page, opened: int) -> Look:
    found = Look()
    places = views(scenario) | {"search": "#search/nothing"}
    schemes = [each for each in LOOKS if (each[0] == NARROW) == (opened == NARROW)]
    with patient(page):
        for name, fragment in places.items():
            dress(page, opened, "light")
            go(page, scenario.url, fragment)
            if jumped(page) >= SMALL_JUMP:
                found.jumps[name] = page.run("jumps")
            for width, scheme in schemes:
                dress(page, width, scheme)
                wide = int(page.run("document.documentElement.scrollWidth"))
                cut = clipped(page)
                if wide > width or cut:
                    found.beyond[f"{name}, {width}, {scheme}"] = (wide, cut)
                save(page, f"explorer-{name}-{width}-{scheme}.png")
    if AXE.exists():
        # From view to view: axe-core comes once, and is fast by then.
        for name in sorted(AUDITED):
            dress(page, opened, "light")
            go_on(page, places[name])
            found.findings[name] = axe_findings(page)
            if opened != NARROW and name in COLOURED:
                # Of what axe-core looks at, only colours differ between the schemes.
                dress(page, opened, "dark")
                found.findings[name] += axe_findings(page, "color-contrast")
    dress(page, 1280, "light")
    return found


@pytest.mark.parametrize("width", [NARROW, 1280])
def test_views_fit_into_the_window(seen: Seen, width: int) -> None:
    assert seen[width].beyond == {}


@pytest.mark.parametrize("width", [NARROW, 1280])
def test_nothing_jumps_while_a_view_comes(seen: Seen, width: int) -> None:
    assert seen[width].jumps == {}


@needs_axe
@pytest.mark.parametrize("width", [NARROW, 1280])
def test_axe_finds_nothing(seen: Seen, width: int) -> None:
    assert {name: found for name, found in seen[width].findings.items() if found} == {}
    assert seen[width].findings.keys() == AUDITED


def test_amounts_are_exact_and_strangers_letters_visible(
    played_chain: Scenario, page: Page
) -> None:
    go(page, played_chain.url, f"#tx/{played_chain.transfer}")
    words = text(page).replace("\u202f", " ").replace("\u00a0", " ")
    assert "sent 123 456 789 012 345 678 <b>Gold</b> to" in words
    assert PAYLOAD[:60] in words
    go(page, played_chain.url, f"#asset/{played_chain.assets[5]}")
    assert text(page, "h1") == "\u25a1evil\u25a1"
    assert "92 233 720 368 547.75807" in text(page).replace("\u202f", " ")
    go(page, played_chain.url, "#node")
    points = page.run(
        "[...document.querySelectorAll('[aria-label^=Next] .fraction')]"
        ".map(each => each.getBoundingClientRect().left)"
    )
    assert len(points) > 2 and len(set(points)) == 1, "points are not below each other"
    go(page, played_chain.url, f"#tx/{played_chain.data}")
    assert str(-(2**63)) in text(page)
    page.run("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    page.wait_for("document.querySelector('details pre')")
    assert f'"value": {-(2**63)}' in text(page, "details pre")


def test_a_call_shows_whom_it_called_and_what_that_changed(
    played_chain: Scenario, page: Page
) -> None:
    go(page, played_chain.url, f"#tx/{played_chain.call}")
    tree = text(page, ".tree")
    assert "outer(7)" in tree and "put(inner, 7, true," in tree and "[1, 2]" in tree
    assert "wrote inner = 8" in tree
    assert "sent 0.00000005" in text(page)
    page.wait_for("document.body.innerText.includes('Balances afterwards')")
    go(page, played_chain.url, f"#account/{FIRST}")
    assert "key: String, n: Int, flag: Boolean, bytes: ByteVector, list: List[Int]" in text(page)
    page.run("document.querySelector('section details').open = true")
    page.wait_for("document.querySelector('.listing')")
    assert "func plusOne (n: Int)" in text(page, ".listing")


def test_search_finds_by_anything(played_chain: Scenario, page: Page) -> None:
    url = played_chain.url
    header = call(f"{url}/blocks/headers/at/3").json()
    key = call(f"{url}/transactions/info/{played_chain.transfer}").json()["senderPublicKey"]
    wanted = {
        "3": "#block/3",
        header["id"]: "#block/3",
        played_chain.transfer: f"#tx/{played_chain.transfer}",
        RICH: f"#account/{RICH}",
        key: f"#account/{RICH}",
        "hal-9000": f"#account/{SECOND}",
        "alias:R:hal-9000": f"#account/{SECOND}",
        NAMES[4]: f"#asset/{played_chain.assets[4]}",
        "GOLD": f"#asset/{played_chain.assets[0]}",
    }
    go(page, url, "#node")
    for words, place in wanted.items():
        go_on(page, "")
        page.run(FILL % words)
        page.wait_for(f"location.hash === {place!r}")
        page.wait_for(READY)
        assert text(page, "h1") not in ("Search", "Not found", "Something went wrong")
    go(page, url)
    page.run(FILL % played_chain.assets[0])
    page.wait_for("document.querySelectorAll('.results li').length === 2")
    page.run(FILL % "there is no such thing")
    page.wait_for("document.body.innerText.includes('No results for')")


def test_what_is_not_there_is_said(played_chain: Scenario, page: Page) -> None:
    missing = "1" * 32
    for fragment, words in {
        f"#tx/{missing}": "Not found",
        "#block/999999": "Not found",
        f"#asset/{missing}": "Not found",
        "#alias/nobody-has-it": "Not found",
        "#account/nonsense": "Something went wrong",
        "#constructor/x": "Nothing here",
        "#%E0%A4%A": "Nothing here",
    }.items():
        go(page, played_chain.url, fragment)
        assert text(page, "h1") == words, fragment
    nothing_ran(page)


def test_home_follows_the_chain(chain: Program, page: Page) -> None:
    go(page, chain.node_url)
    before = int(page.run("document.querySelector('.figures dd').innerText"))
    page.run("window.kept = true")
    call(f"{chain.node_url}/devnet/mining?mode=manual", "")
    try:
        signed = call(
            f"{chain.node_url}/transactions/sign",
            {"type": 4, "version": 2, "sender": RICH, "recipient": FIRST, "amount": 77_000_000,
             "fee": 100_000, "attachment": ""}, key="waves-private-node",
        ).json()  # fmt: skip
        call(f"{chain.node_url}/transactions/broadcast", signed)
        page.wait_for("document.querySelector('.low .feed')?.innerText.includes('sent 0.77')")
        assert "0.001" in text(page, ".figures")
        call(f"{chain.node_url}/devnet/mine?blocks=3", "")
        page.wait_for(f"document.querySelector('.figures dd').innerText === '{before + 3}'")
        page.wait_for("document.querySelector('.low .feed').children.length === 0")
        assert "sent 0.77" in text(page, ".tall .feed")
        taken = call(f"{chain.node_url}/devnet/snapshots", "").json()["id"]
        call(f"{chain.node_url}/devnet/mine?blocks=5", "")
        page.wait_for(f"document.querySelector('.figures dd').innerText === '{before + 8}'")
        call(f"{chain.node_url}/devnet/snapshots/{taken}/revert", "")
        page.wait_for(f"document.querySelector('.figures dd').innerText === '{before + 3}'")
        page.wait_for("document.getElementById('notice').innerText.includes('rolled back')")
    finally:
        call(f"{chain.node_url}/devnet/mining?mode=instant", "")
    assert page.run("window.kept") is True


def test_an_account_that_is_watched_says_what_is_new(chain: Program, page: Page) -> None:
    go(page, chain.node_url, f"#account/{SECOND}")
    before = text(page, ".figures")
    assert text(page, ".hint") == ""
    send(
        chain.node_url, type=4, version=2, sender=RICH, recipient=SECOND, amount=100_000_001,
        fee=100_000, attachment="",
    )  # fmt: skip
    page.wait_for("document.querySelector('.hint button')")
    eventually(lambda: text(page, ".figures") != before, "the new balance")
    page.run("document.querySelector('.hint button').click()")
    page.wait_for("document.querySelector('.feed li')?.innerText.includes('1.00000001')")


def test_the_page_goes_on_after_a_restart(tmp_path: Path, page: Page) -> None:
    with devnet("--data-dir", tmp_path / "data") as program:
        url = program.node_url
        send(
            url, type=4, version=2, sender=RICH, recipient=SECOND, amount=5, fee=100_000,
            attachment="",
        )  # fmt: skip
        go(page, url)
        port = url.rpartition(":")[2]
    page.wait_for("document.getElementById('live').className === 'broken'")
    assert "retrying" in text(page, "#live")
    with devnet("--data-dir", tmp_path / "data", "--port", port) as program:
        page.wait_for("document.getElementById('live').className === 'live'")
        call(f"{program.node_url}/devnet/mine?blocks=2", "")
        height = call(f"{program.node_url}/blocks/height").json()["height"]
        page.wait_for(f"document.querySelector('.figures dd').innerText === '{height}'")
    page.wait_for("document.getElementById('live').className === 'broken'")
    # Another chain on the same port: not even the genesis block is the same.
    with devnet("--port", port, "--seed", "others") as program:
        page.wait_for("document.getElementById('notice').innerText.includes('another chain')")
        height = call(f"{program.node_url}/blocks/height").json()["height"]
        page.wait_for(f"document.querySelector('.figures dd')?.innerText === '{height}'")
    page.errors.clear()


def test_the_api_console_is_one_click_away_and_one_fragment(chain: Program, page: Page) -> None:
    go(page, chain.node_url)
    page.run("document.querySelector('nav a[href^=api-docs]').click()")
    page.wait_for("document.querySelector('#swagger-ui')")
    page.open("about:blank")
    page.open(f"{chain.node_url}/#/blocks")
    page.wait_for("document.querySelectorAll('.opblock-tag-section').length > 3")
    page.wait_for("document.querySelector('#operations-tag-blocks[data-is-open=true]')")


def test_another_node_is_looked_at_without_controls(chain: Program, page: Page) -> None:
    with devnet() as other:
        go(page, chain.node_url, f"?node={other.node_url}")
        assert other.node_url in text(page, "#whose")
        assert page.run("document.getElementById('devnet').hidden") is True
        height = call(f"{other.node_url}/blocks/height").json()["height"]
        page.wait_for(f"document.querySelector('.figures dd').innerText === '{height}'")
        nothing_ran(page)
    page.errors.clear()


def test_the_keyboard_reaches_the_search_and_the_content(chain: Program, page: Page) -> None:
    go(page, chain.node_url)

    def press(key: str, code: int) -> None:
        for kind in ("rawKeyDown", "char", "keyUp"):
            letter = {"text": key} if kind == "char" and len(key) == 1 else {}
            page.command(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **letter
            )

    press("Tab", 9)
    assert page.run("document.activeElement.id") == "skip"
    press("/", 191)
    assert page.run("document.activeElement.id") == "query"


def test_a_hundred_blocks_are_taken_back_while_somebody_looks(chain: Program, page: Page) -> None:
    url = chain.node_url
    taken = call(f"{url}/devnet/snapshots", "").json()["id"]
    before = height(url)
    call(f"{url}/devnet/mine?blocks=100", "")
    go(page, url, f"#block/{before + 50}")
    call(f"{url}/devnet/snapshots/{taken}/revert", "")
    page.wait_for("document.getElementById('notice').innerText.includes('rolled back 100 blocks')")
    page.wait_for(
        "document.querySelector('.hint').innerText.includes('no longer part of the chain')"
    )
    call(f"{url}/devnet/mine", "")
    page.run("location.hash = ''")
    page.wait_for(f"document.querySelector('.figures dd')?.innerText === '{before + 1}'")
    assert text(page, "tbody tr td") == str(before + 1)


def test_the_last_transactions_are_shown_however_old(chain: Program, page: Page) -> None:
    url = chain.node_url
    name = send(
        url, type=4, version=2, sender=RICH, recipient=FIRST, amount=31_415_926, fee=100_000,
        attachment="",
    )  # fmt: skip
    call(f"{url}/devnet/mine?blocks=130", "")
    for door in (contextlib.nullcontext(url), proxy(url, {"/events": None})):
        with door as place:
            go(page, place)
            page.wait_for(f"document.querySelector('.tall .feed a[href=\"#tx/{name}\"]')")
    page.errors.clear()


def test_a_node_without_a_stream_is_asked_again_and_again(chain: Program, page: Page) -> None:
    with proxy(chain.node_url, {"/events": None}) as url, hasty(page, 5_000):
        go(page, url)
        assert text(page, "#live") == "every 5 s"
        before = int(page.run("document.querySelector('.figures dd').innerText"))
        taken = call(f"{url}/devnet/snapshots", "").json()["id"]
        call(f"{url}/devnet/mine?blocks=2", "")
        page.wait_for(f"document.querySelector('.figures dd').innerText === '{before + 2}'")
        call(f"{url}/devnet/snapshots/{taken}/revert", "")
        page.wait_for(f"document.querySelector('.figures dd').innerText === '{before}'")
        assert "rolled back 2 blocks" in text(page, "#notice")
        # The same from the page of another node.
        go(page, chain.node_url, f"?node={url}")
        assert text(page, "#live") == "every 5 s"
        page.wait_for(f"document.querySelector('.figures dd').innerText === '{before}'")
        page.open("about:blank")
    page.errors.clear()


def test_a_block_of_such_a_node_that_is_cut_at_the_same_height_is_told(
    chain: Program, page: Page
) -> None:
    url = chain.node_url
    block = call(f"{url}/blocks/last").json()
    height = block["height"]
    sample = call(f"{url}/blocks/at/1").json()["transactions"][0]
    first = max(1, height - 11)
    headers = call(f"{url}/blocks/headers/seq/{first}/{height}").json()
    one, two, three = ({**sample, "id": digit * 44} for digit in "345")
    # The same key block with what follows it: two transactions, one less, another one in its place.
    now = {"id": block["id"], "transactions": [one, two]}

    def last_headers(out: BufferedIOBase) -> None:
        last = {**headers[-1], "id": now["id"], "transactionCount": len(now["transactions"])}
        out.write(json.dumps([*headers[:-1], last]).encode())

    def last_block(out: BufferedIOBase) -> None:
        out.write(json.dumps({**block, **now}).encode())

    made_up = {
        "/events": None,
        f"/blocks/headers/seq/{first}/{height}": last_headers,
        f"/blocks/at/{height}": last_block,
    }
    with proxy(url, made_up) as address, hasty(page, 5_000):
        go(page, address)
        page.wait_for(f"{LISTED}.includes('#tx/{two['id']}')")
        now.update(id="6" * 44, transactions=[one])
        page.wait_for(f"!{LISTED}.includes('#tx/{two['id']}')")
        assert f"#tx/{one['id']}" in page.run(LISTED)
        words = f"Transactions were removed from the block at height {height}."
        assert words in text(page, "#notice")
        now.update(id="7" * 44, transactions=[three])
        page.wait_for(f"{LISTED}.includes('#tx/{three['id']}')")
        assert f"#tx/{one['id']}" not in page.run(LISTED)
        assert page.run("document.querySelector('#blocks tr').cells[3].innerText") == "1"
        page.open("about:blank")
    page.errors.clear()


def test_the_node_page_tells_whose_turn_it_is(chain: Program, page: Page) -> None:
    go(page, chain.node_url, "#node")
    shown = text(page)
    assert "mines a block per transaction" in shown
    page.wait_for(f"document.querySelector('[aria-label^=Next] a[title=\"{RICH}\"]')")
    assert "100 %" in shown


def test_the_node_page_tells_of_features_and_rewards(chain: Program, page: Page) -> None:
    url = chain.node_url
    go(page, url, "#node")
    page.wait_for("document.querySelector('[aria-label=Features] tbody tr')")
    told = call(f"{url}/activation/status").json()["features"]
    rows = page.run(
        "[...document.querySelectorAll('[aria-label=Features] tbody tr')].map("
        "each => each.innerText)"
    )
    for row, each in zip(rows, told, strict=True):
        assert each["description"] in row
        assert ("active from the start" in row) == (each["blockchainStatus"] == "ACTIVATED")
    answer = call(f"{url}/blockchain/rewards")
    if answer.status == 200:
        reward = answer.json()["currentReward"] // 10**8
        assert f"Block reward\n{reward} WAVES" in text(page)
    else:
        assert "no block reward" in text(page)


def test_the_node_page_draws_its_peers(tmp_path: Path, page: Page) -> None:
    ports = [f"--{name}=0" for name in ("port", "signer-port", "matcher-port")]
    options = ["devnet", "--nodes=2", "--block-time=1", f"--data-dir={tmp_path / 'data'}", *ports]
    with started(*options, until="Ready.") as network:
        url = re.findall(r"^  node +(http://\S+)", network.output, re.MULTILINE)[0]
        eventually(lambda: bool(call(f"{url}/peers/connected").json()["peers"]), "a peer")
        go(page, url, "#node")
        page.wait_for("document.querySelectorAll('.graph circle').length === 2")
        (peer,) = call(f"{url}/peers/connected").json()["peers"]
        assert peer["peerName"] in text(page, "[aria-label='Connected peers']")
        assert "no peer is ahead" in text(page) or "behind the best peer" in text(page)
        looks(page, "explorer-peers")
        nothing_ran(page)
        page.open("about:blank")
    page.errors.clear()


def test_a_call_that_failed_says_why(chain: Program, page: Page) -> None:
    url = chain.node_url
    compiled = compiled_script(url, CHANGES_ITS_MIND)
    send(url, type=13, version=1, sender=FOURTH, script=compiled, fee=2_000_000)
    invoke = {"type": 16, "version": 1, "dApp": FOURTH, "feeAssetId": None, "payment": []}
    call(f"{url}/devnet/mining?mode=manual", "")
    try:
        names = []
        # The one with the higher fee is before the other in the block.
        for function, fee, sender in (("late", 900_000, RICH), ("keep", 9_000_000, SECOND)):
            wanted = invoke | {
                "sender": sender,
                "fee": fee,
                "call": {"function": function, "args": []},
            }
            signed = call(f"{url}/transactions/sign", wanted, key=API_KEY).json()
            sent = call(f"{url}/transactions/broadcast", signed)
            assert sent.status == 200, sent.body
            names.append(sent.json()["id"])
        call(f"{url}/devnet/mine", "")
    finally:
        call(f"{url}/devnet/mining?mode=instant", "")
    go(page, url, f"#tx/{names[0]}")
    assert text(page, ".trouble").startswith("The script failed: only the fee was charged")
    assert "it is kept <b>" in text(page, ".trouble pre")
    assert "Failed." in text(page, ".facts")
    looks(page, "explorer-failed")
    nothing_ran(page)


def test_an_asset_leads_to_its_order_books(played_chain: Scenario, page: Page) -> None:
    asset = played_chain.assets[0]
    go(page, played_chain.url, f"#asset/{asset}")
    link = str(page.run("[...document.querySelectorAll('a')].find("
                        "each => each.innerText.includes('Order books')).href"))  # fmt: skip
    assert link.endswith(f"/#{asset}")
    assert call(link.partition("#")[0] + "matcher").status == 200


def test_a_megabyte_of_data_is_shown_in_pieces(chain: Program, page: Page) -> None:
    url = chain.node_url
    for part in range(8):
        entries = [
            {"key": f"{part} {number} {PAYLOAD[:40]}", "type": "string",
             "value": (PAYLOAD * 100)[:32_000]} for number in range(4)
        ]  # fmt: skip
        send(url, type=12, version=2, sender=THIRD, fee=20_000_000, data=entries)
    go(page, url, f"#account/{THIRD}")
    page.wait_for("document.querySelectorAll('[aria-label=Data] tbody tr').length === 32")
    assert len(text(page)) < 100_000
    page.run(
        "(field => { field.value = '7 3 <img'; field.dispatchEvent(new Event('input')); })"
        "(document.querySelector('input[aria-label^=Search]'))"
    )
    page.wait_for("document.querySelectorAll('[aria-label=Data] tbody tr').length === 1")
    nothing_ran(page)
