"""The exchange page with keys that are elsewhere: a signing service, and an extension of the
browser that is made up here, with the page's own cryptography.

Its answers are those of the real one, Keeper-Wallet/Keeper-Wallet-Extension ``6ef57b32``:
``src/background.ts`` (methods, permission, state), ``src/controllers/message.ts`` (what is signed,
who is asked), ``src/lib/keeperError.ts`` (numbers and texts). An error of it is no ``Error``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from soliton import Account, Matcher, Node
from soliton.devnet.accounts import funded_accounts
from soliton.keystore.keys import phrase
from tests.clients.test_kept_signer import kept, unlock
from tests.e2e import browser
from tests.e2e.browser import Page
from tests.e2e.programs import Program, call
from tests.keystore.stores import keep
from tests.pages.held import a_moment
from tests.pages.pages import go, nothing_ran, save, text
from tests.pages.test_exchange import LIVE, TAKEN, begin_order, end_order, order, sign_in
from tests.signer.kept import KEYS, PASSWORD, Place

SELLER, OWNER, WALLET, OTHER = funded_accounts(ord("R"))[:4]
COIN: Final = 10**8
RULES: Final = """
[[rule]]
name = "trading"
signs = ["order.3", "cancelOrder", "wavesAuth"]
keys = ["owner"]
callers = ["bot"]
amounts = { WAVES = 1_000_000_000 }
fees = { WAVES = 1_000_000 }
pairs = "any"
matchers = "any"
unbound-chain = true
"""
ASKS_OTHERS: Final = (
    RULES.replace('["order.3", "cancelOrder", "wavesAuth"]', '["order.3"]')
    + 'approvals = { of = ["alice"], needed = 1, within = "1h" }\n'
    + RULES.replace(
        '["order.3", "cancelOrder", "wavesAuth"]', '["cancelOrder", "wavesAuth"]'
    ).replace('"trading"', '"rest"')
)
KEEPER: Final = """
(async () => {
  const { order, signerOf } = await import("/pages/orders.js");
  const { joined, long } = await import("/pages/crypto.js");
  const { base58 } = await import("/pages/format.js");
  const signers = Object.fromEntries(SEEDS.map(seed => [signerOf(seed, 82).address, seed]));
  const error = (code, message, data = null) => ({ code: String(code), data, message });
  const digits = DECIMALS;
  const chainOf = address => base58(address)[1];
  window.asked = [];
  window.keeper = {
    chosen: Object.keys(signers)[0], code: "R", locked: false, denied: false, answer: null,
    change: made => made, go: [],
    unlock() { this.locked = false; this.go.splice(0).forEach(each => each()); },
  };
  const account = () => {
    if (!keeper.chosen) throw error(14, "Add Keeper Wallet account");
    const own = signerOf(signers[keeper.chosen], keeper.code.charCodeAt(0));
    return { address: own.address, publicKey: own.publicKey, name: "mine", network: "custom",
      networkCode: keeper.code, type: "seed", lastUsed: 0, balance: 0 };
  };
  // A question stands in the extension's window until somebody answers; before that, the extension
  // has to be unlocked there.
  const answer = async (type, then) => {
    const from = account();
    if (keeper.denied) throw error(12, "Api rejected by user");
    asked.push(type);
    if (keeper.locked) await new Promise(done => { keeper.go.push(done); });
    if (keeper.answer === "rejected") throw error(10, "User denied message", "rejected");
    if (keeper.answer) throw error(15, "Failed request", keeper.answer);
    return then(signerOf(signers[from.address], chainOf(from.address)), from);
  };
  window.KeeperWallet = {
    publicState: async () => {
      const found = account();
      if (keeper.denied) throw error(12, "Api rejected by user");
      return { account: found, initialized: true, locked: keeper.locked, messages: [],
        network: { code: keeper.code, matcher: "", server: "" }, txVersion: {}, version: "0.0.0" };
    },
    signRequest: ({ data }) => answer("request", own =>
      own.admit(0, joined(base58(data.senderPublicKey), long(data.timestamp)))),
    signCancelOrder: ({ data }) => answer("cancelOrder", async own => JSON.stringify({
      orderId: data.id, sender: data.senderPublicKey,
      signature: await own.cancel(data.id, joined(base58(data.senderPublicKey), base58(data.id))),
    })),
    signOrder: ({ data }) => answer("order", async (own, from) => {
      const side = each => ({ id: data[each].assetId, decimals: digits[data[each].assetId] });
      const market = { amount: side("amount"), price: side("price") };
      // Whole coins of the price asset, then so many units of an order: what is finer is lost.
      const price = BigInt(data.price.coins) * 10n ** 8n / 10n ** BigInt(market.amount.decimals);
      const fee = { matcherFee: BigInt(data.matcherFee.coins), feeAssetId: null };
      const made = await order({ ...own, publicKey: from.publicKey }, market,
        data.matcherPublicKey, data.orderType, BigInt(data.amount.coins), price, fee,
        data.timestamp);
      const whole = keeper.change({ ...made, chainId: 82, expiration: data.expiration, id: "",
        priceMode: "fixedDecimals", sender: from.address });
      return JSON.stringify(whole, (_, each) => typeof each === "bigint" ? Number(each) : each);
    }),
  };
  return keeper.chosen;
})()
"""
"""Who was ``asked``, and how ``keeper`` answers: which account is open, locked or not, who is
refused.
"""
pytestmark = browser.MARKS


@pytest.fixture(scope="module")
def chain(chain: Program) -> Program:
    """With a market that orders of the seller have opened."""
    with Node(chain.node_url) as node, Matcher(chain.matcher_url) as matcher:
        seller = Account.from_seed(SELLER.seed, "R")
        gold = node.send(seller.issue("Gold", 1000 * COIN, decimals=8)).wait().asset_id
        key = matcher.public_key()
        for number in range(3):
            price = 2 * COIN + number * COIN // 4
            matcher.place(seller.sell(5 * COIN, gold, price, None, matcher=key))
    return chain


@pytest.fixture(scope="module")
def signer(chain: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("kept")
    keep(directory / "keys", PASSWORD, {"owner": phrase(OWNER.seed)})
    with kept(Place(directory, RULES), chain.node_url, origins=(chain.matcher_url,)) as url:
        unlock(url)
        yield url


def trade(page: Page, address: str) -> None:
    """Buy what is offered, bid for more, and take that back."""
    page.wait_for("document.getElementById('balances')?.innerText.includes('to trade')")
    assert text(page, "#own-address") == address
    said = order(page, "buy", "2", "1.5")
    assert said.startswith(TAKEN), said
    name = said.removeprefix(TAKEN).strip()
    page.wait_for(
        f"document.querySelector('[data-order=\"{name}\"]')?.innerText.includes('Filled')"
    )
    said = order(page, "buy", "1", "2")
    assert said.startswith(TAKEN), said
    row = f"document.querySelector('[data-order=\"{said.removeprefix(TAKEN).strip()}\"]')"
    page.wait_for(f"{row}?.querySelector('.cancel')")
    page.run(f"{row}.querySelector('.cancel').click()")
    page.wait_for(f"{row}?.innerText.includes('Cancelled')")


def test_a_signing_service_signs_orders(chain: Program, signer: str, page: Page) -> None:
    go(page, chain.matcher_url, "", LIVE)
    page.run(f"document.getElementById('service').value = '{signer}/'")
    page.run("document.getElementById('service').form.requestSubmit()")
    page.wait_for(f"document.getElementById('with-service') && {LIVE}")
    for key, words in (("wrong", "API key"), (KEYS["bot"], "")):
        page.run(f"document.getElementById('service-key').value = {json.dumps(key)}")
        page.run("document.getElementById('with-service').requestSubmit()")
        if words:
            page.wait_for(
                f"document.querySelector('#with-service .bad')?.innerText.includes('{words}')"
            )
            save(page, "exchange-signing-service.png")
    trade(page, OWNER.address)
    said = order(page, "buy", "2", "1000")
    assert "is more than 1000000000" in said
    nothing_ran(page)


def test_an_order_waits_for_the_approval_of_others(
    chain: Program, tmp_path: Path, page: Page
) -> None:
    keep(tmp_path / "keys", PASSWORD, {"owner": phrase(OWNER.seed)})
    place = Place(tmp_path, ASKS_OTHERS)
    with kept(place, chain.node_url, origins=(chain.matcher_url,)) as url:
        unlock(url)
        page.open("about:blank")
        page.open(f"{chain.matcher_url}/?signer={url}")
        page.wait_for(f"document.getElementById('with-service') && {LIVE}")
        page.run(f"document.getElementById('service-key').value = {json.dumps(KEYS['bot'])}")
        page.run("document.getElementById('with-service').requestSubmit()")
        page.wait_for("document.querySelector('#orders [data-scope]')")
        begin_order(page, "buy", "1.5", "2")
        page.wait_for(
            "document.getElementById('outcome').innerText.includes('Waiting for approval')"
        )
        (waits,) = call(f"{url}/pending", key=KEYS["alice"]).json()["pending"]
        assert waits["told"][0][:60] in text(page, "#outcome")
        approved = call(f"{url}/pending/{waits['pending']}/approve", {}, key=KEYS["alice"])
        assert approved.status == 200, approved.body
        said = end_order(page)
        assert said.startswith(TAKEN), said
        page.open("about:blank")
    nothing_ran(page)


@pytest.fixture(scope="module")
def silver(chain: Program) -> str:
    """An asset whose prices have more decimals in orders than in the extension, offered at 2."""
    with Node(chain.node_url) as node, Matcher(chain.matcher_url) as matcher:
        seller = Account.from_seed(SELLER.seed, "R")
        made = node.send(seller.issue("Silver", 100_000, decimals=2)).wait().asset_id
        assert made is not None
        price = 2 * COIN * 10**6  # Two decimals of the amount make up for six of the price.
        matcher.place(seller.sell(5_000, made, price, None, matcher=matcher.public_key()))
    return made


def open_keeper(page: Page, url: str, silver: str, fragment: str = "") -> None:
    """The page with the extension in it."""
    go(page, url, fragment, LIVE)
    page.run("document.getElementById('with-keeper').closest('details').open = true")
    seeds = json.dumps([WALLET.seed, OTHER.seed])
    digits = f"new Proxy({{ WAVES: 8, '{silver}': 2 }}, {{ get: (all, id) => all[id] ?? 8 }})"
    assert page.run(KEEPER.replace("SEEDS", seeds).replace("DECIMALS", digits)) == WALLET.address


def ask_keeper(page: Page) -> None:
    page.run("document.getElementById('with-keeper').requestSubmit()")


def refused(page: Page) -> str:
    """What the page says where the extension did not let it in."""
    page.wait_for("document.querySelector('#with-keeper .bad')?.innerText")
    return text(page, "#with-keeper .bad")


def test_the_extension_signs_orders(chain: Program, silver: str, page: Page) -> None:
    go(page, chain.matcher_url, "", LIVE)
    page.run("document.getElementById('with-keeper').closest('details').open = true")
    ask_keeper(page)
    assert "Keeper is not installed" in refused(page)
    open_keeper(page, chain.matcher_url, silver)
    ask_keeper(page)
    trade(page, WALLET.address)
    assert set(page.run("asked")) == {"request", "order", "cancelOrder"}
    # It was asked once who looks at the orders, not each time that they are drawn.
    assert page.run("asked.filter(each => each === 'request').length") == 1
    nothing_ran(page)


def test_the_extension_signs_prices_of_any_market(chain: Program, silver: str, page: Page) -> None:
    open_keeper(page, chain.matcher_url, silver, f"#{silver}")
    ask_keeper(page)
    page.wait_for("document.getElementById('balances')?.innerText.includes('Silver to trade')")
    said = order(page, "buy", "2.00000001", "1.5")
    assert said.startswith(TAKEN), said
    name = said.removeprefix(TAKEN).strip()
    page.wait_for(
        f"document.querySelector('[data-order=\"{name}\"]')?.innerText.includes('Filled')"
    )
    assert (
        order(page, "buy", "2.000000001", "1.5") == "Keeper takes prices with 8 decimals at most."
    )
    page.run("keeper.change = made => ({ ...made, amount: made.amount + 1n })")
    begin_order(page, "buy", "1", "1.5")
    assert end_order(page) == "Keeper has signed another amount."
    nothing_ran(page)


def test_what_the_extension_refuses_is_said(chain: Program, silver: str, page: Page) -> None:
    open_keeper(page, chain.matcher_url, silver, f"#{silver}")
    for state, words in (
        ("chosen: ''", "no account"),
        ("code: 'W'", "Keeper is on the network W; this matcher is on R"),
        ("denied: true", "blocks this site"),
    ):
        page.run("window.before = { ...keeper }")
        page.run(f"Object.assign(keeper, {{ {state} }}), true")
        ask_keeper(page)
        assert words in refused(page)
        page.run("Object.assign(keeper, before), true")
    ask_keeper(page)
    page.wait_for("document.querySelector('#orders [data-scope]')")
    for answer, words in (
        ("rejected", "Rejected in Keeper."),
        ("no device", "Keeper says: Failed request: no device"),
    ):
        page.run(f"keeper.answer = {json.dumps(answer)}")
        begin_order(page, "buy", "1", "1")
        assert end_order(page) == words
    page.run("keeper.answer = null")
    page.run(f"keeper.chosen = '{OTHER.address}'")
    begin_order(page, "buy", "1", "1")
    said = end_order(page)
    assert "another account open now" in said and OTHER.address[:7] in said
    page.run(f"keeper.chosen = '{WALLET.address}'")
    assert order(page, "buy", "1", "1").startswith(TAKEN)
    nothing_ran(page)


def test_a_locked_extension_is_waited_for(chain: Program, silver: str, page: Page) -> None:
    open_keeper(page, chain.matcher_url, silver, f"#{silver}")
    page.run("keeper.locked = true")
    ask_keeper(page)
    page.wait_for("document.getElementById('orders').innerText.includes('Confirm in the Keeper')")
    page.wait_for("document.getElementById('balances').innerText.includes('Silver to trade')")
    # Whatever happens meanwhile, it is asked once.
    for _ in range(3):
        begin_order(page, "buy", "x", "1")
        assert "is no price" in end_order(page)
    begin_order(page, "buy", "1.5", "1")
    page.wait_for("document.getElementById('outcome').innerText.includes('Confirm in the Keeper')")
    page.wait_for("asked.length > 1")
    assert page.run("asked") == ["request", "order"]
    page.run("keeper.unlock()")
    assert end_order(page).startswith(TAKEN)
    page.wait_for("document.querySelector('#orders tbody').innerText.includes('Accepted')")
    page.run("document.querySelector('#orders .cancel').click()")
    page.wait_for("document.querySelector('#orders tbody').innerText.includes('Cancelled')")
    nothing_ran(page)


def test_who_does_not_show_the_orders_is_not_asked_again(
    chain: Program, silver: str, page: Page
) -> None:
    open_keeper(page, chain.matcher_url, silver, f"#{silver}")
    page.run("keeper.answer = 'rejected'")
    ask_keeper(page)
    page.wait_for("document.getElementById('admit')")
    assert "Rejected in Keeper." in text(page, "#orders")
    for _ in range(3):
        # An order makes the page ask for everything anew.
        begin_order(page, "buy", "1", "1")
        assert end_order(page) == "Rejected in Keeper."
    page.wait_for("document.getElementById('balances').innerText.includes('Silver to trade')")
    assert page.run("asked.filter(each => each === 'request').length") == 1
    page.run("keeper.answer = null")
    page.run("document.getElementById('admit').click()")
    page.wait_for("document.querySelector('#orders [data-scope]')")
    assert page.run("asked.filter(each => each === 'request').length") == 2
    nothing_ran(page)


def test_a_cancellation_that_is_refused_stays_said(chain: Program, silver: str, page: Page) -> None:
    open_keeper(page, chain.matcher_url, silver, f"#{silver}")
    ask_keeper(page)
    page.wait_for("document.querySelector('#orders [data-scope]')")
    said = order(page, "buy", "1.25", "1")
    assert said.startswith(TAKEN), said
    row = f"document.querySelector('[data-order=\"{said.removeprefix(TAKEN).strip()}\"]')"
    page.wait_for(f"{row}?.querySelector('.cancel')")
    page.run("keeper.answer = 'rejected'")
    # Two clicks are one question.
    page.run(f"{row}.querySelector('.cancel').click(), {row}.querySelector('.cancel').click()")
    page.wait_for("document.getElementById('undone').innerText === 'Rejected in Keeper.'")
    assert page.run("asked.filter(each => each === 'cancelOrder').length") == 1
    for _ in range(4):
        # The page has asked for all of it anew by then.
        a_moment(page)
    assert text(page, "#undone") == "Rejected in Keeper."
    page.run("keeper.answer = null, keeper.locked = true")
    page.run(f"{row}.querySelector('.cancel').click()")
    page.wait_for("document.getElementById('undone').innerText.includes('Confirm in the Keeper')")
    assert text(page, f'[data-order="{said.removeprefix(TAKEN).strip()}"] .cancel') == "Cancelling…"
    page.run("keeper.unlock()")
    page.wait_for(f"{row}?.innerText.includes('Cancelled')")
    assert text(page, "#undone") == ""
    nothing_ran(page)


@pytest.mark.parametrize("leaves", [False, True])
def test_a_wallet_that_is_late_does_not_take_over(
    chain: Program, silver: str, page: Page, leaves: bool
) -> None:
    open_keeper(page, chain.matcher_url, silver, f"#{silver}")
    page.run("""(state => { KeeperWallet.publicState = async () => {
        await new Promise(done => { window.letIn = done; });
        return state();
    }; })(KeeperWallet.publicState), true""")
    ask_keeper(page)
    page.wait_for("window.letIn")
    sign_in(page, OWNER.seed)
    if leaves:
        page.run("document.querySelector('#own-address + .copy').click()")
        page.wait_for("document.getElementById('seed')")
    page.run("letIn()")
    a_moment(page)
    open_now = page.run("document.getElementById('own-address')?.innerText")
    assert open_now == (None if leaves else OWNER.address)
    nothing_ran(page)
